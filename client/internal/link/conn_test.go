package link_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/linktest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// open returns a link and the other end of it.
func open(t *testing.T, to link.Receiver) (link.Link, transport.Conn) {
	t.Helper()
	near, far := transport.Pipe()
	l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return near, nil }).Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return l, far
}

func TestLink(t *testing.T) {
	to := linktest.NewRecorder(t)
	l, far := open(t, to)
	if err := l.Send(t.Context(), linktest.Call(protocol.V20251125, 1, "ping")); err != nil {
		t.Fatal(err)
	}
	if got, err := far.Read(); err != nil || string(got) != `{"jsonrpc":"2.0","id":1,"method":"ping"}` {
		t.Fatalf("%s, %v", got, err)
	}
	for _, text := range []string{`{"id":1}`, `{"id":2}`} {
		if err := far.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := to.Wait(2); got[0].Text != `{"id":1}` || got[1].Text != `{"id":2}` || got[0].During != nil {
		t.Errorf("%v", got)
	}
	for range 2 {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := l.Send(t.Context(), linktest.Call(protocol.V20251125, 2, "ping")); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if lost := to.Losses(); len(lost) > 0 {
		t.Errorf("lost by Close: %v", lost)
	}
}

func TestLinkLost(t *testing.T) {
	to := linktest.NewRecorder(t)
	l, far := open(t, to)
	_ = far.Close()
	if err := to.WaitLost(); !errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("lost by %v", err)
	}
	_ = l.Close(t.Context())
	if lost := to.Losses(); len(lost) != 1 {
		t.Errorf("lost %d times", len(lost))
	}
}

func TestLinkOpenFails(t *testing.T) {
	broken := errors.New("broken")
	l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return nil, broken }).Open(t.Context(), linktest.NewRecorder(t))
	if l != nil || err != broken {
		t.Errorf("%v, %v", l, err)
	}
}

// A peer that does not read keeps neither Send nor Close for longer than their
// contexts allow.
func TestLinkStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe() // takes nothing that is not read
		in, _ := io.Pipe()
		conn := transport.NewStream(in, w, nil)
		l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return conn, nil }).Open(t.Context(), linktest.NewRecorder(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		if err := l.Send(ctx, linktest.Call(protocol.V20251125, 1, "ping")); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second {
			t.Errorf("Send: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		if err := l.Close(t.Context()); err != nil || time.Since(begin) > 2*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(begin))
		}
		_ = r.Close()
	})
}

// stuck is a connection to a peer that does not read until it is released.
type stuck struct {
	transport.Conn
	reads chan struct{}
}

func (c stuck) Write([]byte) error { <-c.reads; return nil }
func (c stuck) Flush() error       { <-c.reads; return nil }

func openStuck(t *testing.T) (link.Link, chan struct{}) {
	near, _ := transport.Pipe()
	reads := make(chan struct{})
	l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return stuck{near, reads}, nil }).Open(t.Context(), linktest.NewRecorder(t))
	if err != nil {
		t.Fatal(err)
	}
	return l, reads
}

func sized(id int64, size int) *link.Message {
	m := linktest.Call(protocol.V20251125, id, "ping")
	m.Body = bytes.Repeat([]byte("x"), size)
	return m
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// However many messages a peer does not read, 4 MiB of them and one more are
// kept for it; what waits beyond that leaves when the peer reads again.
func TestLinkUnread(t *testing.T) {
	for _, size := range []int{40, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const calls = 1000
				l, reads := openStuck(t)
				goroutines, heap := runtime.NumGoroutine(), heapInUse()
				for i := range calls {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if err := l.Send(ctx, sized(int64(i), size)); !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("Send %d: %v", i, err)
					}
					cancel()
				}
				synctest.Wait()
				// Some of the runtime's own may have begun meanwhile.
				if got, most := runtime.NumGoroutine()-goroutines, 4<<20/(size+8<<10)+1+8; got > most {
					t.Errorf("%d goroutines more after %d calls, want at most %d", got, calls, most)
				}
				if got := heapInUse() - heap; int64(got) > 6<<20 {
					t.Errorf("%d bytes more are in use after %d calls", got, calls)
				}
				waits := make(chan error, 1)
				go func() { waits <- l.Send(context.Background(), sized(calls, size)) }()
				synctest.Wait()
				close(reads)
				if err := <-waits; err != nil {
					t.Errorf("when the peer reads again: %v", err)
				}
				_ = l.Close(t.Context())
			})
		})
	}
}

// Close ends the Sends that wait until there is room.
func TestLinkCloseUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reads := openStuck(t)
		const calls, room = 10, 4
		ended := make(chan error, calls)
		for i := range calls {
			go func() { ended <- l.Send(context.Background(), sized(int64(i), 1<<20)) }()
		}
		synctest.Wait()
		_ = l.Close(t.Context())
		for range calls - room {
			if err := <-ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Send: %v", err)
			}
		}
		close(reads)
	})
}

// lastWords is a connection whose peer writes when it is to end, and waits until that is read.
type lastWords struct {
	transport.Conn
	peer transport.Conn
}

func (c *lastWords) Shutdown(context.Context) error {
	for range 1000 { // more than a Pipe holds
		if err := c.peer.Write([]byte("{}")); err != nil {
			return err
		}
	}
	return c.Close()
}

// What a peer writes after Close has begun is read, and not passed on.
func TestLinkCloseReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		to := linktest.NewRecorder(t)
		l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return &lastWords{near, far}, nil }).Open(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := l.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Close took %s: %v", time.Since(began), err)
		}
		if got := to.Texts(); len(got) > 0 {
			t.Errorf("%d messages are passed on", len(got))
		}
	})
}

// The request is told whose answer was too long, wherever its id stands, and
// the others go on. Whose it was that has no id, nobody knows: no request fails.
func TestLinkTooLong(t *testing.T) {
	big := strings.Repeat("x", 10_000)
	tests := []struct {
		text string
		id   protocol.ID
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"text":"` + big + `"}}`, protocol.NewID(7)},
		{`{"result":{"text":"` + big + `"},"jsonrpc":"2.0","id":7}`, protocol.NewID(7)},
		{`{ "result" : {"text":"` + big + `"}, "jsonrpc" : "2.0" , "id" : "a b" }`, protocol.NewID("a b")},
		{`{"id":"x","result":{"text":"` + big + `","id":7}}`, protocol.NewID("x")},
		{`{"result":{"text":"` + big + `","id":7}}`, protocol.ID{}},
		{`{"result":{"text":"` + big + `\"id\":7}`, protocol.ID{}},
		{`{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"text":"` + big + `"},"id":7}`, protocol.ID{}},
		{`{"params":{"text":"` + big + `"},"method":"sampling/createMessage","id":7}`, protocol.ID{}},
		{big, protocol.ID{}},
	}
	for _, tt := range tests {
		to := linktest.NewRecorder(t)
		conn := transport.NewStream(strings.NewReader(tt.text+"\n{}\n"), io.Discard, &transport.StreamOptions{MaxMessage: 5000})
		l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return conn, nil }).Open(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		to.Wait(1)
		if _, ok := errors.AsType[*transport.TooLongError](to.WaitFailed(tt.id)); !ok {
			t.Errorf("%.60s: %v", tt.text, to.WaitFailed(tt.id))
		}
		_ = l.Close(t.Context())
	}
}

// Many requests under way at once are all written, whole.
func TestLinkMany(t *testing.T) {
	const n = 10_000
	r, w := io.Pipe()
	in, out := io.Pipe()
	conn := transport.NewStream(in, w, nil)
	to := linktest.NewRecorder(t)
	l, err := link.OverConn("", func(context.Context) (transport.Conn, error) { return conn, nil }).Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // answers backwards, when all have come
		lines := bufio.NewScanner(r)
		var answers []string
		for len(answers) < n && lines.Scan() {
			answers = append(answers, lines.Text())
		}
		for i := range answers {
			fmt.Fprintln(out, answers[n-1-i])
		}
	}()
	sent := make(chan error, n)
	for i := range n {
		go func() { sent <- l.Send(t.Context(), linktest.Call(protocol.V20251125, int64(i), "ping")) }()
	}
	for range n {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, m := range to.Wait(n) {
		seen[m.Text] = true
	}
	if len(seen) != n {
		t.Errorf("%d different answers, want %d", len(seen), n)
	}
	_ = l.Close(t.Context())
}
