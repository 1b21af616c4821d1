package servers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// The libraries of Standard Webhooks verify what our server sends, and our client subscribes
// at servers of others.
func TestWebhooks(t *testing.T) {
	t.Run("standardwebhooks go", func(t *testing.T) {
		for _, s := range signed(t) {
			w, err := standardwebhooks.NewWebhook(s.Secret)
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			for name, value := range s.Headers {
				header.Set(name, value)
			}
			if err := w.Verify([]byte(s.Body), header); (err == nil) != s.Fits {
				t.Fatalf("%+v: %v", s, err)
			}
		}
	})
	t.Run("standardwebhooks npm", func(t *testing.T) { verified(t, script(t, "verify.mjs")) })
	t.Run("mcphandler server 2026-07-28 http", func(t *testing.T) { webhooks(t, script(t, "handler.mjs"), true) })
}

// TestWebhooksPython does the same with what e2e/run python installs.
func TestWebhooksPython(t *testing.T) {
	python := testdep.Env(t, "E2E_PYTHON", "e2e/run python installs what it needs")
	t.Run("standardwebhooks python 2026-07-28", func(t *testing.T) { verified(t, program{python, []string{"../python/verify.py"}}) })
	t.Run("mcpwebhookevents server 2026-07-28 http", func(t *testing.T) {
		webhooks(t, program{python, []string{"../python/webhooks.py", filepath.Join(t.TempDir(), "store")}}, false)
	})
}

// script returns one of e2e/clients, in a directory where it finds its packages.
func script(t *testing.T, name string) program {
	t.Helper()
	const from = "e2e/run servers installs Node, and packages from npm"
	node, modules := testdep.Env(t, "E2E_NODE", from), testdep.Env(t, "E2E_MODULES", from)
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "clients", name))
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o600), os.Symlink(modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	return program{node, []string{filepath.Join(dir, name)}}
}

// signature is a message with what verifying it must say.
type signature struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Fits    bool              `json:"fits"`
}

// verified lets a program verify what our server sends.
func verified(t *testing.T, p program) {
	var lines bytes.Buffer
	all := signed(t)
	for _, s := range all {
		if err := json.NewEncoder(&lines).Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(within(t), p.name, p.args...)
	cmd.Stdin = &lines
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != fmt.Sprintln(len(all)) {
		t.Errorf("of %d as expected: %s, %v", len(all), out, err)
	}
}

// newSecret returns a secret of a client.
func newSecret() string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%032x", rand.Uint64())))
}

// signed returns what our server sends for 1,000 events with random texts, of which the
// second half is after a change of the secret: as it is, with a wrong secret, with another
// byte and with another id.
func signed(t *testing.T) (all []signature) {
	t.Helper()
	type note struct{ Text string }
	r := newReceiver(t)
	server := mcp.NewServer(mcp.Info{Name: "e2e", Version: "1"}, &mcp.Options{Webhooks: &mcp.WebhookOptions{Loopback: true, Transport: r.Client().Transport}})
	server.MustAdd(mcp.EventType("note", func(*mcp.Frame, struct{}, note) (bool, error) { return true, nil }))
	endpoint := server.Handler()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(mcp.WithIdentity(r.Context(), &mcp.Identity{Subject: "me"})))
	}))
	defer func() {
		if err := server.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
		front.Close()
	}()
	c, err := client.Connect(within(t), client.HTTP(front.URL, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var secrets []string
	for range 2 {
		secrets = append(secrets, r.renew())
		r.subscribe(t, c, "note", nil)
		for range 500 {
			text := make([]rune, rand.N(200))
			for i := range text {
				text[i] = rand.N([]rune{0x80, 0xd800, 0x10ffff}[rand.N(3)])
			}
			if err := server.Emit(within(t), mcp.Occurrence{Name: "note", Data: note{string(text)}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 500 {
			m := r.next(t)
			headers := map[string]string{}
			for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
				headers[name] = m.header.Get(name)
			}
			for _, secret := range secrets {
				all = append(all, signature{secret, headers, m.body, true})
			}
			other := map[string]string{"webhook-id": headers["webhook-id"] + "x", "webhook-timestamp": headers["webhook-timestamp"], "webhook-signature": headers["webhook-signature"]}
			all = append(all, signature{newSecret(), headers, m.body, false}, signature{secrets[0], other, m.body, false},
				signature{secrets[0], headers, strings.Replace(m.body, "eventId", "eventIe", 1), false})
		}
	}
	return all
}

// message is what a receiver has received.
type message struct {
	header http.Header
	body   string
}

// receiver is an endpoint over TLS that verifies what it receives with the library for Go.
// Its path /deaf does not return challenges.
type receiver struct {
	*httptest.Server
	messages chan message

	mu     sync.Mutex
	secret string
	faults []error
}

// newReceiver returns a receiver, which has had no fault by the end of the test.
func newReceiver(t *testing.T) *receiver {
	r := &receiver{messages: make(chan message, 1000)}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(func() {
		r.Close()
		if err := errors.Join(r.faults...); err != nil {
			t.Error(err)
		}
	})
	return r
}

// renew makes another secret, and returns it.
func (r *receiver) renew() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = newSecret()
	return r.secret
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	verifier, wrong := standardwebhooks.NewWebhook(r.secret)
	if err := errors.Join(err, wrong); err != nil {
		r.faults = append(r.faults, err)
		return
	}
	if err := verifier.Verify(body, req.Header); err != nil {
		r.faults = append(r.faults, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var control struct{ Type, Challenge string }
	switch err := json.Unmarshal(body, &control); {
	case err != nil:
		r.faults = append(r.faults, err)
	case control.Type == "verification" && req.URL.Path == "/deaf":
		fmt.Fprint(w, "{}")
	case control.Type == "verification":
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": control.Challenge}) // the server says so
	default:
		offer(r.messages, message{req.Header, string(body)})
		w.WriteHeader(http.StatusNoContent)
	}
}

// next returns the next message.
func (r *receiver) next(t *testing.T) message {
	t.Helper()
	select {
	case m := <-r.messages:
		return m
	case <-time.After(timeLimit):
		t.Fatal("nothing is delivered")
	}
	return message{}
}

// request returns the params of events/subscribe, for a path of the receiver.
func (r *receiver) request(path, name string, arguments any) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string]any{"name": name, "arguments": arguments, "delivery": map[string]string{"mode": "webhook", "url": r.URL + path, "secret": r.secret}}
}

// subscribe subscribes the receiver to events, or refreshes that, and returns the id.
func (r *receiver) subscribe(t *testing.T, c *client.Client, name string, arguments any) string {
	t.Helper()
	var granted struct {
		ID            string    `json:"id"`
		RefreshBefore time.Time `json:"refreshBefore"`
	}
	if err := c.Request(within(t), "events/subscribe", r.request("/", name, arguments), &granted); err != nil {
		t.Fatal(err)
	}
	if granted.ID == "" || time.Until(granted.RefreshBefore) < time.Minute {
		t.Errorf("granted %+v", granted)
	}
	return granted.ID
}

// webhooks subscribes at a server of others, which gets the port as its last argument.
// strict is whether it refuses to end what has ended.
func webhooks(t *testing.T, p program, strict bool) {
	r := newReceiver(t)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	p.start(t, port, []string{"NODE_EXTRA_CA_CERTS=" + roots, "SSL_CERT_FILE=" + roots}, strconv.Itoa(port))
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	c, err := client.Connect(within(t), client.HTTP(url+"/mcp", &client.HTTPOptions{Header: http.Header{"Authorization": {"Bearer ann"}}}),
		&client.Options{Revisions: []protocol.Revision{protocol.V20260728}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	const name = "comment.created"
	document := func(id string) map[string]string { return map[string]string{"document": id} }
	emit := func(t *testing.T, text string) {
		t.Helper()
		for _, id := range []string{"doc_2", "doc_1"} {
			body, _ := json.Marshal(map[string]string{"document": id, "text": text}) // texts
			resp, err := http.Post(url+"/emit", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != http.StatusNoContent {
				t.Fatal(resp.Status)
			}
		}
	}
	receive := func(t *testing.T, id, text string) {
		t.Helper()
		m := r.next(t)
		var event client.Occurrence
		if err := json.Unmarshal([]byte(m.body), &event); err != nil {
			t.Fatal(err)
		}
		if event.Name != name || event.ID != m.header.Get("webhook-id") || m.header.Get("X-MCP-Subscription-Id") != id {
			t.Errorf("received %+v with %v", event, m.header)
		}
		equal(t, "data", event.Data, map[string]string{"document": "doc_1", "text": text})
	}
	t.Run("an event type", func(t *testing.T) {
		var found []string
		for e, err := range c.Events(within(t)) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(append(found, e.Name), e.Delivery...)
		}
		equal(t, "event types", found, []string{name, "webhook"})
	})
	t.Run("no poll", func(t *testing.T) {
		var last error
		for _, err := range c.Watch(within(t), name, document("doc_1"), nil) {
			last = err
		}
		if !errors.Is(last, client.ErrUnsupported) {
			t.Errorf("got %v, want ErrUnsupported", last)
		}
	})
	t.Run("an endpoint that does not agree", func(t *testing.T) {
		r.renew()
		if err := c.Request(within(t), "events/subscribe", r.request("/deaf", name, document("doc_1")), nil); code(err) != -32015 {
			t.Errorf("got %v", err)
		}
	})
	var id string
	t.Run("subscribe", func(t *testing.T) {
		id = r.subscribe(t, c, name, document("doc_1"))
		emit(t, "one ✨")
		receive(t, id, "one ✨")
	})
	t.Run("refresh with another secret", func(t *testing.T) {
		r.renew()
		equal(t, "id", r.subscribe(t, c, name, document("doc_1")), id)
		emit(t, "two")
		receive(t, id, "two")
	})
	t.Run("unsubscribe", func(t *testing.T) {
		for i := range 2 {
			err := c.Request(within(t), "events/unsubscribe", r.request("/", name, document("doc_1")), nil)
			if again := strict && i > 0; err != nil != again || again && !errors.Is(err, client.ErrNotFound) {
				t.Errorf("%d: %v", i, err)
			}
		}
		emit(t, "three") // which returns when all is sent
		if len(r.messages) > 0 {
			t.Error("more is delivered")
		}
	})
}
