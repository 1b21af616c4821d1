package httplink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Link is a link.Link over streamable HTTP. It is open until Close. Once the
// server has answered that it does not know the session any more, every Send
// fails with link.ErrSession. mu guards the fields below it; sends has the
// exchanges in progress, and what cancels each.
type Link struct {
	t       *Transport
	to      link.Receiver
	session session
	ctx     context.Context // ends with the link
	cancel  context.CancelCauseFunc

	goroutines sync.WaitGroup // Sends too

	mu        sync.Mutex
	sends     map[*sending]context.CancelFunc
	closed    bool
	listening bool
	idle      chan struct{} // closed when the last Send ends; nil unless Close waits for that
	ended     chan struct{}
}

// sending identifies a Send in progress. It has a size, so that two of them
// have different addresses.
type sending struct{ _ byte }

var _ interface {
	link.Link
	link.Synchronous
} = (*Link)(nil)

// Synchronous implements link.Synchronous.
func (*Link) Synchronous() bool { return true }

// SessionID implements link.Sessioned.
func (l *Link) SessionID() string { return l.session.current() }

// Send implements link.Link. It returns when the answer has been passed to the
// receiver. After notifications/initialized it also opens the stream for what
// the server sends by itself.
func (l *Link) Send(ctx context.Context, m *link.Message) error {
	own, s, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer l.end(s)
	err = l.post(own, s, m)
	switch {
	case err == nil:
		if m.Method == protocol.MethodInitialized && !m.Modern {
			l.listen(ctx)
		}
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, link.ErrUnprocessed):
		return err
	case l.session.isOver() && l.ctx.Err() != nil:
		return link.ErrSession
	case l.ctx.Err() != nil:
		return transport.ErrClosed
	}
	return err
}

// post sends a message and handles the response. It returns nil when all that
// the message asks for has been passed on to the receiver; a request that the
// server will not answer is an error.
func (l *Link) post(ctx context.Context, s *sending, m *link.Message) error {
	header, session := l.session.header(m)
	if session == "" && l.session.isOver() {
		return link.ErrUnprocessed // others of the session have found that out
	}
	res, err := l.t.server.Do(ctx, &origin.Request{Method: http.MethodPost, Header: header, Body: m.Body})
	if err != nil {
		return err
	}
	if opens(m) && res.StatusCode == http.StatusOK {
		if err := l.session.capture(res); err != nil {
			origin.Discard(res.Body)
			return err
		}
	}
	want := wanted(m)
	switch kind := origin.MediaType(res); {
	case res.StatusCode/100 != 2:
		return l.refused(res, m, session)
	case want == nil:
		if kind == sselink.MediaType {
			return res.Body.Close() // it may have no end
		}
		origin.Discard(res.Body)
		return nil
	case res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusNoContent:
		status := origin.Status(res)
		status.Err = errors.New("it took the request and will not answer it")
		return status
	case kind == "application/json" || kind == "":
		return l.takeJSON(res, m)
	case kind == sselink.MediaType:
		return (&stream{l: l, during: m, want: want, sending: s}).answer(ctx, res)
	}
	return origin.WrongType(res, "application/json or "+sselink.MediaType)
}

// refused handles a response whose status is not 2xx. A body that answers the
// request is passed on as the answer, except where the status says more: for 401
// and 403, and, while a connection is opened, for one that may pass.
func (l *Link) refused(res *http.Response, m *link.Message, session string) error {
	status := origin.Status(res)
	var answer protocol.Message
	wire.Scan(status.Body, &answer)
	answers := !m.ID.IsZero() && answer.ID.Canonical() == m.ID.Canonical() && answer.Method == "" && (answer.Error != nil || answer.Result != nil)
	if session != "" && forgotten(status, answers, answer.Error) {
		l.session.expired(session)
		return fmt.Errorf("%w: %s", link.ErrUnprocessed, status)
	}
	opening := m.Method == protocol.MethodDiscover || m.Method == protocol.MethodInitialize
	if answers && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden || opening && status.Passing()) {
		// Here the status says more than the answer.
		if fault, err := origin.ParseFault(answer.Error); err == nil {
			status.Err, status.Answers = fault, true
			return status
		}
	}
	if answers {
		l.to.Receive(status.Body, m)
		return nil
	}
	return status
}

// forgotten reports whether a refusal means that the server does not have the session:
// status 404, as the specification wants it, or 400 or 410 with a text that says so, as
// many servers answer. answers is whether the body answers the request, with fault.
func forgotten(status *origin.StatusError, answers bool, fault []byte) bool {
	code := codeOf(fault)
	switch status.Code {
	case http.StatusNotFound:
		return !answers || code != protocol.CodeMethodNotFound
	case http.StatusBadRequest, http.StatusGone:
	default:
		return false
	}
	if answers && code != protocol.CodeSessionNotFound && code != protocol.CodeInvalidRequest && (code < -32099 || code > -32000) {
		return false // an answer of the method
	}
	text := strings.ToLower(string(status.Body[:min(len(status.Body), 1<<10)]))
	return strings.Contains(text, "session") && slices.ContainsFunc([]string{"not found", "no valid", "invalid", "unknown", "expired", "terminated", "does not exist", "no longer"},
		func(reason string) bool { return strings.Contains(text, reason) })
}

// takeJSON handles a response that is a single JSON text, a message or a batch.
// It is read into a buffer that is used again, which is why receivers may not
// keep it.
func (l *Link) takeJSON(res *http.Response, m *link.Message) error {
	defer res.Body.Close()
	limit := l.t.server.MaxMessage()
	if res.ContentLength > int64(limit) {
		return tooLong(&transport.TooLongError{Limit: limit, Size: res.ContentLength})
	}
	buffer, ok := l.t.buffers.Get().(*[]byte)
	if !ok {
		buffer = &[]byte{}
	}
	text, err := readAll((*buffer)[:0], res, limit)
	if cap(text) <= maxKept {
		*buffer = text[:0]
		defer l.t.buffers.Put(buffer)
	}
	if err != nil {
		return err
	}
	l.to.Receive(text, m)
	return nil
}

// listen starts the stream for what the server sends by itself, once. It
// returns when the request for it has been written, or after longestAsk, so
// that requests which make the server send something come later.
func (l *Link) listen(ctx context.Context) {
	l.mu.Lock()
	if l.t.noStream || l.closed || l.listening {
		l.mu.Unlock()
		return
	}
	l.listening = true
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	l.goroutines.Go(func() {
		defer once()
		(&stream{l: l}).follow(httptrace.WithClientTrace(attend.Never(l.ctx), &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { once() },
		}))
	})
	l.mu.Unlock()
	timer := time.NewTimer(longestAsk)
	defer timer.Stop()
	select {
	case <-asked:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin registers a Send, so that Close can end it and wait for it. The context
// that it returns ends with ctx, after the timeout of the user's http.Client if
// that has one, and with the link. end must be called.
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
		if l.session.isOver() {
			return nil, nil, link.ErrUnprocessed // the code that closes the link for that
		}
		return nil, nil, transport.ErrClosed
	}
	l.sends[s] = cancel
	l.goroutines.Add(1)
	return ctx, s, nil
}

// end removes a Send that begin has registered.
func (l *Link) end(s *sending) {
	l.mu.Lock()
	l.sends[s]()
	delete(l.sends, s)
	if len(l.sends) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
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

// Close implements link.Link. It ends what is in progress, and the session. If
// the server has ended that, each Send is about to get its answer, such as that
// it was not processed, and Close first waits for these.
func (l *Link) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	session := l.session.current()
	if l.session.isOver() && len(l.sends) > 0 {
		idle := make(chan struct{})
		l.idle = idle
		l.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
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
	header := l.session.bare()
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
