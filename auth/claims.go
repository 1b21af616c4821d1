package auth

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// claims are the claims of a token, or the members of an introspection
// response, that are checked. all has every one of them.
type claims struct {
	Issuer, Subject, Client     string
	Audience                    []string
	Expiry, NotBefore, IssuedAt *float64 // nil if the token does not tell
	all                         map[string]any
}

// parseClaims reads claims by their exact names; decoding into a struct would
// ignore case. Claims of the wrong type make the token invalid.
func parseClaims(payload []byte) (*claims, error) {
	c := &claims{}
	if err := jsonx.Unmarshal(payload, &c.all); err != nil || c.all == nil {
		return nil, invalid(err, "the claims of the token are malformed")
	}
	ok := c.text("iss", &c.Issuer) && c.text("sub", &c.Subject) && c.text("client_id", &c.Client) &&
		c.date("exp", &c.Expiry) && c.date("nbf", &c.NotBefore) && c.date("iat", &c.IssuedAt) && c.audience()
	if !ok {
		return nil, Invalid("the claims of the token are malformed")
	}
	if c.Client == "" { // as OpenID Connect has it
		ok = c.text("azp", &c.Client)
	}
	if !ok {
		return nil, Invalid("the claims of the token are malformed")
	}
	return c, nil
}

// text reads a claim that is a string, if it is present. It returns false if
// the claim has another type. date and audience do the same for their types.
func (c *claims) text(name string, into *string) bool {
	value, there := c.all[name]
	if !there || value == nil {
		return true
	}
	var ok bool
	*into, ok = value.(string)
	return ok
}

// date reads a claim that is a numeric date.
func (c *claims) date(name string, into **float64) bool {
	value, there := c.all[name]
	if !there || value == nil {
		return true
	}
	seconds, ok := value.(float64)
	*into = &seconds
	return ok
}

// audience reads aud, which is a string or a list of strings.
func (c *claims) audience() bool {
	switch value := c.all["aud"].(type) {
	case nil:
	case string:
		c.Audience = []string{value}
	case []any:
		for _, one := range value {
			a, ok := one.(string)
			if !ok {
				return false
			}
			c.Audience = append(c.Audience, a)
		}
	default:
		return false
	}
	return true
}

// other reports whether a token says that it is not an access token. Refresh
// tokens and ID tokens can be signed by the same key, be active, and be for
// this server.
func (c *claims) other() bool {
	for _, name := range []string{"typ", "token_use", "token_type"} {
		kind, _ := c.all[name].(string)
		switch strings.ToLower(kind) {
		case "id", "id_token", "refresh", "refresh_token", "offline":
			return true
		}
	}
	return false
}

// unbound reports whether a token is said to be bound to a key without saying
// which.
func (c *claims) unbound() bool {
	kind, _ := c.all["token_type"].(string)
	return strings.EqualFold(kind, schemeDPoP) && c.all["cnf"] == nil
}

// identity returns the Identity that the claims describe. The first of
// scopeClaims that is present has the scopes.
func (c *claims) identity(scopeClaims []string) *Identity {
	id := &Identity{Issuer: c.Issuer, Subject: c.Subject, ClientID: c.Client, Claims: c.all}
	if c.Expiry != nil {
		id.Expiry = numericDate(*c.Expiry)
	}
	for _, name := range scopeClaims {
		if value, ok := c.all[name]; ok {
			id.Scopes = scopesOf(value)
			break
		}
	}
	return id
}

// scopesOf reads scopes from a string with spaces or from a list of strings.
func scopesOf(value any) []string {
	switch value := value.(type) {
	case string:
		return strings.Fields(value)
	case []any:
		var list []string
		for _, v := range value {
			if s, ok := v.(string); ok {
				list = append(list, strings.Fields(s)...)
			}
		}
		return list
	}
	return nil
}

// lastDate is the largest numeric date that is used, in the year 9999, in
// seconds.
const lastDate = 253402300799

// numericDate returns the time of a numeric date (RFC 7519, section 2). Dates
// out of range become the nearest one in range.
func numericDate(seconds float64) time.Time {
	whole, part := math.Modf(math.Max(-lastDate, math.Min(lastDate, seconds)))
	return time.Unix(int64(whole), int64(part*1e9))
}

// canonical returns the form in which audiences are compared: URLs with scheme
// and host in lower case and without the slash of an empty path
// (basic/authorization, canonical server URI). Other audiences are returned
// unchanged.
func canonical(audience string) string {
	u, err := url.Parse(audience)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return audience
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if u.Path == "/" {
		u.Path = ""
	}
	return u.String()
}

// audiences are those whose tokens are accepted. The zero value accepts none.
// names are canonical.
type audiences struct {
	any   bool
	names []string
}

// newAudiences returns the audiences with these names, or one that includes all
// clients.
func newAudiences(names []string, anyone bool) audiences {
	a := audiences{any: anyone}
	for _, name := range names {
		a.names = append(a.names, canonical(name))
	}
	return a
}

// errNoAudience is the error of a Verifier without an audience.
var errNoAudience = errors.New("auth: the Verifier knows no audience; give it to New, or set Audiences")

// none reports whether no token is accepted.
func (a *audiences) none() bool { return !a.any && len(a.names) == 0 }

// include reports whether a token for the audiences those is accepted.
func (a *audiences) include(those []string) bool {
	return a.any || slices.ContainsFunc(those, func(one string) bool { return slices.Contains(a.names, canonical(one)) })
}
