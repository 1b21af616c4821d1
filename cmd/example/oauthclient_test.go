package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/auth/oauth"
)

// browse is a user who agrees to everything, with a browser.
func browse(asked *[]string) func(ctx context.Context, address string) error {
	return func(ctx context.Context, address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		scope := u.Query().Get("scope")
		*asked = append(*asked, scope)
		page, err := http.Get(address)
		if err != nil {
			return err
		}
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		if err != nil {
			return err
		}
		id := hiddenID.FindSubmatch(text)
		if id == nil {
			return fmt.Errorf("the page has no form: %s", text)
		}
		u.Path, u.RawQuery = "/auth/consent", ""
		form := url.Values{"id": {string(id[1])}, "user": {"alice"}, "answer": {"allow"}, "scope": strings.Fields(scope)}
		sent, err := http.PostForm(u.String(), form) // is sent back to the client
		if err != nil {
			return err
		}
		return sent.Body.Close()
	}
}

// The client of this module finds its way by itself: it registers, logs in,
// asks for more when a note is to be added, and logs out. It binds its tokens to
// a key if it may.
func TestOwnClient(t *testing.T) {
	for name, mode := range map[string]oauth.DPoPMode{"as it comes": oauth.DPoPAuto, "bound": oauth.DPoPRequired, "not bound": oauth.DPoPOff} {
		t.Run(name, func(t *testing.T) { ownClient(t, mode) })
	}
}

func ownClient(t *testing.T, mode oauth.DPoPMode) {
	v := newVisitor(t)
	var asked []string
	c, err := oauth.New(v.resource, &oauth.Options{
		DPoP: mode, Grant: &oauth.AuthorizationCode{Agent: &oauth.Loopback{Browse: browse(&asked), Prompt: func(string) {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	v.http = c.HTTPClient()
	for _, call := range [][2]string{{"search_notes", `{}`}, {"add_note", `{"text":"milk"}`}, {"search_notes", `{}`}, {"add_note", `{"text":"bread"}`}} {
		if status, challenge, body := v.call(call[0], call[1]); status != 200 || strings.Contains(body, "isError") {
			t.Fatalf("%s: status %d, %q, %s", call[0], status, challenge, body)
		}
	}
	for i := range asked {
		asked[i] = strings.TrimSpace(strings.ReplaceAll(asked[i], "offline_access", ""))
	}
	if len(asked) != 2 || asked[0] != scopeRead || !strings.Contains(asked[1], scopeRead) || !strings.Contains(asked[1], scopeWrite) {
		t.Errorf("the user was asked for %q", asked)
	}
	token, err := c.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if wanted := map[bool]string{true: "Bearer", false: "DPoP"}[mode == oauth.DPoPOff]; token.Type() != wanted {
		t.Errorf("the token is of type %s", token.Type())
	}
	status, err := c.Status(t.Context())
	if err != nil || status == nil || !strings.HasSuffix(status.Issuer, "/auth") || !slices.Contains(status.Scopes, scopeWrite) || !status.Refreshable || !status.Expiry.Equal(token.Expiry) {
		t.Errorf("logged in: got %+v, %v", status, err)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Status(t.Context()); status != nil || err != nil {
		t.Errorf("logged out: got %+v, %v", status, err)
	}
	v.http, v.token = http.DefaultClient, token.AccessToken
	if status, challenge, _ := v.call("search_notes", `{}`); status != 401 || !strings.Contains(challenge, "revoked") {
		t.Errorf("after logout: status %d, %q", status, challenge)
	}
}
