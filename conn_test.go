package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// connClient talks over any transport.Conn.
type connClient struct {
	t    testing.TB
	conn transport.Conn
	spec specWatch
}

func newConnClient(t testing.TB, conn transport.Conn, rev protocol.Revision) *connClient {
	return &connClient{t, conn, specWatch{t, rev}}
}

func (c *connClient) say(line string) []string {
	if err := c.conn.Write([]byte(line)); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if err := c.conn.Flush(); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if !isRequest(line) {
		return nil
	}
	var heard []string
	for {
		heard = append(heard, c.hear())
		if isAnswer(heard[len(heard)-1]) {
			return c.spec.heard(line, heard...)
		}
	}
}

// isAnswer reports whether a message of the server answers a request.
func isAnswer(message string) bool {
	var m struct{ Method string }
	return json.Unmarshal([]byte(message), &m) != nil || m.Method == ""
}

func (c *connClient) hear() string {
	message, err := c.conn.Read()
	if err != nil {
		c.t.Fatalf("no message: %v", err)
	}
	return string(message)
}

func openPipe(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	client, server := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), server) }()
	t.Cleanup(func() {
		client.Close()
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) && !errors.Is(err, errFired) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return newConnClient(t, client, rev)
}

func openTCP(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	return newConnClient(t, dial(t, listenOn(t, s, "tcp")), rev)
}

func openUnix(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	return newConnClient(t, dial(t, listenOn(t, s, "unix")), rev)
}

// listenOn serves s on a socket until the test ends.
func listenOn(t testing.TB, s *mcp.Server, network string) net.Addr {
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

func dial(t testing.TB, addr net.Addr) transport.Conn {
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
	initLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	slowLine = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`
	pingLine = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
)

func TestConnectionsLimit(t *testing.T) {
	s := fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 1}})
	addr := listenOn(t, s, "tcp")
	first := newConnClient(t, dial(t, addr), protocol.LatestLegacy)
	first.say(initLine)
	second := newConnClient(t, dial(t, addr), protocol.LatestLegacy)
	if got, want := second.hear(), "the server has 1 connections, which is the limit"; !strings.Contains(got, want) {
		t.Errorf("the second connection heard %s, want %q", got, want)
	}
	if _, err := second.conn.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the second connection read %v, want io.EOF", err)
	}
	if err := first.conn.Close(); err != nil {
		t.Fatal(err)
	}
	for { // the place of the first is free a moment later
		third := newConnClient(t, dial(t, addr), protocol.LatestLegacy)
		if err := third.conn.Write([]byte(initLine)); err == nil && strings.Contains(third.hear(), `"serverInfo"`) {
			return
		}
	}
}

// TestServeShutdown sees that Shutdown lets calls of a connection finish,
// refuses more, and ends the connections.
func TestServeShutdown(t *testing.T) {
	s := fixture(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	s.MustAdd(mcp.Tool("wait", func(*mcp.Frame, empty) (string, error) {
		close(entered)
		<-leave
		return "finished", nil
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), listener) }()
	busy, idle := newConnClient(t, dial(t, listener.Addr()), protocol.LatestLegacy), newConnClient(t, dial(t, listener.Addr()), protocol.LatestLegacy)
	busy.say(initLine)
	idle.say(initLine)
	if err := busy.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`)); err != nil {
		t.Fatal(err)
	}
	<-entered
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if _, err := idle.conn.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection read %v, want io.EOF", err)
	}
	close(leave)
	if got := busy.hear(); !strings.Contains(got, "finished") {
		t.Errorf("the busy connection heard %s, want the answer", got)
	}
	if _, err := busy.conn.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the busy connection read %v, want io.EOF", err)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; !errors.Is(err, mcp.ErrServerClosed) {
		t.Errorf("Serve: %v, want ErrServerClosed", err)
	}
	again, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), again); !errors.Is(err, mcp.ErrServerClosed) {
		t.Errorf("Serve after Shutdown: %v, want ErrServerClosed", err)
	}
}

// TestPeerGone sees that a client which leaves cancels its calls.
func TestPeerGone(t *testing.T) {
	client, server := transport.Pipe()
	served := make(chan error, 1)
	s := fixture(t, nil)
	go func() { served <- s.ServeConn(context.Background(), server) }()
	c := newConnClient(t, client, protocol.LatestLegacy)
	c.say(initLine)
	if err := client.Write([]byte(slowLine)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("ServeConn: %v", err)
	}
}

// memoryListener is a net.Listener for connections within the process, so that
// time can be faked.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { close(l.closed); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// halfConn is a connection whose client can end its side alone.
type halfConn struct {
	net.Conn
	in io.Reader
}

func (c halfConn) Read(p []byte) (int, error) { return c.in.Read(p) }

// TestGrace sees that calls go on for a while after the client has ended its
// side of a socket, and are then cancelled.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Grace: 5 * time.Second}})
		listener := &memoryListener{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		fromServer, server := net.Pipe()
		in, toServer := io.Pipe()
		listener.conns <- halfConn{server, in}
		heard := make(chan string)
		go func() {
			all, _ := io.ReadAll(fromServer)
			heard <- string(all)
		}()
		begin := time.Now()
		if _, err := io.WriteString(toServer, initLine+"\n"+slowLine+"\n"+pingLine+"\n"); err != nil {
			t.Fatal(err)
		}
		_ = toServer.Close()
		all := <-heard
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("the connection ended after %v, want 5s", took)
		}
		if !strings.Contains(all, `{"jsonrpc":"2.0","id":9,"result":{}}`) {
			t.Errorf("heard %s, want an answer to ping", all)
		}
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
	})
}

// TestShutdownStalled sees that a client which reads nothing does not hold up
// the end of its connection for longer than a second once that is cancelled.
func TestShutdownStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fixture(t, nil)
		client, server := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(ctx, transport.NewSocket(server, nil)) }()
		if _, err := io.WriteString(client, initLine+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the answer waits to be read
		begin := time.Now()
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("ServeConn: %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("ServeConn took %v to end, want 1s", took)
		}
	})
}
