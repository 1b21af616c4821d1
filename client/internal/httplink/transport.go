// Package httplink carries a client's messages over streamable HTTP
// (basic/transports of 2025-03-26 to 2025-11-25,
// basic/transports/streamable-http of 2026-07-28).
//
// Each message is a POST, which Send makes on the goroutine of its caller. Its
// answer is JSON or a stream of events (link.go, stream.go); every message in
// it goes to the receiver before Send returns. In legacy revisions there can be
// a further stream, opened with GET after the handshake, for what the server
// sends by itself; one goroutine keeps it open. Headers depend on the revision
// and the session (session.go).
//
// A stream that breaks off is resumed with Last-Event-ID where the revision
// permits that, with growing waits and up to maxAttempts times in a row. An
// answer that is too long fails its own request and no other.
//
// The session, which the answer to initialize names and which a 404 ends, has a
// lock of its own; that of the Link guards the set of Sends. Neither is held
// during an exchange. Close ends all exchanges, waits for their goroutines, and
// then deletes the session.
package httplink

import (
	"context"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/internal/clients/origin"
)

// Transport opens links to one MCP endpoint. Readers and buffers are shared by
// its links.
type Transport struct {
	server   *origin.Server
	noStream bool
	readers  sync.Pool // of *sselink.Reader
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
	l := &Link{t: t, to: to, sends: map[*sending]context.CancelFunc{}, ended: make(chan struct{})}
	l.session.base = t.server.Header()
	l.session.base.Set("Content-Type", "application/json")
	l.session.base.Set("Accept", "application/json, "+sselink.MediaType)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l, nil
}

// reader returns a reader for the events of a response, one that was used
// before if there is any. The caller puts it back when it has done with the
// last event, whose data is in the reader's memory.
func (t *Transport) reader(res *http.Response) *sselink.Reader {
	r, ok := t.readers.Get().(*sselink.Reader)
	if !ok {
		return sselink.NewReader(res.Body, t.server.MaxMessage())
	}
	r.Reset(res.Body)
	return r
}
