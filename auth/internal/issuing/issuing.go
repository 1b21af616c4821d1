// Package issuing is the protocol of an authorization server: authtest and broker
// are made of it. It has the authorization code flow with PKCE, refresh tokens that
// rotate, revocation (RFC 7009), registration (RFC 7591), Client ID Metadata
// Documents, resource indicators (RFC 8707), DPoP (RFC 9449), the issuer in
// authorization responses (RFC 9207) and metadata (RFC 8414).
//
// Two things are left to the package that uses it: who the user is, which Config.Ask
// and Config.Answered find out, and what an access token is, which Config.Access
// and Config.Open make and read.
//
// Clients, questions, codes and refresh tokens are sealed and kept by others. The
// store has one entry for each user, of which every change is a compare-and-set,
// and one for each proof of the last two minutes. All seals and names are bound to
// the issuer.
//
// A [Server] is safe for concurrent use. It has no goroutine that outlives a
// request, and no lock.
package issuing

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// Config determines what a Server issues. All functions may be called by many
// goroutines at once.
type Config struct {
	Issuer    string
	Resources []string // that tokens are for; one at least
	Scopes    []string // a client that asks for none gets the first
	Keys      [][]byte // secrets; nil for one that only this Server has
	Store     scale.Store
	Lifetime  time.Duration // of an access token
	Refresh   time.Duration // of a login after its last refresh
	Secrets   bool          // clients may have secrets
	Clients   []Client      // that are registered beforehand
	Documents *http.Client  // fetches metadata of clients; nil for one that reaches public addresses
	Metadata  map[string]any
	// Browser returns what a question is bound to: a name of the browser that asks, which
	// gets one with create; "" if it has none. nil binds no question.
	Browser func(w http.ResponseWriter, r *http.Request, create bool) string
	// Accept says whether a client may be used.
	Accept func(ctx context.Context, c *Client) error
	// Ask shows the user what a client wants: a form that posts form as "id", the
	// scopes that are left as "scope", and answer=allow.
	Ask func(w http.ResponseWriter, r *http.Request, req *Request, form string)
	// Answered continues a request that the user has allowed, up to Login and SendBack.
	Answered func(w http.ResponseWriter, r *http.Request, req *Request)
	// Fault shows the user why a request ends here.
	Fault func(w http.ResponseWriter, r *http.Request, status int, text string)
	// Access returns an access token, and Open what one is about; false for a token that is
	// not of this Server.
	Access func(g *Grant) (string, error)
	Open   func(token string) (user, login string, ok bool)
	// Due says whether Check has to be called before a refresh; nil is never. The error
	// ErrGrant of Check ends the login; any other error is temporary.
	Due   func(u *User) bool
	Check func(ctx context.Context, user string, u *User) error
	// Event is called for what an audit records.
	Event func(kind, client string, u *User, err error)
}

// Grant is what an access token stands for.
type Grant struct {
	User, Login string // the names under which Users.Has finds it
	Issuer      string
	Subject     string
	Client      string
	Resource    string
	Scopes      []string
	Key         string // the thumbprint of the key that the token is bound to; "" for none
	End         time.Time
}

// The names of grants and of the scope that asks for refresh tokens.
const (
	GrantCode    = "authorization_code"
	GrantRefresh = "refresh_token"
	Offline      = "offline_access"
)

// The times that users and clients have.
const (
	TimeToConsent = 10 * time.Minute
	timeForCode   = time.Minute
	grace         = time.Minute // in which a refresh token is taken once more
	storeTimeout  = 5 * time.Second
	maxForm       = 64 << 10 // bytes
	usualForm     = 2 << 10  // bytes; the buffer that a form begins with
)

// Server is the protocol of an authorization server.
type Server struct {
	Keeper  *Keeper
	Users   *Users
	c       Config
	clients clients
}

// New returns a Server. Its config must make sense, which the caller checks.
func New(c Config) (*Server, error) {
	if len(c.Keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails since Go 1.24
		c.Keys = [][]byte{key}
	}
	if c.Store == nil {
		c.Store = scale.NewLocal()
	}
	seals, err := seal.New("issuing", c.Keys...)
	if err != nil {
		return nil, err
	}
	k := &Keeper{c.Issuer, bus.Guard(c.Store), seals}
	s := &Server{Keeper: k, Users: &Users{k}, c: c}
	s.clients.c, s.clients.keeper = &s.c, k
	for _, key := range c.Keys {
		derived, err := hkdf.Key(sha256.New, key, nil, "talaria secrets of clients", 32)
		if err != nil {
			return nil, err
		}
		s.clients.secrets = append(s.clients.secrets, derived)
	}
	s.clients.documents.init(c.Documents)
	return s, nil
}

// SetDocuments has metadata of clients fetched by web, before the Server is used.
func (s *Server) SetDocuments(web *http.Client) { s.clients.documents.init(web) }

// Routes returns what the Server answers. path is that of the issuer.
func (s *Server) Routes(path string) Routes {
	post := func(fn http.HandlerFunc) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{http.MethodPost: open(fn), http.MethodOptions: open(nil)}
	}
	metadata := map[string]http.HandlerFunc{http.MethodGet: open(s.metadata), http.MethodOptions: open(nil)}
	return Routes{
		"/.well-known/oauth-authorization-server" + path: metadata,
		"/.well-known/openid-configuration" + path:       metadata,
		path + "/.well-known/openid-configuration":       metadata,
		path + "/register":                               post(s.clients.register),
		path + "/token":                                  post(s.token),
		path + "/revoke":                                 post(s.revoke),
		path + "/authorize":                              {http.MethodGet: s.authorize},
		path + "/consent":                                {http.MethodPost: s.consent},
	}
}

// open lets web pages of any origin use an endpoint, without the cookies of their
// users. A nil fn answers the question whether they may.
func open(fn http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "WWW-Authenticate")
		if fn != nil {
			fn(w, r)
			return
		}
		header.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP, MCP-Protocol-Version")
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	}
}

// metadata serves RFC 8414.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	methods := []string{"none"}
	if s.c.Secrets {
		methods = []string{"none", methodBasic, methodPost}
	}
	m := map[string]any{
		"issuer":                                         s.c.Issuer,
		"authorization_endpoint":                         s.c.Issuer + "/authorize",
		"token_endpoint":                                 s.c.Issuer + "/token",
		"registration_endpoint":                          s.c.Issuer + "/register",
		"revocation_endpoint":                            s.c.Issuer + "/revoke",
		"scopes_supported":                               append(slices.Clone(s.c.Scopes), Offline),
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{GrantCode, GrantRefresh},
		"code_challenge_methods_supported":               []string{"S256"},
		"dpop_signing_alg_values_supported":              []string{string(jose.ES256)},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"client_id_metadata_document_supported":          true,
		"authorization_response_iss_parameter_supported": true,
	}
	for name, value := range s.c.Metadata {
		m[name] = value
	}
	WriteJSON(w, http.StatusOK, m)
}

// resource returns the resource that a client means, "" if there is none such. A
// client that names none means the only one.
func (s *Server) resource(q url.Values) string {
	asked := q["resource"]
	if len(asked) == 0 && len(s.c.Resources) == 1 {
		return s.c.Resources[0]
	}
	if len(asked) == 1 {
		for _, known := range s.c.Resources {
			if SameResource(known, asked[0]) {
				return known
			}
		}
	}
	return ""
}

// SameResource reports whether two URLs name one resource: clients differ in a slash at
// the end.
func SameResource(a, b string) bool {
	return a == b || a == b+"/" || b == a+"/"
}

// decode reads a JSON document of at most max bytes.
func decode(text []byte, v any) error { return jsonx.Unmarshal(text, v) }

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone; net/http notices by itself
}

// refuse answers with an error of RFC 6749, section 5.2.
func refuse(w http.ResponseWriter, code, description string) {
	status := http.StatusBadRequest
	switch code {
	case "invalid_client":
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="token"`)
	case "temporarily_unavailable":
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "10")
	}
	WriteJSON(w, status, struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}{code, description})
}
