package limits_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// TestTooLong checks that a message over the limit is answered with the id of its
// request, wherever that stands, and that the connection can be used afterwards.
func TestTooLong(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		for _, tr := range harness.TransportsOf(rev) {
			limit := 64 << 10
			switch {
			case tr.Name == "pipe", tr.Name == "stdio" && rev != protocol.V20241105 && rev != protocol.Latest:
				continue // a pipe has no limit, and standard input is long
			case tr.Name == "stdio" && testdep.Race:
				continue // one goroutine reads it
			case tr.Name == "stdio":
				limit = 4 << 20 // which the server does not change
			}
			t.Run(rev.String()+" "+tr.Name, func(t *testing.T) { testTooLong(t, tr, rev, limit) })
		}
	}
}

func testTooLong(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision, limit int) {
	text := `{"id":8,"text":"\"id\":9` + strings.Repeat("x", limit) + `"}`
	tests := []struct{ name, message, want string }{
		{"id first", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `}`, `7`},
		{"id last", `{"jsonrpc":"2.0","method":"tools/call","params":` + text + `, "id" : "a\"b" }`, `"a\"b"`},
		{"no id outside", `{"jsonrpc":"2.0","params":` + text + `}`, ``},
		{"id null", `{"jsonrpc":"2.0","method":"tools/call","params":` + text + `,"id":null}`, ``},
		{"two ids", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `,"id":9}`, ``},
		{"batch", `[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + text + `}]`, ``},
		{"no JSON", text[3:], ``},
		{"a prompt", `{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":` + text + `}`, `7`},
		{"a resource", `{"jsonrpc":"2.0","id":"r","method":"resources/read","params":` + text + `}`, `"r"`},
		{"a completion", `{"jsonrpc":"2.0","params":` + text + `,"method":"completion/complete","id":-7}`, `-7`},
		{"a method that is not there", `{"jsonrpc":"2.0","params":` + text + `,"method":"no/such","id":7}`, `7`},
		{"a large number", `{"jsonrpc":"2.0","params":` + text + `,"method":"ping","id":9007199254740993}`, `9007199254740993`},
		{"a fraction of zero", `{"jsonrpc":"2.0","params":` + text + `,"method":"ping","id":7.0}`, `7.0`},
		{"an empty id", `{"jsonrpc":"2.0","params":` + text + `,"method":"ping","id":""}`, `""`},
		{"an escaped name", `{"jsonrpc":"2.0","params":` + text + `,"method":"ping","\u0069d":7}`, `7`},
		{"an id that is a list", `{"jsonrpc":"2.0","params":` + text + `,"method":"tools/call","id":[7]}`, ``},
		{"an id that is true", `{"jsonrpc":"2.0","params":` + text + `,"method":"tools/call","id":true}`, ``},
		{"a list for params", `{"jsonrpc":"2.0","params":[` + text + `,{"id":9}],"method":"tools/call","id":7}`, `7`},
		{"text for params", `{"jsonrpc":"2.0","params":"` + strings.Repeat("x", limit) + `","method":"tools/call","id":7}`, `7`},
		{"a member of its own", `{"jsonrpc":"2.0","more":` + text + `,"method":"tools/call","id":7}`, `7`},
		{"a long method", `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", limit) + `","id":7}`, `7`},
	}
	p := harness.Join(t, tr, rev, harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Message: limit}}))
	for _, test := range tests {
		heard := p.C.Say(test.message)
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
	if answer := p.Ask("tools/list", ""); !strings.Contains(answer, `"tools":[`) {
		t.Errorf("then %.300s", answer)
	}
}

// TestSpoiledAnswer checks that a question to the client fails at once if the answer to it
// cannot be taken, and that nothing else does.
func TestSpoiledAnswer(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue // answers are parts of requests
		}
		for _, tr := range harness.TransportsOf(rev) {
			limit := 64 << 10
			switch {
			case tr.Name == "stdio" && testdep.Race:
				continue // one goroutine reads it
			case tr.Name == "stdio":
				limit = 4 << 20 // which the server does not change
			case tr.Name == "pipe":
				limit = 0
			}
			t.Run(rev.String()+" "+tr.Name, func(t *testing.T) { testSpoiledAnswer(t, tr, rev, limit) })
		}
	}
}

func testSpoiledAnswer(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision, limit int) {
	text := strings.Repeat("x", limit)
	tests := []struct{ name, message, want string }{
		{"result", `{"jsonrpc":"2.0","id":$id,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"` + text + `"}}}`, "is longer than the limit"},
		{"id last", `{"jsonrpc":"2.0","result":{"text":"` + text + `"},"id":$id}`, "is longer than the limit"},
		{"error", `{"jsonrpc":"2.0","id":$id,"error":{"code":1,"message":"` + text + `"}}`, "is longer than the limit"},
		{"result and error", `{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"m"}}`, "is not valid"},
		{"no version", `{"id":$id,"result":{}}`, "is not valid"},
		{"batch", `[{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"m"}}]`, "is not valid"},
	}
	s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Limits: mcp.Limits{Message: limit}})
	s.MustAdd(mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
		_, err := frame.Sample(f, "thought", protocol.SampleParams{MaxTokens: 9, Messages: []protocol.SampleMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.TextContent{Text: "why?"}}}}})
		return "", err
	}, mcp.Doc("asks a model")))
	p := harness.Arrive(t, tr, rev, s)
	p.Want(p.Ask("initialize", strings.Replace(harness.Hello(rev.String()), `"capabilities":{}`, `"capabilities":{"sampling":{}}`, 1)), `"result":`)
	p.C.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	h := p.Hear()
	for i, test := range tests {
		if limit == 0 && test.want != "is not valid" || strings.HasPrefix(test.message, "[") && rev != protocol.V20250326 {
			continue
		}
		h.Send(fmt.Sprint(100+i), "tools/call", `"name":"think"`)
		var question struct {
			ID     json.RawMessage
			Method string
		}
		asked := h.Next()
		if err := json.Unmarshal([]byte(asked), &question); err != nil || question.Method == "" {
			t.Fatalf("asked %.300s, %v", asked, err)
		}
		// Neither that of another question nor one without an id is for this one.
		for _, id := range []string{`"none"`, `null`} {
			h.Refused(strings.Replace(test.message, "$id", id, 1))
		}
		h.Refused(strings.Replace(test.message, "$id", string(question.ID), 1))
		h.Want(h.AnswerTo(fmt.Sprint(100+i)), `"isError":true`, test.want)
	}
}
