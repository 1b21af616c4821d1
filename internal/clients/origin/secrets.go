package origin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// minSecret is the least length of what is masked, in bytes.
const minSecret = 8

// mask takes the place of a secret.
const mask = "[hidden]"

// Secrets are the credentials of a request. A server may repeat them, in an error about
// them for example; no result and no error shows them.
type Secrets struct{ values []string }

// jsonForm writes a text as JSON that escapes no more than it has to.
var jsonForm = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Add notes a value, and its forms in a URL and in JSON, of which some escapes slashes or
// what HTML needs.
func (s *Secrets) Add(value string) {
	if len(value) < minSecret {
		return
	}
	query, plain := url.QueryEscape(value), jsonForm.Replace(value)
	html, _ := json.Marshal(value) // a text encodes
	for _, v := range []string{value, query, strings.ReplaceAll(query, "+", "%20"), plain, strings.ReplaceAll(plain, "/", `\/`), string(html[1 : len(html)-1])} {
		if !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
}

// Note notes what a request has beyond these headers and this query.
func (s *Secrets) Note(header http.Header, query string, r *http.Request) {
	for name, values := range r.Header {
		for _, value := range values {
			if slices.Contains(header[name], value) {
				continue
			}
			s.Add(value)
			for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ;,\"", r) }) {
				_, after, pair := strings.Cut(part, "=")
				if s.Add(part); pair {
					s.Add(after)
				}
			}
		}
	}
	if _, password, ok := r.BasicAuth(); ok {
		s.Add(password)
	}
	before, _ := url.ParseQuery(query)
	for _, part := range queryParts(r.URL.RawQuery) {
		name, value, _ := strings.Cut(part, "=")
		if slices.Contains(before[unescaped(name)], unescaped(value)) || slices.Contains(queryParts(query), part) {
			continue
		}
		if value == "" { // the whole of it is a key
			value = name
		}
		s.Add(value) // as it was sent
		s.Add(unescaped(value))
	}
}

// queryParts returns the parts of a query, which some servers separate by semicolons.
func queryParts(query string) []string {
	return strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
}

// unescaped returns a part of a query without its escapes; one with others as it is.
func unescaped(part string) string {
	if text, err := url.QueryUnescape(part); err == nil {
		return text
	}
	return part
}

// Masked returns a text without secrets, and without the beginning of one that the text was
// cut in.
func (s *Secrets) Masked(text string) string {
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range s.values {
		text = strings.ReplaceAll(text, value, mask)
	}
	for _, value := range s.values {
		for n := len(value) - 1; n >= minSecret; n-- {
			if left, cut := strings.CutSuffix(text, value[:n]); cut {
				return left + mask
			}
		}
	}
	return text
}

// Hidden returns an error without the credentials of a request. An error that has none is
// returned as it is.
func Hidden(err error, r *http.Request) error {
	var s Secrets
	s.Note(plain(r), "", r)
	if password, ok := r.URL.User.Password(); ok {
		s.Add(password)
	}
	if text := err.Error(); s.Masked(text) != text {
		return errors.New(s.Masked(text))
	}
	return err
}

// public are the headers of a message without credentials, besides those of arguments.
var public = []string{"Accept", "Accept-Encoding", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Origin", "User-Agent"}

// plain returns the headers of a message without credentials.
func plain(r *http.Request) http.Header {
	h := http.Header{}
	for name, values := range r.Header {
		if slices.Contains(public, name) || strings.HasPrefix(name, "Mcp-Param-") {
			h[name] = values
		}
	}
	return h
}

// unsaid returns the beginning of the body of a refusal without the credentials of its request.
func unsaid(res *http.Response, body []byte) []byte {
	if res.Request == nil || len(body) == 0 {
		return body
	}
	var s Secrets
	s.Note(plain(res.Request), "", res.Request)
	return []byte(s.Masked(string(body)))
}
