package auth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth/internal/jwt"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/scale"
)

// DPoPOptions determine how proofs of possession (RFC 9449) are checked. The
// zero value has the defaults: tokens that are bound to a key need a proof,
// others none.
type DPoPOptions struct {
	// Required refuses tokens that are not bound to a key.
	Required bool
	// Offer tells clients, in the first challenge and in the metadata, that the
	// server accepts proofs.
	Offer bool
	// Algorithms are those of proofs; empty means ES256, ES384, ES512, PS256,
	// PS384, PS512, RS256, RS384, RS512 and EdDSA. Symmetric ones are refused.
	Algorithms []string
	// MaxAge is how long a proof is accepted after it was made; 0 means a
	// minute. Leeway is how far the client's clock may be ahead; 0 means 5 s.
	MaxAge, Leeway time.Duration
	// MaxReplays bounds the proofs that are remembered, so that none is
	// accepted twice: those of the last MaxAge plus Leeway. Beyond it requests
	// are answered with 503. 0 means 200,000. Each takes about 40 bytes, or with a
	// Store a small entry there.
	MaxReplays int
	// Store remembers proofs for all replicas that serve the same URL, so that each
	// is accepted once by all of them together; it is the store of mcp.Options.
	// While it does not answer, requests with proofs are answered with 503. nil
	// means that this process remembers only its own.
	Store scale.Store
	// NonceKey makes proofs carry a nonce of the server, so that they cannot be
	// made in advance. It is a secret of at least 16 random bytes, which
	// servers that share an endpoint must share. Empty means that no nonce is
	// demanded.
	NonceKey []byte
	// URL returns what clients call the URL of a request, for servers behind a
	// proxy that changes the path. nil means the path that was asked for, on
	// the host of the resource that New is given. Query and fragment are
	// ignored. It is called by many goroutines at once.
	URL func(r *http.Request) string
}

// The defaults of DPoPOptions.
const (
	defaultProofAge    = time.Minute
	defaultProofLeeway = 5 * time.Second
	defaultMaxReplays  = 200_000
)

// maxProof limits a proof, in bytes.
const maxProof = 8 << 10

// nonceWindow is how long a nonce is handed out. It is accepted for one window
// more.
const nonceWindow = 5 * time.Minute

// algorithms returns the names of the permitted algorithms, never empty.
func (o *DPoPOptions) algorithms() []string {
	if len(o.Algorithms) > 0 {
		return slices.Clone(o.Algorithms)
	}
	return slices.Clone(jwt.Asymmetric)
}

// proofs checks proofs of possession. Apart from replays it does not change.
type proofs struct {
	opts       DPoPOptions
	origin     string
	algorithms []string
	accepted   []jose.SignatureAlgorithm
	replays    replays
	shared     *sharedReplays // in place of replays; nil without a store
}

// newProofs checks the options. origin is scheme and host of the resource.
func newProofs(opts DPoPOptions, origin string) (*proofs, error) {
	p := &proofs{opts: opts, origin: origin, algorithms: opts.algorithms()}
	var err error
	if p.accepted, err = jwt.Algorithms(p.algorithms); err != nil {
		return nil, fmt.Errorf("auth: Options.DPoP.Algorithms: %w", err)
	}
	if n := len(opts.NonceKey); n > 0 && n < 16 {
		return nil, errors.New("auth: Options.DPoP.NonceKey is shorter than 16 bytes")
	}
	p.opts.NonceKey = slices.Clone(opts.NonceKey)
	p.opts.MaxAge = jwt.OrDefault(opts.MaxAge, defaultProofAge)
	p.opts.Leeway = jwt.OrDefault(opts.Leeway, defaultProofLeeway)
	p.replays = replays{window: p.opts.MaxAge + p.opts.Leeway, max: jwt.OrDefault(opts.MaxReplays, defaultMaxReplays)}
	if opts.Store != nil {
		p.shared = newSharedReplays(opts.Store, p.replays.window, p.replays.max)
	}
	return p, nil
}

// boundKey returns the thumbprint of the key that a token is bound to, "" if it
// is bound to none. A binding that this server cannot check makes the token
// invalid.
func boundKey(claims map[string]any) (string, error) {
	raw, ok := claims["cnf"]
	if !ok || raw == nil {
		return "", nil
	}
	cnf, _ := raw.(map[string]any)
	key, _ := cnf["jkt"].(string)
	if key == "" {
		return "", Invalid("the token is bound in a way that this server cannot check")
	}
	return key, nil
}

// proofClaims are the claims of a proof (RFC 9449, section 4.2).
type proofClaims struct {
	ID     string   `json:"jti"`
	Method string   `json:"htm"`
	URL    string   `json:"htu"`
	Issued *float64 `json:"iat"`
	Hash   string   `json:"ath"`
	Nonce  string   `json:"nonce"`
}

// check checks the proof of a request (RFC 9449, sections 4.3 and 7.1). key is
// the thumbprint that the token is bound to, "" for none. The proof is recorded
// as used only if everything else about it is right, so that invalid ones
// cannot fill that memory. w gets a nonce if one is needed.
func (p *proofs) check(w http.ResponseWriter, r *http.Request, scheme, key, token string) error {
	switch {
	case key == "" && p.opts.Required:
		return Invalid("the token is not bound to a key; this server takes only tokens for DPoP")
	case key == "":
		return Invalid("the token is not bound to a key; send it with the scheme Bearer")
	case scheme != schemeDPoP:
		return Invalid("the token is bound to a key; send it with the scheme DPoP, and a proof")
	}
	values := r.Header["Dpop"]
	switch {
	case len(values) == 0:
		return badProof("the DPoP header is missing", nil)
	case len(values) > 1:
		return badProof("the DPoP header is there more than once", nil)
	case len(values[0]) > maxProof:
		return badProof(fmt.Sprintf("the proof is longer than %d bytes", maxProof), nil)
	}
	claims, err := p.open(values[0], key)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := p.fits(r, claims, token, now); err != nil {
		return err
	}
	if err := p.checkNonce(w, claims.Nonce, now); err != nil {
		return err
	}
	switch first, err := p.first(r.Context(), key+" "+claims.ID, now); {
	case err != nil:
		return err
	case !first:
		return badProof("the proof was used before", nil)
	}
	return nil
}

// errTooManyProofs is the error of a proof for which there is no room.
var errTooManyProofs = errors.New("auth: too many proofs to remember")

// first records a proof, which key and id identify, and reports whether it is
// used for the first time.
func (p *proofs) first(ctx context.Context, id string, now time.Time) (bool, error) {
	if p.shared != nil {
		return p.shared.first(ctx, id)
	}
	first, full := p.replays.first(sha256.Sum256([]byte(id)), now)
	if full {
		return false, errTooManyProofs
	}
	return first, nil
}

// badProof returns the error for a proof that is not accepted; err is its cause
// or nil.
func badProof(description string, err error) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: codeInvalidProof, Description: description, Err: err}
}

// open verifies the signature of a proof, which carries its own key, and that
// this key is the one of the token.
func (p *proofs) open(proof, key string) (*proofClaims, error) {
	signed, err := jose.ParseSignedCompact(proof, p.accepted)
	if err != nil {
		return nil, badProof("the proof is malformed, or its algorithm is not one of this server's", err)
	}
	header := signed.Signatures[0].Protected
	typ, _ := header.ExtraHeaders[jose.HeaderType].(string)
	jwk := header.JSONWebKey
	switch {
	case typ != "dpop+jwt":
		return nil, badProof("the typ of the proof is not dpop+jwt", nil)
	case jwk == nil || !jwk.IsPublic() || !jwk.Valid():
		return nil, badProof("the proof has no public key in its jwk", nil)
	}
	thumbprint, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, badProof("the key of the proof is not one that this server knows", err)
	}
	if base64.RawURLEncoding.EncodeToString(thumbprint) != key {
		return nil, badProof("the key of the proof is not that of the token", nil)
	}
	payload, err := signed.Verify(jwk)
	if err != nil {
		return nil, badProof("the signature of the proof is wrong", err)
	}
	var claims proofClaims
	if err := jsonx.Unmarshal(payload, &claims); err != nil {
		return nil, badProof("the claims of the proof are malformed", err)
	}
	return &claims, nil
}

// fits returns an error unless a proof was made for this request and token, and
// recently.
func (p *proofs) fits(r *http.Request, claims *proofClaims, token string, now time.Time) error {
	hash := sha256.Sum256([]byte(token))
	switch {
	case claims.ID == "":
		return badProof("the proof has no jti", nil)
	case claims.Method != r.Method:
		return badProof("the htm of the proof is not the method of the request", nil)
	}
	var here string
	// The goroutine is the HTTP server's: a request whose goroutine ends has no answer.
	if err := safely.Known(safely.Apart(func() { here = p.urlOf(r) })); err != nil {
		return err
	}
	switch {
	case !sameURL(claims.URL, here):
		return badProof("the htu of the proof is not the URL of the request", nil)
	case claims.Hash != base64.RawURLEncoding.EncodeToString(hash[:]):
		return badProof("the ath of the proof is not the hash of the token", nil)
	case claims.Issued == nil:
		return badProof("the proof has no iat", nil)
	}
	issued := jwt.Date(*claims.Issued)
	if issued.After(now.Add(p.opts.Leeway)) || now.Sub(issued) > p.opts.MaxAge {
		return badProof("the iat of the proof is not of now", nil)
	}
	return nil
}

// urlOf returns what the client calls the URL of a request. Routers may have
// cut off a part of r.URL, so the request line is used.
func (p *proofs) urlOf(r *http.Request) string {
	if p.opts.URL != nil {
		return p.opts.URL(r)
	}
	path := r.URL.EscapedPath()
	// Routers may have cut something off r.URL, but not off this.
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = u.EscapedPath()
	}
	return p.origin + path
}

// sameURL reports whether two URLs are equal apart from query and fragment.
func sameURL(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && ua.Host != "" && bareURL(ua) == bareURL(ub)
}

// bareURL returns a URL without query, fragment and default port, with scheme
// and host in lower case.
func bareURL(u *url.URL) string {
	scheme, host, path := strings.ToLower(u.Scheme), strings.ToLower(u.Host), u.EscapedPath()
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	path = cmp.Or(path, "/")
	return scheme + "://" + host + path
}

// checkNonce checks the nonce of a proof if one is demanded. It sets the header
// DPoP-Nonce if the client needs a new one (RFC 9449, section 9); the nonce of
// the window before is still accepted.
func (p *proofs) checkNonce(w http.ResponseWriter, nonce string, now time.Time) error {
	if len(p.opts.NonceKey) == 0 {
		return nil
	}
	window := now.Unix() / int64(nonceWindow/time.Second)
	current := p.nonce(window)
	if same(nonce, current) {
		return nil
	}
	w.Header().Set("DPoP-Nonce", current)
	if same(nonce, p.nonce(window-1)) {
		return nil
	}
	return &Error{Status: http.StatusUnauthorized, Code: codeUseNonce, Description: "the proof needs the nonce of the header DPoP-Nonce"}
}

// same compares two texts in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// nonce returns the nonce of a window, which cannot be computed without the key.
func (p *proofs) nonce(window int64) string {
	mac := hmac.New(sha256.New, p.opts.NonceKey)
	mac.Write(binary.BigEndian.AppendUint64([]byte("dpop nonce "), uint64(window)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
