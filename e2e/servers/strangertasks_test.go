package servers

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// errand calls a tool that becomes a task at once. look is given each of its
// states.
func (s session) errand(ctx context.Context, end, key string, look func(*client.Task)) (*client.CallToolResult, error) {
	return s.Call(ctx, "errand", args{"end": end, "key": key}, client.OnTask(look))
}

// strangerTask sees a task begin, asks for it by hand, lets it go on, and gets
// its result.
func (s session) strangerTask(t *testing.T) {
	ctx := within(t)
	var first, last *client.Task
	told := 0 // how often that it waits
	r, err := s.Call(ctx, "errand", args{"end": "wait", "key": "task"}, client.OnTask(func(task *client.Task) {
		if first == nil {
			first = task
		}
		last = task
	}), client.OnProgress(func(p client.Progress) {
		if told++; told > 1 {
			return
		}
		if p.Message != "waiting" {
			t.Errorf("got progress %+v", p)
		}
		asked, err := s.Task(ctx, first.ID)
		if err != nil || asked.ID != first.ID || asked.Status != protocol.TaskWorking || asked.StatusMessage != "waiting" {
			t.Errorf("asked by hand: got %+v, %v", asked, err)
		}
		if _, err := s.Call(ctx, "release", args{"name": "task"}); err != nil {
			t.Error(err)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "result", r.Text(), "task was released")
	if first.Status != protocol.TaskWorking || first.Created.IsZero() || first.TTL < time.Minute || first.PollInterval != 50*time.Millisecond {
		t.Errorf("it began as %+v", first)
	}
	if last.Status != protocol.TaskCompleted || told == 0 {
		t.Errorf("it ended as %+v, and was told to wait %d times", last, told)
	}
}

// strangerTasksFail tells a tool that fails from one that breaks down.
func (s session) strangerTasksFail(t *testing.T) {
	var last protocol.TaskStatus
	note := func(task *client.Task) { last = task.Status }
	r, err := s.errand(within(t), "fail", "", note)
	if err != nil || !r.IsError || last != protocol.TaskCompleted {
		t.Errorf("got %+v, %v of a task that is %s", r, err, last)
	} else {
		contains(t, "fault", r.Text(), "this errand fails always")
	}
	if r, err := s.errand(within(t), "crash", "", note); code(err) != protocol.CodeInternal || last != protocol.TaskFailed {
		t.Errorf("got %+v, %v of a task that is %s", r, err, last)
	}
}

func (s session) strangerTaskAsks(t *testing.T) {
	s.user.accepts(args{"name": "Ada"})
	asked := false
	r, err := s.errand(within(t), "ask", "", func(task *client.Task) { asked = asked || task.Status == protocol.TaskInputRequired })
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "result", r.Text(), "accept Ada")
	if q := s.user.questions(); !asked || len(q) != 1 || q[0].Message != "Your name?" {
		t.Errorf("the task asked: %t, the user was asked %+v", asked, q)
	}
}

// strangerTaskCancelled cancels a task while its call waits for it.
func (s session) strangerTaskCancelled(t *testing.T) {
	ctx, before := within(t), s.cancelled(t)
	_, err := s.errand(ctx, "wait", "cancelled", func(task *client.Task) {
		if task.StatusMessage == "waiting" && task.Status == protocol.TaskWorking {
			if err := s.CancelTask(ctx, task.ID); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, client.ErrCancelled) {
		t.Errorf("got %v, want ErrCancelled", err)
	}
	s.cancels(t, before+1)
}

// strangerTaskGivenUp gives up the call, and sees that this cancels the task.
func (s session) strangerTaskGivenUp(t *testing.T) {
	before := s.cancelled(t)
	ctx, giveUp := context.WithCancel(within(t))
	defer giveUp()
	_, err := s.errand(ctx, "wait", "given up", func(task *client.Task) {
		if task.StatusMessage == "waiting" {
			giveUp()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	s.cancels(t, before+1)
}

// cancelled returns how many of its calls and tasks the server saw cancelled.
func (s session) cancelled(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(s.call(t, "cancelled", nil).Text())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// cancels waits until the server has seen n cancelled. It pauses between two looks:
// see the end of e2e/quirks for a server that does not stand being hurried.
func (s session) cancels(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(timeLimit / 6); s.cancelled(t) != n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server never noticed")
		}
	}
}
