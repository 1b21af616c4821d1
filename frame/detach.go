package frame

import (
	"context"
	"errors"
)

// Detacher turns a request into a task; the server brings it for tools that
// may run as one.
type Detacher interface {
	// Detach answers the request with a task. ok is false if the client
	// takes none. From then on questions go through asker and notes of
	// progress to note.
	Detach(f *Frame) (asker Asker, note func(message string) error, ok bool, err error)
}

type detacherKey struct{}

// WithDetacher returns a context whose Frames can be detached.
func WithDetacher(ctx context.Context, d Detacher) context.Context {
	return context.WithValue(ctx, detacherKey{}, d)
}

// ErrNotDetachable is the error of detaching a request that is not a call of a
// tool with the option AsTask.
var ErrNotDetachable = errors.New("frame: only calls of tools with the option AsTask can be detached")

// Detach answers the request with a task, if its client takes tasks, and lets
// the handler go on: its result becomes that of the task. Questions that were
// asked before are settled by then; those that come after are put to the
// client through the task, and block. Detaching twice, or for a client that
// takes no tasks, does nothing.
//
// (Extension io.modelcontextprotocol/tasks.)
func (f *Frame) Detach() error {
	root := f.root
	root.detaching.Lock() // and not root.mu: Detach asks f what its client can
	defer root.detaching.Unlock()
	if f.Detached() {
		return nil
	}
	d, ok := f.ctx.Value(detacherKey{}).(Detacher)
	if !ok {
		return ErrNotDetachable
	}
	asker, note, ok, err := d.Detach(f)
	if ok && err == nil {
		root.mu.Lock()
		root.asking, root.note = asker, note
		root.mu.Unlock()
	}
	return err
}

// Detached tells whether the request has become a task.
func (f *Frame) Detached() bool { return f.taskNote() != nil }

// taskNote returns what takes notes of progress, nil unless f is detached.
func (f *Frame) taskNote() func(string) error {
	root := f.root
	root.mu.Lock()
	defer root.mu.Unlock()
	return root.note
}
