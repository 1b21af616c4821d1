package behavior_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of batches, which one revision has.
var batchBehaviours = []harness.Behavior{
	{What: "a batch of two", Revisions: batches, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		answers := harness.Join(t, tr, rev, harness.Fixture(t, nil)).Batch(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`)
	}},
	{What: "a batch whose first is the last to be ready", Revisions: batches, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := harness.Fixture(t, nil)
		later := make(chan struct{}, 2)
		s.MustAdd(
			mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
				for range 2 {
					select {
					case <-later:
					case <-f.Done():
						return "", f.Err()
					}
				}
				return "waited", nil
			}),
			mcp.Tool("go", func(*mcp.Frame, struct{}) (string, error) {
				later <- struct{}{}
				return "gone", nil
			}))
		answers := harness.Join(t, tr, rev, s).Batch(`[{"jsonrpc":"2.0","id":"first","method":"tools/call","params":{"name":"wait"}},` +
			`{"jsonrpc":"2.0","id":"second","method":"tools/call","params":{"name":"go"}},{"jsonrpc":"2.0","id":"third","method":"tools/call","params":{"name":"go"}}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":"first",`, `{"jsonrpc":"2.0","id":"second",`, `{"jsonrpc":"2.0","id":"third",`)
	}},
	{What: "a batch with faults and a notification", Revisions: batches, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		answers := harness.Join(t, tr, rev, harness.Fixture(t, nil)).Batch(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"unknown/method"},` +
			`{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":3,"method":"tools/list"}]`)
		wantAnswers(t, answers, `{"jsonrpc":"2.0","id":1,"result"`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,`, `{"jsonrpc":"2.0","id":3,"result"`)
	}},
	{What: "batches that are none", Revisions: batches, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.C.Say(`[]`)[0], `"code":-32600`, "must not be empty")
		p.Want(p.C.Say(`[` + p.Request("1", "initialize", harness.Hello(rev.String())) + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`)[0],
			`"code":-32600`, "initialize must not be part of a batch")
		const told = `[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}]`
		if c, ok := p.C.(*harness.HTTPClient); ok {
			if status, body := c.Send(told); status != http.StatusAccepted || body != "" {
				t.Errorf("notifications alone: %d %s", status, body)
			}
		} else if heard := p.C.Say(told); heard != nil {
			t.Errorf("notifications alone: %s", heard)
		}
		p.Alive()
	}},
	{What: "a batch where there are none", Revisions: []protocol.Revision{protocol.V20241105, protocol.V20250618, protocol.V20251125}, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.C.Say(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)[0], `"code":-32600`, "revision 2025-03-26")
		if c, ok := p.C.(*harness.HTTPClient); ok {
			if status, body := c.Send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); status != http.StatusBadRequest {
				t.Errorf("status %d: %s", status, body)
			}
		}
		p.Alive()
	}},
}

var batches = []protocol.Revision{protocol.V20250326}

func TestBatchBehaviours(t *testing.T) { harness.RunBehaviors(t, batchBehaviours) }

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
var listBehaviours = []harness.Behavior{
	{What: "pages", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, pagedServer(t))
		first := p.Page("")
		second := p.Page(first.Next)
		third := p.Page(second.Next)
		if got := fmt.Sprint(first.Uris, second.Uris, third); got != "[n:0 n:1] [n:2 n:3] {[n:4] }" {
			t.Errorf("pages: %s", got)
		}
	}},
	{What: "a cursor beyond the end", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := pagedServer(t)
		p := harness.Join(t, tr, rev, s)
		second := p.Page(p.Page("").Next)
		s.Remove(mcp.KindResource, "n:4")
		if last := p.Page(second.Next); len(last.Uris) > 0 || last.Next != "" {
			t.Errorf("beyond the end: %v", last)
		}
	}},
	{What: "a cursor that is none", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, pagedServer(t))
		for _, list := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
			p.Want(p.Ask(list, `"cursor":"invalid!!!"`), `"code":-32602`)
			p.Want(p.Ask(list, `"cursor":7`), `"code":-32602`)
		}
		p.Alive()
	}},
	{What: "a resource that comes between pages", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := pagedServer(t)
		p := harness.Join(t, tr, rev, s)
		page := p.Page("")
		uris := page.Uris
		s.MustAdd(mcp.Resource("n:00", harness.ReadText), mcp.Resource("n:35", harness.ReadText)) // before the cursor, and after
		for page.Next != "" {
			page = p.Page(page.Next)
			uris = append(uris, page.Uris...)
		}
		if want := []string{"n:0", "n:1", "n:2", "n:3", "n:35", "n:4"}; !slices.Equal(uris, want) {
			t.Errorf("got %v, want %v", uris, want)
		}
	}},
	{What: "a log level", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := harness.Fixture(t, nil)
		s.MustAdd(mcp.Tool("report", func(f *mcp.Frame, _ struct{}) (string, error) {
			for _, level := range []protocol.Level{protocol.LevelInfo, protocol.LevelWarning, protocol.LevelError} {
				if err := f.Log(level, "said", "part"); err != nil {
					return "", err
				}
			}
			return "reported", nil
		}))
		p := harness.Join(t, tr, rev, s)
		call, wrong := p.Request("1", "tools/call", `"name":"report"`), p.Request("2", "logging/setLevel", `"level":"bogus"`)
		if rev.Modern() {
			level := func(name string) string {
				return strings.Replace(call, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+name+`",`, 1)
			}
			call, wrong = level("warning"), level("bogus")
		} else {
			p.Want(p.Ask("logging/setLevel", `"level":"warning"`), `"result":{}`)
		}
		heard := p.C.Say(call)
		if len(heard) != 3 {
			t.Fatalf("heard %q", heard)
		}
		p.Want(heard[0], `"method":"notifications/message","params":{"level":"warning","logger":"part","data":"said"}`)
		p.Want(heard[1], `"level":"error"`)
		p.Want(heard[2], "reported")
		p.Want(p.C.Say(wrong)[0], `"code":-32602`)
	}},
}

func TestListBehaviours(t *testing.T) { harness.RunBehaviors(t, listBehaviours) }

// pagedServer has five resources, two on a page.
func pagedServer(t *testing.T) *mcp.Server {
	t.Helper()
	s := harness.Bare(mcp.Options{PageSize: 2})
	s.MustAdd(harness.Tool("first"), mcp.Prompt("one", func(*mcp.Frame, struct{}) (string, error) { return "one", nil }),
		mcp.Tool("greet", func(_ *mcp.Frame, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}))
	for i := range 5 {
		s.MustAdd(mcp.Resource(fmt.Sprintf("n:%d", i), harness.ReadText))
	}
	return s
}
