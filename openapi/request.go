package openapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

// minFixed is the least length of a fixed value that is masked, in bytes: it may be a version.
const minFixed = 16

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// accept is what responses may be. JSON is preferred.
const accept = "application/json, text/plain;q=0.9, */*;q=0.5"

// call makes the request that arguments ask for, and its result.
func (op *operation) call(f *mcp.Frame, in []byte) (protocol.Result, error) {
	args, _ := decode(in).(tree) // they were checked
	r, err := op.request(args)
	if err != nil {
		return nil, err
	}
	secrets := &origin.Secrets{}
	for _, p := range op.params {
		if p.fixed != nil && len(*p.fixed) >= minFixed {
			secrets.Add(*p.fixed)
		}
	}
	if op.auth != nil {
		r.Prepare = func(r *http.Request) error {
			was, query := r.Header.Clone(), r.URL.RawQuery
			if err := op.auth(f, op.is, r); err != nil {
				return &authError{err}
			}
			secrets.Note(was, query, r)
			return nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(f, op.timeout, fmt.Errorf("no answer within %v", op.timeout))
	defer cancel()
	res, err := op.server.Do(ctx, r)
	if err != nil {
		if refused, ok := errors.AsType[*authError](err); ok {
			return nil, refused.err
		}
		return nil, errors.New(secrets.Masked(withoutURL(err)))
	}
	defer origin.Discard(res.Body)
	return result(op, r.URL, res, args, secrets)
}

// authError is an error of Options.Auth, which goes out as it is.
type authError struct{ err error }

// Error implements error.
func (e *authError) Error() string { return e.err.Error() }

// withoutURL returns the text of an error without the URL that a *url.Error has, because
// its query may contain a key.
func withoutURL(err error) string {
	text := err.Error()
	if of, ok := errors.AsType[*url.Error](err); ok {
		text = strings.ReplaceAll(text, of.Error(), of.Op+" failed: "+of.Err.Error())
	}
	return text
}

// request returns the request that arguments ask for.
func (op *operation) request(args tree) (*origin.Request, error) {
	h := http.Header{"Accept": {accept}}
	var query, cookies []string
	path := map[string]string{}
	for _, p := range op.params {
		v, given := args[p.arg]
		if p.fixed != nil {
			v, given = *p.fixed, true
		}
		if v = p.present(v); !given || v == nil && !p.required {
			continue
		}
		switch p.in {
		case "path":
			path[p.name] = p.path(v)
		case "query":
			query = append(query, p.query(v)...)
		case "cookie":
			cookies = append(cookies, p.query(v)...)
		case "header":
			text, err := p.header(v)
			if err != nil {
				return nil, err
			}
			h.Set(p.name, text)
		}
	}
	if cookies != nil {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	u, err := op.url(path, query)
	if err != nil {
		return nil, err
	}
	r := &origin.Request{Method: op.is.Method, URL: u, Header: h}
	if op.body == nil {
		return r, nil
	}
	v, given := op.body.value(args)
	if !given {
		return r, nil
	}
	text, media, err := op.body.write(v)
	if err != nil {
		return nil, err
	}
	h.Set("Content-Type", media)
	if r.Body = text; text == nil {
		r.Body = []byte{}
	}
	return r, nil
}

// value returns the body that arguments make.
func (b *body) value(args tree) (v any, given bool) {
	if b.arg != "" {
		v, given = args[b.arg]
		return v, given
	}
	value := tree{}
	for arg, name := range b.members {
		if v, ok := args[arg]; ok {
			value[name] = v
		}
	}
	return value, len(value) > 0 || b.required
}

// url returns the URL with the values of the path, which are encoded, and the query. A
// "?" in the path begins the query, and "#" what servers do not receive.
func (op *operation) url(values map[string]string, query []string) (*url.URL, error) {
	template, _, _ := strings.Cut(op.is.Path, "#")
	template, own, _ := strings.Cut(template, "?")
	var path strings.Builder
	for i, segment := range strings.Split(template, "/") {
		if i > 0 {
			path.WriteByte('/')
		}
		filled := fill(segment, values)
		if templated.MatchString(segment) && isStep(filled) {
			return nil, fmt.Errorf("%s of the path would be %q: its arguments must make a name", segment, filled)
		}
		path.WriteString(filled)
	}
	u, err := url.Parse(op.base + path.String())
	if err != nil {
		return nil, fmt.Errorf("the path %s with these arguments is not valid", op.is.Path)
	}
	if own != "" {
		query = append([]string{fill(own, values)}, query...)
	}
	u.RawQuery = strings.Join(query, "&")
	return u, nil
}

// fill puts values into a template. What the document wrote is encoded where a URL needs
// it.
func fill(template string, values map[string]string) string {
	var b strings.Builder
	at := 0
	for _, m := range templated.FindAllStringSubmatchIndex(template, -1) {
		b.WriteString(escaped(template[at:m[0]], literal))
		b.WriteString(values[template[m[2]:m[3]]])
		at = m[1]
	}
	b.WriteString(escaped(template[at:], literal))
	return b.String()
}

// literal are the characters that the text of a path keeps.
const literal = "%!$&'()*+,;=:@/?"

// maxDecoded is how often a proxy and the server behind it may decode a path.
const maxDecoded = 4

// isStep reports whether a segment with values is empty, or would lead to another path
// at a server that decodes it early, as "..%2f" may.
func isStep(segment string) bool {
	if segment == "" {
		return true
	}
	for range maxDecoded {
		for _, name := range strings.FieldsFunc(segment, func(r rune) bool { return r == '/' || r == '\\' }) {
			name, _, _ = strings.Cut(name, ";")
			if name == "." || name == ".." {
				return true
			}
		}
		next, err := url.PathUnescape(segment)
		if err != nil || next == segment {
			break
		}
		segment = next
	}
	return false
}
