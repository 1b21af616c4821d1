package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Conversation is a client that says lines and hears lines.
type Conversation interface {
	// say sends a message and returns what comes back for it, in order.
	Say(line string) []string
}

type TransportUnderTest struct {
	Name string
	Open func(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation
}

var Transports = []TransportUnderTest{
	{"stdio", OpenStream},
	{"http", OpenHTTP},
	{"pipe", OpenPipe},
	{"websocket", openWebSocket},
	{"tcp", openTCP},
	{"unix", openUnix},
}

// TransportsOf returns the transports that rev has.
func TransportsOf(rev protocol.Revision) []TransportUnderTest {
	if rev.Modern() {
		return Transports
	}
	return append(slices.Clone(Transports), TransportUnderTest{"sse", OpenSSE})
}

// Stream talks over a pair of pipes, as over standard input and output.
type Stream struct {
	T    testing.TB
	In   io.Writer
	Out  *bufio.Reader
	Spec SpecWatch
}

func OpenStream(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), transport.NewStream(inR, outW, nil)) }()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR) // what comes last
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) && !errors.Is(err, ErrFired) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return &Stream{T: t, In: inW, Out: NewLineReader(outR), Spec: SpecWatch{t, rev}}
}

func NewLineReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func (c *Stream) Say(line string) []string {
	if _, err := io.WriteString(c.In, line+"\n"); err != nil {
		c.T.Fatal(err)
	}
	if !IsRequest(line) {
		return nil
	}
	var heard []string
	for {
		answer, err := c.Out.ReadString('\n')
		if err != nil {
			c.T.Fatalf("after %s: %v", line, err)
		}
		heard = append(heard, strings.TrimSuffix(answer, "\n"))
		var m struct{ Method string }
		if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Method == "" {
			return c.Spec.heard(line, heard...)
		}
	}
}

// HTTPClient talks to a server that is mounted in a chi router.
type HTTPClient struct {
	T       testing.TB
	URL     string
	Client  *http.Client
	Rev     protocol.Revision
	Session string
	Spec    SpecWatch
}

func OpenHTTP(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	r := chi.NewRouter()
	r.Mount("/mcp", s.Handler())
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &HTTPClient{T: t, URL: server.URL + "/mcp", Client: server.Client(), Rev: rev, Spec: SpecWatch{t, rev}}
}

func (c *HTTPClient) Say(line string) []string {
	req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(line))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.SetHeaders(req, line)
	res, err := c.Client.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.Session = id
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	if !IsRequest(line) {
		if res.StatusCode != http.StatusAccepted || len(body) != 0 {
			c.T.Errorf("%s: status %d, body %q, want 202 and none", line, res.StatusCode, body)
		}
		return nil
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return c.Spec.heard(line, Events(body)...)
	}
	return c.Spec.heard(line, string(body))
}

// setHeaders sends what the revision demands beside the body.
func (c *HTTPClient) SetHeaders(req *http.Request, line string) {
	if c.Session != "" {
		req.Header.Set("Mcp-Session-Id", c.Session)
	}
	if c.Session != "" && c.Rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("MCP-Protocol-Version", c.Rev.String())
	}
	if !c.Rev.Modern() {
		return
	}
	var m struct {
		Method string
		Params struct{ Name, URI, TaskID string }
	}
	_ = json.Unmarshal([]byte(strings.TrimLeft(line, "\ufeff")), &m) // a broken line has no headers
	req.Header.Set("MCP-Protocol-Version", c.Rev.String())
	req.Header.Set("Mcp-Method", m.Method)
	name := m.Params.Name
	switch {
	case strings.HasPrefix(m.Method, "resources/"):
		name = m.Params.URI
	case strings.HasPrefix(m.Method, "tasks/"):
		name = m.Params.TaskID
	}
	if name != "" {
		req.Header.Set("Mcp-Name", wire.EncodeHeaderValue(name))
	}
}

// Events returns the data of server-sent events.
func Events(body []byte) []string {
	var list []string
	for event := range bytes.SplitSeq(body, []byte("\n\n")) {
		for line := range bytes.Lines(event) {
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if data = bytes.TrimSpace(data); ok && len(data) > 0 { // the first event may be empty
				list = append(list, string(data))
			}
		}
	}
	return list
}

// send posts a body with the session's headers.
func (c *HTTPClient) Send(body string) (status int, answer string) {
	req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.Session != "" {
		req.Header.Set("Mcp-Session-Id", c.Session)
	}
	res, err := c.Client.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return res.StatusCode, string(text)
}
