package upcall

import (
	"context"

	"github.com/talaria-go/mcp/internal/wire"
)

// Detacher turns a request into a task; the server brings it for tools that may
// run as one.
type Detacher interface {
	// Detach makes the request a task. It returns nil if there is to be none,
	// since the client takes none or the answer is on its way.
	Detach() (*Detachment, error)
	// Asks tells whether a request that asks its client becomes a task first, so
	// that its handler waits for the answer and does not run again.
	Asks() bool
}

// Detachment is a request as a task.
type Detachment struct {
	Asker  Asker                       // takes its questions
	Note   func(p wire.Progress) error // takes its progress, whose token is not set
	Answer func()                      // answers the request; from then on nothing else can be sent for it
}

// detacherKey is the context key of the Detacher. It is in the context and not
// in the Config because only the handler of the tool that may become a task has
// one, and middleware around it has none.
type detacherKey struct{}

// WithDetacher returns a context whose Frames can be detached.
func WithDetacher(ctx context.Context, d Detacher) context.Context {
	return context.WithValue(ctx, detacherKey{}, d)
}

// DetacherOf returns what WithDetacher put into ctx; nil if that is nothing.
func DetacherOf(ctx context.Context) Detacher {
	d, _ := ctx.Value(detacherKey{}).(Detacher)
	return d
}
