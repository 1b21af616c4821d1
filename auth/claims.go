package auth

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/auth/internal/jwt"
)

// identityOf returns the Identity that the claims describe. The first of
// scopeClaims that is present has the scopes.
func identityOf(c *jwt.Claims, scopeClaims []string) *Identity {
	id := &Identity{Issuer: c.Issuer, Subject: c.Subject, ClientID: c.Client, Claims: c.All}
	if c.Expiry != nil {
		id.Expiry = jwt.Date(*c.Expiry)
	}
	for _, name := range scopeClaims {
		if value, ok := c.All[name]; ok {
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
