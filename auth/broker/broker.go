package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/auth/internal/jwt"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// Options are the options of a Broker. Resources must be set.
type Options struct {
	// Resources are the URLs that tokens are for, as auth.New has them.
	Resources []string
	// Scopes are what users may allow. A client that asks for none gets the first.
	Scopes []Scope
	// Keys are secrets of at least 16 random bytes that all replicas share, as
	// mcp.Options.StateKeys. The first seals and each of them opens. They are
	// required with an https issuer and with a Store. A key that is removed ends the
	// clients and logins that it sealed.
	Keys [][]byte
	// Store has the logins and tokens of users. nil means scale.NewLocal: one
	// process, whose restart ends all logins and connections.
	Store scale.Store
	// Name is that of the server, for the pages; "" means the host of the issuer.
	Name string
	// Accept, if not nil, decides which clients may be used: an error refuses the
	// client. It is asked at registration, question, token and refresh. The ID of a
	// client that is known by a document is the URL of that, and at token and refresh
	// it may be all that c has: decide about such a client by its ID.
	Accept func(ctx context.Context, c *Client) error
	// Permit, if not nil, decides which users may enter, and with which of id.Scopes. It is asked
	// at a login and after each check at the provider, which may give fewer claims
	// then; an error refuses. nil lets every user of the provider enter with all scopes.
	Permit func(ctx context.Context, id *auth.Identity) (scopes []string, err error)
	// Clients are registered beforehand. The ID of one may be the URL of its document,
	// which is not fetched then.
	Clients []Client
	// Lifetime is that of access tokens; 0 means an hour. Refresh is that of logins
	// after their last refresh; 0 means 30 days.
	Lifetime, Refresh time.Duration
	// Transport sends requests to providers; nil means http.DefaultTransport.
	// Documents of clients are never fetched with it, nor by a proxy.
	Transport http.RoundTripper
	// Event, if not nil, is called for an audit: see Event. It is called by many
	// goroutines at once.
	Event func(Event)
}

// The defaults of Options.
const (
	defaultLifetime = time.Hour
	defaultRefresh  = 30 * 24 * time.Hour
)

// Scope is something that a user can allow. Allows says for people what that is,
// such as "read your notes"; it may be empty.
type Scope struct{ Name, Allows string }

// Client is a program that users let in. The ID of one that has registered itself
// is a short name for logs, and its Name is what it says of itself. Secret is only
// used in Options.Clients; "" means a public client.
type Client struct {
	ID, Secret, Name string
	RedirectURIs     []string
}

// Event is something that an audit records.
type Event struct {
	// Kind is one of
	//   - login: a user logged in
	//   - denied: a user or a provider said no
	//   - refused: Accept or Permit refused, or a request that had to be refused
	//   - reused: a code or a refresh token came again, which ended its login
	//   - connected: a user connected a service
	//   - revoked: a login, all logins of a user, or a connection ended
	Kind string
	// Client, Principal and Service name what it is about; each may be "".
	Client, Principal, Service string
	// Err is the cause, or nil. It has no token, secret or code. Its text leaves out
	// what a transport said and what a function panicked with; it wraps them.
	Err error
}

// Broker is an authorization server in front of a Provider. It is safe for
// concurrent use.
type Broker struct {
	opts     Options
	issuer   string
	secure   bool // the issuer is https
	login    *upstream
	services map[string]*Service
	vault    *vault     // the tokens of providers
	connect  *connector // the page on which users connect services
	entrance *entrance  // where users log in
	visits   *visits
	browsers browsers
	pages    pages
}

// New returns a Broker that is reached at issuer, an https URL, or for development
// an http one on this machine, without a slash at the end. Users log in at p.
// Arguments are copied. An error names everything that makes no sense in them.
// Nothing is fetched.
func New(issuer string, p *Provider, o *Options) (*Broker, error) {
	b := &Broker{issuer: issuer, services: map[string]*Service{}}
	if o != nil {
		b.opts = *o
		b.opts.Resources, b.opts.Scopes = slices.Clone(o.Resources), slices.Clone(o.Scopes)
		b.opts.Keys, b.opts.Clients = slices.Clone(o.Keys), slices.Clone(o.Clients)
	}
	faults := b.faults()
	if p == nil {
		faults = append(faults, errors.New("the Provider is missing"))
	} else {
		faults = append(faults, p.faults(true)...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.login = newUpstream(p, b.opts.Transport)
	if b.opts.Store == nil {
		b.opts.Store = scale.NewLocal()
	}
	var err error
	b.vault, err = newVault(issuer, bus.Guard(b.opts.Store), b.opts.Keys)
	tickets, err2 := seal.New("broker/connect", b.opts.Keys...)
	if err := cmp.Or(err, err2); err != nil {
		return nil, fmt.Errorf("broker: Keys: %w", err)
	}
	b.connect, b.browsers, b.pages = &connector{b, tickets}, browsers{b.secure}, newPages(b.opts.Name, issuer)
	if b.entrance, err = newEntrance(b); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.visits = &visits{b, b.entrance.protocol.Keeper}
	return b, nil
}

// faults returns what is wrong with issuer and options.
func (b *Broker) faults() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	u, err := url.Parse(b.issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !facts.Loopback(u.Hostname())):
		fault("issuer %q is neither https nor on this machine", b.issuer)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(b.issuer, "/"):
		fault("issuer %q has a query, a fragment, a user or a slash at its end", b.issuer)
	default:
		b.secure = u.Scheme == "https"
	}
	if len(b.opts.Keys) == 0 && (b.secure || b.opts.Store != nil) {
		fault("Keys are missing: after a restart every client would have to be added again")
	}
	if len(b.opts.Resources) == 0 {
		fault("Resources are missing: name the URL of the MCP endpoint")
	}
	for i, resource := range b.opts.Resources {
		if slices.ContainsFunc(b.opts.Resources[:i], func(other string) bool { return issuing.SameResource(other, resource) }) {
			fault("resource %q is there twice", resource)
		}
		if err := jwt.SafeURL(resource); err != nil || strings.Contains(resource, "#") {
			fault("resource %q is not an https URL without fragment, or on this machine", resource)
		}
	}
	for i, s := range b.opts.Scopes {
		switch {
		case s.Name == "" || strings.ContainsFunc(s.Name, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }):
			fault("scope %q has characters that no scope may have", s.Name)
		case s.Name == issuing.Offline:
			fault("scope offline_access is there already: leave it out")
		case slices.ContainsFunc(b.opts.Scopes[:i], func(other Scope) bool { return other.Name == s.Name }):
			fault("scope %q is there twice", s.Name)
		}
	}
	for i, c := range b.opts.Clients {
		if c.ID == "" || slices.ContainsFunc(b.opts.Clients[:i], func(other Client) bool { return other.ID == c.ID }) {
			fault("client %q has no ID of its own", c.ID)
		}
		if len(c.RedirectURIs) == 0 {
			fault("client %q has no RedirectURIs", c.ID)
		}
		for _, uri := range c.RedirectURIs {
			if err := issuing.CheckRedirect(uri); err != nil {
				fault("client %q: %w", c.ID, err)
			}
		}
	}
	for name, d := range map[string]time.Duration{"Lifetime": b.opts.Lifetime, "Refresh": b.opts.Refresh} {
		if d < 0 || d > 0 && d < time.Second {
			fault("%s %s is less than a second", name, d)
		}
	}
	return faults
}

// Middleware answers the requests to the endpoints and pages of the Broker; all
// others pass to next. It goes before the router of the whole host, as
// auth.Resource.Metadata does. With an issuer on this machine, requests for another
// host are refused (DNS rebinding).
func (b *Broker) Middleware(next http.Handler) http.Handler {
	at, _ := url.Parse(b.issuer) // New has parsed it
	local := issuing.Local(at.Host)
	return issuing.Middleware(next, sync.OnceValue(b.entrance.routes), func(r *http.Request) (int, string) {
		if local && !issuing.Local(r.Host) {
			return http.StatusMisdirectedRequest, "this host is not served here"
		}
		return 0, ""
	})
}

// Verifier returns the Verifier of the tokens for a resource, for auth.New, which gets
// the issuer from it. It panics if Options.Resources does not have the resource.
func (b *Broker) Verifier(resource string) auth.Verifier {
	if !slices.ContainsFunc(b.opts.Resources, func(known string) bool { return issuing.SameResource(known, resource) }) {
		panic(fmt.Sprintf("broker: Verifier: Options.Resources lacks %q", resource))
	}
	return &verifier{b.entrance, resource}
}

// Revoke ends all logins of a user, at all replicas, within auth.Options.CacheFor.
// Connections to services stay. A user who may still log in can do so
// again.
func (b *Broker) Revoke(ctx context.Context, principal string) error {
	if err := b.entrance.protocol.Users.End(ctx, issuing.Hash(principal), ""); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.event(Event{Kind: "revoked", Principal: principal})
	return nil
}

// accept asks Options.Accept about a client.
func (b *Broker) accept(ctx context.Context, c *Client) error {
	return said("Accept", safely.Try(func() error { return b.opts.Accept(ctx, c) }))
}

// permit asks Options.Permit about a user, who may get scopes. It returns those of
// them that remain.
func (b *Broker) permit(ctx context.Context, id *auth.Identity, scopes []string) (left []string, err error) {
	if b.opts.Permit == nil {
		return scopes, nil
	}
	asked := *id
	asked.Scopes = slices.Clone(scopes)
	err = said("Permit", safely.Try(func() (err error) { left, err = b.opts.Permit(ctx, &asked); return err }))
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(left, s) }), err
}

// said names the option whose function did not return.
func said(option string, err error) error {
	if failure, ok := errors.AsType[*safely.Failure](err); ok {
		return fmt.Errorf("%s did not return: %w", option, failure)
	}
	return err
}

// event calls Options.Event.
func (b *Broker) event(e Event) {
	if b.opts.Event != nil {
		_ = safely.Apart(func() { b.opts.Event(e) }) // an audit that fails has no answer
	}
}
