package tasks_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// trapStore is a Store that does not return once it is armed.
type trapStore struct {
	tasks.Memory
	armed atomic.Bool
	way   func()
}

func (s *trapStore) spring() {
	if s.armed.Load() {
		s.way()
	}
}

func (s *trapStore) Save(ctx context.Context, r *tasks.Record) error {
	s.spring()
	return s.Memory.Save(ctx, r)
}

func (s *trapStore) Load(ctx context.Context, id string) (tasks.Record, bool, error) {
	s.spring()
	return s.Memory.Load(ctx, id)
}

func (s *trapStore) Delete(ctx context.Context, id string) error {
	s.spring()
	return s.Memory.Delete(ctx, id)
}

// A Store that does not return is reported, clients hear nothing of what it
// panicked with, and no task keeps its place.
func TestStoreThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []string
				store := &trapStore{way: way}
				m := tasks.NewManager(tasks.Config{Store: store, TTL: time.Minute, Max: 1, MaxRunning: 1, StoreFailed: func(err error) {
					mu.Lock()
					told = append(told, err.Error())
					mu.Unlock()
					way()
				}}, nil)
				start := func() (*tasks.Task, error) {
					_, cancel := context.WithCancelCause(t.Context())
					return m.Create("", 0, 0, cancel)
				}
				heard := func(err error) {
					t.Helper()
					if err == nil || strings.Contains(err.Error(), "pa55phrase") {
						t.Errorf("the error is %v", err)
					}
				}
				store.armed.Store(true)
				_, err := start()
				heard(err)
				store.armed.Store(false)
				task, err := start() // the place is free
				if err != nil {
					t.Fatal(err)
				}
				store.armed.Store(true)
				_, err = m.Get(t.Context(), "", task.Record().ID)
				heard(err)
				heard(task.Note(wire.Progress{Progress: 1, Message: "half way"}))
				heard(task.Finish(protocol.TaskCompleted, nil, nil))
				time.Sleep(2 * time.Minute) // of the bubble: the task expires
				synctest.Wait()
				store.armed.Store(false)
				if _, err := start(); err != nil {
					t.Errorf("the places are not free: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(told) != 5 || !strings.Contains(told[0], "spring") {
					t.Errorf("told %q", told)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// slowStore waits for as long as it may.
type slowStore struct{ tasks.Memory }

func (*slowStore) Save(ctx context.Context, _ *tasks.Record) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A Store that does not answer has a time, after which the place is free again.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager(tasks.Config{Store: &slowStore{}, Max: 1, MaxRunning: 1}, nil)
		for range 2 {
			begin := time.Now()
			_, err := m.Create("", 0, 0, func(error) {})
			if err == nil || !strings.Contains(err.Error(), "could not be kept") || time.Since(begin) != 5*time.Second {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		}
	})
}
