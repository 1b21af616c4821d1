package issuing

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/visible"
)

// Client is a program that wants tokens.
type Client struct {
	ID string // for logs and logins: the client_id, or of a sealed one a short name
	// Name is what the client says of itself, on one line. Verified names what vouches for it:
	// the host of its document, or "" for one that has registered itself.
	Name, Verified string
	RedirectURIs   []string
	Secret         string // of Config.Clients; "" for none
	Method         string // of authentication
	Refresh        bool   // it takes refresh tokens
	full           string // the client_id
}

// The methods by which clients authenticate.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// Limits of what describes a client.
const (
	maxRedirects = 10
	maxClient    = 2 << 10 // bytes of a sealed client
	maxID        = 4 << 10 // bytes of a client_id
	maxURL       = 1 << 10 // bytes of a redirect, a state, and of a client_id that is a URL
	maxName      = 100     // bytes
	sealedClient = "r."    // begins a sealed client_id
)

// clients are those that are registered, configured, or known by a document. clients is safe
// for concurrent use.
type clients struct {
	c         *Config
	keeper    *Keeper
	secrets   [][]byte // keys of the secrets of clients that are registered
	documents documents
}

// metadata is what a client says of itself (RFC 7591, section 2).
type metadata struct {
	ID           string   `json:"client_id,omitempty"`
	Name         string   `json:"client_name,omitempty"`
	RedirectURIs []string `json:"redirect_uris"`
	GrantTypes   []string `json:"grant_types,omitempty"`
	AuthMethod   string   `json:"token_endpoint_auth_method,omitempty"`
}

// special are schemes that browsers, or Windows, treat specially.
var special = []string{
	"javascript", "data", "vbscript", "livescript", "mocha", "about", "blob", "file", "filesystem", "view-source", "jar", "intent", "content",
	"chrome", "resource", "moz-extension", "chrome-extension", "ftp", "ws", "wss", "mailto", "tel", "sms", "news", "mhtml", "mk", "res", "shell",
	"search", "ldap", "ldaps", "smb", "nfs", "ssh", "telnet", "telnets", "rdp", "hcp", "its", "callto", "http", "gopher", "urn", "feed", "wyciwyg", "read",
	"help", "x-man-page", "applescript", "shortcuts", "itms-services", "android-app", "market", "devtools", "edge", "microsoft-edge", "onenote",
}

// CheckRedirect returns why a client may not have its users sent back to an
// address: others than https, http on this machine, and a private scheme.
func CheckRedirect(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "" || strings.Contains(text, "#") || u.User != nil || len(text) > maxURL || strings.ContainsFunc(text, notPrinted):
		return fmt.Errorf("%q is not a URI of at most %d bytes without fragment and user", visible.Line(text, 200), maxURL)
	case u.Scheme == "https" && u.Hostname() != "", u.Scheme == "http" && facts.Loopback(u.Hostname()):
		return nil
	case u.Scheme == "https", slices.Contains(special, u.Scheme), strings.HasPrefix(u.Scheme, "ms-"), strings.HasPrefix(u.Scheme, "search-"), strings.HasPrefix(u.Scheme, "x-apple"):
		return fmt.Errorf("%q must be https, http on a loopback address, or have a private scheme", visible.Line(text, 200))
	}
	return nil
}

// notPrinted reports whether a character does not belong into a URI.
func notPrinted(c rune) bool {
	return c <= ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>'
}

// check checks the metadata of a client.
func (m *metadata) check() error {
	if len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > maxRedirects {
		return fmt.Errorf("redirect_uris must have 1 to %d URIs", maxRedirects)
	}
	for _, uri := range m.RedirectURIs {
		if err := CheckRedirect(uri); err != nil {
			return err
		}
	}
	return nil
}

// allows reports whether uri is one that the client has named. The port of a
// loopback address may be any (RFC 8252, section 7.3).
func (c *Client) allows(uri string) bool {
	if CheckRedirect(uri) != nil {
		return false
	}
	here := anyPort(uri)
	return slices.Contains(c.RedirectURIs, uri) ||
		here != "" && slices.ContainsFunc(c.RedirectURIs, func(known string) bool { return anyPort(known) == here })
}

// anyPort returns a URI without its port, "" if it is not one of a loopback
// address.
func anyPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !facts.Loopback(u.Hostname()) {
		return ""
	}
	before, after, ok := strings.Cut(uri, u.Host)
	if !ok {
		return ""
	}
	return before + strings.TrimSuffix(u.Host, ":"+u.Port()) + after
}

// Loopback reports whether a redirect leads to this machine.
func Loopback(uri string) bool { return anyPort(uri) != "" }

// register serves dynamic registration (RFC 7591). The client is sealed in its
// client_id; nothing is kept.
func (cs *clients) register(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	var m metadata
	if err != nil || decode(text, &m) != nil {
		refuse(w, "invalid_client_metadata", "the metadata is no JSON object")
		return
	}
	if err := m.check(); err != nil {
		refuse(w, "invalid_redirect_uri", err.Error())
		return
	}
	known := []string{methodNone}
	if cs.c.Secrets {
		known = append(known, methodBasic, methodPost)
	}
	if m.AuthMethod == "" {
		m.AuthMethod = known[min(1, len(known)-1)]
	}
	if !slices.Contains(known, m.AuthMethod) {
		refuse(w, "invalid_client_metadata", "token_endpoint_auth_method must be "+strings.Join(known, " or "))
		return
	}
	if len(m.GrantTypes) == 0 {
		m.GrantTypes = []string{GrantCode}
	}
	m.GrantTypes = slices.DeleteFunc(m.GrantTypes, func(g string) bool { return g != GrantCode && g != GrantRefresh })
	if !slices.Contains(m.GrantTypes, GrantCode) {
		refuse(w, "invalid_client_metadata", "grant_types must have "+GrantCode)
		return
	}
	now := time.Now().Unix()
	m.Name = visible.Line(m.Name, maxName)
	parts := append([]string{m.Name, m.AuthMethod, strconv.FormatBool(slices.Contains(m.GrantTypes, GrantRefresh)), strconv.FormatInt(now, 10)}, m.RedirectURIs...)
	if sealed := cs.keeper.Seal("client", "", parts...); len(sealed) <= maxClient {
		m.ID = sealedClient + base64.RawURLEncoding.EncodeToString(sealed)
	} else {
		refuse(w, "invalid_client_metadata", fmt.Sprintf("the metadata exceeds the limit of %d bytes", maxClient))
		return
	}
	c, err := cs.registered(m.ID)
	if err == nil {
		if err = cs.c.Accept(r.Context(), c); err != nil {
			cs.c.Event("refused", c.ID, nil, err)
		}
	}
	if err != nil {
		refuse(w, "unauthorized_client", "this server does not let this client in")
		return
	}
	answer := struct {
		metadata
		Issued  int64    `json:"client_id_issued_at"`
		Types   []string `json:"response_types"`
		Secret  string   `json:"client_secret,omitempty"`
		Expires *int64   `json:"client_secret_expires_at,omitempty"`
	}{metadata: m, Issued: now, Types: []string{"code"}}
	if m.AuthMethod != methodNone {
		answer.Secret, answer.Expires = secretOf(cs.secrets[0], m.ID), new(int64)
	}
	WriteJSON(w, http.StatusCreated, answer)
}

// secretOf returns the secret that a sealed client has under a key.
func secretOf(key []byte, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// errUnknown is the error of a client that is not registered.
var errUnknown = errors.New("the client is not registered here")

// registered returns a client that is sealed in its id, or configured.
func (cs *clients) registered(id string) (*Client, error) {
	for i := range cs.c.Clients {
		if known := cs.c.Clients[i]; known.ID == id {
			known.full = id
			return &known, nil
		}
	}
	sealed, ok := strings.CutPrefix(id, sealedClient)
	if !ok || len(id) > maxID {
		return nil, errUnknown
	}
	p, ok := cs.keeper.OpenText("client", "", sealed, 5)
	if !ok {
		return nil, errUnknown
	}
	// The short name is the authentication tag of the seal, which is unique.
	return &Client{ID: sealedClient + id[len(id)-22:], Name: p[0], Method: p[1], Refresh: p[2] == "true", RedirectURIs: p[4:], full: id}, nil
}

// isDocument reports whether a client_id is the URL of a metadata document.
func isDocument(id string) bool {
	return strings.HasPrefix(id, "https://") && len(id) <= maxURL && !strings.ContainsFunc(id, notPrinted)
}

// authenticate returns the client of a request to the token endpoint. Clients that
// are a document are public, so that nothing is fetched for them here.
func (cs *clients) authenticate(r *http.Request) (*Client, bool) {
	id, secret, basic := r.BasicAuth()
	if basic {
		var err, err2 error
		id, err = url.QueryUnescape(id)
		secret, err2 = url.QueryUnescape(secret)
		if err != nil || err2 != nil || r.PostForm.Has("client_secret") || r.PostForm.Has("client_id") && r.PostForm.Get("client_id") != id {
			return nil, false
		}
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	c, err := cs.registered(id)
	switch {
	case err == nil:
	case isDocument(id):
		c = &Client{ID: id, Method: methodNone, full: id}
		if known := cs.documents.kept(id); known != nil {
			c = known
		}
	default:
		return nil, false
	}
	if c.Method == methodNone {
		return c, secret == ""
	}
	if c.Secret != "" {
		a, b := sha256.Sum256([]byte(c.Secret)), sha256.Sum256([]byte(secret))
		return c, subtle.ConstantTimeCompare(a[:], b[:]) == 1
	}
	right := 0
	for _, key := range cs.secrets {
		right |= subtle.ConstantTimeCompare([]byte(secretOf(key, id)), []byte(secret))
	}
	return c, right == 1
}
