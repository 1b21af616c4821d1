package harness

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

// Behavior is one case of how a server behaves. run is called for every
// transport and every revision where the case applies.
type Behavior struct {
	What      string
	Transport string              // the only one where it applies; "" is all, "connections" all but http
	Revisions []protocol.Revision // nil is all
	Run       func(t *testing.T, tr TransportUnderTest, rev protocol.Revision)
}

var Legacy = []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125}

func RunBehaviors(t *testing.T, list []Behavior) {
	for _, b := range list {
		if b.Revisions == nil {
			b.Revisions = testdep.Revisions()
		}
		t.Run(b.What, func(t *testing.T) {
			for _, tr := range TransportsOf(protocol.LatestLegacy) {
				if b.Transport == "http" && tr.Name != "http" || b.Transport == "connections" && tr.Name == "http" {
					continue
				}
				for _, rev := range b.Revisions {
					if tr.Name == "sse" && rev.Modern() {
						continue
					}
					t.Run(tr.Name+"/"+rev.String(), func(t *testing.T) { b.Run(t, tr, rev) })
				}
			}
		})
	}
}

// Party is one client that speaks one revision.
type Party struct {
	T   *testing.T
	Rev protocol.Revision
	C   Conversation
}

// Arrive connects to s. It has not said anything yet.
func Arrive(t *testing.T, tr TransportUnderTest, rev protocol.Revision, s *mcp.Server) *Party {
	return &Party{t, rev, tr.Open(t, s, rev)}
}

// Join connects to s and, in a legacy revision, opens a session.
func Join(t *testing.T, tr TransportUnderTest, rev protocol.Revision, s *mcp.Server) *Party {
	t.Helper()
	p := Arrive(t, tr, rev, s)
	p.Greet()
	return p
}

// Greet opens a session in a legacy revision.
func (p *Party) Greet() {
	p.T.Helper()
	if !p.Rev.Modern() {
		p.Want(p.Ask("initialize", Hello(p.Rev.String())), `"result":`)
		p.C.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
}

// Hello returns the members of the params of initialize.
func Hello(version string) string {
	return fmt.Sprintf(`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}`, version)
}

// request returns a request with these members in its params. id is JSON.
func (p *Party) Request(id, method, members string) string {
	if p.Rev.Modern() {
		members = strings.TrimPrefix(members+",$META", ",")
	}
	return Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, members), p.Rev)
}

// Ask sends a request with the id 1 and returns its answer.
func (p *Party) Ask(method, members string) string { return p.AskAs("1", method, members) }

// askAs sends a request and returns its answer.
func (p *Party) AskAs(id, method, members string) string {
	p.T.Helper()
	heard := p.C.Say(p.Request(id, method, members))
	if len(heard) == 0 {
		p.T.Fatalf("%s has no answer", method)
	}
	return heard[len(heard)-1]
}

// want checks that an answer has every part.
func (p *Party) Want(answer string, parts ...string) {
	p.T.Helper()
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			p.T.Errorf("got  %s\nwant %s", answer, part)
		}
	}
}

// alive checks that the server answers still.
func (p *Party) Alive() {
	p.T.Helper()
	p.Want(p.AskAs(`"alive"`, "tools/call", `"name":"greet","arguments":{"name":"Ada"}`), `"id":"alive"`, "Hello, Ada!")
}

// AnswerID returns the id of an answer, as JSON; "" for other messages.
func AnswerID(message string) string {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(message), &m) != nil || m.Method != "" {
		return ""
	}
	return string(m.ID)
}

// Hearing is what a party hears when it does not wait for each answer.
type Hearing struct {
	*Party
	Heard  chan string
	Line   func(line string) (hangUp func())
	settle func() // waits until everything sent before is answered, if that can be known
}

// Patience is how long a test waits for what must come.
const Patience = 20 * time.Second

// hear makes p hear messages when they come. p must not ask any more.
func (p *Party) Hear() *Hearing {
	h := &Hearing{Party: p, Heard: make(chan string, 1000), settle: func() {}}
	switch c := p.C.(type) {
	case *HTTPClient:
		var posts sync.WaitGroup
		h.settle = posts.Wait
		p.T.Cleanup(posts.Wait)
		h.Line = func(line string) func() {
			ctx, hangUp := context.WithCancel(p.T.Context())
			posts.Go(func() {
				defer hangUp()
				h.post(ctx, c, line)
			})
			return hangUp
		}
	case *Stream:
		go func() {
			for {
				line, err := c.Out.ReadString('\n')
				if err != nil {
					return
				}
				h.Heard <- strings.TrimSuffix(line, "\n")
			}
		}()
		h.Line = func(line string) func() {
			if _, err := io.WriteString(c.In, line+"\n"); err != nil {
				p.T.Error(err)
			}
			return func() {}
		}
	case *ConnClient:
		go func() {
			for {
				message, err := c.Conn.Read()
				if err != nil {
					return
				}
				h.Heard <- string(message)
			}
		}()
		h.Line = func(line string) func() {
			if err := errors.Join(c.Conn.Write([]byte(line)), c.Conn.Flush()); err != nil {
				p.T.Error(err)
			}
			return func() {}
		}
	case *SSEClient:
		go func() {
			for {
				_, message, err := c.Event()
				if err != nil {
					return
				}
				h.Heard <- message
			}
		}()
		h.Line = func(line string) func() {
			if status, body := c.Post(line); status != http.StatusAccepted {
				p.T.Errorf("POST: %d %s", status, body)
			}
			return func() {}
		}
	default:
		p.T.Fatalf("hear does not know the conversation %T", c)
	}
	return h
}

// post posts a line and hears what comes, until that ends or ctx does.
func (h *Hearing) post(ctx context.Context, c *HTTPClient, line string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(line))
	if err != nil {
		h.T.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.SetHeaders(req, line)
	res, err := c.Client.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			h.T.Error(err)
		}
		return
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if body, _ := io.ReadAll(res.Body); len(body) > 0 {
			h.Heard <- string(body)
		}
		return
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
			h.Heard <- data
		}
	}
}

// send sends a request and does not wait. hangUp ends the connection that
// waits for its answer, where it has one of its own.
func (h *Hearing) Send(id, method, members string) (hangUp func()) {
	return h.Line(h.Request(id, method, members))
}

// next returns the next message.
func (h *Hearing) Next() string {
	h.T.Helper()
	select {
	case message := <-h.Heard:
		CheckSpec(h.T, h.Rev, "", message)
		return message
	case <-time.After(Patience):
		h.T.Fatal("nothing is heard")
		return ""
	}
}

// rest waits for everything that was asked and returns what was heard and not
// taken by next, but for the answer to a last request of its own.
func (h *Hearing) Rest() []string {
	h.T.Helper()
	h.settle()
	h.Send(`"rest"`, "tools/list", "")
	var rest []string
	for {
		message := h.Next()
		if AnswerID(message) == `"rest"` {
			return rest
		}
		rest = append(rest, message)
	}
}

// gate is a tool that says when it runs, and waits until it may end.
type gate struct {
	Running chan struct{}
	Open    chan struct{}
	Ended   chan error // why its context ended, if it did before the gate was open
}

func NewGate() *gate {
	return &gate{make(chan struct{}, 10), make(chan struct{}), make(chan error, 10)}
}

func (g *gate) Tool(name string) mcp.Component {
	return mcp.Tool(name, func(f *mcp.Frame, _ struct{}) (string, error) {
		g.Running <- struct{}{}
		select {
		case <-g.Open:
			return "through", nil
		case <-f.Done():
			g.Ended <- context.Cause(f)
			return "", context.Cause(f)
		}
	})
}

// Await receives from c, or fails the test.
func Await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

// batch says a batch and returns the answers in it.
func (p *Party) Batch(line string) []json.RawMessage {
	p.T.Helper()
	heard := p.C.Say(line)
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(heard[len(heard)-1]), &answers); err != nil || len(heard) != 1 {
		p.T.Fatalf("heard %q: %v", heard, err)
	}
	return answers
}

// page lists the resources from cursor on; "" is the beginning.
func (p *Party) Page(cursor string) resourcePage {
	p.T.Helper()
	members := ""
	if cursor != "" {
		members = fmt.Sprintf(`"cursor":%q`, cursor)
	}
	var answer struct {
		Result struct {
			Resources  []struct{ URI string }
			NextCursor string
		}
	}
	text := p.Ask("resources/list", members)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || strings.Contains(text, `"error":`) {
		p.T.Fatalf("%s: %v", text, err)
	}
	page := resourcePage{Next: answer.Result.NextCursor}
	for _, r := range answer.Result.Resources {
		page.Uris = append(page.Uris, r.URI)
	}
	return page
}

// refused sends a message that the server refuses, by its status over HTTP.
func (h *Hearing) Refused(line string) {
	if c, ok := h.C.(*HTTPClient); ok {
		if status, body := c.Send(line); status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge && status != http.StatusAccepted {
			h.T.Errorf("POST: %d %s", status, body)
		}
		return
	}
	h.Line(line)
}

// answerTo returns the answer to a request, behind errors without an id.
func (h *Hearing) AnswerTo(id string) string {
	for {
		if m := h.Next(); AnswerID(m) == id {
			return m
		}
	}
}
