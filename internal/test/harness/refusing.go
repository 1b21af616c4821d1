package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/transport"
)

// Refusing is a server that refuses in every way, and how to talk to it.
type Refusing struct {
	T       *testing.T
	S       *mcp.Server
	URL     string // of a web server with it
	Session string // of revision 2025-03-26, which has batches
	Hold    *gate  // the tool "gate"
	Calls   *sync.WaitGroup
	Store   scale.Store
}

// Do sends a request. Headers are "Name: value"; without a
// value one is taken away.
func (x *Refusing) Do(method, path, body string, headers ...string) *http.Response {
	x.T.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, x.URL+path, strings.NewReader(body))
	if err != nil {
		x.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); {
		case strings.EqualFold(name, "Host"):
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		x.T.Error(err)
		return &http.Response{}
	}
	x.T.Cleanup(func() { res.Body.Close() })
	return res
}

func (x *Refusing) Post(body string, headers ...string) {
	x.Do(http.MethodPost, "/mcp", body, headers...)
}

// modern posts a request of the latest revision.
func (x *Refusing) Modern(method, members string, headers ...string) {
	x.Post((&Party{x.T, protocol.Latest, nil}).Request("1", method, members), append([]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}, headers...)...)
}

// in returns the header that names a session, which is opened first.
func (x *Refusing) In(revision string) string {
	if x.Session == "" {
		x.Session = x.Do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+Hello(revision)+`}}`).Header.Get("Mcp-Session-Id")
	}
	return "Mcp-Session-Id: " + x.Session
}

// elsewhere is in for a session that another replica has opened.
func (x *Refusing) Elsewhere() string {
	other := *x
	web := httptest.NewServer(Fixture(x.T, &mcp.Options{Store: x.Store, StateKeys: SharedKeys}).Handler())
	defer web.Close()
	other.URL = strings.TrimSuffix(web.URL, "/")
	return other.In("2025-11-25")
}

// lines talks over a connection of lines, without waiting for answers.
func (x *Refusing) Lines(lines ...string) {
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.S.ServeConn(context.Background(), transport.NewSocket(far, &transport.SocketOptions{MaxMessage: 1 << 10, ReadTimeout: time.Millisecond}))
	}()
	go io.Copy(io.Discard, near)
	x.T.Cleanup(func() { near.Close(); <-served })
	for _, line := range lines {
		_, _ = io.WriteString(near, line) // it may have ended by then
	}
}

// sse opens a stream of HTTP+SSE and returns where to POST.
func (x *Refusing) SSE() string {
	lines := bufio.NewScanner(x.Do(http.MethodGet, "/mcp", "", "Accept: text/event-stream").Body)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "data: "); ok {
			return at
		}
	}
	x.T.Fatal("no endpoint")
	return ""
}

const (
	Pinged    = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	Opened    = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	ModernSay = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// DyingStore is a scale.Store that keeps nothing and finds nothing once it is dead.
type DyingStore struct {
	scale.Store
	dead atomic.Bool
}

func (s *DyingStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *DyingStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Put(ctx, writes...)
}

func (x *Refusing) Kill() { x.Store.(*DyingStore).dead.Store(true) }

// mirrored calls a tool of which one argument is in the headers, too.
func (x *Refusing) Mirrored(arguments, header string) {
	x.S.MustAdd(mcp.Tool("mirrored", func(_ *mcp.Frame, in struct {
		Tenant string `json:"tenant,omitempty" mcp:"header=Tenant"`
	}) (string, error) {
		return in.Tenant, nil
	}))
	x.Modern("tools/call", `"name":"mirrored","arguments":`+arguments, "Mcp-Name: mirrored", header)
}

// drain has the server drain until the end of the test.
func (x *Refusing) Drain() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = x.S.Drain(ctx)
}

func (x *Refusing) Down() {
	if err := x.S.Shutdown(x.T.Context()); err != nil {
		x.T.Fatal(err)
	}
}

// busy has calls of one session under way, of which the last is refused.
func (x *Refusing) Busy(ids ...string) {
	in := x.In("2025-11-25")
	for i, id := range ids {
		say := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"gate"}}`
		if i == len(ids)-1 {
			x.Post(say, in)
			return
		}
		x.Calls.Go(func() { x.Post(say, in) })
		Await(x.T, x.Hold.Running, "the call")
	}
}

// crowd sends more to a connection than may wait.
func (x *Refusing) Crowd() {
	here, there := transport.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.S.ServeConn(context.Background(), here)
	}()
	x.T.Cleanup(func() { there.Close(); <-served })
	say := func(id int, method, more string) {
		text := strings.Replace(ModernSay, `"id":1,"method":"tools/list","params":{`, fmt.Sprintf(`"id":%d,"method":%q,"params":{%s`, id, method, more), 1)
		if err := there.Write([]byte(text)); err != nil {
			x.T.Error(err)
		}
	}
	say(1, "tools/call", `"name":"gate",`)
	Await(x.T, x.Hold.Running, "the call")
	for id := range 6 { // one waits for a worker, four in the queue
		say(id+2, "x/y", `"x":"`+strings.Repeat("x", 3_700_000)+`",`)
	}
}

// waitInVain ends a connection while a request waits.
func (x *Refusing) WaitInVain() {
	here, there := transport.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.S.ServeConn(ctx, here)
	}()
	x.T.Cleanup(func() { cancel(); there.Close(); <-served })
	_ = there.Write([]byte(strings.Replace(ModernSay, `"tools/list","params":{`, `"tools/call","params":{"name":"gate",`, 1)))
	Await(x.T, x.Hold.Running, "the call")
	_ = there.Write([]byte(strings.Replace(ModernSay, `"id":1`, `"id":2`, 1)))
	_ = there.Write([]byte(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	for answer := []byte(nil); !strings.Contains(string(answer), `"id":3`); { // so that it has read the other one, too
		var err error
		if answer, err = there.Read(); err != nil {
			x.T.Fatal(err)
		}
	}
	cancel()
}

// Dial connects to a socket of the server.
func (x *Refusing) Dial() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.S.Serve(ctx, listener)
	}()
	x.T.Cleanup(func() { cancel(); <-served })
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		x.T.Fatal(err)
	}
	x.T.Cleanup(func() { c.Close() })
}
