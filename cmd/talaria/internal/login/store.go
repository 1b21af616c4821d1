// Package login is what the command has to do with authorization: the store of
// logins, the way to the user's browser, and what to say where a login is
// needed.
package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
)

// Login describes how a user logged in to a server, so that later commands can
// do it in the same way. The tokens are elsewhere in the store.
type Login struct {
	URL           string    `json:"url"`
	ClientID      string    `json:"client_id,omitempty"`
	ClientSecret  string    `json:"client_secret,omitempty"`
	KeyFile       string    `json:"key_file,omitempty"`
	Document      string    `json:"metadata_url,omitempty"`
	Issuer        string    `json:"issuer,omitempty"`
	Scopes        []string  `json:"scopes,omitempty"`
	RedirectPort  int       `json:"redirect_port,omitempty"`
	DPoP          bool      `json:"dpop,omitempty"`
	Credentials   bool      `json:"client_credentials,omitempty"`
	AssertionFile string    `json:"assertion_file,omitempty"`
	AllowPrivate  bool      `json:"allow_private,omitempty"`
	AllowInsecure bool      `json:"allow_insecure,omitempty"`
	Since         time.Time `json:"since,omitzero"`
}

// Registers reports whether the client may have to be registered dynamically.
func (l *Login) Registers() bool { return l.ClientID == "" && l.Document == "" }

// Machine reports whether no user takes part.
func (l *Login) Machine() bool { return l.Credentials || l.AssertionFile != "" }

// SameToken reports whether two logins have their token in the same place.
func (l *Login) SameToken(other *Login) bool {
	return l.ClientID == other.ClientID && l.Document == other.Document && l.Credentials == other.Credentials &&
		(l.AssertionFile == "") == (other.AssertionFile == "")
}

// Client makes the client of a login. agent takes the user to the browser, next
// carries the requests to the MCP server; nil means http.DefaultTransport.
func (s *Store) Client(l *Login, agent oauth.UserAgent, next http.RoundTripper) (*oauth.Client, error) {
	o := &oauth.Options{Store: s.store, Scopes: l.Scopes, AllowPrivate: l.AllowPrivate, AllowInsecure: l.AllowInsecure, Transport: next}
	if l.DPoP {
		o.DPoP = oauth.DPoPRequired
	}
	switch {
	case l.Credentials:
		o.Grant = &oauth.ClientCredentials{}
	case l.AssertionFile != "":
		o.Grant = &oauth.WorkloadIdentity{Assertion: l.assertion}
	default:
		o.Grant = &oauth.AuthorizationCode{Agent: agent}
	}
	if err := l.identify(o); err != nil {
		return nil, err
	}
	if l.Issuer != "" && l.ClientID == "" {
		o.ChooseIssuer = func(issuers []string) (string, error) {
			if slices.Contains(issuers, l.Issuer) {
				return l.Issuer, nil
			}
			return "", fmt.Errorf("the server does not name the authorization server %s, but %s", l.Issuer, strings.Join(issuers, ", "))
		}
	}
	return oauth.New(l.URL, o)
}

// assertion reads the JWT of the platform for an authorization server. The MCP
// server has named that, and a holder of the JWT can use it at its audience:
// so it goes to no other server, unless the user has named the issuer.
func (l *Login) assertion(_ context.Context, issuer string) (string, error) {
	text, err := files.Text(l.AssertionFile, files.MaxSecret)
	if err != nil {
		return "", err
	}
	assertion := strings.TrimSpace(string(text))
	if l.Issuer != "" || slices.ContainsFunc(audiences(assertion), func(aud string) bool {
		return aud == issuer || strings.TrimSuffix(aud, "/") == strings.TrimSuffix(issuer, "/")
	}) {
		return assertion, nil
	}
	return "", fmt.Errorf("the JWT in %s is not for %s, which the MCP server names; if it may have it, say so with --issuer", l.AssertionFile, issuer)
}

// audiences returns whom a JWT is for, none if that cannot be read.
func audiences(assertion string) []string {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Audience json.RawMessage `json:"aud"`
	}
	if err != nil || jsonx.Unmarshal(text, &claims) != nil {
		return nil
	}
	var one string
	if jsonx.Unmarshal(claims.Audience, &one) == nil {
		return []string{one}
	}
	var list []string
	_ = jsonx.Unmarshal(claims.Audience, &list) // any other value has no audience
	return list
}

// identify says who the client is.
func (l *Login) identify(o *oauth.Options) error {
	reg := oauth.Registration{Issuer: l.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret}
	if l.KeyFile != "" {
		text, err := files.Text(l.KeyFile, files.MaxSecret)
		if err != nil {
			return err
		}
		if reg.Key, err = oauth.ParseKey(text); err != nil {
			return fmt.Errorf("%s: %w", l.KeyFile, err)
		}
	}
	if l.Document != "" {
		o.Document = &oauth.Document{URL: l.Document, Key: reg.Key}
	}
	if l.ClientID != "" {
		o.Clients = []oauth.Registration{reg}
	}
	return nil
}

// Store is the user's logins. It is the file talaria/oauth.json in the system's
// directory for configuration, with the
// tokens, which only the user can read.
type Store struct {
	Path  string
	store oauth.Store
}

// loginsKey is where the logins are in the store.
const loginsKey = "talaria logins"

// Open returns the store. It need not exist.
func Open() (*Store, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("the system names no directory for configuration: %w", err)
	}
	path := filepath.Join(dir, "talaria", "oauth.json")
	return &Store{Path: path, store: oauth.NewFileStore(path)}, nil
}

// All returns the logins, in the order of their URLs.
func (s *Store) All(ctx context.Context) ([]Login, error) {
	text, err := s.store.Load(ctx, loginsKey)
	if err != nil {
		return nil, err
	}
	logins, err := read(text)
	list := make([]Login, 0, len(logins))
	for _, address := range slices.Sorted(maps.Keys(logins)) {
		list = append(list, logins[address])
	}
	return list, err
}

// Find returns the login for a URL in its normal form, nil if there is none.
func (s *Store) Find(ctx context.Context, address string) (*Login, error) {
	all, err := s.All(ctx)
	for i := range all {
		if all[i].URL == address {
			return &all[i], err
		}
	}
	return nil, err
}

// Put adds a login or replaces that for the same URL.
func (s *Store) Put(ctx context.Context, l *Login) error {
	return s.change(ctx, func(logins map[string]Login) { logins[l.URL] = *l })
}

// Remove removes a login.
func (s *Store) Remove(ctx context.Context, address string) error {
	return s.change(ctx, func(logins map[string]Login) { delete(logins, address) })
}

func (s *Store) change(ctx context.Context, change func(map[string]Login)) error {
	return s.store.Update(ctx, loginsKey, func(old json.RawMessage) (json.RawMessage, error) {
		logins, err := read(old)
		if err != nil {
			return nil, err
		}
		change(logins)
		if len(logins) == 0 {
			return nil, nil
		}
		return json.Marshal(logins)
	})
}

func read(text json.RawMessage) (map[string]Login, error) {
	logins := map[string]Login{}
	if text == nil {
		return logins, nil
	}
	if json.Unmarshal(text, &logins) != nil {
		return nil, errors.New("the stored logins are not what talaria has stored; remove the file and log in again") // the cause may quote a secret
	}
	return logins, nil
}

// Normal returns the normal form of a URL that talaria can connect to over HTTP:
// that of its requests.
func Normal(raw string) (string, error) {
	u, err := url.Parse(strings.TrimPrefix(raw, "sse+"))
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is no URL", raw)
	}
	scheme := strings.ToLower(u.Scheme)
	if other, ok := map[string]string{"ws": "http", "wss": "https"}[scheme]; ok {
		scheme = other
	}
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("%s is not http or https", u.Redacted())
	}
	if u.User != nil {
		return "", fmt.Errorf("%s has a name or a password in it", u.Redacted())
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = scheme, strings.ToLower(u.Host), "", ""
	if u.Port() == map[string]string{"http": "80", "https": "443"}[scheme] {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.String(), nil
}
