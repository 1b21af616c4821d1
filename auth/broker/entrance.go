package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/frame"
)

// The times of what is known of a user.
const (
	checkEvery = time.Hour      // interval after which the provider is asked again, when a client refreshes
	checkGrace = 24 * time.Hour // time for which a login lasts that the provider cannot be asked about
	checkPause = time.Minute    // interval between checks of a user that the provider does not answer
	maxAway    = 1_000          // number of users with such an interval
)

// maxClaims limits what is kept of a user's claims, in bytes of JSON: the longest
// claims go.
const maxClaims = 8 << 10

// entrance is where users log in: the question, what follows the visit to the
// provider, access tokens, and the check. It is safe for concurrent use.
type entrance struct {
	b        *Broker
	protocol *issuing.Server
	away     *lru.Cache[string, time.Time] // users about whom the provider is not asked before that time
}

// newEntrance makes the protocol of a Broker.
func newEntrance(b *Broker) (*entrance, error) {
	e := &entrance{b: b}
	e.away, _ = lru.New[string, time.Time](maxAway) // fails only for a size below 1
	var scopes []string
	for _, s := range b.opts.Scopes {
		scopes = append(scopes, s.Name)
	}
	var clients []issuing.Client
	for _, c := range b.opts.Clients {
		known := issuing.Client{ID: c.ID, Name: c.Name, Secret: c.Secret, RedirectURIs: slices.Clone(c.RedirectURIs), Refresh: true, Verified: "the operator of this server"}
		if known.Method = "none"; c.Secret != "" {
			known.Method = "client_secret_basic"
		}
		clients = append(clients, known)
	}
	var err error
	e.protocol, err = issuing.New(issuing.Config{
		Issuer: b.issuer, Resources: b.opts.Resources, Scopes: scopes, Keys: b.opts.Keys, Store: b.opts.Store,
		Lifetime: cmp.Or(b.opts.Lifetime, defaultLifetime), Refresh: cmp.Or(b.opts.Refresh, defaultRefresh),
		Secrets: true, Clients: clients,
		Browser: func(w http.ResponseWriter, r *http.Request, create bool) string {
			if create {
				return b.browsers.of(w, r)
			}
			return b.browsers.at(r)
		},
		Accept: func(ctx context.Context, c *issuing.Client) error {
			if b.opts.Accept == nil {
				return nil
			}
			return b.accept(ctx, &Client{ID: c.ID, Name: c.Name, RedirectURIs: slices.Clone(c.RedirectURIs)})
		},
		Ask: e.ask, Answered: e.answered, Access: e.access, Open: e.grantOf, Due: e.due, Check: e.check,
		Fault: func(w http.ResponseWriter, _ *http.Request, status int, text string) { b.pages.fault(w, status, text) },
		Event: func(kind, client string, u *issuing.User, err error) {
			b.event(Event{Kind: kind, Client: client, Principal: principalOf(u), Err: err})
		},
	})
	return e, err
}

// principalOf returns the principal of an entry, "" for nil.
func principalOf(u *issuing.User) string {
	if u == nil {
		return ""
	}
	return (&frame.Identity{Issuer: u.Issuer, Subject: u.Subject}).Principal()
}

// ask answers with the page that asks the user whether a client may enter.
func (e *entrance) ask(w http.ResponseWriter, _ *http.Request, req *issuing.Request, form string) {
	b := e.b
	var scopes []Scope
	for _, s := range b.opts.Scopes {
		if slices.Contains(req.Scopes, s.Name) {
			scopes = append(scopes, s)
		}
	}
	host := req.Redirect
	if u, err := url.Parse(req.Redirect); err == nil {
		host = u.Scheme + ":"
		if u.Scheme == "https" || u.Scheme == "http" {
			host = u.Host
		}
	}
	var services []map[string]string
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		services = append(services, map[string]string{"Name": name, "Provider": b.services[name].up.name()})
	}
	b.pages.show(w, http.StatusOK, "question", map[string]any{
		"Title": "Let a program in?", "Client": req.Name, "Verified": req.Verified, "Host": host, "Redirect": req.Redirect,
		"Local": issuing.Loopback(req.Redirect), "Scopes": scopes, "Provider": b.login.name(), "Asked": b.login.p.Scopes, "Services": services, "Form": form,
	})
}

// answered sends a user who has agreed to the provider.
func (e *entrance) answered(w http.ResponseWriter, r *http.Request, req *issuing.Request) {
	if !issuing.Loopback(req.Redirect) && r.PostForm.Get("began") == "" {
		e.b.pages.fault(w, http.StatusBadRequest, "Tick that you began this, or begin again in the program.")
		return
	}
	req.Until, req.Name, req.Verified = time.Now().Add(timeToVisit), "", "" // the page had these
	e.b.visits.leave(w, r, e.b.login, visit{purpose: toLogin, data: req.Text()}, nil, nil)
}

// standard are the errors of RFC 6749, section 4.1.2.1, that a client gets as the
// provider has them.
var standard = []string{"access_denied", "server_error", "temporarily_unavailable"}

// arrived logs in a user who has come back from the provider, or says that the
// provider refused.
func (e *entrance) arrived(w http.ResponseWriter, r *http.Request, a arrival, failed error) {
	b := e.b
	req, ok := issuing.ParseRequest(a.data)
	if !ok {
		b.pages.fault(w, http.StatusForbidden, issuing.TextOver)
		return
	}
	req.ID = a.visit.id
	if failed != nil {
		code := "server_error"
		if refused, ok := errors.AsType[*refusedError](failed); ok && slices.Contains(standard, refused.code) {
			code = refused.code
		}
		b.event(Event{Kind: "denied", Client: req.Client, Err: failed})
		e.protocol.SendBack(w, req, url.Values{"error": {code}, "error_description": {"the identity provider did not let the user in"}})
		return
	}
	principal := a.id.Principal()
	left, err := b.permit(r.Context(), a.id, without(req.Scopes, issuing.Offline))
	if err != nil {
		b.event(Event{Kind: "refused", Client: req.Client, Principal: principal, Err: err})
		e.protocol.SendBack(w, req, url.Values{"error": {"access_denied"}, "error_description": {"this server does not let the user in"}})
		return
	}
	req.Scopes = left
	code, err := "", b.vault.save(r.Context(), principal, "", a.token)
	if errors.Is(err, errLong) { // the provider cannot be asked, and tokens of a former login say nothing of this one
		err = b.vault.change(r.Context(), b.vault.key(principal, ""), func(*kept) *kept { return nil })
	}
	if err == nil {
		code, err = e.protocol.Login(r.Context(), issuing.Hash(principal), req, func(u *issuing.User) error {
			u.Issuer, u.Subject, u.Claims, u.Asked = a.id.Issuer, a.id.Subject, bounded(a.id.Claims), time.Now().Unix()
			return nil
		})
	}
	switch {
	case errors.Is(err, issuing.ErrUsed):
		b.pages.fault(w, http.StatusForbidden, issuing.TextOver)
	case err != nil:
		b.pages.fault(w, http.StatusServiceUnavailable, "The store of this server does not answer. Try again in a minute.")
	default:
		b.event(Event{Kind: "login", Client: req.Client, Principal: principal})
		e.protocol.SendBack(w, req, url.Values{"code": {code}})
	}
}

// without returns a copy of list without one.
func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}

// bounded returns claims of at most maxClaims bytes: the longest go. cnf goes, too: it
// is about the provider's tokens.
func bounded(claims map[string]any) map[string]any {
	sizes := map[string]int{}
	for name, value := range claims {
		if text, err := json.Marshal(value); err == nil && name != "cnf" {
			sizes[name] = len(name) + len(text) + 4
		}
	}
	kept, total := map[string]any{}, 0
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[a]-sizes[b], cmp.Compare(a, b)) }) {
		if total += sizes[name]; total > maxClaims {
			break
		}
		kept[name] = claims[name]
	}
	return kept
}

// access returns an access token, which is opaque for clients.
func (e *entrance) access(g *issuing.Grant) (string, error) {
	parts := append([]string{g.User, g.Login, g.Resource, strconv.FormatInt(g.End.Unix(), 36), g.Key}, g.Scopes...)
	return e.protocol.Keeper.SealText("access", "", parts...), nil
}

// accessParts is the number of parts of an access token, without its scopes.
const accessParts = 5

// opened opens an access token.
func (e *entrance) opened(token string) (g issuing.Grant, ok bool) {
	p, ok := e.protocol.Keeper.OpenText("access", "", token, accessParts)
	if !ok {
		return g, false
	}
	end, err := strconv.ParseInt(p[3], 36, 64)
	return issuing.Grant{User: p[0], Login: p[1], Resource: p[2], End: time.Unix(end, 0), Key: p[4], Scopes: p[accessParts:]}, err == nil
}

// grantOf returns the user and the login of an access token.
func (e *entrance) grantOf(token string) (user, login string, ok bool) {
	g, ok := e.opened(token)
	return g.User, g.Login, ok
}

// verifier is what Broker.Verifier returns. It is safe for concurrent use.
type verifier struct {
	e        *entrance
	resource string
}

// Issuers implements jwt.Issuer.
func (v *verifier) Issuers() []string { return []string{v.e.b.issuer} }

// Takes implements jwt.Taker: what opens is shown to no other Verifier.
func (v *verifier) Takes(token string) (own, may bool) {
	_, own = v.e.opened(token)
	return own, own
}

// Verify implements auth.Verifier. A token that does not open costs no request to
// the store.
func (v *verifier) Verify(ctx context.Context, token string) (*auth.Identity, error) {
	g, ok := v.e.opened(token)
	switch {
	case !ok:
		return nil, auth.Invalid("the token is not one of this server")
	case !issuing.SameResource(g.Resource, v.resource):
		return nil, auth.Invalid("the token was issued for another server")
	case !time.Now().Before(g.End):
		return nil, auth.Invalid("the token has expired")
	}
	u, l, err := v.e.protocol.Users.Has(ctx, g.User, g.Login)
	if errors.Is(err, issuing.ErrGrant) {
		return nil, auth.Invalid("the login of the token has ended")
	} else if err != nil {
		return nil, err
	}
	if u.Claims == nil {
		u.Claims = map[string]any{}
	}
	if g.Key != "" {
		u.Claims["cnf"] = map[string]any{"jkt": strings.Clone(g.Key)}
	}
	// Copies, since an Identity that is cached would otherwise keep the entry and the token.
	var scopes []string
	for _, scope := range g.Scopes {
		if slices.Contains(l.Scopes, scope) {
			scopes = append(scopes, strings.Clone(scope))
		}
	}
	return &auth.Identity{
		Issuer: strings.Clone(u.Issuer), Subject: strings.Clone(u.Subject), ClientID: strings.Clone(l.Client), Scopes: scopes, Expiry: g.End, Claims: u.Claims,
	}, nil
}

// due reports whether the provider has to be asked about a user before a client
// refreshes.
func (*entrance) due(u *issuing.User) bool { return time.Since(time.Unix(u.Asked, 0)) >= checkEvery }

// check asks the provider about a user, whose logins end if it refuses.
func (e *entrance) check(ctx context.Context, user string, u *issuing.User) error {
	tolerated := time.Since(time.Unix(u.Asked, 0)) < checkGrace
	if until, ok := e.away.Get(user); ok && tolerated && time.Now().Before(until) {
		return nil
	}
	id, t, err := e.vouched(ctx, u)
	switch {
	case errors.Is(err, errRefused):
		if t, err := e.b.vault.fresh(ctx, e.b.login, principalOf(u), "", false); err == nil && t != nil {
			return nil // there are newer tokens
		}
		return e.end(ctx, user, u, err)
	case errors.Is(err, errNotUser):
		ended := e.end(ctx, user, u, err)
		if errors.Is(ended, issuing.ErrGrant) {
			if _, failed := e.b.vault.forget(ctx, e.b.login, principalOf(u), "", t.AccessToken); failed != nil {
				return failed // the logins have ended, which the next request finds
			}
		}
		return ended
	case err != nil && tolerated:
		e.away.Add(user, time.Now().Add(checkPause))
		return nil
	case errors.Is(err, errNone), errors.Is(err, errBadToken):
		return e.end(ctx, user, u, fmt.Errorf("the provider cannot be asked about the user: %w", err))
	case err != nil:
		return err
	}
	newest := id != nil // another call that got the ID token writes its claims
	if !newest {
		id = &auth.Identity{Issuer: u.Issuer, Subject: u.Subject, Claims: u.Claims}
	}
	all := []string{}
	for _, l := range u.Logins {
		all = append(all, l.Scopes...)
	}
	slices.Sort(all)
	left, err := e.b.permit(ctx, id, slices.Compact(all))
	if err != nil {
		return e.end(ctx, user, u, err)
	}
	return e.protocol.Users.Change(ctx, user, func(now *issuing.User) (bool, error) {
		if len(now.Logins) == 0 {
			return false, issuing.ErrGrant
		}
		now.Asked = time.Now().Unix()
		if newest {
			now.Claims = bounded(id.Claims)
		}
		for _, l := range now.Logins {
			l.Scopes = slices.DeleteFunc(l.Scopes, func(s string) bool { return slices.Contains(all, s) && !slices.Contains(left, s) })
		}
		return true, nil
	})
}

// end ends all logins of a user, and returns issuing.ErrGrant. A user who has logged in
// since u was read keeps them.
func (e *entrance) end(ctx context.Context, user string, u *issuing.User, why error) error {
	newer := false
	err := e.protocol.Users.Change(ctx, user, func(now *issuing.User) (bool, error) {
		if newer = now.Asked > u.Asked; !newer {
			clear(now.Logins)
		}
		return !newer, nil
	})
	if err != nil || newer {
		return err
	}
	e.b.event(Event{Kind: "refused", Principal: principalOf(u), Err: why})
	return issuing.ErrGrant
}

// vouched asks the provider about a user, with the tokens of the login: for newer
// ones, or whose the present one is. It returns the tokens that were asked about. id is
// nil if the answer does not say.
// The error is errRefused; errNotUser; errNone if the provider cannot be asked; or that
// it does not answer.
func (e *entrance) vouched(ctx context.Context, u *issuing.User) (id *auth.Identity, t *oauth2.Token, err error) {
	principal := principalOf(u)
	if t, err = e.b.vault.fresh(ctx, e.b.login, principal, "", true); errors.Is(err, errNone) {
		if e.b.login.p.User == nil {
			return nil, nil, errNone
		}
		t, err = e.b.vault.fresh(ctx, e.b.login, principal, "", false)
	}
	if err != nil {
		return nil, nil, err
	}
	id, err = e.b.login.identify(ctx, t, "")
	if refused, ok := errors.AsType[*auth.Error](err); ok && refused.Status == http.StatusUnauthorized || err == nil && id != nil && id.Principal() != principal {
		return nil, t, errNotUser
	}
	return id, t, err
}

// errNotUser is the error of tokens of a login that are not, or no longer, the user's.
var errNotUser = errors.New("the tokens of the login are not those of the user")

// routes returns what the Broker answers.
func (e *entrance) routes() issuing.Routes {
	at, _ := url.Parse(e.b.issuer) // New has parsed it
	paths := e.protocol.Routes(at.Path)
	paths["/.well-known/oauth-authorization-server"] = paths["/.well-known/oauth-authorization-server"+at.Path] // for clients of 2025-03-26
	arrive := func(service string) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{http.MethodGet: func(w http.ResponseWriter, r *http.Request) { e.b.visits.arrive(w, r, service) }}
	}
	paths[at.Path+"/callback"] = arrive("")
	for name := range e.b.services {
		paths[at.Path+"/callback/"+name] = arrive(name)
	}
	paths[at.Path+connectPath] = map[string]http.HandlerFunc{http.MethodGet: e.b.connect.serve, http.MethodPost: e.b.connect.serve}
	return paths
}
