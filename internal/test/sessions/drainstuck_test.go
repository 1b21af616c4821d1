package sessions_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// A connection with a subscription ends when it drains, and at its age; the
// subscription is answered.
func TestDrainEndsSubscriptionsOfConnections(t *testing.T) {
	for _, why := range []string{"drain", "age"} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := mcp.Options{}
				if why == "age" {
					opts.Timeouts.StreamAge = time.Hour
				}
				s := harness.ListenServer(t, opts)
				n := &harness.Network{Conns: make(chan net.Conn), Done: make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- s.Serve(t.Context(), n) }()
				here, there := net.Pipe()
				n.Conns <- there
				defer here.Close()
				lines := bufio.NewScanner(here)
				fmt.Fprintln(here, harness.Listen("1", harness.ToolsFilter))
				lines.Scan()
				if !strings.Contains(lines.Text(), "acknowledged") {
					t.Fatalf("got %s", lines.Text())
				}
				if why == "drain" {
					if err := s.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				}
				_ = here.SetReadDeadline(time.Now().Add(2 * time.Hour))
				if lines.Scan(); lines.Text() != harness.Ended("1") {
					t.Errorf("got  %s\nwant %s", lines.Text(), harness.Ended("1"))
				}
				if lines.Scan() || lines.Err() != nil {
					t.Errorf("it goes on: %s, %v", lines.Text(), lines.Err())
				}
				synctest.Wait()
				if now := s.Stats().Streams.Now; now != 0 {
					t.Errorf("%d streams", now)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				<-served
			})
		})
	}
}

// A client of HTTP+SSE that reads nothing holds no drain up: what tells it when to come
// back waits for it alone.
func TestDrainWithoutReader(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}, Timeouts: mcp.Timeouts{Write: -1, KeepAlive: -1}})
	ended := make(chan struct{}, 100)
	s.Observe(mcp.Observer{End: func(*mcp.Frame, mcp.Outcome) { ended <- struct{}{} }})
	s.MustAdd(mcp.Tool("flood", func(f *mcp.Frame, _ struct{}) (string, error) { return strings.Repeat("x", 1<<20), nil }))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	defer web.CloseClientConnections()
	c, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	read := bufio.NewReader(c)
	at := ""
	for at == "" {
		line, err := read.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, at, _ = strings.Cut(strings.TrimSpace(line), "data: ")
	}
	say := func(text string) {
		res, err := http.Post(web.URL+at, "application/json", strings.NewReader(text))
		if err != nil || res.StatusCode != http.StatusAccepted {
			t.Fatal(res, err)
		}
		res.Body.Close()
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{` + harness.Hello("2024-11-05") + `}}`)
	for id := range 16 { // more than sockets hold
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"flood"}}`, id+1))
	}
	for range 17 { // the last answers wait for the client
		harness.Await(t, ended, "the end of a call")
	}
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() { drained <- s.Drain(ctx) }()
	if err := harness.Await(t, drained, "the end of the drain"); err != nil {
		t.Error(err)
	}
}

// A GET that is refused has not been a stream.
func TestRefusedStreamIsNone(t *testing.T) {
	s := harness.Fixture(t, nil)
	var events harness.EventLog
	events.Observe(s)
	c := harness.OpenHTTP(t, s, protocol.V20251125).(*harness.HTTPClient)
	c.Say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{` + harness.Hello("2025-11-25") + `}}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-Id", "77-1")
	r.Header.Set("Mcp-Session-Id", c.Session)
	res, err := c.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if opened, ended := events.Of("stream.opened", ""), events.Of("stream.ended", ""); res.StatusCode != http.StatusBadRequest || opened != 0 || ended != 0 {
		t.Errorf("status %d; %d streams opened, %d ended", res.StatusCode, opened, ended)
	}
}
