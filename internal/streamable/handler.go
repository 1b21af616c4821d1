// Package streamable is the HTTP transport of servers: one endpoint that serves
// modern requests, which are stateless, legacy sessions, and on request the
// older HTTP+SSE transport. It handles HTTP and the envelope of messages; its
// [Backend], package conn, handles the requests.
//
// Requests arrive by POST and are answered with JSON, or with a stream of
// server-sent events once there is something to send before the answer. Legacy
// clients also open a stream of their own with GET and end their session with
// DELETE.
//
// # Parts
//
//   - [Handler] is the http.Handler. It checks host and origin, reads the body
//     (bodyReader), has it admitted (admission), and hands a [Call] to the
//     Backend.
//   - admission decides the revision and session of a message and compares the
//     headers with the body, before anything of the request runs.
//   - exchange is one HTTP response. It begins as JSON and becomes a stream
//     with the first message that is sent ahead of the answer; it never goes
//     back.
//   - line is the connection of a stream that waits for hours. Where possible
//     it takes the connection over from net/http to save the memory of its
//     buffers and goroutines.
//   - resuming is what an exchange has for a client that may come back for its
//     answer; the events themselves are kept by package session.
//   - sseStreams and sseConn are the transport HTTP+SSE of 2024-11-05, whose
//     streams are served as connections. Each message runs as who POSTed it,
//     which has to be the principal that opened the stream.
//
// # Goroutines, locks and time
//
// A request is served on the goroutine that net/http has for it. Others send on
// its exchange at any time, under exchange.mu, which is held while an event is
// being written; the order of locks is exchange.mu before line.mu. Nothing is
// written after the handler has returned. Bodies have a time limit of their
// own, and so has every write, because the limits of http.Server count from the
// head of a request and would cut off slow calls and streams.
//
// It follows basic/transports of 2024-11-05 to 2025-11-25 and
// basic/transports/streamable-http of 2026-07-28.
package streamable

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// The limits that zero Options stand for.
const (
	DefaultMaxBody      = 4 << 20
	DefaultReadTimeout  = 30 * time.Second
	DefaultWriteTimeout = 30 * time.Second
	DefaultKeepAlive    = 25 * time.Second
	DefaultRetry        = time.Second
)

// Options shape a Handler. The zero value is the default. WriteTimeout takes the
// place of http.Server.WriteTimeout, which counts from the head of a request and
// so would cut slow calls and streams off.
type Options struct {
	MaxBody      int64         // bytes of a request's body; 0 means DefaultMaxBody
	MaxBatch     int           // messages of a batch; 0 means wire.DefaultMaxBatch
	ReadTimeout  time.Duration // for a whole body; 0 means DefaultReadTimeout, negative none
	WriteTimeout time.Duration // for each answer or event; 0 means DefaultWriteTimeout, negative none
	KeepAlive    time.Duration // between comments on a quiet stream; 0 means DefaultKeepAlive, negative none
	// Polling lets handlers end the connection that waits for their answer;
	// see frame.Frame.CloseStream. It costs each request of a session of
	// revision 2025-11-25 a goroutine of its own.
	Polling bool
	Retry   time.Duration // after which such a client comes back; 0 means DefaultRetry
	// NoHijack leaves the connections of subscriptions to net/http. They are
	// taken over from it, where HTTP/1.1 and the middleware in front allow that,
	// because it keeps much memory for each; but its Server.Close does not reach
	// them then, nor do writers that only count or log: mcp.Server.Shutdown does.
	NoHijack bool
	// SSE serves the HTTP+SSE transport of revision 2024-11-05 too, to clients
	// that open a stream with GET and name no session. The stream tells them
	// where to POST: the same URL, with an id in its query, which is a secret
	// that proxies may log. Its sessions last as long as their streams.
	SSE bool
	// SSEEndpoint is what the stream names instead, as a path or a URL, where a
	// proxy serves the endpoint under another path than it is asked for.
	SSEEndpoint string
	// AllowedHosts are the values of Host that are served, with or without
	// port. Empty means: any, but on loopback addresses only loopback names,
	// which keeps web pages from reaching a local server by DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins are the values of Origin that are served, as
	// "https://app.example.com", besides the server's own; "*" means any.
	AllowedOrigins []string
}

// Handler is the endpoint, an http.Handler for any router and any path. It
// keeps no state of a client except the open connections of HTTP+SSE. It is
// safe for concurrent use.
type Handler struct {
	admission // of what is posted
	opts      Options
	guard     Guard
	bodies    bodyReader
	sse       sseStreams
}

// New returns the endpoint of backend. Zero options become the defaults,
// negative times become 0, which stands for no limit from there on.
func New(backend Backend, opts Options) *Handler {
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	opts.ReadTimeout = orDefault(opts.ReadTimeout, DefaultReadTimeout)
	opts.WriteTimeout = orDefault(opts.WriteTimeout, DefaultWriteTimeout)
	opts.KeepAlive = orDefault(opts.KeepAlive, DefaultKeepAlive)
	opts.Retry = orDefault(opts.Retry, DefaultRetry)
	h := &Handler{
		admission: admission{backend: backend, batch: opts.MaxBatch},
		opts:      opts, guard: NewGuard(opts.AllowedHosts, opts.AllowedOrigins),
		bodies: bodyReader{max: opts.MaxBody, limit: opts.ReadTimeout},
	}
	h.sse.backend, h.sse.opts = backend, &h.opts
	return h
}

// With returns another endpoint of the same backend, with changed options, for tests.
func (h *Handler) With(change func(*Options)) *Handler {
	opts := h.opts
	change(&opts)
	return New(h.backend, opts)
}

// KeepAlive returns the time between signs of life on a quiet stream; 0 means
// that there are none.
func (h *Handler) KeepAlive() time.Duration { return h.opts.KeepAlive }

// orDefault returns d, the default for 0, or 0 for a negative d.
func orDefault(d, def time.Duration) time.Duration {
	switch {
	case d == 0:
		return def
	case d < 0:
		return 0
	}
	return d
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.prolong(w, r)()
	if h.backend.Draining() {
		w.Header().Set("Connection", "close") // for HTTP/2 net/http makes it a GOAWAY
	}
	if why, fault := h.guard.Check(r); why != "" {
		h.refuse(w, r, http.StatusForbidden, wire.Refused(wire.Refusal(why), protocol.CodeInvalidRequest, "%s", fault))
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		if r.Method == http.MethodHead && wantsPage(r) {
			h.get(w, r)
			return
		}
		h.notAllowed(w, r, "POST, GET, DELETE", "use POST")
	}
}

// post serves a POST: a message, a batch, or a message for a stream of
// HTTP+SSE. Notifications and responses are answered with 202 and no body once
// the Backend has taken them.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	var both struct { // one allocation instead of two
		call Call
		out  exchange
	}
	c, out := &both.call, &both.out
	if !h.open(out, w, r) {
		return
	}
	body, long, status, fault := h.bodies.read(out, r)
	if id := h.sse.of(r); id != "" && (fault == nil || long != nil) {
		h.sse.post(w, r, id, posted{message: body, long: long})
		return
	}
	if fault != nil {
		h.backend.Refused(r, false, fault)
		setRetryAfter(w.Header(), fault)
		writeJSON(w, status, wire.AppendErrorResponse(nil, h.spoiled(r, long, status, fault), fault, h.revisionOf(r)))
		return
	}
	if wire.IsBatch(body) {
		h.postBatch(out, r, body)
		return
	}
	c.HTTP, c.out, c.retry = r, out, h.opts.Retry
	if status, fault = h.admit(c, body); fault != nil {
		h.backend.Refused(r, false, fault)
		rev := c.Revision
		switch {
		case rev != 0:
		case fault.Code == protocol.CodeParseError, status != http.StatusBadRequest:
			rev = protocol.Latest // no message of any revision, or no session that would tell
		default:
			rev = h.revisionOf(r)
		}
		c.out.json = true // an error with a status is never an event
		setRetryAfter(w.Header(), fault)
		c.out.answer(status, wire.AppendErrorResponse(nil, h.spoil(r, &c.Message, status, fault), fault, rev))
		return
	}
	if c.Message.Kind() != protocol.KindRequest {
		c.out.end() // the answer is bare
		accepted(w, h.notify(c))
		return
	}
	h.serve(c)
}

// open readies the exchange of a POST. It returns false if it has refused r for
// what its headers say of the body, or of the answer.
func (h *Handler) open(out *exchange, w http.ResponseWriter, r *http.Request) bool {
	if !jsonContent(r) {
		h.bodies.limitRest(w)
		h.refuse(w, r, http.StatusUnsupportedMediaType, wire.Refused("content_type", protocol.CodeInvalidRequest, "Content-Type must be application/json"))
		return false
	}
	if encoding := strings.Join(r.Header["Content-Encoding"], ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		h.bodies.limitRest(w)
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		h.refuse(w, r, http.StatusUnsupportedMediaType, wire.Refused("content_type", protocol.CodeInvalidRequest, "Content-Encoding %.100q is not supported: send the message as it is", encoding))
		return false
	}
	wantsJSON, wantsEvents := accepts(r)
	if !wantsJSON && !wantsEvents {
		h.bodies.limitRest(w)
		h.refuse(w, r, http.StatusNotAcceptable, wire.Refused("accept", protocol.CodeInvalidRequest, "Accept must list application/json and text/event-stream"))
		return false
	}
	out.w, out.reading.w, out.timeout, out.shared = w, w, h.opts.WriteTimeout, r.ProtoMajor > 1
	out.json, out.events, out.keep = wantsJSON, wantsEvents, h.opts.NoHijack
	return true
}

// serve has the Backend serve a request and writes the answer. If the handler
// ends the goroutine, the deferred call still writes one.
func (h *Handler) serve(c *Call) {
	buffer := buffers.Get().(*[]byte)
	c.Buffer = (*buffer)[:0]
	returned := false
	defer func() {
		if !returned {
			c.out.leave(c.HTTP, panicked(c).Response)
		}
	}()
	answer := h.backend.Serve(c)
	returned = true
	if answer.Later {
		buffers.Put(buffer) // the answer is in memory of its own
		return
	}
	header := c.out.w.Header()
	if answer.Session != "" {
		header.Set(headerSession, answer.Session)
	}
	if answer.Challenge != "" {
		header.Set("WWW-Authenticate", answer.Challenge)
	}
	setRetryAfter(header, answer.Fault)
	if answer.Status == 0 {
		answer.Status = statusOf(answer.Fault, c.Revision, answer.Refused)
	}
	if answer.Stream != nil {
		answer.Response = bytes.Clone(answer.Response) // not to wait with the buffer
		buffers.Put(buffer)
		if answer.End != nil {
			defer answer.End()
		}
		defer c.out.hangUp()
		answer.Stream(c.out)
		c.out.answer(answer.Status, answer.Response)
		return
	}
	c.out.answer(answer.Status, answer.Response)
	if cap(answer.Response) > 0 && cap(answer.Response) <= maxPooled {
		*buffer = answer.Response[:0]
	}
	buffers.Put(buffer)
}

// postBatch serves a JSON array of messages, which a session of revision
// 2025-03-26 may send (basic/transports of that revision). The requests run at
// the same time; the answers leave together, in the order of the requests: as
// an array, or as events one by one if a message came ahead of them.
func (h *Handler) postBatch(out *exchange, r *http.Request, body []byte) {
	var x *session.Session
	rev, status, fault := protocol.Revision(0), 0, (*protocol.Error)(nil)
	if r.Header.Get(headerSession) != "" { // without one there is no revision, which has no batches
		if x, status, fault = h.session(r); fault == nil {
			rev = x.Revision()
		}
	}
	var calls []*Call
	var faults []*protocol.Error
	if fault == nil {
		status = http.StatusBadRequest
		calls, faults, fault = h.admitBatch(rev, body)
	}
	if fault != nil {
		h.backend.Refused(r, false, fault)
		if rev == 0 {
			rev = protocol.Latest
		}
		out.json = true // an error with a status is never an event
		setRetryAfter(out.w.Header(), fault)
		out.answer(status, wire.AppendErrorResponse(nil, protocol.ID{}, fault, rev))
		return
	}
	answers, ran := make([][]byte, len(calls)), make([]bool, len(calls))
	end := sync.OnceValue(h.backend.Batch(x))
	defer end()
	for _, c := range calls {
		c.HTTP, c.Revision, c.Session, c.out, c.batch = r, rev, x, out, true
	}
	requests := 0
	var lost *protocol.Error // of a message that wants no answer
	var running sync.WaitGroup
	for i, c := range calls {
		if faults[i] != nil {
			h.backend.Refused(r, false, faults[i])
		}
		switch {
		case faults[i] != nil && c.Message.Kind() == protocol.KindResponse: // a response has no response
			h.spoil(r, &c.Message, http.StatusBadRequest, faults[i])
		case faults[i] != nil:
			requests++
			answers[i] = wire.AppendErrorResponse(nil, c.Message.ID, faults[i], c.Revision)
		case c.Message.Kind() == protocol.KindRequest:
			requests++
			running.Go(func() {
				answer := panicked(c) // unless the handler returns
				defer func() { answers[i], ran[i] = answer.Response, !answer.Refused }()
				answer = h.backend.Serve(c)
			})
		default:
			lost = cmp.Or(h.notify(c), lost)
		}
	}
	running.Wait()
	if fault := end(); fault != nil {
		for i, c := range calls {
			if ran[i] && answers[i] != nil {
				answers[i] = wire.AppendErrorResponse(nil, c.Message.ID, fault, rev)
			}
		}
	}
	if requests == 0 {
		out.end()
		accepted(out.w, lost)
		return
	}
	out.answerAll(answers)
}

// notify hands a message over that wants no answer. A fault says why it could not be
// taken.
func (h *Handler) notify(c *Call) *protocol.Error {
	fault := h.backend.Notify(c)
	if fault != nil {
		h.backend.Refused(c.HTTP, false, fault)
	}
	return fault
}

// accepted answers messages that want no answer, with 202 unless one of them
// could not be taken.
func accepted(w http.ResponseWriter, fault *protocol.Error) {
	switch {
	case fault == nil:
		w.WriteHeader(http.StatusAccepted)
	case fault.Code == protocol.CodeUnavailable:
		writeFault(w, http.StatusServiceUnavailable, fault)
	default:
		writeFault(w, http.StatusBadRequest, fault)
	}
}

// get serves a GET: the stream of a legacy session, or without session a new
// connection of HTTP+SSE. It returns when the stream ends.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if wantsPage(r) {
		h.backend.Refused(r, false, wire.Refused("accept", protocol.CodeInvalidRequest, "a browser asks for a page"))
		writePage(w, r, h.opts.SSE)
		return
	}
	if r.Header.Get(headerSession) == "" && !h.opts.SSE {
		h.notAllowed(w, r, "POST", "GET is for legacy sessions and needs Mcp-Session-Id; all else is a POST")
		return
	}
	if _, events := accepts(r); !events {
		h.refuse(w, r, http.StatusNotAcceptable, wire.Refused("accept", protocol.CodeInvalidRequest, "Accept must list text/event-stream"))
		return
	}
	if r.Header.Get(headerSession) == "" {
		h.sse.connect(w, r)
		return
	}
	x, status, fault := h.session(r)
	if fault != nil {
		h.refuse(w, r, status, fault)
		return
	}
	out := &exchange{w: w, timeout: h.opts.WriteTimeout, shared: r.ProtoMajor > 1, events: true, keep: h.opts.NoHijack, line: newLine(r)}
	to := &Events{Last: r.Header.Get(headerLast), every: h.opts.KeepAlive, out: out, ctx: r.Context()}
	defer to.end()
	if fault := h.backend.Listen(x, to); fault != nil && !to.opened {
		if status = statusOf(fault, 0, true); status == http.StatusOK {
			status = http.StatusBadRequest
		}
		h.refuse(w, r, status, fault)
	}
}

// withoutSession lists, for the header Allow, the methods that need no session.
func (h *Handler) withoutSession() string {
	if h.opts.SSE {
		return "POST, GET"
	}
	return "POST"
}

// delete ends a legacy session and answers 204. Modern requests have no session
// to end.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		h.notAllowed(w, r, h.withoutSession(), "DELETE is for legacy sessions and needs Mcp-Session-Id")
		return
	}
	x, status, fault := h.session(r)
	if fault != nil {
		h.refuse(w, r, status, fault)
		return
	}
	if fault := h.backend.EndSession(x); fault != nil {
		h.refuse(w, r, http.StatusServiceUnavailable, fault)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// prolong gives what is left in net/http's buffers time of its own: small
// answers and refusals leave when the handler returns, and the time that the
// server allows counts from the head of the request.
func (h *Handler) prolong(w http.ResponseWriter, r *http.Request) (done func()) {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 || h.opts.WriteTimeout <= 0 {
		return func() {}
	}
	control := http.NewResponseController(w)
	if r.ProtoMajor > 1 {
		endDeadline(control)
	}
	// Not every ResponseWriter has deadlines; without, the server's hold.
	return func() { _ = control.SetWriteDeadline(time.Now().Add(h.opts.WriteTimeout)) }
}

// endDeadline takes a deadline for writes away. In HTTP/2 it would end the
// response when it passes, though nothing is written then.
func endDeadline(control *http.ResponseController) {
	_ = control.SetWriteDeadline(time.Time{}) // a ResponseWriter without has none to take away
}

// notAllowed answers 405 with the methods that are allowed and a hint what to
// do.
func (h *Handler) notAllowed(w http.ResponseWriter, r *http.Request, allow, hint string) {
	w.Header().Set("Allow", allow)
	h.refuse(w, r, http.StatusMethodNotAllowed, wire.Refused("http_method", protocol.CodeInvalidRequest, "method not allowed: %s", hint))
}

// refuse tells of an error that belongs to no request, and answers with it.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, e *protocol.Error) {
	h.backend.Refused(r, false, e)
	writeFault(w, status, e)
}

// writeFault answers with an error that belongs to no request.
func writeFault(w http.ResponseWriter, status int, e *protocol.Error) {
	setRetryAfter(w.Header(), e)
	writeJSON(w, status, wire.AppendErrorResponse(nil, protocol.ID{}, e, protocol.Latest))
}

// spoiled is spoil for a message that was too long; nil means nothing is known
// of it.
func (h *Handler) spoiled(r *http.Request, long *transport.TooLongError, status int, fault *protocol.Error) protocol.ID {
	if long == nil {
		return protocol.ID{}
	}
	text, _ := long.Message()
	m, _ := protocol.Decode(text) // has what is known also with an error
	return h.spoil(r, &m, status, fault)
}

// spoil takes a message that r has brought and that is refused with a status and fault. It
// returns the id to answer with. A response has none: its question fails, unless the fault
// is not that of the response, which the client may then send again.
func (h *Handler) spoil(r *http.Request, m *protocol.Message, status int, fault *protocol.Error) protocol.ID {
	if m.Kind() != protocol.KindResponse {
		return m.ID
	}
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge || m.ID.IsZero() {
		return protocol.ID{}
	}
	if x, _, lost := h.session(r); lost == nil {
		why := *fault
		why.Message = "the answer is not valid: " + why.Message
		c := &Call{HTTP: r, Revision: x.Revision(), Session: x}
		c.Message = protocol.Message{ID: m.ID, Error: wire.AppendError(nil, &why)}
		_ = h.notify(c) // it logs what it returns
	}
	return protocol.ID{}
}

// jsonType is the value of Content-Type, shared by all answers so that none
// allocates it.
var jsonType = []string{"application/json"}

// writeJSON writes a whole JSON answer. The error of writing is dropped: it
// means that the client is gone, which net/http notices by itself.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Content-Type"] = jsonType
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// buffers hold the memory of answers between requests.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the size in bytes beyond which a buffer is not put back into the
// pool, so that a few large answers do not make every buffer large.
const maxPooled = 64 << 10
