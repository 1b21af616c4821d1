package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of calls beside each other, calls that are cancelled and calls that
// fail.
var callBehaviours = []behaviour{
	{what: "one call at a time", transport: "connections", run: oneAtATime},
	{what: "more calls than a session may have", transport: "http", revisions: legacy, run: tooManyAtATime},
	{what: "50 calls at once on one session", revisions: legacy, run: countsAtOnce},
	{what: "a call that is cancelled", run: cancelCall},
	{what: "cancelled for unknown requests", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		h := join(t, tr, rev, fixture(t, nil)).hear()
		h.line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999}}`)
		h.line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nope","reason":"why not"}}`)
		h.line(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		if _, http := h.c.(*httpClient); !http || !rev.Modern() { // modern HTTP has no notifications from clients
			if rest := h.rest(); len(rest) > 0 {
				t.Errorf("heard %q", rest)
			}
		}
	}},
	{what: "cancelled for initialize", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil)) // with the id 1
		p.c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		p.alive()
	}},
	{what: "a tool that panics", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		answer := p.askAs(`"p"`, "tools/call", `"name":"panic"`)
		p.want(answer, `{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"Internal error: the handler panicked"}}`)
		p.alive()
	}},
	{what: "a call without arguments", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		p.want(p.ask("tools/call", `"name":"search"`), `"isError":true`, "query")
		p.want(p.ask("tools/call", `"name":"nothing"`), `"result":{`, `"content":[`)
	}},
	{what: "half a surrogate pair", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		p.want(p.askAs(`"\ud83d"`, "tools/call", `"name":"greet","arguments":{"name":"cut \ud83d"}`), "Hello, cut \uFFFD!")
	}},
	{what: "unknown methods", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		for _, method := range []string{"unknown/method", "tools/bogus"} {
			p.want(p.ask(method, ""), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: `+method+`"}}`)
		}
		p.alive()
	}},
	{what: "what is no message, and then one", transport: "connections", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		for line, want := range map[string]string{
			`invalid json`: `"code":-32700`, `{"jsonrpc":"2.0","id":1`: `"code":-32700`,
			`{"jsonrpc":"2.0","id":1,"params":{}}`: `"id":1,"error":{"code":-32600`, `7`: `"code":-32600`,
		} {
			heard := p.c.say(line)
			p.want(strings.Join(heard, "\n"), want)
		}
		p.alive()
	}},
	{what: "two calls at once", run: twoAtOnce},
	{what: "progress and log before the result", run: toldBefore},
}

func TestCallBehaviours(t *testing.T) { runBehaviours(t, callBehaviours) }

func oneAtATime(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	s := fixture(t, &mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	g := newGate()
	s.MustAdd(g.tool("gate"))
	h := join(t, tr, rev, s).hear()
	h.send("1", "tools/call", `"name":"gate"`)
	await(t, g.running, "first call")
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { // it waits: the connection takes no more than it can serve
		for _, id := range []string{"2", "3", "4"} {
			h.send(id, "tools/call", `"name":"count"`)
		}
	})
	close(g.open)
	h.want(h.next(), `"id":1,`, "through")
	for n := 1; n <= 3; n++ {
		count := n
		if rev.Modern() {
			count = 1 // there is no session to count in
		}
		h.want(h.next(), fmt.Sprintf(`"id":%d,`, n+1), fmt.Sprintf(`"text":"%d"`, count))
	}
}

func tooManyAtATime(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	s := fixture(t, &mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	g := newGate()
	s.MustAdd(g.tool("gate"))
	h := join(t, tr, rev, s).hear()
	h.send("1", "tools/call", `"name":"gate"`)
	await(t, g.running, "first call")
	h.send("2", "tools/call", `"name":"count"`)
	h.want(h.next(), `"id":2,`, `"error":`, "1 requests under way, which is the limit")
	close(g.open)
	h.want(h.next(), `"id":1,`, "through")
}

func countsAtOnce(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	h := join(t, tr, rev, fixture(t, nil)).hear()
	for i := range 50 {
		h.send(fmt.Sprint(i), "tools/call", `"name":"count"`)
	}
	counts, ids := map[string]bool{}, map[string]bool{}
	for range 50 {
		message := h.next()
		var m struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil || len(m.Result.Content) == 0 {
			t.Fatalf("%s: %v", message, err)
		}
		counts[m.Result.Content[0].Text], ids[answerID(message)] = true, true
	}
	if len(counts) != 50 || !counts["50"] || len(ids) != 50 {
		t.Errorf("%d counts for %d ids, want 50 of each: %v", len(counts), len(ids), counts)
	}
}

func cancelCall(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	s := fixture(t, nil)
	g := newGate()
	s.MustAdd(g.tool("gate"))
	h := join(t, tr, rev, s).hear()
	hangUp := h.send(`"r1"`, "tools/call", `"name":"gate"`)
	await(t, g.running, "the call")
	if tr.name == "http" && rev.Modern() {
		hangUp() // this is how it is said there
	} else {
		h.line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r1","reason":"user requested abort"}}`)
	}
	cause := await(t, g.ended, "the end of the call's context")
	if tr.name != "http" || !rev.Modern() {
		if cause == nil || !strings.Contains(cause.Error(), "cancelled by the client: user requested abort") {
			t.Errorf("the context of the call ended with %v", cause)
		}
	}
	if rest := h.rest(); len(rest) > 0 {
		t.Errorf("a cancelled call was answered: %q", rest)
	}
}

func twoAtOnce(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	s := fixture(t, nil)
	both := make(chan struct{}, 2)
	s.MustAdd(mcp.Tool("shout", func(f *mcp.Frame, in struct {
		Word string `json:"word"`
	}) (string, error) {
		both <- struct{}{}
		for len(both) < 2 { // until the other one runs
			if err := f.Progress(1, 2, in.Word); err != nil {
				break
			}
		}
		return in.Word, nil
	}))
	h := join(t, tr, rev, s).hear()
	heard := map[string]string{}
	for id, word := range map[string]string{`"a"`: "ALPHA", `"b"`: "BRAVO"} {
		h.send(id, "tools/call", fmt.Sprintf(`"name":"shout","arguments":{"word":%q}`, word))
	}
	for range 2 {
		message := h.next()
		heard[answerID(message)] = message
	}
	h.want(heard[`"a"`], "ALPHA")
	h.want(heard[`"b"`], "BRAVO")
	if rest := h.rest(); len(rest) > 0 || strings.Contains(heard[`"a"`], "BRAVO") || strings.Contains(heard[`"b"`], "ALPHA") {
		t.Errorf("heard %q, and then %q", heard, rest)
	}
}

// toldBefore has a tool that tells things and does not return before the client
// has heard them.
func toldBefore(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	s := fixture(t, nil)
	heard := make(chan struct{})
	s.MustAdd(mcp.Tool("tell", func(f *mcp.Frame, _ empty) (string, error) {
		if err := f.Progress(1, 2, "half way"); err != nil {
			return "", err
		}
		if err := f.Log(protocol.LevelWarning, "warm"); err != nil {
			return "", err
		}
		select {
		case <-heard:
			return "told", nil
		case <-f.Done():
			return "", f.Err()
		}
	}))
	h := join(t, tr, rev, s).hear()
	line := h.request("1", "tools/call", `"name":"tell"`)
	if rev.Modern() {
		line = expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell",$META+,"progressToken":"p","io.modelcontextprotocol/logLevel":"info"}}}`, rev)
	} else {
		line = strings.Replace(line, `"name":"tell"`, `"name":"tell","_meta":{"progressToken":"p"}`, 1)
	}
	h.line(line)
	h.want(h.next(), `"method":"notifications/progress"`, `"progressToken":"p"`)
	h.want(h.next(), `"method":"notifications/message"`, `"warm"`)
	close(heard)
	h.want(h.next(), `"id":1,`, `"text":"told"`)
}
