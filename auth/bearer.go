package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
)

// Options say how a server is protected. Resource is required; the zero value
// of all else is the default.
type Options struct {
	// Resource is the URL of the endpoint as clients know it, such as
	// https://notes.example.com/mcp: without fragment, and without a slash at
	// the end unless that matters. It names the server to authorization servers
	// (RFC 8707), and the metadata is found by it (RFC 9728).
	Resource string
	// MetadataURL is where the metadata is, if HandleMetadata does not serve
	// it: "" means under the well-known path of Resource.
	MetadataURL string
	// AuthorizationServers are the issuers of tokens for this server, as URLs.
	// The metadata names them.
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
	// MaxToken limits a token, in bytes; 0 means DefaultMaxToken.
	MaxToken int
	// CacheFor is how long a token that was verified is not verified again,
	// which is also how long it outlives its revocation. It never outlives its
	// expiry. 0 means DefaultCacheFor, negative not at all.
	CacheFor time.Duration
	// CacheSize is how many tokens are kept so, those that were used last; 0
	// means DefaultCacheSize. One takes about a kilobyte and its own length.
	CacheSize int
	// Refused is told of each request that Bearer refuses, for logs and counters;
	// why has type *Error. What lacks a scope of a component is refused by the
	// server, and not told here. It must not log the headers of r, and is called by
	// many goroutines at once.
	Refused func(r *http.Request, why error)
}

// The defaults of Options.
const (
	DefaultMaxToken  = 16 << 10
	DefaultCacheFor  = time.Minute
	DefaultCacheSize = 10_000
)

// Bearer returns middleware that lets requests with a valid access token pass,
// and puts what it says into their context. All others are refused:
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
// If Options name AuthorizationServers, requests for the metadata of the
// Resource are answered here, without a token: a router that is behind Bearer as
// a whole needs no HandleMetadata. Bearer panics if v is nil or if opts
// make no sense, as a server would without its protection.
func Bearer(v Verifier, opts *Options) func(http.Handler) http.Handler {
	g := newGuard(v, opts)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if g.document != nil && isMetadata(r, g.path) {
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
}

// streamGrace is how long a stream may outlive its token: as long as the clocks
// may differ that let the token in.
const streamGrace = DefaultLeeway

// errTokenOver is why a stream ended.
var errTokenOver = errors.New("auth: the access token has ended")

// guard is what Bearer protects with.
type guard struct {
	opts      Options
	verifier  Verifier
	origin    string       // of Resource
	metadata  string       // URL
	path      string       // of the metadata
	document  http.Handler // nil if it is elsewhere
	cache     *cache
	proofs    *proofs
	anonymous *frame.Grant
}

func newGuard(v Verifier, opts *Options) *guard {
	if v == nil {
		panic("auth: Bearer needs a Verifier")
	}
	if opts == nil {
		opts = &Options{}
	}
	g := &guard{opts: opts.clone(), verifier: v}
	resource, err := resourceURL(g.opts.Resource)
	if err != nil {
		panic("auth: Options.Resource: " + err.Error())
	}
	for _, scope := range slices.Concat(g.opts.Scopes, g.opts.ScopesSupported) {
		if !validScope(scope) {
			panic(fmt.Sprintf("auth: Options.Scopes: %q is no scope; it has visible ASCII characters other than \" and \\", scope))
		}
	}
	g.origin = resource.Scheme + "://" + resource.Host
	path := MetadataPath(g.opts.Resource)
	if g.metadata = g.opts.MetadataURL; g.metadata == "" {
		g.metadata = g.origin + path
	}
	if len(g.opts.AuthorizationServers) > 0 {
		g.path, _, _ = strings.Cut(path, "?")
		g.document = Metadata(&g.opts)
	}
	if !quotable(g.metadata) {
		panic("auth: Options.MetadataURL is no URL")
	}
	if g.opts.MaxToken <= 0 {
		g.opts.MaxToken = DefaultMaxToken
	}
	g.cache = newCache(orDefault(g.opts.CacheFor, DefaultCacheFor), orDefault(g.opts.CacheSize, DefaultCacheSize))
	g.proofs = newProofs(g.opts.DPoP, g.origin)
	g.anonymous = frame.NewGrant(nil, g.challenger(schemeBearer, http.StatusUnauthorized))
	return g
}

// clone copies what opts refer to.
func (o *Options) clone() Options {
	c := *o
	c.AuthorizationServers = slices.Clone(o.AuthorizationServers)
	c.Scopes, c.ScopesSupported = slices.Clone(o.Scopes), slices.Clone(o.ScopesSupported)
	c.Implied = make(map[string][]string, len(o.Implied))
	for scope, implied := range o.Implied {
		c.Implied[scope] = slices.Clone(implied)
	}
	c.DPoP.Algorithms = slices.Clone(o.DPoP.Algorithms)
	return c
}

// orDefault returns n, def for 0, or 0 for a negative n.
func orDefault[N int | time.Duration](n, def N) N {
	switch {
	case n == 0:
		return def
	case n < 0:
		return 0
	}
	return n
}

// resourceURL checks the URL of a resource (RFC 9728, section 1.2).
func resourceURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("it is required: the URL of the endpoint as clients know it, such as https://notes.example.com/mcp")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%q is no absolute http or https URL without fragment", text)
	}
	return u, nil
}

// admit returns the grant of a request, or an *Error.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (*frame.Grant, error) {
	if r.URL.RawQuery != "" && inQuery(r.URL.RawQuery) {
		return nil, &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest,
			Description: "an access token must not be in the URL; use the Authorization header"}
	}
	scheme, token, err := credentials(r)
	if err != nil {
		return nil, err
	}
	if token == "" {
		if g.opts.Anonymous {
			return g.anonymous, nil
		}
		return nil, &Error{Status: http.StatusUnauthorized, Description: "this server needs an access token"}
	}
	if len(token) > g.opts.MaxToken {
		return nil, Invalid("the token is longer than %d bytes", g.opts.MaxToken)
	}
	t, err := g.cache.get(r.Context(), token, func(ctx context.Context) (*ticket, error) { return g.verify(ctx, token) })
	if err != nil {
		return nil, err
	}
	if scheme == schemeDPoP || t.key != "" || g.opts.DPoP.Required {
		if err := g.proofs.check(w, r, scheme, t.key, token); err != nil {
			return nil, err
		}
	}
	if t.lacking {
		return nil, &Error{Status: http.StatusForbidden, Code: CodeInsufficientScope,
			Description: "this server needs the scope " + strings.Join(g.opts.Scopes, " ")}
	}
	return t.grant, nil
}

// ticket is what is kept of a token.
type ticket struct {
	grant   *frame.Grant
	key     string    // thumbprint of the key that the token is bound to; "" if it is to none
	lacking bool      // it lacks a scope of Options.Scopes
	until   time.Time // when it must be verified again
}

// verify asks the Verifier.
func (g *guard) verify(ctx context.Context, token string) (*ticket, error) {
	if !validToken(token) {
		return nil, &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Description: "the Authorization header is malformed"}
	}
	said, err := g.verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	switch {
	case said == nil:
		return nil, errors.New("the Verifier returned neither an Identity nor an error")
	case said.Principal() == "":
		return nil, Invalid("the token names neither a subject nor a client")
	}
	id := *said
	id.Scopes = g.implied(id.Scopes)
	t := &ticket{lacking: !id.HasScope(g.opts.Scopes...), until: now.Add(g.cache.keep)}
	if !id.Expiry.IsZero() && id.Expiry.Before(t.until) {
		t.until = id.Expiry
	}
	if t.key, err = boundKey(id.Claims); err != nil {
		return nil, err
	}
	scheme := schemeBearer
	if t.key != "" {
		scheme = schemeDPoP
	}
	t.grant = frame.NewGrant(&id, g.challenger(scheme, http.StatusForbidden))
	return t, nil
}

// implied returns scopes with all that come with them.
func (g *guard) implied(scopes []string) []string {
	all := slices.Clone(scopes)
	for i := 0; i < len(all); i++ {
		for _, s := range g.opts.Implied[all[i]] {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}
