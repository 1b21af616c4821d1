package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/transport/websocket"
)

// Streams end with the token that they began with, calls do not.
func TestStreamsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) {
			select {
			case <-f.Done():
				return "cut off", nil
			case <-time.After(time.Hour):
				return "done", nil
			}
		}))
		verifier := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
			return &auth.Identity{Subject: "alice", Expiry: time.Now().Add(time.Minute)}, nil
		})
		h := protect(verifier, resource, &auth.Options{})(s.Handler())
		ask := func(method, session, body string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		session := ask("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).Header().Get("Mcp-Session-Id")

		start := time.Now()
		if w := ask("GET", session, "", "Accept", "text/event-stream"); w.Code != http.StatusOK || time.Since(start) > 2*time.Minute {
			t.Errorf("the stream of a session: status %d, %v", w.Code, time.Since(start))
		}
		start = time.Now()
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
		w := ask("POST", "", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		if !strings.Contains(w.Body.String(), `"result"`) || time.Since(start) > 2*time.Minute {
			t.Errorf("a subscription: %v, %s", time.Since(start), w.Body)
		}
		start = time.Now()
		if w := ask("POST", session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`); !strings.Contains(w.Body.String(), "done") {
			t.Errorf("a call: %v, %s", time.Since(start), w.Body)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A WebSocket connection needs a token to begin with, and has its scopes.
func TestWebSocket(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("add", func(f *mcp.Frame, _ struct{}) (string, error) { return "by " + f.Identity().Subject, nil }, mcp.Scopes("notes:write")))
	web := httptest.NewServer(protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})(websocket.Handler(s)))
	defer web.Close()
	dial := func(token string) (*ws.Conn, *http.Response, error) {
		header := http.Header{}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		return ws.Dial(t.Context(), web.URL, &ws.DialOptions{HTTPHeader: header, Subprotocols: []string{"mcp"}})
	}
	if _, res, err := dial(""); err == nil || res.StatusCode != http.StatusUnauthorized || res.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %v", err)
	}
	for scope, want := range map[string]string{"notes:read": `"code":403`, "notes:write": "by alice"} {
		conn, _, err := dial(token(map[string]any{"scope": scope}))
		if err != nil {
			t.Fatal(err)
		}
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`
		if err := conn.Write(t.Context(), ws.MessageText, []byte(call)); err != nil {
			t.Fatal(err)
		}
		_, answer, err := conn.Read(t.Context())
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %v, %s", scope, err, answer)
		}
		_ = conn.Close(ws.StatusNormalClosure, "")
	}
}
