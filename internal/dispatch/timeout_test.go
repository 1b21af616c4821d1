package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/protocol"
)

func TestTimeout(t *testing.T) {
	const limit = 5 * time.Second
	failure := errors.New("failed")
	gone := errors.New("client gone")
	sleep := func(d time.Duration, result protocol.Result, err error) frame.Handler {
		return func(*frame.Frame) (protocol.Result, error) {
			time.Sleep(d)
			return result, err
		}
	}
	ok := text("ok")
	tests := []struct {
		name    string
		h       frame.Handler
		cancel  time.Duration // when the request is cancelled; 0 for never
		result  protocol.Result
		err     error
		elapsed time.Duration
	}{
		{name: "in time", h: sleep(time.Second, ok, nil), result: ok, elapsed: time.Second},
		{name: "error in time", h: sleep(time.Second, nil, failure), err: failure, elapsed: time.Second},
		{name: "ignores its context", h: sleep(time.Minute, ok, nil), err: ErrTimeout, elapsed: limit},
		{name: "obeys its context", h: func(f *frame.Frame) (protocol.Result, error) {
			<-f.Done()
			return nil, f.Err()
		}, err: ErrTimeout, elapsed: limit},
		{name: "cancelled", h: sleep(time.Minute, ok, nil), cancel: 2 * time.Second, err: gone, elapsed: 2 * time.Second},
		{name: "sees its deadline", h: func(f *frame.Frame) (protocol.Result, error) {
			deadline, has := f.Deadline()
			if !has || time.Until(deadline) != limit {
				return nil, errors.New("no deadline")
			}
			return ok, nil
		}, result: ok},
		{name: "panics", h: func(*frame.Frame) (protocol.Result, error) { panic("boom") }, err: &protocol.Error{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(gone) })
				}
				var tracker inflight.Tracker
				d := New(Config{})
				begin := time.Now()
				result, err := d.Timeout(request(ctx, "m", "", legacy), limit, tt.h, tracker.Go)
				if time.Since(begin) != tt.elapsed {
					t.Errorf("it took %v, want %v", time.Since(begin), tt.elapsed)
				}
				if _, panicked := tt.err.(*protocol.Error); panicked {
					if _, ok := errors.AsType[*protocol.Error](err); !ok {
						t.Errorf("error %v, want that of a panic", err)
					}
				} else if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if (result != nil) != (tt.result != nil) {
					t.Errorf("result %v, want %v", result, tt.result)
				}
				// The goroutine is the tracker's: it ends, and a shutdown waits.
				if err := tracker.Wait(inflight.NewEnding(t.Context())); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A handler that outlives its timeout still has a usable frame.
func TestTimeoutFrameOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tracker inflight.Tracker
		d := New(Config{})
		var method string
		var cause error
		_, err := d.Timeout(request(t.Context(), "m", `{}`, legacy), time.Second, func(f *frame.Frame) (protocol.Result, error) {
			time.Sleep(time.Hour)
			f.Set("late", true)
			method, cause = f.Request().Method, context.Cause(f)
			return nil, nil
		}, tracker.Go)
		if !errors.Is(err, ErrTimeout) {
			t.Fatalf("error %v, want ErrTimeout", err)
		}
		if err := tracker.Wait(inflight.NewEnding(t.Context())); err != nil {
			t.Fatal(err)
		}
		if method != "m" || !errors.Is(cause, ErrTimeout) {
			t.Errorf("an hour later: method %q, context ended with %v; want m and ErrTimeout", method, cause)
		}
	})
}

// A tool whose context has ended fails of that, which it tells in a result. It is out
// of time all the same, also where it is heard of before the end of its time is.
func TestTimeoutOfTool(t *testing.T) {
	here := func(fn func()) { fn() } // so that both are there to be heard of
	obeys := func(f *frame.Frame) (protocol.Result, error) {
		<-f.Done()
		return &protocol.CallToolResult{IsError: true, Err: f.Err()}, nil
	}
	for range 50 {
		result, err := New(Config{}).Timeout(request(t.Context(), "m", "", legacy), time.Microsecond, obeys, here)
		if result != nil || !errors.Is(err, ErrTimeout) {
			t.Fatalf("%v, %v, want ErrTimeout", result, err)
		}
	}
}
