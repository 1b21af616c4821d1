package httplink_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/client/internal/httplink"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/linktest"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

// server is an HTTP server that remembers its requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

// serve starts a server; n, from 0, counts the requests that handle gets.
func serve(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		handle(w, r, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// request returns the nth request and its body.
func (s *server) request(n int) (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[n], s.bodies[n]
}

// count returns how many requests there were.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// open returns a link to a server.
func open(t *testing.T, url string, opts origin.Options, noStream bool) (*linktest.Recorder, link.Link) {
	t.Helper()
	to := linktest.NewRecorder(t)
	return to, openTo(t, url, opts, noStream, to)
}

func openTo(t *testing.T, url string, opts origin.Options, noStream bool, to link.Receiver) link.Link {
	t.Helper()
	o, err := origin.New(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := httplink.New(o, noStream).Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	return l
}

// answer is the answer to request 1.
const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`

func writeJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprint(w, text)
}

// events writes to a stream and flushes it.
func events(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, format, args...)
	_ = http.NewResponseController(w).Flush()
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

// call is request 1.
func call(rev protocol.Revision) *link.Message {
	return linktest.Call(rev, 1, protocol.MethodToolsCall)
}

// session is the id that initialize returns in tests.
const session = "session-1"

// initialize opens a session on a link.
func initialize(t *testing.T, l link.Link) {
	t.Helper()
	if err := l.Send(t.Context(), linktest.Call(0, 1, protocol.MethodInitialize)); err != nil {
		t.Fatal(err)
	}
}

// initialized says that it is open.
func initialized(t *testing.T, l link.Link, rev protocol.Revision) {
	t.Helper()
	if err := l.Send(t.Context(), linktest.Notification(rev, protocol.MethodInitialized)); err != nil {
		t.Fatal(err)
	}
}

// withSession answers what comes before calls, and tells whether it did.
func withSession(w http.ResponseWriter, n int) bool {
	switch n {
	case 0:
		w.Header().Set("Mcp-Session-Id", session)
		writeJSON(w, answer)
	case 1:
		w.WriteHeader(http.StatusAccepted)
	}
	return n < 2
}
