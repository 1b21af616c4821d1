package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/frame"
)

// Options say how a server is protected. The zero value is the default.
type Options struct {
	// MetadataURL is where the metadata is, if it is not served here: "" means
	// under the well-known path of the resource, and nowhere without authorization
	// servers.
	MetadataURL string
	// AuthorizationServers are the issuers of tokens for this server, as URLs,
	// besides those that the Verifier knows, as NewJWT does. The metadata names
	// them all. None at all means that clients get their tokens by hand: unless
	// MetadataURL is set, no challenge sends them to metadata then.
	AuthorizationServers []string
	// Scopes are needed for every request. Components may need more: see
	// mcp.Scopes.
	Scopes []string
	// Implied are the scopes that come with a broader one:
	//
	//	Implied: map[string][]string{"notes:admin": {"notes:write"}, "notes:write": {"notes:read"}}
	Implied map[string][]string
	// ScopesSupported are those that the metadata names: what a client asks for
	// at first, if no challenge has told it. Empty means Scopes. offline_access
	// does not belong here.
	ScopesSupported []string
	// Name and Documentation are for people: what the server is called, and
	// the URL of a page about it. The metadata has them.
	Name, Documentation string
	// Anonymous lets requests without any token pass. They have no Identity, so
	// that components with Scopes answer them with 401.
	Anonymous bool
	// DPoP shapes the proofs of tokens that are bound to a key. Such tokens are
	// never taken without one.
	DPoP DPoPOptions
	// MaxToken limits a token, in bytes; 0 means 16 KiB.
	MaxToken int
	// CacheFor is how long a token that was verified is not verified again,
	// which is also how long it outlives its revocation. It never outlives its
	// expiry. 0 means a minute, negative not at all.
	CacheFor time.Duration
	// CacheSize is how many tokens are kept so, those that were used last; 0
	// means 10,000. One takes about a kilobyte and its own length.
	CacheSize int
	// Refused is told of each request that is refused, for logs and counters;
	// why has type *Error. What lacks a scope of a component is refused by the
	// server, and not told here. It must not log the headers of r, and is called by
	// many goroutines at once.
	Refused func(r *http.Request, why error)
}

// What zero Options stand for.
const (
	defaultMaxToken  = 16 << 10
	defaultCacheFor  = time.Minute
	defaultCacheSize = 10_000
)

// Resource is a protected server, as clients know it. Its methods are
// middleware for any router of net/http, and safe for concurrent use.
type Resource struct{ guard *guard }

// New returns the protection of a server. resource is the URL of the endpoint
// as clients know it, such as https://notes.example.com/mcp: without fragment,
// and without a slash at the end unless that matters. It names the server to
// authorization servers (RFC 8707), the metadata is found by it (RFC 9728), and
// tokens must be for it, unless the Verifier was told otherwise. nil stands for
// the default Options, which are copied. An error means that the arguments, or
// those of the Verifier, make no sense.
func New(resource string, v Verifier, opts *Options) (*Resource, error) {
	g, err := newGuard(resource, v, opts)
	if err != nil {
		return nil, err
	}
	return &Resource{g}, nil
}

// Bearer lets requests with a valid access token pass, and puts what it says
// into their context. All others are refused:
//
//   - 401 without a token, or with one that is not valid;
//   - 403 with one that lacks a scope;
//   - 400 if the Authorization header is there twice or is malformed, or if the
//     token is in the URL;
//   - 503 if the Verifier could not find out.
//
// All but the last have a WWW-Authenticate (RFC 6750, RFC 9728). Each request
// of a session has to bring its token. Streams and WebSocket connections, which
// begin with a GET, end soon after theirs has, so that the client comes again
// with another.
//
// Requests for the metadata of the resource are answered here, too, without a
// token: a router that is behind Bearer as a whole needs no Metadata.
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
		ctx := frame.WithGrant(r.Context(), grant)
		if id := frame.IdentityOf(ctx); r.Method == http.MethodGet && id != nil && !id.Expiry.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, id.Expiry.Add(streamGrace), errTokenOver)
			defer cancel()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Metadata answers requests for the metadata of the resource (RFC 9728) where
// clients look for it: under its well-known path, as
// https://host/.well-known/oauth-protected-resource/mcp, and at the root, as
// https://host/.well-known/oauth-protected-resource, which clients try next. All
// others pass. It goes before the router of the whole host:
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

// describes tells whether r is for the metadata.
func (g *guard) describes(r *http.Request) bool { return g.document != nil && isMetadata(r, g.path) }

// streamGrace is how long a stream may outlive its token: as long as the clocks
// may differ that let the token in.
const streamGrace = defaultLeeway

// errTokenOver is why a stream ended.
var errTokenOver = errors.New("auth: the access token has ended")
