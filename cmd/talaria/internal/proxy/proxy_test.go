package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// behind is the server behind the proxy. Its counter is one for each session.
func behind() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "behind", Version: "7"}, &mcp.Options{Instructions: "as you like"})
	type in struct {
		Text string `json:"text" jsonschema_description:"what comes back"`
	}
	type sure struct {
		Yes bool `json:"yes"`
	}
	s.MustAdd(
		mcp.Tool("echo", func(f *mcp.Frame, in in) (string, error) {
			if err := f.Progress(1, 2, "half"); err != nil {
				return "", err
			}
			return in.Text, nil
		}, mcp.Doc("gives the text back")),
		mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (int, error) {
			n, _ := f.Get("n")
			next, _ := n.(int)
			f.Set("n", next+1)
			return next + 1, nil
		}),
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("as it must") }),
		mcp.Tool("refuse", func(*mcp.Frame, struct{}) (string, error) {
			return "", &mcp.Error{Code: -32050, Message: "no", Data: map[string]int{"n": 1}}
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := mcp.Elicit[sure](f, "sure", "Sure?")
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %v", answer.Action, answer.Value.Yes), nil
		}),
		mcp.Tool("later", func(*mcp.Frame, struct{}) (string, error) { return "at last", nil }, mcp.AsTask(nil)),
		mcp.Resource("note://1", func(*mcp.Frame) (string, error) { return "the note", nil }),
		mcp.Template("note://{id}/copy", func(_ *mcp.Frame, in struct {
			ID string `json:"id"`
		}) (string, error) {
			return "copy of " + in.ID, nil
		}),
		mcp.Prompt("greet", func(_ *mcp.Frame, in struct {
			Style string `json:"style" validate:"oneof=kind rude"`
		}) (string, error) {
			return "Be " + in.Style, nil
		}),
	)
	return s
}

// connect connects over a pipe. It returns a Connect for Options, which speaks
// one revision, or any with 0.
func connect(t *testing.T, s *mcp.Server, rev protocol.Revision) func(context.Context, *client.Options) (*client.Client, error) {
	t.Helper()
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return func(ctx context.Context, o *client.Options) (*client.Client, error) {
		if rev != 0 {
			o.Revisions = []protocol.Revision{rev}
		}
		return client.Connect(ctx, client.Conn(func(context.Context) (transport.Conn, error) {
			a, b := transport.Pipe()
			serving.Go(func() { _ = s.ServeConn(context.Background(), a) })
			return b, nil
		}), o)
	}
}

func start(t *testing.T, opts Options) *Proxy {
	t.Helper()
	p, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Every revision before the proxy, with every one behind it.
func TestForward(t *testing.T) {
	for _, back := range testdep.Revisions() {
		for _, front := range testdep.Revisions() {
			for _, http := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s-%s-%v", front, back, http), func(t *testing.T) {
					p := start(t, Options{Connect: connect(t, behind(), back)})
					options := []mcptest.Option{mcptest.Revision(front)}
					if http {
						options = append(options, mcptest.OverHTTP())
					}
					c := mcptest.New(t, p.Server(), options...)
					forwards(t, c)
				})
			}
		}
	}
}

func forwards(t *testing.T, c *mcptest.Client) {
	t.Helper()
	if c.Server.Instructions != "as you like" {
		t.Errorf("got the server %+v", c.Server)
	}
	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "ask count echo fail later refuse" {
		t.Errorf("got the tools %s", got)
	}
	if r := c.Call("echo", map[string]string{"text": "hello"}); r.Text() != "hello" || r.IsError {
		t.Errorf("echo: got %q", r.Text())
	}
	if r := c.Call("echo", map[string]int{"txt": 1}); !r.IsError || !strings.Contains(r.Text(), "did you mean /text?") {
		t.Errorf("wrong arguments: got %q", r.Text())
	}
	if r := c.Call("fail", nil); !r.IsError || r.Text() != "as it must" {
		t.Errorf("fail: got %q", r.Text())
	}
	if r := c.Call("later", nil); r.IsError || r.Text() != "at last" {
		t.Errorf("later: got %q", r.Text())
	}
	_, err := c.TryCall("refuse", nil)
	if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != -32050 {
		t.Errorf("refuse: got %v", err)
	}
	if _, err := c.TryCall("nothing", nil); err == nil {
		t.Error("a tool that is not there was called")
	}
	if got := c.Read("note://1"); len(got) != 1 || got[0].Text != "the note" {
		t.Errorf("got %+v", got)
	}
	if got := c.Read("note://5/copy"); len(got) != 1 || got[0].Text != "copy of 5" {
		t.Errorf("got %+v", got)
	}
	if got := c.Templates(); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := c.Prompts(); len(got) != 1 || got[0].Name != "greet" {
		t.Errorf("got %+v", got)
	}
	if got := c.GetPrompt("greet", map[string]string{"style": "kind"}); len(got.Messages) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := c.Complete("greet", "style", "r", nil); len(got) != 1 || got[0] != "rude" {
		t.Errorf("got %v", got)
	}
}

// Sessions must not see each other's state.
func TestSessions(t *testing.T) {
	p := start(t, Options{Connect: connect(t, behind(), protocol.V20250618)})
	a := mcptest.New(t, p.Server(), mcptest.Revision(protocol.V20250618), mcptest.OverHTTP())
	b := mcptest.New(t, p.Server(), mcptest.Revision(protocol.V20251125), mcptest.OverHTTP())
	for i, c := range []*mcptest.Client{a, a, b} {
		want := []string{"1", "2", "1"}[i]
		if got := c.Call("count", nil).Text(); got != want {
			t.Errorf("call %d: got %s, want %s", i, got, want)
		}
	}
	a.Close()
	b.Close()
	p.backends.mu.Lock()
	defer p.backends.mu.Unlock()
	if len(p.backends.sessions) != 0 {
		t.Errorf("%d connections stay after their sessions", len(p.backends.sessions))
	}
}

// From the newest revision to the newest, questions pass as they are.
func TestQuestionsModern(t *testing.T) {
	p := start(t, Options{Connect: connect(t, behind(), protocol.V20260728)})
	c := mcptest.New(t, p.Server(), mcptest.Revision(protocol.V20260728), mcptest.OverHTTP(),
		mcptest.Accepting(map[string]bool{"yes": true}))
	if r := c.Call("ask", nil); r.Text() != "accept true" {
		t.Errorf("got %q", r.Text())
	}
}

// The one client of an older revision is asked in its connection, whatever the
// server behind speaks.
func TestQuestionsOfOne(t *testing.T) {
	for _, back := range []protocol.Revision{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		for _, front := range []protocol.Revision{protocol.V20250618, protocol.V20251125} {
			p := start(t, Options{One: true, Connect: connect(t, behind(), back)})
			asked := ""
			var mu sync.Mutex
			c := one(t, p, &client.Options{
				Revisions: []protocol.Revision{front},
				Elicit: func(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = q.Message
					return client.Accept(map[string]bool{"yes": true})
				},
			})
			r, err := c.Call(t.Context(), "ask", nil)
			mu.Lock()
			if err != nil || r.Text() != "accept true" || asked != "Sure?" {
				t.Errorf("%s before %s: got %v, %v, asked %q", front, back, r, err, asked)
			}
			mu.Unlock()
		}
	}
}

// A client that cannot be asked must not hold anything up.
func TestQuestionsRefused(t *testing.T) {
	p := start(t, Options{One: true, Connect: connect(t, behind(), protocol.V20250618)})
	c := one(t, p, &client.Options{Revisions: []protocol.Revision{protocol.V20250618}})
	r, err := c.Call(t.Context(), "ask", nil)
	if err == nil && !r.IsError {
		t.Errorf("got %q", r.Text())
	}
}

// one connects the one client of a proxy.
func one(t *testing.T, p *Proxy, o *client.Options) *client.Client {
	t.Helper()
	a, b := transport.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() { _ = p.Server().ServeConn(context.Background(), p.Conn(a)) })
	c, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) { return b, nil }), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return c
}

// Changes and log messages pass.
func TestNotifications(t *testing.T) {
	server := behind()
	p := start(t, Options{One: true, Connect: connect(t, server, protocol.V20250618)})
	events := make(chan client.Notification, 10)
	c := one(t, p, &client.Options{Revisions: []protocol.Revision{protocol.V20250618}, OnNotification: func(e client.Notification) { events <- e }})
	if _, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://1"}}, nil); err != nil {
		t.Fatal(err)
	}
	server.ResourceUpdated("note://1")
	if e := <-events; e.Method != protocol.MethodResourceUpdated || !strings.Contains(string(e.Params), "note://1") {
		t.Errorf("got %s %s", e.Method, e.Params)
	}
	server.Remove(mcp.KindTool, "count")
	if e := <-events; e.Method != protocol.MethodToolsChanged {
		t.Errorf("got %s %s", e.Method, e.Params)
	}
	var told []string
	_, err := c.Call(t.Context(), "echo", map[string]string{"text": "x"}, client.OnProgress(func(now client.Progress) { told = append(told, now.Message) }))
	if err != nil || strings.Join(told, " ") != "half" {
		t.Errorf("progress: got %v, %v", told, err)
	}
}

// Clients without sessions listen, too, and cannot fill the memory.
func TestListen(t *testing.T) {
	for _, back := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		server := behind()
		p := start(t, Options{Connect: connect(t, server, back)})
		events := make(chan client.Notification, 10)
		c := one(t, p, &client.Options{Revisions: []protocol.Revision{protocol.V20260728}, OnNotification: func(e client.Notification) { events <- e }})
		if _, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://1"}}, nil); err != nil {
			t.Fatal(err)
		}
		server.ResourceUpdated("note://1")
		if e := <-events; e.Method != protocol.MethodResourceUpdated {
			t.Errorf("%s: got %s %s", back, e.Method, e.Params)
		}
	}
	p := start(t, Options{Connect: connect(t, behind(), protocol.V20250618)})
	for i := range maxWatched + 50 {
		if err := p.backends.shared.watch(t.Context(), fmt.Sprintf("note://%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if watched := p.backends.shared.watched.Wanted(); len(watched) != maxWatched || watched[0] != "note://50" {
		t.Errorf("%d resources are watched, the first is %s", len(watched), watched[0])
	}
}

func TestResult(t *testing.T) {
	const modern = `{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{},"own":1}}`
	for _, test := range []struct {
		raw, method string
		rev         protocol.Revision
		want        string
	}{
		{modern, protocol.MethodToolsList, protocol.V20250618, `{"_meta":{"own":1},"tools":[]}`},
		{modern, protocol.MethodToolsList, protocol.V20260728, `{"_meta":{"own":1},"cacheScope":"public","resultType":"complete","tools":[],"ttlMs":5}`},
		{`{"tools":[]}`, protocol.MethodToolsList, protocol.V20260728, `{"cacheScope":"private","resultType":"complete","tools":[],"ttlMs":0}`},
		{`{"content":[]}`, protocol.MethodToolsCall, protocol.V20260728, `{"content":[],"resultType":"complete"}`},
	} {
		r, err := result(json.RawMessage(test.raw), test.rev, test.method, cursors{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := wire.AppendResult(nil, r, wire.To{Revision: test.rev})
		var members map[string]any
		if err != nil || json.Unmarshal(text, &members) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if sorted, _ := json.Marshal(members); string(sorted) != test.want {
			t.Errorf("%s: got %s, want %s", test.raw, sorted, test.want)
		}
	}
	if _, err := result(json.RawMessage(`[]`), protocol.V20250618, "", cursors{}); err == nil {
		t.Error("a list passed for a result")
	}
}

// What the proxy refuses to a client is not subscribed to behind it, and what
// could not be subscribed to is tried again.
func TestSubscribeTooMuch(t *testing.T) {
	server := mcp.NewServer(mcp.Info{Name: "behind", Version: "7"}, &mcp.Options{Limits: mcp.Limits{ResourcesPerSubscription: 5000}})
	server.MustAdd(mcp.Template("note://{id}", func(_ *mcp.Frame, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return in.ID, nil
	}))
	p := start(t, Options{One: true, Connect: connect(t, server, protocol.V20250618)})
	c := one(t, p, &client.Options{Revisions: []protocol.Revision{protocol.V20250618}})
	subscribe := func(uri string) error {
		return c.Request(t.Context(), protocol.MethodSubscribe, map[string]string{"uri": uri}, nil)
	}
	for n := range maxWatched {
		if err := subscribe(fmt.Sprintf("note://%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := subscribe("note://more"); err == nil {
		t.Fatal("no limit")
	}
	if found, err := p.backends.shared.now.subs.Remove("note://more"); found {
		t.Errorf("the proxy is subscribed to what it refused: %v", err)
	}
	if found, err := p.backends.shared.now.subs.Remove("note://1"); !found || err != nil {
		t.Errorf("the proxy is not subscribed to what it took: %v", err)
	}
	long := make([]string, 100)
	for n := range long {
		long[n] = fmt.Sprintf("note://%0*d", wire.MaxURI-100, n)
	}
	modern := start(t, Options{Connect: connect(t, server, protocol.V20250618)})
	front := one(t, modern, &client.Options{Revisions: []protocol.Revision{protocol.V20260728}})
	if _, err := front.Listen(t.Context(), client.Filter{ResourceSubscriptions: long}, nil); err == nil {
		t.Error("no limit for the length of URIs")
	}
	shared := modern.backends.shared
	if len(shared.watched.Wanted()) > 0 {
		t.Errorf("%d resources are watched that were refused", len(shared.watched.Wanted()))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := shared.watch(gone, "note://5"); err == nil {
		t.Error("a client that is gone is subscribed")
	}
	if err := shared.watch(t.Context(), "note://5"); err != nil {
		t.Error(err)
	}
	if found, err := shared.now.subs.Remove("note://5"); !found || err != nil {
		t.Errorf("what failed was not tried again: %v", err)
	}
}

// A session that is deleted while its connection to the server behind is being
// made leaves none.
func TestDeletedWhileConnecting(t *testing.T) {
	connectNow := connect(t, behind(), protocol.V20250618)
	connecting, goOn, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	gone := sync.OnceFunc(func() { close(closed) })
	calls := 0
	p := start(t, Options{Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
		if calls++; calls == 1 {
			return connectNow(ctx, o)
		}
		close(connecting)
		<-goOn
		told := o.OnState
		o.OnState = func(state client.State, err error) {
			told(state, err)
			if state == client.StateDisconnected {
				gone()
			}
		}
		return connectNow(context.WithoutCancel(ctx), o) // it comes about all the same
	}})
	web := httptest.NewServer(p.Server().Handler())
	defer web.Close()
	send := func(method, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return nil
		}
		res.Body.Close()
		return res
	}
	session := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	send(http.MethodPost, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var listing sync.WaitGroup
	listing.Go(func() { send(http.MethodPost, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`) })
	<-connecting
	if res := send(http.MethodDelete, session, ""); res != nil && res.StatusCode/100 != 2 {
		t.Errorf("DELETE is answered with %d", res.StatusCode)
	}
	close(goOn)
	listing.Wait()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection stays")
	}
}
