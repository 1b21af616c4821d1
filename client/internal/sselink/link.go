// Package sselink carries a client's messages over HTTP with server-sent
// events, the transport of 2024-11-05 (basic/transports of that revision).
//
// The client opens one stream with GET. Its first event names the address to
// which messages are posted; answers arrive as events of the stream, so Send
// returns when a message has been accepted. The address must be of the same
// origin as the stream.
//
// One goroutine reads the stream. If it breaks, the goroutine opens it again,
// up to maxAttempts times in a row. A server that then names another address
// has begun a new session, which ends the link with link.ErrSession.
package sselink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// How often and how fast a broken stream is opened again.
const (
	maxAttempts = 5
	firstWait   = time.Second // times the square of the attempt
	maxWait     = 15 * time.Second
	attemptTime = 30 * time.Second // for the stream to say where messages go
)

// Transport opens links to one SSE endpoint.
type Transport struct{ server *origin.Server }

// New returns a Transport.
func New(server *origin.Server) *Transport { return &Transport{server} }

// Link is a link.Link over HTTP with server-sent events. mu guards the fields
// below it; the others do not change after Open.
type Link struct {
	server *origin.Server
	to     link.Receiver
	post   *url.URL // where messages go
	header http.Header
	ctx    context.Context // ends with the link
	cancel context.CancelCauseFunc

	goroutines sync.WaitGroup // Sends too

	mu     sync.Mutex
	closed bool
	over   bool // the server does not know the session any more
	ended  chan struct{}
}

// connection is one stream of events, on which the server has said where
// messages go. A link has one at a time, which belongs to the goroutine that
// reads; close must be called when it has ended.
type connection struct {
	res    *http.Response
	events *Reader
	post   *url.URL
	cancel context.CancelCauseFunc // of the exchange
}

// close ends the exchange, and with it a read of events that is in progress.
func (c *connection) close() {
	_ = c.res.Body.Close()
	c.cancel(nil)
}

// Open implements link.Transport. It returns when the server has said where
// messages go.
func (t *Transport) Open(ctx context.Context, to link.Receiver) (link.Link, error) {
	l := &Link{server: t.server, to: to, header: t.server.Header(), ended: make(chan struct{})}
	l.header.Set("Content-Type", "application/json")
	l.header.Set("Accept", "application/json, "+MediaType)
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	c, err := l.connect(l.ctx, "")
	if !stop() && err == nil {
		c.close()
		err = context.Cause(ctx)
	}
	if err != nil {
		l.cancel(err)
		return nil, err
	}
	l.post = c.post
	l.goroutines.Go(func() { l.read(c) })
	return l, nil
}

// errSilent is the cause of an attempt that took too long. To errors.Is it is a
// deadline that was exceeded, as other timeouts are.
var errSilent = fmt.Errorf("no answer for %v: %w", attemptTime, context.DeadlineExceeded)

// connect opens the stream and waits for the event "endpoint", for up to
// attemptTime. ctx is l.ctx or one below it.
func (l *Link) connect(ctx context.Context, lastID string) (c *connection, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := attend.AfterFunc(ctx, attemptTime, func() { cancel(errSilent) })
	defer func() {
		if !stop() && err == nil {
			c.close()
			err = errSilent
		}
		if err != nil {
			cancel(err)
		}
	}()
	header := l.server.Header()
	header.Set("Accept", MediaType)
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	res, err := l.server.Do(ctx, &origin.Request{Method: http.MethodGet, Header: header})
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, origin.Status(res)
	case origin.MediaType(res) != MediaType:
		return nil, origin.WrongType(res, MediaType)
	}
	c = &connection{res: res, events: NewReader(res.Body, l.server.MaxMessage()), cancel: cancel}
	c.events.SetLastID(lastID)
	for c.post == nil && err == nil {
		var event Event
		if event, err = c.events.Next(); err == nil && event.Type == "endpoint" {
			c.post, err = l.server.Resolve(string(event.Data))
		}
	}
	if err != nil {
		_ = res.Body.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("the server did not say where messages go (event endpoint): %w", err)
	}
	return c, nil
}

// read passes on events until the link is closed or lost. It is the link's
// goroutine.
func (l *Link) read(c *connection) {
	failures := 0 // in a row
	for {
		begin := time.Now()
		heard, err := l.take(c)
		if l.ctx.Err() != nil {
			return
		}
		if heard || time.Since(begin) >= maxWait { // quiet, but well
			failures = 0
		}
		if c, err = l.again(c.events.LastID(), &failures, err); err != nil {
			if l.ctx.Err() == nil {
				l.to.Lost(err)
			}
			return
		}
	}
}

// take passes on the events of one connection and closes it. It reports whether
// there was a message.
func (l *Link) take(c *connection) (heard bool, err error) {
	defer c.close()
	for {
		event, err := c.events.Next()
		switch long, ok := errors.AsType[*transport.TooLongError](err); {
		case ok:
			long.Option = origin.LimitOption
			link.TooLong(l.to, long)
			continue
		case errors.Is(err, io.EOF):
			return heard, fmt.Errorf("the server ended it: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return heard, err
		}
		if event.Type == "message" && len(event.Data) > 0 {
			heard = true
			l.to.Receive(event.Data, nil)
		}
	}
}

// again connects after the stream has broken because of cause. A stream that
// opens and breaks at once counts as a failure too: failures counts those in a
// row, and only read sets it back. An error ends the link; it is that of l.ctx,
// link.ErrSession, or the last failure of maxAttempts.
func (l *Link) again(lastID string, failures *int, cause error) (*connection, error) {
	for *failures < maxAttempts {
		*failures++
		n := time.Duration(*failures)
		if pause.For(l.ctx, min(firstWait*n*n, maxWait)) != nil {
			return nil, l.ctx.Err()
		}
		c, err := l.connect(attend.Never(l.ctx), lastID)
		if errors.Is(err, attend.ErrUnauthorized) {
			return nil, err
		}
		if err != nil {
			cause = err
			continue
		}
		if *c.post != *l.post {
			c.close()
			return nil, fmt.Errorf("the server's stream broke (%w), and it has begun another: %w", cause, link.ErrSession)
		}
		return c, nil
	}
	return nil, fmt.Errorf("the server's stream is lost, after %d attempts to open it again: %w", maxAttempts, cause)
}

// Send implements link.Link. It returns when the server has accepted the
// message; the answer comes on the stream. It does not begin after Close, which
// aborts those in progress.
func (l *Link) Send(ctx context.Context, m *link.Message) error {
	l.mu.Lock()
	if l.closed {
		defer l.mu.Unlock()
		return l.ending()
	}
	l.goroutines.Add(1)
	l.mu.Unlock()
	defer l.goroutines.Done()
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	err := l.send(own, m)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case l.ctx.Err() != nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ending()
	}
	return err
}

// ending returns the error of a Send that Close ends, or that comes later. l.mu
// is held.
func (l *Link) ending() error {
	if l.over {
		return link.ErrSession
	}
	return transport.ErrClosed
}

// send posts a message. A 404 to anything but initialize means that the server
// does not know the session any more: the link is of no more use then.
func (l *Link) send(ctx context.Context, m *link.Message) error {
	header := l.header.Clone()
	if m.Revision.Has(protocol.FeatureVersionHeader) && m.Method != protocol.MethodInitialize {
		header.Set("MCP-Protocol-Version", m.Revision.String())
	}
	for name, values := range m.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	res, err := l.server.Do(ctx, &origin.Request{Method: http.MethodPost, URL: l.post, Header: header, Body: m.Body})
	if err != nil {
		return err
	}
	if res.StatusCode/100 == 2 {
		origin.Discard(res.Body)
		return nil
	}
	status := origin.Status(res)
	if status.Code == http.StatusNotFound && m.Method != protocol.MethodInitialize {
		l.mu.Lock()
		l.over = true
		l.mu.Unlock()
		return fmt.Errorf("%w: %s", link.ErrUnprocessed, status)
	}
	return status
}

// Close implements link.Link: the end of the stream ends the session.
func (l *Link) Close(context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.cancel(transport.ErrClosed)
	l.goroutines.Wait()
	l.server.CloseIdle()
	close(l.ended)
	return nil
}
