package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// giants are answers of 64 MiB to request %d, written piece by piece.
var giants = map[string][2]string{
	"id first": {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"`, `"}]}}`},
	"id last":  {`{"result":{"content":[{"type":"text","text":"`, `"}]},"jsonrpc":"2.0","id":%d}`},
}

// writeGiant writes one.
func writeGiant(w io.Writer, giant [2]string, id string) {
	_, _ = io.WriteString(w, strings.Replace(giant[0], "%d", id, 1))
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 64 {
		if _, err := w.Write(piece); err != nil {
			return // refused, as it may be
		}
	}
	_, _ = io.WriteString(w, strings.Replace(giant[1], "%d", id, 1))
}

// giantStream is a server over a byte stream that answers every call of "giant"
// with one.
func giantStream(t *testing.T, giant [2]string) Transport {
	r, theirs := io.Pipe()
	ours, w := io.Pipe()
	conn := transport.NewStream(ours, io.Discard, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := &script{t, echoConn{conn, theirs}}
		s.legacyHello("2025-06-18")
		for h := s.next(); h != nil; h = s.next() {
			switch {
			case strings.Contains(string(h.Params), "giant"):
				writeGiant(theirs, giant, string(h.ID))
				_, _ = io.WriteString(theirs, "\n")
			case h.Method == protocol.MethodToolsCall:
				s.result(h, `{"content":[{"type":"text","text":"small"}]}`)
			}
		}
	}()
	t.Cleanup(func() { <-done })
	return Stream(r, w, nil)
}

// echoConn reads from a Stream and writes lines to a pipe.
type echoConn struct {
	transport.Conn
	w io.Writer
}

func (c echoConn) Write(message []byte) error {
	_, err := fmt.Fprintf(c.w, "%s\n", message)
	return err
}

// giantHTTP is the same over HTTP, as JSON or as events.
func giantHTTP(t *testing.T, giant [2]string, kind, before, after string) Transport {
	return HTTP(handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, _, _ := strings.Cut(string(body[strings.Index(string(body), `"id":`)+len(`"id":`):]), ",")
		switch text := string(body); {
		case strings.Contains(text, `"initialize"`):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"giant","version":"1"}}}`, id)
		case strings.Contains(text, "giant"):
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, before)
			writeGiant(w, giant, id)
			_, _ = io.WriteString(w, after)
		case strings.Contains(text, protocol.MethodToolsCall):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"small"}]}}`, id)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})), &HTTPOptions{NoStream: true})
}

// upgraded is a websocket.Server that does no more than serve connections.
type upgraded func(transport.Conn)

func (f upgraded) ServeUpgrade(_ http.ResponseWriter, _ *http.Request, upgrade func(*transport.SocketOptions) (transport.Conn, error)) {
	if conn, err := upgrade(nil); err == nil {
		f(conn)
	}
}

// giantWebSocket is the same over WebSocket.
func giantWebSocket(t *testing.T, giant [2]string) Transport {
	return WebSocket(handler(t, websocket.Handler(upgraded(func(conn transport.Conn) {
		defer conn.Close()
		s := &script{t, conn}
		s.legacyHello("2025-06-18")
		for h := s.next(); h != nil; h = s.next() {
			switch {
			case strings.Contains(string(h.Params), "giant"):
				var b strings.Builder
				writeGiant(&b, giant, string(h.ID))
				s.say("%s", b.String())
			case h.Method == protocol.MethodToolsCall:
				s.result(h, `{"content":[{"type":"text","text":"small"}]}`)
			}
		}
	}))), nil)
}

// An answer of 64 MiB fails its call with the reason, at once and in little
// memory, and leaves the others alone.
func TestGiantAnswers(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads each answer of 64 MiB")
	for place, giant := range giants {
		for name, tr := range map[string]Transport{
			"stream":    giantStream(t, giant),
			"websocket": giantWebSocket(t, giant),
			"JSON":      giantHTTP(t, giant, "application/json", "", ""),
			"events":    giantHTTP(t, giant, "text/event-stream", "data: ", "\n\n"),
		} {
			t.Run(name+"/"+place, func(t *testing.T) {
				opts := only(protocol.V20250618)
				opts.Timeout = time.Minute
				c := connect(t, tr, opts)
				small := make(chan error, 20)
				for range cap(small) {
					go func() {
						r, err := c.Call(t.Context(), "small", nil)
						if err == nil && r.Text() != "small" {
							err = errors.New("the small call got " + r.Text())
						}
						small <- err
					}()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := c.Call(ctx, "giant", nil)
				runtime.ReadMemStats(&after)
				if _, ok := errors.AsType[*transport.TooLongError](err); !ok {
					t.Errorf("%.300v, want a *transport.TooLongError", err)
				}
				// A WebSocket server must have the message as a whole.
				if used := after.TotalAlloc - before.TotalAlloc; used > 40<<20 && name != "websocket" {
					t.Errorf("%d MiB of memory", used>>20)
				}
				for range cap(small) {
					if err := <-small; err != nil {
						t.Error(err)
					}
				}
				if r, err := c.Call(t.Context(), "small", nil); err != nil || r.Text() != "small" {
					t.Errorf("after it: %v", err)
				}
			})
		}
	}
}
