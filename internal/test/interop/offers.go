package interop

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
)

// URIInput names a resource.
type URIInput struct {
	URI string `json:"uri"`
}

// changing are tools that change what the server offers, s, or all of them.
func (all *shared) changing(s *mcp.Server) []mcp.Component {
	return []mcp.Component{
		mcp.Tool("touch", func(_ *mcp.Frame, in URIInput) (string, error) {
			s.ResourceUpdated(in.URI)
			return "touched", nil
		}, mcp.Doc("Tells those who watch a resource that it has changed")),
		mcp.Tool("grow", func(_ *mcp.Frame, in GreetInput) (_ string, err error) {
			for _, s := range all.replicas {
				err = errors.Join(err, s.Add(
					mcp.Tool(in.Name, func(*mcp.Frame, noInput) (string, error) { return "I am new", nil }, mcp.Doc("Is new")),
					mcp.Prompt(in.Name, func(*mcp.Frame, noInput) (string, error) { return "I am new", nil }, mcp.Doc("Is new")),
					mcp.Bytes("e2e://new/"+in.Name, []byte("I am new"), mcp.Name(in.Name), mcp.MIME("text/plain")),
				))
			}
			return "grown", err
		}, mcp.Doc("Adds a tool, a prompt and a resource")),
		mcp.Tool("shrink", func(_ *mcp.Frame, in GreetInput) (string, error) {
			n := 0
			for _, s := range all.replicas {
				n = s.Remove(mcp.KindTool, in.Name) + s.Remove(mcp.KindPrompt, in.Name) + s.Remove(mcp.KindResource, "e2e://new/"+in.Name)
			}
			return fmt.Sprintf("%d removed", n), nil
		}, mcp.Doc("Removes what grow added")),
	}
}

// WordInput has the variable of e2e://words/{word}.
type WordInput struct {
	Word string `json:"word" validate:"required,max=20"`
}

// WordOutput is what e2e://words/{word} holds.
type WordOutput struct {
	Word    string `json:"word"`
	Shouted string `json:"shouted"`
}

func (all *shared) resources() []mcp.Component {
	watched := func(*mcp.Frame) (string, error) { return "Watched", nil }
	return []mcp.Component{
		mcp.Bytes("e2e://text", []byte("A text."), mcp.Name("text"), mcp.Doc("A text"), mcp.MIME("text/plain")),
		mcp.Bytes("e2e://blob", picture(), mcp.Name("blob"), mcp.Doc("An image"), mcp.MIME("image/gif")),
		mcp.Resource("e2e://watched/1", watched, mcp.Name("watched-1"), mcp.Doc("A text to subscribe to")),
		mcp.Resource("e2e://watched/2", watched, mcp.Name("watched-2"), mcp.Doc("Another text to subscribe to")),
		mcp.Resource("e2e://reads", func(*mcp.Frame) (string, error) {
			return fmt.Sprint(all.reads.Add(1)), nil
		}, mcp.Name("reads"), mcp.Doc("Counts how often it is read; may be kept"), mcp.Cache(time.Hour)),
		mcp.Template("e2e://words/{word}", func(_ *mcp.Frame, in WordInput) (WordOutput, error) {
			return WordOutput{in.Word, strings.ToUpper(in.Word)}, nil
		}, mcp.Name("words"), mcp.Doc("A word, and how it is shouted"), mcp.CompleteFrom("word", "alpha", "beta", "alphabet")),
		mcp.Template("e2e://numbers/{n}", func(_ *mcp.Frame, in struct {
			N int `json:"n"`
		}) (string, error) {
			return fmt.Sprint(in.N * in.N), nil
		}, mcp.Name("squares"), mcp.Doc("The square of a number")),
	}
}

// LetterInput has the arguments of the prompt letter.
type LetterInput struct {
	Country string `json:"country" jsonschema_description:"where it goes to"`
	City    string `json:"city" jsonschema_description:"a city of that country"`
	Tone    string `json:"tone,omitempty" validate:"omitempty,oneof=formal friendly funny"`
}

// cities answers what a user may type, by the country that is filled in.
func cities(_ *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	if q.Arguments["country"] == "France" {
		return mcp.Suggest(q.Value, "Paris", "Lyon"), nil
	}
	return mcp.Suggest(q.Value, "Rome", "Oslo"), nil
}

func prompts() []mcp.Component {
	return []mcp.Component{
		mcp.Prompt("plain", func(*mcp.Frame, noInput) (string, error) { return "Say something.", nil }, mcp.Doc("Takes no arguments")),
		mcp.Prompt("letter", func(_ *mcp.Frame, in LetterInput) (*mcp.Messages, error) {
			return mcp.NewMessages().
				Userf("Write a %s letter to %s in %s.", in.Tone, in.City, in.Country).
				Assistant("Gladly."), nil
		}, mcp.Doc("Wants a letter"), mcp.Complete("city", cities)),
		mcp.Prompt("describe", func(*mcp.Frame, noInput) (*mcp.Messages, error) {
			return mcp.NewMessages().Add(mcp.RoleUser, mcp.ImageContent{Data: picture(), MIMEType: "image/gif"}).User("Describe it."), nil
		}, mcp.Doc("Shows an image")),
	}
}
