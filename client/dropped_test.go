package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// A dropped message of a server has a line in the log: one, though it comes three times.
func TestDroppedIsLogged(t *testing.T) {
	const padding = `"params":{"x":"%s"}`
	long := fmt.Sprintf(padding, strings.Repeat("x", 4000))
	for name, tt := range map[string]struct {
		say  string
		want string // the message of the line
		has  string
		rev  protocol.Revision
	}{
		"no message":                   {`{"jsonrpc":"1.0"}`, "the server sent an invalid message", `"text":"{`, protocol.V20250618},
		"an answer to nothing":         {`{"jsonrpc":"2.0","id":"x","result":{}}`, "an answer to no request that is under way", `"id":"\"x\""`, protocol.V20250618},
		"a notification that is long":  {`{"jsonrpc":"2.0","method":"notifications/x",` + long + `}`, "the server sent an invalid message", "2000", protocol.V20250618},
		"a request of another era":     {`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, "the server sent a request, which its revision does not have", "roots/list", protocol.Latest},
		"a log message that is none":   {`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7}}`, "a notification of the server is invalid", "notifications/message", protocol.V20250618},
		"notifications to a slow user": {`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, "notifications of the server are dropped: a callback or a reader of them is too slow", `"dropped":1`, protocol.V20250618},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logText
				logger := zerolog.New(&log)
				slow := make(chan struct{})
				times := 3
				opts := &Options{Revisions: []protocol.Revision{tt.rev}, Logger: &logger, Timeout: time.Minute}
				if strings.Contains(name, "slow") {
					times = maxNotifications + 4
					opts.OnNotification = func(Notification) { <-slow }
				}
				c := connect(t, &testTransport{"memory:dropped", func(context.Context) (transport.Conn, error) {
					near, far := net.Pipe()
					t.Cleanup(func() { _ = far.Close() })
					go func() {
						s := &script{t, transport.NewStream(far, far, nil)}
						if tt.rev.Modern() {
							s.modernHello()
						} else {
							s.legacyHello(tt.rev.String())
						}
						for range times {
							s.say("%s", tt.say)
							_ = s.conn.Flush()
						}
						s.drain()
					}()
					return transport.NewStream(near, near, &transport.StreamOptions{MaxMessage: 2000}), nil
				}}, opts)
				time.Sleep(time.Second)
				close(slow)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if n := strings.Count(log.String(), tt.want); n != 1 || !strings.Contains(log.String(), tt.has) {
					t.Errorf("%d lines with %s: %s", n, tt.want, log.String())
				}
			})
		})
	}
}

// Also what is too long on a stream of HTTP, which belongs to no request.
func TestDroppedIsLoggedOverHTTP(t *testing.T) {
	for _, sse := range []bool{false, true} {
		t.Run(fmt.Sprint("sse ", sse), func(t *testing.T) {
			sent, end := make(chan struct{}), make(chan struct{})
			out := make(chan string, 10)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m heard
				_ = json.Unmarshal(body, &m)
				hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
				switch {
				case r.Method == http.MethodGet:
					w.Header().Set("Content-Type", "text/event-stream")
					if sse {
						fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
						w.(http.Flusher).Flush()
						fmt.Fprintf(w, "data: %s\n\n", <-out)
					}
					fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"x\":%q}}\n\n", strings.Repeat("x", 4000))
					fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/last\"}\n\n")
					w.(http.Flusher).Flush()
					select {
					case <-end:
					case <-r.Context().Done():
					}
				case m.Method == protocol.MethodInitialize && sse:
					out <- hello
					w.WriteHeader(http.StatusAccepted)
				case m.Method == protocol.MethodInitialize:
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, hello)
				default:
					w.WriteHeader(http.StatusAccepted)
				}
			}))
			defer web.Close()
			defer close(end)
			var log logText
			logger := zerolog.New(&log)
			opts := &Options{Revisions: []protocol.Revision{protocol.V20241105}, Logger: &logger, OnNotification: func(n Notification) {
				if n.Method == "notifications/last" {
					close(sent)
				}
			}}
			to := HTTP(web.URL, &HTTPOptions{MaxMessage: 2000})
			if sse {
				to = SSE(web.URL, &HTTPOptions{MaxMessage: 2000})
			}
			c := connect(t, to, opts)
			<-sent
			if err := c.Close(); err != nil && !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
			if n := strings.Count(log.String(), "the server sent an invalid message"); n != 1 || !strings.Contains(log.String(), "2000") {
				t.Errorf("%d lines: %s", n, log.String())
			}
		})
	}
}

// That a list has changed comes to a slow consumer, whatever else is dropped for it and
// however often the list changes: once for each subscription.
func TestListChangesAreKept(t *testing.T) {
	changes := []string{protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged}
	for name, most := range map[string]int{"callbacks": maxNotifications, "a reader": maxListened} {
		var b backlog
		push := func(method, params string) int64 {
			return b.push(delivery{Notification: Notification{Method: method, Params: json.RawMessage(params)}}, most)
		}
		dropped := int64(0)
		for _, method := range changes {
			for _, subscription := range []string{"", `{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`, `{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}`} {
				dropped += push(method, subscription)
			}
		}
		for n := range 3 * most {
			dropped += push("notifications/message", `{}`)
			if n%10 == 0 {
				dropped += push(changes[n%3], "")
			}
		}
		seen, others := map[string]bool{}, int64(0)
		for d, ok := b.shift(); ok; d, ok = b.shift() {
			if d.isListChange() {
				seen[d.Method+string(d.Params)] = true
			} else {
				others++
			}
		}
		if len(seen) != 9 || dropped+others != int64(3*most) || others == 0 || b.size != 0 {
			t.Errorf("%s: %d changes, %d others, %d dropped, %d bytes left", name, len(seen), others, dropped, b.size)
		}
		lost := push(changes[1], "")
		for n := range 2 * most { // of as many subscriptions
			lost += push(changes[0], fmt.Sprint(n))
		}
		if first, last := b.queue[0], b.queue[len(b.queue)-1]; len(b.queue) != maxChanges+1 || first.Method != changes[1] || string(last.Params) != fmt.Sprint(2*most-1) || lost != int64(2*most-maxChanges) {
			t.Errorf("%s: %d wait, %d are lost, %+v is last", name, len(b.queue), lost, last)
		}
		long := `"` + strings.Repeat("x", maxChange) + `"`
		for range 2 * most { // of a length which makes comparing them expensive
			push(changes[2], long)
		}
		if len(b.queue) != most {
			t.Errorf("%s: %d long ones wait", name, len(b.queue))
		}
	}
}
