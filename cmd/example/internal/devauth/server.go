// Package devauth is an authorization server for development: it lets a
// newcomer see the whole flow of MCP authorization on one machine. It asks
// nobody for a password, keeps everything in memory, and answers requests from
// this machine alone. It must never guard anything.
//
// It has the authorization code flow with PKCE (S256), refresh tokens that
// rotate, revocation, dynamic registration (RFC 7591), Client ID Metadata
// Documents, resource indicators (RFC 8707), DPoP (RFC 9449), the issuer in its answers (RFC
// 9207) and metadata (RFC 8414). Access tokens are JWTs (RFC 9068).
package devauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-jose/go-jose/v4"
)

// Options say what a Server issues tokens for.
type Options struct {
	// Issuer is the URL of the Server: http, on a loopback address, with a path.
	Issuer string
	// Resource is the URL that tokens are for.
	Resource string
	// Scopes are those that there are, with what they allow, for people.
	Scopes []Scope
	// Lifetime is how long an access token is valid; 0 means five minutes.
	Lifetime time.Duration
	// Client fetches Client ID Metadata Documents; nil means one that reaches
	// public addresses alone.
	Client *http.Client
}

// Scope is something that a user can allow.
type Scope struct{ Name, Allows string }

// Server is the authorization server. Its methods are safe for concurrent use.
type Server struct {
	opts   Options
	path   string // of Issuer
	key    *ecdsa.PrivateKey
	signer jose.Signer
	store  store
}

const keyID = "development"

// New returns a Server with a key that nobody has seen.
func New(opts Options) (*Server, error) {
	issuer, err := url.Parse(opts.Issuer)
	if err != nil {
		return nil, err
	}
	if issuer.Scheme != "http" || !loopback(issuer.Hostname()) || strings.Trim(issuer.Path, "/") == "" {
		return nil, errors.New("devauth: the issuer must be an http URL on a loopback address, with a path: this server is for development")
	}
	if opts.Lifetime <= 0 {
		opts.Lifetime = 5 * time.Minute
	}
	if opts.Client == nil {
		opts.Client = publicClient()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: keyID}},
		(&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		return nil, err
	}
	return &Server{opts: opts, path: issuer.Path, key: key, signer: signer, store: newStore()}, nil
}

// Register puts the Server into the router of its host.
func (s *Server) Register(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(onlyHere)
		for _, path := range []string{
			"/.well-known/oauth-authorization-server" + s.path, "/.well-known/openid-configuration" + s.path,
			s.path + "/.well-known/openid-configuration",
		} {
			r.Get(path, s.metadata)
		}
		r.Get(s.path+"/keys", s.keys)
		r.Post(s.path+"/register", s.register)
		r.Get(s.path+"/authorize", s.authorize)
		r.Post(s.path+"/consent", s.consent)
		r.Post(s.path+"/token", s.token)
		r.Post(s.path+"/revoke", s.revoke)
	})
}

// onlyHere refuses requests that do not come from this machine, or come for
// another host's name, as those of web pages can (DNS rebinding).
func onlyHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote, _, _ := net.SplitHostPort(r.RemoteAddr)
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(remote) || !loopback(host) {
			http.Error(w, "this authorization server is for development on this machine", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// metadata serves RFC 8414.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	issuer := s.opts.Issuer
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         issuer,
		"authorization_endpoint":                         issuer + "/authorize",
		"token_endpoint":                                 issuer + "/token",
		"registration_endpoint":                          issuer + "/register",
		"revocation_endpoint":                            issuer + "/revoke",
		"jwks_uri":                                       issuer + "/keys",
		"scopes_supported":                               append(s.names(), offline),
		"response_types_supported":                       []string{"code"},
		"grant_types_supported":                          []string{grantCode, grantRefresh},
		"code_challenge_methods_supported":               []string{"S256"},
		"dpop_signing_alg_values_supported":              []string{string(jose.ES256)},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"client_id_metadata_document_supported":          true,
		"authorization_response_iss_parameter_supported": true,
	})
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: &s.key.PublicKey, KeyID: keyID, Algorithm: string(jose.ES256), Use: "sig"},
	}})
}

// names returns the names of all scopes.
func (s *Server) names() (names []string) {
	for _, scope := range s.opts.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone; net/http notices by itself
}

// refuse answers with an error of RFC 6749, section 5.2.
func refuse(w http.ResponseWriter, code, description string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}
