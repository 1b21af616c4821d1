package inflight

import (
	"context"
	"errors"
	"testing"
	"time"
)

type key struct{}

// A detached task outlives the context that it comes from, and keeps its
// values.
func TestTaskDetached(t *testing.T) {
	gone := errors.New("gone")
	for _, asked := range []bool{false, true} { // for what a context waits with
		var tracker Tracker
		parent, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
		parent, stop := context.WithTimeout(parent, time.Hour)
		defer stop()
		task, ok := tracker.BeginDetached(parent)
		if !ok {
			t.Fatal("refused")
		}
		if asked {
			_ = task.Done()
		}
		child, cancel := context.WithCancel(task)
		defer cancel()
		leave(gone)
		if _, limited := task.Deadline(); limited || task.Err() != nil || context.Cause(task) != nil || child.Err() != nil || task.Cancelled() {
			t.Errorf("asked %v: it ended with its parent: %v, %v", asked, context.Cause(task), child.Err())
		}
		if got := task.Value(key{}); got != "kept" {
			t.Errorf("asked %v: value %v", asked, got)
		}
		task.Cancel(ErrCancelled)
		<-child.Done()
		if !task.Cancelled() || !Cancelled(child) || task.Err() == nil {
			t.Errorf("asked %v: it was not cancelled: %v, %v", asked, context.Cause(task), context.Cause(child))
		}
		task.End()
		tracker.Stop()
		if _, ok := tracker.BeginDetached(parent); ok {
			t.Error("a task begins after Stop")
		}
	}
}

// A task that is not detached ends with its parent, and was not cancelled by
// its client then.
func TestTaskAttached(t *testing.T) {
	gone := errors.New("gone")
	var tracker Tracker
	parent, leave := context.WithCancelCause(t.Context())
	task, _ := tracker.Begin(parent)
	defer task.End()
	leave(gone)
	if task.Err() == nil || context.Cause(task) != gone || task.Cancelled() {
		t.Errorf("it goes on: %v, %v", task.Err(), context.Cause(task))
	}
	<-task.Done()
	if context.Cause(task) != gone || task.Cancelled() {
		t.Errorf("cause %v", context.Cause(task))
	}
}
