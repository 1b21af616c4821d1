package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/auth/broker"
)

// Clients find the way from the endpoint to the page where the user is asked.
func TestWayToTheQuestion(t *testing.T) {
	const self = "http://127.0.0.1:8080"
	handler, err := newHandler(self, &broker.Provider{Issuer: "https://idp.example.com", ClientID: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/mcp": "", "/.well-known/oauth-protected-resource/mcp": self, "/.well-known/oauth-authorization-server": self + "/authorize",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, self+path, nil))
		if refused := w.Code == http.StatusUnauthorized; refused != (want == "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	if _, err := newHandler("http://notes.example.com", &broker.Provider{}); err == nil || !strings.Contains(err.Error(), "neither https nor on this machine") {
		t.Errorf("got %v", err)
	}
}
