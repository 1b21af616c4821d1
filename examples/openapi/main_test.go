package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
)

// Each caller has its own key at the API, and nobody else is served.
func TestCallers(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(map[string]string{"Bearer a-key-of-ann": "ann", "Bearer a-key-of-bob": "bob"}[r.Header.Get("Authorization")]))
	}))
	defer api.Close()
	handler, err := newHandler(api.URL, []byte("{openapi: 3.1.0, paths: {/me: {get: {operationId: whoami}}}}"),
		Callers{map[string]string{"t1": "ann", "t2": "bob"}, map[string]string{"ann": "a-key-of-ann", "bob": "a-key-of-bob"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for token, want := range map[string]string{"t1": "ann", "t2": "bob", "t3": ""} {
		c, err := client.Connect(t.Context(), client.HTTP(server.URL, &client.HTTPOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}), nil)
		if err != nil {
			if want != "" {
				t.Error(err)
			}
			continue
		}
		defer c.Close()
		r, err := c.Call(t.Context(), "whoami", nil)
		if err != nil || !strings.Contains(r.Text(), want) || want == "" {
			t.Errorf("%s: %v, %v; want %q", token, r, err, want)
		}
	}
}
