package streamable

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

const (
	discover = "Mcp-Method: server/discover"
	inS1     = "Mcp-Session-Id: s1"
)

func TestContentType(t *testing.T) {
	h := New(newBackend().as(), Options{})
	for value, ok := range map[string]bool{
		"application/json":                   true,
		"application/json; charset=utf-8":    true,
		"Application/JSON":                   true,
		"application/json;charset=\"utf-8\"": true,
		"":                                   false,
		"text/plain":                         false,
		"application/jsonx":                  false,
		"application/json-rpc":               false,
		"application/x-www-form-urlencoded":  false,
		"application/json; charset":          false,
		";":                                  false,
	} {
		w := post(h, call("server/discover", ""), modern, discover, "Content-Type:"+value)
		if ok {
			check(t, value, w, 200, 0, true)
		} else {
			check(t, value, w, 415, protocol.CodeInvalidRequest, false)
		}
	}
}

// A body that is compressed is refused with the name of its encoding.
func TestContentEncoding(t *testing.T) {
	h := New(newBackend().as(), Options{})
	for value, want := range map[string]int{"": 200, "identity": 200, "Identity": 200, "gzip": 415, "br": 415, "deflate, gzip": 415, "x\u202e": 415} {
		w := post(h, call("server/discover", ""), modern, discover, "Content-Encoding:"+value)
		if w.Code != want {
			t.Errorf("%q: status %d, want %d", value, w.Code, want)
		}
		if want == 415 && (w.Header().Get("Accept-Encoding") != "identity" || !strings.Contains(w.Body.String(), "Content-Encoding")) {
			t.Errorf("%q: %v %s", value, w.Header(), w.Body)
		}
	}
	w := post(h, "\x1f\x8b\x08\x00\x00", modern, discover)
	check(t, "gzip without the header", w, 415, protocol.CodeParseError, false)
	if !strings.Contains(w.Body.String(), "the body is gzip without a Content-Encoding") {
		t.Errorf("gzip without the header: %s", w.Body)
	}
}

// The answer is JSON if the client takes it, else events, else 406.
func TestAccept(t *testing.T) {
	h := New(newBackend().as(), Options{})
	const json, events = "application/json", "text/event-stream"
	tests := []struct{ accept, want string }{
		{"application/json, text/event-stream", json},
		{"text/event-stream, application/json", json},
		{"text/event-stream;q=0.5,application/json;q=0.9", json},
		{"*/*", json},
		{"", json}, // no header
		{"application/*", json},
		{"Application/JSON", json},
		{"application/json", json},
		{"text/event-stream", events},
		{"text/*", events},
		{"text/html, Text/Event-Stream ; q=1", events},
		{"text/html", ""},
		{"image/png, text/plain", ""},
	}
	for _, tt := range tests {
		w := post(h, call("server/discover", ""), modern, discover, "Accept: "+tt.accept)
		if tt.want == "" {
			check(t, tt.accept, w, 406, protocol.CodeInvalidRequest, false)
			continue
		}
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != tt.want {
			t.Errorf("Accept %q: %d %s, want 200 %s", tt.accept, w.Code, got, tt.want)
		}
	}
	w := post(h, call("server/discover", ""), modern, discover, "Accept: text/html", "+Accept: application/json")
	check(t, "two Accept headers", w, 200, 0, true)
}

// unsized hides the length of a body, so that it counts as chunked.
type unsized struct{ io.Reader }

func TestBodyLimit(t *testing.T) {
	body := call("server/discover", `"pad":"`+strings.Repeat("x", 1000)+`"`)
	big := call("server/discover", `"pad":"`+strings.Repeat("x", 100<<10)+`"`)
	tests := []struct {
		name   string
		limit  int64
		body   io.Reader
		status int
	}{
		{"within, declared", int64(len(body)), strings.NewReader(body), 200},
		{"within, chunked", int64(len(body)), unsized{strings.NewReader(body)}, 200},
		{"over, declared", int64(len(body)) - 1, strings.NewReader(body), 413},
		{"over, chunked", int64(len(body)) - 1, unsized{strings.NewReader(body)}, 413},
		{"large, declared", 0, strings.NewReader(big), 200},
		{"large, chunked", 0, unsized{strings.NewReader(big)}, 200},
		{"endless, chunked", 1 << 20, unsized{endless{}}, 413},
	}
	for _, tt := range tests {
		h := New(newBackend().as(), Options{MaxBody: tt.limit})
		r := httptest.NewRequest("POST", "/mcp", tt.body)
		setHeaders(r, headers{content, modern, discover})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if tt.status == 200 {
			check(t, tt.name, w, 200, 0, true)
		} else {
			check(t, tt.name, w, tt.status, protocol.CodeInvalidRequest, !strings.HasPrefix(tt.name, "endless"))
		}
	}
	// A declared length is refused before a byte is read, if the client waits for that.
	r := httptest.NewRequest("POST", "/mcp", unsized{unreadableBody{t}})
	r.ContentLength = DefaultMaxBody + 1
	setHeaders(r, headers{content})
	r.Header.Set("Expect", "100-continue")
	w := httptest.NewRecorder()
	New(newBackend().as(), Options{}).ServeHTTP(w, r)
	check(t, "default limit", w, 413, protocol.CodeInvalidRequest, false)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type unreadableBody struct{ t *testing.T }

func (b unreadableBody) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}

// A body that ends before its declared length is unreadable, not shorter.
func TestBodyBreaksOff(t *testing.T) {
	for _, length := range []int64{500, 100 << 10, -1} {
		r := httptest.NewRequest("POST", "/mcp", unsized{io.MultiReader(strings.NewReader(call("server/discover", "")), broken{})})
		r.ContentLength = length
		setHeaders(r, headers{content, modern, discover})
		w := httptest.NewRecorder()
		New(newBackend().as(), Options{}).ServeHTTP(w, r)
		check(t, fmt.Sprint("length ", length), w, 400, protocol.CodeParseError, false)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Messages that are none: 400 with the id if it could be read.
func TestMalformed(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, body string
		code       protocol.Code
		id         bool
	}{
		{"empty", ``, protocol.CodeParseError, false},
		{"not JSON", `hello`, protocol.CodeParseError, false},
		{"cut off", `{"jsonrpc":"2.0","id":1,`, protocol.CodeParseError, true},
		{"two messages", legacyCall("ping") + legacyCall("ping"), protocol.CodeParseError, true},
		{"no object", `5`, protocol.CodeInvalidRequest, false},
		{"no version", `{"id":1,"method":"ping"}`, protocol.CodeInvalidRequest, true},
		{"no method", `{"jsonrpc":"2.0","id":1}`, protocol.CodeInvalidRequest, true},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, protocol.CodeInvalidRequest, false},
		{"params no object", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, protocol.CodeInvalidRequest, true},
		{"duplicate member", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`, protocol.CodeInvalidRequest, true},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + nested(64) + `}}`, protocol.CodeInvalidRequest, true},
		{"100,000 deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + nested(100_000) + `}}`, protocol.CodeInvalidRequest, true},
		{"name no string", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, protocol.CodeInvalidParams, true},
		{"_meta no object", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}`, protocol.CodeInvalidParams, true},
	}
	h := New(newBackend().as(), Options{})
	for _, tt := range tests {
		check(t, tt.name, post(h, tt.body, inS1), 400, tt.code, tt.id)
	}
}

// Which kind of revision a request is of, and what it lacks for it.
func TestEra(t *testing.T) {
	metaOf := func(version, rest string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q%s}}}`, version, rest)
	}
	const capable = `,"io.modelcontextprotocol/clientCapabilities":{}`
	const isM = "Mcp-Method: m"
	tests := []struct {
		name, body string
		headers    headers
		status     int
		code       protocol.Code
		did        string // how the backend was asked
	}{
		{name: "modern", body: call("m", ""), headers: headers{modern, isM}, status: 200, did: `"m, 2026-07-28, "`},
		{name: "modern, session ignored", body: call("m", ""), headers: headers{modern, isM, inS1}, status: 200, did: `"m, 2026-07-28, "`},
		{name: "initialize without a version, with modern _meta", body: call("initialize", ""), headers: headers{modern, "Mcp-Method: initialize"}, status: 200, did: `"initialize, 2026-07-28, "`},
		{name: "initialize with modern _meta", body: call("initialize", `"protocolVersion":"2025-11-25"`), headers: headers{modern, "Mcp-Method: initialize"}, status: 200, did: `"initialize, , "`},
		{name: "initialize with a modern version", body: legacyCall("initialize"), headers: headers{modern}, status: 200, did: `"initialize, , "`},
		{name: "initialize with modern headers", body: legacyCall("initialize"), headers: headers{modern, "Mcp-Method: tools/list", "Mcp-Name: a"}, status: 200, did: `"initialize, , "`},
		{name: "initialize with a modern version in a session", body: legacyCall("initialize"), headers: headers{modern, inS1}, status: 400, code: protocol.CodeInvalidRequest},
		{name: "session with a modern version", body: legacyCall("m"), headers: headers{modern, inS1}, status: 200, did: `"m, 2025-11-25, s1"`},
		{name: "unknown session with a modern version", body: legacyCall("m"), headers: headers{modern, "Mcp-Session-Id: ended"}, status: 404, code: protocol.CodeSessionNotFound},
		{name: "header alone", body: legacyCall("m"), headers: headers{modern, isM}, status: 400, code: protocol.CodeInvalidParams},
		{name: "no version in _meta", body: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{}}}`, headers: headers{modern, isM}, status: 400, code: protocol.CodeInvalidParams},
		{name: "no capabilities", body: metaOf("2026-07-28", ""), headers: headers{modern, isM}, status: 400, code: protocol.CodeInvalidParams},
		{name: "_meta alone", body: call("m", ""), headers: headers{isM}, status: 400, code: protocol.CodeHeaderMismatch},
		{name: "version header twice", body: call("m", ""), headers: headers{modern, "+" + modern, isM}, status: 400, code: protocol.CodeHeaderMismatch},
		{name: "header older than _meta", body: call("m", ""), headers: headers{"MCP-Protocol-Version: 2025-11-25", isM, inS1}, status: 400, code: protocol.CodeHeaderMismatch},
		{name: "_meta unknown, header modern", body: metaOf("v999", capable), headers: headers{modern, isM}, status: 400, code: protocol.CodeHeaderMismatch},
		{name: "both unknown", body: metaOf("v999", capable), headers: headers{"MCP-Protocol-Version: v999", isM}, status: 400, code: protocol.CodeUnsupportedVersion},
		{name: "legacy in _meta", body: metaOf("2025-11-25", capable), headers: headers{"MCP-Protocol-Version: 2025-11-25", isM}, status: 400, code: protocol.CodeUnsupportedVersion},

		{name: "initialize", body: legacyCall("initialize"), status: 200, did: `"initialize, , "`},
		{name: "initialize with version", body: legacyCall("initialize"), headers: headers{"MCP-Protocol-Version: 2025-06-18"}, status: 200, did: `"initialize, , "`},
		{name: "initialize in a session", body: legacyCall("initialize"), headers: headers{inS1}, status: 400, code: protocol.CodeInvalidRequest},
		{name: "initialize with a session that is over", body: legacyCall("initialize"), headers: headers{"Mcp-Session-Id: gone"}, status: 200, did: `"initialize, , "`},
		{name: "initialize with an unknown version", body: legacyCall("initialize"), headers: headers{"MCP-Protocol-Version: v1"}, status: 400, code: protocol.CodeUnsupportedVersion},
		{name: "session", body: legacyCall("m"), headers: headers{inS1}, status: 200, did: `"m, 2025-11-25, s1"`},
		{name: "session with version", body: legacyCall("m"), headers: headers{inS1, "MCP-Protocol-Version: 2025-11-25"}, status: 200, did: `"m, 2025-11-25, s1"`},
		{name: "session decides the revision", body: legacyCall("m"), headers: headers{"Mcp-Session-Id: old"}, status: 200, did: `"m, 2025-03-26, old"`},
		{name: "unknown version", body: legacyCall("m"), headers: headers{inS1, "MCP-Protocol-Version: nonsense"}, status: 400, code: protocol.CodeUnsupportedVersion},
		{name: "no session", body: legacyCall("m"), status: 400, code: protocol.CodeInvalidRequest},
		{name: "discover without anything", body: legacyCall("server/discover"), status: 400, code: protocol.CodeInvalidRequest},
		{name: "unknown session", body: legacyCall("m"), headers: headers{"Mcp-Session-Id: ended"}, status: 404, code: protocol.CodeSessionNotFound},
	}
	h := New(newBackend().as(), Options{})
	for _, tt := range tests {
		w := post(h, tt.body, tt.headers...)
		check(t, tt.name, w, tt.status, tt.code, true)
		if !strings.Contains(w.Body.String(), tt.did) {
			t.Errorf("%s: %s\nwant it done as %s", tt.name, w.Body, tt.did)
		}
	}
}

// A version that the server does not serve is refused with those it does,
// though the revision exists.
func TestUnsupportedVersion(t *testing.T) {
	b := newBackend()
	b.revisions = []protocol.Revision{protocol.V20251125}
	h := New(b.as(), Options{})
	for name, w := range map[string]*httptest.ResponseRecorder{
		"modern":      post(h, call("m", ""), modern, "Mcp-Method: m"),
		"legacy":      post(h, legacyCall("m"), inS1, "MCP-Protocol-Version: 2025-03-26"),
		"unknown":     post(h, legacyCall("m"), inS1, "MCP-Protocol-Version: 1.0"),
		"GET":         do(h, "GET", "", inS1, "MCP-Protocol-Version: 2025-03-26"),
		"DELETE":      do(h, "DELETE", "", inS1, "MCP-Protocol-Version: 1.0"),
		"no session":  post(h, legacyCall("m"), "MCP-Protocol-Version: 2025-03-26"),
		"initialize":  post(h, legacyCall("initialize"), "MCP-Protocol-Version: 2025-03-26"),
		"bad session": post(h, legacyCall("m"), "Mcp-Session-Id: x", "MCP-Protocol-Version: 2025-03-26"),
	} {
		check(t, name, w, 400, protocol.CodeUnsupportedVersion, name != "GET" && name != "DELETE")
		if !strings.Contains(w.Body.String(), `"supported":["2025-11-25"],"requested":"`) {
			t.Errorf("%s: %s does not say what is supported", name, w.Body)
		}
	}
	if len(b.sessions) != 2 {
		t.Error("a refused DELETE ended the session")
	}
}

// Notifications and responses of legacy clients are accepted with a bare 202; an
// error that refuses them has no id (basic/transports of every revision).
func TestAccepted(t *testing.T) {
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	const response = `{"jsonrpc":"2.0","id":1,"result":{}}`
	const modernNote = `{"jsonrpc":"2.0","method":"notifications/x","params":{` + meta + `}}`
	tests := []struct {
		name, body string
		headers    headers
		status     int
		code       protocol.Code
		notified   string
	}{
		{name: "notification", body: initialized, headers: headers{inS1}, status: 202, notified: `notifications/initialized in 2025-11-25, session "s1"`},
		{name: "response", body: response, headers: headers{inS1}, status: 202, notified: ` in 2025-11-25, session "s1"`},
		{name: "notification called initialize", body: `{"jsonrpc":"2.0","method":"initialize"}`, headers: headers{inS1}, status: 202, notified: `initialize in 2025-11-25, session "s1"`},
		{name: "modern notification", body: modernNote, headers: headers{modern}, status: 202, notified: `notifications/x in 2026-07-28, session ""`},
		{name: "modern notification, bare", body: initialized, headers: headers{modern}, status: 202, notified: `notifications/initialized in 2026-07-28, session ""`},
		{name: "no session", body: initialized, status: 400, code: protocol.CodeInvalidRequest},
		{name: "unknown session", body: initialized, headers: headers{"Mcp-Session-Id: x"}, status: 404, code: protocol.CodeSessionNotFound},
		{name: "response to an unknown session", body: response, headers: headers{"Mcp-Session-Id: x"}, status: 404, code: protocol.CodeSessionNotFound},
		{name: "modern response", body: response, headers: headers{modern}, status: 400, code: protocol.CodeInvalidRequest},
		{name: "bad notification", body: `{"jsonrpc":"2.0","method":"x","params":[]}`, headers: headers{inS1}, status: 400, code: protocol.CodeInvalidRequest},
	}
	for _, tt := range tests {
		b := newBackend()
		w := post(New(b.as(), Options{}), tt.body, tt.headers...)
		if tt.status != 202 {
			check(t, tt.name, w, tt.status, tt.code, false) // an id would be that of a request of the client's own
			continue
		}
		if w.Code != 202 || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "" {
			t.Errorf("%s: %d %q %v, want a bare 202", tt.name, w.Code, w.Body, w.Header())
		}
		if !slices.Equal(b.notified, []string{tt.notified}) {
			t.Errorf("%s: the backend heard %q, want %q", tt.name, b.notified, tt.notified)
		}
	}
}

// What serves a notification cannot turn the bare answer into a stream, not
// then and not later.
func TestNotificationSendsNothing(t *testing.T) {
	b := newBackend()
	var kept *Call
	var first error
	b.notify = func(c *Call) { kept, first = c, c.Send([]byte(`{}`)) }
	w := post(New(b.as(), Options{}), `{"jsonrpc":"2.0","method":"x"}`, inS1)
	if w.Code != 202 || w.Body.Len() != 0 {
		t.Errorf("%d %q, want a bare 202", w.Code, w.Body)
	}
	if late := kept.Send([]byte(`{}`)); first != wire.ErrAnswered || late != wire.ErrAnswered {
		t.Errorf("Send: %v, and later %v; want ErrAnswered", first, late)
	}
}

// The status of an answer by its code: only modern revisions have them, and an
// initialize that found no revision.
func TestStatusOfAnswers(t *testing.T) {
	tests := []struct {
		code                 protocol.Code
		modern, session, ini int
	}{
		{protocol.CodeMethodNotFound, 404, 200, 404},
		{protocol.CodeMissingCapability, 400, 200, 400},
		{protocol.CodeUnsupportedVersion, 400, 200, 400},
		{protocol.CodeHeaderMismatch, 400, 200, 400},
		{protocol.CodeInvalidParams, 200, 200, 200},
		{protocol.CodeInternal, 200, 200, 200},
		{protocol.CodeSessionNotFound, 200, 200, 200}, // a handler's own -32001
		{42, 200, 200, 200},
	}
	for _, tt := range tests {
		b := newBackend()
		b.serve = fails(tt.code)
		h := New(b.as(), Options{})
		check(t, fmt.Sprint(int(tt.code), " modern"), post(h, call("m", ""), modern, "Mcp-Method: m"), tt.modern, tt.code, true)
		check(t, fmt.Sprint(int(tt.code), " legacy"), post(h, legacyCall("m"), inS1), tt.session, tt.code, true)
		check(t, fmt.Sprint(int(tt.code), " initialize"), post(h, legacyCall("initialize")), tt.ini, tt.code, true)
	}
	b := newBackend()
	b.serve = func(c *Call) Answer {
		a := fails(protocol.CodeBusy)(c)
		a.Status = http.StatusServiceUnavailable
		return a
	}
	check(t, "own status", post(New(b.as(), Options{}), legacyCall("m"), inS1), 503, protocol.CodeBusy, true)
}

// The session that initialize opens goes into a header, and nothing else does.
func TestSessionHeader(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		a := result(c, "1")
		if c.Message.Method == protocol.MethodInitialize {
			a.Session = "fresh"
		}
		return a
	}
	h := New(b.as(), Options{})
	if got := post(h, legacyCall("initialize")).Header().Get("Mcp-Session-Id"); got != "fresh" {
		t.Errorf("initialize: session %q, want fresh", got)
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"legacy": post(h, legacyCall("m"), inS1),
		"modern": post(h, call("m", ""), modern, "Mcp-Method: m", inS1),
	} {
		if got := w.Header().Values("Mcp-Session-Id"); len(got) > 0 {
			t.Errorf("%s: session %q is echoed", name, got)
		}
	}
	// Also when the answer is a stream.
	w := post(h, legacyCall("initialize"), "Accept: text/event-stream")
	if got := w.Header().Get("Mcp-Session-Id"); got != "fresh" {
		t.Errorf("initialize as a stream: session %q", got)
	}
}

// Answers share memory, but never their content.
func TestBuffersAreSeparate(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		if len(c.Buffer) != 0 {
			t.Errorf("a buffer comes with %q in it", c.Buffer)
		}
		size := 10
		if c.Message.ID == protocol.NewID(2) {
			size = 2 * maxPooled
		}
		return result(c, `"`+strings.Repeat(c.Message.ID.String(), size)+`"`)
	}
	h := New(b.as(), Options{})
	for id := range 6 {
		body := strings.Replace(call("m", ""), `"id":1`, fmt.Sprintf(`"id":%d`, id%3), 1)
		w := post(h, body, modern, "Mcp-Method: m")
		if want := strings.Repeat(fmt.Sprint(id%3), 10) + `"}}`; !strings.HasSuffix(w.Body.String(), want) {
			t.Errorf("request %d: %.80s", id, w.Body)
		}
	}
}

func TestMethods(t *testing.T) {
	h := New(newBackend().as(), Options{})
	tests := []struct {
		method  string
		headers headers
		status  int
		code    protocol.Code
		allow   string
	}{
		{"GET", headers{accept}, 405, protocol.CodeInvalidRequest, "POST"},
		{"GET", headers{accept, modern}, 405, protocol.CodeInvalidRequest, "POST"},
		{"GET", headers{"Accept: application/json", inS1}, 406, protocol.CodeInvalidRequest, ""},
		{"GET", headers{accept, "Mcp-Session-Id: x"}, 404, protocol.CodeSessionNotFound, ""},
		{"DELETE", nil, 405, protocol.CodeInvalidRequest, "POST"},
		{"DELETE", headers{"Mcp-Session-Id: x"}, 404, protocol.CodeSessionNotFound, ""},
		{"PUT", headers{inS1}, 405, protocol.CodeInvalidRequest, "POST, GET, DELETE"},
		{"OPTIONS", nil, 405, protocol.CodeInvalidRequest, "POST, GET, DELETE"},
	}
	for _, tt := range tests {
		name := fmt.Sprint(tt.method, tt.headers)
		w := do(h, tt.method, "", tt.headers...)
		check(t, name, w, tt.status, tt.code, false)
		if got := w.Header().Get("Allow"); got != tt.allow {
			t.Errorf("%s: Allow %q, want %q", name, got, tt.allow)
		}
	}
}

func TestDelete(t *testing.T) {
	b := newBackend()
	h := New(b.as(), Options{})
	w := do(h, "DELETE", "", inS1, "MCP-Protocol-Version: 2025-11-25")
	if w.Code != 204 || w.Body.Len() != 0 {
		t.Errorf("DELETE: %d %q, want a bare 204", w.Code, w.Body)
	}
	check(t, "DELETE again", do(h, "DELETE", "", inS1), 404, protocol.CodeSessionNotFound, false)
	check(t, "request afterwards", post(h, legacyCall("m"), inS1), 404, protocol.CodeSessionNotFound, true)
	if len(b.sessions) != 1 {
		t.Errorf("%d sessions are left, want the other one", len(b.sessions))
	}
}

// A session that cannot be looked up for now is not one that is gone: the
// status says so to whatever asks for it, and when to ask again.
func TestSessionUnavailable(t *testing.T) {
	h := New(newBackend().as(), Options{})
	const stored = "Mcp-Session-Id: stored"
	for name, w := range map[string]*httptest.ResponseRecorder{
		"request":      post(h, legacyCall("m"), stored),
		"notification": post(h, `{"jsonrpc":"2.0","method":"m"}`, stored),
		"batch":        post(h, `[`+legacyCall("m")+`]`, stored),
		"stream":       do(h, http.MethodGet, "", stored),
		"end":          do(h, http.MethodDelete, "", stored),
	} {
		check(t, name, w, http.StatusServiceUnavailable, protocol.CodeUnavailable, name == "request")
		if got := w.Header().Get("Retry-After"); got != "2" {
			t.Errorf("%s: Retry-After %q, want 2", name, got)
		}
	}
}

// The status of a code that is a refusal of ours is not that of a handler's.
func TestRefusedStatus(t *testing.T) {
	for _, tt := range []struct {
		code             protocol.Code
		refused, handler int
		after            string
	}{
		{protocol.CodeBusy, 503, 200, "1"},
		{protocol.CodeUnavailable, 503, 200, "1"},
		{protocol.CodeSessionNotFound, 404, 200, ""},
		{protocol.CodeInvalidRequest, 200, 200, ""},
	} {
		for _, refused := range []bool{true, false} {
			b := newBackend()
			b.serve = func(c *Call) Answer {
				a := fails(tt.code)(c)
				a.Refused = refused
				return a
			}
			want := tt.handler
			if refused {
				want = tt.refused
			}
			for name, w := range map[string]*httptest.ResponseRecorder{
				"modern":  post(New(b.as(), Options{}), call("m", ""), modern, "Mcp-Method: m"),
				"session": post(New(b.as(), Options{}), legacyCall("m"), inS1),
			} {
				check(t, fmt.Sprint(name, refused), w, want, tt.code, true)
				if got := w.Header().Get("Retry-After"); got != tt.after {
					t.Errorf("%s, %d, refused %v: Retry-After %q, want %q", name, tt.code, refused, got, tt.after)
				}
			}
		}
	}
}
