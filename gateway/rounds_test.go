package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// replica returns the server of a gateway to up, one of several with the same keys.
func replica(t *testing.T, up *mcp.Server, limits mcp.Limits) (*Gateway, *mcp.Server) {
	logger := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "front", Version: "1"}, &mcp.Options{Logger: &logger, Limits: limits, StateKeys: [][]byte{[]byte("a secret of 32 bytes, or even more")}})
	g := New(s, nil)
	t.Cleanup(func() { _ = g.Close() })
	if err := errors.Join(g.Set("up", Upstream{Transport: local(up)}), g.Warm(t.Context())); err != nil {
		t.Fatal(err)
	}
	return g, s
}

// TestReplicas answers the questions of one gateway at another one, which has its keys. The
// questions and the state of a modern upstream travel with the client, while a legacy
// upstream waits in one process. The state is that of one principal.
func TestReplicas(t *testing.T) {
	const over = "the call that asked this is over, or runs in another process: call the tool again"
	for back, behind := range eras {
		t.Run(back, func(t *testing.T) {
			up := greeter(t, "up", behind)
			_, one := replica(t, up, mcp.Limits{})
			_, two := replica(t, up, mcp.Limits{})
			urls := []string{serveHTTP(t, one), serveHTTP(t, two)}
			dial := func(at int, user string) *client.Client {
				c, err := client.Connect(t.Context(), bearer(urls[at], user), &client.Options{Revisions: []protocol.Revision{protocol.V20260728},
					Capabilities: protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{Form: &struct{}{}}}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			ask := func(c *client.Client, before *client.InputRequiredError) (*client.InputRequiredError, string) {
				options := []client.CallOption{client.NoRounds()}
				if before != nil {
					options = append(options, client.Answers(map[string]any{before.Requests[0].Key: map[string]any{"action": "accept", "content": form{"yes"}}}, before.State))
				}
				r, err := c.Call(t.Context(), "up_greet", greetIn{"Ada"}, options...)
				if asks, ok := errors.AsType[*client.InputRequiredError](err); ok {
					return asks, ""
				}
				return nil, text(r, err)
			}
			first, got := ask(dial(0, "ada"), nil)
			if first == nil {
				t.Fatal(got)
			}
			if asks, got := ask(dial(1, "bob"), first); asks != nil || !strings.Contains(got, "requestState") {
				t.Errorf("another principal: %v, %q", asks, got)
			}
			second, got := ask(dial(1, "ada"), first)
			if !behind.Modern() {
				if second != nil || !strings.Contains(got, over) {
					t.Errorf("at the other replica: %v, %q", second, got)
				}
				if second, got = ask(dial(0, "ada"), first); second == nil {
					t.Fatalf("at the first replica: %q", got)
				}
			} else if second == nil {
				t.Fatalf("at the other replica: %q", got)
			}
			if asks, got := ask(dial(0, "ada"), second); asks != nil || got != "up greets Ada: yes, yes" {
				t.Errorf("the end: %v, %q", asks, got)
			}
		})
	}
}

// TestRoundsEnd has upstreams that ask without end, and that have a state that is too long.
func TestRoundsEnd(t *testing.T) {
	logger := zerolog.Nop()
	up := mcp.NewServer(mcp.Info{Name: "up", Version: "1"}, &mcp.Options{Logger: &logger, Limits: mcp.Limits{Rounds: 100, RequestState: 1 << 20}})
	up.MustAdd(
		mcp.Tool("asks", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := range 50 {
				if _, err := mcp.Elicit[form](f, fmt.Sprint("q", i), "And now?"); err != nil {
					return "", err
				}
			}
			return "enough", nil
		}),
		mcp.Tool("keeps", func(f *mcp.Frame, _ struct{}) (string, error) {
			if _, err := mcp.Once(f, "long", func() (string, error) { return strings.Repeat("x", 40<<10), nil }); err != nil {
				return "", err
			}
			_, err := mcp.Elicit[form](f, "q", "And now?")
			return "", err
		}))
	_, s := replica(t, up, mcp.Limits{Rounds: 3})
	for _, tt := range []struct {
		tool string
		rev  protocol.Revision
		want string
	}{
		{"up_asks", protocol.V20251125, `Server "up" asks in more than 3 rounds.`},
		{"up_asks", protocol.V20260728, "3"},
		{"up_keeps", protocol.V20260728, "raise Limits.RequestState"},
	} {
		asked := 0
		c := connect(t, s, tt.rev, &client.Options{MaxRounds: 20, Elicit: func(ctx context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			asked++
			return answers(ctx, q)
		}})
		if got := text(c.Call(t.Context(), tt.tool, nil)); !strings.Contains(got, tt.want) || asked > 4 {
			t.Errorf("%s of %s: %q after %d questions", tt.tool, tt.rev, got, asked)
		}
	}
}

// TestTooManyParked has a caller with as many parked calls as there may be.
func TestTooManyParked(t *testing.T) {
	told := make(chan error, 1)
	up := newServer(t, "up", nil, protocol.V20250618)
	up.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
		_, err := mcp.Elicit[form](f, "q", "Sure?")
		told <- err
		return "", err
	}))
	g, s := start(t, map[string]Upstream{"up": {Transport: local(up), For: own(up)}})
	g.parking.callers[poolKey{g.owner("up_ask"), connKey{caller: "ada"}}] = maxParkedCaller
	c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: "ada", Version: "1"}, Elicit: answers})
	if got := text(c.Call(t.Context(), "up_ask", nil)); got != "too many calls wait for answers" {
		t.Errorf("got %q", got)
	}
	if err := <-told; err == nil {
		t.Error("the upstream was answered")
	}
}

// TestCancels cancels a call: the upstream's handler ends.
func TestCancels(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			entered, ended := make(chan struct{}), make(chan struct{})
			up := newServer(t, "up", nil, behind)
			up.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
				close(entered)
				<-f.Done()
				close(ended)
				return "", context.Cause(f)
			}))
			_, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
			c := connect(t, s, rev, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-entered; cancel() }()
			if _, err := c.Call(ctx, "up_wait", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("%s/%s: got %v", back, front, err)
			}
			<-ended // else the test does not end
		}
	}
}

// TestPassesNot has what does not pass: tasks of an upstream, views under another name, and
// logs of connections that are of no session.
func TestPassesNot(t *testing.T) {
	for back, behind := range eras {
		log := &logText{}
		up := newServer(t, "up", nil, behind)
		up.MustAdd(mcp.Tool("task", func(f *mcp.Frame, _ struct{}) (string, error) {
			return "done", f.Log(protocol.LevelWarning, "a line of the upstream", "tests")
		}, mcp.AsTask(nil)))
		shown := lists(`{"name":"x","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://x"},"com.example/a":1}}`, "", "", "", nil)
		s := newServer(t, "front", log)
		g := New(s, nil)
		for name, u := range map[string]Upstream{"up": {Transport: local(up), Shared: true}, "shown": {Transport: shown, Shared: true}, "": {Transport: shown, Shared: true}} {
			if err := g.Set(name, u); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := connect(t, s, protocol.V20260728, nil)
		if got := text(c.Call(t.Context(), "up_task", nil)); got != "done" {
			t.Errorf("%s: a tool that can be a task returns %q", back, got)
		}
		for _, tool := range mcptest.New(t, s).Tools() {
			if tool.Name == "x" || tool.Name == "shown_x" {
				meta, err := json.Marshal(tool.Meta)
				if err != nil || strings.Contains(string(meta), "ui://x") != (tool.Name == "x") || !strings.Contains(string(meta), "com.example/a") {
					t.Errorf("%s: _meta of %s is %s", back, tool.Name, meta)
				}
			}
		}
		if _, err := (stderr{g.log, "up"}).Write([]byte("a line of\x1b[2J a process\n")); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		got := log.String()
		if !behind.Modern() && !strings.Contains(got, "a line of the upstream") || !strings.Contains(got, "a process") || strings.Contains(got, "\x1b") {
			t.Errorf("%s: the log has %s", back, got)
		}
	}
}

// TestFor counts the calls of For: one for each request, and one more after its credentials
// were refused. An error ends only its request.
func TestFor(t *testing.T) {
	up := newServer(t, "up", nil)
	up.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }))
	url := serveHTTP(t, up)
	n, token, fails := 0, "ada", false
	_, s := start(t, map[string]Upstream{"up": {For: func(*mcp.Frame) (string, client.Transport, error) {
		if n++; fails {
			return "", nil, errors.New("no account")
		}
		return "caller", bearer(url, token), nil
	}}})
	c := connect(t, s, protocol.V20260728, nil)
	call := func(want string, uses int) {
		t.Helper()
		n = 0
		if got := text(c.Call(t.Context(), "up_who", nil)); !strings.Contains(got, want) || n != uses {
			t.Errorf("%q after %d uses, want %q after %d", got, n, want, uses)
		}
	}
	call("ada", 1)
	call("ada", 1)
	fails = true
	call("no account", 1)
	fails = false
	call("ada", 1)
	_, s = start(t, map[string]Upstream{"up": {For: func(*mcp.Frame) (string, client.Transport, error) {
		n++
		return "caller", bearer(url, "bad"), nil
	}}})
	c = connect(t, s, protocol.V20260728, nil)
	call("it does not accept the credentials", 2)
}
