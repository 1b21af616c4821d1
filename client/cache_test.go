package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// cacheable plays a modern server whose every result may be kept for a minute.
func cacheable(t *testing.T, scope string, served *atomic.Int32) *testTransport {
	return scripted(t, func(s *script) {
		s.modernHello()
		for h := s.next(); h != nil; h = s.next() {
			hints := fmt.Sprintf(`"resultType":"complete","ttlMs":60000,"cacheScope":%q`, scope)
			switch h.Method {
			case "tools/list":
				served.Add(1)
				s.result(h, `{"tools":[{"name":"x","inputSchema":{"type":"object"}}],`+hints+`}`)
			case "resources/read":
				served.Add(1)
				s.result(h, `{"contents":[{"uri":"u","text":"t"}],`+hints+`}`)
			case "notifications/com.example/change":
				s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
			case "subscriptions/listen", "notifications/cancelled":
			default:
				s.result(h, `{"resultType":"complete","content":[]}`)
			}
		}
	})
}

func modernOptions() *Options { return only(protocol.V20260728) }

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int32
		c := connect(t, cacheable(t, "private", &served), modernOptions())
		list := func(want int32, options ...CallOption) {
			t.Helper()
			page, err := listTools(t.Context(), c, "", options...)
			if err != nil || len(page.items) != 1 {
				t.Errorf("page %+v, %v", page, err)
			}
			if got := served.Load(); got != want {
				t.Errorf("the server served %d lists, want %d", got, want)
			}
		}
		list(1)
		list(1)
		list(2, NoCache())
		list(3, Header("Authorization", "other"))
		list(3)
		time.Sleep(time.Minute)
		list(4)
		if _, err := listTools(t.Context(), c, "another page"); err != nil || served.Load() != 5 {
			t.Errorf("%d lists, %v", served.Load(), err)
		}
		if _, err := c.Read(t.Context(), "u"); err != nil || served.Load() != 6 {
			t.Errorf("%d, %v", served.Load(), err)
		}
		if _, err := c.Read(t.Context(), "u"); err != nil || served.Load() != 6 {
			t.Errorf("%d, %v", served.Load(), err)
		}
		if err := c.Notify(t.Context(), "notifications/com.example/change", nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		list(7)
		if _, err := c.Read(t.Context(), "u"); err != nil || served.Load() != 8 {
			t.Errorf("after the change: %d, %v", served.Load(), err)
		}
		c.opts.Cache.Clear()
		list(9)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if stats := c.opts.Cache.Stats(); stats.Entries != 0 || stats.Hits == 0 || stats.Misses == 0 {
			t.Errorf("stats after Close %+v", stats)
		}
	})
}

// Who shares a cache gets what is public, and what is private of their own
// authorization.
func TestCacheScope(t *testing.T) {
	tests := []struct {
		scope      string
		key1, key2 string
		want       int32
	}{
		{"public", "", "", 1}, {"public", "a", "b", 1},
		{"private", "a", "a", 1}, {"private", "a", "b", 2}, {"private", "", "", 2}, {"", "a", "b", 2},
	}
	for _, tt := range tests {
		var served atomic.Int32
		cache := NewCache(0)
		tr := cacheable(t, tt.scope, &served)
		for _, key := range []string{tt.key1, tt.key2} {
			opts := modernOptions()
			opts.Cache, opts.CacheKey = cache, key
			if _, err := listTools(t.Context(), connect(t, tr, opts), ""); err != nil {
				t.Fatal(err)
			}
		}
		if served.Load() != tt.want {
			t.Errorf("%+v: served %d", tt, served.Load())
		}
	}
}

func TestCacheLimit(t *testing.T) {
	c := NewCache(3)
	for i := range 10 {
		c.put("s", "", "m", fmt.Sprint(i), []byte(`{"ttlMs":1000}`))
	}
	if c.Stats().Entries != 3 {
		t.Errorf("entries %d", c.Stats().Entries)
	}
	for i := range 10 {
		if _, ok := c.get("s", "", "m", fmt.Sprint(i)); ok != (i >= 7) {
			t.Errorf("entry %d is there: %v", i, ok)
		}
	}
	for _, bad := range []string{`{"ttlMs":-5}`, `{"ttlMs":"x"}`, `{"ttlMs":0}`, `{}`, `[]`, `{"ttlMs":null}`} {
		c.put("s", "", "bad", bad, []byte(bad))
		if _, ok := c.get("s", "", "bad", bad); ok {
			t.Errorf("%s was kept", bad)
		}
	}
}

func TestCacheBytes(t *testing.T) {
	testdep.NoRace(t, "one goroutine fills the cache")
	c := NewCache(0)
	result := []byte(`{"ttlMs":60000,"x":"` + strings.Repeat("x", maxCachedResult-100) + `"}`)
	for i := range 100 {
		c.put("s", "", "m", fmt.Sprint(i), result)
	}
	c.put("s", "", "m", "large", append(result[:len(result)-2:len(result)-2], strings.Repeat("y", 200)+`"}`...))
	if n := c.Stats().Entries; n != maxCached/len(result) || c.size > maxCached {
		t.Errorf("%d entries of %d bytes", n, c.size)
	}
	c.drop("s", "m", "")
	if c.size != 0 || c.first != nil {
		t.Errorf("%d bytes are left", c.size)
	}
}

// What answers to a server's questions bring is kept for nobody, and such a
// request is not served what others got.
func TestCacheAnswers(t *testing.T) {
	served := 0
	tr := scripted(t, func(s *script) {
		s.modernHello()
		for h := s.next(); h != nil; h = s.next() {
			served++
			s.result(h, fmt.Sprintf(`{"contents":[{"uri":"u","text":"%d"}],"resultType":"complete","ttlMs":60000,"cacheScope":"public"}`, served))
		}
	})
	c := connect(t, tr, modernOptions())
	answers := Answers(map[string]any{"k": map[string]any{"action": "accept"}}, "s")
	state := Answers(nil, "s")
	steps := []struct {
		name, uri string
		options   []CallOption
		want      string
	}{
		{"answers first", "u", []CallOption{answers}, "1"}, {"then none", "u", nil, "2"}, {"kept", "u", nil, "2"},
		{"answers again", "u", []CallOption{answers}, "3"}, {"still kept", "u", nil, "2"},
		{"a state alone", "v", []CallOption{state}, "4"}, {"not kept", "v", nil, "5"},
		{"not taken", "v", []CallOption{state}, "6"}, {"kept too", "v", nil, "5"},
	}
	for _, tt := range steps {
		r, err := c.Read(t.Context(), tt.uri, tt.options...)
		if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != tt.want {
			t.Errorf("%s: %+v, %v, want %s", tt.name, r, err, tt.want)
		}
	}
}

// A cursor that the server refuses drops the cached pages of its list, and of
// no other; a request that fails otherwise drops none.
func TestCacheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := map[string]int{}
		tr := scripted(t, func(s *script) {
			s.modernHello()
			for h := s.next(); h != nil; h = s.next() {
				const hints = `"nextCursor":"next","resultType":"complete","ttlMs":60000,"cacheScope":"private"}`
				switch {
				case strings.Contains(h.raw, `"cursor":"gone"`):
					s.fault(h, -32602, "invalid cursor")
				case strings.Contains(h.raw, `"cursor":"mute"`):
				case h.Method == "tools/list":
					served[h.Method]++
					s.result(h, `{"tools":[],`+hints)
				case h.Method == "resources/list":
					served[h.Method]++
					s.result(h, `{"resources":[],`+hints)
				}
			}
		})
		c := connect(t, tr, modernOptions())
		lists := func(when string, tools, resources int) {
			t.Helper()
			for _, cursor := range []string{"", "next", "", "next"} {
				_, err := listTools(t.Context(), c, cursor)
				_, err2 := listResources(t.Context(), c, cursor)
				if err != nil || err2 != nil {
					t.Errorf("%s: %v, %v", when, err, err2)
				}
			}
			if served["tools/list"] != tools || served["resources/list"] != resources {
				t.Errorf("%s: served %v, want %d and %d", when, served, tools, resources)
			}
		}
		lists("at first", 2, 2)
		if _, err := listTools(t.Context(), c, "mute", Timeout(time.Second)); !errors.Is(err, ErrTimeout) {
			t.Errorf("mute: %v", err)
		}
		lists("after a timeout", 2, 2)
		if _, err := listTools(t.Context(), c, "gone"); code(err) != -32602 {
			t.Errorf("gone: %v", err)
		}
		lists("after the refusal", 4, 2)
	})
}

// A result that is invalid is not kept, though the server says that it may be: the next
// one may be better.
func TestInvalidIsNotKept(t *testing.T) {
	const fresh = `,"resultType":"complete","ttlMs":3600000,"cacheScope":"public"}`
	good := map[string]string{
		"tools/list":     `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]` + fresh,
		"resources/read": `{"contents":[{"uri":"x:a","text":"x"}]` + fresh,
	}
	tools := func(ctx context.Context, c *Client) error {
		for _, err := range c.Tools(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, tt := range map[string]struct {
		method string
		bad    []string
		call   func(ctx context.Context, c *Client) error
	}{
		"a list that is none":       {"tools/list", []string{`{"tools":7` + fresh}, tools},
		"an entry that is none":     {"tools/list", []string{`{"tools":[7]` + fresh}, tools},
		"a list that does not end":  {"tools/list", []string{`{"tools":[],"nextCursor":"a"` + fresh, `{"tools":[],"nextCursor":"a"` + fresh}, tools},
		"a page that is none":       {"tools/list", []string{`{"tools":[],"nextCursor":"a"` + fresh, `{"tools":7` + fresh}, tools},
		"a resource that is none":   {"resources/read", []string{`{"contents":7` + fresh}, func(ctx context.Context, c *Client) error { _, err := c.Read(ctx, "x:a"); return err }},
		"a list without its member": {"tools/list", []string{`{"x":1` + fresh}, tools},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := connect(t, scripted(t, func(s *script) {
				s.modernHello()
				for h := s.until(tt.method); h != nil; h = s.until(tt.method) {
					if asked++; asked <= len(tt.bad) {
						s.result(h, tt.bad[asked-1])
					} else {
						s.result(h, good[tt.method])
					}
				}
			}), &Options{Cache: NewCache(0)})
			if err := tt.call(t.Context(), c); err == nil {
				t.Error("it is taken")
			}
			for range 2 {
				if err := tt.call(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if asked != len(tt.bad)+1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
