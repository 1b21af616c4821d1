package main

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
)

// The scopes of the workbench. Reading is needed for everything, so that
// clients ask for it at first; for writing they ask when it comes to that.
const (
	scopeRead  = "notes:read"
	scopeWrite = "notes:write"
)

// protect returns what -auth turns on: the protection of the endpoint at url,
// and an authorization server for development beside it.
func protect(url string) (*auth.Resource, *authtest.Server, error) {
	issuer, err := authtest.New(&authtest.Options{
		Issuer: strings.TrimSuffix(url, "/mcp") + "/auth", Resource: url,
		Scopes: []authtest.Scope{
			{Name: scopeRead, Allows: "Use the workbench and read notes"},
			{Name: scopeWrite, Allows: "Add and delete notes"},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	resource, err := auth.New(url, auth.NewJWT(issuer.Issuer(), &auth.JWTOptions{Check: issuer.Revoked}), &auth.Options{
		Scopes: []string{scopeRead}, Name: "Workbench",
		DPoP:     auth.DPoPOptions{Offer: true, NonceKey: []byte(rand.Text())},
		CacheFor: -1, // so that a revocation is seen at once
	})
	return resource, issuer, err
}

// protectedGreeting tells what to do with a protected server at url.
func protectedGreeting(url string) string {
	wellKnown := strings.TrimSuffix(url, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	return fmt.Sprintf(`The workbench serves MCP at %[1]s, to clients with an access token.
The authorization server beside it is for DEVELOPMENT ONLY: it asks nobody for a
password, and forgets everything when this program ends.

Point a client that speaks OAuth at %[1]s: it registers, opens a
browser, and asks again when a note is to be added or deleted. The command does:

talaria login %[1]s
talaria http %[1]s

To see what a client sees first:

curl -sS -i -X POST %[1]s
curl -sS %[2]s

Ctrl-C stops it.
`, url, wellKnown)
}
