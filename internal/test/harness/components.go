package harness

import (
	"fmt"
	"strings"
	"testing/fstest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema/civil"
)

type userIn struct {
	ID int `json:"id" validate:"min=1,max=9" jsonschema_description:"number of the user"`
}

type profile struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type reportIn struct {
	Format string     `json:"format" validate:"oneof=html pdf text"`
	Day    civil.Date `json:"day,omitempty"`
	Draft  bool       `json:"draft,omitempty"`
	Tags   []string   `json:"tags,omitempty" validate:"max=2"`
}

type reviewIn struct {
	Code     string   `json:"code" validate:"required,max=200" jsonschema_description:"what to review" jsonschema:"title=Code"`
	Language string   `json:"language,omitempty" validate:"oneof=c go python" jsonschema:"default=go"`
	Depth    int      `json:"depth,omitempty" validate:"min=1,max=3"`
	Strict   bool     `json:"strict,omitempty"`
	Files    []string `json:"files,omitempty"`
	Library  string   `json:"library,omitempty"`
}

// offerFixture has a resource and a prompt for each behaviour.
func offerFixture() []mcp.Component {
	half := 0.5
	return []mcp.Component{
		mcp.Resource("config://app", func(*mcp.Frame) (map[string]bool, error) {
			return map[string]bool{"debug": true}, nil
		}, mcp.Name("config"), mcp.Doc("The configuration"), mcp.Title("Configuration"),
			mcp.Icons(mcp.Icon{Src: "https://example.com/config.png"}), mcp.Meta("com.example/k", "v"),
			mcp.CachePublic(time.Minute)),
		mcp.Bytes("file:///logo.png", []byte("\x89PNG\x00"), mcp.Annotated(mcp.Annotations{
			Audience: []mcp.Role{mcp.RoleUser}, Priority: &half, LastModified: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC),
		})),
		mcp.Resource("bundle://all", func(*mcp.Frame) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{
				{URI: "bundle://all/1", Text: "one", Meta: map[string]any{"n": 1}},
				{URI: "bundle://all/2", Blob: []byte("two"), MIMEType: "application/x-two"},
				{},
			}, nil
		}, mcp.MIME("text/plain")),
		mcp.Resource("gone://here", func(*mcp.Frame) (string, error) {
			return "", fmt.Errorf("it went: %w", mcp.ErrNotFound)
		}),
		mcp.Resource("fail://here", func(*mcp.Frame) (string, error) { return "", fmt.Errorf("disk full") }),
		mcp.Template("users://{id}/profile", func(_ *mcp.Frame, in userIn) (profile, error) {
			if in.ID == 9 {
				return profile{}, mcp.ErrNotFound
			}
			return profile{in.ID, "Ada"}, nil
		}, mcp.Doc("Who somebody is")),
		mcp.Template("users://{+rest}", func(_ *mcp.Frame, in struct {
			Rest string `json:"rest"`
		}) (string, error) {
			return "anything else: " + in.Rest, nil
		}),
		mcp.Template("reports://weekly.{format}{?day,draft,tags}", func(_ *mcp.Frame, in reportIn) (string, error) {
			return fmt.Sprint(in.Format, " ", in.Day, " ", in.Draft, " ", strings.Join(in.Tags, "+")), nil
		}),
		mcp.Directory("docs:///", fstest.MapFS{
			"a.txt": {Data: []byte("text a")}, "sub/b.bin": {Data: []byte{0xff, 0}}, "sub/c #1.md": {Data: []byte("# c")},
		}, mcp.Doc("Documents")),
		mcp.Prompt("review", review, mcp.Doc("Reviews code"), mcp.Title("Review"), mcp.Meta("com.example/k", "v"),
			mcp.Icons(mcp.Icon{Src: "https://example.com/review.png"}), mcp.Complete("library", libraries)),
		mcp.Prompt("hello", func(*mcp.Frame, struct{}) (string, error) { return "Say hello.", nil }),
		mcp.Prompt("media", func(*mcp.Frame, struct{}) (*mcp.Messages, error) {
			return mcp.NewMessages().Describe("Every kind of content").Userf("number %d", 1).Assistantf("number %d", 2).
				Add(mcp.RoleUser, mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
					mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
					mcp.ResourceLink{URI: "file:///a.txt", Name: "a.txt"},
					mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///b.txt", Text: "b"}}).
				Meta("com.example/k", "v"), nil
		}),
		mcp.Prompt("badrole", func(*mcp.Frame, struct{}) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{{Role: "system", Content: mcp.TextContent{Text: "x"}}}, nil
		}),
	}
}

func review(_ *mcp.Frame, in reviewIn) ([]mcp.PromptMessage, error) {
	text := fmt.Sprintf("Review this %s code, depth %d, strict %t, files %q: %s", in.Language, in.Depth, in.Strict, in.Files, in.Code)
	return []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.TextContent{Text: text}}}, nil
}

// libraries depend on the language that was chosen before.
func libraries(_ *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	switch q.Arguments["language"] {
	case "python":
		return mcp.Suggest(q.Value, "flask", "django", "fastapi"), nil
	case "c":
		return mcp.Completion{Values: []string{"libc"}, Total: 4000, HasMore: true}, nil
	}
	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf("lib%03d", i))
	}
	return mcp.Suggest(q.Value, many...), nil
}
