package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// A subscription that was interrupted says so when it is open again, in every
// revision, and what was cached is read again.
func TestResumed(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, &mcp.Options{Revisions: []protocol.Revision{rev}})
		var mu sync.Mutex
		var far []transport.Conn
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		tr := &testTransport{"memory:resumed", func(context.Context) (transport.Conn, error) {
			near, end := transport.Pipe()
			mu.Lock()
			far = append(far, end)
			mu.Unlock()
			running.Go(func() { _ = s.ServeConn(context.Background(), end) })
			return near, nil
		}}
		resumed := make(chan *Subscription, 4)
		opts := &Options{
			Reconnect: &Backoff{Base: time.Millisecond}, OnResumed: func(s *Subscription) { resumed <- s },
			Listen: &Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://a"}},
		}
		c := connect(t, tr, opts)
		select {
		case <-resumed:
			t.Error("it was never interrupted")
		default:
		}
		mu.Lock()
		_ = far[len(far)-1].Close()
		mu.Unlock()
		if sub := <-resumed; sub.Err() != nil || len(sub.Accepted().ResourceSubscriptions) != 1 {
			t.Errorf("%v, %+v", sub.Err(), sub.Accepted())
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The stream of a subscription over HTTP may break while the connection lives.
func TestResumedStream(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			s := fixture(t, &mcp.Options{Revisions: []protocol.Revision{rev}})
			f := &breaking{inner: s.Handler()}
			resumed := make(chan *Subscription, 4)
			c, err := Connect(t.Context(), HTTP("http://server.example/mcp", &HTTPOptions{Client: &http.Client{Transport: f}}), &Options{
				Listen: &Filter{ToolsListChanged: true}, OnResumed: func(s *Subscription) { resumed <- s },
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if len(resumed) != 1 {
				t.Errorf("%s: OnResumed was called %d times, want once", rev, len(resumed))
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that does not resume a stream gets a request for a new one, and what was missed
// is said. One that has no streams any more is connected to again.
func TestResumeRefused(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusGone, http.StatusConflict, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		for _, always := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := fixture(t, &mcp.Options{Revisions: []protocol.Revision{protocol.V20250618}})
				f := &breaking{inner: s.Handler(), id: "1", refuse: status, always: always}
				resumed := make(chan *Subscription, 10)
				c, err := Connect(t.Context(), HTTP("http://server.example/mcp", &HTTPOptions{Client: &http.Client{Transport: f}}), &Options{
					Listen: &Filter{ToolsListChanged: true}, OnResumed: func(s *Subscription) { resumed <- s },
				})
				if err != nil {
					t.Fatal(err)
				}
				first := c.SessionID()
				time.Sleep(time.Minute)
				f.mu.Lock()
				open := f.open
				f.mu.Unlock()
				if len(resumed) != 1 || open == always || (c.SessionID() == first) == always || c.State() != StateReady {
					t.Errorf("%d, always %v: OnResumed was called %d times, a stream is open: %v, the session is the first: %v, %v", status, always, len(resumed), open, c.SessionID() == first, c.State())
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// breaking is a server whose first stream for notifications breaks; the second
// one stays.
type breaking struct {
	inner  http.Handler
	id     string // of the first event, "" for none
	refuse int    // the status for a stream that is resumed, 0 for a stream
	always bool   // refuse is that of every later stream
	mu     sync.Mutex
	n      int
	open   bool // a stream without end
}

func (f *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	text := ""
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = string(body)
		r.Body = io.NopCloser(strings.NewReader(text))
	}
	if r.Method != http.MethodGet && !strings.Contains(text, "subscriptions/listen") {
		return inProcess{f.inner}.RoundTrip(r)
	}
	f.mu.Lock()
	f.n++
	n := f.n
	refused := f.refuse != 0 && n > 1 && (f.always || r.Header.Get("Last-Event-ID") != "")
	f.open = n > 1 && !refused
	f.mu.Unlock()
	if refused {
		return &http.Response{StatusCode: f.refuse, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
	go func() {
		if _, id, ok := strings.Cut(text, `"id":`); ok {
			id, _, _ = strings.Cut(id, ",")
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+"}}}\n\n")
		} else {
			_, _ = io.WriteString(w, ": open\n\n")
			if f.id != "" {
				_, _ = fmt.Fprintf(w, "id: %s\ndata:\n\n", f.id)
			}
		}
		if n == 1 {
			time.Sleep(10 * time.Second) // the subscription is there by then
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		}
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
}

// An answer whose id differs from that of the request is named when the request
// gets no answer.
func TestForeignID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`"3"`, `"x"`, `77`, `-1`} {
		synctest.Test(t, func(t *testing.T) {
			tr := scripted(t, func(s *script) {
				s.legacyHello("2025-06-18")
				s.next()
				s.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
				s.drain()
			})
			c, err := Connect(t.Context(), tr, legacy)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ping(t.Context()); !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "with the id "+id) {
				t.Errorf("%s: %v", id, err)
			}
			_ = c.Close()
		})
		answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
		})
		server := httptest.NewServer(answers)
		_, err := Connect(t.Context(), HTTP(server.URL, nil), &Options{Revisions: []protocol.Revision{protocol.V20250618}})
		if !errors.Is(err, ErrInvalidResult) || !strings.Contains(err.Error(), "with the id "+id) {
			t.Errorf("%s over HTTP: %v", id, err)
		}
		server.Close()
	}
}

// What a client reports of its connection.
func TestSessionIDAndTraffic(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		var mu sync.Mutex
		var sent, received, bytesSent, bytesReceived int64
		s := fixture(t, &mcp.Options{Revisions: []protocol.Revision{rev}})
		c := connect(t, HTTP(handler(t, s.Handler()), &HTTPOptions{NoStream: true}), &Options{Trace: func(fromServer bool, m []byte) {
			mu.Lock()
			defer mu.Unlock()
			if fromServer {
				received, bytesReceived = received+1, bytesReceived+int64(len(m))
			} else {
				sent, bytesSent = sent+1, bytesSent+int64(len(m))
			}
		}})
		if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}); err != nil {
			t.Fatal(err)
		}
		if id := c.SessionID(); rev != protocol.V20241105 && (id == "") != rev.Modern() { // which may be over HTTP+SSE
			t.Errorf("the session is %q", id)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := c.Stats(); got.Sent != sent || got.Received != received || got.BytesSent != bytesSent || got.BytesReceived != bytesReceived || sent == 0 || received == 0 {
			t.Errorf("%+v, want %d and %d messages of %d and %d bytes", got, sent, received, bytesSent, bytesReceived)
		}
	})
}

// A server that does not answer pings is connected to again; one that sends
// anything is not pinged.
func TestHealthCheck(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var pings []time.Duration
			tr := scripted(t, func(s *script) {
				if rev.Modern() {
					s.modernHello()
				} else {
					s.legacyHello(rev.String())
				}
				for h := s.next(); h != nil; h = s.next() {
					if h.Method != protocol.MethodPing && h.Method != protocol.MethodDiscover {
						continue
					}
					pings = append(pings, time.Since(begin))
					if len(pings) == 1 {
						s.fault(h, -32601, "no ping") // is a sign of life, too
					}
				}
			})
			var why []error
			c, err := Connect(t.Context(), tr, &Options{Revisions: []protocol.Revision{rev}, HealthCheck: 10 * time.Second, Reconnect: &Backoff{Base: time.Second, Jitter: -1},
				OnState: func(_ State, err error) {
					if err != nil {
						why = append(why, err)
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(48 * time.Second)
			synctest.Wait() // what it wrote is seen
			if len(pings) != 2 || pings[0] != 20*time.Second || pings[1] != 40*time.Second || c.Stats().Reconnects != 1 || c.State() != StateReady {
				t.Errorf("%s: pings at %v, %+v, %v", rev, pings, c.Stats(), c.State())
			}
			if len(why) != 1 || !strings.Contains(why[0].Error(), "health check") {
				t.Errorf("%s: %v", rev, why)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that refuses the subscription, for whatever reason, or does not answer it, is connected
// to, and the log says what is missing there. One whose connection ends is not.
func TestListenIsRefused(t *testing.T) {
	for _, code := range []protocol.Code{protocol.CodeMethodNotFound, protocol.CodeInvalidParams, protocol.CodeInternal, -32000, noAnswer, noServer} {
		synctest.Test(t, func(t *testing.T) { listenIsRefused(t, code) })
	}
}

func listenIsRefused(t *testing.T, code protocol.Code) {
	tr := scripted(t, func(s *script) {
		s.modernHello()
		for h := s.next(); h != nil; h = s.next() {
			switch {
			case h.Method == protocol.MethodListen && code == noServer:
				return
			case h.Method == protocol.MethodListen && code != noAnswer:
				s.fault(h, int(code), "no")
			case h.Method != protocol.MethodListen && h.ID != nil:
				s.say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, h.ID)
			}
		}
	})
	var log logText
	logger := zerolog.New(&log)
	c, err := Connect(t.Context(), tr, &Options{Revisions: []protocol.Revision{protocol.Latest}, Listen: &Filter{ToolsListChanged: true}, Logger: &logger, NoReconnect: true})
	if code == noServer {
		if err == nil {
			t.Error("a server that is gone is connected to")
		}
		return
	}
	if err != nil {
		t.Errorf("%d: %v", code, err)
		return
	}
	if sub, err := c.Listen(t.Context(), Filter{ToolsListChanged: true}, nil); code == protocol.CodeMethodNotFound && !errors.Is(err, ErrUnsupported) {
		t.Errorf("Listen: %v, %v", sub, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "the server does not notify of changes"); n != 1 {
		t.Errorf("%d: %d lines: %s", code, n, log.String())
	}
}

// Stand-ins for an error code, for servers that do not answer subscriptions/listen.
const (
	noAnswer protocol.Code = 1
	noServer protocol.Code = 2
)
