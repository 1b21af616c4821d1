package harness

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
)

// SSEClient talks HTTP+SSE: it hears on the stream what it says by POST.
type SSEClient struct {
	T        testing.TB
	Endpoint string // as the server names it
	URL      string
	Events   *bufio.Reader
	Leave    func()
	spec     SpecWatch
	http     *http.Client
}

// OwnHTTP returns a client that shares no connections with other tests: each
// httptest.Server that closes breaks those of http.DefaultClient.
func OwnHTTP(t testing.TB) *http.Client {
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	return &http.Client{Transport: own}
}

// SSEHandler returns the endpoint of s with the HTTP+SSE transport, whatever its
// options are, so that tests can run any server over it.
func SSEHandler(s *mcp.Server) http.Handler {
	return s.Handler().(*streamable.Handler).With(func(o *streamable.Options) { o.SSE = true })
}

func OpenSSE(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	r := chi.NewRouter()
	r.Mount("/deep/mcp", SSEHandler(s))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return ConnectSSE(t, server.URL+"/deep/mcp", rev)
}

func ConnectSSE(t testing.TB, address string, rev protocol.Revision) *SSEClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	own := OwnHTTP(t)
	res, err := own.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave := func() {
		cancel()
		res.Body.Close()
	}
	t.Cleanup(leave)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("GET: %s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	c := &SSEClient{T: t, Events: bufio.NewReader(res.Body), Leave: leave, spec: SpecWatch{t, rev}, http: own}
	kind, data, err := c.Event()
	if kind != "endpoint" {
		t.Fatalf("the first event is %q: %s, %v", kind, data, err)
	}
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := url.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	c.Endpoint, c.URL = data, base.ResolveReference(ref).String()
	return c
}

// event reads one event; comments are passed.
func (c *SSEClient) Event() (kind, data string, err error) {
	for {
		line, err := c.Events.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && data != "":
			return kind, data, nil
		case strings.HasPrefix(line, "event: "):
			kind = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
}

// Ended reports whether the stream ends without a further event.
func (c *SSEClient) Ended() bool {
	rest, err := io.ReadAll(c.Events)
	return err == nil && !strings.Contains(string(rest), "data:")
}

func (c *SSEClient) Post(line string) (status int, body string) {
	c.T.Helper()
	return PostTo(c.T, c.URL, line, nil)
}

func PostTo(t testing.TB, address, line string, header http.Header) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (c *SSEClient) Say(line string) []string {
	if status, body := c.Post(line); status != http.StatusAccepted || body != "" {
		c.T.Fatalf("POST of %s: %d %q, want 202 and nothing", line, status, body)
	}
	if !IsRequest(line) {
		return nil
	}
	var heard []string
	for {
		_, data, err := c.Event()
		if err != nil {
			c.T.Fatalf("after %s: the stream ended: %v", line, err)
		}
		heard = append(heard, data)
		if IsAnswer(data) {
			return c.spec.heard(line, heard...)
		}
	}
}
