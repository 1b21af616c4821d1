package frame

import (
	"context"
	"slices"
	"strings"
	"time"
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

// HasScope tells whether all of scopes were granted. It is false for nil,
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
// for an Identity that names nobody.
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

// Grant is an Identity as it travels with requests: with what follows from it,
// made once for all requests with one token.
type Grant struct {
	identity  *Identity
	principal string
	challenge Challenger
}

// Challenger says how a request that lacks scopes is answered over HTTP:
// status and the value of WWW-Authenticate. scopes are all that the operation
// needs.
type Challenger func(scopes []string) (status int, header string)

// NewGrant returns the Grant of id; nil stands for an anonymous client. A nil
// challenge stands for a plain one.
func NewGrant(id *Identity, challenge Challenger) *Grant {
	return &Grant{identity: id, principal: id.Principal(), challenge: challenge}
}

// WithGrant returns a context whose requests come from who g says. Middleware
// in front of the server uses it; mcp.WithIdentity is simpler.
func WithGrant(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, principalKey{}, g)
}

// IdentityOf returns what mcp.WithIdentity or WithGrant put into ctx; nil for an
// anonymous client.
func IdentityOf(ctx context.Context) *Identity {
	if g, ok := ctx.Value(principalKey{}).(*Grant); ok {
		return g.identity
	}
	return nil
}

// noScope tells whether scope is no scope-token (RFC 6749, section 3.3), and
// would be several, or break the challenge that it is in. Scopes may come from
// arguments, and thus from a client.
func noScope(scope string) bool {
	for _, c := range []byte(scope) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return true
		}
	}
	return scope == ""
}

// principalKey is of a string or of a *Grant: what is looked up for each
// request is in one place.
type principalKey struct{}

// WithPrincipal returns a context whose requests belong to principal, the name
// of who was authenticated. It is for net/http middleware in front of the
// server; what a server keeps for a client is bound to it. mcp.WithIdentity
// says more, and takes the place of the name.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
}

// PrincipalOf returns who was authenticated, as WithPrincipal or mcp.WithIdentity
// put it into ctx; "" for an anonymous client.
func PrincipalOf(ctx context.Context) string {
	switch who := ctx.Value(principalKey{}).(type) {
	case string:
		return who
	case *Grant:
		return who.principal
	}
	return ""
}
