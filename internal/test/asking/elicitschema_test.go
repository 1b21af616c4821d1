package asking_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// booking is a form that only a server with a format, a rule and a type of its own
// can show.
type booking struct {
	Phone  string    `json:"phone" jsonschema:"format=phone"`
	Coupon string    `json:"coupon" validate:"coupon"`
	At     time.Time `json:"at"`
}

// bookingOptions declare what booking has. Coupons begin with prefix.
func bookingOptions(prefix string) *schema.Options {
	return &schema.Options{
		Formats: map[string]func(string) bool{"phone": regexp.MustCompile(`^\+[0-9]+$`).MatchString},
		Rules: []schema.Rule{schema.NewRule("coupon", func(_ context.Context, v, _ string) error {
			if !strings.HasPrefix(v, prefix) {
				return errors.New("must begin with " + prefix)
			}
			return nil
		}, schema.Describe("a coupon"))},
	}
}

// bookingServer asks for a booking from each kind of handler.
func bookingServer(name string, options *schema.Options) *mcp.Server {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: name, Version: "1"}, &mcp.Options{Logger: &quiet, Schema: options})
	book := func(f *mcp.Frame) (string, error) {
		answer, err := mcp.Elicit[booking](f, "book", "Your booking?")
		return answer.Value.Phone + " " + answer.Value.Coupon, err
	}
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Params.Name != "around" {
				return next(f)
			}
			text, err := book(f)
			if err != nil {
				return nil, err
			}
			return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}}, nil
		}
	})
	s.MustAdd(
		mcp.Tool("book", func(f *mcp.Frame, _ struct{}) (string, error) { return book(f) }),
		mcp.Tool("task", func(f *mcp.Frame, _ struct{}) (string, error) { return book(f) }, mcp.AsTask(nil)),
		mcp.Tool("around", func(*mcp.Frame, struct{}) (string, error) { return "not asked", nil }),
		mcp.Prompt("prompt", func(f *mcp.Frame, _ struct{}) (string, error) { return book(f) }),
		mcp.Resource("booking://"+name, func(f *mcp.Frame) (string, error) { return book(f) }),
	)
	return s
}

// The options of the server that a handler was added to apply to its forms, wherever
// that server is mounted, and not those of the others.
func TestElicitSchema(t *testing.T) {
	own := func(t *testing.T) (*mcp.Server, string) { return bookingServer("own", bookingOptions("A")), "" }
	child := func(t *testing.T) (*mcp.Server, string) {
		outer, middle, inner := bookingServer("outer", bookingOptions("Z")), bookingServer("middle", bookingOptions("Y")), bookingServer("inner", bookingOptions("A"))
		if err := errors.Join(middle.Mount("in", inner), outer.Mount("mid", middle)); err != nil {
			t.Fatal(err)
		}
		return outer, "mid_in_"
	}
	parent := func(t *testing.T) (*mcp.Server, string) {
		outer := bookingServer("outer", bookingOptions("A"))
		if err := outer.Mount("in", bookingServer("inner", bookingOptions("Z"))); err != nil {
			t.Fatal(err)
		}
		return outer, ""
	}
	through := func(t *testing.T) (*mcp.Server, string) { // a handler of the outer server calls the inner one's tool
		inner, outer := bookingServer("inner", bookingOptions("A")), bookingServer("outer", bookingOptions("Z"))
		if err := outer.Mount("in", inner); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"book", "task", "around"} {
			outer.MustAdd(mcp.Tool("call_"+name, func(f *mcp.Frame, _ struct{}) (protocol.Result, error) { return outer.Call(f, "in_"+name, nil) }))
		}
		return outer, "call_"
	}
	for _, from := range []struct {
		name   string
		server func(t *testing.T) (*mcp.Server, string)
	}{{"own", own}, {"mounted twice", child}, {"with something mounted", parent}, {"called", through}} {
		t.Run(from.name, func(t *testing.T) {
			s, prefix := from.server(t)
			askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
				for _, tt := range []struct{ phone, coupon, want string }{
					{"+49", "A1", "+49 A1"}, {"49", "A1", "/phone"}, {"+49", "Z1", "must begin with A"},
				} {
					content := map[string]any{"phone": tt.phone, "coupon": tt.coupon, "at": "2026-11-27T10:00:00Z"}
					c := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(content)))...)
					for _, tool := range []string{"book", "task", "around"} {
						if got := harness.Outcome(c.Client, prefix+tool); !strings.Contains(got, tt.want) {
							t.Errorf("%s: %q, want %q", tool, got, tt.want)
						}
					}
					if from.name == "own" {
						got, err := c.TryGetPrompt("prompt", nil)
						if text := fmt.Sprint(err, text(got)); !strings.Contains(text, tt.want) {
							t.Errorf("prompt: %s, want %q", text, tt.want)
						}
						contents, err := c.TryRead("booking://own")
						if text := fmt.Sprintf("%v %+v", err, contents); !strings.Contains(text, tt.want) {
							t.Errorf("resource: %s, want %q", text, tt.want)
						}
					}
					c.Close()
				}
			})
		})
	}
}

// text returns the text of a prompt.
func text(p *protocol.GetPromptResult) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%+v", p.Messages)
}

// What no option of the server declares is an error that names it.
func TestElicitSchemaMissing(t *testing.T) {
	s := bookingServer("without", nil)
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
		c := harness.NewAsked(t, s, rev, elicits(client.Decline()))
		if got := harness.Outcome(c.Client, "book"); !strings.Contains(got, "booking cannot be a form") || !strings.Contains(got, "coupon") || !strings.Contains(got, "phone") {
			t.Errorf("%v: %s", rev, got)
		}
		c.Close()
	}
}
