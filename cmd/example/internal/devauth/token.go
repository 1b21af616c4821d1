package devauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	offline      = "offline_access"
)

// token serves the token endpoint (OAuth 2.1, section 3.2).
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return
	}
	key, err := s.proven(r)
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

// redeem gives tokens for a code, bound to key if there is one.
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

// renew gives new tokens for a refresh token, which is used up.
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
	now := time.Now()
	granted := strings.Join(slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == offline }), " ")
	said := map[string]any{
		"iss": s.opts.Issuer, "aud": g.request.resource, "sub": g.user, "client_id": g.request.client.ID, "scope": granted,
		"iat": now.Unix(), "exp": now.Add(s.opts.Lifetime).Unix(), "jti": rand.Text(), grantClaim: g.id,
	}
	kind := "Bearer"
	if g.key != "" {
		kind, said["cnf"] = "DPoP", map[string]string{"jkt": g.key}
	}
	claims, err := json.Marshal(said)
	if err != nil {
		refuse(w, "server_error", "the token does not encode")
		return
	}
	signed, err := s.signer.Sign(claims)
	if err != nil {
		refuse(w, "server_error", "the token cannot be signed")
		return
	}
	access, err := signed.CompactSerialize()
	if err != nil {
		refuse(w, "server_error", "the token does not encode")
		return
	}
	answer := map[string]any{"access_token": access, "token_type": kind, "expires_in": int(s.opts.Lifetime.Seconds()), "scope": granted}
	if slices.Contains(g.request.client.GrantTypes, grantRefresh) {
		g.consumed, g.until = false, now.Add(timeToRefresh)
		answer["refresh_token"] = s.store.putGrant(&s.store.refresh, g)
	}
	writeJSON(w, http.StatusOK, answer)
}

// grantClaim is the claim that names the grant of a token.
const grantClaim = "grant"

// revoke serves RFC 7009: it ends what the user has allowed, whichever of its
// tokens is brought. Unknown ones are as good as revoked.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return
	}
	token := r.PostForm.Get("token")
	s.store.mu.Lock()
	g, ok := s.store.refresh.get(token)
	s.store.mu.Unlock()
	if ok {
		s.store.revoke(g.id)
	} else if id := s.grantOf(token); id != "" {
		s.store.revoke(id)
	}
	w.WriteHeader(http.StatusOK)
}

// grantOf returns the grant of an access token, "" if it is none of this
// server's.
func (s *Server) grantOf(token string) string {
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

// Revoked tells whether an access token with these claims was revoked.
func (s *Server) Revoked(claims map[string]any) bool {
	id, _ := claims[grantClaim].(string)
	return s.store.isRevoked(id)
}
