// Package callback runs the callbacks that users gave in options.
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
