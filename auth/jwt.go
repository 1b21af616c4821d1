package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/talaria-go/mcp/auth/internal/jwt"
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

// KeyOptions say where the keys of an issuer come from. The zero value finds
// them through the issuer's metadata (RFC 8414, OpenID Connect Discovery).
type KeyOptions struct {
	// URL is where the keys are (a JWK Set, RFC 7517), if they are not to be
	// found through the metadata. It must be https, except on this machine.
	URL string
	// Static is a JWK Set in JSON. If it is set, nothing is fetched.
	Static json.RawMessage
	// Client fetches documents; nil means a client that follows no redirects.
	// Metadata and keys are public, so it must not add credentials.
	Client *http.Client
	// MaxAge is how long keys are used before they are fetched again, so that
	// keys that the issuer has withdrawn disappear; 0 means 10 minutes. If they
	// cannot be fetched then, the old ones are used for MaxStale longer; 0
	// means an hour, negative not at all.
	MaxAge, MaxStale time.Duration
	// MinInterval is the least time between two fetches, however many tokens
	// with unknown keys arrive, also after a failure; 0 means 10 s.
	MinInterval time.Duration
	// Timeout limits a fetch; 0 means 10 s.
	Timeout time.Duration
}

// defaultLeeway is the default of JWTOptions.Leeway.
const defaultLeeway = 30 * time.Second

// jwtVerifier is what NewJWT returns. Apart from its keys it does not change.
type jwtVerifier struct {
	opts      JWTOptions
	tokens    jwt.Verifier
	audiences audiences
	err       error // of invalid arguments of NewJWT
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
	v := &jwtVerifier{tokens: jwt.Verifier{Kind: jwt.Access, Issuer: issuer}}
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
		names = jwt.Asymmetric
	}
	if v.tokens.Algorithms, err = jwt.Algorithms(names); err != nil {
		return fmt.Errorf("auth: JWTOptions.Algorithms: %w", err)
	}
	v.tokens.Leeway = jwt.OrDefault(v.opts.Leeway, defaultLeeway)
	v.opts.ScopeClaims = slices.Clone(v.opts.ScopeClaims)
	if len(v.opts.ScopeClaims) == 0 {
		v.opts.ScopeClaims = []string{"scope", "scp"}
	}
	if v.tokens.Keys, err = jwt.NewKeys(v.tokens.Issuer, jwt.KeyOptions(v.opts.Keys)); err != nil {
		return fmt.Errorf("auth: NewJWT: %w", err)
	}
	return nil
}

// bind implements binder.
func (v *jwtVerifier) bind(resource string) (Verifier, error) {
	if v.err != nil || !v.audiences.none() {
		return v, v.err
	}
	bound := *v
	bound.audiences = newAudiences([]string{resource}, false)
	return &bound, nil
}

// Issuers implements jwt.Issuer.
func (v *jwtVerifier) Issuers() []string { return []string{v.tokens.Issuer} }

// Takes implements jwt.Taker.
func (v *jwtVerifier) Takes(token string) (own, may bool) {
	own = v.tokens.Issued(token)
	return own, own
}

// Verify implements Verifier.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*Identity, error) {
	switch {
	case v.err != nil:
		return nil, v.err
	case v.audiences.none():
		return nil, errNoAudience
	}
	c, err := v.tokens.Verify(ctx, token, v.audiences.include)
	if err != nil {
		return nil, refusal(err)
	}
	id := identityOf(c, v.opts.ScopeClaims)
	if v.opts.Check != nil {
		if err := v.opts.Check(ctx, id); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// refusal returns the error of Invalid for a jwt.Refusal, and any other as it is.
func refusal(err error) error {
	if r, ok := errors.AsType[*jwt.Refusal](err); ok {
		return invalid(r.Err, r.Text)
	}
	return err
}
