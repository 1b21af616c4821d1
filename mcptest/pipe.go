package mcptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/transport"
)

// pipeWire talks to ServeConn through a pair of pipes.
type pipeWire struct {
	conn   *transport.Stream
	input  *io.PipeWriter
	ended  sync.WaitGroup
	served error
}

func newPipeWire(c *Client, server *mcp.Server) *pipeWire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &pipeWire{conn: transport.NewStream(outR, inW, nil), input: inW}
	ctx := context.Background()
	if c.conf.identity != nil {
		ctx = mcp.WithIdentity(ctx, c.conf.identity)
	}
	w.ended.Go(func() {
		w.served = server.ServeConn(ctx, transport.NewStream(inR, outW, nil))
		_ = outW.Close()
	})
	w.ended.Go(func() {
		for {
			text, err := w.conn.Read()
			if err != nil {
				c.fail(errors.New("the server has ended the connection"))
				return
			}
			c.receive(bytes.Clone(text))
		}
	})
	return w
}

func (w *pipeWire) send(m *outgoing) error {
	if err := errors.Join(w.conn.Write(m.text), w.conn.Flush()); err != nil {
		return errors.Join(errEnded, err)
	}
	return nil
}

func (w *pipeWire) ready() {}

func (w *pipeWire) close() error {
	_ = w.input.Close() // pipes have no error
	w.ended.Wait()
	if errors.Is(w.served, mcp.ErrServerClosed) {
		return nil // the test wanted it
	}
	return w.served
}
