package oauth

import (
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
)

// Options configure a Client. The zero value, and nil, stand for a native
// application that opens the user's browser, registers dynamically and forgets
// everything when the program ends. New copies them.
type Options struct {
	// Grant is how tokens are obtained; nil means &AuthorizationCode{}.
	Grant Grant

	// Clients are clients that were registered beforehand. The one whose Issuer
	// is the authorization server's is used before any other way of
	// registration.
	Clients []Registration
	// Document is the Client ID Metadata Document of the application. It is
	// used where the authorization server supports such documents.
	Document *Document
	// NoRegistration turns dynamic registration off.
	NoRegistration bool
	// ClientName is what an authorization server shows to the user; "Talaria"
	// if empty.
	ClientName string
	// ClientURI is the home page of the application; it may be empty.
	ClientURI string

	// Scopes are asked for in addition to those that the server names.
	Scopes []string
	// NoOfflineAccess keeps the client from asking for the scope
	// offline_access, which it does if the authorization server lists it.
	NoOfflineAccess bool
	// MaxStepUps is how often one request may have the scopes of the token
	// increased before its refusal is final; 0 means 2, a negative number none.
	MaxStepUps int
	// DPoP says when tokens are bound to a key.
	DPoP DPoPMode

	// Store keeps registered clients and tokens; nil means NewMemoryStore().
	Store Store
	// ChooseIssuer picks one of several authorization servers of a resource.
	// The default prefers the one of Clients, then the one that gave the
	// stored token, then the first.
	ChooseIssuer func(issuers []string) (string, error)
	// NoLegacyDiscovery turns the fallbacks of the revision 2025-03-26 off, by
	// which a server without metadata is its own authorization server.
	NoLegacyDiscovery bool

	// Transport carries the requests to the MCP server; nil means
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Outbound carries all other requests. The default refuses private and
	// reserved addresses when it dials; a transport given here has to do so
	// itself. Schemes, redirects, sizes and times are checked in either case.
	Outbound http.RoundTripper
	// AllowPrivate allows authorization servers with private and loopback
	// addresses. Loopback is allowed without it if the MCP server is there
	// itself, and so are the host and port of the MCP server.
	AllowPrivate bool
	// AllowInsecure allows http in place of https to hosts that are not
	// loopback. Tokens then travel in the clear.
	AllowInsecure bool
	// LoginTimeout is how long the user has for one authorization; 0 means 5
	// minutes.
	LoginTimeout time.Duration
}

// DPoPMode says when a Client binds tokens to a key of its own (RFC 9449).
type DPoPMode int

const (
	// DPoPAuto binds tokens if the MCP server asks for it, by its challenge or
	// in its metadata. It is the default.
	DPoPAuto DPoPMode = iota
	// DPoPRequired binds tokens always and fails where the authorization server
	// cannot.
	DPoPRequired
	// DPoPOff never binds tokens.
	DPoPOff
)

// AuthMethod is how a client proves at the token endpoint that it is itself; the
// zero value leaves that to what the client has and the server supports.
type AuthMethod string

// The defaults of Options.
const (
	AuthNone          AuthMethod = "none"
	AuthSecretBasic   AuthMethod = "client_secret_basic"
	AuthSecretPost    AuthMethod = "client_secret_post"
	AuthPrivateKeyJWT AuthMethod = "private_key_jwt"
)

// Registration is a client that an authorization server knows. Printing one
// shows no secret.
type Registration struct {
	// Issuer is the authorization server that the client is registered with. If
	// it is empty, the registration belongs to the first authorization server
	// that the MCP server names, which trusts the MCP server with that choice;
	// the Store remembers it.
	Issuer string `json:"issuer"`
	// ClientID is the client's identifier.
	ClientID string `json:"client_id"`
	// ClientSecret is empty for public clients and for those with a key.
	ClientSecret string `json:"client_secret,omitempty"`
	// AuthMethod is how the client authenticates. If it is empty, it is chosen: by
	// key, by secret or without either, as the authorization server supports.
	AuthMethod AuthMethod `json:"token_endpoint_auth_method,omitempty"`
	// Key signs assertions for private_key_jwt: an *rsa.PrivateKey,
	// *ecdsa.PrivateKey or ed25519.PrivateKey. ParseKey reads one.
	Key crypto.PrivateKey `json:"-"`
	// KeyID is the "kid" of the key, if the authorization server knows it by one.
	KeyID string `json:"-"`
	// RedirectURIs are those that the client is registered with, if known.
	RedirectURIs []string `json:"redirect_uris,omitempty"`
	// SecretExpires is when the secret ends; zero means never.
	SecretExpires time.Time `json:"client_secret_expires_at,omitzero"`

	stored bool // it comes from the store; one that was registered just now does not
}

// String names the client without its secret.
func (r Registration) String() string {
	return fmt.Sprintf("client %q of %q", r.ClientID, r.Issuer)
}

// GoString is String, so that %#v shows no secret either.
func (r Registration) GoString() string { return r.String() }

// Document is a Client ID Metadata Document, which makes its URL the client's
// identifier with every authorization server that supports such documents.
// Client.MetadataDocument is what to serve there.
type Document struct {
	// URL is where the document is: https, with a path.
	URL string
	// Key authenticates the client by private_key_jwt; nil means a public
	// client.
	Key crypto.PrivateKey
	// KeyID is the "kid" of the key in the document.
	KeyID string
}

const (
	defaultClientName   = "Talaria"
	defaultMaxStepUps   = 2
	defaultLoginTimeout = 5 * time.Minute
)

// complete returns a copy with the defaults filled in and the server's URL, or
// an error that lists every problem. A nil receiver has the defaults.
func (o *Options) complete(server string) (Options, *url.URL, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Clients = slices.Clone(opts.Clients)
	opts.Scopes = slices.Clone(opts.Scopes)
	if opts.Grant == nil {
		opts.Grant = &AuthorizationCode{}
	}
	if opts.ClientName == "" {
		opts.ClientName = defaultClientName
	}
	if opts.MaxStepUps == 0 {
		opts.MaxStepUps = defaultMaxStepUps
	}
	if opts.Store == nil {
		opts.Store = NewMemoryStore()
	}
	if opts.Transport == nil {
		opts.Transport = http.DefaultTransport
	}
	if opts.LoginTimeout <= 0 {
		opts.LoginTimeout = defaultLoginTimeout
	}
	u, err := serverURL(server, opts.AllowInsecure)
	problems := []error{err, opts.Grant.check()}
	if opts.Document != nil {
		problems = append(problems, opts.Document.check())
	}
	for i := range opts.Clients {
		problems = append(problems, opts.Clients[i].check())
	}
	if _, err := parseScopes(strings.Join(opts.Scopes, " ")); err != nil {
		problems = append(problems, fmt.Errorf("Options.Scopes: %w", err))
	}
	return opts, u, errors.Join(problems...)
}

// serverURL parses the URL of an MCP server and returns its canonical form:
// scheme and host in lower case, without fragment and default port.
func serverURL(raw string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the server URL: %w", err)
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the server URL %q is not https://host/path", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("the server URL %q has user information in it", u.Redacted())
	case u.Scheme == "http" && !insecure && !facts.Loopback(u.Hostname()):
		return nil, fmt.Errorf("the server URL %q is http: a token would travel in the clear; use https, or set Options.AllowInsecure", u)
	}
	if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u, nil
}

// check returns what is wrong with the fields, or nil.
func (d *Document) check() error {
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("Document.URL %q is not https://host/path", d.URL)
	}
	return checkKey("Document.Key", d.Key)
}

// check returns what is wrong with the fields, or nil. Its error contains no
// secret.
func (r *Registration) check() error {
	where := fmt.Sprintf("Clients: %s: ", r)
	switch r.AuthMethod {
	case "", AuthNone:
	case AuthSecretBasic, AuthSecretPost:
		if r.ClientSecret == "" {
			return fmt.Errorf("%s%s needs a ClientSecret", where, r.AuthMethod)
		}
	case AuthPrivateKeyJWT:
		if r.Key == nil {
			return fmt.Errorf("%s%s needs a Key", where, r.AuthMethod)
		}
	default:
		return fmt.Errorf("%sunknown AuthMethod %q", where, r.AuthMethod)
	}
	if r.ClientID == "" {
		return errors.New(where + "ClientID is empty")
	}
	return checkKey(where+"Key", r.Key)
}
