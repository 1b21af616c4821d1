package broker

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/visible"
)

// connectPath is the page where users connect services, below the issuer.
const connectPath = "/connect"

// linkLife is how long a link to that page works, and each form of the page.
const linkLife = 10 * time.Minute

// maxConnectForm limits the form of that page, in bytes.
const maxConnectForm = 64 << 10

// maxName limits what a program says of itself, in bytes.
const maxName = 64

// ticket is the content of the link to the page: the user, the service and the program. It
// is sealed, and no login by itself.
type ticket struct {
	Principal string `json:"p"`
	Service   string `json:"s"`
	ClientID  string `json:"c,omitempty"`
	Client    string `json:"n,omitempty"` // what the program calls itself
	End       int64  `json:"e"`           // Unix seconds
	Browser   string `json:"b,omitempty"` // that the page was shown in; "" in links
}

// connector has the page on which users connect services, and what follows it. It does
// not change.
type connector struct {
	b      *Broker
	sealer *seal.Sealer
}

// seal and open are for tickets that a browser carries. use is link or form.
func (c *connector) seal(use string, t ticket) string {
	t.End = time.Now().Add(linkLife).Unix()
	text, _ := json.Marshal(t) // cannot fail
	return base64.RawURLEncoding.EncodeToString(c.sealer.Seal(nil, text, seal.Binding(c.b.issuer, use)))
}

func (c *connector) open(use, text string) (t ticket, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, false
	}
	plain, _, err := c.sealer.Open(sealed, seal.Binding(c.b.issuer, use))
	if err != nil || jsonx.Unmarshal(plain, &t) != nil || time.Now().Unix() >= t.End {
		return t, false
	}
	return t, c.b.services[t.Service] != nil
}

// link returns the address of the page where the caller of f connects a service.
func (c *connector) link(f *frame.Frame, s *Service) string {
	id := f.Identity()
	t := ticket{Principal: id.Principal(), Service: s.name, ClientID: visible.Line(id.ClientID, maxName)}
	if info := f.ClientInfo(); info != nil {
		t.Client = visible.Line(info.Name, maxName)
	}
	return c.b.issuer + connectPath + "?" + url.Values{"t": {c.seal("link", t)}}.Encode()
}

// serve answers requests to the page. A form that comes back leads through the
// provider of the login, where the user is compared, to the service.
func (c *connector) serve(w http.ResponseWriter, r *http.Request) {
	const over = "This link is over. Call again in the program, which gives another one."
	b := c.b
	if r.Method != http.MethodPost {
		t, ok := c.open("link", r.URL.Query().Get("t"))
		if !ok {
			b.pages.fault(w, http.StatusForbidden, over)
			return
		}
		t.Browser = b.browsers.of(w, r)
		s := b.services[t.Service]
		b.pages.show(w, http.StatusOK, "connect", map[string]any{
			"Title": "Connect " + s.name + "?", "Service": s.name, "Client": t.Client, "ClientID": t.ClientID, "Login": b.login.name(),
			"Provider": s.up.name(), "Scopes": s.scopes(), "Form": c.seal("form", t),
		})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxConnectForm)
	if err := r.ParseForm(); err != nil { // of a multipart body it reads nothing
		b.pages.fault(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	t, ok := c.open("form", r.PostForm.Get("form"))
	switch {
	case !ok:
		b.pages.fault(w, http.StatusForbidden, over)
	case !b.entrance.protocol.SameSite(r) || !b.browsers.isAt(r, t.Browser):
		b.pages.fault(w, http.StatusForbidden, "Your browser kept no cookie (a proxy may have changed it), or this was begun in another one. Open the link again.")
	case r.PostForm.Get("answer") == "deny":
		b.pages.show(w, http.StatusOK, "done", map[string]any{"Title": "Nothing was connected", "Text": "You may close this page."})
	default:
		var params map[string]string
		if r.PostForm.Get("answer") == "again" {
			params = map[string]string{"prompt": "login"}
		}
		b.visits.leave(w, r, b.login, visit{purpose: toCompare, service: t.Service, data: dataOf(t)}, nil, params)
	}
}

// dataOf returns a ticket as the data of a visit, which is sealed itself.
func dataOf(t ticket) string {
	text, _ := json.Marshal(t) // cannot fail
	return string(text)
}

// ticketOf returns the ticket of a visit.
func ticketOf(v visit) (t ticket) {
	_ = jsonx.Unmarshal([]byte(v.data), &t) // it is of dataOf
	return t
}

// identified receives a user who has come back from the provider of the login, and is sent
// on to the service if it is the one who was asked.
func (c *connector) identified(w http.ResponseWriter, r *http.Request, a arrival) {
	s := c.b.services[a.service]
	t := ticketOf(a.visit)
	switch {
	case a.id.Principal() != t.Principal:
		c.b.event(Event{Kind: "refused", Client: t.ClientID, Principal: a.id.Principal(), Service: s.name, Err: errors.New("a connect link of another user")})
		c.b.pages.show(w, http.StatusForbidden, "other", map[string]any{
			"Title": "Nothing was connected", "Account": account(a.id), "Form": c.seal("form", t),
		})
	case s.key == "": // the login has its tokens
		c.connected(w, r, a)
	default:
		// The tokens of the login are newer than those that are kept. Without them the check
		// uses the former, which some providers end now.
		_ = c.b.vault.save(r.Context(), t.Principal, "", a.token)
		c.b.visits.leave(w, r, s.up, visit{purpose: toConnect, service: s.name, data: a.data}, s.opts.Scopes, nil)
	}
}

// connected receives the tokens of a service, and keeps them for the user who was compared
// before.
func (c *connector) connected(w http.ResponseWriter, r *http.Request, a arrival) {
	s := c.b.services[a.service]
	t := ticketOf(a.visit)
	switch err := c.b.vault.save(r.Context(), t.Principal, s.key, a.token); {
	case errors.Is(err, errLong):
		c.b.pages.fault(w, http.StatusBadGateway, s.name+" gave tokens that are too long to keep. Nothing was connected.")
		return
	case err != nil:
		c.b.pages.fault(w, http.StatusServiceUnavailable, "The store of this server does not answer. Try again in a minute.")
		return
	}
	c.b.event(Event{Kind: "connected", Client: t.ClientID, Principal: t.Principal, Service: s.name})
	text := "You may close this page: the program continues."
	if who := account(a.id); who != "" {
		text = "You are " + who + " there. " + text
	}
	c.b.pages.show(w, http.StatusOK, "done", map[string]any{"Title": s.name + " is connected", "Text": text})
}

// account returns what a user is called at a provider, "" if that is not known.
func account(id *auth.Identity) string {
	if id == nil {
		return ""
	}
	for _, claim := range []string{"email", "preferred_username", "name"} {
		if text, ok := id.Claims[claim].(string); ok && text != "" {
			return visible.Line(text, maxName)
		}
	}
	return visible.Line(id.Subject, maxName)
}
