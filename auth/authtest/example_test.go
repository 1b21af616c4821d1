package authtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/client"
)

// A server that takes tokens, and a client with one.
func Example() {
	const resource = "https://notes.example.com/mcp"
	issuer, err := authtest.Start(&authtest.Options{Resource: resource, Scopes: []authtest.Scope{{Name: "notes:write"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer issuer.Close()

	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("add_note", func(f *mcp.Frame, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text + " is kept for " + f.Identity().Subject, nil
	}, mcp.Scopes("notes:write")))
	notes, err := auth.New(resource, auth.NewJWT(issuer.Issuer(), nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(notes.Bearer(s.Handler()))
	defer web.Close()

	token, err := issuer.Token("alice", "notes:write")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, client.HTTP(web.URL, &client.HTTPOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "add_note", map[string]string{"text": "milk"})
	fmt.Println(text, err)
	// Output: milk is kept for alice <nil>
}
