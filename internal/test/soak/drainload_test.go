package soak_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	mcpws "github.com/talaria-go/mcp/transport/websocket"
)

var manyStreams = flag.Int("streams", 50, "how many streams of each kind TestDrainMany drains; from 1,000 on in the time that a pod has")

// manyServer serves connections within the process, so that no descriptors are used up.
type manyServer struct {
	t            *testing.T
	s            *mcp.Server
	web, sockets *harness.Network
}

func newManyServer(t *testing.T, n int) *manyServer {
	x := &manyServer{t, harness.Fixture(t, &mcp.Options{
		HTTP:     mcp.HTTPOptions{SSE: true},
		Limits:   mcp.Limits{Sessions: n, SessionsPerPrincipal: n, Connections: n, ConnectionsPerPrincipal: n, Subscriptions: n, SubscriptionsPerPrincipal: n},
		Timeouts: mcp.Timeouts{KeepAlive: -1},
	}), newNetwork(), newNetwork()}
	mux := http.NewServeMux()
	mux.Handle("/mcp", x.s.Handler())
	mux.Handle("/ws", mcpws.Handler(x.s))
	server := &http.Server{Handler: mux}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(x.web) })
	served.Go(func() { _ = x.s.Serve(context.Background(), x.sockets) })
	t.Cleanup(func() {
		_ = x.s.Shutdown(context.Background())
		_ = server.Close()
		served.Wait()
	})
	return x
}

func newNetwork() *harness.Network {
	return &harness.Network{Conns: make(chan net.Conn), Done: make(chan struct{})}
}

// ask sends an HTTP request over a connection and returns the answer's head.
func (x *manyServer) ask(c net.Conn, line, headers, body string) (*http.Response, *bufio.Reader, error) {
	if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\nContent-Length: %d\r\n\r\n%s", line, headers, len(body), body); err != nil {
		return nil, nil, err
	}
	read := bufio.NewReaderSize(c, 512)
	res, err := http.ReadResponse(read, nil)
	return res, read, err
}

// manyKinds open a stream, and return what reads it to its end; nil if it is refused.
var manyKinds = map[string]func(x *manyServer) (net.Conn, io.Reader){
	"subscription": func(x *manyServer) (net.Conn, io.Reader) {
		return x.stream("POST /mcp", "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nAccept: text/event-stream", harness.Listen("1", harness.ToolsFilter))
	},
	"session": func(x *manyServer) (net.Conn, io.Reader) {
		c := x.web.Connect()
		res, _, err := x.ask(c, "POST /mcp", "Accept: application/json, text/event-stream", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+harness.Hello("2025-11-25")+`}}`)
		c.Close()
		if err != nil {
			x.t.Error(err)
			return nil, nil
		}
		return x.stream("GET /mcp", "Accept: text/event-stream\r\nMcp-Session-Id: "+res.Header.Get("Mcp-Session-Id"), "")
	},
	"HTTP+SSE": func(x *manyServer) (net.Conn, io.Reader) {
		return x.stream("GET /mcp", "Accept: text/event-stream", "")
	},
	"websocket": func(x *manyServer) (net.Conn, io.Reader) {
		return x.stream("GET /ws", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp", "")
	},
	"socket": func(x *manyServer) (net.Conn, io.Reader) {
		c := x.sockets.Connect()
		var said sync.WaitGroup // who is refused is not read
		said.Go(func() { _, _ = io.WriteString(c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n") })
		defer said.Wait()
		read := bufio.NewReaderSize(c, 512)
		if line, _ := read.ReadString('\n'); !strings.Contains(line, `"result"`) {
			c.Close()
			return nil, nil
		}
		return c, read
	},
}

// stream opens one over HTTP.
func (x *manyServer) stream(line, headers, body string) (net.Conn, io.Reader) {
	c := x.web.Connect()
	res, read, err := x.ask(c, line, headers, body)
	if err != nil || res.StatusCode >= 300 {
		c.Close()
		return nil, nil
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return c, io.LimitReader(read, 1) // the first frame says that it ends
	}
	return c, res.Body // the connection may live on
}

// What drains is told to go, one after the other, and whoever comes back is not served
// a stream by the process that goes. With the flag it says how fast they went.
func TestDrainMany(t *testing.T) {
	for kind, open := range manyKinds {
		t.Run(kind, func(t *testing.T) {
			n, limit := *manyStreams, time.Second
			if n >= 1000 {
				limit = 13500 * time.Millisecond
			}
			var clients sync.WaitGroup
			t.Cleanup(clients.Wait) // after the server has ended
			x := newManyServer(t, n+10)
			var ended, landed atomic.Int64
			ends := make([]time.Time, n)
			opened := make(chan bool, n)
			for i := range n {
				clients.Go(func() {
					c, stream := open(x)
					if opened <- c != nil; c == nil {
						return
					}
					_, _ = io.Copy(io.Discard, stream)
					c.Close()
					ends[i] = time.Now()
					ended.Add(1)
					if c, _ := open(x); c != nil {
						landed.Add(1)
						c.Close()
					}
				})
			}
			for range n {
				if !harness.Await(t, opened, "a stream") {
					t.Fatal("a stream was refused")
				}
			}
			for wait := time.Now(); x.s.Stats().Streams.Now < n; time.Sleep(time.Millisecond) { // the last one's head has just left
				if time.Since(wait) > harness.Patience {
					t.Fatalf("%d streams are open", x.s.Stats().Streams.Now)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			if err := x.s.Drain(ctx); err != nil {
				t.Error(err)
			}
			clients.Wait()
			most, seconds := 0, map[int]int{}
			for _, at := range ends {
				seconds[int(at.Sub(began)/time.Second)]++
			}
			for _, many := range seconds {
				most = max(most, many)
			}
			t.Logf("%d ended in %v, at most %d in a second; %d landed here again", ended.Load(), time.Since(began), most, landed.Load())
			if landed.Load() != 0 {
				t.Errorf("%d landed on the process that drains", landed.Load())
			}
			for wait := time.Now(); x.s.Stats().Streams.Now > 0; time.Sleep(time.Millisecond) { // the last one's client was first to know
				if time.Since(wait) > harness.Patience {
					t.Fatalf("%d streams are still open", x.s.Stats().Streams.Now)
				}
			}
		})
	}
}
