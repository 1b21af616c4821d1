package streamable

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// backend is a Backend that says in each result how it was asked.
type backend struct {
	revisions []protocol.Revision
	draining  bool
	headers   []facts.Header
	serve     func(c *Call) Answer // nil echoes
	notify    func(c *Call)
	listen    func(to *Events) *protocol.Error

	mu       sync.Mutex
	sessions map[string]protocol.Revision
	notified []string
}

func newBackend() *backend {
	return &backend{
		revisions: protocol.Revisions(),
		sessions:  map[string]protocol.Revision{"old": protocol.V20250326, "s1": protocol.V20251125},
	}
}

// as returns b as the Backend that it is.
func (b *backend) as() Backend {
	return Backend{
		Revisions: b.revisions, Serve: b.Serve, Notify: b.Notify, Batch: b.Batch, Session: b.Session, EndSession: b.EndSession, Listen: b.Listen, Connect: b.Connect,
		Refused: b.Refused, Draining: func() bool { return b.draining }, HeaderParams: func(*Call) []facts.Header { return b.headers },
	}
}

func (b *backend) Serve(c *Call) Answer {
	if b.serve != nil {
		return b.serve(c)
	}
	return result(c, fmt.Sprintf(`"%s, %v, %s"`, c.Message.Method, c.Revision, sessionID(c)))
}

// result is the answer with that JSON text as the result's only member.
func result(c *Call, text string) Answer {
	return Answer{Response: fmt.Appendf(c.Buffer, `{"jsonrpc":"2.0","id":%s,"result":{"did":%s}}`, c.Message.ID, text)}
}

// fails serves every request with that error.
func fails(code protocol.Code) func(c *Call) Answer {
	return func(c *Call) Answer {
		fault := &protocol.Error{Code: code}
		return Answer{Response: wire.AppendErrorResponse(c.Buffer, c.Message.ID, fault, c.Revision), Fault: fault}
	}
}

func (b *backend) Notify(c *Call) *protocol.Error {
	b.mu.Lock()
	b.notified = append(b.notified, fmt.Sprintf("%s in %v, session %q", c.Message.Method, c.Revision, sessionID(c)))
	b.mu.Unlock()
	if b.notify != nil {
		b.notify(c)
	}
	return nil
}

// sessionID returns the id of the session that c belongs to, or "".
func sessionID(c *Call) string {
	if c.Session == nil {
		return ""
	}
	return c.Session.ID()
}

func (b *backend) Session(id string, _ *http.Request) (*session.Session, *protocol.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rev, ok := b.sessions[id]
	if id == "stored" {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, RetryAfter: 1500 * time.Millisecond}
	}
	if !ok {
		return nil, protocol.Errorf(protocol.CodeSessionNotFound, "Session not found")
	}
	return session.New(context.Background(), id, core.ClientInfo{Revision: rev}), nil
}

func (b *backend) Batch(*session.Session) func() *protocol.Error {
	return func() *protocol.Error { return nil }
}

func (b *backend) EndSession(x *session.Session) *protocol.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, x.ID())
	return nil
}

func (b *backend) Listen(_ *session.Session, to *Events) *protocol.Error {
	if b.listen != nil {
		return b.listen(to)
	}
	_ = to.Open()
	return nil
}

func (b *backend) Connect(_ *http.Request, _ func(Opening) (*Posted, error)) *protocol.Error {
	return protocol.Errorf(protocol.CodeBusy, "no connections here")
}

func (b *backend) Refused(*http.Request, bool, *protocol.Error) {}

// headers are the headers of a request, as "Name: value" lines.
type headers []string

const (
	accept  = "Accept: application/json, text/event-stream"
	content = "Content-Type: application/json"
	modern  = "MCP-Protocol-Version: 2026-07-28"
)

// post sends body to h. The usual headers are there unless hs names them; a
// line "Name:" removes one.
func post(h http.Handler, body string, hs ...string) *httptest.ResponseRecorder {
	return do(h, http.MethodPost, body, append(headers{accept, content}, hs...)...)
}

func do(h http.Handler, method, body string, hs ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://server.example.com/mcp", strings.NewReader(body))
	setHeaders(r, hs)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// setHeaders sets headers; a second line of one name replaces the first, one
// that begins with "+" adds to it.
func setHeaders(r *http.Request, hs []string) {
	for _, line := range hs {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch add, ok := strings.CutPrefix(name, "+"); {
		case ok:
			r.Header.Add(add, value)
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// call is a request with modern metadata; params are further members.
func call(method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
}

// legacyCall is a request without metadata.
func legacyCall(method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method)
}

// check fails unless w is of that status, and its body a JSON-RPC error of that
// code (0 for a result) with the id "1", or none if id is false.
func check(t *testing.T, name string, w *httptest.ResponseRecorder, status int, code protocol.Code, id bool) {
	t.Helper()
	var m struct {
		JSONRPC string
		ID      json.RawMessage
		Result  json.RawMessage
		Error   struct {
			Code    protocol.Code
			Message string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
		t.Errorf("%s: status %d, body %q: not a JSON-RPC message (%v)", name, w.Code, w.Body, err)
		return
	}
	if w.Code != status || m.Error.Code != code || (m.Result != nil) != (code == 0) {
		t.Errorf("%s: status %d, body %s\nwant status %d, code %d", name, w.Code, w.Body, status, code)
	}
	if got := string(m.ID) == "1"; got != id || !id && m.ID != nil {
		t.Errorf("%s: id %q in %s, want it there: %v", name, m.ID, w.Body, id)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q, want application/json", name, got)
	}
	if code != 0 && m.Error.Message == "" {
		t.Errorf("%s: the error says nothing: %s", name, w.Body)
	}
}
