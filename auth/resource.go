package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/core"
)

// Options determine how a server is protected. The zero value has the defaults.
type Options struct {
	// MetadataURL is the URL of the metadata if it is not served by this
	// package. "" means the well-known path of the resource, if there are
	// authorization servers, and otherwise none.
	MetadataURL string
	// AuthorizationServers are the issuers of tokens for this server, as URLs,
	// in addition to those that the Verifier knows, as one of NewJWT does. The
	// metadata names all of them. If there are none, clients get their tokens
	// in some other way; unless MetadataURL is set, no challenge refers to
	// metadata then.
	AuthorizationServers []string
	// Scopes are required for every request. Components may require more: see
	// mcp.Scopes.
	Scopes []string
	// Implied maps a scope to narrower ones that it includes:
	//
	//	Implied: map[string][]string{"notes:admin": {"notes:write"}, "notes:write": {"notes:read"}}
	Implied map[string][]string
	// ScopesSupported are the scopes in the metadata. A client asks for them at
	// first if no challenge has named others. Empty means Scopes.
	// offline_access does not belong here and is left out.
	ScopesSupported []string
	// Name and Documentation are for people: the name of the server, and the
	// URL of a page about it. They are part of the metadata.
	Name, Documentation string
	// Anonymous lets requests without any token pass. They have no Identity, so
	// that components with Scopes answer them with 401.
	Anonymous bool
	// DPoP determines how proofs for tokens that are bound to a key are
	// checked. Such tokens are never accepted without a proof.
	DPoP DPoPOptions
	// MaxToken limits a token, in bytes; 0 means 16 KiB.
	MaxToken int
	// CacheFor is how long a verified token is not verified again, which is
	// also how long it can be used after it was revoked. A token is never used
	// after its expiry. 0 means a minute, a negative value not at all.
	CacheFor time.Duration
	// CacheSize is how many verified tokens are kept, those used last; 0 means
	// 10,000. Each takes about a kilobyte and its own length.
	CacheSize int
	// OnRefused, if not nil, is called for each request that is refused, for logs
	// and counters; why has type *Error. Requests that lack a scope of a
	// component are refused by the server and not reported here. OnRefused must
	// not log the headers of r. It is called by many goroutines at once.
	OnRefused func(r *http.Request, why error)
}

// The defaults of Options.
const (
	defaultMaxToken  = 16 << 10
	defaultCacheFor  = time.Minute
	defaultCacheSize = 10_000
)

// Resource is a protected server, as clients know it. Its methods return
// middleware for any router of net/http and are safe for concurrent use.
type Resource struct{ guard *guard }

// New returns the protection for a server. resource is the URL of the endpoint
// as clients know it, such as https://notes.example.com/mcp, without a
// fragment, and without a slash at the end unless that matters. It names the
// server to authorization servers (RFC 8707), determines where the metadata is
// (RFC 9728), and is the audience that tokens must have unless v was given
// another one.
//
// A nil opts stands for the defaults; opts are copied. An error means that the
// arguments, or those of v, make no sense. Nothing is fetched.
func New(resource string, v Verifier, opts *Options) (*Resource, error) {
	g, err := newGuard(resource, v, opts)
	if err != nil {
		return nil, err
	}
	return &Resource{g}, nil
}

// Bearer returns middleware that lets requests with a valid access token pass
// and puts what the token says into their context. All others are refused:
//
//   - 401 without a token, or with one that is not valid;
//   - 403 with a token that lacks a scope;
//   - 400 if there are two Authorization headers or a malformed one, or if the
//     token is in the URL;
//   - 503 if the Verifier could not find out.
//
// All but the last have a WWW-Authenticate header (RFC 6750, RFC 9728). Each
// request of a session has to carry its token. Streams and WebSocket
// connections, which begin with a GET, are ended soon after the expiry of their
// token, so that the client returns with another one.
//
// Requests for the metadata of the resource are answered here too, without a
// token: a router that is wholly behind Bearer needs no Metadata.
func (p *Resource) Bearer(next http.Handler) http.Handler {
	g := p.guard
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.describes(r) {
			g.document.ServeHTTP(w, r)
			return
		}
		grant, err := g.admit(w, r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		ctx := core.WithGrant(r.Context(), grant)
		if id, _ := grant.Identity.(*Identity); r.Method == http.MethodGet && id != nil && !id.Expiry.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, id.Expiry.Add(streamGrace), errTokenOver)
			defer cancel()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Metadata returns middleware that answers requests for the metadata of the
// resource (RFC 9728) where clients look for it: under its well-known path,
// such as https://host/.well-known/oauth-protected-resource/mcp, and at the
// root, https://host/.well-known/oauth-protected-resource, which clients try
// next. All other requests pass. It goes in front of the router of the whole
// host:
//
//	r.Use(notes.Metadata)
//	r.With(notes.Bearer).Mount("/mcp", s.Handler())
//
// Without authorization servers there is no metadata, and all requests pass.
func (p *Resource) Metadata(next http.Handler) http.Handler {
	g := p.guard
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.describes(r) {
			g.document.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// streamGrace is how long a stream may outlive its token. It equals the
// difference between clocks with which the token may have been accepted.
const streamGrace = defaultLeeway

// errTokenOver is the cause of the end of a stream whose token has expired.
var errTokenOver = errors.New("auth: the access token has ended")
