package oauth

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The token types, in their canonical spelling.
const tokenTypeBearer, tokenTypeDPoP = "Bearer", "DPoP"

// dpopKey is the key that a token is bound to (RFC 9449). It is immutable.
type dpopKey struct {
	private    *ecdsa.PrivateKey
	signer     jose.Signer // puts the public half into the header
	thumbprint string      // of the public half (RFC 7638)
}

// newDPoPKey returns a key for signing with ES256; private must be on P-256.
func newDPoPKey(private *ecdsa.PrivateKey) (*dpopKey, error) {
	options := &jose.SignerOptions{EmbedJWK: true}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, options.WithType("dpop+jwt"))
	if err != nil {
		return nil, err
	}
	thumbprint, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	return &dpopKey{private: private, signer: signer, thumbprint: base64.RawURLEncoding.EncodeToString(thumbprint)}, err
}

// proof returns a proof of possession for one request (RFC 9449, section 4.2).
// nonce and accessToken may be "".
func (k *dpopKey) proof(method string, u *url.URL, nonce, accessToken string) (string, error) {
	path := cmp.Or(u.EscapedPath(), "/")
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

// marshal returns the private key in PKCS #8, for the store.
func (k *dpopKey) marshal() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(k.private) }

// Authorization servers and resource servers have nonces of their own, even at
// one origin.
const (
	nonceServer   = "authorization server"
	nonceResource = "resource server"
)

// nonces are the newest nonces that servers have given. The zero value is ready
// to use.
type nonces struct {
	mu     sync.Mutex
	newest map[string]string
}

// get returns the newest nonce of a server, "" if there is none.
func (n *nonces) get(who string, u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.newest[who+" "+origin(u)]
}

// note stores the nonce of a response (RFC 9449, section 8.2), if it has one of
// reasonable length.
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
