package asking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type order struct {
	Size  string   `json:"size" validate:"required,oneof=small large"`
	Cups  int      `json:"cups" validate:"min=1,max=9" jsonschema:"default=1"`
	Extra []string `json:"extra,omitempty" validate:"dive,oneof=milk sugar"`
}

type cupOrder struct {
	Size string `json:"size" validate:"required,oneof=small large"`
	Cups int    `json:"cups" validate:"min=1,max=9"`
}

// askingServer has a tool for each way to ask. charged counts what Once runs.
func askingServer(charged *atomic.Int64) *mcp.Server {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "asking", Version: "1"}, &mcp.Options{Logger: &quiet})
	ask := func(f *mcp.Frame) (string, error) {
		answer, err := mcp.Elicit[cupOrder](f, "order", "What may it be?")
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Action, " ", answer.Value.Cups, " ", answer.Value.Size), nil
	}
	s.MustAdd(
		mcp.Tool("elicit", func(f *mcp.Frame, _ struct{}) (string, error) { return ask(f) }),
		mcp.Tool("hurried", func(f *mcp.Frame, _ struct{}) (string, error) { return ask(f) }, mcp.Timeout(250*time.Millisecond)),
		mcp.Tool("list", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := mcp.Elicit[order](f, "order", "What may it be?")
			return fmt.Sprint(answer.Value.Extra), err
		}),
		mcp.Tool("url", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := mcp.ElicitURL(f, "login", "Log in, please", "https://example.com/login")
			return string(answer.Action) + " " + f.ElicitationID("login"), err
		}),
		mcp.Tool("sample", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := frame.Sample(f, "s", question("hi"))
			if err != nil {
				return "", err
			}
			return answer.Model + ": " + answer.Text(), nil
		}),
		mcp.Tool("roots", func(f *mcp.Frame, _ struct{}) (string, error) {
			roots, err := frame.Roots(f, "r")
			return fmt.Sprint(roots), err
		}),
		mcp.Tool("several", func(f *mcp.Frame, _ struct{}) (string, error) {
			var form mcp.Elicited[cupOrder]
			var sampled protocol.SampleResult
			var roots []protocol.Root
			err := mcp.Ask(f, mcp.ElicitQuestion("form", "What?", &form), frame.SampleQuestion("model", question("why"), &sampled), frame.RootsQuestion("roots", &roots))
			if err != nil {
				return "", err
			}
			return fmt.Sprint(form.Value.Size, " ", sampled.Text(), " ", len(roots)), nil
		}),
		mcp.Tool("rounds", func(f *mcp.Frame, _ struct{}) (string, error) {
			n, err := mcp.Once(f, "charge", func() (int64, error) { return charged.Add(1), nil })
			if err != nil {
				return "", err
			}
			for i := range 3 {
				if _, err := mcp.Elicit[cupOrder](f, fmt.Sprint("q", i), fmt.Sprint("Question ", i)); err != nil {
					return "", err
				}
			}
			return fmt.Sprint("charged ", n), nil
		}),
		mcp.Prompt("order", func(f *mcp.Frame, _ struct{}) (string, error) { return ask(f) }),
		mcp.Resource("order://now", func(f *mcp.Frame) (string, error) { return ask(f) }),
	)
	return s
}

func question(text string) protocol.SampleParams {
	return protocol.SampleParams{MaxTokens: 5, Messages: []protocol.SampleMessage{{Role: protocol.RoleUser, Content: []protocol.Content{protocol.TextContent{Text: text}}}}}
}

// askedEverywhere runs a test in each of the revisions, over stdio and HTTP.
func askedEverywhere(t *testing.T, from protocol.Revision, test func(t *testing.T, rev protocol.Revision, options ...mcptest.Option)) {
	for rev := from; rev <= protocol.Latest; rev++ {
		t.Run(rev.String()+"/stdio", func(t *testing.T) { test(t, rev) })
		t.Run(rev.String()+"/http", func(t *testing.T) { test(t, rev, mcptest.OverHTTP()) })
	}
}

// elicits answers every question with what client.Accept and its like return.
func elicits(answer *client.ElicitResult, err error) mcptest.Option {
	return mcptest.OnElicit(func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) { return answer, err })
}

func TestElicit(t *testing.T) {
	fine := map[string]any{"size": "large", "cups": 2}
	accept := func(content any) func() (*client.ElicitResult, error) {
		return func() (*client.ElicitResult, error) { return client.Accept(content) }
	}
	tests := []struct {
		name   string
		answer func() (*client.ElicitResult, error)
		want   string // a part of the outcome
	}{
		{"accept", accept(fine), "accept 2 large"},
		{"decline", client.Decline, "decline 0 "},
		{"cancel", client.Cancel, "cancel 0 "},
		{"declined with content", func() (*client.ElicitResult, error) {
			return &client.ElicitResult{Action: protocol.ElicitDecline, Content: json.RawMessage(`{"size":"large","cups":2}`)}, nil
		}, "decline 0 "},
		{"no content", accept(nil), "/size"},
		{"wrong choice", accept(map[string]any{"size": "huge", "cups": 2}), "/size"},
		{"out of range", accept(map[string]any{"size": "large", "cups": 10}), "/cups"},
		{"no object", accept([]int{1}), "not valid"},
		{"no such action", func() (*client.ElicitResult, error) { return &client.ElicitResult{Action: "maybe"}, nil }, "accept, decline or cancel"},
	}
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		for _, tt := range tests {
			c := harness.NewAsked(t, s, rev, append(options, elicits(tt.answer()))...)
			if got := harness.Outcome(c.Client, "elicit"); !strings.Contains(got, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
			if c.Questions() != 1 {
				t.Errorf("%s: asked %q", tt.name, c.Got)
			}
			c.Close()
		}
	})
}

// A client that answers with an error, or with nothing that fits.
func TestElicitFails(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		for name, tt := range map[string]struct {
			result any
			err    error
		}{
			"error":     {nil, &mcp.Error{Code: -1, Message: "no user here"}},
			"string":    {"yes", nil},
			"no action": {struct{}{}, nil},
		} {
			script := mcptest.OnRequest(protocol.MethodElicit, func(json.RawMessage) (any, error) { return tt.result, tt.err })
			c := harness.NewAsked(t, s, rev, append(options, script, mcptest.Capabilities(protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{}}))...)
			if got := harness.Outcome(c.Client, "elicit"); !strings.Contains(got, "rror") {
				t.Errorf("%s: %q, want an error", name, got)
			}
			c.Close()
		}
	})
}

// Prompts and resources may ask, too.
func TestAskInPromptsAndResources(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		c := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(cupOrder{"small", 3})))...)
		if got := c.GetPrompt("order", nil).Messages[0].Content.(mcp.TextContent).Text; got != "accept 3 small" {
			t.Errorf("prompt %q", got)
		}
		if got := c.Read("order://now")[0].Text; got != "accept 3 small" {
			t.Errorf("resource %q", got)
		}
	})
}

func TestElicitLists(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		c := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(order{"small", 1, []string{"milk", "sugar"}})))...)
		want := "[milk sugar]"
		if !rev.Has(protocol.FeatureElicitModes) {
			want = "cannot be a form" // it has no lists
		}
		if got := harness.Outcome(c.Client, "list"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestElicitURL(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20251125, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		var id string
		c := harness.NewAsked(t, s, rev, append(options, mcptest.OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			if id = q.ElicitationID; (id == "") != rev.Modern() {
				t.Errorf("asked with the id %q", id)
			}
			if q.Mode != "url" || q.URL != "https://example.com/login" || q.Message != "Log in, please" {
				t.Errorf("asked %+v", q)
			}
			return client.Accept(nil)
		}))...)
		if got := harness.Outcome(c.Client, "url"); got != "accept "+id {
			t.Errorf("got %q, want it with the id %q", got, id)
		}
	})
}

// What is no page is an error of the handler, and nothing of it is sent.
func TestElicitURLRefused(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("visit", func(f *mcp.Frame, in struct {
		URL string `json:"url"`
	}) (string, error) {
		answer, err := mcp.ElicitURL(f, "visit", "Go there", in.URL)
		return string(answer.Action), err
	}))
	askedEverywhere(t, protocol.V20251125, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		c := harness.NewAsked(t, s, rev, append(options, mcptest.OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			t.Errorf("asked %+v", q)
			return client.Accept(nil)
		}))...)
		for _, url := range []string{"javascript:alert(1)", "javascript://example.com/%0a", "file://example.com/etc", "data:text/html,x", "https:///x", "https://a@example.com"} {
			if r := c.Call("visit", map[string]string{"url": url}); !r.IsError || !strings.Contains(r.Text(), "cannot be asked to visit") {
				t.Errorf("%s: %s", url, r.Text())
			}
		}
	})
}

func TestSampleAndRoots(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20241105, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		c := harness.NewAsked(t, s, rev, append(options, mcptest.Roots(protocol.Root{URI: "file:///a", Name: "a"}),
			mcptest.OnSample(func(_ context.Context, q *client.SampleParams) (*client.SampleResult, error) {
				return &client.SampleResult{Content: []client.Content{client.TextContent{Text: q.Messages[0].Content[0].(mcp.TextContent).Text + " yourself"}}, Model: "m"}, nil
			}))...)
		if got := harness.Outcome(c.Client, "sample"); got != "m: hi yourself" {
			t.Errorf("sample: %q", got)
		}
		if got := harness.Outcome(c.Client, "roots"); !strings.Contains(got, "file:///a") {
			t.Errorf("roots: %q", got)
		}
	})
}

// Several questions are one round; a handler that asks one by one runs again,
// but what Once has done is done once.
func TestAskSeveralAndOnce(t *testing.T) {
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		var charged atomic.Int64
		c := harness.NewAsked(t, askingServer(&charged), rev, append(options, elicits(client.Accept(cupOrder{"large", 1})),
			mcptest.Roots(), mcptest.OnSample(func(context.Context, *client.SampleParams) (*client.SampleResult, error) {
				return &client.SampleResult{Content: []client.Content{client.TextContent{Text: "because"}}}, nil
			}))...)
		before := c.Sent
		if got := harness.Outcome(c.Client, "several"); got != "large because 0" {
			t.Errorf("several: %q", got)
		}
		rounds := c.Sent - before
		if want := 1; c.Questions() != 3 || rev.Modern() && rounds != want+1 || !rev.Modern() && rounds != want {
			t.Errorf("several: %d questions in %d requests", c.Questions(), rounds)
		}
		if got := harness.Outcome(c.Client, "rounds"); got != "charged 1" || charged.Load() != 1 {
			t.Errorf("rounds: %q, charged %d times", got, charged.Load())
		}
		if c.Questions() != 6 {
			t.Errorf("rounds: asked %q", c.Got)
		}
	})
}

// A client is never asked for what it has not declared, or what its revision
// does not have.
func TestAskWithoutCapability(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	askedEverywhere(t, protocol.V20241105, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		without := harness.NewAsked(t, s, rev, options...)
		for tool, capability := range map[string]string{"elicit": "elicitation", "url": "elicitation", "sample": "sampling", "roots": "roots", "several": "elicitation"} {
			r, err := without.TryCall(tool, nil)
			if rev.Modern() {
				fault, ok := errors.AsType[*mcp.Error](err)
				if data := fmt.Sprintf("%s", fault.Data); !ok || fault.Code != protocol.CodeMissingCapability || !strings.Contains(data, `"requiredCapabilities":{"`+capability) {
					t.Errorf("%s: %v", tool, err)
				}
			} else if err != nil || !r.IsError || !strings.Contains(r.Text(), capability) {
				t.Errorf("%s: %v, %v", tool, r, err)
			}
		}
		if rev.Has(protocol.FeatureElicitModes) {
			for tool, can := range map[string]*protocol.ElicitationCapability{"elicit": {URL: &struct{}{}}, "url": {Form: &struct{}{}}} {
				half := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(nil)), mcptest.Capabilities(protocol.ClientCapabilities{Elicitation: can}))...)
				lacks := map[string]string{"elicit": `capability "elicitation.form"`, "url": `capability "elicitation.url"`}[tool]
				if got := harness.Outcome(half.Client, tool); !strings.Contains(got, lacks) || half.Questions() != 0 {
					t.Errorf("%s by a client that can do the other: %q", tool, got)
				}
				half.Close()
			}
		}
		if !rev.Has(protocol.FeatureElicitModes) {
			all := &struct{}{}
			newer := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(nil)), mcptest.Capabilities(protocol.ClientCapabilities{
				Elicitation: &protocol.ElicitationCapability{Form: all, URL: all},
			}))...)
			if got := harness.Outcome(newer.Client, "url"); !strings.Contains(got, "elicitation") || newer.Questions() != 0 {
				t.Errorf("asked for a URL: %q, %q", got, newer.Got)
			}
			if !rev.Has(protocol.FeatureElicitation) {
				if got := harness.Outcome(newer.Client, "elicit"); !strings.Contains(got, "elicitation") || newer.Questions() != 0 {
					t.Errorf("asked for a form: %q, %q", got, newer.Got)
				}
			}
			newer.Close()
		}
		if without.Questions() != 0 {
			t.Errorf("asked %q", without.Got)
		}
	})
}
