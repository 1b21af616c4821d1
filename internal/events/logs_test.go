package events_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// logs returns logs in a store that keys seal.
func logs(t *testing.T, store scale.Store, keys ...string) *events.Logs {
	t.Helper()
	var secrets [][]byte
	for _, key := range keys {
		secrets = append(secrets, []byte(key+"-0123456789abcdef"))
	}
	sealer, err := seal.New("events", secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return events.New(events.Config{Store: store, Seal: sealer})
}

// read reads from a cursor, and fails the test if that fails.
func read(t *testing.T, l *events.Logs, cursor string) events.Page {
	t.Helper()
	page, err := l.Read(t.Context(), "x", cursor, -1)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// add appends an event, and fails the test if that fails.
func add(t *testing.T, l *events.Logs, text string) {
	t.Helper()
	if err := l.Append(t.Context(), "x", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// Keys are replaced one after the other while clients poll: cursors stay good.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		cursor := read(t, logs(t, store, "old"), "").Cursor
		for _, keys := range [][]string{{"old", "new"}, {"new", "old"}, {"new"}} {
			for range 2 { // the first look after each deploy, and a later one
				l := logs(t, store, keys...)
				page := read(t, l, cursor)
				if page.Truncated {
					t.Errorf("%v: truncated", keys)
				}
				add(t, l, "event")
				if page = read(t, l, page.Cursor); len(page.Events) != 1 || page.Truncated || page.Unread != 0 {
					t.Errorf("%v: %+v", keys, page)
				}
				cursor = page.Cursor
				time.Sleep(time.Minute)
			}
		}
	})
}

// A key that was taken away too early costs what it has sealed, and no more: the next page
// is truncated.
func TestLostKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		old := logs(t, store, "old")
		cursor := read(t, old, "").Cursor
		add(t, old, "lost")
		replicas := []*events.Logs{logs(t, store, "new"), logs(t, store, "new")}
		page := read(t, replicas[0], cursor)
		if !page.Truncated || page.Unread != 1 || len(page.Events) != 0 {
			t.Errorf("first: %+v", page)
		}
		add(t, replicas[0], "kept")
		for _, l := range replicas {
			if next := read(t, l, page.Cursor); next.Truncated || len(next.Events) != 1 {
				t.Errorf("then: %+v", next)
			}
		}
	})
}

// hanging is a store whose calls return when their context ends.
type hanging struct{ scale.Store }

func (hanging) Get(ctx context.Context, _ ...scale.GetOp) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A store that does not answer costs a client its time limit, not more.
func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := logs(t, bus.Guard(hanging{scale.NewLocal()}), "key").Read(t.Context(), "x", "", -1)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != replica.StoreTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// behind is a store whose messages are read late after they get their position, and in
// which an event arrives with each Read that finds none.
type behind struct {
	scale.Store
	late  time.Duration
	after func() // runs after each Read
}

func (s *behind) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	messages, other, err := s.Store.Read(ctx, box, after, reader)
	for i, m := range messages {
		if time.Since(time.UnixMicro(int64(m.Rev))) < s.late {
			messages = messages[:i]
			break
		}
	}
	s.after()
	return messages, other, err
}

// A quiet cursor stays behind every event that its page could not have: one that comes
// between the Read and its answer, and one that the store shows late.
func TestQuietCursor(t *testing.T) {
	for name, c := range map[string]struct{ late, slow time.Duration }{
		"a Read takes 3 s":             {0, 3 * time.Second},
		"an event is seen after 1.9 s": {1900 * time.Millisecond, 0},
		"both":                         {1900 * time.Millisecond, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &behind{Store: scale.NewLocal(), late: c.late, after: func() {}}
				l := logs(t, store, "key")
				cursor := read(t, l, "").Cursor
				added, got := 0, 0
				store.after = func() {
					if added++; added <= 20 {
						add(t, l, "event")
					}
					time.Sleep(c.slow)
				}
				for range 40 {
					time.Sleep(100 * time.Millisecond)
					page := read(t, l, cursor)
					if page.Truncated {
						t.Error("truncated")
					}
					cursor, got = page.Cursor, got+len(page.Events)
				}
				time.Sleep(10 * time.Second)
				if got += len(read(t, l, cursor).Events); got != 20 {
					t.Errorf("%d of 20 events were read", got)
				}
			})
		})
	}
}

// A cursor that is ahead of an estimated time is compared with the store's clock.
func TestFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sealer, err := seal.New("events", []byte("key-0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		l := events.New(events.Config{Store: scale.NewLocal(), Seal: sealer, Now: func() scale.Rev {
			return scale.Rev(time.Now().Add(-4 * time.Second).UnixMicro())
		}})
		cursor := read(t, l, "").Cursor
		add(t, l, "one")
		cursor = read(t, l, cursor).Cursor
		add(t, l, "two")
		if page := read(t, l, cursor); page.Truncated || len(page.Events) != 1 {
			t.Errorf("%+v", page)
		}
	})
}
