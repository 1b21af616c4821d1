package auth

import (
	"net/http"
	"net/url"
	"strings"
)

// The schemes of the Authorization header.
const (
	schemeBearer = "Bearer"
	schemeDPoP   = "DPoP"
)

// credentials returns the token of a request, "" if it has none. Other schemes
// than those of access tokens count as none.
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

func malformed(description string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Description: description}
}

// validToken tells whether token is a b64token (RFC 6750, section 2.1).
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

// inQuery tells whether a token is in the query of a URL, where logs would keep
// it (RFC 6750, section 2.3; forbidden by basic/authorization).
func inQuery(query string) bool {
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil && strings.EqualFold(plain, "access_token") {
			return true
		}
	}
	return false
}

// validScope tells whether scope is a scope-token (RFC 6749, section 3.3).
func validScope(scope string) bool { return quotable(scope) && !strings.Contains(scope, " ") }

// quotable tells whether text can be the value of a challenge's parameter.
func quotable(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return text != ""
}
