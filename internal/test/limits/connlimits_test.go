package limits_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

func TestConnectionsLimit(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 1}})
	addr := harness.ListenOn(t, s, "tcp")
	first := harness.NewConnClient(t, harness.Dial(t, addr), protocol.LatestLegacy)
	first.Say(harness.InitLine)
	second := harness.NewConnClient(t, harness.Dial(t, addr), protocol.LatestLegacy)
	if got, want := second.Hear(), "the server has 1 connections, the limit"; !strings.Contains(got, want) {
		t.Errorf("the second connection heard %s, want %q", got, want)
	}
	if _, err := second.Conn.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the second connection read %v, want io.EOF", err)
	}
	if err := first.Conn.Close(); err != nil {
		t.Fatal(err)
	}
	for { // the place of the first is free a moment later
		third := harness.NewConnClient(t, harness.Dial(t, addr), protocol.LatestLegacy)
		if err := third.Conn.Write([]byte(harness.InitLine)); err == nil && strings.Contains(third.Hear(), `"serverInfo"`) {
			return
		}
	}
}

// TestServeShutdown sees that Shutdown lets calls of a connection finish,
// refuses more, and ends the connections.
func TestServeShutdown(t *testing.T) {
	s := harness.Fixture(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	s.MustAdd(mcp.Tool("wait", func(*mcp.Frame, struct{}) (string, error) {
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
	busy, idle := harness.NewConnClient(t, harness.Dial(t, listener.Addr()), protocol.LatestLegacy), harness.NewConnClient(t, harness.Dial(t, listener.Addr()), protocol.LatestLegacy)
	busy.Say(harness.InitLine)
	idle.Say(harness.InitLine)
	if err := busy.Conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`)); err != nil {
		t.Fatal(err)
	}
	<-entered
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if _, err := idle.Conn.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection read %v, want io.EOF", err)
	}
	close(leave)
	if got := busy.Hear(); !strings.Contains(got, "finished") {
		t.Errorf("the busy connection heard %s, want the answer", got)
	}
	if _, err := busy.Conn.Read(); !errors.Is(err, io.EOF) {
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
	s := harness.Fixture(t, nil)
	go func() { served <- s.ServeConn(context.Background(), server) }()
	c := harness.NewConnClient(t, client, protocol.LatestLegacy)
	c.Say(harness.InitLine)
	if err := client.Write([]byte(harness.SlowLine)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("ServeConn: %v", err)
	}
}

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
		s := harness.Fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Grace: 5 * time.Second}})
		listener := &harness.MemoryListener{Conns: make(chan net.Conn), Closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		fromServer, server := net.Pipe()
		in, toServer := io.Pipe()
		listener.Conns <- halfConn{server, in}
		heard := make(chan string)
		go func() {
			all, _ := io.ReadAll(fromServer)
			heard <- string(all)
		}()
		begin := time.Now()
		if _, err := io.WriteString(toServer, harness.InitLine+"\n"+harness.SlowLine+"\n"+harness.PingLine+"\n"); err != nil {
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
		s := harness.Fixture(t, nil)
		client, server := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(ctx, transport.NewSocket(server, nil)) }()
		if _, err := io.WriteString(client, harness.InitLine+"\n"); err != nil {
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
