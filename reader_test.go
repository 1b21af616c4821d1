package mcp_test

import (
	"bufio"
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
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// lineClient is a connection to a server on which a client says what it likes and
// hears everything, whenever it comes.
type lineClient struct {
	t     testing.TB
	rev   protocol.Revision
	conn  transport.Conn
	heard chan string // closed at the end
}

// wireKinds are the kinds of connections that have a reader at the server.
var wireKinds = []struct {
	name string
	dial func(t testing.TB, s *mcp.Server) transport.Conn
}{
	{"stdio", func(t testing.TB, s *mcp.Server) transport.Conn {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		serveWire(t, s, transport.NewStream(inR, outW, nil))
		return transport.NewStream(outR, inW, nil)
	}},
	{"pipe", func(t testing.TB, s *mcp.Server) transport.Conn {
		client, server := transport.Pipe()
		serveWire(t, s, server)
		return client
	}},
	{"tcp", func(t testing.TB, s *mcp.Server) transport.Conn { return dial(t, listenOn(t, s, "tcp")) }},
	{"unix", func(t testing.TB, s *mcp.Server) transport.Conn { return dial(t, listenOn(t, s, "unix")) }},
	{"websocket", func(t testing.TB, s *mcp.Server) transport.Conn {
		server := httptest.NewServer(websocket.Handler(s))
		t.Cleanup(server.Close)
		conn, err := websocket.Dial(t.Context(), server.URL, ownHTTP(t), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}},
	{"sse", func(t testing.TB, s *mcp.Server) transport.Conn {
		server := httptest.NewServer(s.SSEHandler())
		t.Cleanup(server.Close)
		return &sseWire{connectSSE(t, server.URL, protocol.LatestLegacy)}
	}},
}

func serveWire(t testing.TB, s *mcp.Server, conn transport.Conn) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.ServeConn(context.Background(), conn) // how it ends is for others to test
	}()
	t.Cleanup(func() {
		select {
		case <-served:
		case <-time.After(patience):
			t.Error("ServeConn does not return")
		}
	})
}

// sseWire is HTTP+SSE as a Conn.
type sseWire struct{ c *sseClient }

func (w *sseWire) Read() ([]byte, error) {
	_, data, err := w.c.event()
	return []byte(data), err
}

func (w *sseWire) Write(message []byte) error {
	res, err := w.c.http.Post(w.c.url, "application/json", strings.NewReader(string(message)))
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
func (w *sseWire) Close() error { w.c.leave(); return nil }

// onWires runs a test over every kind of connection, in revisions that have
// it, and greets the server as the revision wants it.
func onWires(t *testing.T, server func(t *testing.T) *mcp.Server, revs []protocol.Revision, test func(t *testing.T, s *mcp.Server, w *lineClient)) {
	for _, kind := range wireKinds {
		for _, rev := range revs {
			if kind.name == "sse" && rev.Modern() {
				continue
			}
			t.Run(kind.name+"/"+rev.String(), func(t *testing.T) {
				t.Parallel()
				s := server(t)
				w := newWire(t, kind.dial(t, s), rev)
				if !rev.Modern() {
					w.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
					w.answer("init", `"serverInfo"`)
					w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				}
				test(t, s, w)
			})
		}
	}
}

func newWire(t testing.TB, conn transport.Conn, rev protocol.Revision) *lineClient {
	w := &lineClient{t, rev, conn, make(chan string, 20_000)}
	go func() {
		defer close(w.heard)
		for {
			message, err := conn.Read()
			if err != nil {
				return
			}
			w.heard <- string(message)
		}
	}()
	t.Cleanup(func() { _ = conn.Close() })
	return w
}

func (w *lineClient) say(line string) {
	w.t.Helper()
	if err := w.conn.Write([]byte(expand(line, w.rev))); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	if err := w.conn.Flush(); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
}

// call returns a call of a tool.
func (w *lineClient) call(id, tool string) string {
	meta := ""
	if w.rev.Modern() {
		meta = ",$META"
	}
	return expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q%s}}`, id, tool, meta), w.rev)
}

func (w *lineClient) cancel(id string) {
	w.t.Helper()
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, id))
}

// hear returns the next message, "" at the end.
func (w *lineClient) hear() string {
	w.t.Helper()
	select {
	case message := <-w.heard:
		return message
	case <-time.After(patience):
		w.t.Fatal("nothing is heard")
		return ""
	}
}

// answer hears the answer to a request, which must be the next message.
func (w *lineClient) answer(id, want string) {
	w.t.Helper()
	if got := w.hear(); !strings.Contains(got, fmt.Sprintf(`"id":%q`, id)) || !strings.Contains(got, want) {
		w.t.Fatalf("heard %.300s, want the answer to %q with %s", got, id, want)
	}
}

// holding is a server whose tool hold tells when it begins, and ends when it
// must; touch tells that it was called.
type holding struct {
	*mcp.Server
	begun, ended, touched chan string
}

func hold(t *testing.T, opts mcp.Options) *holding {
	h := &holding{begun: make(chan string, 1000), ended: make(chan string, 1000), touched: make(chan string, 20_000)}
	h.Server = fixture(t, &opts)
	h.MustAdd(mcp.Tool("hold", func(f *mcp.Frame, _ empty) (string, error) {
		id := f.Request().ID.String()
		h.begun <- id
		<-f.Done()
		h.ended <- id
		return "held", nil
	}), mcp.Tool("touch", func(f *mcp.Frame, _ empty) (string, error) {
		h.touched <- f.Request().ID.String()
		return "touched", nil
	}), mcp.Tool("ask", func(f *mcp.Frame, _ empty) (string, error) {
		roots, err := frame.Roots(f, "roots")
		return fmt.Sprint(len(roots), " roots"), err
	}))
	return h
}

func awaits(t testing.TB, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if !strings.Contains(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s does not come", want)
	}
}

// readRevisions are a revision with batches, the others that differ in what is
// sent, and the modern one.
var readRevisions = []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20251125, protocol.Latest}

var readLegacy = readRevisions[:3]

// holds runs a test on servers that serve one call at a time.
func holds(t *testing.T, opts mcp.Options, revs []protocol.Revision, test func(t *testing.T, h *holding, w *lineClient)) {
	var h = make(map[*mcp.Server]*holding)
	made := make(chan struct{}, 1)
	onWires(t, func(t *testing.T) *mcp.Server {
		one := hold(t, opts)
		made <- struct{}{}
		h[one.Server] = one
		<-made
		return one.Server
	}, revs, func(t *testing.T, s *mcp.Server, w *lineClient) {
		made <- struct{}{}
		one := h[s]
		<-made
		test(t, one, w)
	})
}

// A call at the limit is cancelled although another one waits behind it, which
// then runs; a call that waits and is cancelled never runs, is not answered, and
// frees its id at once.
func TestCancelAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readRevisions, func(t *testing.T, h *holding, w *lineClient) {
		w.say(w.call("first", "hold"))
		awaits(t, h.begun, "first")
		w.say(w.call("second", "touch"))
		w.say(w.call("third", "touch"))
		w.say(w.call("fourth", "touch"))
		w.cancel("third")
		w.say(w.call("third", "nothing")) // the id is free
		w.cancel("second")
		w.cancel("first")
		awaits(t, h.ended, "first")
		w.answer("fourth", "touched")
		w.answer("third", `"content"`)
		awaits(t, h.touched, "fourth")
		w.say(w.call("last", "nothing"))
		w.answer("last", `"content"`)
		if len(h.touched) > 0 {
			t.Errorf("%s ran although it was cancelled", <-h.touched)
		}
	})
}

// Pings are answered whatever waits.
func TestPingAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}, Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, readLegacy, func(t *testing.T, h *holding, w *lineClient) {
		w.say(w.call("first", "hold"))
		awaits(t, h.begun, "first")
		w.say(w.call("second", "touch"))
		for i := range 10 {
			id := fmt.Sprint("ping", i)
			w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id))
			w.answer(id, `"result":{}`)
		}
	})
}

// The answer to a question is seen behind requests that wait for the call that
// asks.
func TestAnswerAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readLegacy, func(t *testing.T, h *holding, w *lineClient) {
		w.say(w.call("asks", "ask"))
		if got := w.hear(); !strings.Contains(got, `"roots/list"`) {
			t.Fatalf("heard %s, want the question", got)
		}
		w.say(w.call("waits", "touch"))
		w.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		w.answer("ping", `"result":{}`)
		w.say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		w.answer("asks", "0 roots")
		w.answer("waits", "touched")
	})
}

// More calls ask than run at a time, and every one is answered.
func TestManyAsk(t *testing.T) {
	const calls = mcp.DefaultMaxConcurrent + 45
	holds(t, mcp.Options{}, []protocol.Revision{protocol.LatestLegacy}, func(t *testing.T, h *holding, w *lineClient) {
		said := make(chan struct{})
		go func() {
			defer close(said)
			for i := range calls {
				if err := w.conn.Write([]byte(w.call(fmt.Sprint("ask", i), "ask"))); err != nil {
					t.Error(err)
				}
			}
			_ = w.conn.Flush()
		}()
		answered := 0
		var questions []string
		for answered < calls {
			message := w.hear()
			if strings.Contains(message, `"roots/list"`) {
				_, id, _ := strings.Cut(message, `"id":`)
				id, _, _ = strings.Cut(id, ",")
				questions = append(questions, id)
				if len(questions) < mcp.DefaultMaxConcurrent && answered == 0 {
					continue // until as many ask as can
				}
				for _, id := range questions {
					w.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
				}
				questions = nil
			} else if answered++; !strings.Contains(message, "0 roots") {
				t.Fatalf("heard %.300s", message)
			}
		}
		<-said
	})
}

// A client that leaves is noticed although calls wait: what runs is cancelled,
// what waits never runs.
func TestLeaveAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}, Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, readRevisions, func(t *testing.T, h *holding, w *lineClient) {
		w.say(w.call("first", "hold"))
		awaits(t, h.begun, "first")
		w.say(w.call("second", "touch"))
		w.say(w.call("third", "touch"))
		_ = w.conn.Close()
		awaits(t, h.ended, "first")
		if err := h.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if len(h.touched) > 0 {
			t.Errorf("%s ran when its client had left", <-h.touched)
		}
	})
}

// At a shutdown, what runs may end and what waits is refused at once.
func TestShutdownAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readRevisions, func(t *testing.T, h *holding, w *lineClient) {
		w.say(w.call("first", "hold"))
		awaits(t, h.begun, "first")
		w.say(w.call("second", "touch"))
		w.say(w.call("third", "touch"))
		w.say(`{"jsonrpc":"2.0","id":"none","method":"no/such"` + map[bool]string{true: `,"params":{$META}`}[w.rev.Modern()] + `}`)
		w.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"` + map[bool]string{true: `,"params":{$META}`}[w.rev.Modern()] + `}`)
		w.answer("ping", `"id":"ping"`) // all before it was read
		down := make(chan error, 1)
		go func() { down <- h.Shutdown(context.Background()) }()
		for _, id := range []string{"second", "third", "none"} {
			w.answer(id, "the server shuts down")
		}
		w.cancel("first")
		select {
		case err := <-down:
			if err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		case <-time.After(patience):
			t.Error("Shutdown does not return")
		}
	})
}

// What waits has a limit, beyond which requests are refused and not lost.
func TestWaitingLimit(t *testing.T) {
	const sent, atLeast = 16_500, 10_000 // answers to more would not fit into what may be unread
	kinds := wireKinds[:5]               // HTTP+SSE would need thousands of requests to say the same
	if testdep.Race {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			h := hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
			w := newWire(t, kind.dial(t, h.Server), protocol.Latest)
			w.say(w.call("first", "hold"))
			awaits(t, h.begun, "first")
			for i := range sent {
				w.say(w.call(fmt.Sprint("n", i), "touch"))
			}
			if got := w.hear(); !strings.Contains(got, "too much is waiting") {
				t.Fatalf("heard %.300s", got)
			}
			w.cancel("first")
			ran, refused := 0, 1
			for ran+refused < sent {
				if got := w.hear(); strings.Contains(got, "touched") {
					ran++
				} else if refused++; !strings.Contains(got, "too much is waiting") {
					t.Fatalf("heard %.300s", got)
				}
			}
			if ran < atLeast {
				t.Errorf("%d calls ran, want %d", ran, atLeast)
			}
		})
	}
}

// Nor do the bytes of what waits grow without a limit.
func TestWaitingBytes(t *testing.T) {
	h := hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	client, server := transport.Pipe()
	serveWire(t, h.Server, server)
	w := newWire(t, client, protocol.Latest)
	w.say(w.call("first", "hold"))
	awaits(t, h.begun, "first")
	pad := strings.Repeat(" ", 1<<20)
	for i := range 20 {
		w.say(w.call(fmt.Sprint("n", i), "touch") + pad)
	}
	refused := 0
	w.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	for got := w.hear(); !strings.Contains(got, `"id":"ping"`); got = w.hear() {
		if refused++; !strings.Contains(got, "too much is waiting") {
			t.Errorf("heard %.300s", got)
		}
	}
	if refused == 0 {
		t.Error("20 MiB wait")
	}
}

// While initialize is served, what follows waits for it, but pings do not, and
// the end is seen.
func TestInitHolds(t *testing.T) {
	begun, let := make(chan string, 10), make(chan error)
	var s *mcp.Server
	for _, kind := range wireKinds {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprint(kind.name, "/refused ", refuse), func(t *testing.T) {
				s = fixture(t, &mcp.Options{OnSessionStart: func(f *mcp.Frame) error {
					begun <- "init"
					select {
					case err := <-let:
						return err
					case <-f.Done():
						begun <- "ended"
						return f.Err()
					}
				},
				})
				w := newWire(t, kind.dial(t, s), protocol.LatestLegacy)
				w.say(initLine)
				awaits(t, begun, "init")
				w.say(w.call("early", "nothing"))
				w.say(w.call("never", "count"))
				w.cancel("never")
				w.say(`{"jsonrpc":`)
				w.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
				w.answer("ping", `"result":{}`)
				if refuse {
					let <- errors.New("not you")
					if got := w.hear(); !strings.Contains(got, "not you") {
						t.Errorf("heard %s", got)
					}
					w.answer("early", "not initialized")
				} else {
					let <- nil
					if got := w.hear(); !strings.Contains(got, `"serverInfo"`) {
						t.Errorf("heard %s", got)
					}
				}
				for heard := ""; !strings.Contains(heard, "-32700") || !refuse && !strings.Contains(heard, "early"); {
					heard += w.hear()
				}
			})
		}
		t.Run(kind.name+"/left", func(t *testing.T) {
			w := newWire(t, kind.dial(t, s), protocol.LatestLegacy)
			w.say(initLine)
			awaits(t, begun, "init")
			_ = w.conn.Close()
			if kind.name == "stdio" || kind.name == "tcp" || kind.name == "unix" {
				ctx, cancel := context.WithCancel(context.Background())
				cancel() // in place of the ten seconds of Grace
				_ = s.Shutdown(ctx)
			}
			awaits(t, begun, "ended")
		})
	}
}

// The func of a notification may take its time, and ask: what the client says
// meanwhile is read.
func TestNotificationAsks(t *testing.T) {
	onWires(t, func(t *testing.T) *mcp.Server {
		s := fixture(t, nil)
		if err := s.OnNotification("notifications/acme/hello", func(f *mcp.Frame) error {
			roots, err := frame.Roots(f, "roots")
			_ = f.Log(protocol.LevelError, fmt.Sprint("answered ", len(roots), err))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return s
	}, readLegacy, func(t *testing.T, _ *mcp.Server, w *lineClient) {
		w.say(`{"jsonrpc":"2.0","method":"notifications/acme/hello"}`)
		if got := w.hear(); !strings.Contains(got, "roots/list") {
			t.Fatalf("heard %s", got)
		}
		w.say(w.call("after", "nothing")) // the order is kept
		w.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		w.answer("ping", `"result":{}`)
		w.say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		if got := w.hear(); !strings.Contains(got, "answered 0") {
			t.Fatalf("heard %s", got)
		}
		w.answer("after", `"content"`)
	})
}

// What is in batches is seen as soon as what comes alone.
func TestBatchAtLimit(t *testing.T) {
	holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, []protocol.Revision{protocol.V20250326}, func(t *testing.T, h *holding, w *lineClient) {
		w.say("[" + w.call("first", "hold") + "," + w.call("second", "touch") + "," + w.call("third", "touch") + "]")
		awaits(t, h.begun, "first")
		w.say(`[{"jsonrpc":"2.0","id":"ping","method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"second"}}]`)
		w.answer("ping", `[{"jsonrpc":"2.0","id":"ping","result":{}}]`)
		w.say("[" + w.call("fourth", "touch") + "," + w.call("asks", "ask") + "]")
		w.cancel("first")
		w.answer("third", `touched`) // a batch of one answer: nobody wants the others
		if got := w.hear(); !strings.Contains(got, "roots/list") {
			t.Fatalf("heard %s", got)
		}
		w.say(`[{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}]`)
		w.answer("fourth", `"id":"asks"`)
		awaits(t, h.touched, "third")
		awaits(t, h.touched, "fourth")
	})
}

// Over streamable HTTP the same: requests beyond the limit are refused, pings
// and cancellations are not.
func TestSessionAtLimit(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		t.Run(rev.String(), func(t *testing.T) {
			h := hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
			c := openHTTP(t, h.Server, rev).(*httpClient)
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, hello(rev.String())))
			call := func(id, tool string) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q}}`, id, tool)
			}
			first := make(chan []string, 1)
			go func() { first <- c.say(call("first", "hold")) }()
			awaits(t, h.begun, "first")
			req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(call("second", "touch")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			c.setHeaders(req, "")
			res, err := c.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := bufio.NewReader(res.Body).ReadString('}')
			_ = res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable || err != nil {
				t.Errorf("a second call: %s %s %v", res.Status, body, err)
			}
			if got := c.say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); len(got) != 1 || !strings.Contains(got[0], `"result":{}`) {
				t.Errorf("ping: %s", got)
			}
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"first"}}`)
			awaits(t, h.ended, "first")
			if got := <-first; len(got) != 0 {
				t.Errorf("the cancelled call was answered %s", got)
			}
		})
	}
}
