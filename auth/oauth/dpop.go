package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const tokenTypeBearer, tokenTypeDPoP = "Bearer", "DPoP"

// dpopKey is the key that a token is bound to (RFC 9449).
type dpopKey struct {
	private    *ecdsa.PrivateKey
	signer     jose.Signer // puts the public half into the header
	thumbprint string      // of the public half (RFC 7638)
}

// dpopKey returns the key to bind a token to, nil for a token that is not
// bound. A key stays the same for as long as the issuer does.
func (c *Client) dpopKey(auth *authority, previous *record) (*dpopKey, error) {
	supported := slices.Contains(auth.server.DPoPAlgorithms, string(jose.ES256))
	failed := func(problem string) error {
		return &Error{Step: StepAuthorization, URL: auth.server.Issuer, Problem: problem}
	}
	switch {
	case c.opts.DPoP == DPoPOff && auth.dpop && !auth.bearer:
		return nil, failed("the MCP server takes only tokens that are bound by DPoP, which Options.DPoP turns off")
	case c.opts.DPoP == DPoPOff, c.opts.DPoP == DPoPAuto && !auth.dpop:
		return nil, nil
	case !supported && c.opts.DPoP == DPoPAuto && auth.bearer:
		return nil, nil
	case !supported:
		return nil, failed("tokens must be bound by DPoP, but the authorization server does not list ES256 in dpop_signing_alg_values_supported")
	}
	if previous != nil && previous.key != nil && previous.Issuer == auth.server.Issuer {
		return previous.key, nil
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, &Error{Step: StepAuthorization, Problem: "cannot make a DPoP key", Err: err}
	}
	return newDPoPKey(private)
}

func newDPoPKey(private *ecdsa.PrivateKey) (*dpopKey, error) {
	options := &jose.SignerOptions{EmbedJWK: true}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, options.WithType("dpop+jwt"))
	if err != nil {
		return nil, err
	}
	thumbprint, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	return &dpopKey{private: private, signer: signer, thumbprint: base64.RawURLEncoding.EncodeToString(thumbprint)}, err
}

// proof is a proof of possession for one request (RFC 9449, section 4.2), and
// for one access token if it is not empty.
func (k *dpopKey) proof(method string, u *url.URL, nonce, accessToken string) (string, error) {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	claims := map[string]any{
		"jti": rand.Text(),
		"htm": method,
		"htu": u.Scheme + "://" + u.Host + path,
		"iat": time.Now().Unix(),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if accessToken != "" {
		hash := sha256.Sum256([]byte(accessToken))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(hash[:])
	}
	return jwt.Signed(k.signer).Claims(claims).Serialize()
}

// marshal writes the private key for the store.
func (k *dpopKey) marshal() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(k.private) }

// restore makes a record whole that comes from the store.
func (r *record) restore() error {
	if len(r.Key) == 0 {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(r.Key)
	private, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return &Error{Step: StepStore, Err: errors.New("the stored DPoP key is none; log out and in again")}
	}
	r.key, err = newDPoPKey(private)
	return err
}

// Who gives nonces: authorization servers and resource servers each have their
// own, even at one origin.
const (
	nonceServer   = "authorization server"
	nonceResource = "resource server"
)

// nonces are the newest nonces that servers have given. The zero value is
// ready.
type nonces struct {
	mu     sync.Mutex
	newest map[string]string
}

func (n *nonces) get(who string, u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.newest[who+" "+origin(u)]
}

// note remembers the nonce of an answer (RFC 9449, section 8.2).
func (n *nonces) note(who string, u *url.URL, header http.Header) {
	const longest = 1 << 10
	nonce := header.Get("DPoP-Nonce")
	if nonce == "" || len(nonce) > longest {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil {
		n.newest = map[string]string{}
	}
	n.newest[who+" "+origin(u)] = nonce
}
