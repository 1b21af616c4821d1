package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
)

// visit is a user's way to a provider and back. It is sealed in a cookie of its
// own, which is bound to its state.
type visit struct {
	purpose string // toLogin, toCompare or toConnect
	service string // of the services, "" for the login
	data    string // what purpose needs, opaque here; at most 2 KiB
	id      string // made of the state, so that each visit has its own

	verifier, nonce string
}

// arrival is a visit that has come back. id is verified; it is nil if the service
// does not say whose the token is.
type arrival struct {
	visit
	token *oauth2.Token
	id    *auth.Identity
}

// The purposes of visits.
const (
	toLogin   = "login"
	toCompare = "compare" // the user with the caller, before a service is connected
	toConnect = "service"
)

// The cookies of visits.
const (
	cookieVisit = "broker-visit-" // and its begin, and a hash of its state
	timeToVisit = 10 * time.Minute
	maxCookies  = 6 << 10 // bytes of all visits of a browser: the oldest goes
	maxVisit    = 4_000   // bytes of one with its name: browsers drop a cookie above 4,096
	visitParts  = 6
)

// visits sends users to providers and receives them. It does not change.
type visits struct {
	b      *Broker
	keeper *issuing.Keeper
}

// callback returns the redirect URI of a visit.
func (v *visits) callback(to visit) string {
	if to.purpose == toConnect {
		return v.b.issuer + "/callback/" + to.service
	}
	return v.b.issuer + "/callback"
}

// leave sends the browser to a provider. params are added to its authorization
// URL; scopes nil means those of the Provider.
func (v *visits) leave(w http.ResponseWriter, r *http.Request, u *upstream, to visit, scopes []string, params map[string]string) {
	e, err := u.at(r.Context())
	if err != nil {
		v.b.event(Event{Kind: "denied", Service: to.service, Err: err})
		v.b.pages.fault(w, http.StatusServiceUnavailable, u.name()+" does not answer. Try again in a minute.")
		return
	}
	state := rand.Text() + rand.Text()
	to.verifier = oauth2.GenerateVerifier()
	q := url.Values{}
	for name, values := range u.p.Params {
		q[name] = values
	}
	for name, value := range params {
		q.Set(name, value)
	}
	if scopes == nil {
		scopes = u.p.Scopes
	}
	for name, value := range map[string]string{
		"response_type": "code", "client_id": u.p.ClientID, "redirect_uri": v.callback(to), "state": state,
		"code_challenge": oauth2.S256ChallengeFromVerifier(to.verifier), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	if e.ids != nil {
		to.nonce = rand.Text()
		q.Set("nonce", to.nonce)
	}
	value := v.keeper.SealText("visit", state, to.purpose, to.service, to.data, to.verifier, to.nonce, strconv.FormatInt(time.Now().Add(timeToVisit).Unix(), 10))
	name := cookieVisit + strconv.FormatInt(time.Now().Unix(), 36) + "-" + hash(state)[:16]
	if len(v.b.browsers.name(name))+len(value) > maxVisit {
		v.b.pages.fault(w, http.StatusBadRequest, "What the program sent is too long: its client_id, redirect_uri, state and scopes together.")
		return
	}
	v.makeRoom(w, r, len(value))
	v.b.browsers.set(w, name, value, timeToVisit)
	between := "?"
	if strings.Contains(e.auth, "?") {
		between = "&"
	}
	w.Header().Set("Location", e.auth+between+q.Encode())
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// of returns the cookies of visits, the oldest first.
func (v *visits) of(r *http.Request) (cookies []*http.Cookie) {
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, v.b.browsers.name(cookieVisit)) {
			cookies = append(cookies, c)
		}
	}
	slices.SortFunc(cookies, func(a, b *http.Cookie) int { return strings.Compare(a.Name, b.Name) })
	return cookies
}

// clear deletes a cookie of a visit.
func (v *visits) clear(w http.ResponseWriter, c *http.Cookie) {
	v.b.browsers.set(w, strings.TrimPrefix(c.Name, v.b.browsers.name("")), "", -1)
}

// makeRoom deletes the oldest visits, so that a new one of that size fits: servers
// and proxies refuse requests with long cookies.
func (v *visits) makeRoom(w http.ResponseWriter, r *http.Request, size int) {
	cookies := v.of(r)
	for _, c := range cookies {
		size += len(c.Value)
	}
	for _, c := range cookies {
		if size <= maxCookies {
			return
		}
		size -= len(c.Value)
		v.clear(w, c)
	}
}

// open returns the visit of a request, and deletes its cookie. Otherwise it returns
// why there is none. An answer that says something twice is not taken (RFC 6749,
// section 3.1).
func (v *visits) open(w http.ResponseWriter, r *http.Request, service string) (*visit, string) {
	q := r.URL.Query()
	state := q.Get("state")
	if len(state) != 2*len(rand.Text()) || max(len(q["state"]), len(q["code"]), len(q["iss"]), len(q["error"])) > 1 {
		return nil, issuing.TextOver
	}
	for _, c := range v.of(r) {
		if !strings.HasSuffix(c.Name, "-"+hash(state)[:16]) {
			continue
		}
		v.clear(w, c)
		p, ok := v.keeper.OpenText("visit", state, c.Value, visitParts)
		if !ok {
			return nil, issuing.TextOver
		}
		from := &visit{purpose: p[0], service: p[1], data: p[2], verifier: p[3], nonce: p[4], id: hash("login " + state)[:22]}
		end, err := strconv.ParseInt(p[5], 10, 64)
		at := ""
		if from.purpose == toConnect {
			at = from.service
		}
		if err != nil || time.Now().Unix() >= end || at != service {
			return nil, issuing.TextOver
		}
		return from, ""
	}
	return nil, issuing.TextCookie
}

// arrive receives a user who comes back from the provider of a service, or of the
// login with "".
func (v *visits) arrive(w http.ResponseWriter, r *http.Request, service string) {
	u := v.b.login
	if s := v.b.services[service]; s != nil {
		u = s.up
	}
	from, why := v.open(w, r, service)
	if from != nil && from.service != "" && v.b.services[from.service] == nil {
		from, why = nil, issuing.TextOver // a replica that has it not, or no longer
	}
	if from == nil {
		v.b.pages.fault(w, http.StatusForbidden, why)
		return
	}
	a, err := v.received(r.Context(), u, *from, r.URL.Query())
	switch {
	case errors.Is(err, errOther):
		v.b.event(Event{Kind: "refused", Service: from.service, Err: err})
		v.b.pages.fault(w, http.StatusForbidden, "This answer came from another provider than "+u.name()+". Begin again in the program.")
	case errors.Is(err, errBusy):
		v.b.event(Event{Kind: "denied", Service: from.service, Err: err})
		v.b.pages.fault(w, http.StatusServiceUnavailable, u.name()+" does not answer. Try again in a minute.")
	case from.purpose == toLogin:
		v.b.entrance.arrived(w, r, a, err)
	case err != nil:
		v.b.event(Event{Kind: "denied", Service: from.service, Err: err})
		v.b.pages.fault(w, http.StatusForbidden, u.name()+" did not let you in. Nothing was connected.")
	case from.purpose == toCompare:
		v.b.connect.identified(w, r, a)
	default:
		v.b.connect.connected(w, r, a)
	}
}

// errOther is the error of an answer that came from another provider.
var errOther = errors.New("the answer came from another provider")

// errNoCode is the error of an answer that has neither a code nor an error.
var errNoCode = errors.New("the answer of the provider has no code")

// received checks what a provider answered and gets its tokens.
func (v *visits) received(ctx context.Context, u *upstream, from visit, q url.Values) (arrival, error) {
	a := arrival{visit: from}
	e, err := u.at(ctx)
	if err != nil {
		return a, err
	}
	switch {
	case u.p.Issuer != "" && (q.Has("iss") || e.sendsIssuer) && q.Get("iss") != u.p.Issuer:
		return a, errOther
	case q.Get("error") != "":
		return a, &refusedError{http.StatusSeeOther, q.Get("error")}
	case q.Get("code") == "":
		return a, errNoCode
	}
	if a.token, err = u.exchange(ctx, q.Get("code"), from.verifier, v.callback(from)); err != nil {
		return a, err
	}
	if a.id, err = u.identify(ctx, a.token, from.nonce); err != nil {
		return a, err
	}
	if a.id == nil && from.purpose != toConnect {
		return a, fmt.Errorf("%w: the provider sent none", errBadToken)
	}
	return a, nil
}
