package inspector

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener that accepts what is sent to it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestStalledReader: a page that listens and reads nothing does not keep its place.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(Options{Target: "target"})
		defer i.Close()
		conns := make(pipes)
		server := &http.Server{Handler: API(i)}
		defer server.Close()
		go func() { _ = server.Serve(conns) }() // until it is closed
		defer close(conns)
		theirs, ours := net.Pipe()
		defer ours.Close()
		conns <- theirs
		if _, err := io.WriteString(ours, "GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := i.streams.Load(); n != 1 {
			t.Fatalf("%d pages listen", n)
		}
		time.Sleep(streamPatience + time.Second)
		if n := i.streams.Load(); n != 0 {
			t.Errorf("%d pages listen that read nothing", n)
		}
	})
}
