package mcp_test

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

// conversation is a client that says lines and hears lines.
type conversation interface {
	// say sends a message and returns what comes back for it, in order.
	say(line string) []string
}

type transportUnderTest struct {
	name string
	open func(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation
}

var transports = []transportUnderTest{
	{"stdio", openStream},
	{"http", openHTTP},
	{"pipe", openPipe},
	{"websocket", openWebSocket},
	{"tcp", openTCP},
	{"unix", openUnix},
}

// transportsOf returns the transports that rev has.
func transportsOf(rev protocol.Revision) []transportUnderTest {
	if rev.Modern() {
		return transports
	}
	return append(slices.Clone(transports), transportUnderTest{"sse", openSSE})
}

// stream talks over a pair of pipes, as over standard input and output.
type stream struct {
	t    testing.TB
	in   io.Writer
	out  *bufio.Reader
	spec specWatch
}

func openStream(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), transport.NewStream(inR, outW, nil)) }()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR) // what comes last
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) && !errors.Is(err, errFired) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return &stream{t: t, in: inW, out: newLineReader(outR), spec: specWatch{t, rev}}
}

func newLineReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

func (c *stream) say(line string) []string {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	if !isRequest(line) {
		return nil
	}
	var heard []string
	for {
		answer, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("after %s: %v", line, err)
		}
		heard = append(heard, strings.TrimSuffix(answer, "\n"))
		var m struct{ Method string }
		if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Method == "" {
			return c.spec.heard(line, heard...)
		}
	}
}

// httpClient talks to a server that is mounted in a chi router.
type httpClient struct {
	t       testing.TB
	url     string
	client  *http.Client
	rev     protocol.Revision
	session string
	spec    specWatch
}

func openHTTP(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	r := chi.NewRouter()
	r.Mount("/mcp", s.Handler())
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &httpClient{t: t, url: server.URL + "/mcp", client: server.Client(), rev: rev, spec: specWatch{t, rev}}
}

func (c *httpClient) say(line string) []string {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(line))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.setHeaders(req, line)
	res, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if !isRequest(line) {
		if res.StatusCode != http.StatusAccepted || len(body) != 0 {
			c.t.Errorf("%s: status %d, body %q, want 202 and none", line, res.StatusCode, body)
		}
		return nil
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return c.spec.heard(line, events(body)...)
	}
	return c.spec.heard(line, string(body))
}

// setHeaders sends what the revision demands beside the body.
func (c *httpClient) setHeaders(req *http.Request, line string) {
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.session != "" && c.rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("MCP-Protocol-Version", c.rev.String())
	}
	if !c.rev.Modern() {
		return
	}
	var m struct {
		Method string
		Params struct{ Name, URI, TaskID string }
	}
	_ = json.Unmarshal([]byte(strings.TrimLeft(line, "\ufeff")), &m) // a broken line has no headers
	req.Header.Set("MCP-Protocol-Version", c.rev.String())
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

// events returns the data of server-sent events.
func events(body []byte) []string {
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
