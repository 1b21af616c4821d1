package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/streamable"
)

// backend is a server that many connections lead to, each through a pipe; a test
// can cut them and refuse new ones.
type backend struct {
	name   string
	server *mcp.Server

	mu      sync.Mutex
	refuse  error
	opened  int
	ends    map[int]transport.Conn // the server's, by the number of the connection
	serving sync.WaitGroup
}

type echoIn struct {
	Text string `json:"text"`
}

// newBackend serves a fixture that says name.
func newBackend(t *testing.T, name string, opts *mcp.Options) *backend {
	t.Helper()
	b := &backend{name: name, server: mcp.NewServer(mcp.Info{Name: name, Version: "1"}, opts), ends: map[int]transport.Conn{}}
	b.server.MustAdd(
		mcp.Tool("echo", func(_ *mcp.Frame, in echoIn) (string, error) { return name + " " + in.Text, nil }, mcp.ReadOnly()),
		mcp.Tool("sum", func(_ *mcp.Frame, in struct{ A, B int }) (struct{ Sum int }, error) {
			return struct{ Sum int }{in.A + in.B}, nil
		}),
		mcp.Bytes("notes://1", []byte("a note of "+name), mcp.MIME("text/plain")),
		mcp.Resource("notes://{id}/text", func(_ *mcp.Frame, in struct {
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
		b.cut(errors.New("the test is over"))
		b.serving.Wait()
	})
	return b
}

// transport leads to the server through a new pipe each time.
func (b *backend) transport() client.Transport {
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
			_ = b.server.ServeConn(context.Background(), far) // ends with an error when it is cut
			_ = far.Close()
			b.mu.Lock()
			delete(b.ends, n)
			b.mu.Unlock()
		})
		return near, nil
	})
}

// cut ends all connections, and with an error refuses new ones.
func (b *backend) cut(refuse error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
	for _, end := range b.ends {
		_ = end.Close()
	}
}

// cutOne ends the connection with that number.
func (b *backend) cutOne(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if end := b.ends[n]; end != nil {
		_ = end.Close()
	}
}

// accept takes connections again.
func (b *backend) accept() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = nil
}

// open returns how many connections are open.
func (b *backend) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ends)
}

// gate is a tool that waits until the test lets it go on.
type gate struct {
	entered chan struct{}
	leave   chan struct{}
}

func (b *backend) addGate(name string, options ...mcp.ComponentOption) *gate {
	g := &gate{entered: make(chan struct{}, 100), leave: make(chan struct{})}
	b.server.MustAdd(mcp.Tool(name, func(f *mcp.Frame, _ struct{}) (string, error) {
		g.entered <- struct{}{}
		select {
		case <-g.leave:
			return "through", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, options...))
	return g
}

// newPool makes a pool that is warm and closed at the end of the test.
func newPool(t *testing.T, b *backend, opts client.PoolOptions) *client.Pool {
	t.Helper()
	p := client.NewPool(b.transport(), &opts)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// requests says how many calls each connection of a pool had.
func requests(p *client.Pool) string {
	text := ""
	for _, c := range p.Stats().Connections {
		text += fmt.Sprint(c.Requests, " ")
	}
	return text
}

func echo(t *testing.T, c client.Caller, tool, text, want string) {
	t.Helper()
	result, err := c.Call(t.Context(), tool, echoIn{text})
	if err != nil || result.Text() != want {
		t.Errorf("%s %s: got %+v, %v, want %s", tool, text, result, err, want)
	}
}

// streamableOptions serve every kind of HTTP client.
func streamableOptions() streamable.Options { return streamable.Options{SSE: true} }

// recordHeader keeps the values of a header.
func recordHeader(next http.Handler, name string, values *sync.Map) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values.Store(r.Header.Get(name), true)
		next.ServeHTTP(w, r)
	})
}
