package behavior_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// urgency is an integer in Go and a text in JSON.
type urgency int

var urgencies = []string{"low", "normal", "high"}

func (urgency) Enum() []urgency { return []urgency{0, 1, 2} }

func (u urgency) MarshalText() ([]byte, error) { return []byte(urgencies[u]), nil }

func (u *urgency) UnmarshalText(text []byte) error {
	i := slices.Index(urgencies, string(text))
	if i < 0 {
		return fmt.Errorf("no urgency is called %q", text)
	}
	*u = urgency(i)
	return nil
}

// The values of an integer with a text form are listed, completed, checked and written by
// their texts, in tools, prompts and templates.
func TestEnumsByText(t *testing.T) {
	type args struct {
		Urgency urgency `json:"urgency"`
	}
	type result struct {
		Urgency urgency         `json:"urgency"`
		Count   map[urgency]int `json:"count"`
	}
	say := func(_ *mcp.Frame, in args) (string, error) { return fmt.Sprint(int(in.Urgency)), nil }
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("tool", func(_ *mcp.Frame, in args) (result, error) {
			return result{in.Urgency, map[urgency]int{in.Urgency: 1}}, nil
		}),
		mcp.Prompt("prompt", say), mcp.Template("urgent:///{urgency}", say),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		tool := c.Tools()[0]
		if got := string(tool.InputSchema); !strings.Contains(got, `"urgency":{"type":"string","enum":["low","normal","high"]}`) {
			t.Errorf("the schema is %s", got)
		}
		if tool.OutputSchema != nil && !strings.Contains(string(tool.OutputSchema), `"propertyNames":{"type":"string","enum":["low","normal","high"]}`) {
			t.Errorf("the schema of results is %s", tool.OutputSchema)
		}
		if got := c.Call("tool", map[string]string{"urgency": "high"}).Text(); got != `{"urgency":"high","count":{"high":1}}` {
			t.Errorf("got %s", got)
		}
		if got := c.Call("tool", json.RawMessage(`{"urgency":2}`)); !got.IsError || !strings.Contains(got.Text(), `/urgency: must be one of "low", "normal", "high"`) {
			t.Errorf("got %s", got.Text())
		}
		if got := c.Prompts()[0].Arguments[0].Description; !strings.Contains(got, "low, normal, high") {
			t.Errorf("the argument is described as %q", got)
		}
		if got := c.GetPrompt("prompt", map[string]string{"urgency": "high"}); got.Messages[0].Content.(mcp.TextContent).Text != "2" {
			t.Errorf("got %+v", got)
		}
		if got := c.Read("urgent:///high"); got[0].Text != "2" {
			t.Errorf("got %+v", got)
		}
		if _, err := c.TryRead("urgent:///2"); err == nil {
			t.Error("a number is read as an urgency")
		}
		for _, of := range []string{"prompt", "urgent:///{urgency}"} {
			if got := c.Complete(of, "urgency", "h", nil); !slices.Equal(got, []string{"high"}) {
				t.Errorf("%s completes %q", of, got)
			}
		}
	})
}
