package httplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/origin"
	"github.com/talaria-go/mcp/client/internal/sse"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

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
	case l.ctx.Err() != nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ending()
	}
	return err
}

// post sends a message and handles the response.
func (l *Link) post(ctx context.Context, s *sending, m *link.Message) error {
	header, session := l.header(m)
	if session == "" && l.isOver() {
		return link.ErrSession // others of the session have found that out
	}
	res, err := l.t.server.Do(ctx, &origin.Request{Method: http.MethodPost, Header: header, Body: m.Body})
	if err != nil {
		return err
	}
	if opens(m) && res.StatusCode == http.StatusOK {
		if err := l.capture(res); err != nil {
			origin.Discard(res.Body)
			return err
		}
	}
	want := wanted(m)
	switch kind := origin.MediaType(res); {
	case res.StatusCode/100 != 2:
		return l.refused(res, m, session)
	case want == nil:
		if kind == sse.MediaType {
			return res.Body.Close() // it may have no end
		}
		origin.Discard(res.Body)
		return nil
	case res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusNoContent:
		origin.Discard(res.Body)
		return fmt.Errorf("the server took the request with status %d and will not answer it", res.StatusCode)
	case kind == "application/json" || kind == "":
		return l.takeJSON(res, m)
	case kind == sse.MediaType:
		return l.takeEvents(ctx, s, res, m, want)
	}
	return origin.WrongType(res, "application/json or "+sse.MediaType)
}

// refused handles a response whose status is not 2xx. A body that answers the
// request is passed on as the answer, except for 401 and 403, where the status
// says more.
func (l *Link) refused(res *http.Response, m *link.Message, session string) error {
	status := origin.Status(res)
	var answer protocol.Message
	protocol.Scan(status.Body, protocol.Limits{}, &answer)
	answers := !m.ID.IsZero() && answer.ID == m.ID && answer.Method == "" && (answer.Error != nil || answer.Result != nil)
	if session != "" && status.Code == http.StatusNotFound && !(answers && codeOf(answer.Error) == protocol.CodeMethodNotFound) {
		l.expired(session)
		return fmt.Errorf("%w: %s", link.ErrSession, status)
	}
	if answers && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden) {
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

// takeJSON handles a response that is a single JSON text.
func (l *Link) takeJSON(res *http.Response, m *link.Message) error {
	defer res.Body.Close()
	limit := l.t.server.MaxMessage()
	if res.ContentLength > int64(limit) {
		return tooLong(limit)
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

// maxKept is how large a buffer may be to be kept for another response.
const maxKept = 64 << 10

// tooLong returns the error for an answer beyond the limit.
func tooLong(limit int) error {
	return fmt.Errorf("the server's answer was not taken: %w", &transport.TooLongError{Limit: limit})
}

// readAll reads a body to its end, into dst if there is room.
func readAll(dst []byte, res *http.Response, limit int) ([]byte, error) {
	if size := res.ContentLength; size >= 0 && int(size) >= cap(dst) {
		dst = make([]byte, 0, size+1)
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := res.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return dst, tooLong(limit)
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, fmt.Errorf("the server's answer broke off after %d bytes: %w", len(dst), err)
		}
	}
}

// answers are the requests that wait for an answer in one exchange; nil if
// there are none.
type answers struct {
	one  protocol.ID
	many map[protocol.ID]bool // of a batch
}

// wanted returns the requests in a message.
func wanted(m *link.Message) *answers {
	if !m.ID.IsZero() {
		return &answers{one: m.ID}
	}
	if m.Method != "" || !protocol.IsBatch(m.Body) {
		return nil
	}
	messages, _ := protocol.ScanBatch(m.Body, protocol.Limits{}, protocol.V20250326, len(m.Body))
	var w *answers
	for _, text := range messages {
		var single protocol.Message
		if protocol.Scan(text, protocol.Limits{}, &single); single.IsRequest() {
			if w == nil {
				w = &answers{many: map[protocol.ID]bool{}}
			}
			w.many[single.ID] = true
		}
	}
	return w
}

// answered reports whether a message of the server was the last that is waited
// for.
func (w *answers) answered(text []byte) bool {
	if w == nil {
		return false
	}
	texts := [][]byte{text}
	if protocol.IsBatch(text) {
		texts, _ = protocol.ScanBatch(text, protocol.Limits{}, protocol.V20250326, len(text))
	}
	for _, text := range texts {
		var m protocol.Message
		protocol.Scan(text, protocol.Limits{}, &m)
		if m.Method != "" || m.ID.IsZero() {
			continue
		}
		if m.ID == w.one {
			return true
		}
		delete(w.many, m.ID)
	}
	return w.one.IsZero() && len(w.many) == 0
}
