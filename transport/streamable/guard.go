package streamable

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard keeps web pages away from servers that were not meant for them: by
// the Host and Origin headers, as every revision demands.
type guard struct {
	hosts   []string
	origins []string
}

func newGuard(hosts, origins []string) guard {
	g := guard{hosts: lower(hosts), origins: lower(origins)}
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

// check returns why r is refused, "" if it is not.
func (g guard) check(r *http.Request) string {
	if !g.hostAllowed(r) {
		return fmt.Sprintf("Host %q is not allowed here", r.Host)
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return ""
	}
	if len(origins) > 1 || !g.originAllowed(strings.ToLower(origins[0]), r) {
		return fmt.Sprintf("Origin %q is not allowed here", origins)
	}
	return ""
}

func (g guard) hostAllowed(r *http.Request) bool {
	if len(g.hosts) > 0 {
		host := strings.ToLower(r.Host)
		return slices.Contains(g.hosts, host) || slices.Contains(g.hosts, hostname(host))
	}
	return !onLoopback(r) || loopbackName(hostname(r.Host))
}

func (g guard) originAllowed(origin string, r *http.Request) bool {
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
