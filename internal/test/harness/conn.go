package harness

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// ConnClient talks over any transport.Conn.
type ConnClient struct {
	t    testing.TB
	Conn transport.Conn
	spec SpecWatch
}

func NewConnClient(t testing.TB, conn transport.Conn, rev protocol.Revision) *ConnClient {
	return &ConnClient{t, conn, SpecWatch{t, rev}}
}

func (c *ConnClient) Say(line string) []string {
	if err := c.Conn.Write([]byte(line)); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if err := c.Conn.Flush(); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if !IsRequest(line) {
		return nil
	}
	var heard []string
	for {
		heard = append(heard, c.Hear())
		if IsAnswer(heard[len(heard)-1]) {
			return c.spec.heard(line, heard...)
		}
	}
}

// IsAnswer reports whether a message of the server answers a request.
func IsAnswer(message string) bool {
	var m struct{ Method string }
	return json.Unmarshal([]byte(message), &m) != nil || m.Method == ""
}

func (c *ConnClient) Hear() string {
	message, err := c.Conn.Read()
	if err != nil {
		c.t.Fatalf("no message: %v", err)
	}
	return string(message)
}

func OpenPipe(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	client, server := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), server) }()
	t.Cleanup(func() {
		client.Close()
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) && !errors.Is(err, ErrFired) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return NewConnClient(t, client, rev)
}

func openTCP(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	return NewConnClient(t, Dial(t, ListenOn(t, s, "tcp")), rev)
}

func openUnix(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	return NewConnClient(t, Dial(t, ListenOn(t, s, "unix")), rev)
}

// ListenOn serves s on a socket until the test ends.
func ListenOn(t testing.TB, s *mcp.Server, network string) net.Addr {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) && !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return listener.Addr()
}

func Dial(t testing.TB, addr net.Addr) transport.Conn {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	socket := transport.NewSocket(conn, nil)
	t.Cleanup(func() { _ = socket.Close() })
	return socket
}

const (
	InitLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	SlowLine = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`
	PingLine = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
)

// MemoryListener is a net.Listener for connections within the process, so that
// time can be faked.
type MemoryListener struct {
	Conns  chan net.Conn
	Closed chan struct{}
}

func (l *MemoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.Conns:
		return c, nil
	case <-l.Closed:
		return nil, net.ErrClosed
	}
}

func (l *MemoryListener) Close() error { close(l.Closed); return nil }

func (l *MemoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
