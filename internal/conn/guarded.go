package conn

import (
	"errors"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// guarded is a connection whose panics become errors, because its methods may
// be users' code. Read and Write run on the goroutine of the caller, for speed;
// if they call runtime.Goexit, that goroutine ends, and the caller must be
// prepared for it.
type guarded struct{ conn transport.Conn }

// Read implements [transport.Conn].
func (g guarded) Read() (message []byte, err error) {
	if failed := safely.Call(func() { message, err = g.conn.Read() }); failed != nil {
		return nil, safely.Known(failed)
	}
	return message, err
}

// Write implements [transport.Conn]. If the connection panics, the message may
// have been written in part: the connection is closed, so that its reader ends
// and the client sees it.
func (g guarded) Write(message []byte) (err error) {
	safely.Do(func() { err = g.conn.Write(message) }, func(f *safely.Failure) {
		err = f.Detail()
		_ = g.Close() // here, for this goroutine may end
	})
	if _, failed := errors.AsType[*safely.Failure](err); failed {
		_ = g.Close() // what was to be written is lost: reading has to end, which the client sees
	}
	return err
}

// GoAway closes the connection for a reason that is not the client's, and tells
// it where the transport can: a WebSocket does with its close frame.
func (g guarded) GoAway(reason string) error {
	if c, ok := g.conn.(interface{ GoAway(reason string) error }); ok {
		return safely.Known(safely.Try(func() error { return c.GoAway(reason) }))
	}
	return g.Close()
}

// Flush implements [transport.Conn], on a goroutine that may end.
func (g guarded) Flush() error { return safely.Known(safely.Try(g.conn.Flush)) }

// Close implements [transport.Conn], on a goroutine that may end.
func (g guarded) Close() error { return safely.Known(safely.Try(g.conn.Close)) }
