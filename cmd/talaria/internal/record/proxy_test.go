package record

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// endsLate is the body of a request whose end comes after a while.
type endsLate struct {
	io.ReadCloser
	sent  bool
	wait  <-chan struct{}
	ended chan<- struct{}
}

func (b *endsLate) Read(p []byte) (int, error) {
	if !b.sent {
		b.sent = true
		n, _ := b.ReadCloser.Read(p) // its end is for the next Read
		return n, nil
	}
	<-b.wait
	n, err := b.ReadCloser.Read(p)
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
	return n, err
}

// TestProxyEarlyAnswer checks that an answer is passed on as a whole if it begins before
// the proxy has seen the end of the request.
func TestProxyEarlyAnswer(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "first, ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "last")
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := recording.NewWriter(io.Discard, MaxFile)
	defer w.Close()
	var proxy http.Handler
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context())
		r.Body = &endsLate{ReadCloser: r.Body, wait: begun, ended: ended}
		proxy.ServeHTTP(rw, r)
	}))
	defer front.Close()
	proxy = Proxy(w, to, front.Listener.Addr().String())
	resp, err := http.Post(front.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(begun)
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "first, last" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestProxyUnreadBody checks that a request whose body nobody has read leaves its connection
// in use, and the log empty.
func TestProxyUnreadBody(t *testing.T) {
	gone := httptest.NewServer(nil)
	to, err := url.Parse(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	w := recording.NewWriter(io.Discard, MaxFile)
	defer w.Close()
	var logged bytes.Buffer // by one goroutine at a time: log.Logger has a lock
	var conns atomic.Int64
	front := httptest.NewUnstartedServer(nil)
	front.Config.Handler = Proxy(w, to, front.Listener.Addr().String())
	front.Config.ErrorLog = log.New(&logged, "", 0)
	front.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	front.Start()
	for range 20 {
		resp, err := front.Client().Post(front.URL, "application/json", strings.NewReader(`{"id":1}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusBadGateway {
			t.Errorf("got %d, %v", resp.StatusCode, err)
		}
		_ = resp.Body.Close()
	}
	front.Close()
	if logged.Len() > 0 || conns.Load() != 1 {
		t.Errorf("%d connections, logged:\n%s", conns.Load(), logged.String())
	}
}
