package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of batches, which one revision has.
var batchBehaviours = []behaviour{
	{what: "a batch of two", revisions: batches, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		answers := join(t, tr, rev, fixture(t, nil)).batch(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`)
	}},
	{what: "a batch whose first is the last to be ready", revisions: batches, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		s := fixture(t, nil)
		later := make(chan struct{}, 2)
		s.MustAdd(
			mcp.Tool("wait", func(f *mcp.Frame, _ empty) (string, error) {
				for range 2 {
					select {
					case <-later:
					case <-f.Done():
						return "", f.Err()
					}
				}
				return "waited", nil
			}),
			mcp.Tool("go", func(*mcp.Frame, empty) (string, error) {
				later <- struct{}{}
				return "gone", nil
			}))
		answers := join(t, tr, rev, s).batch(`[{"jsonrpc":"2.0","id":"first","method":"tools/call","params":{"name":"wait"}},` +
			`{"jsonrpc":"2.0","id":"second","method":"tools/call","params":{"name":"go"}},{"jsonrpc":"2.0","id":"third","method":"tools/call","params":{"name":"go"}}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":"first",`, `{"jsonrpc":"2.0","id":"second",`, `{"jsonrpc":"2.0","id":"third",`)
	}},
	{what: "a batch with faults and a notification", revisions: batches, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		answers := join(t, tr, rev, fixture(t, nil)).batch(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"unknown/method"},` +
			`{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":3,"method":"tools/list"}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":1,"result"`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,`, `{"jsonrpc":"2.0","id":3,"result"`)
	}},
	{what: "batches that are none", revisions: batches, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		p.want(p.c.say(`[]`)[0], `"code":-32600`, "must not be empty")
		p.want(p.c.say(`[` + p.request("1", "initialize", hello(rev.String())) + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`)[0],
			`"code":-32600`, "initialize must not be part of a batch")
		const told = `[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}]`
		if c, ok := p.c.(*httpClient); ok {
			if status, body := c.send(told); status != http.StatusAccepted || body != "" {
				t.Errorf("notifications alone: %d %s", status, body)
			}
		} else if heard := p.c.say(told); heard != nil {
			t.Errorf("notifications alone: %s", heard)
		}
		p.alive()
	}},
	{what: "a batch where there are none", revisions: []protocol.Revision{protocol.V20241105, protocol.V20250618, protocol.V20251125}, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		p.want(p.c.say(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)[0], `"code":-32600`, "revision 2025-03-26")
		if c, ok := p.c.(*httpClient); ok {
			if status, body := c.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); status != http.StatusBadRequest {
				t.Errorf("status %d: %s", status, body)
			}
		}
		p.alive()
	}},
}

var batches = []protocol.Revision{protocol.V20250326}

func TestBatchBehaviours(t *testing.T) { runBehaviours(t, batchBehaviours) }

// batch says a batch and returns the answers in it.
func (p *party) batch(line string) []json.RawMessage {
	p.t.Helper()
	heard := p.c.say(line)
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(heard[len(heard)-1]), &answers); err != nil || len(heard) != 1 {
		p.t.Fatalf("heard %q: %v", heard, err)
	}
	return answers
}

// wantAnswers checks how each answer begins.
func wantAnswers(t *testing.T, answers []json.RawMessage, want ...string) {
	t.Helper()
	if len(answers) != len(want) {
		t.Fatalf("%d answers, want %d: %s", len(answers), len(want), answers)
	}
	for i, part := range want {
		if !strings.HasPrefix(string(answers[i]), part) {
			t.Errorf("answer %d\ngot  %s\nwant %s", i, answers[i], part)
		}
	}
}

// The cases of lists and of log messages.
var listBehaviours = []behaviour{
	{what: "pages", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, pagedServer(t))
		first := p.page("")
		second := p.page(first.next)
		third := p.page(second.next)
		if got := fmt.Sprint(first.uris, second.uris, third); got != "[n:0 n:1] [n:2 n:3] {[n:4] }" {
			t.Errorf("pages: %s", got)
		}
	}},
	{what: "a cursor beyond the end", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		s := pagedServer(t)
		p := join(t, tr, rev, s)
		second := p.page(p.page("").next)
		s.Remove(mcp.KindResource, "n:4")
		if last := p.page(second.next); len(last.uris) > 0 || last.next != "" {
			t.Errorf("beyond the end: %v", last)
		}
	}},
	{what: "a cursor that is none", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, pagedServer(t))
		for _, list := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
			p.want(p.ask(list, `"cursor":"invalid!!!"`), `"code":-32602`)
			p.want(p.ask(list, `"cursor":7`), `"code":-32602`)
		}
		p.alive()
	}},
	{what: "a resource that comes between pages", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		s := pagedServer(t)
		p := join(t, tr, rev, s)
		page := p.page("")
		uris := page.uris
		s.MustAdd(mcp.Resource("n:00", readText), mcp.Resource("n:35", readText)) // before the cursor, and after
		for page.next != "" {
			page = p.page(page.next)
			uris = append(uris, page.uris...)
		}
		if want := []string{"n:0", "n:1", "n:2", "n:3", "n:35", "n:4"}; !slices.Equal(uris, want) {
			t.Errorf("got %v, want %v", uris, want)
		}
	}},
	{what: "a log level", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("report", func(f *mcp.Frame, _ empty) (string, error) {
			for _, level := range []protocol.Level{protocol.LevelInfo, protocol.LevelWarning, protocol.LevelError} {
				if err := f.Log(level, "said", "part"); err != nil {
					return "", err
				}
			}
			return "reported", nil
		}))
		p := join(t, tr, rev, s)
		call, wrong := p.request("1", "tools/call", `"name":"report"`), p.request("2", "logging/setLevel", `"level":"bogus"`)
		if rev.Modern() {
			level := func(name string) string {
				return strings.Replace(call, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+name+`",`, 1)
			}
			call, wrong = level("warning"), level("bogus")
		} else {
			p.want(p.ask("logging/setLevel", `"level":"warning"`), `"result":{}`)
		}
		heard := p.c.say(call)
		if len(heard) != 3 {
			t.Fatalf("heard %q", heard)
		}
		p.want(heard[0], `"method":"notifications/message","params":{"level":"warning","logger":"part","data":"said"}`)
		p.want(heard[1], `"level":"error"`)
		p.want(heard[2], "reported")
		p.want(p.c.say(wrong)[0], `"code":-32602`)
	}},
}

func TestListBehaviours(t *testing.T) { runBehaviours(t, listBehaviours) }

// pagedServer has five resources, two on a page.
func pagedServer(t *testing.T) *mcp.Server {
	t.Helper()
	s := bare(mcp.Options{PageSize: 2})
	s.MustAdd(tool("first"), mcp.Prompt("one", func(*mcp.Frame, empty) (string, error) { return "one", nil }),
		mcp.Tool("greet", func(_ *mcp.Frame, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}))
	for i := range 5 {
		s.MustAdd(mcp.Resource(fmt.Sprintf("n:%d", i), readText))
	}
	return s
}

type resourcePage struct {
	uris []string
	next string
}

// page lists the resources from cursor on; "" is the beginning.
func (p *party) page(cursor string) resourcePage {
	p.t.Helper()
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
	text := p.ask("resources/list", members)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || strings.Contains(text, `"error":`) {
		p.t.Fatalf("%s: %v", text, err)
	}
	page := resourcePage{next: answer.Result.NextCursor}
	for _, r := range answer.Result.Resources {
		page.uris = append(page.uris, r.URI)
	}
	return page
}
