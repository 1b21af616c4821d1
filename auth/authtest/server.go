// Package authtest is an authorization server for development and tests: it
// lets the whole flow of MCP authorization be seen, or tested, on one machine.
// It never asks for a password, keeps everything in memory, and answers only
// requests from this machine. It must never guard anything.
//
// It has the authorization code flow with PKCE (S256), refresh tokens that
// rotate, revocation, dynamic registration (RFC 7591), Client ID Metadata
// Documents, resource indicators (RFC 8707), DPoP (RFC 9449), the issuer in its
// answers (RFC 9207) and metadata (RFC 8414). Access tokens are JWTs (RFC
// 9068).
//
// A test that is not about the flow mints its tokens with [Server.Token]. A
// test of a whole client calls [Start]; a program for development makes a
// Server with [New] and puts it before its router with [Server.Middleware].
//
// What the server knows is in one table of each kind, of at most a thousand
// entries, the oldest of which go first. One lock guards all of them and is
// never held while something is read from, or written to, the network. Start
// adds one goroutine to those of net/http, which ends with Close.
//
// Specification: basic/authorization of every revision from 2025-03-26 on.
package authtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

// Options say what a Server issues tokens for.
type Options struct {
	// Issuer is the URL of the Server: http, on a loopback address, with a path
	// that does not end in a slash, below which everything is the Server's. Start
	// sets it.
	Issuer string
	// Resource is the URL that tokens are for, as auth.New has it. It must be set.
	Resource string
	// Scopes are those that there are. A client that asks for none gets the first.
	Scopes []Scope
	// Lifetime is how long an access token is valid; 0 means five minutes.
	Lifetime time.Duration
	// Client fetches Client ID Metadata Documents; nil means one that reaches only
	// public addresses.
	Client *http.Client
}

// Scope is something that a user can allow. Allows says for people what that is;
// it may be empty.
type Scope struct{ Name, Allows string }

// Server is the authorization server. It is an http.Handler for the whole host of
// its issuer. Its methods are safe for concurrent use.
type Server struct {
	opts   Options
	routes map[string]route // by path
	key    *ecdsa.PrivateKey
	signer jose.Signer
	store  store
	stop   func() error // what Close does
}

// route is what answers at a path. Other methods than its own are refused.
type route struct {
	method string
	serve  http.HandlerFunc
}

const (
	keyID        = "development"
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	offline      = "offline_access"
	// grantClaim is the claim that names the grant of a token.
	grantClaim = "grant"
)

// New returns a Server with a new key, for a program that serves it at
// Options.Issuer. The options are copied. Options that make no sense are an
// error.
func New(opts *Options) (*Server, error) {
	if opts == nil {
		opts = &Options{}
	}
	issuer, err := url.Parse(opts.Issuer)
	if err != nil {
		return nil, fmt.Errorf("authtest: the issuer is no URL: %w", err)
	}
	if issuer.Scheme != "http" || !loopback(issuer.Hostname()) || issuer.Path == "" || strings.HasSuffix(issuer.Path, "/") {
		return nil, errors.New("authtest: the issuer must be an http URL on a loopback address, with a path that does not end in a slash: this server is for development")
	}
	if opts.Resource == "" {
		return nil, errors.New("authtest: Options.Resource must be the URL that tokens are for")
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
	s := &Server{opts: *opts, key: key, signer: signer, stop: func() error { return nil }}
	s.opts.Scopes = slices.Clone(opts.Scopes)
	if s.opts.Lifetime <= 0 {
		s.opts.Lifetime = 5 * time.Minute
	}
	if s.opts.Client == nil {
		s.opts.Client = publicClient()
	}
	path, metadata := issuer.Path, route{http.MethodGet, s.metadata}
	s.routes = map[string]route{
		"/.well-known/oauth-authorization-server" + path: metadata,
		"/.well-known/openid-configuration" + path:       metadata,
		path + "/.well-known/openid-configuration":       metadata,
		path + "/keys":      {http.MethodGet, s.keys},
		path + "/register":  {http.MethodPost, s.register},
		path + "/authorize": {http.MethodGet, s.authorize},
		path + "/consent":   {http.MethodPost, s.consent},
		path + "/token":     {http.MethodPost, s.token},
		path + "/revoke":    {http.MethodPost, s.revoke},
	}
	return s, nil
}

// Start serves a Server on a free port of 127.0.0.1, until Close.
func Start(opts *Options) (*Server, error) {
	if opts == nil {
		opts = &Options{}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("authtest: %w", err)
	}
	started := *opts
	started.Issuer = "http://" + l.Addr().String() + "/auth"
	s, err := New(&started)
	if err != nil {
		_ = l.Close() // there are no connections
		return nil, err
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(l) // ends with Close
	}()
	s.stop = func() error {
		err := web.Close()
		<-done
		return err
	}
	return s, nil
}

// Close ends what Start began, connections too. Of a Server of New it does
// nothing.
func (s *Server) Close() error { return s.stop() }

// Issuer returns the URL of the Server, which auth.NewJWT takes.
func (s *Server) Issuer() string { return s.opts.Issuer }

// Token returns an access token for subject, as if a user of that name had
// allowed the scopes to a client. It is an error if Options.Scopes lacks one of
// them.
func (s *Server) Token(subject string, scopes ...string) (string, error) {
	for _, scope := range scopes {
		if !slices.Contains(s.names(), scope) {
			return "", fmt.Errorf("authtest: there is no scope %q; Options.Scopes has %q", scope, s.names())
		}
	}
	return s.sign(grant{id: newSecret(), user: subject, request: request{client: client{ID: "authtest"}, resource: s.opts.Resource}}, scopes)
}

// Revoke ends an access token or a refresh token, and all others that come of the
// same grant. Tokens that are not the Server's are ignored.
func (s *Server) Revoke(token string) {
	if id := s.grantOf(token); id != "" {
		s.store.revoke(id)
	}
}

// Revoked returns an error of auth.Invalid if the access token of id was revoked,
// which a JWT itself does not tell. It is for auth.JWTOptions.Check; with it,
// auth.Options.CacheFor is best negative, so that a revocation is seen at once.
func (s *Server) Revoked(_ context.Context, id *auth.Identity) error {
	if grant, _ := id.Claims[grantClaim].(string); s.store.isRevoked(grant) {
		return auth.Invalid("the token was revoked")
	}
	return nil
}

// ServeHTTP answers requests to the Server, and others with 404.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
}

// Middleware answers requests to the Server; all others pass. It goes before the
// router of the whole host, as auth.Resource.Metadata does. Refused are requests
// that do not come from this machine, or come for another host's name, as those
// of web pages can (DNS rebinding).
func (s *Server) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ours := s.routes[r.URL.Path]
		switch {
		case !ours:
			next.ServeHTTP(w, r)
		case !loopback(hostname(r.RemoteAddr)) || !loopback(hostname(r.Host)):
			http.Error(w, "this authorization server is for development on this machine", http.StatusForbidden)
		case r.Method != route.method:
			w.Header().Set("Allow", route.method)
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Cache-Control", "no-store")
			route.serve(w, r)
		}
	})
}

// hostname returns a host without its port, if it has one. The brackets of an
// IPv6 address stay when there is no port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// loopback reports whether host, without port and with or without brackets, is
// this machine: localhost or a loopback address. Other names are not looked up,
// since who owns a name decides where it leads.
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

// keys serves the public key, by which resource servers check access tokens
// (RFC 7517). There is one, made by New, so that no token outlives the process.
func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: &s.key.PublicKey, KeyID: keyID, Algorithm: string(jose.ES256), Use: "sig"},
	}})
}

// names returns the names of all scopes, in a slice that the caller may change.
func (s *Server) names() (names []string) {
	for _, scope := range s.opts.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

// register serves dynamic registration (RFC 7591). Any client may register:
// clients are public, and nothing follows from it before a user has agreed.
// Registrations beyond the bound of the store make it forget the oldest.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var c client
	if err := decode(r.Body, &c); err != nil {
		refuse(w, "invalid_client_metadata", "the metadata is no JSON object")
		return
	}
	if err := c.check(); err != nil {
		refuse(w, "invalid_redirect_uri", err.Error())
		return
	}
	if c.AuthMethod != "" && c.AuthMethod != "none" {
		refuse(w, "invalid_client_metadata", "clients have no secrets here: token_endpoint_auth_method must be none")
		return
	}
	c.ID, c.AuthMethod = newSecret(), "none"
	if len(c.GrantTypes) == 0 {
		c.GrantTypes = []string{grantCode}
	}
	s.store.mu.Lock()
	s.store.clients.put(c.ID, c)
	s.store.mu.Unlock()
	writeJSON(w, http.StatusCreated, struct {
		client
		Issued int64    `json:"client_id_issued_at"`
		Types  []string `json:"response_types"`
	}{c, time.Now().Unix(), []string{"code"}})
}

// client finds a client: one that has registered, or one whose id is the URL of
// its metadata, which is fetched again each time.
func (s *Server) client(ctx context.Context, id string) (client, error) {
	s.store.mu.Lock()
	c, ok := s.store.clients.get(id)
	s.store.mu.Unlock()
	switch {
	case ok:
		return c, nil
	case strings.HasPrefix(id, "https://"):
		return fetchClient(ctx, s.opts.Client, id)
	}
	return client{}, errors.New("the client is not registered here; registrations are lost when the server ends")
}

// token serves the token endpoint (OAuth 2.1, section 3.2).
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return
	}
	key, err := proven(r, s.opts.Issuer+"/token", s.store.firstUse)
	if err != nil {
		refuse(w, "invalid_dpop_proof", err.Error())
		return
	}
	switch r.PostForm.Get("grant_type") {
	case grantCode:
		s.redeem(w, r, key)
	case grantRefresh:
		s.renew(w, r, key)
	default:
		refuse(w, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
}

// redeem gives tokens for a code, bound to key if there is one. The code is
// used up whatever the answer is: a client that cannot prove that it is the one
// that asked gets no second try.
func (s *Server) redeem(w http.ResponseWriter, r *http.Request, key string) {
	form := r.PostForm
	g, ok := s.store.take(&s.store.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	switch {
	case !ok || g.request.client.ID != form.Get("client_id"):
		refuse(w, "invalid_grant", "the code is unknown, used or too old, or another client's")
	case g.request.redirect != form.Get("redirect_uri"):
		refuse(w, "invalid_grant", "the redirect_uri is another than that of the code")
	case subtle.ConstantTimeCompare([]byte(challenge), []byte(g.request.challenge)) == 0:
		refuse(w, "invalid_grant", "the code_verifier does not fit the code_challenge")
	case form.Get("resource") != g.request.resource:
		refuse(w, "invalid_target", "the resource is another than that of the code")
	case g.request.key != "" && g.request.key != key:
		refuse(w, "invalid_grant", "the code is bound to another key")
	default:
		g.key = key
		s.issue(w, g, g.scopes)
	}
}

// renew gives new tokens for a refresh token, which is used up whatever the
// answer is. A client may ask for fewer scopes than the user has allowed; the
// next refresh token still stands for all of them.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, key string) {
	form := r.PostForm
	g, ok := s.store.take(&s.store.refresh, form.Get("refresh_token"))
	scopes := g.scopes
	if wanted := strings.Fields(form.Get("scope")); len(wanted) > 0 {
		scopes = wanted
	}
	switch {
	case !ok || g.request.client.ID != form.Get("client_id"):
		refuse(w, "invalid_grant", "the refresh token is unknown, used, revoked or too old, or another client's")
	case g.key != key:
		refuse(w, "invalid_grant", "the refresh token is bound to another key")
	case form.Get("resource") != "" && form.Get("resource") != g.request.resource:
		refuse(w, "invalid_target", "the resource is another than that of the refresh token")
	case slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(g.scopes, s) }):
		refuse(w, "invalid_scope", "the user has not allowed that much")
	default:
		s.issue(w, g, scopes)
	}
}

// issue answers with an access token, and with a refresh token if the client
// takes such.
func (s *Server) issue(w http.ResponseWriter, g grant, scopes []string) {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == offline })
	access, err := s.sign(g, scopes)
	if err != nil {
		refuse(w, "server_error", "the token cannot be signed")
		return
	}
	answer := map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(s.opts.Lifetime.Seconds()), "scope": strings.Join(scopes, " "),
	}
	if g.key != "" {
		answer["token_type"] = "DPoP"
	}
	if slices.Contains(g.request.client.GrantTypes, grantRefresh) {
		g.consumed, g.until = false, time.Now().Add(timeToRefresh)
		answer["refresh_token"] = s.store.putGrant(&s.store.refresh, g)
	}
	writeJSON(w, http.StatusOK, answer)
}

// sign returns an access token with scopes (RFC 9068). It names its grant, for
// Revoked, and the key that it is bound to, if there is one.
func (s *Server) sign(g grant, scopes []string) (string, error) {
	now := time.Now()
	claims := map[string]any{
		"iss": s.opts.Issuer, "aud": g.request.resource, "sub": g.user, "client_id": g.request.client.ID, "scope": strings.Join(scopes, " "),
		"iat": now.Unix(), "exp": now.Add(s.opts.Lifetime).Unix(), "jti": rand.Text(), grantClaim: g.id,
	}
	if g.key != "" {
		claims["cnf"] = map[string]string{"jkt": g.key}
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := s.signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// revoke serves RFC 7009. Unknown tokens are as good as revoked.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return
	}
	s.Revoke(r.PostForm.Get("token"))
	w.WriteHeader(http.StatusOK)
}

// grantOf returns the grant of a refresh token or an access token, "" if this
// server did not issue it. An access token that has ended still has its grant.
func (s *Server) grantOf(token string) string {
	if g, ok := s.store.refreshed(token); ok {
		return g.id
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return ""
	}
	payload, err := signed.Verify(&s.key.PublicKey)
	if err != nil {
		return ""
	}
	var claims map[string]any
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	id, _ := claims[grantClaim].(string)
	return id
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone; net/http notices by itself
}

// refuse answers with an error of RFC 6749, section 5.2.
func refuse(w http.ResponseWriter, code, description string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}
