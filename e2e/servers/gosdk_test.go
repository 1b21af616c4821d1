package servers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// listening starts a program that takes its address by the flag -http.
func (p program) listening(t *testing.T, args ...string) client.Transport {
	t.Helper()
	port := freePort(t)
	p.start(t, port, nil, append(args, "-http", "127.0.0.1:"+strconv.Itoa(port))...)
	return client.HTTP(fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
}

// revision is one of the names that the specification has.
func revision(t *testing.T, name string) protocol.Revision {
	t.Helper()
	rev, ok := protocol.ParseRevision(name)
	if !ok {
		t.Fatalf("%s is no revision", name)
	}
	return rev
}

// TestGoSDK uses the server with which the official SDK passes the conformance
// suite, in both modes of its HTTP handler and over stdio.
func TestGoSDK(t *testing.T) {
	server := build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, mode := range []struct {
		kind, revision string
		transport      func(t *testing.T) client.Transport
	}{
		{"http", "2026-07-28", func(t *testing.T) client.Transport { return server.listening(t) }},
		{"http", "2025-11-25", func(t *testing.T) client.Transport { return server.listening(t, "-stateless=false") }},
		{"stdio", "2026-07-28", func(t *testing.T) client.Transport { return server.stdio() }},
		{"stdio", "2025-11-25", func(t *testing.T) client.Transport { return server.stdio() }},
		{"stdio", "2024-11-05", func(t *testing.T) client.Transport { return server.stdio() }},
	} {
		t.Run("gosdk server "+mode.revision+" "+mode.kind, func(t *testing.T) {
			t.Parallel()
			want := revision(t, mode.revision)
			s := connect(t, mode.transport(t), newUser(), want)
			if s.Revision() != want {
				t.Fatalf("got revision %v, want %v", s.Revision(), want)
			}
			s.suite(t, quirks{textFaults: mode.kind == "http" && !want.Modern()})
			t.Run("completion", func(t *testing.T) {
				s.completes(t, client.Completion{Prompt: "test_prompt_with_arguments", Argument: "arg1", Value: "x"}, []string{}...)
			})
			// In this order: in the SDK a subscription that ends, which may be some time
			// after it was cancelled, takes those to lists of its session with it.
			t.Run("changed lists", s.goSDKChanges)
			t.Run("subscriptions", s.goSDKSubscriptions)
			if want.Modern() {
				t.Run("rounds", s.goSDKRounds)
			} else if want.Has(protocol.FeatureElicitModes) {
				t.Run("questions", s.suiteQuestions) // not the enums: the SDK refuses the form of its own server
			}
		})
	}
}

func (s session) goSDKSubscriptions(t *testing.T) {
	const uri = "test://watched-resource" // changes every 3 seconds
	sub := s.subscribe(t, uri)
	s.user.hears(t, protocol.MethodResourceUpdated, uri)
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

func (s session) goSDKChanges(t *testing.T) {
	heard := make(chan client.Notification, 10)
	sub, err := s.Listen(within(t), protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true},
		func(e client.Notification) { offer(heard, e) })
	if err != nil {
		t.Fatal(err)
	}
	if got := sub.Accepted(); !got.ToolsListChanged || !got.PromptsListChanged {
		t.Errorf("the server agreed to %+v", got)
	}
	s.says(t, "test_trigger_tool_change", nil, "published")
	await(t, heard, "that tools changed", func(e client.Notification) bool { return e.Method == protocol.MethodToolsChanged })
	includes(t, "tools", s.toolNames(t), "__transient_tool_for_list_changed")
	s.says(t, "test_trigger_prompt_change", nil, "published")
	await(t, heard, "that prompts changed", func(e client.Notification) bool { return e.Method == protocol.MethodPromptsChanged })
	includes(t, "prompts", s.promptNames(t), "__transient_prompt_for_list_changed")
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

// goSDKRounds answers what the server asks in results, as modern servers do.
func (s session) goSDKRounds(t *testing.T) {
	s.user.answers(func(q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
		switch schema := string(q.RequestedSchema); {
		case strings.Contains(schema, `"color"`):
			return client.Accept(args{"color": "red"})
		case strings.Contains(schema, `"ok"`):
			return client.Accept(args{"ok": true})
		case strings.Contains(schema, `"context"`):
			return client.Accept(args{"context": "mountains"})
		}
		return client.Accept(args{"name": "Ada"})
	})
	const tool = "test_input_required_result_"
	s.says(t, tool+"elicitation", nil, "Hello, Ada!")
	s.says(t, tool+"sampling", nil, "Sampling response: Paris")
	s.says(t, tool+"list_roots", nil, "Client exposed 1 root(s): file:///home/ada")
	s.says(t, tool+"request_state", nil, "state-ok")
	s.says(t, tool+"multiple_inputs", nil, "Paris Ada — 1 root(s) visible")
	s.says(t, tool+"multi_round", nil, "Ada likes red")
	s.says(t, tool+"tampered_state", nil, "state-ok")
	s.says(t, tool+"capabilities", nil, "fulfilled")
	s.says(t, "test_missing_capability", nil, "sampling capability")
	prompt := s.prompt(t, tool+"prompt", nil)
	equal(t, "prompt", messageText(t, prompt, 0), "Context: mountains")
	if got := len(s.user.questions()); got != 8 {
		t.Errorf("the user was asked %d times, want 8", got)
	}
	// An argument that belongs into a header is there too, or the server refuses.
	s.toolNames(t)
	s.says(t, "test_x_mcp_header", args{"region": "nord-süd", "level": 3}, "region=nord-süd")
}

// greeting is what a structured greet returns.
type greeting struct {
	Message string `json:"message"`
}

// TestGoSDKEverything uses the SDK's example of all features.
func TestGoSDKEverything(t *testing.T) {
	server := build(t, "github.com/modelcontextprotocol/go-sdk/examples/server/everything")
	for name, transport := range map[string]func(t *testing.T) client.Transport{
		"http":  func(t *testing.T) client.Transport { return server.listening(t) },
		"stdio": func(t *testing.T) client.Transport { return server.stdio() },
	} {
		t.Run("gosdk server 2025-11-25 "+name, func(t *testing.T) {
			t.Parallel()
			s := connect(t, transport(t), newUser(), revision(t, "2025-11-25"))
			equal(t, "instructions", s.Server().Instructions, "Use this server!")
			if info := s.Server().Info; info.Name != "everything" || len(info.Icons) != 1 || info.Icons[0].MIMEType != "image/png" {
				t.Errorf("got server %s with %d icons", info.Name, len(info.Icons))
			}
			s.says(t, "greet", args{"name": "Ada"}, "Hi Ada")
			s.fails(t, "greet", args{"nom": "Ada"}, "unexpected additional properties")
			got, err := client.Call[greeting](within(t), s, "greet (structured)", args{"name": "Ada"})
			if err != nil || got.Message != "Hi Ada" {
				t.Errorf("got %+v, %v", got, err)
			}
			link := item[protocol.ResourceLink](t, s.call(t, "greet (content with ResourceLink)", args{"name": "Ada"}).Content, 0)
			equal(t, "link", link.URI, "data:text/plain,Hi%20Ada")
			s.call(t, "ping", nil) // the server pings the client
			if err := s.SetLevel(within(t), protocol.LevelWarning); err != nil {
				t.Error(err)
			}
			s.call(t, "log", nil)
			if got := s.user.reads(t, "something happened!"); got.Level != protocol.LevelError {
				t.Errorf("got level %v, want error", got.Level)
			}
			s.says(t, "sample", nil, "Paris")
			s.says(t, "roots", nil, "home:file:///home/ada")
			s.user.accepts(args{"random": "xyzzy"})
			s.says(t, "elicit (form)", nil, "xyzzy")
			s.user.accepts(nil)
			s.says(t, "elicit (url)", nil, "pending")
			if asked := s.user.questions(); len(asked) != 1 || !strings.HasPrefix(asked[0].URL, "http://localhost:6062?id=") {
				t.Errorf("got questions %+v", asked)
			}
			equal(t, "prompt", messageText(t, s.prompt(t, "greet", map[string]string{"name": "Ada"}), 0), "Say hi to Ada")
			equal(t, "resource", s.read(t, "embedded:info").Text, "This is the hello example server.")
			s.completes(t, client.Completion{Prompt: "greet", Argument: "name", Value: "Ada"}, "Adax")
		})
	}
}
