package http_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

func awaits(t testing.TB, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if !strings.Contains(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	case <-time.After(harness.Patience):
		t.Fatalf("%s does not come", want)
	}
}

// readRevisions are a revision with batches, the others that differ in what is
// sent, and the modern one.
var readRevisions = []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20251125, protocol.Latest}

var readLegacy = readRevisions[:3]

// A call at the limit is cancelled although another one waits behind it, which
// then runs; a call that waits and is cancelled never runs, is not answered, and
// frees its id at once.
func TestCancelAtLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readRevisions, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("first", "hold"))
		awaits(t, h.Begun, "first")
		w.Say(w.Call("second", "touch"))
		w.Say(w.Call("third", "touch"))
		w.Say(w.Call("fourth", "touch"))
		w.Cancel("third")
		w.Say(w.Call("third", "nothing")) // the id is free
		w.Cancel("second")
		w.Cancel("first")
		awaits(t, h.Ended, "first")
		w.Answer("fourth", "touched")
		w.Answer("third", `"content"`)
		awaits(t, h.Touched, "fourth")
		w.Say(w.Call("last", "nothing"))
		w.Answer("last", `"content"`)
		if len(h.Touched) > 0 {
			t.Errorf("%s ran although it was cancelled", <-h.Touched)
		}
	})
}

// Pings are answered whatever waits.
func TestPingAtLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}, Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, readLegacy, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("first", "hold"))
		awaits(t, h.Begun, "first")
		w.Say(w.Call("second", "touch"))
		for i := range 10 {
			id := fmt.Sprint("ping", i)
			w.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id))
			w.Answer(id, `"result":{}`)
		}
	})
}

// The answer to a question is seen behind requests that wait for the call that
// asks.
func TestAnswerAtLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readLegacy, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("asks", "ask"))
		if got := w.Hear(); !strings.Contains(got, `"roots/list"`) {
			t.Fatalf("heard %s, want the question", got)
		}
		w.Say(w.Call("waits", "touch"))
		w.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		w.Answer("ping", `"result":{}`)
		w.Say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		w.Answer("asks", "0 roots")
		w.Answer("waits", "touched")
	})
}

// More calls ask than run at a time, and every one is answered.
func TestManyAsk(t *testing.T) {
	const limit = 256 // calls at a time, by default
	const calls = limit + 45
	harness.Holds(t, mcp.Options{}, []protocol.Revision{protocol.LatestLegacy}, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		said := make(chan struct{})
		go func() {
			defer close(said)
			for i := range calls {
				if err := w.Conn.Write([]byte(w.Call(fmt.Sprint("ask", i), "ask"))); err != nil {
					t.Error(err)
				}
			}
			_ = w.Conn.Flush()
		}()
		answered := 0
		var questions []string
		for answered < calls {
			message := w.Hear()
			if strings.Contains(message, `"roots/list"`) {
				_, id, _ := strings.Cut(message, `"id":`)
				id, _, _ = strings.Cut(id, ",")
				questions = append(questions, id)
				if len(questions) < limit && answered == 0 {
					continue // until as many ask as can
				}
				for _, id := range questions {
					w.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
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
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}, Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, readRevisions, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("first", "hold"))
		awaits(t, h.Begun, "first")
		w.Say(w.Call("second", "touch"))
		w.Say(w.Call("third", "touch"))
		_ = w.Conn.Close()
		awaits(t, h.Ended, "first")
		if err := h.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if len(h.Touched) > 0 {
			t.Errorf("%s ran when its client had left", <-h.Touched)
		}
	})
}

// At a shutdown, what runs may end and what waits is refused at once.
func TestShutdownAtLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, readRevisions, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("first", "hold"))
		awaits(t, h.Begun, "first")
		w.Say(w.Call("second", "touch"))
		w.Say(w.Call("third", "touch"))
		w.Say(`{"jsonrpc":"2.0","id":"none","method":"no/such"` + map[bool]string{true: `,"params":{$META}`}[w.Rev.Modern()] + `}`)
		w.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"` + map[bool]string{true: `,"params":{$META}`}[w.Rev.Modern()] + `}`)
		w.Answer("ping", `"id":"ping"`) // all before it was read
		down := make(chan error, 1)
		go func() { down <- h.Shutdown(context.Background()) }()
		for _, id := range []string{"second", "third", "none"} {
			w.Answer(id, "the server shuts down")
		}
		w.Cancel("first")
		select {
		case err := <-down:
			if err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		case <-time.After(harness.Patience):
			t.Error("Shutdown does not return")
		}
	})
}

// What waits has a limit, beyond which requests are refused and not lost.
func TestWaitingLimit(t *testing.T) {
	const sent, atLeast = 16_500, 10_000 // answers to more would not fit into what may be unread
	kinds := harness.WireKinds[:5]       // HTTP+SSE would need thousands of requests to say the same
	if testdep.Race {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			h := harness.Hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
			w := harness.NewWire(t, kind.Dial(t, h.Server), protocol.Latest)
			w.Say(w.Call("first", "hold"))
			awaits(t, h.Begun, "first")
			for i := range sent {
				w.Say(w.Call(fmt.Sprint("n", i), "touch"))
			}
			if got := w.Hear(); !strings.Contains(got, "too many messages wait") {
				t.Fatalf("heard %.300s", got)
			}
			w.Cancel("first")
			ran, refused := 0, 1
			for ran+refused < sent {
				if got := w.Hear(); strings.Contains(got, "touched") {
					ran++
				} else if refused++; !strings.Contains(got, "too many messages wait") {
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
	h := harness.Hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	client, server := transport.Pipe()
	harness.ServeWire(t, h.Server, server)
	w := harness.NewWire(t, client, protocol.Latest)
	w.Say(w.Call("first", "hold"))
	awaits(t, h.Begun, "first")
	pad := strings.Repeat(" ", 1<<20)
	for i := range 20 {
		w.Say(w.Call(fmt.Sprint("n", i), "touch") + pad)
	}
	refused := 0
	w.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	for got := w.Hear(); !strings.Contains(got, `"id":"ping"`); got = w.Hear() {
		if refused++; !strings.Contains(got, "too many messages wait") {
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
	for _, kind := range harness.WireKinds {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprint(kind.Name, "/refused ", refuse), func(t *testing.T) {
				s = harness.Fixture(t, &mcp.Options{OnSessionStart: func(f *mcp.Frame) error {
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
				w := harness.NewWire(t, kind.Dial(t, s), protocol.LatestLegacy)
				w.Say(harness.InitLine)
				awaits(t, begun, "init")
				w.Say(w.Call("early", "nothing"))
				w.Say(w.Call("never", "count"))
				w.Cancel("never")
				w.Say(`{"jsonrpc":`)
				w.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
				w.Answer("ping", `"result":{}`)
				if refuse {
					let <- errors.New("not you")
					if got := w.Hear(); !strings.Contains(got, "not you") {
						t.Errorf("heard %s", got)
					}
					w.Answer("early", "not initialized")
				} else {
					let <- nil
					if got := w.Hear(); !strings.Contains(got, `"serverInfo"`) {
						t.Errorf("heard %s", got)
					}
				}
				for heard := ""; !strings.Contains(heard, "-32700") || !refuse && !strings.Contains(heard, "early"); {
					heard += w.Hear()
				}
			})
		}
		t.Run(kind.Name+"/left", func(t *testing.T) {
			w := harness.NewWire(t, kind.Dial(t, s), protocol.LatestLegacy)
			w.Say(harness.InitLine)
			awaits(t, begun, "init")
			_ = w.Conn.Close()
			if kind.Name == "stdio" || kind.Name == "tcp" || kind.Name == "unix" {
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
	harness.OnWires(t, func(t *testing.T) *mcp.Server {
		s := harness.Fixture(t, nil)
		if err := s.OnNotification("notifications/acme/hello", func(f *mcp.Frame) error {
			roots, err := frame.Roots(f, "roots")
			_ = f.Log(protocol.LevelError, fmt.Sprint("answered ", len(roots), err))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return s
	}, readLegacy, func(t *testing.T, _ *mcp.Server, w *harness.LineClient) {
		w.Say(`{"jsonrpc":"2.0","method":"notifications/acme/hello"}`)
		if got := w.Hear(); !strings.Contains(got, "roots/list") {
			t.Fatalf("heard %s", got)
		}
		w.Say(w.Call("after", "nothing")) // the order is kept
		w.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		w.Answer("ping", `"result":{}`)
		w.Say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		if got := w.Hear(); !strings.Contains(got, "answered 0") {
			t.Fatalf("heard %s", got)
		}
		w.Answer("after", `"content"`)
	})
}

// What is in batches is seen as soon as what comes alone.
func TestBatchAtLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, []protocol.Revision{protocol.V20250326}, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say("[" + w.Call("first", "hold") + "," + w.Call("second", "touch") + "," + w.Call("third", "touch") + "]")
		awaits(t, h.Begun, "first")
		w.Say(`[{"jsonrpc":"2.0","id":"ping","method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"second"}}]`)
		w.Answer("ping", `[{"jsonrpc":"2.0","id":"ping","result":{}}]`)
		w.Say("[" + w.Call("fourth", "touch") + "," + w.Call("asks", "ask") + "]")
		w.Cancel("first")
		w.Answer("third", `touched`) // a batch of one answer: nobody wants the others
		if got := w.Hear(); !strings.Contains(got, "roots/list") {
			t.Fatalf("heard %s", got)
		}
		w.Say(`[{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}]`)
		w.Answer("fourth", `"id":"asks"`)
		awaits(t, h.Touched, "third")
		awaits(t, h.Touched, "fourth")
	})
}

// Over streamable HTTP the same: requests beyond the limit are refused, pings
// and cancellations are not.
func TestSessionAtLimit(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		t.Run(rev.String(), func(t *testing.T) {
			h := harness.Hold(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
			c := harness.OpenHTTP(t, h.Server, rev).(*harness.HTTPClient)
			c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, harness.Hello(rev.String())))
			call := func(id, tool string) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q}}`, id, tool)
			}
			first := make(chan []string, 1)
			go func() { first <- c.Say(call("first", "hold")) }()
			awaits(t, h.Begun, "first")
			req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(call("second", "touch")))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			c.SetHeaders(req, "")
			res, err := c.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := bufio.NewReader(res.Body).ReadString('}')
			_ = res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable || err != nil {
				t.Errorf("a second call: %s %s %v", res.Status, body, err)
			}
			if got := c.Say(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); len(got) != 1 || !strings.Contains(got[0], `"result":{}`) {
				t.Errorf("ping: %s", got)
			}
			c.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"first"}}`)
			awaits(t, h.Ended, "first")
			if got := <-first; len(got) != 0 {
				t.Errorf("the cancelled call was answered %s", got)
			}
		})
	}
}
