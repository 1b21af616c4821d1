package harness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Network is a listener in memory, for bubbles of synctest. Its connections
// hold nothing: a write waits for its reader.
type Network struct {
	Conns chan net.Conn
	once  sync.Once
	Done  chan struct{}
}

func (n *Network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.Conns:
		return conn, nil
	case <-n.Done:
		return nil, net.ErrClosed
	}
}

func (n *Network) Close() error {
	n.once.Do(func() { close(n.Done) })
	return nil
}

func (n *Network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// memoryClient is a client of a network, with one request on its connection.
type memoryClient struct {
	t    *testing.T
	Conn net.Conn
	res  *http.Response
	Body *bufio.Reader
}

// Dial sends a request and reads the head of its answer.
func (n *Network) Dial(t *testing.T, line string) *memoryClient {
	t.Helper()
	here, there := net.Pipe()
	n.Conns <- there
	t.Cleanup(func() { here.Close() })
	_, method, _ := strings.Cut(line, `"method":"`)
	method, _, _ = strings.Cut(method, `"`)
	_, err := fmt.Fprintf(here, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\nContent-Length: %d\r\n\r\n%s", method, len(line), line)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &memoryClient{t, here, res, bufio.NewReader(res.Body)}
}

// line returns the next line that is not empty, "" at the end.
func (c *memoryClient) Line() string {
	c.t.Helper()
	for {
		line, err := c.Body.ReadString('\n')
		if err != nil && err != io.EOF {
			c.t.Fatal(err)
		}
		if line = strings.TrimSpace(line); line != "" || err != nil {
			return line
		}
	}
}

func (c *memoryClient) Want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got := c.Line(); got != want {
			c.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func (c *memoryClient) WantEvent(message string) {
	c.t.Helper()
	c.Want("event: message", "data: "+message)
}

func (c *memoryClient) WantOpen() {
	c.t.Helper()
	c.WantEvent(Tagged("1", "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
}

const ToolsFilter = `{"toolsListChanged":true}`

// connect returns the client's end of a connection.
func (n *Network) Connect() net.Conn {
	here, there := net.Pipe()
	n.Conns <- there
	return here
}
