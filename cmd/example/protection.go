package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
)

// The scopes of the workbench. Reading is needed for everything, so that
// clients ask for it at first; for writing they ask when it comes to that.
const (
	scopeRead  = "notes:read"
	scopeWrite = "notes:write"
)

// protection is the authorization of the workbench: what -auth turns on.
type protection struct {
	issuer   *authtest.Server
	resource *auth.Resource
}

// protect returns the protection of the endpoint at resource, with an
// authorization server for development beside it.
func protect(resource string) (*protection, error) {
	u, err := url.Parse(resource)
	if err != nil {
		return nil, err
	}
	issuer := u.Scheme + "://" + u.Host + "/auth"
	dev, err := authtest.New(&authtest.Options{Issuer: issuer, Resource: resource, Scopes: []authtest.Scope{
		{Name: scopeRead, Allows: "Use the workbench and read notes"},
		{Name: scopeWrite, Allows: "Add and delete notes"},
	}})
	if err != nil {
		return nil, err
	}
	protected, err := auth.New(resource, auth.NewJWT(issuer, &auth.JWTOptions{Check: dev.Revoked}), &auth.Options{
		Scopes: []string{scopeRead}, Name: "Workbench",
		DPoP:     auth.DPoPOptions{Offer: true, NonceKey: []byte(rand.Text())},
		CacheFor: -1, // so that a revocation is seen at once
	})
	return &protection{dev, protected}, err
}

// register puts the metadata and the authorization server into the router, and
// the endpoint behind its guard.
func (p *protection) register(r chi.Router, endpoint http.Handler) {
	r.Use(p.resource.Metadata, p.issuer.Middleware)
	r.With(p.resource.Bearer).Mount("/mcp", endpoint)
}

// needs makes a component need the scope, if -auth is on: without, nobody has
// any scope.
func (w *workbench) needs(scope string) mcp.Option {
	if !w.protected {
		return mcp.Bundle{}
	}
	return mcp.Scopes(scope)
}

// protectedGreeting tells what to do with a protected server at url.
func protectedGreeting(url string) string {
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
`, url, metadataURL(url))
}

// metadataURL returns where the metadata of a resource is.
func metadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + u.Path
}
