package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// news is a server with an event type. If answer is not nil, it answers polls: with params
// and the number of the poll, from 1.
func news(t *testing.T, answer func(n int, params string) (string, error)) *mcp.Server {
	s := fixture(t, nil)
	s.MustAdd(mcp.EventType("news", func(_ *mcp.Frame, in struct {
		About string `json:"about,omitempty"`
	}, d map[string]string) (bool, error) {
		return in.About == "" || d["about"] == in.About, nil
	}))
	n := 0
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Method == "events/stream" && answer != nil {
				return nil, &protocol.Error{Code: protocol.CodeMethodNotFound, Message: "no streams"}
			}
			if f.Request().Method != "events/poll" || answer == nil {
				return next(f)
			}
			n++
			text, err := answer(n, string(f.Request().Params.Raw))
			if err != nil {
				return nil, err
			}
			return protocol.JSONResult{Value: json.RawMessage(text)}, nil
		}
	})
	return s
}

// A watch receives what is emitted, in every revision, and continues at the cursor of an
// event.
func TestWatchEvents(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		synctest.Test(t, func(t *testing.T) {
			s := news(t, nil)
			c := connect(t, serving(t, s), only(rev))
			var types []string
			for e, err := range c.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, e.Name+" "+strings.Join(e.Delivery, ","))
			}
			want, wait := "[news poll]", 10*time.Second
			if rev.Modern() {
				want, wait = "[news poll,push]", 7*time.Second
			}
			if fmt.Sprint(types) != want {
				t.Errorf("types %v", types)
			}
			emit := func(about string) {
				if err := s.Emit(t.Context(), mcp.Occurrence{Name: "news", Data: map[string]string{"about": about}, ID: about}); err != nil {
					t.Error(err)
				}
			}
			time.AfterFunc(7*time.Second, func() { emit("other"); emit("go") })
			time.AfterFunc(17*time.Second, func() { emit("go2") })
			var got []Occurrence
			began := time.Now()
			for o, err := range c.Watch(t.Context(), "news", map[string]string{"about": "go"}, nil) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, o)
				break
			}
			if took := time.Since(began); len(got) != 1 || got[0].ID != "go" || got[0].Name != "news" || got[0].Cursor == "" || took != wait {
				t.Errorf("after %v: %+v", took, got)
			}
			for o, err := range c.Watch(t.Context(), "news", nil, &WatchOptions{Cursor: got[0].Cursor}) {
				if err != nil || o.ID != "go2" {
					t.Errorf("continued with %+v, %v", o, err)
				}
				break
			}
		})
	})
}

// The time between two polls is what the server names, in each form of a number, and the
// default for no positive one.
func TestWatchInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10000": 10 * time.Second, "1e4": 10 * time.Second, `"10000"`: 10 * time.Second, "1e999": 5 * time.Minute, "1": time.Second,
		"0": 5 * time.Second, "-5": 5 * time.Second, "-1e999": 5 * time.Second, "null": 5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := news(t, func(n int, _ string) (string, error) {
				if n == 2 {
					return "", &protocol.Error{Code: -32011, Message: "no"}
				}
				return `{"events":[],"cursor":"1","nextPollMs":` + text + `}`, nil
			})
			c, began := connect(t, serving(t, s), modernOptions()), time.Now()
			for _, err := range c.Watch(t.Context(), "news", nil, nil) {
				if took := time.Since(began); took != want || !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: polled again after %v, want %v; %v", text, took, want, err)
				}
			}
		})
	}
}

// What a watch yields, and when it polls, for what a server may answer.
func TestWatchAnswers(t *testing.T) {
	event := func(id string) string {
		return fmt.Sprintf(`{"eventId":%q,"name":"news","timestamp":"2026-11-27T18:00:00Z","data":{}}`, id)
	}
	page := func(cursor, more string, events ...string) string {
		return fmt.Sprintf(`{"events":[%s],"cursor":%s%s}`, strings.Join(events, ","), cursor, more)
	}
	failure := func(code protocol.Code) error { return &protocol.Error{Code: code, Message: "no"} }
	for name, c := range map[string]struct {
		answer func(n int, params string) (string, error)
		want   string        // what was yielded and moved, in order
		err    error         // with which it ends
		took   time.Duration // until then
	}{
		"repetitions are left out": {func(n int, _ string) (string, error) {
			return []string{page(`"1"`, "", event("a"), event("b")), page(`"2"`, "", event("b"), event("a")), page(`"3"`, "", event("c"))}[min(n, 3)-1], []error{nil, nil, nil, failure(-32011)}[min(n, 4)-1]
		}, `a@ b@1 moved 2 c@3`, ErrNotFound, 15 * time.Second},
		"more is asked for at once": {func(n int, params string) (string, error) {
			if n == 3 {
				return "", failure(-32023)
			}
			return page(fmt.Sprintf(`"%d"`, n), `,"hasMore":true`, event(fmt.Sprint(n))), nil
		}, `1@1 2@2`, ErrNotFound, 0},
		"more without an end waits": {func(n int, _ string) (string, error) {
			if n == 3 {
				return "", failure(-32024)
			}
			return page(`"1"`, `,"hasMore":true,"nextPollMs":0`), nil
		}, `moved 1`, ErrUnauthorized, 2 * time.Second},
		"more without events waits a second": {func(n int, _ string) (string, error) {
			if n == 4 {
				return "", failure(-32024)
			}
			return page(fmt.Sprintf(`"%d"`, n), `,"hasMore":true,"nextPollMs":60000`), nil
		}, `moved 1 moved 2 moved 3`, ErrUnauthorized, 3 * time.Second},
		"more with repetitions waits a second": {func(n int, _ string) (string, error) {
			if n == 4 {
				return "", failure(-32024)
			}
			return page(fmt.Sprintf(`"%d"`, n), `,"hasMore":true`, event("a"), event("a")), nil
		}, `a@ moved 1 moved 2 moved 3`, ErrUnauthorized, 2 * time.Second},
		"a second is the least": {func(n int, _ string) (string, error) {
			if n == 4 {
				return "", failure(-32012)
			}
			return page(`"1"`, `,"nextPollMs":1`), nil
		}, `moved 1`, ErrUnauthorized, 3 * time.Second},
		"5 minutes are the most": {func(n int, _ string) (string, error) {
			if n == 2 {
				return "", failure(-32026)
			}
			return page(`"1"`, `,"nextPollMs":1e300`), nil
		}, `moved 1`, ErrUnsupported, 5 * time.Minute},
		"missed": {func(n int, _ string) (string, error) {
			switch n {
			case 1:
				return page(`"1"`, `,"truncated":true`), nil
			case 2:
				return page(`"2"`, `,"truncated":true`, event("a")), nil
			}
			return "", failure(-32013)
		}, `missed 1 missed 1 a@2`, ErrBusy, 10 * time.Second},
		"no positions": {func(n int, params string) (string, error) {
			if n == 3 {
				return "", failure(-32601)
			}
			if !strings.Contains(params, `"cursor":null`) {
				t.Errorf("asked with %s", params)
			}
			return page(`null`, "", event(fmt.Sprint(n))), nil
		}, `1@ 2@`, ErrUnsupported, 10 * time.Second},
		"busy is tried again": {func(n int, _ string) (string, error) {
			switch n {
			case 1, 2:
				return "", &protocol.Error{Code: protocol.CodeUnavailable, Message: "later", RetryAfter: 30 * time.Second}
			case 3:
				return page(`"1"`, "", event("a")), nil
			}
			return "", failure(protocol.CodeInvalidParams)
		}, `a@1`, ErrInvalidParams, 65 * time.Second},
		"not a page":       {func(int, string) (string, error) { return `{"events":7}`, nil }, ``, ErrInvalidResult, 0},
		"an event is null": {func(int, string) (string, error) { return page(`"1"`, "", event("a"), "null"), nil }, ``, ErrInvalidResult, 0},
		"data is missing":  {func(int, string) (string, error) { return page(`"1"`, "", `{"eventId":"a","name":"news"}`), nil }, ``, ErrInvalidResult, 0},
		"data is null": {func(int, string) (string, error) {
			return page(`"1"`, "", `{"eventId":"a","name":"news","data":null}`), nil
		}, ``, ErrInvalidResult, 0},
		"data is a number": {func(int, string) (string, error) {
			return page(`"1"`, "", `{"eventId":"a","name":"news","data":7}`), nil
		}, ``, ErrInvalidResult, 0},
		"data is a list": {func(int, string) (string, error) {
			return page(`"1"`, "", `{"eventId":"a","name":"news","data":[]}`), nil
		}, ``, ErrInvalidResult, 0},
		"another event type": {func(int, string) (string, error) {
			return page(`"1"`, "", `{"eventId":"a","name":"olds","data":{}}`), nil
		}, ``, ErrInvalidResult, 0},
		"cursor is a number": {func(int, string) (string, error) { return `{"events":[],"cursor":7}`, nil }, ``, ErrInvalidResult, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, serving(t, news(t, c.answer)), only(protocol.Latest))
				var got []string
				began := time.Now()
				moved := func(cursor string, missed bool) {
					got = append(got, map[bool]string{false: "moved ", true: "missed "}[missed]+cursor)
				}
				var last error
				for o, err := range client.Watch(t.Context(), "news", nil, &WatchOptions{Moved: moved}) {
					if last != nil {
						t.Errorf("%v is not the last", last)
					}
					if last = err; err == nil {
						got = append(got, o.ID+"@"+o.Cursor)
					}
				}
				if text := strings.Join(got, " "); text != c.want || !errors.Is(last, c.err) || time.Since(began) != c.took {
					t.Errorf("%v: %q, %v", time.Since(began), text, last)
				}
			})
		})
	}
}

// The age bounds the first page alone: what follows is new.
func TestWatchAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cursor, want := range map[string]string{"": "[false false false]", "0": "[true false false]"} {
			var aged []bool
			c := connect(t, serving(t, news(t, func(n int, params string) (string, error) {
				if aged = append(aged, strings.Contains(params, "maxAgeMs")); n == 3 {
					return "", &protocol.Error{Code: -32011, Message: "no"}
				}
				return `{"events":[],"cursor":"1"}`, nil
			})), only(protocol.Latest))
			for range c.Watch(t.Context(), "news", nil, &WatchOptions{Cursor: cursor, MaxAge: time.Second}) {
			}
			if fmt.Sprint(aged) != want {
				t.Errorf("cursor %q: %v, want %s", cursor, aged, want)
			}
		}
	})
}

// A watch survives the loss of its connection, and ends with its context.
func TestWatchReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := news(t, nil)
		c := connect(t, serving(t, s), only(protocol.Latest))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		time.AfterFunc(6*time.Second, func() { c.life.conn.Load().Lost(errors.New("lost")) })
		time.AfterFunc(20*time.Second, func() {
			if err := s.Emit(ctx, mcp.Occurrence{Name: "news", Data: map[string]string{}}); err != nil {
				t.Error(err)
			}
		})
		for _, err := range c.Watch(ctx, "news", nil, nil) {
			if err != nil && (n != 1 || !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled)) {
				t.Errorf("after %d: %v", n, err)
			}
			n++
			cancel()
		}
		if n != 2 {
			t.Errorf("yielded %d times", n)
		}
	})
}

// A server without the capability receives no request; a closed client ends a watch.
func TestWatchRefused(t *testing.T) {
	c := connect(t, serving(t, fixture(t, nil)), nil)
	for _, err := range c.Watch(t.Context(), "news", nil, nil) {
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `"events"`) {
			t.Errorf("without the capability: %v", err)
		}
	}
	for _, arguments := range []any{7, func() {}} {
		for _, err := range c.Watch(t.Context(), "news", arguments, nil) {
			if err == nil || !strings.Contains(err.Error(), "arguments") {
				t.Errorf("arguments %T: %v", arguments, err)
			}
		}
	}
}

// The memory of a watch for repetitions is bounded.
func TestWatchForgets(t *testing.T) {
	w := &watch{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	for i := range 5000 {
		if w.repeated(fmt.Sprint(i)) || !w.repeated(fmt.Sprint(i)) {
			t.Fatal(i)
		}
	}
	if len(w.seen) != repeats || len(w.order) != repeats || w.repeated("1") || !w.repeated("4999") {
		t.Errorf("%d and %d are kept", len(w.seen), len(w.order))
	}
}

// Over a stream events come at once, over a pipe and over HTTP; the loop continues behind
// the last one when the connections are lost, and ends when the type is removed. The end
// of the loop ends the stream at the server.
func TestWatchStream(t *testing.T) {
	for name, target := range map[string]func(t *testing.T, s *mcp.Server) (to Transport, lose func()){
		"pipe": func(t *testing.T, s *mcp.Server) (Transport, func()) { return serving(t, s), nil },
		"http": func(t *testing.T, s *mcp.Server) (Transport, func()) {
			web := httptest.NewServer(s.Handler())
			t.Cleanup(web.Close)
			t.Cleanup(web.CloseClientConnections)
			return HTTP(web.URL, nil), web.CloseClientConnections
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := news(t, nil)
			var polls atomic.Int32
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					if f.Request().Method == "events/poll" {
						polls.Add(1)
					}
					return next(f)
				}
			})
			to, lose := target(t, s)
			c := connect(t, to, only(protocol.Latest))
			emit := func(id string) {
				if err := s.Emit(t.Context(), mcp.Occurrence{Name: "news", Data: map[string]string{"about": "go"}, ID: id}); err != nil {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			started := make(chan struct{})
			o := &WatchOptions{Moved: sync1(func() { close(started) })}
			go func() {
				select {
				case <-started:
				case <-ctx.Done():
				}
				for i := range 5 {
					emit(fmt.Sprint(i))
				}
			}()
			var got []string
			var err error
			var last Occurrence
			for o, failed := range c.Watch(ctx, "news", map[string]string{"about": "go"}, o) {
				if err = failed; err != nil {
					break
				}
				last, got = o, append(got, o.ID)
				switch {
				case o.ID == "4" && lose != nil:
					lose()
					emit("lost")
				case o.ID == "4" || o.ID == "lost":
					s.Remove(mcp.KindEvent, "news")
				}
			}
			want := "[0 1 2 3 4]"
			if lose != nil {
				want = "[0 1 2 3 4 lost]"
			}
			if fmt.Sprint(got) != want || !errors.Is(err, ErrNotFound) || last.Time.IsZero() || string(last.Data) != `{"about":"go"}` || last.Cursor == "" {
				t.Errorf("got %v, then %v; last %+v", got, err, last)
			}
			if n := polls.Load(); n != 0 {
				t.Errorf("polled %d times", n)
			}
		})
	}
}

// A server that has no room for a stream, or lets none pass, is polled, and asked for a
// stream again after 5 minutes.
func TestWatchWithoutRoom(t *testing.T) {
	fails := func(err error) func(n int) error {
		return func(n int) error {
			if n > 1 {
				return nil
			}
			return err
		}
	}
	for name, refusal := range map[string]func(n int) error{
		"429":             fails(&protocol.Error{Code: protocol.CodeBusy, Message: "full"}),
		"exhausted":       fails(&protocol.Error{Code: -32013, Message: "full"}),
		"exhausted, SEP":  fails(&protocol.Error{Code: -32025, Message: "full"}),
		"invalid request": fails(&protocol.Error{Code: protocol.CodeInvalidRequest, Message: "text/event-stream is missing"}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := news(t, nil)
				var streams, polls atomic.Int32
				s.Use(func(next mcp.Handler) mcp.Handler {
					return func(f *mcp.Frame) (protocol.Result, error) {
						switch f.Request().Method {
						case "events/stream":
							if err := refusal(int(streams.Add(1))); err != nil {
								return nil, err
							}
						case "events/poll":
							polls.Add(1)
						}
						return next(f)
					}
				})
				c := connect(t, serving(t, s), only(protocol.Latest))
				began := time.Now()
				for _, at := range []time.Duration{7 * time.Second, 6 * time.Minute} {
					time.AfterFunc(at, func() {
						if err := s.Emit(t.Context(), mcp.Occurrence{Name: "news", Data: map[string]string{}}); err != nil {
							t.Error(err)
						}
					})
				}
				var took []time.Duration
				for _, err := range c.Watch(t.Context(), "news", nil, nil) {
					if err != nil {
						t.Fatal(err)
					}
					if took = append(took, time.Since(began)); len(took) == 2 {
						break
					}
				}
				if took[0] != 10*time.Second || took[1] != 6*time.Minute || streams.Load() != 2 || polls.Load() != 60 {
					t.Errorf("received after %v, %d streams, %d polls", took, streams.Load(), polls.Load())
				}
			})
		})
	}
}

// A loop whose body panics ends its stream at the server.
func TestWatchPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := news(t, nil)
		c := connect(t, serving(t, s), only(protocol.Latest))
		time.AfterFunc(time.Second, func() {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "news", Data: map[string]string{}}); err != nil {
				t.Error(err)
			}
		})
		func() {
			defer func() {
				if recover() != "body" {
					t.Error("no panic")
				}
			}()
			for range c.Watch(t.Context(), "news", nil, nil) {
				panic("body")
			}
		}()
		c.calls.mu.Lock()
		defer c.calls.mu.Unlock()
		if n := len(c.calls.table); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

// sync1 returns a Moved that calls fn the first time.
func sync1(fn func()) func(string, bool) {
	once := false
	return func(string, bool) {
		if !once {
			once = true
			fn()
		}
	}
}
