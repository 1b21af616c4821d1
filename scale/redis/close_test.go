package redis

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// Close returns in time while the engine is stopped and says nothing more, with calls
// on their way, with a Watcher that was closed before and with one that was not.
func TestCloseWhileTheEngineIsStopped(t *testing.T) {
	for _, tt := range []struct {
		name          string
		watch, closed bool
	}{{"calls", false, false}, {"a Watcher", true, true}, {"a Watcher that stays", true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			s, err := Open(t.Context(), user(t, e))
			if err != nil {
				t.Fatal(err)
			}
			var w scale.Watcher
			if tt.watch {
				w = s.Watch(func(string, scale.Message) {}, func() {})
				if err := w.Add(t.Context(), "here"); err != nil {
					t.Fatal(err)
				}
			}
			goOn := e.stop()
			defer goOn()
			var calls sync.WaitGroup
			for i := range 10 {
				calls.Go(func() {
					key := scale.Key{Partition: "p", Name: strconv.Itoa(i)}
					if _, err := s.Put(context.Background(), scale.Write{Key: key, Value: []byte("x"), TTL: time.Hour}); err == nil {
						t.Error("a stopped engine has answered")
					}
				})
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if tt.closed {
					w.Close()
				}
				s.Close()
				calls.Wait()
				if tt.watch && !tt.closed {
					w.Close()
				}
			}()
			select {
			case <-ended:
			case <-time.After(10 * time.Second): // a second is the Timeout of a call
				t.Error("it waits for an engine that is stopped")
				goOn()
				<-ended
			}
		})
	}
}
