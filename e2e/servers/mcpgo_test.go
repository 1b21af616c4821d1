package servers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// TestMCPGo uses the server with which mcp-go takes part in the conformance
// suite, in a legacy and a modern revision.
func TestMCPGo(t *testing.T) {
	server := build(t, "github.com/mark3labs/mcp-go/examples/conformance")
	port := freePort(t)
	server.start(t, port, []string{fmt.Sprintf("CONFORMANCE_ADDR=127.0.0.1:%d", port)})
	url := fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	for _, name := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run("mcpgo server "+name+" http", func(t *testing.T) {
			want := revision(t, name)
			s := connect(t, client.HTTP(url, nil), newUser(), want)
			if s.Revision() != want {
				t.Fatalf("got revision %v, want %v", s.Revision(), want)
			}
			if !s.behind(t, "its info is its own") {
				equal(t, "name", s.Server().Info.Name, "mcp-go-conformance")
			}
			s.suite(t, quirks{losesLast: true, codesAlone: want.Modern()})
			if want.Has(protocol.FeatureElicitModes) && !want.Modern() {
				t.Run("questions", s.suiteQuestions)
				t.Run("enums", s.suiteEnums)
			}
		})
	}
}

// TestMCPGoEverything uses mcp-go's example of all features over stdio, in
// legacy and modern revisions.
func TestMCPGoEverything(t *testing.T) {
	server := build(t, "github.com/mark3labs/mcp-go/examples/everything")
	for _, name := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		t.Run("mcpgo server "+name+" stdio", func(t *testing.T) {
			t.Parallel()
			want := revision(t, name)
			s := connect(t, server.stdio(), newUser(), want)
			if s.Revision() != want {
				t.Fatalf("got revision %v, want %v", s.Revision(), want)
			}
			includes(t, "tools", s.toolNames(t), "echo", "notify", "add", "longRunningOperation", "getTinyImage", "get_resource_link")
			s.says(t, "echo", args{"message": "größer"}, "Echo: größer")
			s.says(t, "add", args{"a": 2, "b": 40}, "42.0")
			s.fails(t, "add", args{"a": "two", "b": 40}, "expected numeric values")
			image := item[protocol.ImageContent](t, s.call(t, "getTinyImage", nil).Content, 1)
			equal(t, "type", image.MIMEType, "image/png")
			link := item[protocol.ResourceLink](t, s.call(t, "get_resource_link", args{"resource_type": "letter"}).Content, 1)
			equal(t, "link", link.URI, "file:///example/letter.pdf")

			if uris := s.resourceURIs(t); len(uris) != 101 {
				t.Errorf("got %d resources, want 101", len(uris))
			}
			equal(t, "text", s.read(t, "test://static/resource/7").Text, "Text content for resource 7")
			equal(t, "blob", string(s.read(t, "test://static/resource/8").Blob), "Binary content for resource 8")
			equal(t, "templates", s.templates(t), []string{"test://dynamic/resource/{id}"})
			equal(t, "template", s.read(t, "test://dynamic/resource/1").Text, "This is a sample resource")
			_, err := s.Read(within(t), "test://nothing")
			if !errors.Is(err, client.ErrNotFound) && (!want.Modern() || code(err) != protocol.CodeInvalidParams) {
				t.Errorf("a resource that is not there: got %v", err)
			}
			equal(t, "prompts", s.promptNames(t), []string{"complex_prompt", "simple_prompt"})
			complexPrompt := s.prompt(t, "complex_prompt", map[string]string{"temperature": "20", "style": "formal"})
			contains(t, "prompt", messageText(t, complexPrompt, 0), "temperature=20, style=formal")
			item[protocol.ImageContent](t, []protocol.Content{complexPrompt[2].Content}, 0)
			if want != revision(t, "2024-11-05") {
				s.completes(t, client.Completion{Prompt: "complex_prompt", Argument: "style", Value: "c"}, "casual", "creative")
			}

			var told []float64
			s.call(t, "longRunningOperation", args{"duration": 0.4, "steps": 4}, client.OnProgress(func(p client.Progress) {
				told = append(told, p.Progress/p.Total)
			}))
			if len(told) == 3 {
				told = append(told, 1) // what it tells right before the answer may come after it
			}
			equal(t, "progress", told, []float64{0.25, 0.5, 0.75, 1})
			s.call(t, "notify", nil) // tells progress with a token that nobody gave
			_, err = s.Call(within(t), "longRunningOperation", args{"duration": 2, "steps": 1}, client.Timeout(50*time.Millisecond), client.OnProgress(func(client.Progress) {}))
			if !errors.Is(err, client.ErrTimeout) {
				t.Errorf("got %v, want ErrTimeout", err)
			}
			s.manyAtOnce(t, "echo", "message", "Echo: ")
		})
	}
}
