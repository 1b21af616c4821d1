package streamable

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
)

// exchange writes one HTTP response. Its states are: new; started, when a
// message ahead of the answer has made it a stream of events; ended, when the
// answer is out; and gone, when nothing may be written at all, because the
// handler has returned or the client was asked to reconnect. An answer to an
// exchange that has not started is plain JSON, if the client accepts that.
//
// e.mu orders writes and guards the states; it is held while a write waits for
// the client, for timeout at most.
type exchange struct {
	w       http.ResponseWriter
	reading reading                  // its place in the list of the bodyReader
	control *http.ResponseController // made when it is first needed
	timeout time.Duration            // for each write; 0 means none
	session string                   // that a stream names in its header; "" for none
	json    bool                     // the client takes JSON
	events  bool                     // the client takes events
	shared  bool                     // the connection carries other responses, too

	mu      sync.Mutex
	started bool // the response is a stream
	ended   bool // the answer is out
	gone    bool // nothing may be written any more

	resuming resuming
	line     *line // nil unless the answer may wait
	keep     bool  // the connection stays with net/http
}

// Send writes a message as an event, or hands it to the stream that keeps it
// for a client that may come back. The first message starts the stream.
func (e *exchange) Send(message []byte) error {
	if e.resuming.can() {
		if err := e.writable(); err != nil {
			return err
		}
		if stream := e.resuming.stream(e); stream != nil {
			return stream.Send(message)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return wire.ErrAnswered
	}
	if !e.events {
		return wire.ErrNoStream
	}
	e.start()
	return e.event("", message)
}

// start sends the header of a stream, unless it was sent. The caller holds
// e.mu.
func (e *exchange) start() {
	if e.started {
		return
	}
	e.started = true
	header := e.w.Header()
	header["Content-Type"] = eventHeaders[0:1:1]
	header["Cache-Control"] = eventHeaders[1:2:2]
	header["X-Accel-Buffering"] = eventHeaders[2:3:3] // or proxies hold events back
	if e.session != "" {
		header.Set(headerSession, e.session)
	}
	if e.line != nil && !e.keep && !e.shared {
		header["Connection"] = eventHeaders[3:4:4] // it will be taken over, and no request may come on it when the stream ends
	}
	e.w.WriteHeader(http.StatusOK)
}

// eventHeaders are values of headers, shared by all streams.
var eventHeaders = []string{"text/event-stream", "no-cache, no-transform", "no", "close"}

// event writes one event and flushes it; a nil message makes one without data.
// e.mu is held.
func (e *exchange) event(id string, message []byte) error {
	buffer := buffers.Get().(*[]byte) // a stream that waits keeps none
	defer buffers.Put(buffer)
	text := (*buffer)[:0]
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	if message != nil {
		text = append(text, "event: message\n"...)
	}
	text = append(text, "data: "...)
	start := len(text)
	text = append(text, message...)
	for i, c := range text[start:] {
		if c == '\n' || c == '\r' {
			text[start+i] = ' ' // in JSON the same, in an event the end of the line
		}
	}
	text = append(text, "\n\n"...)
	if cap(text) <= maxPooled {
		*buffer = text
	}
	return e.raw(text)
}

// raw writes text of the stream and flushes it. e.mu is held.
func (e *exchange) raw(text []byte) error {
	if e.gone {
		return wire.ErrAnswered
	}
	if e.line != nil && e.line.conn != nil {
		return e.line.chunk(text, e.timeout)
	}
	if e.timeout > 0 {
		// Not every ResponseWriter has deadlines; without, the server's own
		// timeouts hold.
		_ = e.controller().SetWriteDeadline(time.Now().Add(e.timeout))
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	if err := e.controller().Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if e.timeout > 0 && e.shared {
		endDeadline(e.controller())
	}
	return nil
}

// controller returns the http.ResponseController of the response. The caller
// holds e.mu, or has the only reference to e.
func (e *exchange) controller() *http.ResponseController {
	if e.control == nil {
		e.control = http.NewResponseController(e.w)
	}
	return e.control
}

// begin starts a stream at once, before there is anything to send.
func (e *exchange) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
	return e.raw([]byte(":\n\n"))
}

// writable returns why no message can be sent ahead of the answer, nil if one
// can.
func (e *exchange) writable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ended:
		return wire.ErrAnswered
	case !e.events:
		return wire.ErrNoStream
	}
	return nil
}

// Event implements Sink.
func (e *exchange) Event(id string, message []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return wire.ErrAnswered
	}
	e.start()
	return e.event(id, message)
}

// Pause implements Sink. It tells the client when to come back; nothing is
// written after it.
func (e *exchange) Pause(retry time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.raw(appendRetry(nil, retry))
	e.gone = true
	return err
}

// ComeBack implements Line. It is Pause for a stream of which something follows.
func (e *exchange) ComeBack(retry time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started && !e.ended {
		_ = e.raw(appendRetry(nil, retry)) // who is gone comes back when it likes
	}
}

// comment writes a comment, which clients ignore, to keep a quiet connection
// open and to notice that a client is gone.
func (e *exchange) comment() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.raw([]byte(":\n\n"))
}

// KeepAlive implements Line. It is comment for a response that need not be a
// stream and may be over: it writes nothing then.
func (e *exchange) KeepAlive() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started || e.ended {
		return nil
	}
	return e.raw([]byte(":\n\n"))
}

// end makes later messages fail with wire.ErrAnswered.
func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

// answer ends the response with body, a whole JSON-RPC response, or nil if
// there is none. status is used unless the stream has begun, whose status was
// 200.
func (e *exchange) answer(status int, body []byte) {
	if stream := e.resuming.begun(); stream != nil {
		e.end()
		stream.End(body)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	switch {
	case e.started:
		if body != nil {
			_ = e.event("", body) // the client is gone; net/http notices by itself
		}
	case body == nil || !e.json && status == http.StatusOK:
		e.start()
		if body != nil {
			_ = e.event("", body) // the same
		}
	default:
		if e.timeout > 0 && len(body) > smallBody {
			_ = e.controller().SetWriteDeadline(time.Now().Add(e.timeout))
		}
		writeJSON(e.w, status, body)
	}
}

// leave is answer for a handler that ends its goroutine. net/http then closes
// the connection and drops what is in its buffers, so that leave flushes and,
// for a stream, takes the connection over first.
func (e *exchange) leave(r *http.Request, body []byte) {
	if e.json {
		e.mu.Lock()
		if !e.started {
			e.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			e.w.Header().Set("Connection", "close")
		}
		e.mu.Unlock()
	}
	e.answer(http.StatusOK, body)
	_ = e.controller().Flush() // the client is gone, or there is nothing to flush with
	if e.line == nil {
		e.line = &line{}
	}
	e.takeOver(r)
	e.hangUp()
}

// answerAll ends the response with the answers to a batch, of which some may be
// nil: as an array, or as one event each if the response is a stream.
func (e *exchange) answerAll(answers [][]byte) {
	e.mu.Lock()
	streams := e.started || !e.json
	if streams {
		e.start()
		e.ended = true
		for _, answer := range answers {
			if answer != nil && e.event("", answer) != nil {
				break // the client is gone; net/http notices by itself
			}
		}
	}
	e.mu.Unlock()
	if !streams {
		e.answer(http.StatusOK, wire.AppendBatch(nil, answers))
	}
}

// announce begins a stream of HTTP+SSE with the event that names the endpoint
// for POST.
func (e *exchange) announce(endpoint string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
	return e.raw([]byte("event: endpoint\ndata: " + endpoint + "\n\n"))
}

// hush prevents all further writing, because the handler is about to return.
func (e *exchange) hush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended, e.gone = true, true
}

// Wait implements Line. The first call tries to take the connection over.
func (e *exchange) Wait() bool {
	l := e.line
	if l.request != nil {
		e.takeOver(l.request)
		l.request = nil
	}
	return l.wait()
}

// takeOver takes the connection over from net/http, unless options forbid it,
// the response is not a chunked HTTP/1.1 stream, or a middleware is between
// that changes what is written. If it cannot, it changes nothing.
func (e *exchange) takeOver(r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	header := e.w.Header()
	if e.keep || !e.started || r.ProtoMajor != 1 || r.ProtoMinor < 1 ||
		header["Content-Encoding"] != nil || header["Content-Length"] != nil || header["Transfer-Encoding"] != nil {
		return
	}
	conn, buffered, err := e.controller().Hijack()
	if err != nil {
		return // net/http keeps it
	}
	// The goroutine of net/http, which is ours now, holds on to this reader but does
	// not use it any more: without its buffer the stream costs a fifth less.
	if buffered != nil && buffered.Reader != nil {
		*buffered.Reader = bufio.Reader{}
	}
	e.line.take(conn)
}

// hangUp ends a connection that was taken over, and does nothing otherwise.
func (e *exchange) hangUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.line != nil && e.line.conn != nil {
		e.line.close(e.timeout)
	}
}

// smallBody is a size in bytes that fits the buffers of net/http and of the
// socket. Writing as much cannot wait for a client that does not read, and
// needs no deadline.
const smallBody = 2 << 10
