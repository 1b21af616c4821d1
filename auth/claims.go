package auth

import (
	"encoding/json"
	"math"
	"net/url"
	"strings"
	"time"
)

// claims are what a token says that has to be checked.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Client    string   `json:"client_id"`
	Party     string   `json:"azp"`
	Audience  texts    `json:"aud"`
	Expiry    *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	Issued    *float64 `json:"iat"`
	all       map[string]any
}

// texts is one text or a list of them.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*t = make(texts, 1)
		return json.Unmarshal(raw, &(*t)[0])
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

func parseClaims(payload []byte) (*claims, error) {
	c := &claims{}
	if err := json.Unmarshal(payload, c); err != nil {
		return nil, invalid(err, "the claims of the token are malformed")
	}
	if err := json.Unmarshal(payload, &c.all); err != nil || c.all == nil {
		return nil, invalid(err, "the claims of the token are malformed")
	}
	return c, nil
}

// identity returns what c says; the first of scopeClaims that is there has the
// scopes.
func (c *claims) identity(scopeClaims []string) *Identity {
	id := &Identity{Issuer: c.Issuer, Subject: c.Subject, ClientID: c.Client, Claims: c.all}
	if id.ClientID == "" {
		id.ClientID = c.Party
	}
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

// scopesOf reads scopes from a text with spaces or from a list of texts.
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

// lastDate is as far as numeric dates go: the year 9999, in seconds.
const lastDate = 253402300799

// numericDate returns the time of a numeric date (RFC 7519, section 2). One
// that is out of all bounds becomes the farthest that there is.
func numericDate(seconds float64) time.Time {
	whole, part := math.Modf(math.Max(-lastDate, math.Min(lastDate, seconds)))
	return time.Unix(int64(whole), int64(part*1e9))
}

// canonical returns the form of an audience that compares: URLs with scheme and
// host in lower case, and without the slash of an empty path (basic/authorization,
// canonical server URI). Others stay as they are.
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
