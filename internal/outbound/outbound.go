// Package outbound sends HTTP requests to addresses that come from a peer. The
// peer could otherwise make this process send requests into a private network.
// So each URL is checked: its scheme and host
// before the request, and the address that the host resolves to when it is
// dialled, so that a name cannot resolve to something else in between.
// Redirects pass the same checks, and the size and the time of responses are
// limited.
//
// The addresses are checked by code.dny.dev/ssrf, which follows the registries
// of IANA for special-purpose addresses. A proxy from the environment resolves
// names by itself, so only hosts that are written as addresses can be checked
// then.
//
// See the section on server-side request forgery in the security best practices
// of the Model Context Protocol, and RFC 9728, section 7.7.
//
// A [Client] is safe for concurrent use and has no goroutines of its own.
package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"code.dny.dev/ssrf"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// Limits that hold for every request.
const (
	MaxBytes     = 1 << 20 // of an answer
	MaxRedirects = 3       // of a GET; a POST is never redirected
	Timeout      = 30 * time.Second
)

// Config says what is allowed. The zero value allows https to public addresses.
type Config struct {
	// Trusted are URLs that the user of the program has named. Their host and
	// port may have any address.
	Trusted []*url.URL
	// Loopback allows loopback addresses, and http to them.
	Loopback bool
	// Private allows every address. It implies Loopback.
	Private bool
	// Insecure allows http to any host.
	Insecure bool
	// Direct takes no proxy from the environment: that would resolve names by itself.
	Direct bool
	// Transport replaces the one that checks addresses when it dials.
	Transport http.RoundTripper
}

// Client sends requests that its Config permits. It is safe for concurrent use.
type Client struct {
	config  Config
	trusted map[string]bool // host:port
	proxies sync.Map        // host:port of proxies that the environment names
	guard   *ssrf.Guardian
	base    http.RoundTripper
	get     *http.Client
	post    *http.Client
}

// New returns a client for a config.
func New(config Config) *Client {
	config.Loopback = config.Loopback || config.Private
	c := &Client{config: config, trusted: map[string]bool{}}
	for _, u := range config.Trusted {
		c.trusted[HostPort(u)] = true
	}
	allowed := []ssrf.Option{ssrf.WithAnyPort()}
	if config.Loopback {
		allowed = append(allowed,
			ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.0/8")),
			ssrf.WithAllowedV6Prefixes(netip.MustParsePrefix("::1/128")))
	}
	c.guard = ssrf.New(allowed...)
	c.base = config.Transport
	if c.base == nil {
		proxy := c.proxy
		if config.Direct {
			proxy = nil
		}
		c.base = &http.Transport{
			Proxy:                  proxy,
			DialContext:            c.dial,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  20 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		}
	}
	c.get = &http.Client{Transport: c, Timeout: Timeout, CheckRedirect: c.follow}
	c.post = &http.Client{Transport: c, Timeout: Timeout, CheckRedirect: refuse}
	return c
}

// Response is a response that has been read to its end. Body has no byte order mark.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get requests a JSON document. It follows up to MaxRedirects redirects.
func (c *Client) Get(ctx context.Context, address string, header http.Header) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	return do(c.get, req)
}

// Post sends a body. It follows no redirect, because bodies contain
// credentials.
func (c *Client) Post(ctx context.Context, address, mediaType string, header http.Header, body []byte) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", mediaType)
	return do(c.post, req)
}

// do sends a request and reads the whole response.
func do(client *http.Client, req *http.Request) (*Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, cause(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, cause(err)
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: jsonx.Document(body)}, nil
}

// cause removes the method and URL that net/http adds to an error: callers name
// the place.
func cause(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// RoundTrip checks the URL of a request, asks for JSON, and limits the body of
// the response to MaxBytes.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.Check(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json")
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &limited{body: resp.Body, left: MaxBytes}
	return resp, nil
}

// CloseIdleConnections closes connections that are not in use.
func (c *Client) CloseIdleConnections() {
	if closer, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// Check returns why no request may be sent to a URL, or nil. It does not
// resolve names.
func (c *Client) Check(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("the scheme is %q, not https", u.Scheme)
	case u.Host == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL has user information in it")
	case u.Scheme == "https":
		return c.checkAddress(u) // a name is checked while it is dialled
	case c.config.Insecure, c.config.Loopback && facts.Loopback(u.Hostname()):
		return nil
	}
	return errors.New("the scheme is http, which only loopback addresses may use, and those only if the MCP server has one itself")
}

// checkAddress checks a host that is written as an address. That is done before
// dialling too, so that nothing else, such as a browser or a proxy, is sent
// there.
func (c *Client) checkAddress(u *url.URL) error {
	if c.config.Private || c.trusted[HostPort(u)] {
		return nil
	}
	address, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return c.checkName(u.Hostname())
	}
	network := "tcp6"
	if address = address.Unmap().WithZone(""); address.Is4() {
		network = "tcp4"
	}
	return prohibited(u.Host, c.guard.Safe(network, netip.AddrPortFrom(address, 443).String(), nil))
}

// checkName refuses names that browsers take for addresses, such as 2130706433,
// 0x7f.1 and "127.0.0.1.", and names of this machine.
func (c *Client) checkName(name string) error {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	hex, isHex := strings.CutPrefix(last, "0x")
	switch {
	case last != "" && !strings.ContainsFunc(last, notDigit), isHex && strings.Trim(hex, "0123456789abcdef") == "":
		return fmt.Errorf("%s is an address in disguise; write it as one", name)
	case last == "localhost" && !c.config.Loopback:
		return prohibited(name, ssrf.ErrProhibitedIP)
	}
	return nil
}

// notDigit reports whether r is not a digit of any script. Browsers turn digits
// of other scripts into ASCII ones.
func notDigit(r rune) bool { return !unicode.IsNumber(r) }

// prohibited returns an error in plain words if err says that an address may
// not be dialled, and err otherwise.
func prohibited(address string, err error) error {
	if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) {
		return fmt.Errorf("%s has a private or reserved address, which a server may not make a client ask; see Options.AllowPrivate", address)
	}
	return err
}

// follow decides about a redirect of a GET. RoundTrip checks its URL.
func (c *Client) follow(req *http.Request, via []*http.Request) error {
	if len(via) > MaxRedirects {
		return fmt.Errorf("more than %d redirects", MaxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("redirected from https to " + req.URL.Scheme)
	}
	return nil
}

// refuse rejects every redirect.
func refuse(*http.Request, []*http.Request) error {
	return errors.New("redirected, which an endpoint that receives credentials must not do")
}

// dial connects to an address, which is checked after the name has been
// resolved unless it is trusted or a proxy.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	_, proxy := c.proxies.Load(address)
	if !c.config.Private && !c.trusted[address] && !proxy {
		dialer.Control = c.guard.Safe
	}
	conn, err := dialer.DialContext(ctx, network, address)
	return conn, prohibited(address, err)
}

// proxy returns the proxy of the environment, as net/http does, and notes its
// address: a proxy may have a private one.
func (c *Client) proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if u != nil {
		c.proxies.Store(HostPort(u), true)
	}
	return u, err
}

// HostPort returns the host and port that a URL is dialled at.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// limited is a body that returns an error once more than left bytes have been
// read.
type limited struct {
	body io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", MaxBytes)
	}
	if len(p) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.body.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", MaxBytes)
	}
	return n, err
}

func (l *limited) Close() error { return l.body.Close() }
