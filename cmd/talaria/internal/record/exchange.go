package record

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/visible"
)

// The bounds of what is kept of HTTP: exchanges of one message, which is sent again
// where a server wants so; headers each way; and where the message of an exchange
// is searched.
const (
	maxExchanges = 8
	maxHeaders   = 100
	lookedAt     = 256 // rows
)

// Exchange is one request of HTTP, and the head of its answer.
type Exchange struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	URL    string    `json:"url"`    // without its query, which may have secrets
	Status int       `json:"status"` // 0 without an answer
	Took   float64   `json:"took"`   // milliseconds until the head of the answer
	Error  string    `json:"error,omitempty"`
	Sent   []Header  `json:"sent"`
	Got    []Header  `json:"got"`
}

// Header is one line of a head.
type Header struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"` // the value is one, and masked unless it was asked for
}

// size is what an exchange takes, in bytes.
func (x *Exchange) size() int {
	n := perRow
	for _, h := range slices.Concat(x.Sent, x.Got) {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// masked returns a copy without the values of secrets.
func (x Exchange) masked() Exchange {
	hide := func(list []Header) []Header {
		list = slices.Clone(list)
		for i, h := range list {
			if h.Secret {
				list[i].Value = mask(h.Value)
			}
		}
		return list
	}
	x.Sent, x.Got = hide(x.Sent), hide(x.Got)
	return x
}

// mask keeps the scheme of a credential and says how long the rest is.
func mask(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || strings.ContainsAny(scheme, "=;") || len(scheme) > 10 {
		scheme, rest = "", value
	}
	unit := "characters"
	if len(rest) == 1 {
		unit = "character"
	}
	return strings.TrimSpace(fmt.Sprintf("%s (%d %s)", scheme, len(rest), unit))
}

// secretName matches what credentials are called, or could be.
var secretName = regexp.MustCompile(`(?i)authoriz|authenticat|(^|[-_.])auth($|[-_.])|cookie|session|token|secret|api-?key|passw|passphrase|passcode|pass$|pwd$|(^|[-_.])(pass|pwd|pw|pin|otp|sig|pat|creds?|jwt|bearer|dsn)($|[-_.])|(^|[-_.])key[-_.]|key$|credential|signature|dpop|last-event-id`)

// harmless matches words that only end like a credential.
var harmless = regexp.MustCompile(`(?i)(^|[-_.])(?:(?:en)?compass|bypass|trespass|surpass|overpass|underpass|oldpwd)($|[-_.])`)

// humps matches where a word of a name in camelCase begins.
var humps = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// SecretName reports whether what has that name is a credential, or could be one:
// a header, a variable, a part of a query.
func SecretName(name string) bool {
	name = harmless.ReplaceAllString(name, "$1$2")
	return secretName.MatchString(name) || secretName.MatchString(humps.ReplaceAllString(name, "${1}${3}_${2}${4}"))
}

func headers(h http.Header) []Header {
	list := []Header{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if len(list) == maxHeaders {
				return list
			}
			value = value[:min(len(value), 2*visible.Sentence)] // enough to see that it was cut
			list = append(list, Header{visible.Line(name, visible.Name), visible.Line(withoutQueries(value), visible.Sentence), SecretName(name)})
		}
	}
	return list
}

// The parts of the addresses in a text that may have secrets.
var (
	queries = regexp.MustCompile(`(/[^\s"'<>?#]*)[?#][^\s"'<>]+|[?#][^\s"'<>=]*=[^\s"'<>]+`)
	users   = regexp.MustCompile(`//[^\s"'<>/?@]*@`)
)

// withoutQueries returns a text without the queries, fragments and users of the addresses in it, as
// Exchange.URL is.
func withoutQueries(text string) string {
	return users.ReplaceAllString(queries.ReplaceAllString(text, "$1?***"), "//")
}

// exchanging tells of each request that goes through it.
type exchanging struct {
	next http.RoundTripper
	tell func(body []byte, x Exchange)
}

// Exchanging returns a RoundTripper that makes the requests with next, and tells of
// each, with its body, when the head of its answer is there.
func Exchanging(next http.RoundTripper, tell func(body []byte, x Exchange)) http.RoundTripper {
	return &exchanging{next, tell}
}

func (e *exchanging) RoundTrip(r *http.Request) (*http.Response, error) {
	x := Exchange{At: time.Now(), Method: r.Method, Sent: headers(r.Header)}
	plain := *r.URL
	plain.RawQuery, plain.User, plain.Fragment = "", nil, ""
	x.URL = visible.Line(plain.String(), visible.Sentence)
	var body []byte
	if r.GetBody != nil {
		if copied, err := r.GetBody(); err == nil {
			body, _ = io.ReadAll(copied) // bytes in memory, and without them there is only no row to join
			_ = copied.Close()
		}
	}
	resp, err := e.next.RoundTrip(r)
	x.Took = float64(time.Since(x.At).Microseconds()) / 1000
	if err != nil {
		x.Error = visible.Line(withoutQueries(err.Error()), visible.Sentence)
	} else {
		x.Status, x.Got = resp.StatusCode, headers(resp.Header)
	}
	e.tell(body, x)
	return resp, err
}

// CloseIdleConnections is for http.Client.
func (e *exchanging) CloseIdleConnections() {
	if closer, ok := e.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
