package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

const initBatchLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// TestBatch tests over every transport what the transcripts cannot show.
func TestBatch(t *testing.T) {
	progress := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":7}}}]`
	modern := harness.Expand(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{$META}}]`, protocol.Latest)
	twice := `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold"}},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/release"}]`
	long := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(harness.PingLine+",", n), ",") + "]"
	}
	tests := []struct {
		name, say string
		want      []string // each in what is heard
	}{
		{"messages ahead", progress, []string{`"progress":1`, `"progress":2`, `"id":1,"result":{}`, `"text":"done"`}},
		{"modern request", modern, []string{`"id":1,"result":{}`, `"id":2,"error":{"code":-32600,"message":"revision 2026-07-28 has no batches`}},
		{"taken id", twice, []string{`"id":1,"result":{"content"`, `a request with id 1 is under way`}},
		{"too long", long(4), []string{`"error":{"code":-32600,"message":"the batch has 4 messages; the limit is 3"}`}},
		{"space around", "  [ " + harness.PingLine + " ] ", []string{`"id":9,"result":{}`}},
		{"garbage", `[{"jsonrpc":`, []string{`-32700`}},
		{"trailing", `[` + harness.PingLine + `]x`, []string{`-32700`}},
		{"deep", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), []string{`-32600`}},
		{"scalars", `[1,"a",null]`, []string{`"code":-32600`}},
	}
	for _, transport := range harness.TransportsOf(protocol.V20250326) {
		for _, tt := range tests {
			if tt.name == "taken id" && transport.Name == "http" {
				continue // its requests start in any order
			}
			t.Run(transport.Name+"/"+tt.name, func(t *testing.T) {
				s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Batch: 3}})
				release := make(chan struct{})
				s.MustAdd(mcp.Tool("hold", func(*mcp.Frame, struct{}) (string, error) {
					<-release
					return "held", nil
				}))
				s.Use(func(next mcp.Handler) mcp.Handler {
					return func(f *mcp.Frame) (protocol.Result, error) {
						if f.Request().Method == "notifications/release" {
							close(release)
							return nil, nil
						}
						return next(f)
					}
				})
				c := transport.Open(t, s, protocol.V20250326)
				c.Say(initBatchLine)
				heard := strings.Join(c.Say(tt.say), "\n")
				for _, want := range tt.want {
					if !strings.Contains(heard, want) {
						t.Errorf("heard %s\nwant  %s", heard, want)
					}
				}
				if again := fmt.Sprint(c.Say(harness.PingLine)); !strings.Contains(again, `"id":9,"result":{}`) {
					t.Errorf("afterwards ping got %s", again)
				}
			})
		}
	}
}

// TestBatchOfNotifications sees that nothing is answered.
func TestBatchOfNotifications(t *testing.T) {
	line := `[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":77,"result":{}}]`
	t.Run("pipe", func(t *testing.T) {
		c := harness.OpenPipe(t, harness.Fixture(t, nil), protocol.V20250326).(*harness.ConnClient)
		c.Say(initBatchLine)
		if err := c.Conn.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Say(harness.PingLine)); !strings.Contains(got, `"id":9`) {
			t.Errorf("heard %s, want the answer to ping", got)
		}
	})
	t.Run("http", func(t *testing.T) {
		c := harness.OpenHTTP(t, harness.Fixture(t, nil), protocol.V20250326).(*harness.HTTPClient)
		c.Say(initBatchLine)
		if status, body := c.Send(line); status != http.StatusAccepted || body != "" {
			t.Errorf("got %d %q, want 202 and nothing", status, body)
		}
	})
}

// TestBatchStatus tests the HTTP status of batches that are refused.
func TestBatchStatus(t *testing.T) {
	for _, tt := range []struct {
		name, initialize, say string
		status                int
	}{
		{"no session", "", `[` + harness.PingLine + `]`, http.StatusBadRequest},
		{"no session, initialize", "", `[` + initBatchLine + `]`, http.StatusBadRequest},
		{"empty", initBatchLine, `[]`, http.StatusBadRequest},
		{"initialize inside", initBatchLine, `[` + initBatchLine + `]`, http.StatusBadRequest},
		{"other revision", harness.InitLine, `[` + harness.PingLine + `]`, http.StatusBadRequest},
		{"good", initBatchLine, `[` + harness.PingLine + `]`, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := harness.OpenHTTP(t, harness.Fixture(t, nil), protocol.V20250326).(*harness.HTTPClient)
			if tt.initialize != "" {
				c.Say(tt.initialize)
			}
			if status, body := c.Send(tt.say); status != tt.status {
				t.Errorf("got %d %s, want %d", status, body, tt.status)
			}
		})
	}
}
