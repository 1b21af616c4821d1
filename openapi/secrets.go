package openapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The least length of what is masked, in bytes. A fixed parameter may be a version.
const (
	minSecret = 8
	minFixed  = 16
)

// mask takes the place of a secret.
const mask = "[hidden]"

// secrets are the credentials of one call. A server may repeat them, in an error about
// them for example; no result shows them.
type secrets struct{ values []string }

// add notes a value, and its form in a URL.
func (s *secrets) add(value string) {
	for _, v := range []string{value, url.QueryEscape(value), escaped(value, "")} {
		if len(value) >= minSecret && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
}

// note notes what Options.Auth has added to a request.
func (s *secrets) note(header http.Header, query string, r *http.Request) {
	for name, values := range r.Header {
		for _, value := range values {
			if slices.Contains(header[name], value) {
				continue
			}
			s.add(value)
			for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ;,\"", r) }) {
				_, after, pair := strings.Cut(part, "=")
				if s.add(part); pair {
					s.add(after)
				}
			}
		}
	}
	before, _ := url.ParseQuery(query)
	for name, values := range r.URL.Query() {
		for _, value := range values {
			if !slices.Contains(before[name], value) {
				s.add(value)
			}
		}
	}
}

// masked returns a text without secrets.
func (s *secrets) masked(text string) string {
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range s.values {
		text = strings.ReplaceAll(text, value, mask)
	}
	return text
}
