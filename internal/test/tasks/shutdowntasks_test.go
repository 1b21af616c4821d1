package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// A shutdown lets tasks end: meanwhile their client asks for their state, may
// answer what they ask and gets the result; other requests are refused.
func TestShutdownServesTasks(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s, gate := harness.TaskServer(t)
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			gated := c.Ask("tools/call", `"name":"gated"`).Result.TaskID
			asking := c.Ask("tools/call", `"name":"asking"`).Result.TaskID
			c.Until(asking, "input_required")
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(context.Background()) }()
			for refused := false; !refused; {
				got := c.Ask("tools/list", `"cursor":""`)
				refused = got.Error != nil && got.Error.Code == protocol.CodeBusy
			}
			if got := c.Ask("tools/call", `"name":"failing"`); got.Error == nil || got.Error.Code != protocol.CodeBusy {
				t.Errorf("a call during the shutdown: %+v", got)
			}
			c.Until(gated, "working")
			answer := fmt.Sprintf(`"taskId":%q,"inputResponses":{"sure":{"action":"accept","content":{"yes":true}}}`, asking)
			if got := c.Ask("tasks/update", answer); got.Error != nil {
				t.Errorf("an answer during the shutdown: %+v", got)
			}
			if got := c.Until(asking, "completed").Result.Result.Content[0].Text; got != "sure: true" {
				t.Errorf("got %q", got)
			}
			select {
			case err := <-down:
				t.Fatalf("Shutdown did not wait for a task: %v", err)
			default:
			}
			gate <- struct{}{}
			if got := c.Until(gated, "completed").Result.Result.Content[0].Text; got != "through" {
				t.Errorf("got %q", got)
			}
			if err := <-down; err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	}
}

// How long a shutdown takes whose client looks at a task, listens to it or does
// neither, and what becomes of the call.
func TestShutdownWaitsForTasks(t *testing.T) {
	const work = 10 * time.Second
	for _, test := range []struct {
		name  string
		after time.Duration // from the start of the task, of 10 s
		most  time.Duration // of the shutdown; 0 for ever
		busy  int           // other subscriptions, which keep the client from listening
		leave bool          // the client asks no more
		want  time.Duration // from the start of the task; 0: the client looks, whenever that is
		err   error
	}{
		{name: "listening", after: time.Second, want: work},
		{name: "looking", after: time.Second, busy: 100},
		{name: "nobody asks", after: time.Second, leave: true, want: work + 3*time.Second},
		{name: "the task has just ended", after: work + time.Second, leave: true, want: work + 3*time.Second},
		{name: "the task ended long ago", after: work + time.Minute, leave: true, want: work + time.Minute},
		{name: "too long", after: time.Second, most: 5 * time.Second, want: 6 * time.Second, err: context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := harness.Fixture(t, nil)
				s.MustAdd(mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
					select {
					case <-time.After(work):
						return "done", nil
					case <-f.Done():
						return "", context.Cause(f)
					}
				}, mcp.AsTask(&mcp.TaskOptions{PollInterval: 2 * time.Second, Wait: -1})))
				here, there := transport.Pipe()
				served := make(chan error, 1)
				go func() { served <- s.ServeConn(context.Background(), there) }()
				c, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) { return here, nil }),
					&client.Options{Revisions: []protocol.Revision{protocol.Latest}, NoReconnect: true})
				if err != nil {
					t.Fatal(err)
				}
				for range test.busy {
					if _, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil); err != nil {
						t.Fatal(err)
					}
				}
				begin := time.Now()
				var options []client.CallOption
				if test.leave {
					options = append(options, client.Detached())
				}
				called := make(chan error, 1)
				go func() {
					r, err := c.Call(t.Context(), "work", nil, options...)
					if err == nil && !test.leave && r.Text() != "done" {
						err = fmt.Errorf("got %+v", r)
					}
					called <- err
				}()
				time.Sleep(test.after)
				ctx, stop := context.WithCancel(t.Context())
				if test.most > 0 {
					ctx, stop = context.WithTimeout(t.Context(), test.most)
				}
				defer stop()
				err = s.Shutdown(ctx)
				if took := time.Since(begin); test.want > 0 && took != test.want || took < work && test.err == nil || took > work+3*time.Second && test.want == 0 {
					t.Errorf("Shutdown took until %v, want %v", took, test.want)
				}
				if !errors.Is(err, test.err) {
					t.Errorf("Shutdown: %v, want %v", err, test.err)
				}
				if err := <-called; (err != nil) != (test.err != nil) {
					t.Errorf("the call: %v", err)
				}
				if err := <-served; !errors.Is(err, mcp.ErrServerClosed) {
					t.Errorf("ServeConn: %v", err)
				}
				_ = c.Close() // the connection is gone
			})
		})
	}
}

// What has nothing to do with tasks ends at once, however long a task runs:
// connections with a legacy session, and subscriptions to other things.
func TestShutdownEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, gate := harness.TaskServer(t)
		dial := func(rev protocol.Revision) *client.Client {
			here, there := transport.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeConn(context.Background(), there) }()
			t.Cleanup(func() { <-served })
			c, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) { return here, nil }),
				&client.Options{Revisions: []protocol.Revision{rev}, NoReconnect: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() }) // the connection is gone
			return c
		}
		legacy, c := dial(protocol.LatestLegacy), dial(protocol.Latest)
		r, err := c.Call(t.Context(), "gated", nil, client.Detached())
		if err != nil {
			t.Fatal(err)
		}
		task := protocol.SubscriptionFilter{TaskIDs: []string{r.Task.ID}}
		both := protocol.SubscriptionFilter{TaskIDs: task.TaskIDs, ToolsListChanged: true}
		listen := func(filter protocol.SubscriptionFilter) *client.Subscription {
			t.Helper()
			sub, err := c.Listen(t.Context(), filter, nil)
			if err != nil {
				t.Fatal(err)
			}
			return sub
		}
		ended := func(sub *client.Subscription) bool {
			synctest.Wait()
			select {
			case <-sub.Done():
				return true
			default:
				return false
			}
		}
		ofTask, ofBoth, ofNothing := listen(task), listen(both), listen(protocol.SubscriptionFilter{})
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		if ended(ofTask) || !ended(ofBoth) || !ended(ofNothing) {
			t.Errorf("subscriptions ended: to the task %v, to more %v, to nothing %v", ended(ofTask), ended(ofBoth), ended(ofNothing))
		}
		if legacy.State() != client.StateDisconnected {
			t.Errorf("the legacy connection: %v", legacy.State())
		}
		if sub, err := c.Listen(t.Context(), both, nil); err == nil {
			t.Errorf("a subscription to more than tasks was opened: %+v", sub.Accepted())
		}
		again := listen(task)
		gate <- struct{}{}
		if err := <-down; err != nil || !ended(ofTask) || !ended(again) {
			t.Errorf("Shutdown: %v; subscriptions ended: %v, %v", err, ended(ofTask), ended(again))
		}
	})
}
