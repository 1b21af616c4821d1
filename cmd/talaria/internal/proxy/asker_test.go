package proxy

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

var errClosed = errors.New("closed")

// unread is a connection whose client takes nothing: each Write waits until the
// connection is closed.
type unread struct{ closed chan struct{} }

func (c *unread) Read() ([]byte, error) { <-c.closed; return nil, errClosed }
func (c *unread) Write([]byte) error    { <-c.closed; return errClosed }
func (c *unread) Flush() error          { <-c.closed; return errClosed }
func (c *unread) Close() error          { close(c.closed); return nil }

// A question to a client that does not read ends with the time of a write, and
// not with the time that a person has for the answer.
func TestAskUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{}
		p.Conn(&unread{make(chan struct{})})
		since := time.Now()
		err := p.asker.ask(t.Context(), protocol.MethodElicit, nil, nil)
		if took := time.Since(since); !errors.Is(err, errClosed) || took != writeTimeout {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
