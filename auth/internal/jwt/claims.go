package jwt

import (
	"math"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Claims are the claims of a token, or the members of an introspection
// response, that are checked. All has every one of them.
type Claims struct {
	Issuer, Subject, Client     string
	Audience                    []string
	Expiry, NotBefore, IssuedAt *float64 // nil if the token does not tell
	All                         map[string]any
}

// Parse reads claims by their exact names; decoding into a struct would
// ignore case. Claims of the wrong type make the token invalid.
func Parse(payload []byte) (*Claims, error) {
	c := &Claims{}
	if err := jsonx.Unmarshal(payload, &c.All); err != nil || c.All == nil {
		return nil, refuse(err, "the claims of the token are malformed")
	}
	ok := c.text("iss", &c.Issuer) && c.text("sub", &c.Subject) && c.text("client_id", &c.Client) &&
		c.date("exp", &c.Expiry) && c.date("nbf", &c.NotBefore) && c.date("iat", &c.IssuedAt) && c.audience()
	if !ok {
		return nil, refuse(nil, "the claims of the token are malformed")
	}
	if c.Client == "" { // as OpenID Connect has it
		ok = c.text("azp", &c.Client)
	}
	if !ok {
		return nil, refuse(nil, "the claims of the token are malformed")
	}
	return c, nil
}

// text reads a claim that is a string, if it is present. It returns false if
// the claim has another type. date and audience do the same for their types.
func (c *Claims) text(name string, into *string) bool {
	value, there := c.All[name]
	if !there || value == nil {
		return true
	}
	var ok bool
	*into, ok = value.(string)
	return ok
}

// date reads a claim that is a numeric date.
func (c *Claims) date(name string, into **float64) bool {
	value, there := c.All[name]
	if !there || value == nil {
		return true
	}
	seconds, ok := value.(float64)
	*into = &seconds
	return ok
}

// audience reads aud, which is a string or a list of strings.
func (c *Claims) audience() bool {
	switch value := c.All["aud"].(type) {
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

// Other reports whether a token says that it is not of this kind. Refresh tokens,
// ID tokens and access tokens can be signed by the same key, be active, and be for
// the same audience.
func (c *Claims) Other(kind Kind) bool {
	for _, name := range []string{"typ", "token_use", "token_type"} {
		said, _ := c.All[name].(string)
		switch strings.ToLower(said) {
		case "refresh", "refresh_token", "offline":
			return true
		case "id", "id_token":
			return kind != ID
		case "at+jwt", "access", "access_token":
			return kind == ID
		}
	}
	return false
}

// Unbound reports whether a token is said to be bound to a key without saying
// which.
func (c *Claims) Unbound() bool {
	kind, _ := c.All["token_type"].(string)
	return strings.EqualFold(kind, "DPoP") && c.All["cnf"] == nil
}

// lastDate is the largest numeric date that is used, in the year 9999, in
// seconds.
const lastDate = 253402300799

// Date returns the time of a numeric date (RFC 7519, section 2). Dates
// out of range become the nearest one in range.
func Date(seconds float64) time.Time {
	whole, part := math.Modf(math.Max(-lastDate, math.Min(lastDate, seconds)))
	return time.Unix(int64(whole), int64(part*1e9))
}
