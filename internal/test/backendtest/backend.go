// Package backendtest serves what the tests of pools and groups connect to.
//
// A [Backend] is an mcp.Server within the process with a fixed set of tools,
// resources and prompts, whose texts have the name of the Backend in them, so
// that a test sees which server answered. Each connection is a pipe: Cut,
// CutOne and CutAny break connections that are open, Refuse keeps new ones from
// being opened, and Accept lets them in again. A [Gate] holds a call in the
// server while a test does something to its connection.
//
// [UseCaller] makes every call of client.Caller, so that a pool and a group are
// held to the same.
//
// Methods may be called from any goroutine; mu guards the connections. The end
// of the test cuts them all and waits for the server's side.
package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Backend is a server that many connections lead to, each through a pipe; a test
// can cut them and refuse new ones.
type Backend struct {
	Name   string
	Server *mcp.Server

	mu      sync.Mutex
	refuse  error
	opened  int
	ends    map[int]transport.Conn // the server's, by the number of the connection
	serving sync.WaitGroup
}

// EchoIn is the argument of the tool echo.
type EchoIn struct {
	Text string `json:"text"`
}

// New serves a fixture that says name.
func New(t *testing.T, name string, opts *mcp.Options) *Backend {
	t.Helper()
	b := &Backend{Name: name, Server: mcp.NewServer(mcp.Info{Name: name, Version: "1"}, opts), ends: map[int]transport.Conn{}}
	b.Server.MustAdd(
		mcp.Tool("echo", func(_ *mcp.Frame, in EchoIn) (string, error) { return name + " " + in.Text, nil }, mcp.ReadOnly()),
		mcp.Tool("sum", func(_ *mcp.Frame, in struct{ A, B int }) (struct{ Sum int }, error) {
			return struct{ Sum int }{in.A + in.B}, nil
		}),
		mcp.Bytes("notes://1", []byte("a note of "+name), mcp.MIME("text/plain")),
		mcp.Template("notes://{id}/text", func(_ *mcp.Frame, in struct {
			ID string `json:"id" validate:"oneof=one two"`
		}) (string, error) {
			return name + " has " + in.ID, nil
		}, mcp.Name("text")),
		mcp.Prompt("greet", func(_ *mcp.Frame, in struct {
			Style string `json:"style" validate:"oneof=formal casual"`
		}) (*mcp.Messages, error) {
			return mcp.NewMessages().User(in.Style+" greetings from "+name).
				Add(mcp.RoleUser, mcp.ResourceLink{URI: "notes://1", Name: "note"}), nil
		}),
	)
	t.Cleanup(func() {
		b.Cut(errors.New("the test is over"))
		b.serving.Wait()
	})
	return b
}

// Transport leads to the server through a new pipe each time.
func (b *Backend) Transport() client.Transport {
	return client.Conn(func(context.Context) (transport.Conn, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.refuse != nil {
			return nil, b.refuse
		}
		near, far := transport.Pipe()
		b.opened++
		n := b.opened
		b.ends[n] = far
		b.serving.Go(func() {
			_ = b.Server.ServeConn(context.Background(), far) // ends with an error when it is cut
			_ = far.Close()
			b.mu.Lock()
			delete(b.ends, n)
			b.mu.Unlock()
		})
		return near, nil
	})
}

// Cut ends all connections, and with an error refuses new ones.
func (b *Backend) Cut(refuse error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
	for _, end := range b.ends {
		_ = end.Close()
	}
}

// CutOne ends the connection with that number.
func (b *Backend) CutOne(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if end := b.ends[n]; end != nil {
		_ = end.Close()
	}
}

// Accept takes connections again.
func (b *Backend) Accept() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = nil
}

// Open returns how many connections are open.
func (b *Backend) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ends)
}

// Gate is a tool that waits until the test lets it continue. Entered gets a
// value for each call that has arrived; a value sent to Leave lets one
// continue, and closing it all of them.
type Gate struct {
	Entered chan struct{}
	Leave   chan struct{}
}

// AddGate adds a Gate under a name.
func (b *Backend) AddGate(name string, options ...mcp.ToolOption) *Gate {
	g := &Gate{Entered: make(chan struct{}, 100), Leave: make(chan struct{})}
	b.Server.MustAdd(mcp.Tool(name, func(f *mcp.Frame, _ struct{}) (string, error) {
		g.Entered <- struct{}{}
		select {
		case <-g.Leave:
			return "through", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, options...))
	return g
}

// Echo calls the tool and checks what it says.
func Echo(t *testing.T, c client.Caller, tool, text, want string) {
	t.Helper()
	result, err := c.Call(t.Context(), tool, EchoIn{text})
	if err != nil || result.Text() != want {
		t.Errorf("%s %s: got %+v, %v, want %s", tool, text, result, err, want)
	}
}

// UseCaller makes every call of the interface, of a server with that name. prefix
// precedes names of tools and prompts, and scheme URIs.
func UseCaller(t *testing.T, c client.Caller, prefix, scheme, name string) {
	t.Helper()
	ctx := t.Context()
	if err := c.Ping(ctx); err != nil {
		t.Error(err)
	}
	type sum struct{ Sum int }
	if got, err := client.Call[sum](ctx, c, prefix+"sum", map[string]int{"A": 2, "B": 3}); err != nil || got.Sum != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
	read, err := c.Read(ctx, scheme+"notes://1")
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "a note of "+name || read.Contents[0].URI != scheme+"notes://1" {
		t.Errorf("got %+v, %v", read, err)
	}
	if read, err = c.Read(ctx, scheme+"notes://two/text"); err != nil || read.Contents[0].Text != name+" has two" {
		t.Errorf("got %+v, %v", read, err)
	}
	prompt, err := c.GetPrompt(ctx, prefix+"greet", map[string]string{"style": "formal"})
	if err != nil || len(prompt.Messages) != 2 || prompt.Messages[0].Content.(mcp.TextContent).Text != "formal greetings from "+name ||
		prompt.Messages[1].Content.(mcp.ResourceLink).URI != scheme+"notes://1" {
		t.Errorf("got %+v, %v", prompt, err)
	}
	for _, q := range []client.Completion{
		{Prompt: prefix + "greet", Argument: "style", Value: "cas"},
		{Template: scheme + "notes://{id}/text", Argument: "id", Value: "tw"},
	} {
		if got, err := c.Complete(ctx, q); err != nil || len(got.Values) != 1 {
			t.Errorf("%+v: got %+v, %v", q, got, err)
		}
	}
	var names []string
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(tool.Name, prefix) {
			names = append(names, tool.Name)
		}
	}
	for prompt, err := range c.Prompts(ctx) {
		if err == nil && strings.HasPrefix(prompt.Name, prefix) {
			names = append(names, prompt.Name)
		}
	}
	for resource, err := range c.Resources(ctx) {
		if err == nil && strings.HasPrefix(resource.URI, scheme) {
			names = append(names, resource.URI)
		}
	}
	for template, err := range c.Templates(ctx) {
		if err == nil && strings.HasPrefix(template.URITemplate, scheme) {
			names = append(names, template.URITemplate)
		}
	}
	want := strings.NewReplacer("P", prefix, "S", scheme).Replace("Pecho Psum Pgreet Snotes://1 Snotes://{id}/text")
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range c.Tools(ctx) {
		break // early
	}
	if _, err := c.Call(ctx, prefix+"none", nil); err == nil {
		t.Error("a tool that is not there was called")
	}
	if _, err := c.Read(ctx, scheme+"notes://9"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// Refuse refuses new connections, and leaves those that are open.
func (b *Backend) Refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = err
}

// Count returns how many connections there were so far.
func (b *Backend) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// CutAny ends any one connection, if there is one.
func (b *Backend) CutAny() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, end := range b.ends {
		_ = end.Close()
		delete(b.ends, n)
		return
	}
}

// Scripted serves a connection as no Backend does. answer gets each request and the JSON of
// its id, and returns a member, such as "result":{}, of the answer; "" for no answer.
func Scripted(conn transport.Conn, answer func(m *protocol.Message, id string) string) error {
	for {
		text, err := conn.Read()
		if err != nil {
			return nil
		}
		m, err := protocol.Decode(text)
		if err != nil || m.Kind() != protocol.KindRequest {
			continue
		}
		id, err := m.ID.MarshalJSON()
		if err != nil {
			return err
		}
		if member := answer(&m, string(id)); member == "" {
			continue
		} else if conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, id, member)) != nil || conn.Flush() != nil {
			return nil
		}
	}
}
