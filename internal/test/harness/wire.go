package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// LineClient is a connection to a server on which a client says what it likes and
// hears everything, whenever it comes.
type LineClient struct {
	t     testing.TB
	Rev   protocol.Revision
	Conn  transport.Conn
	Heard chan string // closed at the end
}

// WireKinds are the kinds of connections that have a reader at the server.
var WireKinds = []struct {
	Name string
	Dial func(t testing.TB, s *mcp.Server) transport.Conn
}{
	{"stdio", func(t testing.TB, s *mcp.Server) transport.Conn {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		ServeWire(t, s, transport.NewStream(inR, outW, nil))
		return transport.NewStream(outR, inW, nil)
	}},
	{"pipe", func(t testing.TB, s *mcp.Server) transport.Conn {
		client, server := transport.Pipe()
		ServeWire(t, s, server)
		return client
	}},
	{"tcp", func(t testing.TB, s *mcp.Server) transport.Conn { return Dial(t, ListenOn(t, s, "tcp")) }},
	{"unix", func(t testing.TB, s *mcp.Server) transport.Conn { return Dial(t, ListenOn(t, s, "unix")) }},
	{"websocket", func(t testing.TB, s *mcp.Server) transport.Conn {
		server := httptest.NewServer(websocket.Handler(s))
		t.Cleanup(server.Close)
		conn, err := websocket.Dial(t.Context(), server.URL, OwnHTTP(t), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}},
	{"sse", func(t testing.TB, s *mcp.Server) transport.Conn {
		server := httptest.NewServer(SSEHandler(s))
		t.Cleanup(server.Close)
		return &sseWire{ConnectSSE(t, server.URL, protocol.LatestLegacy)}
	}},
}

func ServeWire(t testing.TB, s *mcp.Server, conn transport.Conn) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.ServeConn(context.Background(), conn) // how it ends is for others to test
	}()
	t.Cleanup(func() {
		select {
		case <-served:
		case <-time.After(Patience):
			t.Error("ServeConn does not return")
		}
	})
}

// sseWire is HTTP+SSE as a Conn.
type sseWire struct{ c *SSEClient }

func (w *sseWire) Read() ([]byte, error) {
	_, data, err := w.c.Event()
	return []byte(data), err
}

func (w *sseWire) Write(message []byte) error {
	res, err := w.c.http.Post(w.c.URL, "application/json", strings.NewReader(string(message)))
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return errors.New(res.Status)
	}
	return nil
}

func (w *sseWire) Flush() error { return nil }

func (w *sseWire) Close() error { w.c.Leave(); return nil }

// OnWires runs a test over every kind of connection, in revisions that have
// it, and greets the server as the revision wants it.
func OnWires(t *testing.T, server func(t *testing.T) *mcp.Server, revs []protocol.Revision, test func(t *testing.T, s *mcp.Server, w *LineClient)) {
	for _, kind := range WireKinds {
		for _, rev := range revs {
			if kind.Name == "sse" && rev.Modern() {
				continue
			}
			t.Run(kind.Name+"/"+rev.String(), func(t *testing.T) {
				t.Parallel()
				s := server(t)
				w := NewWire(t, kind.Dial(t, s), rev)
				if !rev.Modern() {
					w.Say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
					w.Answer("init", `"serverInfo"`)
					w.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				}
				test(t, s, w)
			})
		}
	}
}

func NewWire(t testing.TB, conn transport.Conn, rev protocol.Revision) *LineClient {
	w := &LineClient{t, rev, conn, make(chan string, 20_000)}
	go func() {
		defer close(w.Heard)
		for {
			message, err := conn.Read()
			if err != nil {
				return
			}
			w.Heard <- string(message)
		}
	}()
	t.Cleanup(func() { _ = conn.Close() })
	return w
}

func (w *LineClient) Say(line string) {
	w.t.Helper()
	if err := w.Conn.Write([]byte(Expand(line, w.Rev))); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	if err := w.Conn.Flush(); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
}

// call returns a call of a tool.
func (w *LineClient) Call(id, tool string) string {
	meta := ""
	if w.Rev.Modern() {
		meta = ",$META"
	}
	return Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q%s}}`, id, tool, meta), w.Rev)
}

func (w *LineClient) Cancel(id string) {
	w.t.Helper()
	w.Say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, id))
}

// hear returns the next message, "" at the end.
func (w *LineClient) Hear() string {
	w.t.Helper()
	select {
	case message := <-w.Heard:
		return message
	case <-time.After(Patience):
		w.t.Fatal("nothing is heard")
		return ""
	}
}

// answer hears the answer to a request, which must be the next message.
func (w *LineClient) Answer(id, want string) {
	w.t.Helper()
	if got := w.Hear(); !strings.Contains(got, fmt.Sprintf(`"id":%q`, id)) || !strings.Contains(got, want) {
		w.t.Fatalf("heard %.300s, want the answer to %q with %s", got, id, want)
	}
}

// Holding is a server whose tool hold tells when it begins, and ends when it
// must; touch tells that it was called.
type Holding struct {
	*mcp.Server
	Begun, Ended, Touched chan string
}

func Hold(t *testing.T, opts mcp.Options) *Holding {
	h := &Holding{Begun: make(chan string, 1000), Ended: make(chan string, 1000), Touched: make(chan string, 20_000)}
	h.Server = Fixture(t, &opts)
	h.MustAdd(mcp.Tool("hold", func(f *mcp.Frame, _ struct{}) (string, error) {
		id := f.Request().ID.String()
		h.Begun <- id
		<-f.Done()
		h.Ended <- id
		return "held", nil
	}), mcp.Tool("touch", func(f *mcp.Frame, _ struct{}) (string, error) {
		h.Touched <- f.Request().ID.String()
		return "touched", nil
	}), mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
		roots, err := frame.Roots(f, "roots")
		return fmt.Sprint(len(roots), " roots"), err
	}))
	return h
}

// Holds runs a test on servers that serve one call at a time.
func Holds(t *testing.T, opts mcp.Options, revs []protocol.Revision, test func(t *testing.T, h *Holding, w *LineClient)) {
	var h = make(map[*mcp.Server]*Holding)
	made := make(chan struct{}, 1)
	OnWires(t, func(t *testing.T) *mcp.Server {
		one := Hold(t, opts)
		made <- struct{}{}
		h[one.Server] = one
		<-made
		return one.Server
	}, revs, func(t *testing.T, s *mcp.Server, w *LineClient) {
		made <- struct{}{}
		one := h[s]
		<-made
		test(t, one, w)
	})
}
