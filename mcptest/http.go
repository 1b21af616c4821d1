package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// httpWire talks to Server.Handler.
type httpWire struct {
	client  *Client
	server  *httptest.Server
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	session string
}

func newHTTPWire(c *Client, server *mcp.Server) *httpWire {
	handler := server.Handler()
	if id := c.conf.identity; id != nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.Handler().ServeHTTP(w, r.WithContext(mcp.WithIdentity(r.Context(), id)))
		})
	}
	w := &httpWire{client: c, server: httptest.NewServer(handler)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// send posts a message. The answer to a request is read by a goroutine.
func (w *httpWire) send(m *outgoing) error {
	if w.ctx.Err() != nil {
		return errEnded
	}
	if !m.request {
		res, err := w.do(http.MethodPost, m)
		if err != nil {
			return errors.Join(errEnded, err)
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusNotFound {
			return errEnded
		}
		if res.StatusCode != http.StatusAccepted {
			return fmt.Errorf("status %s for a message that wants no answer", res.Status)
		}
		return nil
	}
	w.running.Go(func() {
		res, err := w.do(http.MethodPost, m)
		if err == nil {
			defer res.Body.Close()
			if id := res.Header.Get("Mcp-Session-Id"); id != "" {
				w.mu.Lock()
				w.session = id
				w.mu.Unlock()
			}
			err = w.read(res)
		}
		if err != nil {
			w.client.fail(err)
		}
	})
	return nil
}

// do sends an HTTP request with the headers that the revision demands.
func (w *httpWire) do(method string, m *outgoing) (*http.Response, error) {
	req, err := http.NewRequestWithContext(w.ctx, method, w.server.URL, bytes.NewReader(m.text))
	if err != nil {
		return nil, err
	}
	rev := w.client.conf.revision
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	} else {
		req.Header.Set("Accept", "text/event-stream")
	}
	w.mu.Lock()
	session := w.session
	w.mu.Unlock()
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if rev.Modern() || session != "" && rev.Has(protocol.VersionHeader) {
		req.Header.Set("Mcp-Protocol-Version", rev.String())
	}
	if rev.Modern() && m.method != "" {
		req.Header.Set("Mcp-Method", m.method)
		if m.name != "" {
			req.Header.Set("Mcp-Name", protocol.EncodeHeaderValue(m.name))
		}
	}
	for name, value := range m.headers {
		req.Header.Set(name, value)
	}
	for name, value := range w.client.conf.headers {
		req.Header.Set(name, value)
	}
	return w.server.Client().Do(req)
}

// read passes the messages of a response on.
func (w *httpWire) read(res *http.Response) error {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			return fmt.Errorf("status %s: %s", res.Status, text)
		}
		w.client.receive(text)
		return nil
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a stream ends, in order or not; the request has its timeout
		}
		if data := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data:"))); len(data) > 0 && len(data) < len(bytes.TrimSpace(line)) {
			w.client.receive(data)
		}
	}
}

// ready opens the stream for what no request asked for.
func (w *httpWire) ready() {
	opened := make(chan struct{})
	w.running.Go(func() {
		res, err := w.do(http.MethodGet, &outgoing{})
		close(opened)
		if err != nil {
			return // the client was closed
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK {
			_ = w.read(res) // it ends with the client
		}
	})
	<-opened
}

func (w *httpWire) close() error {
	w.mu.Lock()
	session := w.session
	w.mu.Unlock()
	var err error
	if session != "" {
		err = w.end()
	}
	w.cancel()
	w.running.Wait()
	w.server.Close()
	return err
}

// end deletes the session.
func (w *httpWire) end() error {
	timer := time.AfterFunc(w.client.conf.timeout, w.cancel)
	defer timer.Stop()
	res, err := w.do(http.MethodDelete, &outgoing{})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 && res.StatusCode != http.StatusNotFound {
		return fmt.Errorf("the session's end got status %s", res.Status)
	}
	return nil
}
