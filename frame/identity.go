package frame

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/core"
)

// Identity is who a request comes from and what it may do, as its access token
// says. Requests with the same token share one: nothing in it may be changed.
type Identity struct {
	Issuer   string // the authorization server, as its URL; "" if there is none
	Subject  string // who is meant, a name that is unique for the issuer
	ClientID string // the program that was let in; "" if the token does not tell
	// Scopes are what was granted, with those that they imply.
	Scopes []string
	// Expiry is when the token ends; zero means that it has no known end.
	Expiry time.Time
	// Claims is all that the token says, as encoding/json decodes it.
	Claims map[string]any
}

// HasScope reports whether all of scopes were granted. It is false for nil,
// unless none is asked for.
func (id *Identity) HasScope(scopes ...string) bool {
	for _, s := range scopes {
		if id == nil || !slices.Contains(id.Scopes, s) {
			return false
		}
	}
	return true
}

// Principal returns the name that what a server keeps is bound to. It is made
// of issuer and subject, so that one issuer cannot name the subjects of
// another; a token without subject stands for its client. It is "" for nil, and
// for an Identity without issuer, subject and client.
func (id *Identity) Principal() string {
	switch {
	case id == nil || id.Subject == "" && id.ClientID == "":
		return ""
	case id.Subject == "":
		return escape.Replace(id.Issuer) + "##" + escape.Replace(id.ClientID)
	}
	return escape.Replace(id.Issuer) + "#" + escape.Replace(id.Subject)
}

// escape keeps the parts of a principal apart.
var escape = strings.NewReplacer("%", "%25", "#", "%23")

// identityOf returns what mcp.WithIdentity, or the middleware of package auth,
// put into ctx; nil for an anonymous client.
func identityOf(ctx context.Context) *Identity {
	id, _ := core.GrantOf(ctx).Identity.(*Identity)
	return id
}

// noScope reports whether scope is not a scope-token (RFC 6749, section 3.3),
// and would be several, or break the challenge that it is in. Scopes may come
// from arguments, and thus from a client.
func noScope(scope string) bool {
	for _, c := range []byte(scope) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return true
		}
	}
	return scope == ""
}
