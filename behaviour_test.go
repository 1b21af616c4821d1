package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// behaviour is one case of how a server behaves. run is called for every
// transport and every revision where the case applies.
type behaviour struct {
	what      string
	transport string              // the only one where it applies; "" is all, "connections" all but http
	revisions []protocol.Revision // nil is all
	run       func(t *testing.T, tr transportUnderTest, rev protocol.Revision)
}

var legacy = []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125}

func runBehaviours(t *testing.T, list []behaviour) {
	for _, b := range list {
		if b.revisions == nil {
			b.revisions = testdep.Revisions()
		}
		t.Run(b.what, func(t *testing.T) {
			for _, tr := range transportsOf(protocol.LatestLegacy) {
				if b.transport == "http" && tr.name != "http" || b.transport == "connections" && tr.name == "http" {
					continue
				}
				for _, rev := range b.revisions {
					if tr.name == "sse" && rev.Modern() {
						continue
					}
					t.Run(tr.name+"/"+rev.String(), func(t *testing.T) { b.run(t, tr, rev) })
				}
			}
		})
	}
}

// party is one client that speaks one revision.
type party struct {
	t   *testing.T
	rev protocol.Revision
	c   conversation
}

// arrive connects to s. It has not said anything yet.
func arrive(t *testing.T, tr transportUnderTest, rev protocol.Revision, s *mcp.Server) *party {
	return &party{t, rev, tr.open(t, s, rev)}
}

// join connects to s and, in a legacy revision, opens a session.
func join(t *testing.T, tr transportUnderTest, rev protocol.Revision, s *mcp.Server) *party {
	t.Helper()
	p := arrive(t, tr, rev, s)
	p.greet()
	return p
}

// greet opens a session in a legacy revision.
func (p *party) greet() {
	p.t.Helper()
	if !p.rev.Modern() {
		p.want(p.ask("initialize", hello(p.rev.String())), `"result":`)
		p.c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
}

// hello returns the members of the params of initialize.
func hello(version string) string {
	return fmt.Sprintf(`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}`, version)
}

// request returns a request with these members in its params. id is JSON.
func (p *party) request(id, method, members string) string {
	if p.rev.Modern() {
		members = strings.TrimPrefix(members+",$META", ",")
	}
	return expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, members), p.rev)
}

// ask sends a request with the id 1 and returns its answer.
func (p *party) ask(method, members string) string { return p.askAs("1", method, members) }

// askAs sends a request and returns its answer.
func (p *party) askAs(id, method, members string) string {
	p.t.Helper()
	heard := p.c.say(p.request(id, method, members))
	if len(heard) == 0 {
		p.t.Fatalf("%s has no answer", method)
	}
	return heard[len(heard)-1]
}

// want checks that an answer has every part.
func (p *party) want(answer string, parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			p.t.Errorf("got  %s\nwant %s", answer, part)
		}
	}
}

// alive checks that the server answers still.
func (p *party) alive() {
	p.t.Helper()
	p.want(p.askAs(`"alive"`, "tools/call", `"name":"greet","arguments":{"name":"Ada"}`), `"id":"alive"`, "Hello, Ada!")
}

// answerID returns the id of an answer, as JSON; "" for other messages.
func answerID(message string) string {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(message), &m) != nil || m.Method != "" {
		return ""
	}
	return string(m.ID)
}

// hearing is what a party hears when it does not wait for each answer.
type hearing struct {
	*party
	heard  chan string
	line   func(line string) (hangUp func())
	settle func() // waits until everything sent before is answered, if that can be known
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// hear makes p hear messages when they come. p must not ask any more.
func (p *party) hear() *hearing {
	h := &hearing{party: p, heard: make(chan string, 1000), settle: func() {}}
	switch c := p.c.(type) {
	case *httpClient:
		var posts sync.WaitGroup
		h.settle = posts.Wait
		p.t.Cleanup(posts.Wait)
		h.line = func(line string) func() {
			ctx, hangUp := context.WithCancel(p.t.Context())
			posts.Go(func() {
				defer hangUp()
				h.post(ctx, c, line)
			})
			return hangUp
		}
	case *stream:
		go func() {
			for {
				line, err := c.out.ReadString('\n')
				if err != nil {
					return
				}
				h.heard <- strings.TrimSuffix(line, "\n")
			}
		}()
		h.line = func(line string) func() {
			if _, err := io.WriteString(c.in, line+"\n"); err != nil {
				p.t.Error(err)
			}
			return func() {}
		}
	case *connClient:
		go func() {
			for {
				message, err := c.conn.Read()
				if err != nil {
					return
				}
				h.heard <- string(message)
			}
		}()
		h.line = func(line string) func() {
			if err := errors.Join(c.conn.Write([]byte(line)), c.conn.Flush()); err != nil {
				p.t.Error(err)
			}
			return func() {}
		}
	case *sseClient:
		go func() {
			for {
				_, message, err := c.event()
				if err != nil {
					return
				}
				h.heard <- message
			}
		}()
		h.line = func(line string) func() {
			if status, body := c.post(line); status != http.StatusAccepted {
				p.t.Errorf("POST: %d %s", status, body)
			}
			return func() {}
		}
	default:
		p.t.Fatalf("hear does not know the conversation %T", c)
	}
	return h
}

// post posts a line and hears what comes, until that ends or ctx does.
func (h *hearing) post(ctx context.Context, c *httpClient, line string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(line))
	if err != nil {
		h.t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.setHeaders(req, line)
	res, err := c.client.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			h.t.Error(err)
		}
		return
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if body, _ := io.ReadAll(res.Body); len(body) > 0 {
			h.heard <- string(body)
		}
		return
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
			h.heard <- data
		}
	}
}

// send sends a request and does not wait. hangUp ends the connection that
// waits for its answer, where it has one of its own.
func (h *hearing) send(id, method, members string) (hangUp func()) {
	return h.line(h.request(id, method, members))
}

// next returns the next message.
func (h *hearing) next() string {
	h.t.Helper()
	select {
	case message := <-h.heard:
		checkSpec(h.t, h.rev, "", message)
		return message
	case <-time.After(patience):
		h.t.Fatal("nothing is heard")
		return ""
	}
}

// rest waits for everything that was asked and returns what was heard and not
// taken by next, but for the answer to a last request of its own.
func (h *hearing) rest() []string {
	h.t.Helper()
	h.settle()
	h.send(`"rest"`, "tools/list", "")
	var rest []string
	for {
		message := h.next()
		if answerID(message) == `"rest"` {
			return rest
		}
		rest = append(rest, message)
	}
}

// gate is a tool that says when it runs, and waits until it may end.
type gate struct {
	running chan struct{}
	open    chan struct{}
	ended   chan error // why its context ended, if it did before the gate was open
}

func newGate() *gate {
	return &gate{make(chan struct{}, 10), make(chan struct{}), make(chan error, 10)}
}

func (g *gate) tool(name string) mcp.Component {
	return mcp.Tool(name, func(f *mcp.Frame, _ empty) (string, error) {
		g.running <- struct{}{}
		select {
		case <-g.open:
			return "through", nil
		case <-f.Done():
			g.ended <- context.Cause(f)
			return "", context.Cause(f)
		}
	})
}

// await receives from c, or fails the test.
func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}
