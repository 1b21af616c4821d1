package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// tasking is a fixture with tools that run as tasks.
func tasking(t *testing.T) *mcp.Server {
	s := fixture(t, nil)
	s.MustAdd(
		mcp.Tool("later", func(f *mcp.Frame, in sumIn) (sumOut, error) {
			time.Sleep(3 * time.Second)
			return sumOut{in.A + in.B}, nil
		}, mcp.AsTask(&mcp.TaskOptions{PollInterval: time.Second, Wait: -1})),
		mcp.Tool("asklater", func(f *mcp.Frame, _ struct{}) (string, error) {
			name, err := mcp.Elicit[nameForm](f, "name", "Who?")
			if err != nil {
				return "", err
			}
			return "Hello, " + name.Value.Name, nil
		}, mcp.AsTask(&mcp.TaskOptions{PollInterval: time.Second, Wait: -1})),
		mcp.Tool("never", func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}, mcp.AsTask(&mcp.TaskOptions{PollInterval: time.Second, Wait: -1})),
		mcp.Tool("refuselater", func(*mcp.Frame, struct{}) (string, error) {
			return "", &mcp.Error{Code: 4711, Message: "no"}
		}, mcp.AsTask(&mcp.TaskOptions{PollInterval: time.Second, Wait: -1})),
	)
	return s
}

func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, serving(t, tasking(t)), asker(protocol.V20260728))
		sum, err := Call[sumOut](t.Context(), c, "later", sumIn{2, 3})
		if err != nil || sum.Sum != 5 {
			t.Errorf("later: %+v, %v", sum, err)
		}
		if got, err := Call[string](t.Context(), c, "asklater", nil); err != nil || got != "Hello, Ada" {
			t.Errorf("asklater: %q, %v", got, err)
		}
		if _, err := c.Call(t.Context(), "refuselater", nil); code(err) != 4711 {
			t.Errorf("refuselater: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if _, err := c.Call(ctx, "never", nil); !errors.Is(err, ErrTimeout) {
			t.Errorf("never: %v", err)
		}
	})
}

func TestTasksByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, serving(t, tasking(t)), asker(protocol.V20260728))
		r, err := c.Call(t.Context(), "later", sumIn{1, 1}, Detached())
		if err != nil || r.Task == nil || r.Task.Status != protocol.TaskWorking || r.Task.PollInterval != time.Second {
			t.Fatalf("%+v, %v", r, err)
		}
		task, err := c.Task(t.Context(), r.Task.ID)
		if err != nil || task.Status.Final() {
			t.Errorf("%+v, %v", task, err)
		}
		if r, err = c.WaitTask(t.Context(), task); err != nil || string(r.Structured) != `{"sum":2}` {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err = c.Call(t.Context(), "never", nil, Detached()); err != nil {
			t.Fatal(err)
		}
		if err := c.CancelTask(t.Context(), r.Task.ID); err != nil {
			t.Error(err)
		}
		if _, err := c.WaitTask(t.Context(), r.Task); !errors.Is(err, ErrCancelled) {
			t.Errorf("cancelled task: %v", err)
		}
		if _, err := c.Task(t.Context(), "no such task"); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown task: %v", err)
		}
		if r, err = c.Call(t.Context(), "asklater", nil, Detached()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		task, err = c.Task(t.Context(), r.Task.ID)
		if err != nil || task.Status != protocol.TaskInputRequired || len(task.Requests) != 1 {
			t.Fatalf("%+v, %v", task, err)
		}
		answers := map[string]any{task.Requests[0].Key: map[string]any{"action": "accept", "content": nameForm{Name: "Eve"}}}
		if err := c.UpdateTask(t.Context(), task.ID, answers); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if task, err = c.Task(t.Context(), task.ID); err != nil || !strings.Contains(string(task.Result), "Hello, Eve") {
			t.Errorf("%+v, %v", task, err)
		}
	})
}

// A client that declares no tasks gets none.
func TestTasksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := modernOptions()
		opts.Tasks = TasksOff
		c := connect(t, serving(t, tasking(t)), opts)
		sum, err := Call[sumOut](t.Context(), c, "later", sumIn{2, 3})
		if err == nil && sum.Sum != 5 || err != nil && code(err) != protocol.CodeMissingCapability {
			t.Errorf("%+v, %v", sum, err)
		}
		if _, err := c.Task(t.Context(), "x"); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Task: %v", err)
		}
	})
}

// While the client waits for a task, OnProgress hears what the task says of its
// state, once each.
func TestTaskProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("steps", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 2; i++ {
				time.Sleep(2500 * time.Millisecond) // some looks find nothing new
				if err := f.Progress(float64(i), 2, fmt.Sprint("step ", i)); err != nil {
					return "", err
				}
			}
			time.Sleep(2500 * time.Millisecond)
			return "done", nil
		}, mcp.AsTask(&mcp.TaskOptions{PollInterval: time.Second, Wait: -1})))
		c := connect(t, serving(t, s), modernOptions())
		var told []Progress
		hear := OnProgress(func(p Progress) {
			told = append(told, p)
			panic("which costs nothing")
		})
		want := []Progress{{1, 2, "step 1"}, {2, 2, "step 2"}}
		r, err := c.Call(t.Context(), "steps", nil, hear)
		if err != nil || r.Text() != "done" || !slices.Equal(told, want) {
			t.Errorf("Call: %+v, %v, told %+v", r, err, told)
		}
		told = nil
		if r, err = c.Call(t.Context(), "steps", nil, hear, Detached()); err != nil || r.Task == nil {
			t.Fatalf("Detached: %+v, %v", r, err)
		}
		time.Sleep(3 * time.Second)
		if len(told) != 0 {
			t.Errorf("Detached: told %+v", told)
		}
		if r, err = c.WaitTask(t.Context(), r.Task, hear); err != nil || r.Text() != "done" || !slices.Equal(told, want) {
			t.Errorf("WaitTask: %+v, %v, told %+v", r, err, told)
		}
	})
}
