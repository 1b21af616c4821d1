package httplink_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

func TestSessionExpired(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if !withSession(w, n) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		}
	})
	_, l := open(t, s.URL, origin.Options{}, true)
	initialize(t, l)
	initialized(t, l, protocol.V20251125)
	err := l.Send(t.Context(), call(protocol.V20251125))
	if !errors.Is(err, link.ErrSession) || !strings.Contains(err.Error(), "Session not found") {
		t.Errorf("%v", err)
	}
	count := s.count()
	defer func() {
		if err := l.Send(t.Context(), call(protocol.V20251125)); !errors.Is(err, link.ErrSession) {
			t.Errorf("after Close: %v", err)
		}
	}()
	if err := l.Close(t.Context()); err != nil || s.count() != count {
		t.Errorf("Close: %v, with %d requests for a session that is over", err, s.count()-count)
	}
}

// A 404 without a session is a status, and one that answers the request is its
// answer.
func TestSessionNone(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		w.WriteHeader(http.StatusNotFound)
		if n == 1 {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}`)
		}
	})
	to, l := open(t, s.URL, origin.Options{}, true)
	err := l.Send(t.Context(), call(protocol.V20251125))
	if status, ok := errors.AsType[*origin.StatusError](err); !ok || status.Code != http.StatusNotFound || errors.Is(err, link.ErrSession) {
		t.Errorf("%v", err)
	}
	if err := l.Send(t.Context(), call(protocol.V20260728)); err != nil || len(to.Texts()) != 1 {
		t.Errorf("%v, %q", err, to.Texts())
	}
}

func TestSessionDelete(t *testing.T) {
	for status, want := range map[int]string{200: "", 204: "", 404: "", 405: "", 500: "HTTP status 500"} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
			if !withSession(w, n) {
				w.WriteHeader(status)
			}
		})
		_, l := open(t, s.URL, origin.Options{Header: http.Header{"Authorization": {"Bearer t"}}}, true)
		initialize(t, l)
		initialized(t, l, protocol.V20251125)
		if err := l.Close(t.Context()); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: Close: %v", status, err)
		}
		r, _ := s.request(2)
		if r.Method != http.MethodDelete || r.Header.Get("Mcp-Session-Id") != session ||
			r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" || r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("%d: %s with %v", status, r.Method, r.Header)
		}
		if err := l.Close(t.Context()); err != nil || s.count() != 3 {
			t.Errorf("%d: closed again: %v", status, err)
		}
	}
}

func TestSessionBadID(t *testing.T) {
	for id, want := range map[string]string{"a b": "visible ASCII", strings.Repeat("a", 4097): "longer than 4096 bytes", strings.Repeat("a", 4096): ""} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Mcp-Session-Id", id)
			writeJSON(w, answer)
		})
		_, l := open(t, s.URL, origin.Options{}, true)
		m := call(0)
		m.Method = protocol.MethodInitialize
		if err := l.Send(t.Context(), m); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.10s: %v", id, err)
		}
	}
}
