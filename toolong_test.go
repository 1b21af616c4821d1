package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/needs"
	"github.com/talaria-go/mcp/protocol"
)

// TestTooLong checks that a message over the limit is answered with the id of its
// request, wherever that stands, and that the connection can be used afterwards.
func TestTooLong(t *testing.T) {
	for _, rev := range needs.Revisions() {
		for _, tr := range transports {
			limit := 64 << 10
			switch {
			case tr.name == "pipe", tr.name == "stdio" && rev != protocol.V20241105 && rev != protocol.Latest:
				continue // a pipe has no limit, and standard input is long
			case tr.name == "stdio" && needs.Race:
				continue // one goroutine reads it
			case tr.name == "stdio":
				limit = 4 << 20 // which the server does not change
			}
			t.Run(rev.String()+" "+tr.name, func(t *testing.T) { testTooLong(t, tr, rev, limit) })
		}
	}
}

func testTooLong(t *testing.T, tr transportUnderTest, rev protocol.Revision, limit int) {
	text := `{"id":8,"text":"\"id\":9` + strings.Repeat("x", limit) + `"}`
	tests := []struct{ name, message, want string }{
		{"id first", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `}`, `7`},
		{"id last", `{"jsonrpc":"2.0","method":"tools/call","params":` + text + `, "id" : "a\"b" }`, `"a\"b"`},
		{"no id outside", `{"jsonrpc":"2.0","params":` + text + `}`, ``},
		{"id null", `{"jsonrpc":"2.0","method":"tools/call","params":` + text + `,"id":null}`, ``},
		{"two ids", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `,"id":9}`, ``},
		{"batch", `[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `}]`, ``},
		{"no JSON", text[3:], ``},
	}
	p := join(t, tr, rev, fixture(t, &mcp.Options{Limits: mcp.Limits{Message: limit}}))
	for _, test := range tests {
		heard := p.c.say(test.message)
		var answer struct {
			ID    json.RawMessage
			Error struct {
				Code    int
				Message string
			}
		}
		if len(heard) != 1 || json.Unmarshal([]byte(heard[0]), &answer) != nil {
			t.Fatalf("%s: answered %.300q", test.name, heard)
		}
		if got := strings.Trim(string(answer.ID), "nul"); got != test.want {
			t.Errorf("%s: answered with the id %s, want %s", test.name, answer.ID, test.want)
		}
		if answer.Error.Code != int(protocol.CodeInvalidRequest) || !strings.Contains(answer.Error.Message, fmt.Sprintf("message of %d bytes is longer than the limit of %d bytes", len(test.message), limit)) {
			t.Errorf("%s: answered %.300s", test.name, heard[0])
		}
	}
	if answer := p.ask("tools/list", ""); !strings.Contains(answer, `"tools":[`) {
		t.Errorf("then %.300s", answer)
	}
}
