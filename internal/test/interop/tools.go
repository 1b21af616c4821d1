package interop

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// noInput is the input of tools without arguments.
type noInput = struct{}

// GreetInput has the arguments of greet.
type GreetInput struct {
	Name string `json:"name" validate:"required,max=40" jsonschema_description:"whom to greet"`
}

// CountInput has the arguments of count.
type CountInput struct {
	Text string `json:"text" jsonschema_description:"any text"`
}

// CountOutput is what count finds.
type CountOutput struct {
	Letters int      `json:"letters"`
	Words   []string `json:"words"`
}

// RegionInput has the arguments of where. Over HTTP, clients of modern revisions
// repeat the region in a header.
type RegionInput struct {
	Region string `json:"region" mcp:"header=Region" jsonschema_description:"the name of a region"`
}

// answering are tools that only answer.
func answering() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("greet", func(_ *mcp.Frame, in GreetInput) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}, mcp.Title("Greet"), mcp.Doc("Greets somebody"), mcp.ReadOnly()),
		mcp.Tool("count", func(_ *mcp.Frame, in CountInput) (CountOutput, error) {
			return CountOutput{utf8.RuneCountInString(in.Text), strings.Fields(in.Text)}, nil
		}, mcp.Doc("Counts the letters of a text")),
		mcp.Tool("media", func(*mcp.Frame, noInput) ([]mcp.Content, error) {
			return []mcp.Content{
				mcp.TextContent{Text: "One of each"},
				mcp.ImageContent{Data: picture(), MIMEType: "image/gif"},
				mcp.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
				mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "e2e://inside", MIMEType: "text/plain", Text: "Inside"}},
				mcp.ResourceLink{URI: "e2e://text", Name: "text"},
			}, nil
		}, mcp.Doc("Returns content of every type")),
		mcp.Tool("where", func(f *mcp.Frame, in RegionInput) (string, error) {
			return fmt.Sprintf("%s in the arguments, %s in the header", in.Region, f.Header("Mcp-Param-Region")), nil
		}, mcp.Doc("Tells a region, and what the header says of it")),
		mcp.Tool("fail", func(*mcp.Frame, noInput) (string, error) {
			return "", errors.New("this tool fails always")
		}, mcp.Doc("Fails")),
		mcp.Tool("crash", func(*mcp.Frame, noInput) (string, error) {
			panic("this tool panics always")
		}, mcp.Doc("Panics")),
	}
}

// picture is a GIF of one pixel.
func picture() []byte {
	gif, err := base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
	if err != nil {
		panic(err)
	}
	return gif
}

// ProfileForm is the form that ask_profile shows.
type ProfileForm struct {
	Name string `json:"name" validate:"required,min=2" jsonschema_description:"your name"`
	Age  int    `json:"age" validate:"gte=0,lte=150"`
	Plan string `json:"plan" validate:"oneof=free paid" jsonschema:"default=free"`
	News bool   `json:"news,omitempty"`
}

// TopicsForm is the form that ask_topics shows, which revisions since 2025-11-25
// have.
type TopicsForm struct {
	Topics []string `json:"topics" validate:"min=1,dive,oneof=go rust zig"`
}

// asking are tools and a prompt that ask the client.
func asking() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("ask_profile", func(f *mcp.Frame, _ noInput) (string, error) {
			a, err := mcp.Elicit[ProfileForm](f, "profile", "Who are you?")
			return fmt.Sprintf("%s %s %d %s %t", a.Action, a.Value.Name, a.Value.Age, a.Value.Plan, a.Value.News), err
		}, mcp.Doc("Asks the user for a profile")),
		mcp.Tool("ask_topics", func(f *mcp.Frame, _ noInput) (string, error) {
			a, err := mcp.Elicit[TopicsForm](f, "topics", "What do you like?")
			return strings.Join(a.Value.Topics, " and "), err
		}, mcp.Doc("Asks the user for several choices")),
		mcp.Tool("ask_twice", func(f *mcp.Frame, _ noInput) (string, error) {
			first, err := mcp.Elicit[GreetInput](f, "first", "The first name?")
			if err != nil {
				return "", err
			}
			second, err := mcp.Elicit[GreetInput](f, "second", "The second name, after "+first.Value.Name+"?")
			return first.Value.Name + " and " + second.Value.Name, err
		}, mcp.Doc("Asks the user for two names, one after the other")),
		mcp.Tool("ask_visit", func(f *mcp.Frame, _ noInput) (string, error) {
			answer, err := mcp.ElicitURL(f, "visit", "Please sign in", "https://example.com/sign-in")
			return "visit: " + string(answer.Action), err
		}, mcp.Doc("Sends the user to a web page")),
		mcp.Tool("ask_model", func(f *mcp.Frame, in CountInput) (string, error) {
			r, err := frame.Sample(f, "model", protocol.SampleParams{
				MaxTokens: 50, SystemPrompt: "Answer with one word.",
				Messages: []protocol.SampleMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.TextContent{Text: in.Text}}}},
			})
			if err != nil {
				return "", err
			}
			return r.Model + " says: " + r.Text(), nil
		}, mcp.Doc("Asks the client's model")),
		mcp.Tool("ask_roots", func(f *mcp.Frame, _ noInput) (string, error) {
			roots, err := frame.Roots(f, "roots")
			var uris []string
			for _, root := range roots {
				uris = append(uris, root.URI)
			}
			return strings.Join(uris, " "), err
		}, mcp.Doc("Asks for the client's roots")),
		mcp.Prompt("introduce", func(f *mcp.Frame, _ noInput) (string, error) {
			who, err := mcp.Elicit[GreetInput](f, "who", "Whom shall I introduce?")
			return "Introduce " + who.Value.Name + ".", err
		}, mcp.Doc("Asks the user before it is there")),
	}
}
