package asking_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// One conversation goes to clients of every revision in the shape that it has
// there, which the watch on all messages checks.
func TestSamplingShapes(t *testing.T) {
	s := harness.Fixture(t, nil)
	text := func(s string) protocol.Content { return protocol.TextContent{Text: s} }
	params := protocol.SampleParams{
		MaxTokens: 5, IncludeContext: "thisServer",
		Messages: []protocol.SampleMessage{
			{Role: protocol.RoleUser, Content: []protocol.Content{text("look"), protocol.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"}}},
			{Role: protocol.RoleAssistant, Content: []protocol.Content{protocol.ToolUseContent{ID: "u", Name: "find", Input: json.RawMessage(`{"q":1}`)}}},
			{Role: protocol.RoleUser, Content: []protocol.Content{protocol.ToolResultContent{ToolUseID: "u", Content: []protocol.Content{text("found")}}}},
		},
	}
	s.MustAdd(
		mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := frame.Sample(f, "s", params)
			if err != nil {
				return "", err
			}
			return answer.Text(), nil
		}),
		mcp.Tool("choose", func(f *mcp.Frame, _ struct{}) (string, error) {
			with := params
			with.ToolChoice = &protocol.ToolChoice{Mode: "none"}
			_, err := frame.Sample(f, "s", with)
			return "", err
		}),
	)
	for _, rev := range testdep.Revisions() {
		for _, able := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v able=%v", rev, able), func(t *testing.T) {
				can := &protocol.SamplingCapability{}
				if able {
					can.Tools, can.Context = &struct{}{}, &struct{}{}
				}
				var asked struct {
					IncludeContext string
					Messages       []struct {
						Role    string
						Content json.RawMessage
					}
				}
				c := harness.NewAsked(t, s, rev, mcptest.Capabilities(protocol.ClientCapabilities{Sampling: can}),
					mcptest.OnRequest(protocol.MethodSample, func(raw json.RawMessage) (any, error) {
						return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"hm"}}`), json.Unmarshal(raw, &asked)
					}))
				if got := harness.Outcome(c.Client, "think"); got != "hm" {
					t.Fatalf("got %q", got)
				}
				newer := rev.Has(protocol.FeatureSamplingTools)
				if got, want := asked.IncludeContext != "", !newer || able; got != want {
					t.Errorf("includeContext %q, want it: %v", asked.IncludeContext, want)
				}
				want := []string{`"look"`, "audio", "find", "found"}
				if newer {
					want = []string{`[{"type":"text","text":"look"},{"type":"audio"`, `"type":"tool_use"`, `"type":"tool_result"`}
				}
				if len(asked.Messages) != len(want) {
					t.Fatalf("%d messages, want %d: %v", len(asked.Messages), len(want), asked.Messages)
				}
				for i, m := range asked.Messages {
					if !strings.Contains(string(m.Content), want[i]) || !newer && m.Content[0] != '{' {
						t.Errorf("message %d: %s, want %s", i, m.Content, want[i])
					}
				}
				if newer && able {
					return
				}
				before := c.Questions()
				if got := harness.Outcome(c.Client, "choose"); !strings.Contains(got, "sampling") || c.Questions() != before {
					t.Errorf("a tool choice for a client without tools: %q", got)
				}
			})
		}
	}
}

// An answer that lacks what its schema demands does not reach the handler.
func TestAnswersLackingMembers(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(
		mcp.Tool("roots", func(f *mcp.Frame, _ struct{}) (string, error) {
			roots, err := frame.Roots(f, "r")
			return fmt.Sprint("handled ", roots), err
		}),
		mcp.Tool("sample", func(f *mcp.Frame, _ struct{}) (string, error) {
			_, err := frame.Sample(f, "s", question("hi"))
			return "handled", err
		}),
	)
	for _, rev := range testdep.Revisions() {
		for _, tt := range []struct{ tool, method, answer, want string }{
			{"roots", protocol.MethodRoots, `{"roots":[{"uri":"file:///a"},{}]}`, "roots/1 has no uri"},
			{"roots", protocol.MethodRoots, `{"roots":[null]}`, "roots/0 has no uri"},
			{"roots", protocol.MethodRoots, `{}`, "member roots is missing"},
			{"sample", protocol.MethodSample, `{"role":"assistant","content":{"type":"text","text":"x"}}`, "member model is missing"},
			{"sample", protocol.MethodSample, `{"role":"system","content":{"type":"text","text":"x"},"model":"m"}`, "role must be"},
		} {
			c := harness.NewAsked(t, s, rev,
				mcptest.Capabilities(protocol.ClientCapabilities{Sampling: &protocol.SamplingCapability{}, Roots: &protocol.ListCapability{}}),
				mcptest.OnRequest(tt.method, func(json.RawMessage) (any, error) { return json.RawMessage(tt.answer), nil }))
			if got := harness.Outcome(c.Client, tt.tool); !strings.Contains(got, tt.want) || strings.Contains(got, "handled") {
				t.Errorf("%v %s: %q, want %q", rev, tt.answer, got, tt.want)
			}
		}
	}
}

// What clients refuse in a conversation is an error of the handler, and is not sent.
func TestSamplingRefused(t *testing.T) {
	text := []protocol.Content{protocol.TextContent{Text: "look"}}
	for want, m := range map[string]protocol.SampleMessage{
		`sampling message 1: it has role "system"; it must be "user" or "assistant"`: {Role: "system", Content: text},
		`sampling message 1: it has role ""`:                                         {Content: text},
		`sampling message 1: it has no content`:                                      {Role: protocol.RoleUser},
		`sampling message 1: content item 0 is a nil *protocol.TextContent`:          {Role: protocol.RoleUser, Content: []protocol.Content{(*protocol.TextContent)(nil)}},
		`sampling message 1: content item 0: the image content has the MIMEType "png"`: {Role: protocol.RoleUser,
			Content: []protocol.Content{protocol.ImageContent{Data: []byte("x"), MIMEType: "png"}}},
		`sampling message 1: content item 1 is a protocol.ResourceLink, which a model cannot read`: {Role: protocol.RoleUser,
			Content: append(text, protocol.ResourceLink{URI: "a:b", Name: "b"})},
		`sampling message 1: content item 0 is a protocol.EmbeddedResource`: {Role: protocol.RoleUser,
			Content: []protocol.Content{protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "a:b", Text: "b"}}}},
	} {
		s := harness.Fixture(t, nil)
		s.MustAdd(mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			_, err := frame.Sample(f, "s", protocol.SampleParams{MaxTokens: 5, Messages: []protocol.SampleMessage{{Role: protocol.RoleUser, Content: text}, m}})
			return "", err
		}))
		for _, rev := range testdep.Revisions() {
			c := harness.NewAsked(t, s, rev, mcptest.Capabilities(protocol.ClientCapabilities{Sampling: &protocol.SamplingCapability{}}),
				mcptest.OnRequest(protocol.MethodSample, func(json.RawMessage) (any, error) {
					t.Errorf("%v: %s: the client was asked", rev, want)
					return nil, protocol.Errorf(protocol.CodeInternal, "no")
				}))
			if got, err := c.TryCall("think", nil); err != nil || !got.IsError || !strings.Contains(got.Text(), want) {
				t.Errorf("%v: %+v, %v, want %s", rev, got, err, want)
			}
		}
	}
}
