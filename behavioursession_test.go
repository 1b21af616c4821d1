package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of sessions that begin and end.
var sessionBehaviours = []behaviour{
	{what: "a request before initialize", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := arrive(t, tr, rev, fixture(t, nil))
		p.want(p.askAs("123", "tools/list", ""), `"id":123,`, `"code":-32600`, "send initialize first")
		p.want(p.ask("initialize", hello(rev.String())), `"result":`)
		p.alive()
	}},
	{what: "a ping before initialize", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := arrive(t, tr, rev, fixture(t, nil))
		if tr.name == "http" { // no request but initialize may come without the id of a session
			p.want(p.askAs("7", "ping", ""), `"id":7,`, `"code":-32600`, "Mcp-Session-Id is missing")
		} else {
			p.want(p.askAs("7", "ping", ""), `{"jsonrpc":"2.0","id":7,"result":{}}`)
		}
		p.want(p.ask("initialize", hello(rev.String())), `"result":`)
	}},
	{what: "a request before initialized", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := arrive(t, tr, rev, fixture(t, nil))
		p.want(p.ask("initialize", hello(rev.String())), fmt.Sprintf(`"protocolVersion":%q`, rev))
		p.want(p.askAs("124", "tools/list", ""), `"id":124,`, `"tools":[`)
	}},
	{what: "an unknown version", revisions: legacy, run: func(t *testing.T, tr transportUnderTest, _ protocol.Revision) {
		p := arrive(t, tr, protocol.LatestLegacy, fixture(t, nil))
		p.want(p.ask("initialize", hello("1999-01-01")), `"protocolVersion":"2025-11-25"`)
		p.want(p.ask("tools/list", ""), `"icons":[`) // which that revision began with
	}},
	{what: "capabilities by revision", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		s, _ := taskServer(t)
		p := arrive(t, tr, rev, s)
		if rev.Modern() {
			p.want(p.ask("server/discover", ""), `"tools":{`, `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
			return
		}
		answer := p.ask("initialize", hello(rev.String()))
		p.want(answer, `"tools":{`)
		if strings.Contains(answer, "tasks") {
			t.Errorf("tasks are for modern revisions alone: %s", answer)
		}
		if has, want := strings.Contains(answer, `"completions":{}`), rev != protocol.V20241105; has != want {
			t.Errorf("completions declared: %t, want %t", has, want)
		}
	}},
	{what: "a request that is the server's to send", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, fixture(t, nil))
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			p.want(p.askAs(`"q"`, method, ""), `"id":"q",`, `"code":-32601`)
		}
		p.want(p.ask("tools/list", ""), `"tools":[`)
	}},
	{what: "an OnSessionStart that refuses", revisions: legacy, run: initRefuses},
	{what: "what the client says of itself", revisions: legacy, run: clientMeta},
	{what: "a shutdown in the middle of calls", run: shutdownCancels},
}

func TestSessionBehaviours(t *testing.T) { runBehaviours(t, sessionBehaviours) }

func initRefuses(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&mcp.Error{Code: protocol.CodeInvalidParams, Message: "bad tenant"}, `"error":{"code":-32602,"message":"bad tenant"}`},
		{errors.New("no database"), `"error":{"code":-32603,"message":"Internal error: no database"}`},
	} {
		s := fixture(t, &mcp.Options{
			OnSessionStart: func(*mcp.Frame) error { return tt.err },
			OnSessionEnd:   func(*mcp.Frame, error) { t.Error("OnSessionEnd of a session that was refused") },
		})
		p := arrive(t, tr, rev, s)
		p.want(p.askAs("5", "initialize", hello(rev.String())), `"id":5,`, tt.want)
		p.want(p.ask("tools/list", ""), `"code":-32600`, "initialize") // there is no session
	}
}

func clientMeta(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	type client struct {
		Meta       map[string]string `json:"_meta"`
		ClientInfo struct {
			Meta map[string]string `json:"_meta"`
		} `json:"clientInfo"`
	}
	key := mcp.NewKey[client]("client")
	s := fixture(t, &mcp.Options{OnSessionStart: func(f *mcp.Frame) error {
		var c client
		if err := json.Unmarshal(f.Request().Params.Raw, &c); err != nil {
			return err
		}
		key.Set(f, c)
		return nil
	},
	})
	s.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ empty) (string, error) {
		c, _ := key.Get(f)
		return fmt.Sprintf("%s %s, app %q, tenant %q", f.ClientInfo().Name, f.ClientInfo().Version, c.Meta["appId"], c.ClientInfo.Meta["tenant"]), nil
	}))
	const said = `"capabilities":{},"_meta":{"appId":"acme"},"clientInfo":{"name":"c","version":"1","_meta":{"tenant":"t-1"}}`
	p := arrive(t, tr, rev, s)
	p.want(p.ask("initialize", fmt.Sprintf(`"protocolVersion":%q,`, rev)+said), `"result":`)
	p.want(p.ask("tools/call", `"name":"who"`), `c 1, app \"acme\", tenant \"t-1\"`)
	silent := join(t, tr, rev, s)
	silent.want(silent.ask("tools/call", `"name":"who"`), `c 1, app \"\", tenant \"\"`)
}

func shutdownCancels(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
	terminated := make(chan error, 10)
	s := fixture(t, &mcp.Options{OnSessionEnd: func(_ *mcp.Frame, reason error) { terminated <- reason }})
	g := newGate()
	s.MustAdd(g.tool("gate"))
	h := join(t, tr, rev, s).hear()
	h.send("1", "tools/call", `"name":"gate"`)
	h.send("2", "tools/call", `"name":"gate"`)
	await(t, g.running, "first call")
	await(t, g.running, "second call")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there is no time left for calls
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	answered := map[string]bool{}
	for range 2 {
		if cause := await(t, g.ended, "end of a call's context"); cause == nil || !strings.Contains(cause.Error(), "shut") {
			t.Errorf("the context of the call ended with %v", cause)
		}
		message := h.next()
		h.want(message, "shut")
		answered[answerID(message)] = true
	}
	if !answered["1"] || !answered["2"] {
		t.Errorf("answered: %v", answered)
	}
	if !rev.Modern() {
		if reason := await(t, terminated, "OnSessionEnd"); reason == nil || len(terminated) > 0 {
			t.Errorf("OnSessionEnd with %v, and %d times more", reason, len(terminated))
		}
	}
}
