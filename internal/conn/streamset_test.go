package conn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/frame"
)

// Streams end evenly over the time that there is, each with a hint of its own.
func TestStreamsEndEvenly(t *testing.T) {
	const n = 20_000
	for _, tt := range []struct {
		name  string
		time  time.Duration // 0 is no deadline
		rate  int           // at most, in any second
		hints time.Duration // at most
	}{
		{"half of 27 s", 13500 * time.Millisecond, 1500, time.Second + time.Millisecond},
		{"no deadline", 0, 2100, 2 * time.Second},
		{"no time", -1, n, 10*time.Second + time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened, ended := 0, 0
				s := &streamSet{tell: func(e frame.Event) {
					switch e.Kind {
					case "stream.opened":
						opened++
					case "stream.ended":
						ended++
					}
				}}
				ctx, cancel := t.Context(), func() {}
				if tt.time != 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.time)
				}
				defer cancel()
				inSecond, hints := map[int]int{}, map[time.Duration]bool{}
				began := time.Now()
				for i := range n {
					var one *stream
					one = s.enter([]string{streamSubscription, streamSession, streamConnection}[i%3], frame.HTTP, "", func(retry time.Duration) {
						if retry < time.Millisecond || retry > tt.hints {
							t.Errorf("the hint is %v", retry)
						}
						inSecond[int(time.Since(began)/time.Second)]++
						hints[retry] = true
						one.leave(nil)
					})
				}
				s.drain(ctx)
				for second, many := range inSecond {
					if many > tt.rate {
						t.Errorf("%d ended in second %d", many, second)
					}
				}
				if s.count() != 0 || opened != n || ended != n || len(hints) < n/2 {
					t.Errorf("%d are left; %d opened, %d ended, %d hints", s.count(), opened, ended, len(hints))
				}
				if tt.time > 0 && time.Since(began) > tt.time {
					t.Errorf("it took %v", time.Since(began))
				}
			})
		})
	}
}

// A stream of some age is asked to end, once, and one that has left is not.
func TestStreamsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamSet{age: time.Hour, tell: func(frame.Event) {}}
		began := time.Now()
		var mu sync.Mutex // timers have goroutines of their own
		var ages []time.Duration
		for range 100 {
			s.enter(streamSession, frame.HTTP, "", func(time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				ages = append(ages, time.Since(began))
			})
		}
		s.enter(streamSession, frame.HTTP, "", func(time.Duration) { t.Error("it has left") }).leave(nil)
		time.Sleep(3 * time.Hour)
		s.drain(t.Context())
		mu.Lock()
		defer mu.Unlock()
		different := map[time.Duration]bool{}
		for _, age := range ages {
			different[age] = true
			if age < 54*time.Minute || age > 66*time.Minute {
				t.Errorf("one ended after %v", age)
			}
		}
		if len(ages) != 100 || len(different) < 90 {
			t.Errorf("%d ended, at %d times", len(ages), len(different))
		}
	})
}
