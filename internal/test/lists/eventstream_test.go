package lists_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// streamer is a client with one events/stream.
type streamer struct {
	t    *testing.T
	hear func() string // the next message; "" at the end
	stop func()        // the client goes, or cancels
}

// message is what a streamer received.
type message struct {
	Method string
	Params struct {
		EventID, Name string
		Cursor        string
		Truncated     bool
		Data          comment
		Error         *struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	ID     int
	Result json.RawMessage
	Error  *struct{ Code int }
}

// next returns the next message, and checks that it is of the stream.
func (s *streamer) next() (m message) {
	s.t.Helper()
	text := s.hear()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		s.t.Fatalf("received %q: %v", text, err)
	}
	if m.Method != "" && string(m.Params.Meta["io.modelcontextprotocol/subscriptionId"]) != "7" {
		s.t.Errorf("not of the stream: %s", text)
	}
	return m
}

// want fails the test unless the next message is the one described: "active", "active
// truncated", "event TEXT", "heartbeat", "error", "terminated CODE", "result", "refused
// CODE". Heartbeats that are not wanted are passed over.
func (s *streamer) want(what ...string) (last message) {
	s.t.Helper()
	for _, want := range what {
		m := s.next()
		for m.Method == "notifications/events/heartbeat" && want != "heartbeat" {
			m = s.next()
		}
		method := strings.TrimPrefix(m.Method, "notifications/events/")
		got := method
		switch {
		case method == "event":
			got += " " + m.Params.Data.Text
		case method == "active" && m.Params.Truncated:
			got += " truncated"
		case method == "terminated":
			got += fmt.Sprint(" ", m.Params.Error.Code)
		case m.Result != nil && strings.Contains(string(m.Result), `"resultType":"complete"`) && strings.Contains(string(m.Result), `"io.modelcontextprotocol/subscriptionId":7`):
			got = "result"
		case m.Error != nil:
			got = fmt.Sprint("refused ", m.Error.Code)
		}
		if got != want {
			s.t.Fatalf("got %q: %+v, want %q", got, m, want)
		}
		last = m
	}
	return last
}

// streamWith returns a request for a stream of comments.
func streamWith(name, members string) string {
	return harness.Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"events/stream","params":{"name":%q,"arguments":{"document":"a"}%s,$META}}`, name, members), protocol.Latest)
}

// streaming runs a test in a bubble over a pipe, as stdio and WebSocket are, and over HTTP,
// with connections that are taken over and with ones that are not.
func streaming(t *testing.T, server func(t *testing.T) *mcp.Server, test func(t *testing.T, s *mcp.Server, open func(line string) *streamer)) {
	t.Run("pipe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := server(t)
			test(t, s, func(line string) *streamer {
				p := harness.PipeWire(t, s)
				p.Say(line)
				return &streamer{t, p.Hear, func() {
					p.Say(harness.Expand(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,$META}}`, protocol.Latest))
				}}
			})
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	})
	for _, hijack := range []bool{true, false} {
		t.Run(fmt.Sprintf("http, taken over: %v", hijack), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := server(t)
				n := &harness.Network{Conns: make(chan net.Conn), Done: make(chan struct{})}
				handler := s.Handler()
				if !hijack {
					handler = notTaken(handler)
				}
				web := &http.Server{Handler: handler}
				served := make(chan error, 1)
				go func() { served <- web.Serve(n) }()
				test(t, s, func(line string) *streamer {
					c := n.Dial(t, line)
					return &streamer{t, func() string {
						for {
							line := c.Line()
							if text, ok := strings.CutPrefix(line, "data: "); ok || line == "" || line[0] == '{' {
								return strings.TrimPrefix(text, "data: ")
							}
							if line != "event: message" && line != ":" && !strings.HasPrefix(line, "retry:") {
								t.Errorf("got %q", line)
							}
						}
					}, func() { c.Conn.Close() }}
				})
				if err := s.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				web.Close()
				<-served
			})
		})
	}
}

// notTaken hides from a handler that it can take the connection over.
func notTaken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "identity") // as one that compresses would say
		h.ServeHTTP(w, r)
	})
}

// A stream delivers what matches, in order and with its position, has heartbeats while
// there is nothing, continues at a cursor, and ends with an empty result.
func TestEventStream(t *testing.T) {
	for name, opts := range map[string]func(t *testing.T) *mcp.Options{
		"alone": func(*testing.T) *mcp.Options { return nil }, "store": withStore,
		"no signs of life": func(*testing.T) *mcp.Options { return &mcp.Options{Timeouts: mcp.Timeouts{KeepAlive: -1}} },
	} {
		t.Run(name, func(t *testing.T) {
			streaming(t, func(t *testing.T) *mcp.Server { return eventServer(opts(t)) }, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
				emit(t, s, "a", "before")
				c := open(streamWith("comment.created", ""))
				first := c.want("active").Params.Cursor
				if first == "" {
					t.Error("no cursor")
				}
				emit(t, s, "a", "one")
				emit(t, s, "b", "other")
				emit(t, s, "a", "two")
				one := c.want("event one").Params
				if one.EventID != "id-one" || one.Name != "comment.created" || one.Cursor == "" || one.Cursor == first {
					t.Errorf("received %+v", one)
				}
				two := c.want("event two").Params.Cursor
				began := time.Now()
				quiet := c.want("heartbeat", "heartbeat").Params.Cursor
				if took := time.Since(began); took < 40*time.Second || took > time.Minute || quiet == two {
					t.Errorf("two heartbeats after %v", took)
				}
				other := open(streamWith("comment.created", fmt.Sprintf(`,"cursor":%q`, one.Cursor)))
				other.want("active", "event two")
				emit(t, s, "a", "three")
				c.want("event three")
				other.want("event three")
				later := open(streamWith("comment.created", fmt.Sprintf(`,"cursor":%q`, quiet)))
				later.want("active", "event three")
				later.stop()
				synctest.Wait()
				down := make(chan error, 1)
				go func() { down <- s.Shutdown(context.Background()) }()
				c.want("result")
				other.want("result")
				if err := <-down; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What cannot begin is an error in place of a stream: an unknown type, arguments that do
// not fit, a session of an older revision.
func TestEventStreamRefused(t *testing.T) {
	streaming(t, func(*testing.T) *mcp.Server { return eventServer(nil) }, func(t *testing.T, _ *mcp.Server, open func(string) *streamer) {
		open(streamWith("comment.creatd", "")).want("refused -32011")
		open(streamWith("comment.created", `,"cursor":7`)).want("refused -32602")
		open(strings.Replace(streamWith("comment.created", ""), `"document":"a"`, `"document":1.5`, 1)).want("refused -32602")
	})
	mcptest.Each(t, func() *mcp.Server { return eventServer(nil) }, func(t *testing.T, c *mcptest.Client) {
		delivery := c.Events()[0].Delivery
		if c.Revision().Modern() {
			if fmt.Sprint(delivery) != "[poll push]" {
				t.Errorf("delivery %v", delivery)
			}
			return
		}
		if got := (pipe{c}).Ask("events/stream", `{"name":"comment.created","arguments":{"document":"a"}}`); !strings.Contains(got, "-32601") || fmt.Sprint(delivery) != "[poll]" {
			t.Errorf("delivery %v: %s", delivery, got)
		}
	})
}

// A stream whose events the log has dropped says so, and continues with the oldest that
// are left; so does one that begins at such a position, in the future, or anywhere else.
func TestEventStreamGap(t *testing.T) {
	streaming(t, func(*testing.T) *mcp.Server {
		return eventServer(&mcp.Options{Limits: mcp.Limits{EventLog: 1000}})
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		first := open(streamWith("comment.created", ""))
		cursor := first.want("active").Params.Cursor
		first.stop()
		time.Sleep(2 * time.Minute)
		for i := range 20 { // nothing of it is in memory
			emit(t, s, "a", fmt.Sprint(i))
		}
		c := open(streamWith("comment.created", fmt.Sprintf(`,"cursor":%q`, cursor)))
		c.want("active truncated")
		if m := c.next(); m.Params.Data.Text < "15" {
			t.Errorf("first event %+v", m)
		}
		time.Sleep(time.Minute)
		born, _, _ := strings.Cut(cursor, ".")
		for _, cursor := range []string{"x", born + ".zzzzzzzzzz", "e1other.1"} {
			c := open(streamWith("comment.created", fmt.Sprintf(`,"cursor":%q,"maxAgeMs":1000`, cursor)))
			c.want("active truncated")
			emit(t, s, "a", "next")
			c.want("event next")
		}
	})
}

// The rights of a client are asked at each delivery: who lost them, and whose type is gone,
// is told so, and the stream ends.
func TestEventStreamRights(t *testing.T) {
	var hidden atomic.Bool
	streaming(t, func(*testing.T) *mcp.Server {
		hidden.Store(false)
		return eventServer(nil, mcp.VisibleTo(func(*mcp.Frame) bool { return !hidden.Load() }))
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		c, quiet := open(streamWith("comment.created", "")), open(streamWith("comment.created", ""))
		c.want("active")
		quiet.want("active")
		hidden.Store(true)
		emit(t, s, "a", "secret")
		c.want("terminated -32012", "result")
		quiet.want("terminated -32012", "result")
		open(streamWith("comment.created", "")).want("refused -32011")
		hidden.Store(false)
		c = open(streamWith("comment.created", ""))
		c.want("active")
		s.Remove(mcp.KindEvent, "comment.created")
		c.want("terminated -32011", "result")
	})
}

// A stream waits for a match that cannot decide, and leaves the event out after a while; a
// match that panics or hangs costs its own event and stream.
func TestEventStreamUndecided(t *testing.T) {
	var broken atomic.Bool
	streaming(t, func(t *testing.T) *mcp.Server {
		broken.Store(true)
		s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, nil)
		s.MustAdd(mcp.EventType("x", func(_ *mcp.Frame, in watchIn, c comment) (bool, error) {
			switch {
			case c.Text == "panics":
				panic("always")
			case c.Text == "fails" && broken.Load():
				return false, errors.New("the database is away: s3cret")
			}
			return true, nil
		}))
		return s
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		add := func(text string) {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: comment{"a", text}}); err != nil {
				t.Fatal(err)
			}
		}
		c := open(streamWith("x", ""))
		c.want("active")
		add("one")
		add("panics")
		add("fails")
		add("two")
		c.want("event one")
		if m := c.want("error"); strings.Contains(m.Params.Error.Message, "s3cret") {
			t.Errorf("got %+v", m)
		}
		time.AfterFunc(5*time.Second, func() { broken.Store(false) })
		began := time.Now()
		c.want("event fails", "event two")
		if took := time.Since(began); took != 11*time.Second {
			t.Errorf("after %v", took)
		}
		broken.Store(true)
		add("fails")
		add("three")
		began = time.Now()
		c.want("error", "heartbeat", "heartbeat", "active truncated", "event three")
		if took := time.Since(began); took != 71*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// The tries at rules that panic are not those at match, which may fail as they come back.
func TestEventStreamRulesBack(t *testing.T) {
	var rules, match atomic.Bool
	streaming(t, func(t *testing.T) *mcp.Server {
		rules.Store(false)
		match.Store(true)
		s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, nil)
		s.MustAdd(mcp.EventType("x", func(*mcp.Frame, watchIn, comment) (bool, error) {
			if match.CompareAndSwap(true, false) {
				return false, errors.New("the database is away")
			}
			return true, nil
		}, mcp.VisibleTo(func(*mcp.Frame) bool {
			if rules.Load() {
				panic("the database is away")
			}
			return true
		})))
		return s
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		c := open(streamWith("x", ""))
		c.want("active")
		rules.Store(true)
		time.AfterFunc(100*time.Second, func() { rules.Store(false) })
		if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: comment{"a", "one"}}); err != nil {
			t.Fatal(err)
		}
		c.want("error", "heartbeat", "heartbeat", "heartbeat", "heartbeat", "error", "event one")
	})
}

// A store that is away ends no stream, and what was emitted afterwards arrives.
func TestEventStreamWithoutStore(t *testing.T) {
	var store *absentStore
	streaming(t, func(t *testing.T) *mcp.Server {
		opts := withStore(t)
		store = &absentStore{Store: opts.Store}
		opts.Store = store
		return eventServer(opts)
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		c := open(streamWith("comment.created", ""))
		c.want("active")
		store.absent.Store(true)
		c.want("heartbeat", "heartbeat")
		open(streamWith("comment.created", "")).want("refused 503")
		store.absent.Store(false)
		emit(t, s, "a", "later")
		c.want("event later")
	})
}

// Streams at two replicas receive what is emitted at either, soon, also if the store loses
// a hint, and each once.
func TestEventStreamAtReplicas(t *testing.T) {
	opts := withStore(t)
	streaming(t, func(t *testing.T) *mcp.Server { opts = withStore(t); return eventServer(opts) }, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		other := ended(t, eventServer(opts))
		c := open(streamWith("comment.created", ""))
		c.want("active")
		for i := range 20 {
			at := s
			if i%2 == 0 {
				at = other
			}
			began := time.Now()
			emit(t, at, "a", fmt.Sprint(i))
			c.want(fmt.Sprint("event ", i))
			if took := time.Since(began); took > time.Second {
				t.Errorf("event %d after %v", i, took)
			}
		}
	})
}

// listen clients are notified that the list of event types has changed, if they want that;
// sessions are not.
func TestEventsListChanged(t *testing.T) {
	streaming(t, func(*testing.T) *mcp.Server { return eventServer(nil) }, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		c := open(harness.Listen("7", `{"eventsListChanged":true,"toolsListChanged":true}`))
		if m := c.hear(); !strings.Contains(m, `{"toolsListChanged":true,"eventsListChanged":true}`) {
			t.Errorf("acknowledged %s", m)
		}
		s.MustAdd(mcp.EventType("x", concerns))
		if m := c.hear(); m != harness.Tagged("7", "events/list_changed", "") {
			t.Errorf("received %s", m)
		}
	})
}

// Streams are no running requests: with one request at a time, calls are served beside
// them. Subscriptions have a limit, at which one more is refused.
func TestEventStreamsAndCalls(t *testing.T) {
	streaming(t, func(*testing.T) *mcp.Server {
		s := eventServer(&mcp.Options{Limits: mcp.Limits{Concurrent: 1, Subscriptions: 3}})
		s.MustAdd(mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }, mcp.Doc("Greets")))
		return s
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		for range 3 {
			open(streamWith("comment.created", "")).want("active")
		}
		call := open(harness.Expand(`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{$META}}`, protocol.Latest))
		if m := call.next(); m.Result == nil {
			t.Errorf("received %+v", m)
		}
		open(streamWith("comment.created", "")).want("refused 429")
	})
}

// Drain and Shutdown end streams, and a client that goes frees its place.
func TestEventStreamsEnd(t *testing.T) {
	streaming(t, func(*testing.T) *mcp.Server {
		return eventServer(&mcp.Options{Limits: mcp.Limits{Subscriptions: 1}})
	}, func(t *testing.T, s *mcp.Server, open func(string) *streamer) {
		for range 3 {
			c := open(streamWith("comment.created", ""))
			c.want("active")
			c.stop()
			synctest.Wait()
		}
		c := open(streamWith("comment.created", ""))
		c.want("active")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		drained := make(chan error, 1)
		go func() { drained <- errors.Join(s.Drain(ctx), s.Shutdown(t.Context())) }() // connections end with the second
		c.want("result")
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}
