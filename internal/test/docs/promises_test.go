package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type listed struct {
	Names []string       `json:"names"`
	Ages  map[string]int `json:"ages"`
}

type requiredIn struct {
	Count int    `json:"count" validate:"required"`
	Yes   bool   `json:"yes" validate:"required"`
	Name  string `json:"name,omitempty" validate:"min=3"`
}

// tools.md: nil slices and maps of a result are empty ones.
func TestNilIsEmpty(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("list", func(context.Context, struct{}) (listed, error) { return listed{}, nil }))
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		if got := c.Call("list", nil).Text(); got != `{"names":[],"ages":{}}` {
			t.Errorf("%s", got)
		}
	})
}

// tools.md: what the result types give, in revisions with structured content and
// without; errors, masks and panics.
func TestOutcomesOfTools(t *testing.T) {
	for _, mask := range []bool{false, true} {
		mcptest.Each(t, func() *mcp.Server {
			s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{MaskErrors: mask})
			s.MustAdd(
				mcp.Tool("required", func(_ context.Context, in requiredIn) (requiredIn, error) { return in, nil }),
				mcp.Tool("nothing", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }),
				mcp.Tool("fails", func(context.Context, struct{}) (string, error) { return "", errors.New("account 7 is closed") }),
				mcp.Tool("panics", func(context.Context, struct{}) (string, error) { panic("secret detail") }),
				mcp.Tool("coded", func(context.Context, struct{}) (string, error) {
					return "", errors.Join(mcp.Errorf(mcp.CodeInternal, "the database is down"))
				}),
			)
			return s
		}, func(t *testing.T, c *mcptest.Client) {
			if got := c.Call("required", json.RawMessage(`{"count":0,"yes":false}`)); got.IsError {
				t.Errorf("0 and false: %s", got.Text())
			}
			if got := c.Call("nothing", nil); got.IsError || len(got.Content) != 0 || got.Text() != "" {
				t.Errorf("nothing: %+v", got)
			}
			if got := c.Call("fails", nil); !got.IsError || strings.Contains(got.Text(), "account 7") == mask {
				t.Errorf("masked %t: %q", mask, got.Text())
			}
			for name, want := range map[string]string{"panics": "", "coded": "the database is down"} {
				_, err := c.TryCall(name, nil)
				fault, ok := errors.AsType[*mcp.Error](err)
				if !ok || fault.Code != protocol.CodeInternal || strings.Contains(fault.Message, "secret") || !strings.Contains(fault.Message, want) && !mask {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// asking.md: an answer that does not fit its form is an error, and so is a client
// without the capability.
func TestAskingFaults(t *testing.T) {
	server := func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(
			mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				answer, err := mcp.Elicit[Confirm](f, "sure", "Sure?")
				if err != nil {
					return "", err
				}
				if !answer.Accepted() {
					return string(answer.Action), nil
				}
				return "accepted", nil
			}))
		return s
	}
	asked := 0
	mcptest.Each(t, server, func(t *testing.T, c *mcptest.Client) {
		asked = 0
		result, err := c.TryCall("ask", nil)
		if !c.Supports("elicitation") {
			if err != nil || !result.IsError || !strings.Contains(result.Text(), `"elicitation"`) {
				t.Errorf("without the capability: %v, %v", result, err)
			}
			return
		}
		fault, ok := errors.AsType[*mcp.Error](err)
		if !ok || fault.Code != protocol.CodeInvalidParams || !strings.Contains(fault.Message, "/sure: must be true or false") || asked != 1 {
			t.Errorf("asked %d times: %v, %v", asked, result, err)
		}
	}, mcptest.OnElicit(func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
		asked++
		return &client.ElicitResult{Action: "accept", Content: json.RawMessage(`{"sure":"maybe"}`)}, nil
	}))
	without := mcptest.New(t, server())
	_, err := without.TryCall("ask", nil)
	if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != -32021 {
		t.Errorf("without the capability: %v", err)
	}
}
