//go:build unix

package redis

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// link is a proxy before a server, which a test can break.
type link struct {
	net.Listener
	to     atomic.Pointer[string]
	mu     sync.Mutex
	conns  []net.Conn
	stuck  chan struct{} // is closed when connections carry nothing more
	gate   sync.RWMutex  // held while they are to wait
	served sync.WaitGroup
}

func newLink(t testing.TB, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{Listener: listener, stuck: make(chan struct{})}
	l.to.Store(&to)
	l.served.Go(l.serve)
	t.Cleanup(func() {
		_ = l.Close()
		l.cut()
		l.served.Wait()
	})
	return l
}

func (l *link) serve() {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", *l.to.Load())
		if err != nil {
			_ = in.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, in, out)
		stuck := l.stuck
		l.mu.Unlock()
		l.served.Go(func() { l.carry(in, out, stuck) })
		l.served.Go(func() { l.carry(out, in, stuck) })
	}
}

// carry copies until one of them is closed, or silently nothing once stuck is.
func (l *link) carry(to, from net.Conn, stuck chan struct{}) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-stuck:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		l.gate.RLock()
		_, failed := to.Write(b[:n])
		l.gate.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

// freeze makes all present connections carry nothing more, and stay open.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.stuck)
	l.stuck = make(chan struct{})
}

// cut closes all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// stall makes all connections wait, and returns what lets them go on.
func (l *link) stall() (goOn func()) {
	l.gate.Lock()
	return l.gate.Unlock
}

// refuse cuts all connections, and refuses new ones until goOn.
func (l *link) refuse() (goOn func()) {
	to := l.to.Swap(new(string))
	l.cut()
	return func() { l.to.Store(to) }
}

// through returns Options with the address of a link in place of a server's.
func through(o Options, s *server, l *link) Options {
	o.URL = strings.Replace(o.URL, s.address(), l.Addr().String(), 1)
	return o
}
