package openapi_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// recorder is an API that keeps the requests it receives. answer is what it says, or
// "{}" if that is nil.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []recorded
	answer http.HandlerFunc
}

// recorded is a request that arrived.
type recorded struct {
	method, uri, body string
	header            http.Header
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.seen = append(r.seen, recorded{req.Method, req.RequestURI, string(body), req.Header})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(r.Close)
	return r
}

// last returns the request that arrived last, and forgets all.
func (r *recorder) last() (last recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) > 0 {
		last = r.seen[len(r.seen)-1]
	}
	r.seen = nil
	return last
}

// serve returns a client of a server with the tools of a document, and the problems.
func serve(t *testing.T, doc string, o *openapi.Options) (*mcptest.Client, []openapi.Problem) {
	t.Helper()
	given := []byte(doc)
	tools, problems, err := openapi.Tools(given, o)
	if err != nil {
		t.Fatal(err)
	}
	clear(given) // the tools keep nothing of it
	s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, nil)
	if err := s.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return mcptest.New(t, s), problems
}

// document returns a document with these paths, and components if they are not "".
func document(paths, components string) string {
	if components != "" {
		components = `,"components":` + components
	}
	return `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{` + paths + `}` + components + `}`
}

// operation returns the only path of a document: POST /x with parameters and more members.
func operation(parameters, more string) string {
	return `"/x":{"post":{"operationId":"op","parameters":[` + parameters + `]` + more + `}}`
}

// text returns the texts of problems, one a line.
func text(problems []openapi.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String())
		if p.LeftOut {
			b.WriteString(" (left out)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// locked is a writer for logs.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// noted returns an HTTP client that notes the URL of a request, and answers it.
func noted(sent *string) *http.Client {
	return &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		*sent = r.URL.String()
		return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
	})}
}
