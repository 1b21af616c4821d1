package frame

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/protocol"
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
// in front of the server uses it; WithIdentity is simpler.
func WithGrant(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, principalKey{}, g)
}

// WithIdentity returns a context whose requests come from id: for middleware of
// one's own, for tests, and for transports whose client is known otherwise, as
// that of stdio is.
//
//	ctx = frame.WithIdentity(ctx, &frame.Identity{Subject: "me", Scopes: []string{"notes:write"}})
//	err := server.ServeStdio(ctx)
func WithIdentity(ctx context.Context, id *Identity) context.Context {
	return WithGrant(ctx, NewGrant(id, nil))
}

// IdentityOf returns what WithIdentity or WithGrant put into ctx; nil for an
// anonymous client.
func IdentityOf(ctx context.Context) *Identity {
	if g, ok := ctx.Value(principalKey{}).(*Grant); ok {
		return g.identity
	}
	return nil
}

// Identity returns who the request comes from; nil for an anonymous client, and
// for what is no request, such as the end of a session.
func (f *Frame) Identity() *Identity { return IdentityOf(f.ctx) }

// HasScope tells whether the request was granted all of scopes. To refuse a
// request that was not, use NeedScopes.
func (f *Frame) HasScope(scopes ...string) bool {
	return len(scopes) == 0 || f.Identity().HasScope(scopes...)
}

// NeedScopes returns nil if the request was granted all of scopes, and else the
// error to return from a handler: over HTTP it becomes the challenge by which
// clients get a token with those scopes and come again, unless the answer is a
// stream already, and everywhere it is a JSON-RPC error. Call it before anything
// is done, and with all scopes at once. It is for needs that depend on
// arguments; the option Scopes of a component is simpler. What is no scope, as
// one with a space from an argument in it, is never granted, and is not named to
// the client, which would ask its user for it.
func (f *Frame) NeedScopes(scopes ...string) error {
	if len(scopes) == 0 {
		return nil
	}
	needs := f.need(scopes)
	id := f.Identity()
	if id.HasScope(scopes...) {
		return nil
	}
	fault := &protocol.Error{Code: protocol.CodeInsufficientScope, Data: struct {
		Required []string `json:"requiredScopes"`
	}{needs}}
	switch {
	case id == nil:
		fault.Code = protocol.CodeUnauthorized
		fault.Message = "this needs an access token with scope " + strings.Join(needs, " ")
	case len(needs) == 0:
		fault.Message = "this needs a scope that nobody can be granted"
	default:
		fault.Message = "the access token lacks scope: this needs " + strings.Join(needs, " ")
	}
	return fault
}

// need notes what the request needs and returns all of it.
func (f *Frame) need(scopes []string) []string {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	needs := slices.Clip(f.root.needs) // who has them already keeps them
	for _, s := range scopes {
		if !slices.Contains(needs, s) && !noScope(s) {
			needs = append(needs, s)
		}
	}
	f.root.needs = needs
	return needs
}

// noScope tells whether scope is no scope-token (RFC 6749, section 3.3), and
// would be several, or break the challenge that it is in.
func noScope(scope string) bool {
	for _, c := range []byte(scope) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return true
		}
	}
	return scope == ""
}

// Challenge returns how a request that NeedScopes has refused is answered over
// HTTP; status is 0 if NeedScopes was not asked.
func (f *Frame) Challenge() (status int, header string) {
	f.root.mu.Lock()
	needs := f.root.needs
	f.root.mu.Unlock()
	if needs == nil {
		return 0, ""
	}
	if g, ok := f.ctx.Value(principalKey{}).(*Grant); ok && g.challenge != nil {
		return g.challenge(needs)
	}
	header = `Bearer scope="` + strings.Join(needs, " ") + `"`
	if f.Identity() == nil {
		return http.StatusUnauthorized, header
	}
	return http.StatusForbidden, `Bearer error="insufficient_scope",` + strings.TrimPrefix(header, "Bearer")
}
