// Package origin sends HTTP requests to one server and to no other: redirects
// that lead to another origin are refused, so that neither messages nor
// credentials go there. Redirects within the origin are followed with method
// and body, up to maxRedirects.
//
// It also has what the HTTP links share: reading refusals (answer.go), and
// [Shown], the form in which URLs are named in errors and logs. Package openapi
// calls HTTP APIs with it; see [Options.API].
//
// A [Server] is safe for concurrent use. Code of the user in it, a
// http.RoundTripper, a cookie jar or a header function, runs in the guard.
package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
)

// Options are the options of a Server. The zero value has the defaults.
type Options struct {
	// Client gives its Transport, Jar, Timeout and CheckRedirect. nil means
	// one that keeps connections for as many calls as are made at once.
	Client     *http.Client
	Header     http.Header                                // of every request
	HeaderFunc func(context.Context, *http.Request) error // changes the headers of a request
	MaxMessage int                                        // bytes; 0 means facts.MaxMessage
	// API is set for HTTP APIs that handlers of a server call. Only redirects of GET and
	// HEAD are followed; any other is the response. Code of the user runs on the
	// goroutine of the handler, which is in the guard.
	API bool
}

// Server is the server that requests go to. It is safe for concurrent use and
// does not change.
type Server struct {
	url        *url.URL
	header     http.Header
	headerFunc func(context.Context, *http.Request) error
	client     http.Client
	foreign    bool // client and headerFunc have code of the user's, for the guard
	api        bool
	maxMessage int
}

// maxRedirects bounds the redirects that one request follows.
const (
	maxRedirects = 3
	idleConns    = 128 // kept for calls at the same time
)

// New returns the server with a URL. User and password in the URL become a
// header for basic authentication.
func New(address string, opts Options) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the server is not valid: %w", inside(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the address of an HTTP server: it must begin with http:// or https:// and a host", Shown(u))
	}
	u.Fragment, u.RawFragment = "", ""
	s := &Server{url: u, header: opts.Header.Clone(), headerFunc: opts.HeaderFunc, maxMessage: opts.MaxMessage, api: opts.API}
	if s.header == nil {
		s.header = http.Header{}
	}
	if user := u.User; user != nil {
		password, _ := user.Password()
		r := http.Request{Header: s.header}
		r.SetBasicAuth(user.Username(), password)
		u.User = nil
	}
	if s.maxMessage <= 0 {
		s.maxMessage = facts.MaxMessage
	}
	if opts.Client != nil {
		s.client = *opts.Client
		if s.client.Transport == nil {
			s.client.Transport = http.DefaultTransport
		}
	} else {
		s.client.Transport = newTransport()
	}
	_, ours := s.client.Transport.(*http.Transport)
	s.foreign = !s.api && (!ours || s.headerFunc != nil || s.client.Jar != nil || s.client.CheckRedirect != nil)
	return s, nil
}

// newTransport returns a transport that keeps enough connections for many calls
// at a time.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
	}
}

// LimitOption is the name of the option that raises MaxMessage, for errors.
const LimitOption = "HTTPOptions.MaxMessage"

// MaxMessage returns the greatest length of a message, in bytes.
func (s *Server) MaxMessage() int { return s.maxMessage }

// Timeout returns the timeout of the user's http.Client, 0 if it has none.
func (s *Server) Timeout() time.Duration { return s.client.Timeout }

// String names the server: its URL as Shown has it.
func (s *Server) String() string { return Shown(s.url) }

// seed makes the marks of Shown, which mean nothing outside of this process.
var seed = sync.OnceValue(maphash.MakeSeed)

// Shown returns a URL as errors, logs and names have it. Passwords and the
// values of the query are left out, because many servers take their keys there;
// a mark in the place of each value distinguishes it from other values within
// this process.
func Shown(u *url.URL) string {
	shown := *u
	parts := queryParts(u.RawQuery)
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			name, value = "", part
		}
		parts[i] = fmt.Sprintf("%s=*%08x", name, uint32(maphash.String(seed(), value)))
	}
	shown.RawQuery = strings.Join(parts, "&")
	return shown.Redacted()
}

// Header returns the headers of every request, which the caller may change.
func (s *Server) Header() http.Header { return s.header.Clone() }

// CloseIdle closes connections that wait for another request.
func (s *Server) CloseIdle() { _ = safely.Apart(s.client.CloseIdleConnections) }

// Resolve returns the URL that a reference from the server means. A URL of
// another origin is an error.
func (s *Server) Resolve(reference string) (*url.URL, error) {
	u, err := s.url.Parse(reference)
	if err != nil {
		return nil, fmt.Errorf("the server names an address that is not valid: %w", inside(err))
	}
	if !same(s.url, u) {
		return nil, fmt.Errorf("the server %s names the address %s, a different origin: nothing is sent there", s, Shown(u))
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return u, nil
}

// inside returns why an address is not valid, without the address: keys are in it.
func inside(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// same reports whether two URLs have the same origin (RFC 6454).
func same(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// port returns the port of an http or https URL.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// Request is a request to send.
type Request struct {
	Method string
	URL    *url.URL    // nil means the server's; Resolve makes others
	Header http.Header // all of them; Do does not change it
	Body   []byte      // nil for none
	// Prepare changes headers and query of each attempt, last; nil for none. It is for
	// servers with Options.API.
	Prepare func(*http.Request) error
}

// body is the body of a request. It has a length, so that net/http need not
// chunk it.
type body struct{ bytes.Reader }

// Close implements io.Closer.
func (*body) Close() error { return nil }

// make returns the request for net/http, with cookies and after the header
// function.
func (s *Server) make(ctx context.Context, r *Request) (*http.Request, error) {
	u := r.URL
	if u == nil {
		u = s.url
	}
	req := (&http.Request{
		Method: r.Method, URL: u, Host: u.Host, Header: r.Header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if host := r.Header["Host"]; len(host) > 0 {
		req.Host = host[0]
	}
	if r.Body != nil {
		text := r.Body
		fresh := func() (io.ReadCloser, error) {
			b := &body{}
			b.Reset(text)
			return b, nil
		}
		req.Body, _ = fresh()
		req.GetBody, req.ContentLength = fresh, int64(len(text)) // lets net/http try again on another connection
	}
	if s.headerFunc == nil && s.client.Jar == nil && r.Prepare == nil {
		return req, nil
	}
	req.Header = maps.Clone(r.Header)
	for name, values := range req.Header {
		req.Header[name] = slices.Clone(values)
	}
	if s.client.Jar != nil {
		for _, cookie := range s.client.Jar.Cookies(u) {
			req.AddCookie(cookie)
		}
	}
	kept := *u
	req.URL = &kept
	if s.headerFunc != nil {
		if err := s.headerFunc(ctx, req); err != nil {
			return nil, fmt.Errorf("the header function failed: %w", err)
		}
	}
	if r.Prepare != nil {
		if err := r.Prepare(req); err != nil {
			return nil, err
		}
	}
	if req.URL == nil || !same(u, req.URL) {
		return nil, fmt.Errorf("the header function changed the address to %s, a different origin", Shown(req.URL))
	}
	return req, nil
}

// Do sends a request, and again where a redirect within the origin leads. The
// caller closes the body of the response.
func (s *Server) Do(ctx context.Context, r *Request) (*http.Response, error) {
	if !s.foreign {
		return s.do(ctx, r)
	}
	// Users' code, and on goroutines of the client, which must not end with it.
	var res *http.Response
	err := safely.Try(func() (err error) { res, err = s.do(ctx, r); return err })
	if failure, ok := errors.AsType[*safely.Failure](err); ok {
		return nil, fmt.Errorf("%s %s: %w", r.Method, s, failure.Detail())
	}
	if err == nil {
		res.Body = guardedBody{res.Body}
	}
	return res, err
}

// guardedBody is the body of a response from a user's http.RoundTripper. A Read or
// Close that panics returns an error.
type guardedBody struct{ body io.ReadCloser }

// Read implements io.Reader.
func (g guardedBody) Read(p []byte) (n int, err error) {
	if failure := safely.Call(func() { n, err = g.body.Read(p) }); failure != nil {
		return 0, safely.Known(failure)
	}
	return n, err
}

// Close implements io.Closer.
func (g guardedBody) Close() (err error) {
	if failure := safely.Call(func() { err = g.body.Close() }); failure != nil {
		return safely.Known(failure)
	}
	return err
}

// do is Do without the guard. It follows redirects itself, as http.Client would
// turn some requests into a GET without a body, and go to other origins. The
// Timeout of the user's http.Client does not hold here; httplink applies it.
func (s *Server) do(ctx context.Context, r *Request) (*http.Response, error) {
	req, err := s.make(ctx, r)
	if err != nil {
		return nil, err
	}
	var via []*http.Request
	for {
		res, err := s.client.Transport.RoundTrip(req)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			err = Hidden(err, req)
			return nil, fmt.Errorf("%s %s: %w", req.Method, Shown(req.URL), err)
		}
		if res.Request == nil { // of an http.RoundTripper of the user
			res.Request = req
		}
		if s.client.Jar != nil {
			if cookies := res.Cookies(); len(cookies) > 0 {
				s.client.Jar.SetCookies(req.URL, cookies)
			}
		}
		location := res.Header.Get("Location")
		if res.StatusCode/100 != 3 || res.StatusCode == http.StatusNotModified || location == "" {
			return decoded(res)
		}
		if s.api && !s.leads(req, location, len(via)) {
			return decoded(res)
		}
		next, err := s.follow(ctx, r, req, res, location, append(via, req))
		switch {
		case errors.Is(err, http.ErrUseLastResponse):
			return res, nil
		case err != nil:
			status := Status(res)
			status.Err = err
			return nil, status
		}
		Discard(res.Body)
		via, req = append(via, req), next
	}
}

// leads reports whether a redirect of an API is followed.
func (s *Server) leads(req *http.Request, location string, followed int) bool {
	target, err := req.URL.Parse(location)
	return err == nil && same(s.url, target) && followed < maxRedirects && (req.Method == http.MethodGet || req.Method == http.MethodHead)
}

// decoded returns a response, or an error if its body has an encoding: package net/http
// asks for gzip, and has undone it.
func decoded(res *http.Response) (*http.Response, error) {
	encoding := strings.Join(res.Header["Content-Encoding"], ", ")
	if res.StatusCode/100 != 2 || encoding == "" || strings.EqualFold(encoding, "identity") {
		return res, nil
	}
	status := Status(res)
	status.Body, status.Err = nil, fmt.Errorf("its Content-Encoding is %q, which the client did not ask for", encoding)
	return nil, status
}

// follow returns the request for the target of a redirect, with the method, the
// headers and the body of r: a message that was moved is still to be delivered.
// via are the requests so far. An error is what the caller of Do gets in place
// of the response, unless it is http.ErrUseLastResponse, as CheckRedirect may
// say.
func (s *Server) follow(ctx context.Context, r *Request, req *http.Request, res *http.Response, location string, via []*http.Request) (*http.Request, error) {
	target, err := req.URL.Parse(location)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it redirects to an address that is not valid: %w", inside(err))
	case !same(s.url, target):
		return nil, fmt.Errorf("it redirects to %s, a different origin: nothing is sent there; if you trust it, connect to that address", Shown(target))
	case res.StatusCode == http.StatusSeeOther && req.Method != http.MethodGet:
		return nil, fmt.Errorf("it redirects to %s without the message; connect to the address of its MCP endpoint", Shown(target))
	case len(via) > maxRedirects:
		return nil, fmt.Errorf("it redirects more than %d times, now to %s", maxRedirects, Shown(target))
	}
	target.User = nil
	again := *r
	again.URL = target
	next, err := s.make(ctx, &again)
	if err != nil {
		return nil, err
	}
	if s.client.CheckRedirect != nil {
		if err := s.client.CheckRedirect(next, via); err != nil {
			return nil, err
		}
	}
	return next, nil
}
