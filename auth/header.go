package auth

import (
	"net/http"
	"net/url"
	"strings"
)

// The schemes of the Authorization header in their canonical spelling.
const (
	schemeBearer = "Bearer"
	schemeDPoP   = "DPoP"
)

// credentials returns the scheme and the token of a request. Both are "" if
// there is none; a scheme that is not for access tokens counts as none.
func credentials(r *http.Request) (scheme, token string, err error) {
	values := r.Header["Authorization"]
	switch len(values) {
	case 0:
		return "", "", nil
	case 1:
	default:
		return "", "", malformed("the Authorization header is there more than once")
	}
	scheme, token, _ = strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, schemeBearer):
		scheme = schemeBearer
	case strings.EqualFold(scheme, schemeDPoP):
		scheme = schemeDPoP
	default:
		return "", "", nil
	}
	if token = strings.TrimLeft(token, " "); token == "" {
		return "", "", malformed("the Authorization header has no token")
	}
	return scheme, token, nil
}

// malformed returns the error for a request that violates RFC 6750.
func malformed(description string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Description: description}
}

// validToken reports whether token is a b64token (RFC 6750, section 2.1).
func validToken(token string) bool {
	body := strings.TrimRight(token, "=")
	for _, c := range []byte(body) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return body != ""
}

// inQuery reports whether the query of a URL contains a token. Logs would keep
// it there (RFC 6750, section 2.3), and basic/authorization forbids it.
func inQuery(query string) bool {
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil && strings.EqualFold(plain, "access_token") {
			return true
		}
	}
	return false
}

// validScope reports whether scope is a scope-token (RFC 6749, section 3.3).
func validScope(scope string) bool { return quotable(scope) && !strings.Contains(scope, " ") }

// quotable reports whether text can be the quoted value of a parameter in a
// challenge.
func quotable(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return text != ""
}
