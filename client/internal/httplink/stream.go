package httplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// How often and how fast a broken stream is opened again, and how long other
// things about streams may take.
const (
	maxAttempts = 5                      // in a row without an event
	firstWait   = time.Second            // times the square of the attempt
	maxWait     = 15 * time.Second       // unless the server asks for more
	minWait     = 10 * time.Millisecond  // even if the server asks for less; times the square of brief, up to firstWait
	maxBrief    = 10                     // with it minWait becomes firstWait
	longestAsk  = time.Second            // to ask for the stream that is the server's own
	lastBytes   = 100 * time.Millisecond // for a stream to end after its answer
)

// stream is one stream of events, over as many connections as it takes. It is
// used by one goroutine. failures and brief decide how long to wait before the
// next connection.
type stream struct {
	l        *Link
	during   *link.Message // the request that it answers; nil for the stream that is the server's own
	want     *answers
	sending  *sending
	lastID   string
	retry    time.Duration
	hasRetry bool
	failures int // in a row
	brief    int // connections in a row that lasted less than firstWait, with events or without
}

// errEnded is the end of a connection in order before everything wanted has
// come.
var errEnded = fmt.Errorf("the stream ended: %w", io.ErrUnexpectedEOF)

// read passes on the events of one connection and closes it. It returns nil if
// nothing more is wanted, and errEnded if the connection ended in order before
// that.
func (s *stream) read(res *http.Response) error {
	r := s.l.t.reader(res)
	r.SetLastID(s.lastID)
	begin := time.Now()
	defer func() {
		_ = res.Body.Close()
		if s.brief++; time.Since(begin) >= firstWait {
			s.brief = 0
		}
		if retry, ok := r.Retry(); ok {
			s.retry, s.hasRetry = retry, true
		}
		s.l.t.readers.Put(r)
	}()
	for {
		event, err := r.Next()
		if long, ok := errors.AsType[*transport.TooLongError](err); ok {
			failure := tooLong(long)
			text, _ := long.Message()
			if m, _ := protocol.Decode(text); s.want != nil && m.Method == "" { // an answer, as far as is known
				return failure
			}
			link.TooLong(s.l.to, long)
			continue
		}
		if errors.Is(err, io.EOF) {
			return errEnded
		}
		if err != nil {
			return err
		}
		s.lastID, s.failures = r.LastID(), 0
		if len(event.Data) == 0 || event.Type != "message" {
			continue
		}
		done := s.want.answered(event.Data)
		s.l.to.Receive(event.Data, s.during)
		if done {
			s.drain(res)
			return nil
		}
	}
}

// drain reads to the end of a stream that has delivered its answer, so that the
// connection can be used again.
func (s *stream) drain(res *http.Response) {
	timer := time.AfterFunc(lastBytes, func() { s.l.abort(s.sending) })
	defer timer.Stop()
	origin.Discard(res.Body)
}

// wait waits until it is time to connect again: as long as the server asks (the
// field retry), longer after each failure, and longer after each brief
// connection, so that no server is asked all the time.
func (s *stream) wait(ctx context.Context) error {
	n := time.Duration(min(max(s.failures, 1), maxAttempts))
	d := min(firstWait*n*n, maxWait)
	if s.hasRetry && (n == 1 || s.retry > d) {
		b := time.Duration(min(max(s.brief, 1), maxBrief))
		d = max(s.retry, minWait*b*b)
	}
	return pause.For(ctx, d)
}

// get connects with GET, after the last event if there was one. lasting is set
// if another attempt would be of no use.
func (s *stream) get(ctx context.Context) (res *http.Response, lasting bool, err error) {
	header := s.l.session.bare()
	header["Accept"] = []string{sselink.MediaType}
	if s.lastID != "" {
		header[eventHeader] = []string{s.lastID}
	}
	res, err = s.l.t.server.Do(ctx, &origin.Request{Method: http.MethodGet, Header: header})
	if err != nil {
		_, refused := errors.AsType[*origin.StatusError](err) // a redirect
		return nil, refused || errors.Is(err, attend.ErrUnauthorized), err
	}
	session := header[sessionHeader]
	switch {
	case res.StatusCode == http.StatusOK && origin.MediaType(res) == sselink.MediaType:
		return res, false, nil
	case res.StatusCode == http.StatusOK:
		return nil, true, origin.WrongType(res, sselink.MediaType)
	case res.StatusCode == http.StatusNotFound && len(session) > 0:
		return nil, true, fmt.Errorf("%w: %s", link.ErrSession, origin.Status(res))
	}
	status := origin.Status(res)
	busy := status.Code >= 500 && status.Code != http.StatusNotImplemented ||
		status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout
	return nil, !busy, status
}

// answer handles a response that is a stream of events. Where the revision
// permits it and events have ids, a stream that breaks off is resumed
// (basic/transports of 2025-03-26 to 2025-11-25, Resumability and Redelivery).
func (s *stream) answer(ctx context.Context, res *http.Response) error {
	m := s.during
	resumable := !m.Modern && (m.Revision.Has(protocol.FeatureResumableStreams) || m.Method == protocol.MethodInitialize)
	for {
		err := s.read(res)
		_, long := errors.AsType[*transport.TooLongError](err)
		if err == nil || long || ctx.Err() != nil {
			return err
		}
		if !resumable || s.lastID == "" {
			return fmt.Errorf("the server's answer broke off before the response: %w", err)
		}
		for res = nil; res == nil; {
			if s.failures++; s.failures > maxAttempts {
				return fmt.Errorf("the server's answer broke off before the response, and %d attempts to resume it failed: %w", maxAttempts, err)
			}
			if err := s.wait(ctx); err != nil {
				return err
			}
			var lasting bool
			if res, lasting, err = s.get(ctx); lasting {
				return fmt.Errorf("the server's answer broke off before the response, and cannot be resumed: %w", err)
			}
		}
	}
}

// follow keeps the stream for what the server sends by itself open until the
// link is closed or the server offers none. A server that had one and cannot be
// reached any more loses the link. It runs on the goroutine that Link.listen
// starts; ctx is that of the link, with a trace that tells listen when the
// request is written.
func (s *stream) follow(ctx context.Context) {
	had := false
	for {
		res, lasting, err := s.get(ctx)
		if err == nil {
			if to, ok := s.l.to.(link.Gapper); ok && had && s.lastID == "" {
				to.Gap() // with an id the server sends again what was lost
			}
			had = true
			begin := time.Now()
			err = s.read(res)
			if time.Since(begin) >= maxWait {
				s.failures = 0 // quiet, but well
			}
		}
		s.failures++
		switch {
		case s.l.ctx.Err() != nil:
			return
		case had && (errors.Is(err, link.ErrSession) || errors.Is(err, attend.ErrUnauthorized)), had && s.failures > maxAttempts && !errors.Is(err, errEnded):
			s.l.to.Lost(fmt.Errorf("the stream of what the server sends is lost: %w", err))
			return
		case had && lasting && s.lastID != "":
			s.lastID = "" // the server has nothing more of that stream
		case had && lasting:
			s.l.to.Lost(fmt.Errorf("the server takes no stream any more: %w", err))
			return
		case lasting, !had && s.failures > maxAttempts:
			return // most servers have none
		}
		if s.wait(s.l.ctx) != nil {
			return
		}
	}
}
