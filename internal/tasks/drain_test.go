package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// slowStore is a Store that answers for some keys late, or never.
type slowStore struct {
	scale.Store
	slow sync.Map // time.Duration by scale.Key
}

func (s *slowStore) wait(ctx context.Context, key scale.Key) error {
	takes, ok := s.slow.Load(key)
	if !ok {
		return nil
	}
	select {
	case <-time.After(takes.(time.Duration)):
		return nil
	case <-ctx.Done():
		return scale.ErrUnavailable
	}
}

func (s *slowStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	for _, w := range writes {
		if err := s.wait(ctx, w.Key); err != nil {
			return nil, err
		}
	}
	return s.Store.Put(ctx, writes...)
}

// drain begins to drain a replica, and returns what is closed when that is over.
func drain(ctx context.Context, r *process) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.Drain(ctx)
	}()
	return over
}

func isOver(over <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// A shutdown waits until the store has how tasks have ended, as long as it may wait
// at all.
func TestDrainWaitsForTheStore(t *testing.T) {
	for _, patient := range []bool{true, false} {
		shared(t, func(t *testing.T, store *leaky, a, b, _ *process, task *Task, _ func() error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			store.away.Store(true)
			if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err == nil {
				t.Error("kept while the store is away")
			}
			over := drain(ctx, a)
			time.Sleep(30 * time.Second)
			if isOver(over) {
				t.Error("the shutdown did not wait for the store")
			}
			if !patient {
				time.Sleep(30 * time.Second)
				if !isOver(over) {
					t.Error("the shutdown waits for longer than it may")
				}
				return
			}
			store.away.Store(false)
			<-over
			a.stop()
			want(t, task.Record().ID, protocol.TaskCompleted, b)
		})
	}
}

// A shutdown waits for an end that is on its way to a slow store, and for a task of
// which nobody was told to be gone.
func TestDrainWaitsForSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		a, b := newReplica(t, store), newReplica(t, store)
		task, err := a.Create("ann", 0, time.Millisecond, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		id := task.Record().ID
		store.slow.Store(keyOf(id), 4*time.Second)
		go func() { _ = task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil) }()
		<-drain(t.Context(), a)
		want(t, id, protocol.TaskCompleted, b)

		unmade, err := a.Reserve("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		id = unmade.Record().ID
		store.slow.Store(keyOf(id), time.Minute)
		if err := unmade.Keep(&Call{}); err == nil {
			t.Error("kept")
		}
		unmade.Drop()
		over := drain(t.Context(), a)
		time.Sleep(time.Minute)
		if isOver(over) {
			t.Error("the shutdown did not wait until a task is gone of which nobody was told")
		}
		store.slow.Clear()
		<-over
		a.stop()
		b.stop()
	})
}

// A store that is slow to save some tasks lets the leases of no others end.
func TestSlowSavesHoldUpNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		a, b := newReplica(t, store), newReplica(t, store)
		defer a.stop()
		defer b.stop()
		time.Sleep(2 * lease)
		var lost error
		task, err := a.Reserve("ann", 0, 0, func(cause error) { lost = cause })
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Keep(&Call{}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			slow, err := a.Create("ann", 0, 0, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			store.slow.Store(keyOf(slow.Record().ID), time.Hour)
			go func() { _ = slow.Finish(protocol.TaskCompleted, nil, nil) }()
		}
		time.Sleep(3 * lease)
		synctest.Wait()
		if lost != nil {
			t.Errorf("its work was told %v", lost)
		}
		want(t, task.Record().ID, protocol.TaskWorking, a, b)
	})
}

// A task that has finished is not handed over while its end is on its way to the
// store: nobody runs it again.
func TestHandOverKeepsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		a, b := newReplica(t, store), newReplica(t, store)
		defer b.stop()
		task, err := a.Reserve("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Keep(&Call{}); err != nil {
			t.Fatal(err)
		}
		id := task.Record().ID
		store.slow.Store(keyOf(id), 2*time.Second)
		noted := make(chan error, 1)
		go func() { noted <- task.Note(wire.Progress{Progress: 1}) }() // which the end waits for
		synctest.Wait()
		finished := make(chan error, 1)
		go func() { finished <- task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil) }()
		synctest.Wait()
		if task.Release() {
			t.Error("a task that has finished was released")
		}
		a.HandOver()
		if err := errors.Join(<-noted, <-finished); err != nil {
			t.Error(err)
		}
		a.stop()
		store.slow.Clear()
		time.Sleep(3 * lease)
		want(t, id, protocol.TaskCompleted, b)
	})
}

// What is renewed when it is left to others does not have to wait for a lease there.
func TestHandOverWhileRenewed(t *testing.T) {
	for name, release := range map[string]func(*Task){
		"released":        func(task *Task) { task.Release() },
		"left to workers": func(task *Task) { task.Leave() },
	} {
		shared(t, func(t *testing.T, store *leaky, a, _, _ *process, _ *Task, _ func() error) {
			task, err := a.Reserve("ann", 0, 0, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			if err := task.Keep(&Call{Worker: name != "released"}); err != nil {
				t.Fatal(err)
			}
			renewable := a.renewable()
			release(task)
			a.renew(renewable)
			time.Sleep(2 * atOnce)
			r := task.Record()
			index := running
			if r.Worker {
				index = laneOf(&r).Index
			}
			if due, err := store.ClaimDue(t.Context(), keyOf(r.ID).Partition, index, "x", 100, lease); err != nil || len(due) != 1 {
				t.Errorf("%s: due are %v, %v", name, due, err)
			}
		})
	}
}

// A task that begins while the replica hands over runs there: others may not have
// its call yet.
func TestHandOverWhileKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		a, b := newReplica(t, store), newReplica(t, store)
		defer a.stop()
		defer b.stop()
		var lost error
		task, err := a.Reserve("ann", 0, 0, func(cause error) { lost = cause })
		if err != nil {
			t.Fatal(err)
		}
		id := task.Record().ID
		store.slow.Store(callOf(id), time.Second)
		kept := make(chan error, 1)
		go func() { kept <- task.Keep(&Call{Text: []byte("call")}) }()
		synctest.Wait()
		a.HandOver()
		if err := <-kept; err != nil || lost != nil || a.Running() != 1 {
			t.Errorf("%v, %v, %d run", err, lost, a.Running())
		}
		time.Sleep(2 * lease)
		want(t, id, protocol.TaskWorking, a, b)
	})
}

// A task that a replica takes while it hands over goes on to another one.
func TestHandOverWhileTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		a := newReplica(t, store)
		defer a.stop()
		task, err := a.Reserve("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Keep(&Call{Text: []byte("call")}); err != nil {
			t.Fatal(err)
		}
		ran := make(chan string, 2)
		runner := func(name string) *process {
			return newRunner(t, store, func(context.Context, *Task, []byte) error { ran <- name; return nil })
		}
		b := runner("b")
		defer b.stop()
		time.Sleep(2*lease + time.Second) // between two beats
		a.HandOver()
		store.slow.Store(keyOf(task.Record().ID), time.Second)
		time.Sleep(b.shared.beat() - time.Second/2) // b takes it
		if b.Running() != 1 {
			t.Fatal("it is not being taken")
		}
		c := runner("c")
		defer c.stop()
		b.HandOver()
		store.slow.Clear()
		time.Sleep(2 * lease)
		select {
		case got := <-ran:
			if got != "c" || b.Running() != 0 {
				t.Errorf("it ran at %s, and %d are at b", got, b.Running())
			}
		default:
			t.Error("nobody runs it")
		}
	})
}
