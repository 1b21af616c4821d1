// Package callback runs the callbacks that users gave in options of package
// client, of pools and of groups.
//
// They are called on goroutines that keep connections alive. Whatever a
// callback does there, panic or runtime.Goexit, must not end these: so each
// call has a goroutine of its own, and what it panics with goes to the log.
package callback

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
)

// Run calls fn on a goroutine of its own and waits for it: whatever fn does, Run
// returns. A panic is logged with the name of the callback, and is the error.
// logger may be nil.
func Run(logger *zerolog.Logger, name string, fn func()) error {
	err := safely.Apart(fn)
	if failure, ok := errors.AsType[*safely.Failure](err); ok && logger != nil {
		safely.Log(logger.Error().Str("callback", name).Str("panic", visible.Text(failure.Value, visible.Sentence)).
			Bytes("stack", failure.Stack), "a callback panicked")
	}
	return err
}
