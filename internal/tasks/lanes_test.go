package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// leave leaves a task to workers.
func (r *process) leave(t *testing.T, owner string) (id string) {
	t.Helper()
	task, err := r.Reserve(owner, 0, 0, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Keep(&Call{Text: []byte("call"), Worker: true}); err != nil {
		t.Fatal(err)
	}
	task.Leave()
	return task.Record().ID
}

// Who leaves many tasks to a worker is not in the way of somebody else, also
// without limits of what one may have at a time; and all are run.
func TestWorkIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		web, worker := newReplica(t, store), newReplica(t, store)
		worker.config.MaxRunning = 4
		var ran atomic.Int64
		worker.config.Replay = func(_ context.Context, task *Task, _ []byte) error {
			go func() {
				time.Sleep(10 * time.Second)
				ran.Add(1)
				_ = task.Finish(protocol.TaskCompleted, nil, nil)
			}()
			return nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		over := make(chan error, 1)
		go func() { over <- worker.Work(ctx, nil) }()
		const many = 100
		of := func(owner string) string { return laneOf(&Record{Owner: owner}).Index }
		for range many {
			web.leave(t, "ann")
		}
		time.Sleep(5 * time.Second)
		other := "bob"
		for n := 0; of(other) == of("ann"); n++ {
			other = fmt.Sprint("bob", n)
		}
		id := web.leave(t, other)
		time.Sleep(35 * time.Second) // two turns of 10 s, and its own
		if r, _, err := web.Look(t.Context(), id); err != nil || r.Status != protocol.TaskCompleted {
			t.Errorf("%s behind %d of ann: %v, %v", other, many, r.Status, err)
		}
		time.Sleep(many / 4 * 11 * time.Second)
		if n := ran.Load(); n != many+1 {
			t.Errorf("%d ran, want %d", n, many+1)
		}
		cancel(errors.New("enough"))
		<-over
		web.stop()
		worker.stop()
	})
}
