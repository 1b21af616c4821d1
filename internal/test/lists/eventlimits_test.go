package lists_test

import (
	"context"
	"fmt"
	"runtime"
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
