package harness

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

func Write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// MemoryWeb is a web server within the process.
type MemoryWeb struct {
	http.Transport
	Dial   func() net.Conn
	Closed chan struct{} // Holds one for each connection that was closed
}

// closing is a connection that tells when the server closes it, which may have
// taken it over from net/http.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan<- struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

func OnWeb(t *testing.T, h http.Handler) *MemoryWeb {
	listener := &MemoryListener{make(chan net.Conn), make(chan struct{})}
	web := &MemoryWeb{Closed: make(chan struct{}, 10)}
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	web.Dial = func() net.Conn {
		client, server := net.Pipe()
		listener.Conns <- &closing{Conn: server, closed: web.Closed}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	web.DialContext = func(context.Context, string, string) (net.Conn, error) { return web.Dial(), nil }
	t.Cleanup(func() {
		web.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return web
}
