package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// answers are those of a script, for short.
type answers = map[string]func(json.RawMessage) (any, error)

// A client gets from a script what the test says, in every revision and over both
// transports.
func TestScript(t *testing.T) {
	var again int
	script := answers{
		"tools/list": func(json.RawMessage) (any, error) {
			return map[string]any{"tools": []any{map[string]any{"name": "t", "inputSchema": map[string]string{"type": "object"}}}}, nil
		},
		"tools/call": func(params json.RawMessage) (any, error) {
			var p protocol.CallToolParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			switch p.Name {
			case "refused":
				return nil, protocol.Errorf(4711, "not today")
			case "failed":
				return nil, errors.New("disk full")
			case "garbage":
				return mcptest.Raw(`{"jsonrpc":"2.0","id":$id,"result":5}`), nil
			case "gone":
				return nil, io.EOF
			case "no object":
				return 5, nil
			case "silent":
				return mcptest.Raw(""), nil
			}
			again++
			return map[string]any{"content": []any{map[string]string{"type": "text", "text": fmt.Sprint(p.Name, again)}}}, nil
		},
		"resources/read": func(json.RawMessage) (any, error) {
			return map[string]any{"contents": []any{map[string]string{"uri": "x://a", "text": "a"}}}, nil
		},
	}
	for _, rev := range testdep.Revisions() {
		for _, over := range []string{"pipe", "http"} {
			t.Run(rev.String()+"/"+over, func(t *testing.T) {
				again = 0
				s := mcptest.NewScript(t, rev, script)
				to := s.Transport()
				if over == "http" {
					web := httptest.NewServer(s)
					t.Cleanup(web.Close)
					to = client.HTTP(web.URL, nil)
				}
				c, err := client.Connect(t.Context(), to, &client.Options{NoReconnect: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() }) // the connection may be lost
				if got := c.Revision(); got != rev {
					t.Errorf("revision %v", got)
				}
				if !c.Supports("tools") || !c.Supports("resources") || c.Supports("prompts") {
					t.Errorf("capabilities of %s", c.Server().Raw)
				}
				if r, err := c.Call(t.Context(), "fine", map[string]int{"a": 1}); err != nil || r.Text() != "fine1" {
					t.Errorf("fine: %v, %v", r, err)
				}
				if r, err := c.Read(t.Context(), "x://a"); err != nil || r.Contents[0].Text != "a" {
					t.Errorf("read: %v, %v", r, err)
				}
				if err := c.Ping(t.Context()); err != nil {
					t.Error(err)
				}
				for name, want := range map[string]string{"refused": "not today", "failed": "disk full", "garbage": "invalid result", "no object": "must be a JSON object"} {
					if _, err := c.Call(t.Context(), name, nil, client.Retry(1)); err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %s", name, err, want)
					}
				}
				if _, err := c.Call(t.Context(), "silent", nil, client.Timeout(20*time.Millisecond)); !errors.Is(err, client.ErrTimeout) {
					t.Errorf("silent: %v", err)
				}
				if _, err := c.GetPrompt(t.Context(), "p", nil); !errors.Is(err, client.ErrUnsupported) {
					t.Errorf("a prompt: %v", err)
				}
				if _, err := c.Call(t.Context(), "gone", nil, client.Retry(1)); !errors.Is(err, client.ErrConnection) {
					t.Errorf("gone: %v", err)
				}
				if all := s.Received(); len(all) < 10 || all[0].Method != map[bool]string{true: "server/discover", false: "initialize"}[rev.Modern()] && all[0].Method != "server/discover" {
					t.Errorf("received %d messages, the first is %s", len(all), all[0].Method)
				}
			})
		}
	}
}

// failing is a test of its own, of which this one sees the errors.
type failing struct {
	testing.TB
	errors chan string
}

func (f failing) Errorf(format string, args ...any) { f.errors <- fmt.Sprintf(format, args...) }

// An answer that does not return fails the test, and its client gets an error.
func TestScriptAnswersThatDoNotReturn(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			seen := failing{t, make(chan string, 1)}
			s := mcptest.NewScript(seen, protocol.V20250618, answers{"tools/call": func(json.RawMessage) (any, error) { fail(); return nil, nil }})
			c, err := client.Connect(t.Context(), s.Transport(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Call(t.Context(), "x", nil)
			if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != protocol.CodeInternal {
				t.Errorf("the client got %v", err)
			}
			if got := <-seen.errors; !strings.Contains(got, "the answer to tools/call") {
				t.Errorf("the test failed with %s", got)
			}
		})
	}
}

func ExampleNewScript() {
	s := mcptest.NewScript(t, protocol.V20250618, map[string]func(json.RawMessage) (any, error){
		"tools/call": func(json.RawMessage) (any, error) { return nil, protocol.Errorf(protocol.CodeInternal, "disk full") },
	})
	c, err := client.Connect(context.Background(), s.Transport(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Call(context.Background(), "save", nil)
	fmt.Println(err)
	// Output: call save: Internal error: disk full
}
