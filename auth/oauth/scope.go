package oauth

import (
	"fmt"
	"slices"
	"strings"
)

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

// with is the union with more. It does not change s.
func (s scopes) with(more ...string) scopes {
	union := slices.Clip(s)
	for _, scope := range more {
		if !slices.Contains(union, scope) {
			union = append(union, scope)
		}
	}
	return union
}

// without is s less one scope.
func (s scopes) without(scope string) scopes {
	return slices.DeleteFunc(slices.Clone(s), func(each string) bool { return each == scope })
}

// covers says whether all of these are in s.
func (s scopes) covers(all scopes) bool {
	for _, scope := range all {
		if !slices.Contains(s, scope) {
			return false
		}
	}
	return true
}

func (s scopes) String() string { return strings.Join(s, " ") }
