package oauth

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// challenge is what the WWW-Authenticate headers of a response demand. The zero
// value is a response without any.
type challenge struct {
	metadata  string // resource_metadata (RFC 9728, section 5.1)
	scope     scopes
	errorCode string
	bearer    bool  // the server takes Bearer tokens
	dpop      bool  // the server takes DPoP tokens
	foreign   bool  // there are challenges, but none of these
	err       error // the scope parameter is invalid
}

// readChallenge reads the challenges for bearer and DPoP tokens. Challenges for
// other schemes are skipped; of several challenges the first that has a
// parameter provides it.
func readChallenge(header http.Header) challenge {
	var c challenge
	all := parseChallenges(header.Values("WWW-Authenticate"))
	for _, each := range all {
		switch strings.ToLower(each.scheme) {
		case "bearer":
			c.bearer = true
		case "dpop":
			c.dpop = true
		default:
			continue
		}
		if c.metadata == "" {
			c.metadata = each.params["resource_metadata"]
		}
		if c.errorCode == "" {
			c.errorCode = each.params["error"]
		}
		if len(c.scope) == 0 && c.err == nil {
			c.scope, c.err = parseScopes(each.params["scope"])
		}
	}
	c.foreign = len(all) > 0 && !c.bearer && !c.dpop
	return c
}

// authChallenge is one challenge of RFC 9110, section 11.6.1.
type authChallenge struct {
	scheme string
	params map[string]string // names in lower case
}

// parseChallenges parses header values, each of which may hold several
// challenges. Where a value is malformed it stops and keeps what it has read.
func parseChallenges(values []string) []authChallenge {
	var all []authChallenge
	for _, value := range values {
		s := headerScanner{rest: value}
		for {
			s.skip(" \t,")
			name := s.token()
			if name == "" {
				break
			}
			if param, ok := s.value(); ok && len(all) > 0 {
				params := all[len(all)-1].params
				if _, repeated := params[strings.ToLower(name)]; !repeated {
					params[strings.ToLower(name)] = param
				}
				continue
			}
			all = append(all, authChallenge{scheme: name, params: map[string]string{}})
			s.token68()
		}
	}
	return all
}

// headerScanner reads a header value from front to back; rest is what is left
// of it.
type headerScanner struct{ rest string }

// skip skips the bytes of set.
func (s *headerScanner) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

// take reads the bytes that satisfy in.
func (s *headerScanner) take(in func(byte) bool) string {
	n := 0
	for n < len(s.rest) && in(s.rest[n]) {
		n++
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// token reads a token of RFC 9110, "" if there is none.
func (s *headerScanner) token() string { return s.take(isTokenByte) }

// value reads "=" and what follows it, a token or a quoted string. Without the
// "=" it reads nothing.
func (s *headerScanner) value() (string, bool) {
	rest := strings.TrimLeft(s.rest, " \t")
	if !strings.HasPrefix(rest, "=") {
		return "", false
	}
	s.rest = strings.TrimLeft(rest[1:], " \t")
	if !strings.HasPrefix(s.rest, `"`) {
		return s.token(), true
	}
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	s.rest = "" // the string has no end: trust nothing of it
	return "", true
}

// token68 skips credentials such as those of Negotiate, which follow a scheme
// in place of parameters.
func (s *headerScanner) token68() {
	ahead := headerScanner{rest: strings.TrimLeft(s.rest, " \t")}
	text := ahead.take(func(c byte) bool { return isTokenByte(c) || c == '/' })
	ahead.take(func(c byte) bool { return c == '=' })
	end := strings.TrimLeft(ahead.rest, " \t")
	if text != "" && (end == "" || end[0] == ',') {
		s.rest = ahead.rest
	}
}

// isTokenByte reports whether c can be part of a token (RFC 9110, section
// 5.6.2).
func isTokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// offlineAccess is the scope that asks for a refresh token (OpenID Connect
// Core, section 11).
const (
	offlineAccess = "offline_access"
	maxScopes     = 4 << 10 // bytes of a scope parameter
)

// scopes is a set of scopes in the order in which they came.
type scopes []string

// parseScopes reads a scope parameter (RFC 6749, section 3.3).
func parseScopes(s string) (scopes, error) {
	if len(s) > maxScopes {
		return nil, fmt.Errorf("the scope parameter has more than %d bytes", maxScopes)
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return nil, fmt.Errorf("the scope parameter has the byte %#02x, which no scope may have", c)
		}
	}
	return scopes(nil).with(strings.Fields(s)...), nil
}

// with returns the union of s and more. It does not change s.
func (s scopes) with(more ...string) scopes {
	union := slices.Clip(s)
	for _, scope := range more {
		if !slices.Contains(union, scope) {
			union = append(union, scope)
		}
	}
	return union
}

// without returns s without one scope.
func (s scopes) without(scope string) scopes {
	return slices.DeleteFunc(slices.Clone(s), func(each string) bool { return each == scope })
}

// covers reports whether s contains all of these.
func (s scopes) covers(all scopes) bool {
	for _, scope := range all {
		if !slices.Contains(s, scope) {
			return false
		}
	}
	return true
}

// String returns the value of a scope parameter.
func (s scopes) String() string { return strings.Join(s, " ") }
