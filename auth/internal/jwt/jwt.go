// Package jwt verifies JSON Web Tokens (RFC 7519) of an issuer: access tokens for
// package auth, and ID tokens for package auth/broker. It finds the keys of an
// issuer through its metadata, and keeps them for a while.
//
// A [Verifier] and [Keys] are safe for concurrent use. They have no goroutine that
// outlives a call.
package jwt

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

// Kind is what a token is for.
type Kind string

// The kinds of tokens. An ID token has no typ or JWT in its header; an access
// token may also have at+jwt (RFC 9068).
const (
	Access Kind = "access tokens"
	ID     Kind = "ID tokens"
)

// Issuer is implemented by a verifier that knows whose tokens it accepts.
type Issuer interface {
	// Issuers returns the issuers whose tokens it accepts, as far as it knows.
	Issuers() []string
}

// Taker is implemented by a verifier that can tell, without verifying, whether a
// token belongs to it. own means that the token is for no other verifier; may
// means that it could be for this one.
type Taker interface {
	Takes(token string) (own, may bool)
}

// Refusal is the error of a token that is not accepted. Any other error means that
// a token could not be verified.
type Refusal struct {
	Text string
	Err  error // the cause, or nil
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(err error, format string, args ...any) error {
	return &Refusal{fmt.Sprintf(format, args...), err}
}

// Asymmetric are the algorithms whose keys for verifying can be public.
var Asymmetric = []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// Algorithms converts names; any that is not asymmetric is an error.
func Algorithms(names []string) ([]jose.SignatureAlgorithm, error) {
	list := make([]jose.SignatureAlgorithm, len(names))
	for i, name := range names {
		if !slices.Contains(Asymmetric, name) {
			return nil, fmt.Errorf("%q cannot be; there are %s", name, strings.Join(Asymmetric, ", "))
		}
		list[i] = jose.SignatureAlgorithm(name)
	}
	return list, nil
}

// Verifier verifies tokens of one kind. It must not change.
type Verifier struct {
	Kind       Kind
	Issuer     string
	Algorithms []jose.SignatureAlgorithm
	Leeway     time.Duration // how far clocks may differ
	Keys       *Keys
}

// Verify returns the claims of a token whose audience audience accepts. The issuer
// that the token claims is compared before anything is fetched, and again in the
// verified claims.
func (v *Verifier) Verify(ctx context.Context, token string, audience func([]string) bool) (*Claims, error) {
	signed, err := jose.ParseSignedCompact(token, v.Algorithms)
	if err != nil {
		return nil, refuse(err, "the token is no JWT, or its algorithm is not allowed")
	}
	header := signed.Signatures[0].Protected
	if !v.hasType(header.ExtraHeaders[jose.HeaderType]) {
		return nil, refuse(nil, "the token is of another type than %s are", v.Kind)
	}
	if !v.Issued(token) { // before anything is fetched for it
		return nil, refuse(nil, "the token is of an issuer that this server does not trust")
	}
	payload, err := v.payload(ctx, signed, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	c, err := Parse(payload)
	if err != nil {
		return nil, err
	}
	return c, v.valid(c, audience, time.Now())
}

// hasType reports whether typ, from the header of a token, is that of the kind:
// JWT or nothing, as many issuers have it, or that of RFC 9068.
func (v *Verifier) hasType(typ any) bool {
	name, _ := typ.(string)
	if typ != nil && name == "" {
		return false
	}
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "", "jwt":
		return true
	case "at+jwt":
		return v.Kind == Access
	}
	return false
}

// payload verifies the signature with the keys that fit the header. If none
// fits, it asks for newer keys once, because the issuer may have a new one; the
// interval between fetches is limited by Keys.
func (v *Verifier) payload(ctx context.Context, signed *jose.JSONWebSignature, kid, alg string) ([]byte, error) {
	var seen *keySet
	for range 2 {
		set, err := v.Keys.after(ctx, seen)
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
			return nil, refuse(nil, "the signature of the token is wrong")
		}
		seen = set // the issuer may have a new key
	}
	return nil, refuse(nil, "the token is signed with no key of its issuer")
}

// valid checks the claims (RFC 9068, section 4; OpenID Connect Core, section
// 3.1.3.7).
func (v *Verifier) valid(c *Claims, audience func([]string) bool, now time.Time) error {
	switch {
	case c.Issuer != v.Issuer:
		return refuse(nil, "the token is of an issuer that this server does not trust")
	case !audience(c.Audience):
		return refuse(nil, "the token was issued for another server")
	case c.Other(v.Kind):
		return refuse(nil, "the token is of another type than %s are", v.Kind)
	case c.Expiry == nil:
		return refuse(nil, "the token has no expiry")
	case !now.Before(Date(*c.Expiry).Add(v.Leeway)):
		return refuse(nil, "the token has expired")
	case c.NotBefore != nil && now.Add(v.Leeway).Before(Date(*c.NotBefore)):
		return refuse(nil, "the token is not valid yet")
	case c.IssuedAt != nil && now.Add(v.Leeway).Before(Date(*c.IssuedAt)):
		return refuse(nil, "the token was issued in the future")
	}
	return nil
}

// Issued reports whether a token claims, without proof, to be of the issuer.
func (v *Verifier) Issued(token string) bool {
	_, rest, _ := strings.Cut(token, ".")
	body, _, ok := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if !ok || err != nil {
		return false
	}
	var all map[string]json.RawMessage
	var issuer string
	return jsonx.Unmarshal(payload, &all) == nil && jsonx.Unmarshal(all["iss"], &issuer) == nil && issuer == v.Issuer
}

// OrDefault returns n, or def if n is 0, or 0 if n is negative, which stands
// for "off" in options.
func OrDefault[N int | time.Duration](n, def N) N {
	switch {
	case n == 0:
		return def
	case n < 0:
		return 0
	}
	return n
}

// HTTPClient returns c, or if it is nil a client that follows no redirects: an
// issuer's documents are where it says they are.
func HTTPClient(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
