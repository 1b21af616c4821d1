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
// Clients and questions are sealed and kept by clients and browsers. Users and
// their logins are in a store within the process, until they end. Start adds one
// goroutine to those of net/http, which ends with Close.
//
// Specification: basic/authorization of every revision from 2025-03-26 on.
package authtest

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/internal/jsonx"
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
	opts     Options
	protocol *issuing.Server
	routes   issuing.Routes
	key      *ecdsa.PrivateKey
	signer   jose.Signer
	stop     func() error // what Close does
}

const (
	keyID = "development"
	// grantClaim is the claim that names the user and the login of a token.
	grantClaim = "grant"
	// refreshFor is how long a login is kept after its last refresh.
	refreshFor = 24 * time.Hour
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
	if issuer.Scheme != "http" || !issuing.Local(issuer.Host) || issuer.Path == "" || strings.HasSuffix(issuer.Path, "/") {
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
	s.protocol, err = issuing.New(issuing.Config{
		Issuer: s.opts.Issuer, Resources: []string{s.opts.Resource}, Scopes: s.names(),
		Lifetime: s.opts.Lifetime, Refresh: refreshFor, Documents: s.opts.Client, Metadata: map[string]any{"jwks_uri": s.opts.Issuer + "/keys"},
		Accept: func(context.Context, *issuing.Client) error { return nil },
		Ask:    s.ask, Answered: s.answered, Access: s.sign, Open: s.grantOf,
		Fault: func(w http.ResponseWriter, _ *http.Request, status int, text string) { http.Error(w, text, status) },
		Event: func(string, string, *issuing.User, error) {},
	})
	if err != nil {
		return nil, err
	}
	s.routes = s.protocol.Routes(issuer.Path)
	s.routes[issuer.Path+"/keys"] = map[string]http.HandlerFunc{http.MethodGet: s.keys}
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
	g := &issuing.Grant{
		User: rand.Text(), Login: "token", Issuer: s.opts.Issuer, Subject: subject, Client: "authtest", Resource: s.opts.Resource, Scopes: scopes,
		End: time.Now().Add(s.opts.Lifetime),
	}
	if err := s.protocol.Users.Mint(context.Background(), g); err != nil {
		return "", fmt.Errorf("authtest: %w", err)
	}
	return s.sign(g)
}

// Revoke ends an access token or a refresh token, and all others that come of the
// same login. Tokens that are not the Server's are ignored.
func (s *Server) Revoke(token string) {
	_ = s.protocol.Revoke(context.Background(), token, "") // a store within the process does not fail
}

// Revoked returns an error of auth.Invalid if the access token of id was revoked,
// which a JWT itself does not tell. It is for auth.JWTOptions.Check; with it,
// auth.Options.CacheFor is best negative, so that a revocation is seen at once.
func (s *Server) Revoked(ctx context.Context, id *auth.Identity) error {
	grant, _ := id.Claims[grantClaim].(string)
	user, login, _ := strings.Cut(grant, " ")
	if _, _, err := s.protocol.Users.Has(ctx, user, login); err != nil {
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
	routes := func() issuing.Routes { return s.routes }
	return issuing.Middleware(next, routes, func(r *http.Request) (int, string) {
		if !issuing.Local(r.RemoteAddr) || !issuing.Local(r.Host) {
			return http.StatusForbidden, "this authorization server is for development on this machine"
		}
		return 0, ""
	})
}

// keys serves the public key, by which resource servers check access tokens
// (RFC 7517). There is one, made by New, so that no token outlives the process.
func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	issuing.WriteJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
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

var page = template.Must(template.New("consent").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Development authorization server</title>
<style>body{font:16px/1.5 sans-serif;max-width:34em;margin:3em auto;padding:0 1em}.note{background:#fd6;padding:.5em 1em}</style>
<p class="note">For development only: this server asks nobody for a password, and forgets everything when it ends.</p>
<h1>{{.Client}} asks for access</h1>
<p>to <code>{{.Resource}}</code>. You will be sent back to <strong>{{.Host}}</strong>.</p>
<form method="post" action="consent">
<input type="hidden" name="id" value="{{.ID}}">
<p><label>You are <input name="user" value="alice" required maxlength="40"></label></p>
{{range .Scopes}}<p><label><input type="checkbox" name="scope" value="{{.Name}}" checked> {{with .Allows}}{{.}} {{end}}(<code>{{.Name}}</code>)</label></p>
{{end}}<p><button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></p>
</form>
</html>
`))

// ask answers with the page that asks the user. form is the text in its form by
// which the request is found again; what the page shows of the client is what that
// says of itself.
func (s *Server) ask(w http.ResponseWriter, _ *http.Request, req *issuing.Request, form string) {
	name, host := cmp.Or(req.Name, "A client without a name"), ""
	if u, err := url.Parse(req.Redirect); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	var scopes []Scope
	for _, scope := range s.opts.Scopes {
		if slices.Contains(req.Scopes, scope.Name) {
			scopes = append(scopes, scope)
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	// No other page may put this one into a frame and have the user click.
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	_ = page.Execute(w, struct {
		ID, Client, Resource, Host string
		Scopes                     []Scope
	}{form, name, req.Resource, host, scopes}) // fails only if the browser does not read it
}

// answered logs in the user that the form names.
func (s *Server) answered(w http.ResponseWriter, r *http.Request, req *issuing.Request) {
	user := strings.TrimSpace(r.PostForm.Get("user"))
	if user == "" || len(user) > 200 {
		s.protocol.SendBack(w, req, url.Values{"error": {"access_denied"}, "error_description": {"the user has no name"}})
		return
	}
	code, err := s.protocol.Login(r.Context(), issuing.Hash(user), req, func(u *issuing.User) error {
		u.Issuer, u.Subject = s.opts.Issuer, user
		return nil
	})
	if err != nil {
		http.Error(w, "this question has been answered or is too old; begin again from the client", http.StatusBadRequest)
		return
	}
	s.protocol.SendBack(w, req, url.Values{"code": {code}})
}

// sign returns the access token of a grant (RFC 9068). It names its login, for
// Revoked, and the key that it is bound to, if there is one.
func (s *Server) sign(g *issuing.Grant) (string, error) {
	claims := map[string]any{
		"iss": s.opts.Issuer, "aud": g.Resource, "sub": g.Subject, "client_id": g.Client, "scope": strings.Join(g.Scopes, " "),
		"iat": time.Now().Unix(), "exp": g.End.Unix(), "jti": rand.Text(), grantClaim: g.User + " " + g.Login,
	}
	if g.Key != "" {
		claims["cnf"] = map[string]string{"jkt": g.Key}
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

// grantOf returns the user and the login of an access token of this server, also
// of one that has ended.
func (s *Server) grantOf(token string) (user, login string, ok bool) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", "", false
	}
	payload, err := signed.Verify(&s.key.PublicKey)
	if err != nil {
		return "", "", false
	}
	var claims map[string]any
	if jsonx.Unmarshal(payload, &claims) != nil {
		return "", "", false
	}
	grant, _ := claims[grantClaim].(string)
	return strings.Cut(grant, " ")
}
