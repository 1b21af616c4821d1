package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/auth/internal/jwt"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/safely"
)

// guard is what a Resource consists of. newGuard sets all fields; afterwards
// they do not change, apart from what cache and proofs keep behind their own
// locks.
type guard struct {
	opts     Options
	resource string // as clients know it
	verifier Verifier
	origin   string       // of resource
	metadata string       // URL, "" if there is none
	path     string       // of the metadata
	document http.Handler // nil if it is elsewhere
	cache    *cache
	proofs   *proofs
	// anonymous is the grant of requests without a token, if Options.Anonymous
	// permits them: no identity, and a challenger that asks for a token.
	anonymous *core.Grant
}

// newGuard checks the arguments of New and computes everything that does not
// depend on a request.
func newGuard(resource string, v Verifier, opts *Options) (*guard, error) {
	if v == nil {
		return nil, errors.New("auth: New needs a Verifier")
	}
	u, err := resourceURL(resource)
	if err != nil {
		return nil, fmt.Errorf("auth: New: the URL of the resource: %w", err)
	}
	if opts == nil {
		opts = &Options{}
	}
	g := &guard{opts: opts.clone(), resource: resource, verifier: v}
	if free, ok := v.(binder); ok {
		if g.verifier, err = free.bind(resource); err != nil {
			return nil, err
		}
	}
	if known, ok := v.(jwt.Issuer); ok {
		g.opts.AuthorizationServers = unique(append(known.Issuers(), g.opts.AuthorizationServers...))
	}
	for _, scope := range slices.Concat(g.opts.Scopes, g.opts.ScopesSupported) {
		if !validScope(scope) {
			return nil, fmt.Errorf("auth: Options.Scopes: %q is not a scope; it has visible ASCII characters other than \" and \\", scope)
		}
	}
	g.origin = u.Scheme + "://" + u.Host
	path := metadataPath(u)
	g.metadata = g.opts.MetadataURL
	if len(g.opts.AuthorizationServers) > 0 {
		if g.metadata == "" {
			g.metadata = g.origin + path
		}
		g.path, _, _ = strings.Cut(path, "?")
		g.document = metadata(resource, &g.opts)
	}
	if g.metadata != "" && !quotable(g.metadata) {
		return nil, errors.New("auth: Options.MetadataURL is no URL")
	}
	if g.opts.MaxToken <= 0 {
		g.opts.MaxToken = defaultMaxToken
	}
	g.cache = newCache(jwt.OrDefault(g.opts.CacheFor, defaultCacheFor), jwt.OrDefault(g.opts.CacheSize, defaultCacheSize))
	if g.proofs, err = newProofs(g.opts.DPoP, g.origin); err != nil {
		return nil, err
	}
	g.anonymous = &core.Grant{Challenge: g.challenger(schemeBearer, http.StatusUnauthorized)}
	return g, nil
}

// unique returns list without repetitions, in its order.
func unique(list []string) (once []string) {
	for _, s := range list {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// clone copies the options with the slices and maps in them.
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

// resourceURL parses the URL of a resource and checks it (RFC 9728, section
// 1.2).
func resourceURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("it is required: the URL of the endpoint as clients know it, such as https://notes.example.com/mcp")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%q is not an absolute http or https URL without fragment", text)
	}
	return u, nil
}

// admit returns the grant of a request. Its error is an *Error for what the
// client can fix, and any other error if the token could not be verified. The
// order of the checks matters: a token that is too long is never verified, a
// proof is checked only for a token that is valid, and a missing scope is
// reported last, since only a rightful holder should learn of it.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (*core.Grant, error) {
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
	t, known := g.cache.find(token)
	if !known {
		t, err = g.cache.get(r.Context(), token, g.verify)
		if err != nil {
			return nil, err
		}
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

// ticket is the result of a verification, as the cache keeps it. It is
// immutable and shared by all requests with the token.
type ticket struct {
	grant   *core.Grant
	key     string    // thumbprint of the key that the token is bound to; "" if it is to none
	lacking bool      // it lacks a scope of Options.Scopes
	until   time.Time // when it must be verified again
}

// verify asks the Verifier about a token and returns a ticket. An identity
// without a principal is refused, because nothing could be bound to it.
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
	t.grant = &core.Grant{Name: id.Principal(), Identity: &id, Challenge: g.challenger(scheme, http.StatusForbidden)}
	return t, nil
}

// implied returns scopes together with those that Options.Implied adds,
// directly or through others.
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

// describes reports whether r asks for the metadata.
func (g *guard) describes(r *http.Request) bool { return g.document != nil && isMetadata(r, g.path) }

// refuse answers a request that was not admitted. An error that is no *Error
// means that the token could not be verified, which is 503.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	why, ok := errors.AsType[*Error](err)
	if !ok {
		why = &Error{Status: http.StatusServiceUnavailable, Description: "the token cannot be verified at the moment", Err: err}
	}
	if g.opts.OnRefused != nil {
		if err := safely.Apart(func() { g.opts.OnRefused(r, why) }); err != nil {
			report(r, err)
		}
	}
	// net/http waits for the rest of a body, which may never come.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime))
	header := w.Header()
	switch {
	case why.Status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "5")
	default:
		for _, scheme := range g.schemes(r, why) {
			header.Add("WWW-Authenticate", g.header(challenge{
				scheme: scheme, code: why.Code, description: describe(why), scopes: g.opts.Scopes,
			}))
		}
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(why.Status)
	// The client may be gone, which net/http notices by itself.
	_ = json.NewEncoder(w).Encode(struct {
		Code        string `json:"error,omitempty"`
		Description string `json:"error_description"`
	}{why.Code, why.Description})
}

// schemes returns the schemes that a client is challenged for: the one it has
// tried, or those that the server accepts.
func (g *guard) schemes(r *http.Request, why *Error) []string {
	tried, _, _ := credentials(r)
	switch {
	case g.opts.DPoP.Required || why.Code == codeInvalidProof || why.Code == codeUseNonce || tried == schemeDPoP:
		return []string{schemeDPoP}
	case g.opts.DPoP.Offer && tried == "":
		return []string{schemeBearer, schemeDPoP}
	}
	return []string{schemeBearer}
}

// challenger returns the function with which the server answers requests that
// lack scopes of a component. The challenge names the scopes of the whole
// server too, so that a client needs one round only.
func (g *guard) challenger(scheme string, status int) func(scopes []string) (status int, header string) {
	return func(scopes []string) (int, string) {
		all := slices.Clone(g.opts.Scopes)
		for _, s := range scopes {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		c := challenge{scheme: scheme, scopes: all}
		if status == http.StatusForbidden {
			c.code, c.description = CodeInsufficientScope, "this needs the scope "+strings.Join(all, " ")
		}
		return status, g.header(c)
	}
}

// header returns the value of a WWW-Authenticate header (RFC 6750, section 3;
// RFC 9728, section 5.1; RFC 9449, section 7.1). The parameters that clients
// look for come first.
func (g *guard) header(c challenge) string {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+value+`"`)
		}
	}
	add("error", c.code)
	add("error_description", plain(c.description))
	add("scope", strings.Join(c.scopes, " "))
	add("resource_metadata", g.metadata)
	if c.scheme == schemeDPoP {
		add("algs", strings.Join(g.proofs.algorithms, " "))
	}
	if len(params) == 0 { // there has to be one
		add("realm", plain(g.resource))
	}
	return c.scheme + " " + strings.Join(params, ", ")
}
