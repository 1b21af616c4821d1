package tasks_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// noteStore is a Store that takes its time, and notes what it did.
type noteStore struct {
	tasks.Memory
	takes time.Duration

	mu   sync.Mutex
	done []string
}

func (s *noteStore) note(what string) {
	time.Sleep(s.takes)
	s.mu.Lock()
	s.done = append(s.done, what)
	s.mu.Unlock()
}

func (s *noteStore) Save(ctx context.Context, r *tasks.Record) error {
	s.note(strings.TrimSpace(fmt.Sprint(r.Status, " ", r.StatusMessage)))
	return s.Memory.Save(ctx, r)
}

func (s *noteStore) Load(ctx context.Context, id string) (tasks.Record, bool, error) {
	s.mu.Lock()
	s.done = append(s.done, "load")
	s.mu.Unlock()
	return s.Memory.Load(ctx, id)
}

func (s *noteStore) Delete(ctx context.Context, id string) error {
	s.note("delete")
	return s.Memory.Delete(ctx, id)
}

func (s *noteStore) order() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.done, ", ")
}

// While a Store saves a task, the task can be looked at and goes on to change;
// what is saved last, and told last, is the last state, and what was overtaken
// is not saved at all.
func TestSavingHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &noteStore{}
		var told []string
		m := tasks.NewManager(tasks.Config{Store: store}, func(s tasks.State) { told = append(told, string(s.Record.Status)+" "+s.Record.StatusMessage) })
		task, err := m.Create("", time.Hour, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		store.takes = 3 * time.Second
		began := time.Now()
		var changes sync.WaitGroup
		for i, change := range []func() error{
			func() error { return task.Note(wire.Progress{Progress: 1, Message: "one"}) },
			func() error { return task.Note(wire.Progress{Progress: 2, Message: "two"}) },
			func() error { return task.Finish(protocol.TaskCompleted, nil, nil) },
		} {
			changes.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := change(); err != nil {
					t.Errorf("change %d: %v", i, err)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		if r := task.Record(); r.Status != protocol.TaskCompleted || time.Since(began) > time.Second {
			t.Errorf("%s after %v; want completed, while the first change is being saved", r.Status, time.Since(began))
		}
		changes.Wait()
		if got := store.order(); !strings.HasPrefix(got, "working, working one, ") || !strings.HasSuffix(got, "completed two") {
			t.Errorf("saved: %s", got)
		}
		if n := len(told); n == 0 || told[n-1] != "completed two" {
			t.Errorf("told: %q", told)
		}
	})
}

// What is being saved while the time of a task ends does not outlive it.
func TestSavingAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &noteStore{}
		m := tasks.NewManager(tasks.Config{Store: store}, nil)
		task, err := m.Create("", time.Minute, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		store.takes = 2 * time.Second
		time.Sleep(time.Minute - time.Second)
		if err := task.Note(wire.Progress{Progress: 1, Message: "late"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, want := store.order(), "working, working late, delete"; got != want {
			t.Errorf("the Store did %s; want %s", got, want)
		}
		if _, ok, _ := store.Memory.Load(t.Context(), task.Record().ID); ok {
			t.Error("the Store has it still")
		}
	})
}

// A Store is asked for what can be an id alone.
func TestStoreIsAskedForIDsAlone(t *testing.T) {
	store := &noteStore{}
	m := tasks.NewManager(tasks.Config{Store: store}, nil)
	for _, id := range []string{"", "x", strings.Repeat("A", 1<<20), "../../etc/passwd", "AAAAAAAAAAAAAAAAAAAAA\x00", "AAAAAAAAAAAAAAAAAAAA' --"} {
		_, err := m.Get(t.Context(), "", id)
		if err == nil || len(err.Error()) > 200 || m.Update(t.Context(), "", id, nil) == nil || m.Cancel(t.Context(), "", id) == nil {
			t.Errorf("%.30q: %.300v", id, err)
		}
	}
	if got := store.order(); got != "" {
		t.Errorf("the Store was asked: %s", got)
	}
	if _, err := m.Get(t.Context(), "", replica.NewID()); err == nil || store.order() != "load" {
		t.Errorf("%v, %s", err, store.order())
	}
}
