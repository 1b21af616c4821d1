//go:build unix

package redis

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/broker"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

const (
	notesURL = "https://notes.example.com"
	loopback = "http://127.0.0.1:4000/callback"
)

// company is an identity provider, and a service, without ID tokens. A code is the name of a
// user. Access tokens have ended when they are given. Refresh tokens rotate, and one that
// comes twice is refused.
type company struct {
	*httptest.Server
	mu      sync.Mutex
	users   map[string]string // by refresh tokens
	rotated func()            // called after a rotation, before its answer; may be nil
}

func newCompany(t *testing.T) *company {
	c := &company{users: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// provider is the company as a Broker has it.
func (c *company) provider() *broker.Provider { return companyAt(c.URL) }

func companyAt(url string) *broker.Provider {
	return &broker.Provider{AuthURL: url + "/authorize", TokenURL: url + "/token", ClientID: "notes", ClientSecret: "hush", User: func(ctx context.Context, c *http.Client) (*auth.Identity, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/me", nil)
		if err != nil {
			return nil, err
		}
		res, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		name, err := io.ReadAll(res.Body)
		return &auth.Identity{Subject: string(name)}, err
	}}
}

// ServeHTTP implements http.Handler.
func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/me" {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
		fmt.Fprint(w, name)
		return
	}
	c.mu.Lock()
	user, rotated := r.PostFormValue("code"), func() {}
	if old := r.PostFormValue("refresh_token"); old != "" {
		user = c.users[old]
		delete(c.users, old)
		if c.rotated != nil && user != "" {
			rotated = c.rotated
		}
	}
	next := rand.Text()
	if user != "" {
		c.users[next] = user
	}
	c.mu.Unlock()
	rotated()
	w.Header().Set("Content-Type", "application/json")
	if user == "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	fmt.Fprintf(w, `{"access_token":"%s.%s","token_type":"bearer","expires_in":-1,"refresh_token":"%s"}`, user, next, next)
}

// replica is a Broker and what it serves.
type replica struct {
	door    *broker.Broker
	service *broker.Service
	http.Handler
}

func newReplica(t *testing.T, store scale.Store, p *broker.Provider) replica {
	t.Helper()
	door, err := broker.New(notesURL, p, &broker.Options{
		Resources: []string{notesURL + "/mcp"}, Keys: [][]byte{[]byte("sixteen bytes or more of it")}, Store: store, Scopes: []broker.Scope{{Name: "read"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	service, err := door.Service("tracker", p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return replica{door, service, door.Middleware(http.NotFoundHandler())}
}

// visitor is the browser of a user.
type visitor struct {
	t   *testing.T
	jar http.CookieJar
}

func newVisitor(t *testing.T) *visitor {
	jar, _ := cookiejar.New(nil) // has no error
	return &visitor{t, jar}
}

var formOf = regexp.MustCompile(`name="(id|form)" value="([^"]+)"`)

// open visits an address, posts the form that is there, if there is one, and returns where
// that leads, with the last page.
func (v *visitor) open(at http.Handler, address string) (to *neturl.URL, page string) {
	v.t.Helper()
	method, body := http.MethodGet, ""
	for {
		r := httptest.NewRequest(method, address, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range v.jar.Cookies(r.URL) {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		at.ServeHTTP(w, r)
		v.jar.SetCookies(r.URL, w.Result().Cookies())
		found := formOf.FindStringSubmatch(w.Body.String())
		if found == nil || method == http.MethodPost {
			to, err := neturl.Parse(w.Header().Get("Location"))
			if err != nil {
				v.t.Fatal(err)
			}
			return to, fmt.Sprint(w.Code, " ", w.Body)
		}
		action := "/consent"
		if found[1] == "form" {
			action = "/connect"
		}
		method, address, body = http.MethodPost, notesURL+action, neturl.Values{found[1]: {found[2]}, "answer": {"allow"}, "scope": {"read"}}.Encode()
	}
}

// fromCompany returns the address to which the company sends a user.
func fromCompany(to *neturl.URL, user string) string {
	q := to.Query()
	return q.Get("redirect_uri") + "?" + neturl.Values{"code": {user}, "state": {q.Get("state")}}.Encode()
}

// post posts a form or JSON, and returns the answer.
func post(at http.Handler, path, body string) (status int, m map[string]any) {
	r := httptest.NewRequest(http.MethodPost, notesURL+path, strings.NewReader(body))
	if r.Header.Set("Content-Type", "application/x-www-form-urlencoded"); strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	at.ServeHTTP(w, r)
	_ = json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&m)
	return w.Code, m
}

// login lets a user log in at a replica, up to the code.
func login(t *testing.T, at http.Handler, user string) (client, form string) {
	t.Helper()
	status, m := post(at, "/register", `{"redirect_uris":["`+loopback+`"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`)
	if status != http.StatusCreated {
		t.Fatal(status, m)
	}
	client = m["client_id"].(string)
	v := newVisitor(t)
	q := neturl.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {loopback}, "scope": {"read"}, "resource": {notesURL + "/mcp"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}
	to, page := v.open(at, notesURL+"/authorize?"+q.Encode())
	if to.Host == "" {
		t.Fatal(page)
	}
	to, page = v.open(at, fromCompany(to, user))
	code := to.Query().Get("code")
	if code == "" {
		t.Fatal(page)
	}
	return client, neturl.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {client}, "redirect_uri": {loopback},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
	}.Encode()
}

// renewal is the request for a next token.
func renewal(client, token string) string {
	return neturl.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {client}}.Encode()
}

// counted counts the entries that were written.
type counted struct {
	scale.Store
	n *atomic.Int64
}

func (c counted) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	done, err := c.Store.Put(ctx, ops...)
	for _, e := range done {
		if e.Err == nil {
			c.n.Add(1)
		}
	}
	return done, err
}

// 64 clients refresh at two replicas, each at both at once: each login moves on by one in
// each round, and both answers are good.
func TestClientsRefreshInParallel(t *testing.T) {
	engine := start(t)
	o, idp := user(t, engine), newCompany(t)
	var writes atomic.Int64
	var replicas [2]replica
	for i := range replicas {
		replicas[i] = newReplica(t, counted{open(t, o), &writes}, idp.provider())
	}
	const clients = 64 // of 8 users
	var ids, tokens [clients]string
	for i := range clients {
		client, form := login(t, replicas[i%2], fmt.Sprint("user", i%8))
		status, m := post(replicas[(i+1)%2], "/token", form)
		if status != http.StatusOK {
			t.Fatal(status, m)
		}
		ids[i], tokens[i] = client, m["refresh_token"].(string)
	}
	verifier := replicas[0].door.Verifier(notesURL + "/mcp")
	for round := range 5 {
		writes.Store(0)
		var slowest atomic.Int64
		var next [clients][2]string
		var calls sync.WaitGroup
		for i := range clients {
			for j := range replicas {
				calls.Go(func() {
					began := time.Now()
					status, m := post(replicas[j], "/token", renewal(ids[i], tokens[i]))
					if took := int64(time.Since(began)); took > slowest.Load() {
						slowest.Store(took) // nearly: it is only logged
					}
					if status != http.StatusOK {
						t.Errorf("round %d, client %d: %d %v", round, i, status, m)
						return
					}
					next[i][j] = m["refresh_token"].(string)
					if _, err := verifier.Verify(t.Context(), m["access_token"].(string)); err != nil {
						t.Errorf("round %d, client %d: %v", round, i, err)
					}
				})
			}
		}
		calls.Wait()
		if n := writes.Load(); n != clients || t.Failed() {
			t.Fatalf("round %d: %d logins moved on, want %d", round, n, clients)
		}
		t.Logf("round %d: the slowest of %d refreshes took %s", round, 2*clients, time.Duration(slowest.Load()))
		for i := range clients {
			tokens[i] = next[i][round%2]
		}
	}
}

// shaky is a Store of which some calls fail, before or after they were done.
type shaky struct{ scale.Store }

func (s shaky) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if mathrand.IntN(8) == 0 {
		return nil, fmt.Errorf("get: %w", scale.ErrUnavailable)
	}
	return s.Store.Get(ctx, ops...)
}

func (s shaky) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	fails := mathrand.IntN(4)
	if fails == 0 {
		return nil, fmt.Errorf("put: %w", scale.ErrUnavailable)
	}
	done, err := s.Store.Put(ctx, ops...)
	if fails == 1 {
		return nil, fmt.Errorf("put: %w", scale.ErrUnavailable)
	}
	return done, err
}

// logins is what a login does: a code is redeemed once, and nothing works after the end.
// An answer that the store is away leaves open whether something was done.
var logins = porcupine.NondeterministicModel{
	Init: func() []any { return []any{"unused"} },
	Step: func(state, input, output any) []any {
		next := state // if it was done
		switch {
		case input == "redeem" && state == "unused":
			next = "valid"
		case input == "redeem", input == "revoke":
			next = "over"
		}
		good := state == "valid" || input == "revoke"
		if input == "redeem" {
			good = state == "unused"
		}
		switch {
		case output == "busy" && next != state:
			return []any{state, next}
		case output == "busy", good && output == "taken", !good && output == "refused":
			return []any{next}
		}
		return nil
	},
}

// kindOf is the kind of an answer with a status.
func kindOf(status int) string {
	switch status {
	case http.StatusOK:
		return "taken"
	case http.StatusBadRequest:
		return "refused"
	}
	return "busy"
}

// Logins at two replicas whose store fails at random are linearizable.
func TestLoginsAreLinearizable(t *testing.T) {
	engine := start(t)
	o, idp := user(t, engine), newCompany(t)
	whole, one, two := newReplica(t, open(t, o), idp.provider()), newReplica(t, shaky{open(t, o)}, idp.provider()), newReplica(t, shaky{open(t, o)}, idp.provider())
	replicas := []replica{one, two}
	var redeemed int
	for i := range 40 {
		var mu sync.Mutex
		var history []porcupine.Operation
		began := time.Now()
		note := func(client int, what string, do func() string) string {
			call := int64(time.Since(began))
			output := do()
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: client, Input: what, Output: output, Call: call, Return: int64(time.Since(began))})
			return output
		}
		client, form := login(t, whole, fmt.Sprint("user", i))
		var tokens map[string]any
		for tries := 0; tokens == nil && tries < 10; tries++ {
			if note(0, "redeem", func() string {
				status, m := post(replicas[tries%2], "/token", form)
				if status == http.StatusOK {
					tokens = m
				}
				return kindOf(status)
			}) == "refused" {
				break
			}
		}
		if tokens != nil {
			redeemed++
			var calls sync.WaitGroup
			for j := range replicas {
				calls.Go(func() { // one program that the user has twice
					token := tokens["refresh_token"].(string)
					for range 4 {
						note(j, "refresh", func() string {
							status, _ := post(replicas[j], "/token", renewal(client, token))
							return kindOf(status)
						})
					}
				})
			}
			calls.Go(func() {
				for range 6 {
					note(2, "show", func() string {
						_, err := two.door.Verifier(notesURL+"/mcp").Verify(t.Context(), tokens["access_token"].(string))
						if _, invalid := errors.AsType[*auth.Error](err); invalid {
							return "refused"
						} else if err != nil {
							return "busy"
						}
						return "taken"
					})
				}
			})
			if i%2 == 0 {
				calls.Go(func() {
					note(3, "revoke", func() string {
						status, _ := post(one, "/revoke", neturl.Values{"token": {tokens["access_token"].(string)}, "client_id": {client}}.Encode())
						return kindOf(status)
					})
				})
			}
			if i%4 == 1 {
				calls.Go(func() {
					note(4, "redeem", func() string { status, _ := post(two, "/token", form); return kindOf(status) })
				})
			}
			calls.Wait()
		}
		if got := porcupine.CheckOperationsTimeout(logins.ToModel(), history, time.Minute); got != porcupine.Ok {
			t.Fatalf("login %d is not linearizable (%s): %+v", i, got, history)
		}
	}
	if redeemed < 10 {
		t.Errorf("only %d codes were redeemed", redeemed)
	}
}

// childURL is the environment variable that makes a process a replica, see TestReplicaKilled.
const childURL = "BROKER_CHILD"

// TestBrokerChild is what the process of TestReplicaKilled does: it needs newer tokens.
func TestBrokerChild(t *testing.T) {
	at := os.Getenv(childURL)
	if at == "" {
		t.Skip("it is the process of another test")
	}
	r := newReplica(t, open(t, Options{URL: os.Getenv(childURL + "_STORE"), Prefix: os.Getenv(childURL + "_PREFIX")}), companyAt(at))
	token, err := r.service.Token(mcptest.Frame(t, mcptest.As(mcp.Identity{Issuer: at, Subject: "alice"})))
	t.Fatalf("the process is alive and has %v, %v", token, err)
}

// A replica that is killed after the provider has rotated, and before it could save the
// tokens, costs the user a click: another replica takes over, is refused, and asks the user to
// connect again. The login goes on.
func TestReplicaKilled(t *testing.T) {
	engine := start(t)
	o, idp := user(t, engine), newCompany(t)
	r := newReplica(t, open(t, o), idp.provider())
	client, form := login(t, r, "alice")
	_, tokens := post(r, "/token", form)
	call := func() error {
		_, err := r.service.Token(mcptest.Frame(t, mcptest.As(mcp.Identity{Issuer: idp.URL, Subject: "alice"})))
		return err
	}
	connect := func(code string) {
		t.Helper()
		missing, ok := errors.AsType[*broker.ConnectError](call())
		if !ok || missing.Code != code {
			t.Fatalf("got %v, want code %s", missing, code)
		}
		v := newVisitor(t)
		to, page := v.open(r, missing.URL)
		if to.Host == "" {
			t.Fatal(page)
		}
		if to, page = v.open(r, fromCompany(to, "alice")); to.Host == "" {
			t.Fatal(page)
		}
		if _, page = v.open(r, fromCompany(to, "alice")); !strings.Contains(page, "tracker is connected") {
			t.Fatal(page)
		}
	}
	connect("missing")
	rotated := make(chan struct{})
	var killed *process
	idp.mu.Lock()
	idp.rotated = func() {
		idp.mu.Lock()
		idp.rotated = nil
		idp.mu.Unlock()
		if err := killed.Process.Kill(); err != nil {
			t.Error(err)
		}
		close(rotated)
	}
	killed = launch(t, false, []string{childURL + "=" + idp.URL, childURL + "_STORE=" + o.URL, childURL + "_PREFIX=" + o.Prefix}, os.Args[0], "-test.run=^TestBrokerChild$")
	idp.mu.Unlock()
	select {
	case <-rotated:
	case <-time.After(time.Minute):
		t.Fatal("the process did not refresh")
	}
	began := time.Now()
	connect("refused")
	t.Logf("the other replica took over after %s", time.Since(began))
	if err := call(); err != nil {
		t.Errorf("connected again: %v", err)
	}
	if status, m := post(r, "/token", renewal(client, tokens["refresh_token"].(string))); status != http.StatusOK {
		t.Errorf("the login: %d %v", status, m)
	}
}
