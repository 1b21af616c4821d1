package servers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// TestFrameworks uses servers made here with the frameworks of others, which
// have what the examples of those lack.
func TestFrameworks(t *testing.T) {
	gosdk, mcpgo := build(t, "./gosdk"), build(t, "./mcpgo")
	over := func(p program, path string, args ...string) func(t *testing.T) client.Transport {
		return func(t *testing.T) client.Transport {
			port := freePort(t)
			p.start(t, port, nil, append(args, "-http", "127.0.0.1:"+strconv.Itoa(port))...)
			url := fmt.Sprintf("http://127.0.0.1:%d%s", port, path)
			if path == "/sse" {
				return client.SSE(url, nil)
			}
			return client.HTTP(url, nil)
		}
	}
	stdio := func(p program) func(t *testing.T) client.Transport {
		return func(*testing.T) client.Transport { return p.stdio() }
	}
	for _, mode := range []struct {
		name, revision string
		transport      func(t *testing.T) client.Transport
		quirks         quirks
	}{
		{"gosdk server 2026-07-28 stdio", "2026-07-28", stdio(gosdk), quirks{}},
		{"gosdk server 2025-11-25 stdio", "2025-11-25", stdio(gosdk), quirks{}},
		{"gosdk server 2026-07-28 http", "2026-07-28", over(gosdk, "/mcp", "-stateless"), quirks{}},
		{"gosdk server 2025-11-25 http", "2025-11-25", over(gosdk, "/mcp"), quirks{}},
		{"gosdk server 2025-06-18 http", "2025-06-18", over(gosdk, "/mcp"), quirks{}},
		{"gosdk server 2025-11-25 sse", "2025-11-25", over(gosdk, "/sse", "-sse"), quirks{}},
		{"mcpgo server 2026-07-28 stdio", "2026-07-28", stdio(mcpgo), quirks{untagged: true}},
		{"mcpgo server 2025-11-25 stdio", "2025-11-25", stdio(mcpgo), quirks{}},
		{"mcpgo server 2026-07-28 http", "2026-07-28", over(mcpgo, "/mcp"), quirks{noUpdates: true}},
		{"mcpgo server 2025-11-25 http", "2025-11-25", over(mcpgo, "/mcp"), quirks{losesLast: true}},
		{"mcpgo server 2025-06-18 http", "2025-06-18", over(mcpgo, "/mcp"), quirks{losesLast: true}},
		{"mcpgo server 2025-11-25 sse", "2025-11-25", over(mcpgo, "/sse", "-sse"), quirks{noQuestions: true}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			want := revision(t, mode.revision)
			s := connect(t, mode.transport(t), newUser(), want)
			if s.Revision() != want {
				t.Fatalf("got revision %v, want %v", s.Revision(), want)
			}
			t.Run("pages", s.frameworkPages)
			t.Run("completion", s.frameworkCompletion)
			t.Run("cancel", s.frameworkCancel)
			t.Run("questions", func(t *testing.T) { s.frameworkQuestions(t, mode.quirks) })
			t.Run("subscriptions", func(t *testing.T) { s.frameworkSubscriptions(t, mode.quirks) })
			// With a connection of its own: on one of the SDK over stdio, the end
			// of any subscription ends the notices of lists of all.
			t.Run("changed lists", func(t *testing.T) {
				connect(t, mode.transport(t), newUser(), want).frameworkChanges(t, mode.quirks)
			})
		})
	}
}

// frameworkPages reads a list page by page, and all at once.
func (s session) frameworkPages(t *testing.T) {
	var found []string
	var sizes []int
	for page := range s.resourcePages(t) {
		sizes = append(sizes, len(page))
		for _, r := range page {
			found = append(found, r.URI)
		}
	}
	want := []string{"e2e://1", "e2e://2", "e2e://3", "e2e://4", "e2e://5"}
	if s.behind(t, "pages are its own") {
		sizes = []int{2, 2, 1}
	}
	equal(t, "sizes", sizes, []int{2, 2, 1})
	equal(t, "pages", found, want)
	equal(t, "all", s.resourceURIs(t), want)
	equal(t, "tools", s.toolNames(t), []string{"ask", "cancelled", "grow", "shrink", "touch", "wait"})
	equal(t, "resource", s.read(t, "e2e://4").Text, "This is e2e://4")
}

func (s session) frameworkCompletion(t *testing.T) {
	s.completes(t, client.Completion{Prompt: "letter", Argument: "city", Value: "R"}, "Rome")
	s.completes(t, client.Completion{Prompt: "letter", Argument: "city", Context: map[string]string{"country": "France"}}, "Lyon", "Paris")
	equal(t, "prompt", messageText(t, s.prompt(t, "letter", map[string]string{"city": "Rome"}), 0), "Write to Rome")
}

// frameworkCancel gives up a call that has begun, and sees that the server
// noticed.
func (s session) frameworkCancel(t *testing.T) {
	_, err := s.Call(within(t), "wait", nil, client.OnProgress(func(p client.Progress) {
		if p.Progress != 1 || p.Message != "waiting" && (s.Revision() != protocol.V20241105 || !s.behind(t, "that revision has no messages of progress")) {
			t.Errorf("got %+v", p)
		}
		s.cancelAll(t, "enough")
	}))
	if !errors.Is(err, client.ErrCancelled) {
		t.Fatalf("got %v, want ErrCancelled", err)
	}
	s.cancels(t, 1)
}

// frameworkSubscriptions hears of the resources that it subscribed to.
func (s session) frameworkSubscriptions(t *testing.T, q quirks) {
	first := s.subscribe(t, "e2e://1")
	heard := make(chan client.Notification, 10)
	sub, err := s.Listen(within(t), protocol.SubscriptionFilter{ResourceSubscriptions: []string{"e2e://2"}}, func(e client.Notification) { offer(heard, e) })
	if err != nil {
		t.Fatal(err)
	}
	if !q.noUpdates {
		for _, uri := range []string{"e2e://1", "e2e://2"} {
			s.tells(t, q, protocol.MethodResourceUpdated, uri, func() { s.call(t, "touch", args{"name": uri}) }, nil)
		}
	}
	if !q.noUpdates && !q.untagged {
		if e := await(t, heard, "an update", func(client.Notification) bool { return true }); !strings.Contains(string(e.Params), "e2e://2") {
			t.Errorf("got %s, want an update of e2e://2", e.Params)
		}
	}
	if err := errors.Join(sub.Close(), first.Close()); err != nil {
		t.Error(err)
	}
}

// frameworkChanges sees the server grow and shrink.
func (s session) frameworkChanges(t *testing.T, q quirks) {
	heard := make(chan client.Notification, 10)
	sub, err := s.Listen(within(t), protocol.SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true}, func(e client.Notification) { offer(heard, e) })
	if err != nil {
		t.Fatal(err)
	}
	changed := func(method string, change, undo func()) {
		t.Helper()
		s.tells(t, q, method, "", change, undo)
		if !q.untagged {
			await(t, heard, method, func(e client.Notification) bool { return e.Method == method })
		}
	}
	grow := func() { s.call(t, "grow", args{"name": "fresh"}) }
	shrink := func() { s.call(t, "shrink", args{"name": "fresh"}) }
	changed(protocol.MethodToolsChanged, grow, shrink)
	s.says(t, "fresh", nil, "I am new")
	includes(t, "tools", s.toolNames(t), "fresh")
	includes(t, "resources", s.resourceURIs(t), "e2e://new/fresh")
	changed(protocol.MethodResourcesChanged, shrink, grow)
	if _, err := s.Call(within(t), "fresh", nil); code(err) != protocol.CodeInvalidParams {
		t.Errorf("calling what is gone: got %v", err)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

// frameworkQuestions answers three questions that come in one round, or as three
// requests.
func (s session) frameworkQuestions(t *testing.T, q quirks) {
	s.user.accepts(args{"name": "Ada"})
	if q.noQuestions {
		_, err := s.Call(within(t), "ask", nil)
		if code(err) != protocol.CodeInternal || !strings.Contains(err.Error(), "session does not support") {
			t.Errorf("got %v", err)
		}
		return
	}
	s.says(t, "ask", nil, "accept Ada says Paris, in file:///home/ada")
	asked, sampled := s.user.questions(), s.user.samples()
	if len(asked) != 1 || asked[0].Message != "Your name?" || len(sampled) != 1 || sampled[0].MaxTokens != 9 {
		t.Errorf("the user was asked %+v, the model %+v", asked, sampled)
	}
}
