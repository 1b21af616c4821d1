// Package httplink carries a client's messages over streamable HTTP
// (basic/transports of 2025-03-26 to 2025-11-25,
// basic/transports/streamable-http of 2026-07-28).
//
// Each message is a POST, which Send makes on the goroutine of its caller. Its
// answer is JSON or a stream of events (post.go, stream.go); every message in
// it goes to the receiver before Send returns. In legacy revisions there can be
// a further stream, opened with GET after the handshake, for what the server
// sends by itself; one goroutine keeps it open. Headers depend on the revision
// and the session (headers.go).
//
// A stream that breaks off is resumed with Last-Event-ID where the revision
// permits that, with growing waits and up to maxAttempts times in a row. An
// answer that is too long fails its own request and no other.
//
// mu guards the session, which the answer to initialize names and which a 404
// ends, and the set of Sends. It is not held during an exchange. Close ends all
// exchanges, waits for their goroutines, and then deletes the session.
package httplink

import (
	"context"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/origin"
	"github.com/talaria-go/mcp/client/internal/sse"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/transport"
)

// Transport opens links to one MCP endpoint. Readers and buffers are shared by
// its links.
type Transport struct {
	server   *origin.Server
	noStream bool
	readers  sync.Pool // of *sse.Reader
	buffers  sync.Pool // of *[]byte
}

// New returns a Transport. With noStream no link opens the stream for what the
// server sends by itself.
func New(server *origin.Server, noStream bool) *Transport {
	return &Transport{server: server, noStream: noStream}
}

// Fallback implements link.Fallback.
func (t *Transport) Fallback() link.Transport { return sselink.New(t.server) }

// Open implements link.Transport. Nothing is sent before there is a message.
func (t *Transport) Open(_ context.Context, to link.Receiver) (link.Link, error) {
	l := &Link{t: t, to: to, base: t.server.Header(), sends: map[*sending]context.CancelFunc{}, ended: make(chan struct{})}
	l.base.Set("Content-Type", "application/json")
	l.base.Set("Accept", "application/json, "+sse.MediaType)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l, nil
}

// reader returns a reader for the events of a response. The caller puts it
// back.
func (t *Transport) reader(res *http.Response) *sse.Reader {
	r, ok := t.readers.Get().(*sse.Reader)
	if !ok {
		return sse.NewReader(res.Body, t.server.MaxMessage())
	}
	r.Reset(res.Body)
	return r
}

// Link is a link.Link over streamable HTTP. It is open until Close. over is set
// when the server has answered that it does not know the session any more; from
// then on every Send fails with link.ErrSession.
type Link struct {
	t      *Transport
	to     link.Receiver
	base   http.Header     // of every POST
	ctx    context.Context // ends with the link
	cancel context.CancelCauseFunc

	goroutines sync.WaitGroup // Sends too

	mu        sync.Mutex
	sends     map[*sending]context.CancelFunc
	closed    bool
	listening bool
	over      bool    // the server does not know the session any more
	state     headers // of the session
	ended     chan struct{}
}

// sending identifies a Send under way. It has a size, so that two of them have
// different addresses.
type sending struct{ _ byte }

var _ interface {
	link.Link
	link.Synchronous
} = (*Link)(nil)

// Synchronous implements link.Synchronous.
func (*Link) Synchronous() bool { return true }

// begin registers a Send, so that Close can end it and wait for it.
func (l *Link) begin(ctx context.Context) (context.Context, *sending, error) {
	var cancel context.CancelFunc
	if timeout := l.t.server.Timeout(); timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	s := &sending{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		cancel()
		return nil, nil, l.ending()
	}
	l.sends[s] = cancel
	l.goroutines.Add(1)
	return ctx, s, nil
}

// ending returns the error of a Send that Close ends, or that comes later:
// link.ErrSession if the session is over, whoever closes the link for that.
// l.mu is held.
func (l *Link) ending() error {
	if l.over {
		return link.ErrSession
	}
	return transport.ErrClosed
}

// end removes a Send that begin has registered.
func (l *Link) end(s *sending) {
	l.mu.Lock()
	l.sends[s]()
	delete(l.sends, s)
	l.mu.Unlock()
	l.goroutines.Done()
}

// abort ends the exchange of a Send.
func (l *Link) abort(s *sending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.sends[s]; cancel != nil {
		cancel()
	}
}

// Close implements link.Link. It ends what is under way, and the session.
func (l *Link) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	session := l.state.session
	l.cancel(transport.ErrClosed) // first, so that a Send that ends knows why
	for _, cancel := range l.sends {
		cancel()
	}
	l.mu.Unlock()
	defer close(l.ended)
	l.goroutines.Wait()
	defer l.t.server.CloseIdle()
	if session == "" {
		return nil
	}
	header := l.bare()
	delete(header, "Accept")
	res, err := l.t.server.Do(ctx, &origin.Request{Method: http.MethodDelete, Header: header})
	if err != nil {
		return err
	}
	if res.StatusCode/100 == 2 || res.StatusCode == http.StatusMethodNotAllowed || res.StatusCode == http.StatusNotFound {
		origin.Discard(res.Body)
		return nil
	}
	return origin.Status(res)
}
