package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

const scopeResource = "https://notes.example.com/mcp"

// testTokens verifies tokens that say it all: issuer/subject/scope+scope.
var testTokens = auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
	parts := strings.Split(token, "/")
	if len(parts) != 3 {
		return nil, auth.Invalid("the token is made up")
	}
	return &auth.Identity{Issuer: "https://" + parts[0], Subject: parts[1], Scopes: strings.Split(strings.ReplaceAll(parts[2], ".", ":"), "+")}, nil
})

// behind returns the endpoint of s behind its authorization.
func behind(s *mcp.Server, opts auth.Options) http.Handler {
	opts.AuthorizationServers = []string{"https://login.example.com"}
	resource, err := auth.New(scopeResource, testTokens, &opts)
	if err != nil {
		panic(err)
	}
	return resource.Bearer(s.Handler())
}

// bearerClient is a client of a protected endpoint.
type bearerClient struct {
	t       testing.TB
	h       http.Handler
	rev     protocol.Revision
	token   string // "" for none
	session string
}

func (c *bearerClient) open() *bearerClient {
	c.t.Helper()
	if c.rev.Modern() {
		return c
	}
	res := c.post("initialize", `{"protocolVersion":"`+c.rev.String()+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	if c.session = res.Header.Get("Mcp-Session-Id"); c.session == "" {
		c.t.Fatalf("%v: initialize: status %s", c.rev, res.Status)
	}
	return c
}

func (c *bearerClient) post(method, params string) *http.Response {
	var members map[string]any
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		c.t.Fatal(err)
	}
	if c.rev.Modern() {
		members["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": c.rev.String(), "io.modelcontextprotocol/clientCapabilities": map[string]any{
				"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}},
			},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "c", "version": "1"},
		}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": members})
	if err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+strings.ReplaceAll(c.token, ":", ".")) // no letter of tokens
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.rev.Modern() {
		r.Header.Set("Mcp-Protocol-Version", c.rev.String())
		r.Header.Set("Mcp-Method", method)
		for _, member := range []string{"name", "uri", "taskId"} {
			if name, ok := members[member].(string); ok {
				r.Header.Set("Mcp-Name", name)
			}
		}
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return w.Result()
}

// ask returns the whole answer.
func (c *bearerClient) ask(method, params string) (status int, challenge, body string) {
	res := c.post(method, params)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("WWW-Authenticate"), string(text)
}

// as returns the same client with another token.
func (c *bearerClient) as(token string) *bearerClient {
	other := *c
	other.token = token
	return &other
}

// scoped returns a server on which half of everything needs a scope, and a
// count of what has run.
func scoped(t testing.TB) (*mcp.Server, *atomic.Int64) {
	var ran atomic.Int64
	s := harness.Guarded(t, mcp.Options{ListTTL: time.Second, ListPublic: true}, mcp.Scopes("notes:write"))
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			ran.Add(1)
			return next(f)
		}
	})
	return s, &ran
}

// stepUp is the challenge of the specification.
const stepUp = `Bearer error="insufficient_scope", error_description="this needs the scope notes:read notes:write", ` +
	`scope="notes:read notes:write", resource_metadata="https://notes.example.com/.well-known/oauth-protected-resource/mcp"`

// Over HTTP, what needs a scope that was not granted gets the challenge before
// anything runs, in every revision, and lists leave it out.
func TestScopesOverHTTP(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			s, ran := scoped(t)
			reader := (&bearerClient{t: t, h: behind(s, auth.Options{Scopes: []string{"notes:read"}}), rev: rev, token: "a/alice/notes:read"}).open()
			for _, call := range harness.Calls {
				shut := strings.ReplaceAll(call.Params, "NAME", "shut")
				before := ran.Load()
				status, challenge, body := reader.ask(call.Method, shut)
				if status != http.StatusForbidden || challenge != stepUp {
					t.Errorf("%s: status %d, challenge %q", call.Method, status, challenge)
				}
				if want := `"error":{"code":403,"message":"the access token lacks scope: this needs notes:write","data":{"requiredScopes":["notes:write"]}}`; !strings.Contains(body, want) {
					t.Errorf("%s: %s", call.Method, body)
				}
				if ran.Load() != before {
					t.Errorf("%s: middleware ran", call.Method)
				}
				// The client comes again with more (step-up), in the same session.
				if status, _, body := reader.as("a/alice/notes:read+notes:write").ask(call.Method, shut); status != http.StatusOK || strings.Contains(body, `"error"`) {
					t.Errorf("%s with the scope: status %d, %s", call.Method, status, body)
				}
				if status, _, body := reader.ask(call.Method, strings.ReplaceAll(call.Params, "NAME", "open")); status != http.StatusOK || strings.Contains(body, `"error"`) {
					t.Errorf("%s of what is open: status %d, %s", call.Method, status, body)
				}
			}
			for _, method := range harness.ListMethods {
				for token, sees := range map[string]bool{"a/alice/notes:read": false, "a/bob/notes:read+notes:write": true} {
					client := (&bearerClient{t: t, h: reader.h, rev: rev, token: token}).open()
					_, _, body := client.ask(method, `{}`)
					if strings.Contains(body, "shut") != sees || !strings.Contains(body, "open") {
						t.Errorf("%s for %s: %s", method, token, body)
					}
					if rev.Modern() && !strings.Contains(body, `"cacheScope":"private"`) {
						t.Errorf("%s may be shared: %s", method, body)
					}
				}
			}
		})
	}
}

// Subscriptions to what may not be read are refused, too.
func TestScopesOfSubscriptions(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
		s, ran := scoped(t)
		c := (&bearerClient{t: t, h: behind(s, auth.Options{Scopes: []string{"notes:read"}}), rev: rev, token: "a/alice/notes:read"}).open()
		method, params := "resources/subscribe", `{"uri":"%s"}`
		if rev.Modern() {
			method, params = "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["open:x","%s"]}}`
		}
		for _, uri := range []string{"shut:x", "shut:one/y"} {
			before := ran.Load()
			if status, challenge, body := c.ask(method, fmt.Sprintf(params, uri)); status != http.StatusForbidden || challenge != stepUp {
				t.Errorf("%v: %s: status %d, %q, %s", rev, uri, status, challenge, body)
			}
			if !rev.Modern() && ran.Load() != before {
				t.Errorf("%v: %s: middleware ran", rev, uri)
			}
		}
	}
}

// Where calls may go on without their connection, they are refused as elsewhere.
func TestScopesWithPolling(t *testing.T) {
	s := harness.Guarded(t, mcp.Options{HTTP: mcp.HTTPOptions{Polling: true}}, mcp.Scopes("notes:write"))
	c := (&bearerClient{t: t, h: behind(s, auth.Options{Scopes: []string{"notes:read"}}), rev: protocol.V20251125, token: "a/alice/notes:read"}).open()
	if status, challenge, body := c.ask("tools/call", `{"name":"shut"}`); status != http.StatusForbidden || challenge != stepUp {
		t.Errorf("status %d, %q, %s", status, challenge, body)
	}
	if status, _, body := c.ask("tools/call", `{"name":"open"}`); status != http.StatusOK || strings.Contains(body, `"error"`) {
		t.Errorf("status %d, %s", status, body)
	}
}

// In a batch each request is refused by itself.
func TestScopesInBatches(t *testing.T) {
	s, _ := scoped(t)
	c := (&bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.V20250326, token: "a/alice/x"}).open()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shut"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open"}}]`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Mcp-Session-Id", c.session)
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	var answers []struct {
		ID     int
		Result json.RawMessage
		Error  struct{ Code protocol.Code }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answers); err != nil || len(answers) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if answers[0].Error.Code != protocol.CodeInsufficientScope || answers[0].Result != nil || answers[1].Result == nil {
		t.Errorf("%s", w.Body)
	}
}

// Where anonymous clients may come, what needs a scope asks them for a token.
func TestScopesOfAnonymousClients(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		s, _ := scoped(t)
		c := (&bearerClient{t: t, h: behind(s, auth.Options{Anonymous: true}), rev: rev}).open()
		status, challenge, body := c.ask("tools/call", `{"name":"shut"}`)
		if want := `Bearer scope="notes:write", resource_metadata="https://notes.example.com/.well-known/oauth-protected-resource/mcp"`; status != http.StatusUnauthorized || challenge != want || !strings.Contains(body, `"code":401`) {
			t.Errorf("%v: status %d, %q, %s", rev, status, challenge, body)
		}
		if status, _, body := c.ask("tools/call", `{"name":"open"}`); status != http.StatusOK || strings.Contains(body, `"error"`) {
			t.Errorf("%v: status %d, %s", rev, status, body)
		}
	}
}

// A server without middleware of ours knows nobody, and is as strict.
func TestScopesWithoutBearer(t *testing.T) {
	s, _ := scoped(t)
	c := &bearerClient{t: t, h: s.Handler(), rev: protocol.Latest}
	if status, challenge, _ := c.ask("tools/call", `{"name":"shut"}`); status != http.StatusUnauthorized || challenge != `Bearer scope="notes:write"` {
		t.Errorf("status %d, %q", status, challenge)
	}
	c.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handler().ServeHTTP(w, r.WithContext(mcp.WithIdentity(r.Context(), &frame.Identity{Subject: "me"})))
	})
	if status, challenge, _ := c.ask("tools/call", `{"name":"shut"}`); status != http.StatusForbidden || challenge != `Bearer error="insufficient_scope", scope="notes:write"` {
		t.Errorf("status %d, %q", status, challenge)
	}
}

// A handler may find out by itself what is needed; the challenge has all of it.
func TestRequireScopes(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		s := harness.Bare(mcp.Options{})
		s.MustAdd(mcp.Tool("write", func(f *mcp.Frame, in struct {
			Folder string `json:"folder"`
			Late   bool   `json:"late,omitempty"`
		}) (string, error) {
			if in.Late {
				if err := f.Progress(1, 2, ""); err != nil {
					return "", err
				}
			}
			if err := f.RequireScopes("folder:" + in.Folder); err != nil {
				return "", fmt.Errorf("before anything is done: %w", err)
			}
			return "written by " + f.Identity().Subject, nil
		}, mcp.Scopes("notes:write")))
		c := (&bearerClient{t: t, h: behind(s, auth.Options{}), rev: rev, token: "a/alice/notes:write"}).open()
		status, challenge, _ := c.ask("tools/call", `{"name":"write","arguments":{"folder":"a"}}`)
		if status != http.StatusForbidden || !strings.Contains(challenge, `scope="notes:write folder:a"`) {
			t.Errorf("%v: status %d, %q", rev, status, challenge)
		}
		if status, _, body := c.as("a/alice/notes:write+folder:a").ask("tools/call", `{"name":"write","arguments":{"folder":"a"}}`); status != http.StatusOK || !strings.Contains(body, "written by alice") {
			t.Errorf("%v: status %d, %s", rev, status, body)
		}
		// Once the answer is a stream, its status is out.
		status, _, body := c.ask("tools/call", `{"name":"write","arguments":{"folder":"a","late":true},"_meta":{"progressToken":1}}`)
		if !rev.Modern() && (status != http.StatusOK || !strings.Contains(body, "event: message") || !strings.Contains(body, `"code":403`)) {
			t.Errorf("%v: status %d, %s", rev, status, body)
		}
	}
}

// An argument that a scope is made of cannot ask for another scope, nor send the
// client to the metadata of somebody else.
func TestRequireScopesOfArguments(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	ran := false
	s.MustAdd(mcp.Tool("write", func(f *mcp.Frame, in struct {
		Folder string `json:"folder"`
	}) (string, error) {
		if err := f.RequireScopes("folder:" + in.Folder); err != nil {
			return "", err
		}
		ran = true
		return "", nil
	}, mcp.Scopes("notes:write")))
	for _, rev := range testdep.Revisions() {
		for _, folder := range []string{"a admin", `a", resource_metadata="https://evil.example/x`, "a\r\nX-Evil: 1", `a\`, "ä", "a\x7f", "\t"} {
			arguments, err := json.Marshal(map[string]any{"name": "write", "arguments": map[string]string{"folder": folder}})
			if err != nil {
				t.Fatal(err)
			}
			for token, want := range map[string]int{"a/alice/notes:write": http.StatusForbidden, "": http.StatusUnauthorized} {
				c := (&bearerClient{t: t, h: behind(s, auth.Options{Anonymous: true}), rev: rev, token: token}).open()
				status, challenge, body := c.ask("tools/call", string(arguments))
				if status != want || !strings.Contains(challenge, `scope="notes:write"`) || strings.Count(challenge, "resource_metadata") != 1 || strings.Contains(challenge+body, "folder:") || ran {
					t.Errorf("%v, %q: status %d, %q: %s", rev, folder, status, challenge, body)
				}
			}
			// The same with nothing else that is needed, and without Bearer.
			f := frame.Internal(facts.Private{}).New(mcp.WithIdentity(t.Context(), &frame.Identity{Subject: "alice"}), core.Config{Revision: rev})
			if fault := f.RequireScopes("folder:" + folder); fault == nil || strings.Contains(fault.Error(), "folder:") {
				t.Errorf("%q: %v", folder, fault)
			}
			if status, challenge := frame.Internal(facts.Private{}).Challenge(f); status != 0 || challenge != "" {
				t.Errorf("%q: %d, %q", folder, status, challenge)
			}
		}
	}
}

// Elsewhere, the answer is a JSON-RPC error; who runs the server says what its
// client may do.
func TestScopesOverConnections(t *testing.T) {
	s, _ := scoped(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shut","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}` + "\n"
	ended := time.Now().Add(-time.Minute)
	for name, tt := range map[string]struct {
		id   *frame.Identity
		want string
	}{
		"nobody":    {nil, `"code":401,"message":"this needs an access token with scope notes:write"`},
		"somebody":  {&frame.Identity{Subject: "me"}, `"code":403,"message":"the access token lacks scope: this needs notes:write"`},
		"writer":    {&frame.Identity{Subject: "me", Scopes: []string{"notes:write"}}, `"result":`},
		"too late":  {&frame.Identity{Subject: "me", Scopes: []string{"notes:write"}, Expiry: ended}, `"code":401,"message":"the access token of this connection has ended`},
		"in time":   {&frame.Identity{Subject: "me", Scopes: []string{"notes:write"}, Expiry: time.Now().Add(time.Hour)}, `"result":`},
		"unlimited": {&frame.Identity{Subject: "me", Scopes: []string{"x", "notes:write"}}, `"result":`},
	} {
		ctx := t.Context()
		if tt.id != nil {
			ctx = mcp.WithIdentity(ctx, tt.id)
		}
		if got := converse(ctx, t, s, call); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// converse sends input over a connection and returns all that comes back.
func converse(ctx context.Context, t *testing.T, s *mcp.Server, input string) string {
	var out bytes.Buffer
	if err := s.ServeConn(ctx, transport.NewStream(strings.NewReader(input), &out, nil)); err != nil {
		t.Errorf("ServeConn: %v", err)
	}
	return out.String()
}

// Scopes go with what is mounted, and hold for custom methods.
func TestScopesOfMountsAndMethods(t *testing.T) {
	child, _ := scoped(t)
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Method("acme/purge", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil }, mcp.Scopes("notes:purge")))
	if err := s.Mount("child", child); err != nil {
		t.Fatal(err)
	}
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
		c := (&bearerClient{t: t, h: behind(s, auth.Options{Scopes: []string{"notes:read"}}), rev: rev, token: "a/alice/notes:read"}).open()
		for _, call := range harness.Calls {
			name := "child_shut"
			if strings.Contains(call.Params, "uri") && !strings.Contains(call.Params, "ref/prompt") {
				name = "shut"
			}
			if status, challenge, body := c.ask(call.Method, strings.ReplaceAll(call.Params, "NAME", name)); status != http.StatusForbidden || challenge != stepUp {
				t.Errorf("%v: %s: status %d, %q, %s", rev, call.Method, status, challenge, body)
			}
		}
		if _, _, body := c.ask("tools/list", `{}`); strings.Contains(body, "shut") {
			t.Errorf("%v: %s", rev, body)
		}
		if status, challenge, _ := c.ask("acme/purge", `{}`); status != http.StatusForbidden || !strings.Contains(challenge, `scope="notes:read notes:purge"`) {
			t.Errorf("%v: status %d, %q", rev, status, challenge)
		}
	}
}

// What a component says of its scopes is checked when it is added.
func TestScopesFaults(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	for want, c := range map[string]mcp.Component{
		"there is no scope":    mcp.Tool("a", harness.Text, mcp.Scopes()),
		`"a b" is not a scope`: mcp.Tool("b", harness.Text, mcp.Scopes("a b")),
		`"\"" is not a scope`:  mcp.Prompt("c", harness.Text, mcp.Scopes(`"`)),
		`"" is not a scope`:    mcp.Resource("d:d", harness.ReadText, mcp.Scopes("")),
		"use Cache in place":   mcp.Resource("e:e", harness.ReadText, mcp.CachePublic(time.Minute), mcp.Scopes("x")),
		`"é" is not a scope`:   mcp.Tool("f", harness.Text, mcp.Scopes("é")),
	} {
		if err := s.Add(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
