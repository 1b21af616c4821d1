package inspector

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// reach is how a server is reached over streamable HTTP, as its last request went. mu
// guards all but mask.
type reach struct {
	mask   *mask
	mu     sync.Mutex
	url    string // "" until there was a request
	header http.Header
}

// ordinary are headers that every client sends. All others are the user's, or secret.
var ordinary = []string{"Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent", "Last-Event-Id", "Mcp-Protocol-Version",
	"Mcp-Method", "Mcp-Name", "Traceparent", "Tracestate", "Baggage", "Cache-Control", "Connection"}

// note takes how a request is sent, and its secrets.
func (r *reach) note(sent *http.Request) {
	own := http.Header{}
	for name, values := range sent.Header {
		if slices.Contains(ordinary, http.CanonicalHeaderKey(name)) || strings.HasPrefix(http.CanonicalHeaderKey(name), "Mcp-Param-") {
			continue
		}
		for _, value := range values {
			r.mask.addHeader(&r.mask.sent, name, value)
		}
		if key := http.CanonicalHeaderKey(name); key != "Mcp-Session-Id" && key != "Dpop" { // which are good for this one
			own[name] = values
		}
	}
	r.mask.addURL(&r.mask.sent, sent.URL)
	if sent.Method == http.MethodPost && strings.Contains(sent.Header.Get("Accept"), "text/event-stream") {
		r.mu.Lock()
		r.url, r.header = sent.URL.String(), own
		r.mu.Unlock()
	}
}

func (r *reach) get() (url string, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.url, maps.Clone(r.header)
}

// noting is a RoundTripper that tells how requests are sent.
type noting struct {
	next http.RoundTripper
	to   *reach
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	n.to.note(r)
	answer, err := n.next.RoundTrip(r)
	if err == nil {
		mask := n.to.mask
		mask.into(&mask.received, answer.Header.Values("Mcp-Session-Id")...)
		for _, cookie := range answer.Cookies() {
			if likely("cookie", cookie.Value) {
				mask.into(&mask.received, cookie.Value)
			}
		}
	}
	return answer, err
}

// CloseIdleConnections is what http.Client asks its transport for.
func (n noting) CloseIdleConnections() {
	if next, ok := n.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
