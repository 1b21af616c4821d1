package docs_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

type tokens map[string]string

func (t tokens) Token(_ context.Context, principal string) (string, error) { return t[principal], nil }

var (
	vault = tokens{"": "anonymous"}
	api   = ""
)

func issues(s *mcp.Server, doc []byte) error {
	tools, problems, err := openapi.Tools(doc, &openapi.Options{
		Server:  api,
		Include: func(op openapi.Operation) bool { return slices.Contains(op.Tags, "issues") },
		Auth: func(f *mcp.Frame, _ openapi.Operation, r *http.Request) error {
			token, err := vault.Token(f, f.Principal())
			r.Header.Set("Authorization", "Bearer "+token)
			return err
		},
	})
	for _, p := range problems {
		log.Print(p)
	}
	return errors.Join(err, s.Add(tools...))
}

func TestOpenAPI(t *testing.T) {
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"path":"` + r.RequestURI + `","known":` + map[bool]string{true: "true", false: "false"}[r.Header.Get("Authorization") == "Bearer anonymous"] + `}`))
	}))
	defer tracker.Close()
	api = tracker.URL
	s := mcp.NewServer(mcp.Info{Name: "issues", Version: "1"}, nil)
	err := issues(s, []byte(`
openapi: 3.1.0
paths:
  /issues/{number}:
    get:
      operationId: get_issue
      tags: [issues]
      parameters: [{name: number, in: path, required: true, schema: {type: integer}}]
  /users: {get: {operationId: list_users, tags: [users]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s)
	if tools := c.Tools(); len(tools) != 1 {
		t.Errorf("%d tools", len(tools))
	}
	if r := c.Call("get_issue", map[string]int{"number": 7}); !strings.Contains(r.Text(), `{"path":"/issues/7","known":true}`) {
		t.Error(r.Text())
	}
}
