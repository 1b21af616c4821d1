package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/gateway"
)

type crmAccounts struct{}

// Token implements what the page calls accounts.
func (crmAccounts) Token(_ context.Context, principal string) (string, error) {
	if principal == "" {
		return "", errors.New("nobody has no token")
	}
	return "token of " + principal, nil
}

var accounts crmAccounts

func office(s *mcp.Server, files client.Transport) (*gateway.Gateway, error) {
	g := gateway.New(s, nil) // the caller closes it
	return g, errors.Join(
		g.Set("files", gateway.Upstream{Transport: files, Only: []string{"read_*", "list_*"}}),
		g.Set("crm", gateway.Upstream{
			For: func(f *mcp.Frame) (caller string, t client.Transport, err error) {
				token, err := accounts.Token(f, f.Principal())
				header := http.Header{"Authorization": {"Bearer " + token}}
				return f.Principal(), client.HTTP("https://crm.example.com/mcp", &client.HTTPOptions{Header: header}), err
			},
			Rules: []gateway.Rule{{Tool: "search", Name: "find", Fixed: map[string]json.RawMessage{"org": json.RawMessage(`"acme"`)}}},
		}))
}

const gatewayFile = `{"mcpServers": {"crm": {"url": "https://crm.example.com/mcp", "talaria": {"rules": [{"tool": "search", "name": "find", "fixed": {"org": "acme"}}]}}}}`

func TestOffice(t *testing.T) {
	files := mcp.NewServer(mcp.Info{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"read_text", "write_text"} {
		files.MustAdd(mcp.Tool(name, func(*mcp.Frame, struct{}) (string, error) { return "text", nil }))
	}
	s := mcp.NewServer(mcp.Info{Name: "office", Version: "1"}, nil)
	g, err := office(s, client.Local(files.ServeConn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Local(s.ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"files_read_text"}) {
		t.Errorf("got %q", names)
	}
	if r, err := c.Call(t.Context(), "crm_find", nil); err != nil || r.Text() != "nobody has no token" {
		t.Errorf("got %v %v", r, err)
	}
	f, err := config.Parse(".mcp.json", []byte(gatewayFile), nil)
	if err != nil || f.Err() != nil || len(f.Servers[0].Talaria) == 0 {
		t.Errorf("got %+v %v", f, err)
	}
}
