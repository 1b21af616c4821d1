package behavior_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// The cases of sessions that begin and end.
var sessionBehaviours = []harness.Behavior{
	{What: "a request before initialize", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Arrive(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.AskAs("123", "tools/list", ""), `"id":123,`, `"code":-32600`, "send initialize first")
		p.Want(p.Ask("initialize", harness.Hello(rev.String())), `"result":`)
		p.Alive()
	}},
	{What: "a ping before initialize", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Arrive(t, tr, rev, harness.Fixture(t, nil))
		if tr.Name == "http" { // no request but initialize may come without the id of a session
			p.Want(p.AskAs("7", "ping", ""), `"id":7,`, `"code":-32600`, "Mcp-Session-Id is missing")
		} else {
			p.Want(p.AskAs("7", "ping", ""), `{"jsonrpc":"2.0","id":7,"result":{}}`)
		}
		p.Want(p.Ask("initialize", harness.Hello(rev.String())), `"result":`)
	}},
	{What: "a request before initialized", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Arrive(t, tr, rev, harness.Fixture(t, nil))
		p.Want(p.Ask("initialize", harness.Hello(rev.String())), fmt.Sprintf(`"protocolVersion":%q`, rev))
		p.Want(p.AskAs("124", "tools/list", ""), `"id":124,`, `"tools":[`)
	}},
	{What: "an unknown version", Revisions: harness.Legacy, Run: func(t *testing.T, tr harness.TransportUnderTest, _ protocol.Revision) {
		p := harness.Arrive(t, tr, protocol.LatestLegacy, harness.Fixture(t, nil))
		p.Want(p.Ask("initialize", harness.Hello("1999-01-01")), `"protocolVersion":"2025-11-25"`)
		p.Want(p.Ask("tools/list", ""), `"icons":[`) // which that revision began with
	}},
	{What: "capabilities by revision", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s, _ := harness.TaskServer(t)
		p := harness.Arrive(t, tr, rev, s)
		if rev.Modern() {
			p.Want(p.Ask("server/discover", ""), `"tools":{`, `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
			return
		}
		answer := p.Ask("initialize", harness.Hello(rev.String()))
		p.Want(answer, `"tools":{`)
		if strings.Contains(answer, "tasks") {
			t.Errorf("tasks are for modern revisions alone: %s", answer)
		}
		if has, want := strings.Contains(answer, `"completions":{}`), rev != protocol.V20241105; has != want {
			t.Errorf("completions declared: %t, want %t", has, want)
		}
	}},
	{What: "a request that is the server's to send", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			p.Want(p.AskAs(`"q"`, method, ""), `"id":"q",`, `"code":-32601`)
		}
		p.Want(p.Ask("tools/list", ""), `"tools":[`)
	}},
	{What: "an OnSessionStart that refuses", Revisions: harness.Legacy, Run: initRefuses},
	{What: "what the client says of itself", Revisions: harness.Legacy, Run: clientMeta},
	{What: "a shutdown in the middle of calls", Run: shutdownCancels},
}

func TestSessionBehaviours(t *testing.T) { harness.RunBehaviors(t, sessionBehaviours) }

func initRefuses(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&mcp.Error{Code: protocol.CodeInvalidParams, Message: "bad tenant"}, `"error":{"code":-32602,"message":"bad tenant"}`},
		{errors.New("no database"), `"error":{"code":-32603,"message":"Internal error: no database"}`},
	} {
		s := harness.Fixture(t, &mcp.Options{
			OnSessionStart: func(*mcp.Frame) error { return tt.err },
			OnSessionEnd:   func(*mcp.Frame, error) { t.Error("OnSessionEnd of a session that was refused") },
		})
		p := harness.Arrive(t, tr, rev, s)
		p.Want(p.AskAs("5", "initialize", harness.Hello(rev.String())), `"id":5,`, tt.want)
		p.Want(p.Ask("tools/list", ""), `"code":-32600`, "initialize") // there is no session
	}
}

func clientMeta(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	type client struct {
		Meta       map[string]string `json:"_meta"`
		ClientInfo struct {
			Meta map[string]string `json:"_meta"`
		} `json:"clientInfo"`
	}
	key := mcp.NewKey[client]("client")
	s := harness.Fixture(t, &mcp.Options{OnSessionStart: func(f *mcp.Frame) error {
		var c client
		if err := json.Unmarshal(f.Request().Params.Raw, &c); err != nil {
			return err
		}
		key.Set(f, c)
		return nil
	},
	})
	s.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) {
		c, _ := key.Get(f)
		return fmt.Sprintf("%s %s, app %q, tenant %q", f.ClientInfo().Name, f.ClientInfo().Version, c.Meta["appId"], c.ClientInfo.Meta["tenant"]), nil
	}))
	const said = `"capabilities":{},"_meta":{"appId":"acme"},"clientInfo":{"name":"c","version":"1","_meta":{"tenant":"t-1"}}`
	p := harness.Arrive(t, tr, rev, s)
	p.Want(p.Ask("initialize", fmt.Sprintf(`"protocolVersion":%q,`, rev)+said), `"result":`)
	p.Want(p.Ask("tools/call", `"name":"who"`), `c 1, app \"acme\", tenant \"t-1\"`)
	silent := harness.Join(t, tr, rev, s)
	silent.Want(silent.Ask("tools/call", `"name":"who"`), `c 1, app \"\", tenant \"\"`)
}

func shutdownCancels(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	terminated := make(chan error, 10)
	s := harness.Fixture(t, &mcp.Options{OnSessionEnd: func(_ *mcp.Frame, reason error) { terminated <- reason }})
	g := harness.NewGate()
	s.MustAdd(g.Tool("gate"))
	h := harness.Join(t, tr, rev, s).Hear()
	h.Send("1", "tools/call", `"name":"gate"`)
	h.Send("2", "tools/call", `"name":"gate"`)
	harness.Await(t, g.Running, "first call")
	harness.Await(t, g.Running, "second call")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there is no time left for calls
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	answered := map[string]bool{}
	for range 2 {
		if cause := harness.Await(t, g.Ended, "end of a call's context"); cause == nil || !strings.Contains(cause.Error(), "shut") {
			t.Errorf("the context of the call ended with %v", cause)
		}
		message := h.Next()
		h.Want(message, "shut")
		answered[harness.AnswerID(message)] = true
	}
	if !answered["1"] || !answered["2"] {
		t.Errorf("answered: %v", answered)
	}
	if !rev.Modern() {
		if reason := harness.Await(t, terminated, "OnSessionEnd"); reason == nil || len(terminated) > 0 {
			t.Errorf("OnSessionEnd with %v, and %d times more", reason, len(terminated))
		}
	}
}
