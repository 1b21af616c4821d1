package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// brief are options with which nothing takes long.
func brief() *Options {
	return &Options{Timeout: time.Second, ProbeTimeout: time.Second, MaxTimeout: 2 * time.Second, CloseTimeout: time.Second,
		NoReconnect: true, LaxCapabilities: true, Revisions: []protocol.Revision{protocol.V20250618}}
}

type waitMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// answerBut answers a message, "" for none, unless it is of a method that is never
// answered. Lists have ever new cursors.
func answerBut(silent string, text []byte, n int) string {
	var m waitMessage
	if json.Unmarshal(text, &m) != nil || m.ID == nil || m.Method == silent {
		return ""
	}
	result := "{}"
	switch m.Method {
	case protocol.MethodInitialize:
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"x","version":"1"}}`
	case protocol.MethodToolsList:
		time.Sleep(20 * time.Millisecond)
		result = fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// lines is the transport to a server that never answers a method, and reads
// nothing any more after the messages of that number. What it says comes out of a
// reader that cannot be closed.
func lines(t *testing.T, silent string, reads int) Transport {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	t.Cleanup(func() { in.Close(); out.Close() })
	go func() {
		scanner := bufio.NewScanner(in)
		for n := 0; n < reads && scanner.Scan(); n++ {
			if text := answerBut(silent, scanner.Bytes(), n); text != "" {
				fmt.Fprintln(out, text)
			}
		}
	}()
	return Stream(struct{ io.Reader }{fromServer}, struct{ io.Writer }{toServer}, nil)
}

// web is the address of a server that never answers a method, and for "DELETE"
// never the end of the session; at "headers" and "body" nothing that it begins to
// answer comes to an end.
func web(t *testing.T, silent string) string {
	ended := make(chan struct{})
	var n atomic.Int64
	address := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var m waitMessage
		_ = json.Unmarshal(text, &m)
		wait := func() {
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		}
		w.Header().Set("Mcp-Session-Id", "s")
		switch {
		case silent == "headers", silent == r.Method, m.Method == silent && m.Method != "":
			wait()
		case silent == "body" && r.Method == http.MethodPost:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":")
			w.(http.Flusher).Flush()
			wait()
		case silent == "endpoint" && r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			wait()
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answerBut(silent, text, int(n.Add(1))))
		}
	}))
	t.Cleanup(func() { close(ended) })
	return address
}

// mute is the address of a socket that takes connections and says nothing.
func mute(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String() // the system accepts
}

// Whatever a server leaves unanswered, nobody waits for ever: without a context
// that ends, options alone bound each step.
func TestWaits(t *testing.T) {
	everything := func(c *Client) error {
		_, call := c.Call(context.Background(), "x", nil)
		_, read := c.Read(context.Background(), "x:y")
		var list error
		for _, list = range c.Tools(context.Background()) {
		}
		_, listen := c.Listen(context.Background(), protocol.SubscriptionFilter{ResourceSubscriptions: []string{"x:y"}}, nil)
		return errors.Join(call, read, list, listen, c.SetLevel(context.Background(), protocol.LevelInfo))
	}
	leveled := brief()
	leveled.LogLevel = protocol.LevelInfo
	for _, test := range []struct {
		name    string
		t       func(t *testing.T) Transport
		opts    *Options
		connect bool // it fails
		call    string
	}{
		{"dial", func(*testing.T) Transport {
			return Conn(func(ctx context.Context) (transport.Conn, error) { <-ctx.Done(); return nil, ctx.Err() })
		}, brief(), true, ""},
		{"socket", func(t *testing.T) Transport { return Dial("tcp", mute(t), nil) }, brief(), true, ""},
		{"websocket handshake", func(t *testing.T) Transport { return WebSocket("ws://"+mute(t), nil) }, brief(), true, ""},
		{"sse headers", func(t *testing.T) Transport { return SSE("http://"+mute(t), nil) }, brief(), true, ""},
		{"sse endpoint", func(t *testing.T) Transport { return SSE(web(t, "endpoint"), nil) }, brief(), true, ""},
		{"http headers", func(t *testing.T) Transport { return HTTP(web(t, "headers"), nil) }, brief(), true, ""},
		{"http body", func(t *testing.T) Transport { return HTTP(web(t, "body"), nil) }, brief(), true, ""},
		{"http, all revisions", func(t *testing.T) Transport { return HTTP(web(t, "headers"), nil) },
			&Options{Timeout: 200 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, CloseTimeout: 200 * time.Millisecond}, true, ""},
		{"initialize", func(t *testing.T) Transport { return lines(t, protocol.MethodInitialize, 1000) }, brief(), true, ""},
		{"initialized is not read", func(t *testing.T) Transport { return lines(t, "", 1) }, brief(), true, ""},
		{"initialized over http", func(t *testing.T) Transport { return HTTP(web(t, protocol.MethodInitialized), nil) }, brief(), true, ""},
		{"level", func(t *testing.T) Transport { return lines(t, protocol.MethodSetLevel, 1000) }, leveled, true, ""},
		{"requests are not read", func(t *testing.T) Transport { return lines(t, "", 2) }, brief(), false, "timeout"},
		{"call", func(t *testing.T) Transport { return lines(t, protocol.MethodToolsCall, 1000) }, brief(), false, "call x: timeout"},
		{"read", func(t *testing.T) Transport { return lines(t, protocol.MethodResourcesRead, 1000) }, brief(), false, "read x:y: timeout"},
		{"list", func(t *testing.T) Transport { return lines(t, protocol.MethodToolsList, 1000) }, brief(), false, "timeout"},
		{"pages", func(t *testing.T) Transport { return lines(t, "", 1000) }, brief(), false, "the list has not ended within the MaxTimeout"},
		{"subscribe", func(t *testing.T) Transport { return lines(t, protocol.MethodSubscribe, 1000) }, brief(), false, "timeout"},
		{"the level of a call", func(t *testing.T) Transport { return HTTP(web(t, protocol.MethodSetLevel), nil) }, brief(), false, "timeout"},
		{"call over http", func(t *testing.T) Transport { return HTTP(web(t, protocol.MethodToolsCall), nil) }, brief(), false, "call x: timeout"},
		{"stream", func(t *testing.T) Transport { return HTTP(web(t, http.MethodGet), nil) }, brief(), false, "MaxTimeout"},
		{"end of session", func(t *testing.T) Transport { return HTTP(web(t, http.MethodDelete), nil) }, brief(), false, "MaxTimeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr := test.t(t)
			done := make(chan error, 1)
			go func() {
				c, err := Connect(context.Background(), tr, test.opts)
				if test.connect {
					if !errors.Is(err, ErrTimeout) {
						err = fmt.Errorf("connecting: %w", err)
					} else {
						err = nil
					}
					done <- err
					return
				}
				if err != nil {
					done <- err
					return
				}
				if err := everything(c); err == nil || !strings.Contains(err.Error(), test.call) {
					t.Errorf("got %v, want %q", err, test.call)
				}
				_ = c.Close() // which may fail
				done <- nil
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits for ever")
			}
		})
	}
}

// Who waits for a session that is renewed can stop waiting.
func TestRenewalWait(t *testing.T) {
	expired := false
	ended := make(chan struct{})
	address := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var m waitMessage
		_ = json.Unmarshal(text, &m)
		w.Header().Set("Mcp-Session-Id", "s")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == protocol.MethodInitialize && expired:
			<-ended
		case m.Method == protocol.MethodInitialize:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answerBut("", text, 0))
		default:
			expired = true
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(func() { close(ended) })
	opts := brief()
	opts.Timeout, opts.CloseTimeout = time.Hour, time.Second
	c, err := Connect(t.Context(), HTTP(address, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second waits for the renewal that the first began
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = c.Call(ctx, "x", nil)
		stop()
		if err == nil {
			t.Error("no error")
		}
	}
	_ = c.Close()
}
