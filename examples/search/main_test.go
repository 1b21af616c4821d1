package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

// A client finds one of many operations in its own words, and calls it.
func TestSearch(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization") != "")
	}))
	defer api.Close()
	var paths strings.Builder
	for i := range 200 {
		fmt.Fprintf(&paths, `"/rooms/%d": {"get": {"operationId": "room_%d", "summary": "Shows room %d"}},`, i, i, i)
	}
	doc := []byte(`{"openapi": "3.1.0", "paths": {` + paths.String() + `
		"/issues": {"get": {"operationId": "issues_list", "summary": "Lists issues"}, "post": {"operationId": "issues_create", "summary": "Creates an issue"}}}}`)
	mcptest.Each(t, func() *mcp.Server {
		s, err := newServer(api.URL, doc, "a-token-of-the-api")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		if n := len(c.Tools()); n != 3 {
			t.Errorf("the list has %d tools", n)
		}
		if got := c.Call("search_tools", map[string]any{"query": "list my tickets"}).Text(); !strings.Contains(got, `"issues_list"`) {
			t.Error(got)
		}
		if got := c.Call("call_read_tool", map[string]any{"name": "issues_list"}).Text(); got != "GET /issues true" {
			t.Error(got)
		}
		if r := c.Call("call_read_tool", map[string]any{"name": "issues_create"}); !r.IsError {
			t.Error(r.Text())
		}
		if got := c.Call("call_tool", map[string]any{"name": "issues_create"}).Text(); got != "POST /issues true" {
			t.Error(got)
		}
	})
}
