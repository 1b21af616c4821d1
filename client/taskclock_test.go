package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// slowly is a server with one tool that runs as a task, from the start or, if
// that is manual, when it says so; gone tells whether its
// task was cancelled.
func slowly(t *testing.T, poll time.Duration, manual bool, run func(f *mcp.Frame) error) (s *mcp.Server, gone *atomic.Bool) {
	gone = &atomic.Bool{}
	s = fixture(t, nil)
	s.MustAdd(mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) {
		if err := run(f); err != nil {
			gone.Store(true)
			return "", err
		}
		return "done", nil
	}, mcp.AsTask(&mcp.TaskOptions{PollInterval: poll, Manual: manual, Wait: -1})))
	return s, gone
}

// after waits, unless the task is cancelled before.
func after(f *mcp.Frame, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-f.Done():
		return context.Cause(f)
	}
}

func silent(d time.Duration) func(f *mcp.Frame) error {
	return func(f *mcp.Frame) error { return after(f, d) }
}

// steps makes progress every so often.
func steps(n int, each time.Duration) func(f *mcp.Frame) error {
	return func(f *mcp.Frame) error {
		for i := range n {
			if err := after(f, each); err != nil {
				return err
			}
			if err := f.Progress(float64(i), float64(n), fmt.Sprint("step ", i)); err != nil {
				return err
			}
		}
		return nil
	}
}

func asking(f *mcp.Frame) error {
	_, err := mcp.Elicit[nameForm](f, "name", "Who?")
	return err
}

// A task that a call became is waited for no longer than the call may take, and
// is cancelled then.
func TestTaskLimits(t *testing.T) {
	const long = 20 * time.Minute // longer than every default
	for _, test := range []struct {
		name          string
		timeout, most time.Duration // of Options
		poll          time.Duration
		manual        bool
		run           func(f *mcp.Frame) error
		thinks        time.Duration // how long the user takes for an answer
		want          time.Duration // until the call ends
		late          bool          // which it does with ErrTimeout
	}{
		{name: "a silent task", timeout: 10 * time.Second, run: silent(time.Minute), want: time.Minute},
		{name: "by default", run: silent(long), want: 10 * time.Minute, late: true},
		{name: "between two looks", most: 5 * time.Second, poll: time.Minute, run: silent(long), want: 5 * time.Second, late: true},
		{name: "Options.MaxTimeout", most: time.Minute, run: steps(20, 9*time.Second), want: time.Minute, late: true},
		{name: "no limits", timeout: -1, most: -1, run: silent(long), want: long},
		{name: "a question", timeout: 10 * time.Second, run: asking, thinks: time.Minute, want: time.Minute},
		{name: "a question beyond MaxTimeout", most: 30 * time.Second, run: asking, thinks: time.Minute, want: time.Minute},
		{name: "a question before it is a task", most: 30 * time.Second, thinks: time.Minute, manual: true,
			run: func(f *mcp.Frame) error {
				if err := asking(f); err != nil {
					return err
				}
				return errors.Join(f.Detach(), after(f, long))
			}, want: 90 * time.Second, late: true},
		{name: "MaxTimeout after a question", most: 30 * time.Second, run: func(f *mcp.Frame) error { return errors.Join(asking(f), after(f, long)) },
			thinks: time.Minute, want: 90 * time.Second, late: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.poll == 0 {
					test.poll = time.Second
				}
				s, gone := slowly(t, test.poll, test.manual, test.run)
				opts := asker(protocol.V20260728)
				opts.Timeout, opts.MaxTimeout = test.timeout, test.most
				opts.Elicit = func(ctx context.Context, _ *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					select {
					case <-time.After(test.thinks):
						return Accept(nameForm{Name: "Ada"})
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				c := connect(t, serving(t, s), opts)
				begin := time.Now()
				r, err := c.Call(t.Context(), "slow", nil)
				took := time.Since(begin)
				synctest.Wait()
				if took < test.want || took > test.want+time.Second || errors.Is(err, ErrTimeout) != test.late || gone.Load() != test.late {
					t.Errorf("got %+v, %v after %v, cancelled: %v; want it after %v", r, err, took, gone.Load(), test.want)
				}
				if !test.late && (err != nil || r.Text() != "done") {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
}

// WaitTask waits for as long as its context lasts.
func TestWaitTaskUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := slowly(t, time.Second, false, silent(20*time.Minute))
		waiting := modernOptions()
		waiting.MaxTimeout = 5 * time.Second
		c := connect(t, serving(t, s), waiting)
		r, err := c.Call(t.Context(), "slow", nil, Detached())
		if err != nil || r.Task == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err = c.WaitTask(t.Context(), r.Task, Timeout(5*time.Second)); err != nil || r.Text() != "done" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A server that says nothing more about a task is told to cancel it, too.
func TestTaskSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := false
		c := connect(t, scripted(t, func(s *script) {
			s.modernHello()
			s.result(s.until("tools/call"), `{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null,"pollIntervalMs":1000}`)
			h := s.until("tasks/cancel")
			cancelled = h != nil
			s.result(h, `{"resultType":"complete"}`)
			s.drain()
		}), modernOptions())
		begin := time.Now()
		_, err := c.Call(t.Context(), "slow", nil, Timeout(10*time.Second))
		synctest.Wait()
		if took := time.Since(begin); !errors.Is(err, ErrTimeout) || took > 20*time.Second || !cancelled {
			t.Errorf("got %v after %v, cancelled: %v", err, took, cancelled)
		}
	})
}

// Who waits for a task that may be others', too, does not cancel it because the
// server was not there for a moment.
func TestTaskOutlivesALook(t *testing.T) {
	const working = `{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null,"pollIntervalMs":1000}`
	for name, play := range map[string]func(s *script){
		"no answer": func(s *script) { s.until("tasks/get") },
		"no update": func(s *script) {
			s.result(s.until("tasks/get"), `{"resultType":"complete","taskId":"t1","status":"input_required","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null,"inputRequests":{"q":{"method":"roots/list","params":{}}}}`)
			s.fault(s.until("tasks/update"), -32603, "busy")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, scripted(t, func(s *script) {
					s.modernHello()
					s.result(s.until("tools/call"), working)
					play(s)
					for h := s.next(); h != nil; h = s.next() {
						if h.Method == "tasks/cancel" {
							t.Error("the task was cancelled")
						}
					}
				}), &Options{Revisions: []protocol.Revision{protocol.V20260728}, Roots: []protocol.Root{}})
				r, err := c.Call(t.Context(), "slow", nil, Detached())
				if err != nil {
					t.Fatal(err)
				}
				if r, err := c.WaitTask(t.Context(), r.Task, Timeout(5*time.Second)); err == nil {
					t.Errorf("got %+v", r)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A client hears of the end of a task when it comes, not with the next look,
// where the server tells; and looks soon, and then at the server's interval, where
// it does not.
func TestTaskEndsSoon(t *testing.T) {
	for _, test := range []struct {
		name  string
		many  int // other subscriptions of the connection
		poll  time.Duration
		looks int // at the task, of which each is told
		want  time.Duration
	}{
		{"the server tells", 0, time.Hour, 2, 3 * time.Second},
		{"the server does not", 100, time.Second, 6, 3350 * time.Millisecond}, // 50+100+200, then each second
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", fails: ", fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, _ := slowly(t, test.poll, false, func(f *mcp.Frame) error {
						if err := after(f, 3*time.Second); err != nil || !fails {
							return err
						}
						return &mcp.Error{Code: 4711}
					})
					c := connect(t, serving(t, s), modernOptions())
					for range test.many {
						if _, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil); err != nil {
							t.Fatal(err)
						}
					}
					var seen []protocol.TaskStatus
					begin := time.Now()
					_, err := c.Call(t.Context(), "slow", nil, OnTask(func(task *Task) {
						seen = append(seen, task.Status)
						task.Status = protocol.TaskCancelled // which is nobody else's
					}))
					if got := time.Since(begin); got != test.want {
						t.Errorf("took %v, want %v", got, test.want)
					}
					if fails && code(err) != 4711 || !fails && err != nil {
						t.Errorf("error %v", err)
					}
					if len(seen) != test.looks+1 || !seen[test.looks].Final() || seen[test.looks] == protocol.TaskCancelled || seen[0] != protocol.TaskWorking {
						t.Errorf("saw %v", seen)
					}
				})
			})
		}
	}
}

// A server that ends tells how the task ended, and may refuse to be asked at the
// same moment.
func TestTaskLastWord(t *testing.T) {
	for _, test := range []struct {
		name  string
		tells bool
		after time.Duration // the refusal
		code  protocol.Code // of the call
	}{
		{"at once", true, 0, 0},
		{"soon", true, 500 * time.Millisecond, 0},
		{"never", false, 0, protocol.CodeBusy},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const task = `"taskId":"t","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1000`
				tr := scripted(t, func(s *script) {
					s.modernHello()
					s.result(s.until("tools/call"), `{"resultType":"task",`+task+`,"status":"working"}`)
					l := s.until("subscriptions/listen")
					if l == nil {
						return
					}
					s.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"taskIds":["t"]}}}`, l.ID)
					s.result(s.until("tasks/get"), `{"resultType":"complete",`+task+`,"status":"working"}`)
					s.fault(s.until("tasks/get"), int(protocol.CodeBusy), "the server shuts down")
					time.Sleep(test.after)
					if test.tells {
						s.say(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},`+task+`,"status":"completed","result":{"content":[{"type":"text","text":"done"}]}}}`, l.ID)
					}
					s.drain()
				})
				c := connect(t, tr, modernOptions())
				r, err := c.Call(t.Context(), "x", nil)
				if code(err) != test.code || err == nil && r.Text() != "done" {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
}
