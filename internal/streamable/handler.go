// Package streamable is the HTTP transport: one endpoint that serves modern
// requests, which stand alone, beside legacy sessions. Requests arrive by POST
// and are answered with JSON, or with a stream of server-sent events once
// there is something to tell before the answer; legacy clients open a stream
// of their own with GET and end their session with DELETE.
//
// It follows basic/transports of 2025-03-26 to 2025-11-25 and
// basic/transports/streamable-http of 2026-07-28.
package streamable

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/guard"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
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
	MaxDepth     int           // nesting of a message; 0 means protocol's default
	MaxBatch     int           // messages of a batch; 0 means protocol.DefaultMaxBatch
	ReadTimeout  time.Duration // for a whole body; 0 means DefaultReadTimeout, negative none
	WriteTimeout time.Duration // for each answer or event; 0 means DefaultWriteTimeout, negative none
	KeepAlive    time.Duration // between comments on a quiet stream; 0 means DefaultKeepAlive, negative none
	// Polling lets handlers end the connection that waits for their answer;
	// see frame.Frame.CloseStream. It costs each request of a session of
	// revision 2025-11-25 a goroutine of its own.
	Polling bool
	Retry   time.Duration // after which such a client comes back; 0 means DefaultRetry
	// NoTakeover leaves the connections of subscriptions to net/http. They are
	// taken over from it, where HTTP/1.1 and the middleware in front allow that,
	// because it keeps much memory for each; but its Server.Close does not reach
	// them then, nor do writers that only count or log: mcp.Server.Shutdown does.
	NoTakeover bool
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

// Backend is the server behind the endpoint.
type Backend interface {
	// Revisions are what the server speaks, newest first.
	Revisions() []protocol.Revision
	// Serve answers a request. The answer's Response is nil when the client
	// cancelled the request and wants none.
	Serve(c *Call) Answer
	// Notify takes a notification or a response of the client.
	Notify(c *Call)
	// Session finds a legacy session of the caller's, once for each request. The
	// fault says why there is none: CodeSessionNotFound, or CodeUnavailable for one
	// that may be there later.
	Session(id string, r *http.Request) (Session, *protocol.Error)
	// EndSession ends a session that Session found.
	EndSession(x Session)
	// Listen opens to and sends the messages of a session that belong to no
	// request, or goes on with the stream that to.Last names, until the
	// session or the stream ends, or to fails. A fault that it returns
	// before it opens to is the answer.
	Listen(x Session, to *Events) *protocol.Error
	// Connect serves a connection of HTTP+SSE that r opens, until it ends.
	// open begins its stream and returns it; ours tells which other requests
	// are of the same client. A fault before that is the answer.
	Connect(r *http.Request, open func(ours func(*http.Request) bool) (Posted, error)) *protocol.Error
	// HeaderParams tells which arguments of the tool that c calls are mirrored
	// into headers: none if there is no such tool for its client.
	HeaderParams(c *Call) []protocol.HeaderParam
}

// Posted is a connection whose client sends each message with a request of its
// own.
type Posted interface {
	transport.Conn
	// By returns the request that brought the message that Read returned last: its
	// identity is that of the message, and its context does not end. It is for the
	// goroutine that reads.
	By() *http.Request
}

// Session is a legacy session of the Backend's.
type Session interface{ Revision() protocol.Revision }

// Call is one message that was posted.
type Call struct {
	HTTP     *http.Request
	Message  protocol.Message
	Params   protocol.Params
	Revision protocol.Revision // 0 for initialize, which negotiates it
	Session  Session           // nil for modern requests and for initialize
	// Buffer is memory that the answer may be appended to.
	Buffer []byte
	out    *exchange
	retry  time.Duration
	paused chan struct{} // nil unless Pausable
	pause  sync.Once
	batch  bool // one of several that share out
}

// Send sends a message to the client ahead of the answer; it implements
// frame.Peer.
func (c *Call) Send(message []byte) error { return c.out.Send(message) }

// TakesEvents tells whether the client takes messages ahead of the answer.
func (c *Call) TakesEvents() bool { return c.out.events }

// Opens says that c opens the session of that id. The header that names it
// leaves with the first message that is sent ahead of the answer, which may be
// in Serve; else it goes with the answer, by Answer.Session.
func (c *Call) Opens(session string) { c.out.session = session }

// Answer is what a request gets.
type Answer struct {
	Response []byte          // a whole JSON-RPC response
	Fault    *protocol.Error // the error in Response; nil for a result
	Refused  bool            // the Fault came before anything of the request ran
	Status   int             // HTTP status; 0 means what Fault and the era say
	Session  string          // the session that initialize opened
	// Challenge is the value of WWW-Authenticate that goes with a Status of 401
	// or 403, unless the answer is a stream already.
	Challenge string
	Later     bool // Call.Pause was called: Call.Finish sends the answer
	// Stream, if not nil, sends what comes ahead of Response, and returns when
	// that is due, or when the client is gone. It waits with the Line, which
	// needs Call.Waker before; next to nothing of the request is kept there, so
	// that thousands can wait.
	Stream func(to Line)
	// End, if there is a Stream, is called when all of it has been written:
	// net/http does not wait for connections that were taken over.
	End func()
}

// panicked is the answer to a call whose handler ended its goroutine
// (runtime.Goexit), so that Backend.Serve did not return.
func panicked(c *Call) Answer {
	fault := &protocol.Error{Code: protocol.CodeInternal, Message: "Internal error: " + safely.Message}
	return Answer{Response: protocol.AppendErrorResponse(nil, c.Message.ID, fault, c.Revision), Fault: fault}
}

// Handler is the endpoint, an http.Handler for any router and any path. It is
// safe for concurrent use.
type Handler struct {
	backend Backend
	opts    Options
	guard   guard.Guard
	dog     watchdog
	streams streams
}

// New returns the endpoint of backend.
func New(backend Backend, opts Options) *Handler {
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	opts.ReadTimeout = orDefault(opts.ReadTimeout, DefaultReadTimeout)
	opts.WriteTimeout = orDefault(opts.WriteTimeout, DefaultWriteTimeout)
	opts.KeepAlive = orDefault(opts.KeepAlive, DefaultKeepAlive)
	opts.Retry = orDefault(opts.Retry, DefaultRetry)
	h := &Handler{backend: backend, opts: opts, guard: guard.New(opts.AllowedHosts, opts.AllowedOrigins), dog: watchdog{limit: opts.ReadTimeout}}
	return h
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
	if fault := h.guard.Check(r); fault != "" {
		refuse(w, http.StatusForbidden, protocol.Errorf(protocol.CodeInvalidRequest, "%s", fault))
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
		notAllowed(w, "POST, GET, DELETE", "use POST")
	}
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

// notAllowed answers 405. allow are the methods that the same request may have.
func notAllowed(w http.ResponseWriter, allow, hint string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, protocol.Errorf(protocol.CodeInvalidRequest, "method not allowed: %s", hint))
}

// refuse answers with an error that belongs to no request.
func refuse(w http.ResponseWriter, status int, e *protocol.Error) {
	setRetryAfter(w.Header(), e)
	writeJSON(w, status, protocol.AppendErrorResponse(nil, protocol.ID{}, e, protocol.Latest))
}

var jsonType = []string{"application/json"}

// writeJSON writes a whole JSON answer. Its error means that the client is
// gone, which net/http notices by itself.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Content-Type"] = jsonType
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// accepts tells which answers the Accept headers of r allow. No header allows
// everything.
func accepts(r *http.Request) (json, events bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				return true, true
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				events = true
			}
		}
	}
	return json, events
}
