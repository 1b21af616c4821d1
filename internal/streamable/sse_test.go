package streamable

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// connecting is a Backend that hands its connections to a test.
type connecting struct {
	*backend
	serve func(conn transport.Conn)
}

func (c *connecting) as() Backend {
	b := c.backend.as()
	b.Connect = c.Connect
	return b
}

func (c *connecting) Connect(_ *http.Request, open func(Opening) (*Posted, error)) *protocol.Error {
	conn, err := open(Opening{ID: "x", Ours: func(*http.Request) bool { return true }})
	if err == nil {
		c.serve(conn)
		_ = conn.Close()
	}
	return nil
}

// stuck is a ResponseWriter whose client reads nothing beyond the first event:
// a write waits for its deadline.
type stuck struct {
	*httptest.ResponseRecorder
	deadline chan time.Time
	writes   int
}

func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.deadline <- at
	return nil
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.writes++; s.writes == 1 {
		return s.ResponseRecorder.Write(p)
	}
	at := <-s.deadline
	for {
		select {
		case at = <-s.deadline:
		case <-time.After(time.Until(at)):
			return 0, os.ErrDeadlineExceeded
		}
	}
}

func get(ctx context.Context) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/mcp", nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	return r
}

// TestSSEStalled sees that a client that reads nothing loses its connection,
// after the time for a write or when that is closed.
func TestSSEStalled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		closes time.Duration // after the beginning
		took   time.Duration
	}{
		{"left alone", time.Hour, 5 * time.Second},
		{"closed", time.Second, time.Second + lastWrite},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &connecting{backend: newBackend()}
				b.serve = func(conn transport.Conn) {
					begin := time.Now()
					timer := time.AfterFunc(tt.closes, func() { _ = conn.Close() })
					defer timer.Stop()
					read := make(chan error, 1)
					go func() {
						_, err := conn.Read()
						read <- err
					}()
					if err := conn.Write([]byte(`{}`)); !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("Write: %v, want a timeout", err)
					}
					if took := time.Since(begin); took != tt.took {
						t.Errorf("Write took %v, want %v", took, tt.took)
					}
					if err := <-read; !errors.Is(err, transport.ErrClosed) {
						t.Errorf("Read: %v, want ErrClosed", err)
					}
					if err := conn.Write([]byte(`{}`)); !errors.Is(err, transport.ErrClosed) {
						t.Errorf("Write after that: %v, want ErrClosed", err)
					}
				}
				h := New(b.as(), Options{SSE: true, WriteTimeout: 5 * time.Second, KeepAlive: -1})
				h.ServeHTTP(&stuck{ResponseRecorder: httptest.NewRecorder(), deadline: make(chan time.Time, 10)}, get(t.Context()))
			})
		})
	}
}

// TestSSEBusy sees that a server which takes no messages refuses more than may
// wait, and none is lost or taken twice.
func TestSSEBusy(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	b := &connecting{backend: newBackend()}
	opened, full := make(chan *Posted), make(chan struct{})
	b.serve = func(conn transport.Conn) {
		opened <- conn.(*Posted)
		<-full
		for range maxPosted {
			if message, err := conn.Read(); err != nil || string(message) != "{}" {
				t.Errorf("Read: %s, %v", message, err)
			}
		}
		leave()
		if _, err := conn.Read(); !errors.Is(err, transport.ErrPeerGone) {
			t.Errorf("Read: %v, want ErrPeerGone", err)
		}
	}
	h := New(b.as(), Options{SSE: true})
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.ServeHTTP(httptest.NewRecorder(), get(ctx))
	}()
	id := (<-opened).id
	post := func() int {
		r := httptest.NewRequest(http.MethodPost, "/mcp?sessionId="+id, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range maxPosted {
		if code := post(); code != http.StatusAccepted {
			t.Errorf("POST: %d, want 202", code)
		}
	}
	if code := post(); code != http.StatusServiceUnavailable {
		t.Errorf("one POST too many: %d, want 503", code)
	}
	close(full)
	<-served
	if code := post(); code != http.StatusNotFound {
		t.Errorf("POST after the end: %d, want 404", code)
	}
}

// TestSSEEndpointOfOddPaths sees that no path makes the endpoint another host's.
func TestSSEEndpointOfOddPaths(t *testing.T) {
	h := New(newBackend().as(), Options{SSE: true})
	for target, want := range map[string]string{
		"//evil.example.com/mcp": "?sessionId=x",
		"/a//b":                  "/a//b?sessionId=x",
		"http://host/proxied?q":  "/proxied?q=&sessionId=x",
	} {
		r := get(t.Context())
		r.RequestURI = target
		if _, query, ok := strings.Cut(target, "?"); ok {
			r.URL.RawQuery = query
		}
		if got := h.sse.endpoint(r, "x"); got != want {
			t.Errorf("%s: the endpoint is %s, want %s", target, got, want)
		}
	}
}
