package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// A task whose replica is killed goes on at another one: what was answered and kept
// is known there, and the rest happens again.
func TestTaskReplayed(t *testing.T) {
	for name, wait := range map[string]time.Duration{"a task at once": -1, "a call at first": time.Second} {
		t.Run(name, func(t *testing.T) {
			var once, priced atomic.Int64
			var mu sync.Mutex
			var runs []string
			var last int64
			harness.TaskReplicas(t, 3, &mcp.TaskOptions{Wait: wait, Replay: true}, func(r *harness.TaskReplica, f *mcp.Frame) (string, error) {
				order, err := mcp.Once(f, "order", func() (int64, error) { return once.Add(1), nil })
				if err != nil {
					return "", err
				}
				sure, err := mcp.Elicit[harness.YesForm](f, "sure", "Sure?")
				if err != nil {
					return "", err
				}
				run, token := f.TaskRun()
				mu.Lock()
				runs = append(runs, fmt.Sprintln(run, token > last, f.Principal(), f.HTTPRequest() != nil))
				last = token
				mu.Unlock()
				select {
				case <-time.After(10 * time.Second):
				case <-f.Done():
					return "", f.Err()
				}
				// Another price, and so another question.
				price, err := mcp.Elicit[harness.YesForm](f, "price", fmt.Sprintf("Pay %d?", priced.Add(1)))
				return fmt.Sprintf("order %d, %v %v", order, sure.Value.Yes, price.Value.Yes), err
			}, func(t *testing.T, all []*harness.TaskReplica) {
				a, b := all[0], all[1]
				id := a.Ask("tools/call", `"name":"work"`).Result.TaskID
				a.Until(id, "input_required")
				answer := func(r *harness.TaskReplica, key string) {
					t.Helper()
					if got := r.Ask("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"yes":true}}}`, id, key)); got.Error != nil {
						t.Fatal(got.Error)
					}
				}
				answer(b, "sure")
				synctest.Wait()
				time.Sleep(11 * time.Second)
				if got := b.State(id).Result; got.Status != "input_required" || got.InputRequests["price"] == nil {
					t.Fatalf("%+v", got)
				}
				a.Kill()
				time.Sleep(15*time.Second + 2500*time.Millisecond) // a lease and the time to find it
				if got := b.State(id).Result; b.Ran.Load()+all[2].Ran.Load() != 1 || got.Status != "input_required" {
					t.Fatalf("%d runs after the lease: %+v", b.Ran.Load()+all[2].Ran.Load(), got)
				}
				time.Sleep(10 * time.Second)
				if got := b.State(id).Result; len(got.InputRequests) != 1 || got.InputRequests["price-2"] == nil {
					t.Fatalf("%+v", got)
				}
				answer(b, "price") // that nobody asks any more
				if got := b.State(id).Result; got.Status != "input_required" {
					t.Errorf("%+v", got)
				}
				answer(all[2], "price-2")
				synctest.Wait()
				if got := b.State(id).Result; got.Status != "completed" || got.Result.Content[0].Text != "order 1, true true" {
					t.Errorf("%+v", got)
				}
				if got := strings.Join(runs, ""); got != "1 true ann true\n2 true ann false\n" {
					t.Errorf("runs %q", got)
				}
				if a.Ran.Load() != 1 || once.Load() != 1 {
					t.Errorf("%d runs at the first, %d times Once", a.Ran.Load(), once.Load())
				}
			})
		})
	}
}

// A server that shuts down leaves its tasks to others, which begin at once; that
// counts for nothing.
func TestTaskHandedOver(t *testing.T) {
	harness.TaskReplicas(t, 5, &mcp.TaskOptions{Wait: -1, Replay: true}, func(r *harness.TaskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(time.Minute):
			return "done", nil
		case <-f.Done():
			return "", fmt.Errorf("cut short: %w", context.Cause(f))
		}
	}, func(t *testing.T, all []*harness.TaskReplica) {
		at := all[0]
		id := at.Ask("tools/call", `"name":"work"`).Result.TaskID
		gone := map[*harness.TaskReplica]bool{}
		for range 4 {
			time.Sleep(time.Second)
			for _, r := range all {
				if r.Ran.Load() > 0 && !gone[r] {
					at = r
				}
			}
			gone[at] = true
			end, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := at.Shutdown(end); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown: %v", err)
			}
			cancel()
			time.Sleep(4 * time.Second)
		}
		for _, r := range all {
			if !gone[r] {
				if got := r.Until(id, "working", "failed", "completed").Result; got.Status != "working" {
					t.Fatalf("%+v", got)
				}
				time.Sleep(time.Minute)
				if got := r.State(id).Result; got.Status != "completed" || got.Result.Content[0].Text != "done" {
					t.Errorf("%+v", got)
				}
			}
		}
	})
}

// Where a task cannot run again it fails, and says why.
func TestTaskNotReplayed(t *testing.T) {
	work := func(r *harness.TaskReplica, f *mcp.Frame) (string, error) {
		<-f.Done()
		return "", f.Err()
	}
	fails := func(t *testing.T, r *harness.TaskReplica, id, why string) {
		t.Helper()
		got := r.State(id)
		text, _ := json.Marshal(got.Result)
		if got.Result.Status != "failed" || !bytes.Contains(text, []byte(why)) {
			t.Errorf("%s, want %q", text, why)
		}
	}
	replay := &mcp.TaskOptions{Wait: -1, Replay: true}
	t.Run("not asked for", func(t *testing.T) {
		harness.TaskReplicas(t, 2, &mcp.TaskOptions{Wait: -1}, work, func(t *testing.T, all []*harness.TaskReplica) {
			id := all[0].Ask("tools/call", `"name":"work"`).Result.TaskID
			all[0].Kill()
			time.Sleep(15*time.Second + 2500*time.Millisecond)
			fails(t, all[1], id, "the replica that ran the task is gone")
		})
	})
	t.Run("too often", func(t *testing.T) {
		harness.TaskReplicas(t, 4, replay, work, func(t *testing.T, all []*harness.TaskReplica) {
			id := all[0].Ask("tools/call", `"name":"work"`).Result.TaskID
			left := all
			for range 3 {
				synctest.Wait() // a call is answered before its task begins
				at := slices.IndexFunc(left, func(r *harness.TaskReplica) bool { return r.Ran.Load() > 0 })
				if at < 0 {
					t.Fatal("the task runs nowhere")
				}
				left[at].Kill()
				left = slices.Delete(slices.Clone(left), at, at+1)
				time.Sleep(15*time.Second + 2500*time.Millisecond)
			}
			fails(t, left[0], id, "the task was run 3 times")
		})
	})
	t.Run("another schema", func(t *testing.T) {
		harness.TaskReplicas(t, 3, replay, work, func(t *testing.T, all []*harness.TaskReplica) {
			id := all[0].Ask("tools/call", `"name":"work"`).Result.TaskID
			for i, r := range all[1:] {
				r.Remove(mcp.KindTool, "work")
				if i == 0 {
					r.MustAdd(mcp.Tool("work", func(*mcp.Frame, harness.YesForm) (string, error) { return "", nil }, mcp.AsTask(replay)))
				}
			}
			all[0].Kill()
			time.Sleep(time.Minute)
			if got := all[1].State(id).Result; got.Status != "working" {
				t.Errorf("%+v", got)
			}
			time.Sleep(time.Minute)
			fails(t, all[1], id, "not on this replica")
		})
	})
	t.Run("token", func(t *testing.T) {
		harness.TaskReplicas(t, 2, replay, work, func(t *testing.T, all []*harness.TaskReplica) {
			for _, r := range all {
				r.C.(*harness.TaskWeb).Identity = &frame.Identity{Issuer: "https://a.example", Subject: "ann", Expiry: time.Now().Add(10 * time.Second)}
			}
			id := all[0].Ask("tools/call", `"name":"work"`).Result.TaskID
			all[0].Kill()
			time.Sleep(15*time.Second + 2500*time.Millisecond)
			fails(t, all[1], id, "the access token")
		})
	})
}

// A worker runs what others leave to it, and they run what is lost of others.
func TestWorker(t *testing.T) {
	harness.TaskReplicas(t, 3, &mcp.TaskOptions{Worker: true}, func(r *harness.TaskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(5 * time.Second):
			return "worked for " + f.Principal(), nil
		case <-f.Done():
			return "", f.Err()
		}
	}, func(t *testing.T, all []*harness.TaskReplica) {
		web, one, two := all[0], all[1], all[2]
		id := web.Ask("tools/call", `"name":"work"`).Result.TaskID
		time.Sleep(5 * time.Minute)
		if got := web.State(id).Result; got.Status != "working" {
			t.Fatalf("%+v", got)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- one.Work(ctx) }()
		time.Sleep(time.Second)
		if one.Ran.Load() != 1 {
			t.Fatal("the worker does not begin")
		}
		one.Kill()
		go func() { ended <- two.Work(t.Context()) }()
		time.Sleep(30 * time.Second)
		if got := web.State(id).Result; got.Status != "completed" || got.Result.Content[0].Text != "worked for ann" {
			t.Fatalf("%+v", got)
		}
		for range 20 {
			id = web.Ask("tools/call", `"name":"work"`).Result.TaskID
		}
		time.Sleep(time.Minute) // one user has 16 at a time
		if got := web.State(id).Result; got.Status != "completed" || web.Ran.Load() != 0 || two.Ran.Load() != 21 {
			t.Errorf("%+v, %d at the web, %d at the worker", got, web.Ran.Load(), two.Ran.Load())
		}
		cancel(errors.New("enough"))
		if err := <-ended; err.Error() != "enough" {
			t.Errorf("Work returned %v", err)
		}
		if err := two.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("Work returned %v", err)
		}
		web.Kill()
		if got := web.Ask("tools/call", `"name":"work"`); got.Error == nil || got.Error.Code != protocol.CodeUnavailable {
			t.Errorf("without the store: %+v", got.Error)
		}
		if err := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil).Work(t.Context()); err == nil {
			t.Error("a worker without a store")
		}
	})
}
