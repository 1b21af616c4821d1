package streamable

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
)

// Guard checks the Host and Origin headers, as every revision demands (basic/transports,
// "Security"). A browser lets any page send requests to servers on the user's own machine
// or network. Origin names the site of the page. Host names the server as the page calls
// it: with DNS rebinding a site makes its own name point to a loopback address, after which
// its requests have the server's own origin, but not a loopback name. It does
// not change and is safe for concurrent use.
type Guard struct {
	hosts   []string
	origins []string
}

// NewGuard returns a Guard that serves the values of Host and Origin that are
// listed. Without hosts it serves any, but on loopback addresses only loopback
// names; the server's own origin is always served.
func NewGuard(hosts, origins []string) Guard {
	g := Guard{hosts: lower(hosts), origins: lower(origins)}
	for i, host := range g.hosts {
		if strings.HasSuffix(host, "]") { // an IPv6 address without port
			g.hosts[i] = facts.Hostname(host)
		}
	}
	return g
}

// lower returns the list in lower case and without slashes at the end, with
// which origins are often written down by mistake.
func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return out
}

// Check returns which header r is refused for, host or origin, and the fault in it;
// "" if it is not.
func (g Guard) Check(r *http.Request) (why, fault string) {
	if !g.hostAllowed(r) {
		return "host", fmt.Sprintf("Host %q is not allowed here; the server's option AllowedHosts can list it", r.Host)
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return "", ""
	}
	if len(origins) > 1 {
		return "origin", fmt.Sprintf("there are %d Origin headers; send one", len(origins))
	}
	if !g.originAllowed(strings.ToLower(origins[0]), r) {
		return "origin", fmt.Sprintf("Origin %q is not allowed here; the server's option AllowedOrigins can list it", origins[0])
	}
	return "", ""
}

// hostAllowed checks Host. An entry without a port allows every port. With no
// list only requests that came to a loopback address are checked: other servers
// are reached by names that only their operator knows.
func (g Guard) hostAllowed(r *http.Request) bool {
	if len(g.hosts) > 0 {
		host := strings.ToLower(r.Host)
		return slices.Contains(g.hosts, host) || slices.Contains(g.hosts, facts.Hostname(host))
	}
	return !onLoopback(r) || facts.Loopback(facts.Hostname(r.Host))
}

// originAllowed checks origin, which is in lower case. Beside those listed it
// allows the server's own, that is, the one of Host; on a loopback address any
// origin there, at whatever port, unless hosts are listed.
func (g Guard) originAllowed(origin string, r *http.Request) bool {
	if slices.Contains(g.origins, origin) || slices.Contains(g.origins, "*") {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" and the like
	}
	if onLoopback(r) && len(g.hosts) == 0 {
		return facts.Loopback(u.Hostname())
	}
	return u.Host == strings.ToLower(r.Host)
}

// onLoopback reports whether r reached the server at a loopback address. It
// is false if the address is unknown, as in a request that no http.Server
// has read.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}
