package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// streamed is a byte stream, with the limits of one, to what serve serves.
func streamed(t *testing.T, serve func(transport.Conn)) Transport {
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return Conn(func(context.Context) (transport.Conn, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		serving.Go(func() {
			defer func() { _, _ = outW.Close(), inR.Close() }() // pipes have no error
			serve(transport.NewStream(inR, outW, nil))
		})
		return transport.NewStream(outR, inW, nil), nil
	})
}

// TestLongRequest checks that a request over the limit of the server fails at once, and
// that others do not.
func TestLongRequest(t *testing.T) {
	testdep.NoRace(t, "one goroutine writes each request of 4 MiB")
	args := map[string]string{"text": strings.Repeat("x", 4<<20)}
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		web := httptest.NewServer(s.Handler())
		t.Cleanup(web.Close)
		sockets := httptest.NewServer(websocket.Handler(s))
		t.Cleanup(sockets.Close)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(t.Context(), listener) // it ends with the test
		}()
		t.Cleanup(func() { listener.Close(); <-served })
		for name, tr := range map[string]Transport{
			"stream":    streamed(t, func(conn transport.Conn) { _ = s.ServeConn(t.Context(), conn) }), // its end is the client's doing
			"HTTP":      HTTP(web.URL, nil),
			"WebSocket": WebSocket("ws"+strings.TrimPrefix(sockets.URL, "http"), nil),
			"TCP":       Dial("tcp", listener.Addr().String(), nil),
		} {
			opts := only(rev)
			opts.Timeout = time.Hour
			c := connect(t, tr, opts)
			waiting := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, err := c.Call(ctx, "wait", nil)
				waiting <- err
			}()
			_, err := c.Call(t.Context(), "greet", args)
			if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != protocol.CodeInvalidRequest || !strings.Contains(err.Error(), "limit of 4194304 bytes") {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
			if err := <-waiting; !errors.Is(err, ErrCancelled) {
				t.Errorf("%s: the other call: %v", name, err)
			}
		}
	})
}

// TestNoID checks that an error without an id ends the call that it is for, if that can
// be known, and is logged if it cannot.
func TestNoID(t *testing.T) {
	const fault = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too much"}}`
	for _, test := range []struct {
		name   string
		calls  []int // lengths of arguments
		failed int   // the call that fails; -1 for none
	}{
		{"one call", []int{1}, 0},
		{"two calls", []int{1, 1}, -1},
		{"a long one of two", []int{1, 2 << 20}, 1},
		{"a long one of three", []int{2 << 20, 1, 1}, 0},
		{"two long ones", []int{2 << 20, 2 << 20, 1}, -1},
	} {
		for _, message := range []string{fault, strings.Replace(fault, `"id":null,`, "", 1)} {
			t.Run(test.name, func(t *testing.T) {
				tr := scripted(t, func(s *script) {
					s.legacyHello("2025-11-25")
					var asked []*heard
					for range test.calls {
						asked = append(asked, s.until(protocol.MethodToolsCall))
					}
					s.say("%s", message)
					for _, h := range asked {
						s.result(h, `{"content":[]}`)
					}
					s.drain()
				})
				logs := &logText{}
				logger := zerolog.New(logs)
				opts := *legacy
				opts.Logger, opts.Timeout, opts.Revisions = &logger, time.Hour, []protocol.Revision{protocol.V20251125}
				c := connect(t, tr, &opts)
				ended := make([]chan error, len(test.calls))
				for i, size := range test.calls {
					ended[i] = make(chan error, 1)
					go func() {
						_, err := c.Call(t.Context(), "any", map[string]string{"text": strings.Repeat("x", size)}, Retry(1))
						ended[i] <- err
					}()
				}
				if test.failed >= 0 {
					err := <-ended[test.failed]
					if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != -32600 || !strings.Contains(err.Error(), "too much") {
						t.Errorf("call %d: %v", test.failed, err)
					}
				}
				for i := range ended {
					if i == test.failed {
						continue
					}
					if err := <-ended[i]; err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				}
				if logged := strings.Contains(logs.String(), "too much"); logged != (test.failed < 0) {
					t.Errorf("log: %s", logs.String())
				}
			})
		}
	}
}

// TestNoIDOfBatch checks that an error without an id ends all calls of a batch.
func TestNoIDOfBatch(t *testing.T) {
	c := connect(t, scripted(t, func(s *script) {
		s.legacyHello("2025-03-26")
		for { // the batch is no message
			text, err := s.conn.Read()
			if err != nil {
				return
			}
			if strings.HasPrefix(string(text), "[") {
				s.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too much"}}`)
			}
		}
	}), &Options{Revisions: []protocol.Revision{protocol.V20250326}, Timeout: time.Hour})
	results, err := c.Batch(t.Context(), Operation{Method: "a"}, Operation{Method: "b"}, Operation{Method: "c"})
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	for i, r := range results {
		if r.Err == nil || !strings.Contains(r.Err.Error(), "too much") {
			t.Errorf("request %d: %s, %v", i, r.Result, r.Err)
		}
	}
}

// TestNoIDBesideSubscription checks that a subscription that the server has agreed to
// is none of the calls that an error can be for.
func TestNoIDBesideSubscription(t *testing.T) {
	c := connect(t, scripted(t, func(s *script) {
		s.modernHello()
		h := s.until(protocol.MethodListen)
		s.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, h.ID)
		s.until(protocol.MethodToolsCall)
		s.say(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"too much"}}`)
		s.drain()
	}), &Options{Revisions: []protocol.Revision{protocol.V20260728}, Timeout: time.Hour})
	sub, err := c.Listen(t.Context(), Filter{ToolsListChanged: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), "any", nil, Retry(1)); err == nil || !strings.Contains(err.Error(), "too much") {
		t.Error(err)
	}
	if err := sub.Err(); err != nil {
		t.Errorf("the subscription: %v", err)
	}
}

// TestLongMessages checks what becomes of messages of the server that are too long: an
// answer fails its call, a question is answered with an error, the rest is logged.
func TestLongMessages(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads each message of 4 MiB")
	long := fmt.Sprintf(`{"id":99,"text":"%s"}`, strings.Repeat("x", 4<<20))
	for name, message := range map[string]string{
		"answer":          `{"jsonrpc":"2.0","id":$id,"result":` + long + `}`,
		"answer, id last": `{"jsonrpc":"2.0","result":` + long + `,"id":$id}`,
		"answer, no id":   `{"jsonrpc":"2.0","result":` + long + `}`,
		"error":           `{"jsonrpc":"2.0","error":` + long + `,"id":$id}`,
		"question":        `{"jsonrpc":"2.0","method":"sampling/createMessage","params":` + long + `,"id":"q"}`,
		"notification":    `{"jsonrpc":"2.0","method":"notifications/message","params":` + long + `}`,
		"garbage":         long[2:],
	} {
		t.Run(name, func(t *testing.T) {
			tr := streamed(t, func(conn transport.Conn) {
				s := &script{t, conn}
				s.legacyHello("2025-11-25")
				h := s.until(protocol.MethodToolsCall)
				s.say("%s", strings.ReplaceAll(message, "$id", string(h.ID)))
				if name == "question" {
					for m := s.next(); string(m.ID) != `"q"` || m.Error == nil; m = s.next() {
					}
				}
				if name == "question" || name == "notification" {
					s.result(h, `{"content":[]}`)
				}
				s.drain()
			})
			opts := *legacy
			opts.Timeout, opts.Revisions = time.Hour, []protocol.Revision{protocol.V20251125}
			c := connect(t, tr, &opts)
			_, err := c.Call(t.Context(), "any", nil, Retry(1))
			if name == "question" || name == "notification" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if long, ok := errors.AsType[*transport.TooLongError](err); !ok || long.Size < 4<<20 {
				t.Error(err)
			}
		})
	}
}
