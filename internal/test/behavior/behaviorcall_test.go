package behavior_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of calls beside each other, calls that are cancelled and calls that
// fail.
var callBehaviours = []harness.Behavior{
	{What: "one call at a time", Transport: "connections", Run: oneAtATime},
	{What: "more calls than a session may have", Transport: "http", Revisions: harness.Legacy, Run: tooManyAtATime},
	{What: "50 calls at once on one session", Revisions: harness.Legacy, Run: countsAtOnce},
	{What: "a call that is cancelled", Run: cancelCall},
	{What: "cancelled for unknown requests", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		h := harness.Join(t, tr, rev, harness.Fixture(t, nil)).Hear()
		h.Line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999}}`)
		h.Line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nope","reason":"why not"}}`)
		h.Line(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		if _, http := h.C.(*harness.HTTPClient); !http || !rev.Modern() { // modern HTTP has no notifications from clients
			if rest := h.Rest(); len(rest) > 0 {
				t.Errorf("heard %q", rest)
			}
		}
	}},
	{What: "cancelled for initialize", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil)) // with the id 1
		p.C.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		p.Alive()
	}},
	{What: "a tool that panics", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		answer := p.AskAs(`"p"`, "tools/call", `"name":"panic"`)
		p.Want(answer, `{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"Internal error: the handler panicked"}}`)
		p.Alive()
	}},
	{What: "a call without arguments", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.Ask("tools/call", `"name":"search"`), `"isError":true`, "query")
		p.Want(p.Ask("tools/call", `"name":"nothing"`), `"result":{`, `"content":[`)
	}},
	{What: "half a surrogate pair", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.AskAs(`"\ud83d"`, "tools/call", `"name":"greet","arguments":{"name":"cut \ud83d"}`), "Hello, cut \uFFFD!")
	}},
	{What: "unknown methods", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		for _, method := range []string{"unknown/method", "tools/bogus"} {
			p.Want(p.Ask(method, ""), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: `+method+`"}}`)
		}
		p.Alive()
	}},
	{What: "what is no message, and then one", Transport: "connections", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		for line, want := range map[string]string{
			`invalid json`: `"code":-32700`, `{"jsonrpc":"2.0","id":1`: `"code":-32700`,
			`{"jsonrpc":"2.0","id":1,"params":{}}`: `"id":1,"error":{"code":-32600`, `7`: `"code":-32600`,
		} {
			heard := p.C.Say(line)
			p.Want(strings.Join(heard, "\n"), want)
		}
		p.Alive()
	}},
	{What: "two calls at once", Run: twoAtOnce},
	{What: "progress and log before the result", Run: toldBefore},
}

func TestCallBehaviours(t *testing.T) { harness.RunBehaviors(t, callBehaviours) }

func oneAtATime(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	g := harness.NewGate()
	s.MustAdd(g.Tool("gate"))
	h := harness.Join(t, tr, rev, s).Hear()
	h.Send("1", "tools/call", `"name":"gate"`)
	harness.Await(t, g.Running, "first call")
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { // it waits: the connection takes no more than it can serve
		for _, id := range []string{"2", "3", "4"} {
			h.Send(id, "tools/call", `"name":"count"`)
		}
	})
	close(g.Open)
	h.Want(h.Next(), `"id":1,`, "through")
	for n := 1; n <= 3; n++ {
		count := n
		if rev.Modern() {
			count = 1 // there is no session to count in
		}
		h.Want(h.Next(), fmt.Sprintf(`"id":%d,`, n+1), fmt.Sprintf(`"text":"%d"`, count))
	}
}

func tooManyAtATime(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	g := harness.NewGate()
	s.MustAdd(g.Tool("gate"))
	h := harness.Join(t, tr, rev, s).Hear()
	h.Send("1", "tools/call", `"name":"gate"`)
	harness.Await(t, g.Running, "first call")
	h.Send("2", "tools/call", `"name":"count"`)
	h.Want(h.Next(), `"id":2,`, `"error":`, "1 requests in progress, the limit")
	close(g.Open)
	h.Want(h.Next(), `"id":1,`, "through")
}

func countsAtOnce(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	h := harness.Join(t, tr, rev, harness.Fixture(t, nil)).Hear()
	for i := range 50 {
		h.Send(fmt.Sprint(i), "tools/call", `"name":"count"`)
	}
	counts, ids := map[string]bool{}, map[string]bool{}
	for range 50 {
		message := h.Next()
		var m struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil || len(m.Result.Content) == 0 {
			t.Fatalf("%s: %v", message, err)
		}
		counts[m.Result.Content[0].Text], ids[harness.AnswerID(message)] = true, true
	}
	if len(counts) != 50 || !counts["50"] || len(ids) != 50 {
		t.Errorf("%d counts for %d ids, want 50 of each: %v", len(counts), len(ids), counts)
	}
}

func cancelCall(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	s := harness.Fixture(t, nil)
	g := harness.NewGate()
	s.MustAdd(g.Tool("gate"))
	h := harness.Join(t, tr, rev, s).Hear()
	hangUp := h.Send(`"r1"`, "tools/call", `"name":"gate"`)
	harness.Await(t, g.Running, "the call")
	if tr.Name == "http" && rev.Modern() {
		hangUp() // this is how it is said there
	} else {
		h.Line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r1","reason":"user requested abort"}}`)
	}
	cause := harness.Await(t, g.Ended, "the end of the call's context")
	if tr.Name != "http" || !rev.Modern() {
		if cause == nil || !strings.Contains(cause.Error(), "cancelled by the client: user requested abort") {
			t.Errorf("the context of the call ended with %v", cause)
		}
	}
	if rest := h.Rest(); len(rest) > 0 {
		t.Errorf("a cancelled call was answered: %q", rest)
	}
}

func twoAtOnce(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	s := harness.Fixture(t, nil)
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
	h := harness.Join(t, tr, rev, s).Hear()
	heard := map[string]string{}
	for id, word := range map[string]string{`"a"`: "ALPHA", `"b"`: "BRAVO"} {
		h.Send(id, "tools/call", fmt.Sprintf(`"name":"shout","arguments":{"word":%q}`, word))
	}
	for range 2 {
		message := h.Next()
		heard[harness.AnswerID(message)] = message
	}
	h.Want(heard[`"a"`], "ALPHA")
	h.Want(heard[`"b"`], "BRAVO")
	if rest := h.Rest(); len(rest) > 0 || strings.Contains(heard[`"a"`], "BRAVO") || strings.Contains(heard[`"b"`], "ALPHA") {
		t.Errorf("heard %q, and then %q", heard, rest)
	}
}

// toldBefore has a tool that tells things and does not return before the client
// has heard them.
func toldBefore(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	s := harness.Fixture(t, nil)
	heard := make(chan struct{})
	s.MustAdd(mcp.Tool("tell", func(f *mcp.Frame, _ struct{}) (string, error) {
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
	h := harness.Join(t, tr, rev, s).Hear()
	line := h.Request("1", "tools/call", `"name":"tell"`)
	if rev.Modern() {
		line = harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell",$META+,"progressToken":"p","io.modelcontextprotocol/logLevel":"info"}}}`, rev)
	} else {
		line = strings.Replace(line, `"name":"tell"`, `"name":"tell","_meta":{"progressToken":"p"}`, 1)
	}
	h.Line(line)
	h.Want(h.Next(), `"method":"notifications/progress"`, `"progressToken":"p"`)
	h.Want(h.Next(), `"method":"notifications/message"`, `"warm"`)
	close(heard)
	h.Want(h.Next(), `"id":1,`, `"text":"told"`)
}
