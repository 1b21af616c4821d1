package docs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/client"
)

func connectLoggedIn(ctx context.Context, path string) error {
	authorized, err := oauth.New("https://notes.example.com/mcp", &oauth.Options{
		Document: &oauth.Document{URL: "https://app.example.com/client.json"},
		Store:    oauth.NewFileStore(path),
	})
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.HTTP("https://notes.example.com/mcp", &client.HTTPOptions{Client: authorized.HTTPClient()}), nil)
	if err != nil {
		return err
	}
	return c.Close()
}

func manually() *oauth.Options {
	return &oauth.Options{
		Grant: &oauth.AuthorizationCode{Agent: &oauth.Manual{Ask: oauth.AskUser(os.Stdin, os.Stderr)}},
	}
}

// There is no server of that name, and no login then either.
func TestLogin(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	if err := connectLoggedIn(over, filepath.Join(t.TempDir(), "logins")); err == nil {
		t.Error("connected to a server that is not there")
	}
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	if _, err := oauth.New(silent.URL, manually()); err != nil {
		t.Error(err)
	}
}
