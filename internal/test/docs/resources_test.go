package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type Profile struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type ProfileIn struct {
	ID   int    `json:"id" validate:"min=1"`
	Lang string `json:"lang,omitempty" validate:"oneof=en nb" jsonschema:"default=en"`
}

func readConfig(ctx context.Context) (string, error) { return `{"theme":"dark"}`, nil }

func readProfile(ctx context.Context, in ProfileIn) (Profile, error) {
	name, ok := people[in.ID]
	if !ok {
		return Profile{}, fmt.Errorf("person %d: %w", in.ID, mcp.ErrNotFound)
	}
	return Profile{in.ID, name}, nil
}

type ReviewIn struct {
	Library string `json:"library" jsonschema_description:"what the code uses"`
	Code    string `json:"code"`
	Depth   int    `json:"depth,omitempty" validate:"min=1,max=3" jsonschema:"default=1"`
}

func review(ctx context.Context, in ReviewIn) (*mcp.Messages, error) {
	return mcp.NewMessages().
		Userf("Review this code, which uses %s, in depth %d:\n%s", in.Library, in.Depth, in.Code).
		Assistant("I will look for bugs first."), nil
}

func libraries(f *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	return mcp.Suggest(q.Value, "chi", "cobra", "zerolog"), nil
}

func peopleServer(root *os.Root) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "people", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Resource("config://app", readConfig, mcp.MIME("application/json")),
		mcp.Template("people://{id}/profile{?lang}", readProfile, mcp.Name("profile")),
		mcp.Directory("file:///docs/", root.FS()),
		mcp.Prompt("review", review, mcp.Doc("Reviews code"), mcp.Complete("library", libraries)),
	)
	return s
}

func explain(ctx context.Context, _ struct{}) (*mcp.Messages, error) {
	return mcp.NewMessages().
		Describe("Explains a picture").
		User("What is in this picture?").
		Add(mcp.RoleUser, mcp.ImageContent{Data: picture, MIMEType: "image/png"}), nil
}

var (
	people  = map[int]string{7: "Ann"}
	picture = []byte("\x89PNG")
)

func TestResources(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := peopleServer(root)
	s.MustAdd(mcp.Prompt("explain", explain))
	c := mcptest.New(t, s)
	for _, tt := range []struct{ uri, want string }{
		{"config://app", `{"theme":"dark"}`},
		{"people://7/profile", `{"id":7,"name":"Ann"}`},
		{"file:///docs/a.txt", "hello"},
	} {
		if got := c.Read(tt.uri)[0].Text; got != tt.want {
			t.Errorf("%s is %q", tt.uri, got)
		}
	}
	for _, uri := range []string{"people://8/profile", "config://none"} {
		_, err := c.TryRequest("resources/read", map[string]any{"uri": uri})
		fault, ok := errors.AsType[*mcp.Error](err)
		if !ok {
			t.Fatalf("%s: %v", uri, err)
		}
		if data, err := json.Marshal(fault.Data); err != nil || fault.Code != protocol.CodeInvalidParams || !strings.Contains(string(data), uri) {
			t.Errorf("%s: %v with %s", uri, fault, data)
		}
	}
	_, err = c.TryRequest("resources/read", map[string]any{"uri": "people://0/profile?lang=xx"})
	if fault, ok := errors.AsType[*mcp.Error](err); !ok || !strings.Contains(fault.Error(), "/id") || !strings.Contains(fault.Error(), "/lang") {
		t.Errorf("got %v", err)
	}
	got := c.GetPrompt("review", map[string]string{"library": "chi", "code": "x := 1"})
	if len(got.Messages) != 2 || !strings.Contains(fmt.Sprint(got.Messages[0]), "in depth 1") {
		t.Errorf("got %+v", got)
	}
	if got := c.GetPrompt("explain", nil); len(got.Messages) != 2 {
		t.Errorf("got %+v", got)
	}
	if got := c.Complete("review", "library", "co", nil); len(got) != 1 || got[0] != "cobra" {
		t.Errorf("got %q", got)
	}
	if got := c.Complete("people://{id}/profile{?lang}", "lang", "n", nil); len(got) == 0 || got[0] != "nb" {
		t.Errorf("got %q", got)
	}
}

func stored(name, text string, arguments []mcp.PromptArgument) mcp.Component {
	return mcp.Prompt(name, func(_ context.Context, in map[string]string) (string, error) {
		filled := text
		for argument, value := range in {
			filled = strings.ReplaceAll(filled, "{"+argument+"}", value)
		}
		return filled, nil
	}, mcp.Arguments(arguments...))
}

func TestStoredPrompt(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "prompts", Version: "1"}, nil)
	s.MustAdd(stored("greet", "Greet {who}.", []mcp.PromptArgument{{Name: "who", Required: true}}))
	c := mcptest.New(t, s)
	if p := c.GetPrompt("greet", map[string]string{"who": "Ada"}); p.Messages[0].Content.(mcp.TextContent).Text != "Greet Ada." {
		t.Errorf("got %+v", p.Messages)
	}
	if _, err := c.TryGetPrompt("greet", nil); err == nil {
		t.Error("a required argument is not missed")
	}
}
