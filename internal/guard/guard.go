// Package guard keeps web pages away from servers that were not meant for
// them, on every transport that begins with an HTTP request.
package guard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard checks the Host and Origin headers, as every revision demands. It does
// not change and is safe for concurrent use.
type Guard struct {
	hosts   []string
	origins []string
}

// New returns a Guard that serves the values of Host and Origin that are
// listed. Without hosts it serves any, but on loopback addresses only loopback
// names; the server's own origin is always served.
func New(hosts, origins []string) Guard {
	g := Guard{hosts: lower(hosts), origins: lower(origins)}
	for i, host := range g.hosts {
		if strings.HasSuffix(host, "]") { // an IPv6 address without port
			g.hosts[i] = hostname(host)
		}
	}
	return g
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return out
}

// Check returns why r is refused, "" if it is not.
func (g Guard) Check(r *http.Request) string {
	if !g.hostAllowed(r) {
		return fmt.Sprintf("Host %q is not allowed here; the server's option AllowedHosts can list it", r.Host)
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return ""
	}
	if len(origins) > 1 {
		return fmt.Sprintf("there are %d Origin headers; send one", len(origins))
	}
	if !g.originAllowed(strings.ToLower(origins[0]), r) {
		return fmt.Sprintf("Origin %q is not allowed here; the server's option AllowedOrigins can list it", origins[0])
	}
	return ""
}

func (g Guard) hostAllowed(r *http.Request) bool {
	if len(g.hosts) > 0 {
		host := strings.ToLower(r.Host)
		return slices.Contains(g.hosts, host) || slices.Contains(g.hosts, hostname(host))
	}
	return !onLoopback(r) || loopbackName(hostname(r.Host))
}

func (g Guard) originAllowed(origin string, r *http.Request) bool {
	if slices.Contains(g.origins, origin) || slices.Contains(g.origins, "*") {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" and the like
	}
	if onLoopback(r) && len(g.hosts) == 0 {
		return loopbackName(u.Hostname())
	}
	return u.Host == strings.ToLower(r.Host)
}

// onLoopback tells whether r reached the server at a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// hostname returns host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func loopbackName(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
