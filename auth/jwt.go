package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// JWTOptions are the options of a Verifier made by NewJWT. The zero value has
// the defaults.
type JWTOptions struct {
	// Audiences are those whose tokens are accepted. Empty means the URL of the
	// resource that New is given; otherwise that URL counts only if it is
	// listed.
	Audiences []string
	// AnyAudience accepts tokens whatever server they were issued for. Any server
	// that gets such a token can then use it here, which the specification forbids.
	// It is for authorization servers that name no audience, and only if they issue
	// tokens for no other server.
	AnyAudience bool
	// Algorithms are those with which tokens may be signed; empty means RS256,
	// RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA.
	// Symmetric ones, and "none", are refused.
	Algorithms []string
	// Leeway is how far clocks may differ; 0 means 30 s, negative none.
	Leeway time.Duration
	// ScopeClaims are the claims that hold what was granted, as a text with
	// spaces or as a list of texts; the first one present counts. Empty means
	// scope and scp.
	ScopeClaims []string
	// Check, if not nil, is asked last about a token that is valid otherwise.
	// An error of Invalid refuses the token; any other means that Check could
	// not find out.
	Check func(ctx context.Context, id *Identity) error
	// Keys are where the keys of the issuer come from; see KeyOptions.
	Keys KeyOptions
}

// defaultLeeway is the default of JWTOptions.Leeway.
const defaultLeeway = 30 * time.Second

// jwtVerifier is what NewJWT returns. Apart from its keys it does not change.
type jwtVerifier struct {
	opts       JWTOptions
	issuer     string
	audiences  audiences
	algorithms []jose.SignatureAlgorithm
	keys       *keySource
	err        error // of invalid arguments of NewJWT
}

// NewJWT returns a Verifier for access tokens that are JSON Web Tokens (RFC 9068,
// RFC 7519) of an issuer, whose URL must be spelled as in its metadata. Tokens
// have to be for the resource that New is given, unless the options say
// otherwise; without either none is accepted. A nil opts stands for the defaults.
//
// A token has to be signed by a key of the issuer, with an algorithm that the
// options permit; to be for the audience; to have an expiry that has not
// passed; and, if it says when it begins, to have begun. ID tokens and proofs
// are not access tokens and are refused by their typ or their audience.
//
// Nothing is fetched before the first token arrives. If the arguments are invalid,
// New and Verify return an error.
func NewJWT(issuer string, opts *JWTOptions) Verifier {
	v := &jwtVerifier{issuer: issuer}
	if opts != nil {
		v.opts = *opts
	}
	v.err = v.complete()
	return v
}

// complete checks the options and computes what follows from them. It is called
// once, by NewJWT.
func (v *jwtVerifier) complete() (err error) {
	v.audiences = newAudiences(v.opts.Audiences, v.opts.AnyAudience)
	names := v.opts.Algorithms
	if len(names) == 0 {
		names = asymmetric
	}
	if v.algorithms, err = signatureAlgorithms(names); err != nil {
		return fmt.Errorf("auth: JWTOptions.Algorithms: %w", err)
	}
	v.opts.Leeway = orDefault(v.opts.Leeway, defaultLeeway)
	v.opts.ScopeClaims = slices.Clone(v.opts.ScopeClaims)
	if len(v.opts.ScopeClaims) == 0 {
		v.opts.ScopeClaims = []string{"scope", "scp"}
	}
	if v.keys, err = newKeySource(v.issuer, v.opts.Keys); err != nil {
		return fmt.Errorf("auth: NewJWT: %w", err)
	}
	return nil
}

// bind implements issuer.
func (v *jwtVerifier) bind(resource string) (Verifier, error) {
	if v.err != nil || !v.audiences.none() {
		return v, v.err
	}
	bound := *v
	bound.audiences = newAudiences([]string{resource}, false)
	return &bound, nil
}

// issuers implements issuer.
func (v *jwtVerifier) issuers() []string { return []string{v.issuer} }

// asymmetric are the algorithms whose keys for verifying can be public.
var asymmetric = []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// signatureAlgorithms converts names; any that is not asymmetric is an error.
func signatureAlgorithms(names []string) ([]jose.SignatureAlgorithm, error) {
	list := make([]jose.SignatureAlgorithm, len(names))
	for i, name := range names {
		if !slices.Contains(asymmetric, name) {
			return nil, fmt.Errorf("%q cannot be; there are %s", name, strings.Join(asymmetric, ", "))
		}
		list[i] = jose.SignatureAlgorithm(name)
	}
	return list, nil
}

// Verify implements Verifier. The issuer that the token claims is compared
// before anything is fetched, and again in the verified claims.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*Identity, error) {
	switch {
	case v.err != nil:
		return nil, v.err
	case v.audiences.none():
		return nil, errNoAudience
	}
	signed, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		return nil, invalid(err, "the token is no JWT, or its algorithm is not allowed")
	}
	header := signed.Signatures[0].Protected
	if !accessType(header.ExtraHeaders[jose.HeaderType]) {
		return nil, Invalid("the token is of another type than access tokens are")
	}
	if !v.issued(token) { // before anything is fetched for it
		return nil, Invalid("the token is of an issuer that this server does not trust")
	}
	payload, err := v.payload(ctx, signed, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	c, err := parseClaims(payload)
	if err != nil {
		return nil, err
	}
	if err := v.valid(c, time.Now()); err != nil {
		return nil, err
	}
	id := c.identity(v.opts.ScopeClaims)
	if v.opts.Check != nil {
		if err := v.opts.Check(ctx, id); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// accessType reports whether typ, from the header of a token, is that of access
// tokens: at+jwt (RFC 9068), or JWT or nothing, as many issuers have it.
func accessType(typ any) bool {
	name, _ := typ.(string)
	if typ != nil && name == "" {
		return false
	}
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// payload verifies the signature with the keys that fit the header. If none
// fits, it asks for newer keys once, because the issuer may have a new one; the
// interval between fetches is limited by keySource.
func (v *jwtVerifier) payload(ctx context.Context, signed *jose.JSONWebSignature, kid, alg string) ([]byte, error) {
	var seen *keySet
	for range 2 {
		set, err := v.keys.after(ctx, seen)
		if err != nil {
			return nil, err
		}
		if set == seen {
			break // there are no newer keys yet
		}
		keys := set.fitting(kid, alg)
		for i := range keys {
			if payload, err := signed.Verify(&keys[i]); err == nil {
				return payload, nil
			}
		}
		if kid != "" && len(keys) > 0 {
			return nil, Invalid("the signature of the token is wrong")
		}
		seen = set // the issuer may have a new key
	}
	return nil, Invalid("the token is signed with no key of its issuer")
}

// valid checks the claims (RFC 9068, section 4).
func (v *jwtVerifier) valid(c *claims, now time.Time) error {
	leeway := v.opts.Leeway
	switch {
	case c.Issuer != v.issuer:
		return Invalid("the token is of an issuer that this server does not trust")
	case !v.audiences.include(c.Audience):
		return Invalid("the token was issued for another server")
	case c.other():
		return Invalid("the token is of another type than access tokens are")
	case c.Expiry == nil:
		return Invalid("the token has no expiry")
	case !now.Before(numericDate(*c.Expiry).Add(leeway)):
		return Invalid("the token has expired")
	case c.NotBefore != nil && now.Add(leeway).Before(numericDate(*c.NotBefore)):
		return Invalid("the token is not valid yet")
	case c.IssuedAt != nil && now.Add(leeway).Before(numericDate(*c.IssuedAt)):
		return Invalid("the token was issued in the future")
	}
	return nil
}

// takes implements taker.
func (v *jwtVerifier) takes(token string) (own, may bool) {
	own = v.issued(token)
	return own, own
}

// issued reports whether a token claims, without proof, to be of the issuer.
func (v *jwtVerifier) issued(token string) bool {
	_, rest, _ := strings.Cut(token, ".")
	body, _, ok := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if !ok || err != nil {
		return false
	}
	var all map[string]json.RawMessage
	var issuer string
	return jsonx.Unmarshal(payload, &all) == nil && jsonx.Unmarshal(all["iss"], &issuer) == nil && issuer == v.issuer
}

// httpClient returns c, or if it is nil a client that follows no redirects: an
// issuer's documents are where it says they are.
func httpClient(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
