package issuing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// ticket is a code or a refresh token that was opened.
type ticket struct {
	user, login string
	number      int64
	end         time.Time
	more        []string
}

// sealed returns a code or a refresh token.
func (s *Server) sealed(use, user, login string, number int64, end time.Time, more ...string) string {
	parts := append([]string{user, login, strconv.FormatInt(number, 36), strconv.FormatInt(end.Unix(), 36)}, more...)
	return s.Keeper.SealText(use, "", parts...)
}

// open opens what sealed has returned, with at least more further parts.
func (s *Server) open(use, text string, more int) (t ticket, ok bool) {
	p, ok := s.Keeper.OpenText(use, "", text, 4+more)
	if !ok {
		return t, false
	}
	return ticket{p[0], p[1], number(p[2], &ok), time.Unix(number(p[3], &ok), 0), p[4:]}, ok
}

// refusal is an error of RFC 6749, section 5.2.
type refusal struct {
	code, description string
	reused            *User // whose login has ended with it; nil if none has
}

func (r *refusal) Error() string { return r.description }

func invalid(description string) *refusal { return &refusal{"invalid_grant", description, nil} }

// reused is invalid for what ends its login.
func reused(u *User, description string) *refusal { return &refusal{"invalid_grant", description, u} }

// form reads the form of a request to the token endpoint as r.PostForm. r.ParseForm would
// take a third of what a request costs that is refused.
func (s *Server) form(w http.ResponseWriter, r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		refuse(w, "invalid_request", "the Content-Type must be application/x-www-form-urlencoded")
		return false
	}
	text := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), usualForm)+bytes.MinRead))
	_, err := text.ReadFrom(http.MaxBytesReader(w, r.Body, maxForm))
	if err == nil {
		r.PostForm, err = url.ParseQuery(text.String())
	}
	if err != nil {
		refuse(w, "invalid_request", "the form cannot be read")
		return false
	}
	for name, values := range r.PostForm {
		if len(values) > 1 && name != "resource" {
			refuse(w, "invalid_request", "a parameter is there more than once")
			return false
		}
	}
	return true
}

// token serves the token endpoint (OAuth 2.1, section 3.2).
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if !s.form(w, r) {
		return
	}
	c, ok := s.clients.authenticate(r)
	if !ok {
		refuse(w, "invalid_client", "the client is not known here, or its secret is wrong: register again")
		return
	}
	if err := s.c.Accept(r.Context(), c); err != nil {
		s.c.Event("refused", c.ID, nil, err)
		refuse(w, "unauthorized_client", "this server does not let this client in")
		return
	}
	var err error
	switch r.PostForm.Get("grant_type") {
	case GrantCode:
		err = s.redeem(w, r, c)
	case GrantRefresh:
		err = s.refresh(w, r, c)
	default:
		refuse(w, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		if refused.reused != nil {
			s.c.Event("reused", c.ID, refused.reused, err)
		}
		refuse(w, refused.code, refused.description)
	} else if err != nil {
		refuse(w, "temporarily_unavailable", "try again in a minute")
	}
}

// Login adds the login of a request to the entry of a user, and returns its code.
// set completes the entry. ErrUsed means that the login was added before.
func (s *Server) Login(ctx context.Context, user string, req *Request, set func(u *User) error) (code string, err error) {
	end := time.Now().Add(timeForCode)
	if err := s.Users.add(ctx, user, req, end.Add(timeForCode), set); err != nil {
		return "", err
	}
	return s.sealed("code", user, req.ID, 0, end, Hash(req.Redirect), req.challenge, req.key), nil
}

// proven returns the thumbprint of the key that a token request of a user has proven to
// have (RFC 9449, section 5); "" if it does not try. use makes the store keep the proof for
// two minutes, so that no replica takes it twice: first in the share of the user, so that
// one user cannot fill what all have. It is called when the key is known to be the
// right one, so that others cannot fill the user's share.
func (s *Server) proven(r *http.Request, user string) (thumbprint string, use func() error, err error) {
	thumbprint, id, err := proof(r, s.c.Issuer+"/token")
	if err != nil {
		return "", nil, &refusal{"invalid_dpop_proof", err.Error(), nil}
	}
	kept := thumbprint == ""
	return thumbprint, func() error {
		if kept {
			return nil
		}
		all, own := s.Keeper.Key("login-proof", thumbprint+" "+id), s.Keeper.Key("login-proof-share", user)
		for _, w := range []scale.Write{
			{Key: scale.Key{Partition: own.Partition, Name: all.Name}, Limit: own.Name, Max: proofsOfUser},
			{Key: all, Limit: "proofs", Max: maxProofs},
		} {
			w.Value, w.TTL = []byte{}, 2*proofAge+30*time.Second
			done, err := s.Keeper.store.Put(r.Context(), w)
			if err == nil {
				err = done[0].Err
			}
			if errors.Is(err, scale.ErrChanged) {
				return &refusal{"invalid_dpop_proof", "the proof was used before", nil}
			}
			if err != nil {
				return err
			}
		}
		kept = true
		return nil
	}, nil
}

// redeem gives tokens for a code. A code that comes twice, or with a wrong proof
// that its client sends it, ends its login: another one may have it.
func (s *Server) redeem(w http.ResponseWriter, r *http.Request, c *Client) error {
	form := r.PostForm
	t, ok := s.open("code", form.Get("code"), 3)
	if !ok || !time.Now().Before(t.end) {
		return invalid("the code is unknown, used or too old")
	}
	key, use, err := s.proven(r, t.user)
	if err != nil {
		return err
	}
	redirect, challenge, bound := t.more[0], t.more[1], t.more[2]
	var u *User
	var l *Login
	redeemed := rand.Text()
	err = s.Users.Change(r.Context(), t.user, func(now *User) (bool, error) {
		u, l = now, now.Logins[t.login]
		if l != nil && (l.Number == 0 && (bound == "" || bound == key) || l.Number != 0 && l.Key == key) {
			if err := use(); err != nil {
				return false, err
			}
		}
		wrong := ""
		switch {
		case l != nil && l.Redeemed == redeemed: // by a write without an answer
			return false, nil
		case l == nil:
			return false, invalid("the code is unknown, used or too old")
		case l.Number != 0:
			wrong = "the code was used before: its login has ended"
		case l.Client != c.ID:
			wrong = "the code is of another client"
		case form.Get("redirect_uri") != "" && Hash(form.Get("redirect_uri")) != redirect:
			wrong = "the redirect_uri is another than that of the code"
		case !verifies(challenge, form.Get("code_verifier")):
			wrong = "the code_verifier does not fit the code_challenge"
		case bound != "" && bound != key:
			wrong = "the code is bound to another key"
		case form.Has("resource") && s.resource(form) != l.Resource:
			return false, &refusal{"invalid_target", "the resource is another than that of the code", nil}
		}
		if wrong != "" {
			delete(now.Logins, t.login)
			return true, reused(now, wrong)
		}
		l.Key = key
		s.next(l, 1)
		l.Redeemed = redeemed
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.issue(w, t, u, l, l.Scopes)
}

// next gives a login its next number, and with it more time.
func (s *Server) next(l *Login, number int64) {
	now := time.Now()
	keep := s.c.Lifetime
	if l.Refresh {
		keep = s.c.Refresh
	}
	l.Number, l.Redeemed, l.At, l.End = number, "", now.UnixMilli(), now.Add(keep).Unix()
}

// refresh gives new tokens for a refresh token. The one before is taken for a
// while, since several programs of a user may refresh at once, and answers get
// lost; an older one ends the login. A number that is greater than that of the
// login comes of a store that has lost writes.
func (s *Server) refresh(w http.ResponseWriter, r *http.Request, c *Client) error {
	t, ok := s.open("refresh", r.PostForm.Get("refresh_token"), 0)
	if !ok || !time.Now().Before(t.end) {
		return invalid("the refresh token is unknown, revoked or too old")
	}
	key, use, err := s.proven(r, t.user)
	if err != nil {
		return err
	}
	var u *User
	var l *Login
	var scopes []string
	asked := s.c.Due == nil
	step := func(now *User) (bool, error) {
		u, l = now, now.Logins[t.login]
		switch {
		case l == nil || l.Client != c.ID || !l.Refresh:
			return false, invalid("the refresh token is unknown, revoked or too old, or of another client")
		case l.Key != key:
			return false, invalid("the refresh token is bound to another key")
		case r.PostForm.Has("resource") && s.resource(r.PostForm) != l.Resource:
			return false, &refusal{"invalid_target", "the resource is another than that of the refresh token", nil}
		}
		if err := use(); err != nil {
			return false, err
		}
		scopes = l.Scopes
		wanted := strings.Fields(r.PostForm.Get("scope"))
		slices.Sort(wanted)
		wanted = slices.DeleteFunc(slices.Compact(wanted), func(s string) bool { return s == Offline }) // a login with refresh tokens has it
		if len(wanted) > 0 {
			scopes = wanted
		}
		if slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(l.Scopes, s) }) {
			return false, &refusal{"invalid_scope", "the user has not allowed that much", nil}
		}
		late := time.Since(time.UnixMilli(l.At)) > grace
		switch {
		case t.number >= l.Number && !asked && s.c.Due(now):
			return false, errAsk
		case t.number >= l.Number:
			s.next(l, t.number+1)
			return true, nil
		case t.number == l.Number-1 && t.number > 0 && !late:
			return false, nil
		}
		delete(now.Logins, t.login)
		return true, reused(now, "the refresh token was used before: its login has ended")
	}
	if err = s.Users.Change(r.Context(), t.user, step); errors.Is(err, errAsk) {
		asked = true
		if err = s.c.Check(r.Context(), t.user, u); err == nil {
			err = s.Users.Change(r.Context(), t.user, step)
		}
	}
	switch {
	case errors.Is(err, ErrGrant):
		return invalid("the refresh token is unknown, revoked or too old")
	case err != nil:
		return err
	}
	return s.issue(w, t, u, l, scopes)
}

// errAsk is the error of a refresh for which the provider has to be asked first.
var errAsk = errors.New("the provider has to be asked")

// issue answers with an access token, and with a refresh token if the login has
// such.
func (s *Server) issue(w http.ResponseWriter, t ticket, u *User, l *Login, scopes []string) error {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == Offline })
	end := time.Now().Add(s.c.Lifetime)
	access, err := s.c.Access(&Grant{
		User: t.user, Login: t.login, Issuer: u.Issuer, Subject: u.Subject, Client: l.Client, Resource: l.Resource, Scopes: scopes, Key: l.Key, End: end,
	})
	if err != nil {
		return err
	}
	answer := map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(s.c.Lifetime.Seconds()), "scope": strings.Join(scopes, " "),
	}
	if l.Key != "" {
		answer["token_type"] = "DPoP"
	}
	if l.Refresh {
		answer["refresh_token"] = s.sealed("refresh", t.user, t.login, l.Number, time.Unix(l.End, 0))
	}
	WriteJSON(w, http.StatusOK, answer)
	return nil
}

// revoke serves RFC 7009: it ends the login that a token comes of. Unknown tokens
// are as good as revoked. A client with a secret has to prove it.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	if !s.form(w, r) {
		return
	}
	client := ""
	if _, _, basic := r.BasicAuth(); basic || s.c.Secrets || r.PostForm.Has("client_id") {
		c, ok := s.clients.authenticate(r)
		if !ok {
			refuse(w, "invalid_client", "the client is not known here, or its secret is wrong")
			return
		}
		client = c.ID
	}
	if err := s.Revoke(r.Context(), r.PostForm.Get("token"), client); err != nil {
		refuse(w, "temporarily_unavailable", "try again in a minute")
		return
	}
	w.WriteHeader(http.StatusOK)
}

// Revoke ends the login that a token comes of, if it is that of the client; "" is
// any. Unknown tokens are ignored.
func (s *Server) Revoke(ctx context.Context, token, client string) error {
	user, login, ok := s.c.Open(token)
	if t, sealed := s.open("refresh", token, 0); sealed {
		user, login, ok = t.user, t.login, true
	}
	if !ok {
		return nil
	}
	u, l, err := s.Users.Has(ctx, user, login)
	if errors.Is(err, ErrGrant) || err == nil && client != "" && l.Client != client {
		return nil
	}
	if err == nil {
		err = s.Users.End(ctx, user, login)
	}
	if err == nil {
		s.c.Event("revoked", l.Client, u, nil)
	}
	return err
}
