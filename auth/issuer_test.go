package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

const (
	issuerURL = "https://auth.example.com"
	resource  = "https://notes.example.com/mcp"
	metadata  = "https://notes.example.com/.well-known/oauth-protected-resource/mcp"
)

// The keys of the tests, made once: RSA keys take long.
var (
	ecKey      = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	otherKey   = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	p384Key    = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	rsaKey     = must(rsa.GenerateKey(rand.Reader, 2048))
	clientKey  = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	strangeKey = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// issuer is an authorization server as a http.RoundTripper: no socket, so that
// time can be false.
type issuer struct {
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	answers map[string]string // other documents, by URL
	asked   map[string]int    // how often, by URL
	fail    bool
	delay   time.Duration
	handle  func(*http.Request) (status int, body string) // of POST
}

func newIssuer() *issuer {
	return &issuer{
		keys: []jose.JSONWebKey{
			{Key: &ecKey.PublicKey, KeyID: "ec", Algorithm: "ES256", Use: "sig"},
			{Key: &rsaKey.PublicKey, KeyID: "rsa", Use: "sig"},
			{Key: &p384Key.PublicKey, KeyID: "p384", Use: "sig"},
			{Key: &strangeKey.PublicKey, KeyID: "enc", Use: "enc"},
		},
		answers: map[string]string{
			issuerURL + "/.well-known/oauth-authorization-server": `{"issuer":"` + issuerURL + `","jwks_uri":"` + issuerURL + `/keys"}`,
		},
		asked: map[string]int{},
	}
}

func (s *issuer) client() *http.Client { return &http.Client{Transport: s} }

// RoundTrip implements http.RoundTripper.
func (s *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	url := r.URL.String()
	s.asked[url]++
	delay, fail := s.delay, s.fail
	body, ok := s.answers[url]
	if url == issuerURL+"/keys" {
		body, ok = string(must(json.Marshal(jose.JSONWebKeySet{Keys: s.keys}))), true
	}
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if fail {
		return nil, io.ErrUnexpectedEOF
	}
	status := http.StatusOK
	if r.Method == http.MethodPost && s.handle != nil {
		status, body = s.handle(r)
	} else if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (s *issuer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *issuer) count(url string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[url]
}

// valid returns the claims of a token that passes, changed by others; nil takes
// one away.
func valid(others map[string]any) map[string]any {
	claims := map[string]any{
		"iss": issuerURL, "aud": resource, "sub": "alice", "client_id": "app", "scope": "notes:read",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, others)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// sign returns a token; header has members besides alg.
func sign(alg jose.SignatureAlgorithm, key any, header map[string]any, payload any) string {
	opts := &jose.SignerOptions{}
	for name, value := range header {
		opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts))
	text, ok := payload.([]byte)
	if !ok {
		text = must(json.Marshal(payload))
	}
	return must(must(signer.Sign(text)).CompactSerialize())
}

// token returns a token of the issuer's.
func token(others map[string]any) string {
	return sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": "at+jwt"}, valid(others))
}

// raw returns a compact serialization of what may be no token at all.
func raw(header, payload, signature string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + "." + encode([]byte(signature))
}

// proof returns a DPoP proof of clientKey for a POST to the resource.
func proof(token string, others map[string]any) string {
	return proofOf(clientKey, map[string]any{"typ": "dpop+jwt"}, token, others)
}

func proofOf(key *ecdsa.PrivateKey, header map[string]any, token string, others map[string]any) string {
	hash := sha256.Sum256([]byte(token))
	claims := map[string]any{
		"jti": rand.Text(), "htm": "POST", "htu": resource, "iat": time.Now().Unix(),
		"ath": base64.RawURLEncoding.EncodeToString(hash[:]),
	}
	maps.Copy(claims, others)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	all := map[string]any{"jwk": jose.JSONWebKey{Key: &key.PublicKey}}
	maps.Copy(all, header)
	return sign(jose.ES256, key, all, claims)
}

// thumbprint returns that of a key.
func thumbprint(key *ecdsa.PrivateKey) string {
	sum := must((&jose.JSONWebKey{Key: &key.PublicKey}).Thumbprint(crypto.SHA256))
	return base64.RawURLEncoding.EncodeToString(sum)
}

// bound returns a token that is bound to clientKey.
func bound() string {
	return token(map[string]any{"cnf": map[string]any{"jkt": thumbprint(clientKey)}})
}

func newJWT(t testing.TB, s *issuer, opts auth.JWTOptions) auth.Verifier {
	t.Helper()
	opts.Keys.Client = s.client()
	if !opts.AnyAudience {
		opts.Audiences = append([]string{resource}, opts.Audiences...)
	}
	return auth.NewJWT(issuerURL, &opts)
}

// protect returns the middleware of a resource.
func protect(v auth.Verifier, resource string, opts *auth.Options) func(http.Handler) http.Handler {
	return must(auth.New(resource, v, opts)).Bearer
}

// reached is a handler that notes the identities of the requests that reach it.
type reached struct {
	mu   sync.Mutex
	seen []*http.Request
}

// ServeHTTP implements http.Handler.
func (h *reached) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r)
	w.WriteHeader(http.StatusOK)
}

func (h *reached) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen)
}

// post returns a request to the resource.
func post(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader([]byte("{}")))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}
