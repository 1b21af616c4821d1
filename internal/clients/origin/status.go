package origin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/visible"
)

// StatusError is an HTTP status that came without a JSON-RPC answer, or 401 or
// 403 with one.
type StatusError struct {
	Code   int
	Header http.Header
	Body   []byte // the beginning of it
	// Err explains the status: a *protocol.Error if the body is the error of
	// the request or of no request in particular, or what this side makes of
	// the body; nil if nothing does.
	Err error
	// Answers is set if Err is the server's answer to this very request.
	Answers bool
}

// Error returns the status and what explains it: Err, or the beginning of the
// body.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answered with HTTP status %d %s", e.Code, http.StatusText(e.Code))
	switch {
	case e.Err != nil:
		text += ": " + e.Err.Error()
	case len(e.Body) > 0:
		if said := Excerpt(e.Body); said != "" {
			text += ": " + said
		}
	}
	return text
}

// maxExcerpt is how much of a body an error shows, in bytes.
const maxExcerpt = 200

// Excerpt returns the beginning of a body on one line; of an HTML page, its
// title, since proxies answer with pages whose text begins with markup. What
// could confuse a terminal is made visible; "" means that there is nothing to
// show.
func Excerpt(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if strings.HasPrefix(text, "<") {
		lower := strings.ToLower(text)
		begin, end := strings.Index(lower, "<title>"), strings.Index(lower, "</title>")
		if len(lower) == len(text) && begin >= 0 && end > begin {
			text = "a page with the title " + strconv.Quote(strings.TrimSpace(text[begin+len("<title>"):end]))
		}
	}
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return visible.Line(text, 0)
}

// Unwrap returns Err.
func (e *StatusError) Unwrap() error { return e.Err }

// Passing reports whether the status may pass: the same request may soon be
// answered otherwise. That is so for what proxies and servers say while they
// have too much to do or are about to start, and for a page in place of an
// answer.
func (e *StatusError) Passing() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.Code/100 == 5 || e.Code/100 == 2
}
