package conn

import (
	"errors"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// guarded is a connection in the guard: what panics becomes an error. Read
// and Write run where they are called, for speed; who calls them must be ready
// for a goroutine that ends.
type guarded struct{ conn transport.Conn }

func (g guarded) Read() (message []byte, err error) {
	if failed := safely.Call(func() { message, err = g.conn.Read() }); failed != nil {
		return nil, safely.Known(failed)
	}
	return message, err
}

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

func (g guarded) Flush() error { return safely.Known(safely.Try(g.conn.Flush)) }

func (g guarded) Close() error { return safely.Known(safely.Try(g.conn.Close)) }
