package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// The forms in which clients may write what means the same.
var formBehaviours = []behaviour{
	{what: "a byte order mark before each message", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := arrive(t, tr, rev, fixture(t, nil))
		p.c = marked{p.c}
		p.greet()
		p.want(p.askAs("2", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`), `"id":2,`, `sum`, `3}`)
		p.want(p.askAs("3", "tools/list", ""), `"id":3,`, `"name":"add"`)
	}},
	{what: "a byte order mark before a batch", revisions: []protocol.Revision{protocol.V20250326}, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		if tr.name == "sse" {
			return // its batches are told apart elsewhere
		}
		p := join(t, tr, rev, fixture(t, nil))
		heard := strings.Join(marked{p.c}.say(`[{"jsonrpc":"2.0","id":5.0,"method":"ping"},{"jsonrpc":"2.0","id":"6","method":"ping"}]`), "\n")
		p.want(heard, `"id":5.0,`, `"id":"6",`)
	}},
	{what: "two byte order marks", transport: "connections", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		p.want(strings.Join(marked{marked{p.c}}.say(p.request("1", "tools/list", "")), "\n"), `"code":-32700`)
	}},
	{what: "ids of the value of an integer", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		for _, id := range []string{"1.0", "1e2", "-0.0", "10E-1", "1e30", "123456789012345678901234567890", `"\u0061\/b"`} {
			p.want(p.askAs(id, "tools/call", `"name":"add","arguments":{"a":1.0,"b":2e0}`), `"id":`+id+`,`, `sum`, `3}`)
		}
		for _, id := range []string{"1.5", "1e-1", "1e-999999999"} {
			p.want(p.askAs(id, "tools/list", ""), `"code":-32600`, "id must be a string or an integer, got "+id)
		}
	}},
	{what: "one id in two spellings", transport: "connections", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) { sameIDs(t, tr, rev) }},
	{what: "one id in two spellings over HTTP", transport: "http", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) { sameIDs(t, tr, rev) }},
	{what: "a progress token of the value of an integer", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		for _, token := range []string{"7.0", "1e2", "1e30"} {
			s := fixture(t, nil)
			s.MustAdd(mcp.Tool("step", func(f *mcp.Frame, _ empty) (string, error) { return "done", f.Progress(1, 2, "") }))
			p := join(t, tr, rev, s)
			meta := `,"_meta":{"progressToken":` + token + `}`
			line := p.request("1", "tools/call", `"name":"step"`+meta)
			if rev.Modern() {
				line = expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"step",$META+,"progressToken":`+token+`}}}`, rev)
			}
			p.want(strings.Join(p.c.say(line), "\n"), `"progressToken":`+token+`,`, `"done"`)
		}
	}},
	{what: "null for what is optional", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := arrive(t, tr, rev, fixture(t, nil))
		if !rev.Modern() {
			p.want(p.ask("initialize", hello(rev.String())+`,"_meta":null`), `"result":`)
			p.c.say(`{"jsonrpc":"2.0","method":"notifications/initialized","params":null}`)
			p.want(strings.Join(p.c.say(`{"jsonrpc":"2.0","id":2,"method":"ping","params":null,"result":null,"error":null}`), "\n"), `"id":2,"result":`)
			p.want(p.ask("tools/list", `"_meta":{"progressToken":null}`), `"name":"add"`)
			p.want(p.ask("tools/list", `"_meta":null`), `"name":"add"`)
			p.c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null,"reason":null}}`)
		} else {
			line := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META+,"progressToken":null,"io.modelcontextprotocol/logLevel":null}}}`
			p.want(strings.Join(p.c.say(expand(line, rev)), "\n"), `"name":"add"`)
		}
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			p.want(p.ask(method, `"cursor":null`), `"result":`, `[`)
		}
		p.want(p.ask("tools/call", `"name":"nothing","arguments":null,"requestState":null,"inputResponses":null`), `"result":{`, `"content":[`)
	}},
}

func TestFormBehaviours(t *testing.T) { runBehaviours(t, formBehaviours) }

// marked is a conversation in which each message begins with a byte order mark.
type marked struct{ conversation }

func (m marked) say(line string) []string { return m.conversation.say("\ufeff" + line) }

// sameIDs sends a request twice and cancels it, each time with its id in another
// spelling.
func sameIDs(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	for _, ids := range [][3]string{{"7", "7.0", "70e-1"}, {"8.0", "8", "0.8e1"}, {"1e30", "10e29", "0.1e31"}, {`"a/b"`, `"a\/b"`, `"\u0061/b"`}} {
		s := fixture(t, nil)
		g := newGate()
		s.MustAdd(g.tool("gate"))
		h := join(t, tr, rev, s).hear()
		h.send(ids[0], "tools/call", `"name":"gate"`)
		await(t, g.running, "the call")
		h.send(ids[1], "tools/call", `"name":"count"`)
		h.want(h.next(), `"id":`+ids[1]+`,`, `"code":-32600`, "is under way")
		h.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"enough"}}`, ids[2]))
		if cause := await(t, g.ended, "the end of the call's context"); cause == nil || !strings.Contains(cause.Error(), "enough") {
			t.Errorf("%s: the context of the call ended with %v", ids, cause)
		}
	}
}
