package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// greeter is a server with one tool.
func greeter(opts *mcp.Options) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "greeter", Version: "1.0.0"}, opts)
	s.MustAdd(mcp.Tool("greet", func(_ *mcp.Frame, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	return s
}

// greet calls the tool.
func greet(t client.Transport) {
	ctx := context.Background()
	c, err := client.Connect(ctx, t, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	r, err := c.Call(ctx, "greet", map[string]string{"name": "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Text())
}

func ExampleHTTP() {
	server := httptest.NewServer(greeter(nil).Handler())
	defer server.Close()
	greet(client.HTTP(server.URL, nil))
	// Output: Hello, Ada!
}

// A token that is renewed now and then goes into each request.
func ExampleHTTP_headers() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		greeter(nil).Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	renew := func(context.Context) (string, error) { return "fresh", nil }
	greet(client.HTTP(server.URL, &client.HTTPOptions{
		Header: http.Header{"X-Tenant": {"example"}},
		HeaderFunc: func(ctx context.Context, r *http.Request) error {
			token, err := renew(ctx)
			r.Header.Set("Authorization", "Bearer "+token)
			return err
		},
	}))
	// Output: Hello, Ada!
}

func ExampleWebSocket() {
	server := httptest.NewServer(websocket.Handler(greeter(nil)))
	defer server.Close()
	greet(client.WebSocket(strings.Replace(server.URL, "http", "ws", 1), nil))
	// Output: Hello, Ada!
}

// A server that is a program. It sees no more of the environment than it needs
// to run, and what it is given.
func ExampleCommand() {
	t := client.Command("npx", "-y", "@modelcontextprotocol/server-filesystem", ".")
	t.Env = []string{"NODE_ENV=production"}
	t.Dir = os.TempDir()
	t.Stderr = os.Stderr
	c, err := client.Connect(context.Background(), t, nil)
	if err != nil {
		log.Fatal(err) // with what the program said last, if it has ended
	}
	defer c.Close()
}

// A server in the same process, over a connection of one's own.
func ExampleConn() {
	server := greeter(nil)
	greet(client.Conn(func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		go func() { _ = server.ServeConn(context.Background(), far) }() // until the client closes near
		return near, nil
	}))
	// Output: Hello, Ada!
}

// A server of 2024-11-05. HTTP finds that out by itself; SSE saves the finding
// out.
func ExampleSSE() {
	server := httptest.NewServer(greeter(&mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}}).Handler())
	defer server.Close()
	greet(client.SSE(server.URL, nil))
	// Output: Hello, Ada!
}

// A server behind a socket.
func ExampleDial() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = greeter(nil).ServeConn(context.Background(), transport.NewSocket(conn, nil)) // until the client closes it
	}()
	greet(client.Dial("tcp", listener.Addr().String(), nil))
	// Output: Hello, Ada!
}

// A server at the other end of two pipes.
func ExampleStream() {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() {
		_ = greeter(nil).ServeConn(context.Background(), transport.NewStream(in, out, nil)) // until the client closes toServer
	}()
	greet(client.Stream(fromServer, toServer, nil))
	// Output: Hello, Ada!
}
