package lists_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// matched is a server with the event type "x", whose match is given.
func matched(log *harness.LogText, match func(text string) (bool, error)) *mcp.Server {
	logger := zerolog.New(log)
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, &mcp.Options{Logger: &logger})
	s.MustAdd(mcp.EventType("x", func(_ context.Context, _ struct{}, d map[string]string) (bool, error) { return match(d["text"]) }))
	return s
}

// emitText emits an event of type "x".
func emitText(t *testing.T, s *mcp.Server, text string) {
	t.Helper()
	if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{"text": text}}); err != nil {
		t.Fatal(err)
	}
}

// Calls of match that do not return keep no page, and are bounded: at the bound a poll is
// refused at once, and when they return polls are served again.
func TestEventMatchesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := matched(&harness.LogText{}, func(string) (bool, error) { <-release; return true, nil })
		c := pipe{mcptest.New(t, s, mcptest.Timeout(time.Minute))}
		members := fmt.Sprintf(`"name":"x","cursor":%q`, poll(t, c, `"name":"x"`).Cursor)
		for range 80 {
			emitText(t, s, strings.Repeat("x", 10<<10))
		}
		before := heap()
		const most = 64
		for n := range most + 5 {
			began := time.Now()
			want := 5 * time.Second
			if n >= most {
				want = 0
			}
			if got := c.Ask("events/poll", "{"+members+"}"); !strings.Contains(got, `"code":503`) || time.Since(began) != want {
				t.Fatalf("poll %d: after %v: %s", n, time.Since(began), got)
			}
		}
		if more := heap() - before; more > most*100<<10 {
			t.Errorf("%d calls keep %d KiB", most, more>>10)
		}
		close(release)
		synctest.Wait()
		if page := poll(t, c, members); len(page.Events) == 0 {
			t.Errorf("after they returned: %+v", page)
		}
	})
}

// heap returns how many bytes are in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// hangingStore is a store of which a Read returns when its context ends, at times.
type hangingStore struct {
	scale.Store
	hangs atomic.Bool
}

func (s *hangingStore) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if s.hangs.Load() && strings.HasPrefix(box, "events-") {
		<-ctx.Done()
		return nil, "", context.Cause(ctx)
	}
	return s.Store.Read(ctx, box, after, reader)
}

// A poll waits 5 s for a store that does not answer, and the log has the reason.
func TestEventsAtHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &harness.LogText{}
		logger := zerolog.New(log)
		opts := withStore(t)
		store := &hangingStore{Store: opts.Store}
		opts.Store, opts.Logger = store, &logger
		s := ended(t, eventServer(opts))
		c := pipe{mcptest.New(t, s, mcptest.Timeout(time.Minute))}
		members := fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`,
			poll(t, c, `"name":"comment.created","arguments":{"document":"a"}`).Cursor)
		store.hangs.Store(true)
		began := time.Now()
		if got := c.Ask("events/poll", "{"+members+"}"); !strings.Contains(got, `"code":503`) || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		if !strings.Contains(log.String(), "deadline exceeded") {
			t.Errorf("the log has no reason: %s", log)
		}
		store.hangs.Store(false)
		emit(t, s, "a", "later")
		if page := poll(t, c, members); texts(page) != "later" {
			t.Errorf("then: %+v", page)
		}
	})
}

// A match that is slow for each event, and returns in time, costs its page the rest, and is
// no fault: 5 s are for one call, and no event is asked about after 5 s.
func TestEventMatchSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &harness.LogText{}
		s := matched(log, func(string) (bool, error) { time.Sleep(3 * time.Second); return true, nil })
		c := pipe{mcptest.New(t, s, mcptest.Timeout(time.Minute))}
		cursor := poll(t, c, `"name":"x"`).Cursor
		for _, text := range strings.Fields("a b c d e") {
			emitText(t, s, text)
		}
		for _, want := range []struct {
			texts string
			took  time.Duration
			more  bool
		}{{"a b", 6 * time.Second, true}, {"c d", 6 * time.Second, true}, {"e", 3 * time.Second, false}} {
			began := time.Now()
			page := poll(t, c, fmt.Sprintf(`"name":"x","cursor":%q`, cursor))
			if took := time.Since(began); texts(page) != want.texts || took != want.took || page.HasMore != want.more {
				t.Errorf("after %v: %q, more %v; want %+v", took, texts(page), page.HasMore, want)
			}
			cursor = page.Cursor
		}
		if strings.Contains(log.String(), `"level":"warn"`) {
			t.Errorf("logged: %s", log)
		}
	})
}

// A client of a mount reads its own name of the type, in errors and in the log of its
// server; so does the match.
func TestEventNamesMounted(t *testing.T) {
	log := &harness.LogText{}
	logger := zerolog.New(log)
	child := mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, nil)
	var names []string
	child.MustAdd(mcp.EventType("x", func(f *mcp.Frame, _ struct{ A int }, _ map[string]string) (bool, error) {
		names = append(names, f.Request().Params.Name)
		return false, errors.New("away")
	}))
	s := mcp.NewServer(mcp.Info{Name: "outer", Version: "1"}, &mcp.Options{Logger: &logger})
	if err := s.Mount("docs", child); err != nil {
		t.Fatal(err)
	}
	c := pipe{mcptest.New(t, s)}
	cursor := poll(t, c, `"name":"docs_x","arguments":{"A":1}`).Cursor
	emitText(t, child, "one")
	if got := c.Ask("events/poll", fmt.Sprintf(`{"name":"docs_x","arguments":{"A":1},"cursor":%q}`, cursor)); !strings.Contains(got, `event \"docs_x\"`) {
		t.Errorf("undecided: %s", got)
	}
	if got := c.Ask("events/poll", `{"name":"docs_x","arguments":{"A":"y"}}`); !strings.Contains(got, `event \"docs_x\"`) {
		t.Errorf("arguments: %s", got)
	}
	if !strings.Contains(log.String(), `"event":"docs_x"`) || fmt.Sprint(names) != "[docs_x]" {
		t.Errorf("match saw %v, the log has %s", names, log)
	}
}

// Data that does not decode in this version of the program holds its type up for about a
// minute, in which another replica may be one that decodes it, and is then left out, with
// a line in the log.
func TestEventUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &harness.LogText{}
		logger := zerolog.New(log)
		opts := withStore(t)
		older := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, opts))
		older.MustAdd(mcp.EventType("x", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
		withLog := *opts
		withLog.Logger = &logger
		newer := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "2"}, &withLog))
		newer.MustAdd(mcp.EventType("x", func(context.Context, struct{}, struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		}) (bool, error) {
			return true, nil
		}))
		c := pipe{mcptest.New(t, newer)}
		members := fmt.Sprintf(`"name":"x","cursor":%q`, poll(t, c, `"name":"x"`).Cursor)
		for _, d := range []map[string]string{{"text": "a", "further": "member"}, {"text": "b", "n": "no number"}, {"text": "c"}} {
			if err := older.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		if page := poll(t, c, members); texts(page) != "a" || !page.HasMore {
			t.Errorf("at once: %+v", page)
		}
		time.Sleep(75 * time.Second)
		for range 3 {
			if page := poll(t, c, members); texts(page) != "a c" || page.HasMore {
				t.Errorf("later: %+v", page)
			}
		}
		if n := strings.Count(log.String(), "an event is left out: its data does not decode"); n != 1 {
			t.Errorf("%d lines: %s", n, log)
		}
	})
}

// A match that panics about each event writes its stack once.
func TestEventPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &harness.LogText{}
		s := matched(log, func(string) (bool, error) { panic("always") })
		c := pipe{mcptest.New(t, s)}
		members := fmt.Sprintf(`"name":"x","cursor":%q`, poll(t, c, `"name":"x"`).Cursor)
		for range 100 {
			emitText(t, s, "a")
		}
		for range 3 {
			if page := poll(t, c, members); len(page.Events) != 0 || page.HasMore {
				t.Errorf("got %+v", page)
			}
		}
		if n := strings.Count(log.String(), "handler panicked"); n != 1 {
			t.Errorf("%d stacks", n)
		}
		time.Sleep(time.Minute)
		poll(t, c, members)
		if n := strings.Count(log.String(), "handler panicked"); n != 2 || !strings.Contains(log.String(), `"skipped":299`) {
			t.Errorf("later: %d stacks: %.500s", n, log)
		}
	})
}

// countedStore counts its calls.
type countedStore struct {
	scale.Store
	appends, calls atomic.Int64
}

func (s *countedStore) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if strings.HasPrefix(p.Box, "events-") {
		s.appends.Add(1)
	}
	return s.Store.Append(ctx, p)
}

func (s *countedStore) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	for _, op := range ops {
		if op.Key.Partition == "events" {
			s.calls.Add(1)
		}
	}
	return s.Store.Get(ctx, ops...)
}

func (s *countedStore) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if strings.HasPrefix(box, "events-") {
		s.calls.Add(1)
	}
	return s.Store.Read(ctx, box, after, reader)
}

// A server that is mounted writes to a log of its own only if clients read it there, and
// not because calls of its tools come through the mount; with a store of its own always,
// as they may have read it before a restart.
func TestEventLogOfMounted(t *testing.T) {
	outerStore, ownStore := &countedStore{Store: scale.NewLocal()}, &countedStore{Store: scale.NewLocal()}
	outerOpts, ownOpts := withStore(t), withStore(t)
	outerOpts.Store, ownOpts.Store = outerStore, ownStore
	outer, child, own := ended(t, mcp.NewServer(mcp.Info{Name: "outer", Version: "1"}, outerOpts)), eventServer(nil), ended(t, eventServer(ownOpts))
	for prefix, s := range map[string]*mcp.Server{"child": child, "own": own} {
		s.MustAdd(mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }, mcp.Doc("Greets")))
		if err := outer.Mount(prefix, s); err != nil {
			t.Fatal(err)
		}
	}
	c := mcptest.New(t, outer)
	c.Call("child_hello", nil)
	c.Call("own_hello", nil)
	late := mcptest.New(t, child)
	late.Call("hello", nil)
	emit(t, child, "a", "one")
	emit(t, own, "a", "one")
	if outerStore.appends.Load() != 2 || ownStore.appends.Load() != 1 {
		t.Errorf("%d and %d appends, want 2 and 1", outerStore.appends.Load(), ownStore.appends.Load())
	}
	w := late.Watch("comment.created", watchIn{"a"})
	emit(t, child, "a", "two")
	if o := w.Next(); o.ID != "id-two" {
		t.Errorf("received %+v", o)
	}
}

// A server without event types asks its store nothing about events, and has no goroutine
// for them; one with types has none either before somebody reads or emits.
func TestEventsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, types := range []bool{false, true} {
			opts := withStore(t)
			store := &countedStore{Store: opts.Store}
			opts.Store = store
			s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, opts)
			s.MustAdd(mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }, mcp.Doc("Greets")))
			if types {
				s.MustAdd(mcp.EventType("x", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
			}
			c := mcptest.New(t, s)
			c.Call("hello", nil)
			time.Sleep(time.Minute)
			synctest.Wait()
			stacks := make([]byte, 4<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			ours := slices.ContainsFunc(strings.Split(string(stacks), "\n\n"), func(one string) bool { // not of servers of other tests
				return strings.Contains(one, "synctest bubble") && strings.Contains(one, "internal/events.")
			})
			if ours || store.appends.Load() != 0 || store.calls.Load() != 0 {
				t.Errorf("types %v: %d appends, %d other calls: %s", types, store.appends.Load(), store.calls.Load(), stacks)
			}
			c.Close()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// The schema of an event is open for members of later versions, at each level, unless a tag
// closes it. What Emit takes does not change by that.
func TestEventSchemaOpen(t *testing.T) {
	type inner struct{ A int }
	type closed struct {
		_ struct{} `jsonschema:"additionalProperties=false"`
		B int      `validate:"max=5"`
	}
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, nil)
	s.MustAdd(mcp.EventType("x", func(context.Context, struct{}, struct {
		Inner  inner
		Closed closed
	}) (bool, error) {
		return true, nil
	}))
	want := `{"type":"object","properties":{"Inner":{"type":"object","properties":{"A":{"type":"integer","format":"int64"}},"required":["A"]},` +
		`"Closed":{"type":"object","properties":{"B":{"type":"integer","maximum":5,"format":"int64"}},"additionalProperties":false,"required":["B"]}},"required":["Inner","Closed"]}`
	if got := string(mcptest.New(t, s).Events()[0].PayloadSchema); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: struct {
		Inner  inner
		Closed closed
	}{Closed: closed{B: 6}}})
	if err == nil || !strings.Contains(err.Error(), "does not match its schema") {
		t.Errorf("emitted what its schema forbids: %v", err)
	}
}
