package behavior_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// The forms in which clients may write what means the same.
var formBehaviours = []harness.Behavior{
	{What: "a byte order mark before each message", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Arrive(t, tr, rev, harness.Fixture(t, nil))
		p.C = marked{p.C}
		p.Greet()
		p.Want(p.AskAs("2", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`), `"id":2,`, `sum`, `3}`)
		p.Want(p.AskAs("3", "tools/list", ""), `"id":3,`, `"name":"add"`)
	}},
	{What: "a byte order mark before a batch", Revisions: []protocol.Revision{protocol.V20250326}, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		if tr.Name == "sse" {
			return // its batches are told apart elsewhere
		}
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		heard := strings.Join(marked{p.C}.Say(`[{"jsonrpc":"2.0","id":5.0,"method":"ping"},{"jsonrpc":"2.0","id":"6","method":"ping"}]`), "\n")
		p.Want(heard, `"id":5.0,`, `"id":"6",`)
	}},
	{What: "two byte order marks", Transport: "connections", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		p.Want(strings.Join(marked{marked{p.C}}.Say(p.Request("1", "tools/list", "")), "\n"), `"code":-32700`)
	}},
	{What: "ids of the value of an integer", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		for _, id := range []string{"1.0", "1e2", "-0.0", "10E-1", "1e30", "123456789012345678901234567890", `"\u0061\/b"`} {
			p.Want(p.AskAs(id, "tools/call", `"name":"add","arguments":{"a":1.0,"b":2e0}`), `"id":`+id+`,`, `sum`, `3}`)
		}
		for _, id := range []string{"1.5", "1e-1", "1e-999999999"} {
			p.Want(p.AskAs(id, "tools/list", ""), `"code":-32600`, "id must be a string or an integer, got "+id)
		}
	}},
	{What: "one id in two spellings", Transport: "connections", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) { sameIDs(t, tr, rev) }},
	{What: "one id in two spellings over HTTP", Transport: "http", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) { sameIDs(t, tr, rev) }},
	{What: "a progress token of the value of an integer", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		for _, token := range []string{"7.0", "1e2", "1e30"} {
			s := harness.Fixture(t, nil)
			s.MustAdd(mcp.Tool("step", func(f *mcp.Frame, _ struct{}) (string, error) { return "done", f.Progress(1, 2, "") }))
			p := harness.Join(t, tr, rev, s)
			meta := `,"_meta":{"progressToken":` + token + `}`
			line := p.Request("1", "tools/call", `"name":"step"`+meta)
			if rev.Modern() {
				line = harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"step",$META+,"progressToken":`+token+`}}}`, rev)
			}
			p.Want(strings.Join(p.C.Say(line), "\n"), `"progressToken":`+token+`,`, `"done"`)
		}
	}},
	{What: "null for what is optional", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Arrive(t, tr, rev, harness.Fixture(t, nil))
		if !rev.Modern() {
			p.Want(p.Ask("initialize", harness.Hello(rev.String())+`,"_meta":null`), `"result":`)
			p.C.Say(`{"jsonrpc":"2.0","method":"notifications/initialized","params":null}`)
			p.Want(strings.Join(p.C.Say(`{"jsonrpc":"2.0","id":2,"method":"ping","params":null,"result":null,"error":null}`), "\n"), `"id":2,"result":`)
			p.Want(p.Ask("tools/list", `"_meta":{"progressToken":null}`), `"name":"add"`)
			p.Want(p.Ask("tools/list", `"_meta":null`), `"name":"add"`)
			p.C.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null,"reason":null}}`)
		} else {
			line := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META+,"progressToken":null,"io.modelcontextprotocol/logLevel":null}}}`
			p.Want(strings.Join(p.C.Say(harness.Expand(line, rev)), "\n"), `"name":"add"`)
		}
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			p.Want(p.Ask(method, `"cursor":null`), `"result":`, `[`)
		}
		p.Want(p.Ask("tools/call", `"name":"nothing","arguments":null,"requestState":null,"inputResponses":null`), `"result":{`, `"content":[`)
	}},
}

func TestFormBehaviours(t *testing.T) { harness.RunBehaviors(t, formBehaviours) }

// marked is a conversation in which each message begins with a byte order mark.
type marked struct{ harness.Conversation }

func (m marked) Say(line string) []string { return m.Conversation.Say("\ufeff" + line) }

// sameIDs sends a request twice and cancels it, each time with its id in another
// spelling.
func sameIDs(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	for _, ids := range [][3]string{{"7", "7.0", "70e-1"}, {"8.0", "8", "0.8e1"}, {"1e30", "10e29", "0.1e31"}, {`"a/b"`, `"a\/b"`, `"\u0061/b"`}} {
		s := harness.Fixture(t, nil)
		g := harness.NewGate()
		s.MustAdd(g.Tool("gate"))
		h := harness.Join(t, tr, rev, s).Hear()
		h.Send(ids[0], "tools/call", `"name":"gate"`)
		harness.Await(t, g.Running, "the call")
		h.Send(ids[1], "tools/call", `"name":"count"`)
		h.Want(h.Next(), `"id":`+ids[1]+`,`, `"code":-32600`, "is under way")
		h.Line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"enough"}}`, ids[2]))
		if cause := harness.Await(t, g.Ended, "the end of the call's context"); cause == nil || !strings.Contains(cause.Error(), "enough") {
			t.Errorf("%s: the context of the call ended with %v", ids, cause)
		}
	}
}
