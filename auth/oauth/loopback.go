package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
)

// Loopback is the UserAgent of native applications (RFC 8252): it opens the
// browser and waits for the redirect on a port of 127.0.0.1.
type Loopback struct {
	// Port is the port to wait on. 0 means the one that the client was
	// registered with or else any; set it if a client was registered beforehand
	// with a fixed one.
	Port int
	// Path is the path of the redirect URI; "/callback" if empty.
	Path string
	// Browse shows a URL to the user; nil means OpenBrowser.
	Browse func(ctx context.Context, url string) error
	// Prompt, if not nil, is called with the URL before it is opened, so that the
	// application can print it. With a Prompt it is not an error if the browser
	// cannot be opened.
	Prompt func(url string)
}

// callbackPath is the path of the redirect URI if Loopback.Path is empty.
const callbackPath = "/callback"

// answered is the page that the browser shows in the end. It repeats nothing of
// the request, which anyone may have made.
const answered = `<!doctype html><meta charset="utf-8"><title>Authorization</title>
<p>The answer has been received. You can close this page and go back to the application.
`

// loopbackVisit waits for one redirect. Its server runs on a goroutine of its
// own until Close, which waits for it. mu guards state; answers has room for
// one value.
type loopbackVisit struct {
	agent    *Loopback
	uri      *url.URL
	listener net.Listener
	server   *http.Server
	served   sync.WaitGroup

	mu      sync.Mutex
	state   string      // of the request; empty until there is one
	answers chan string // the URL of the redirect
}

// Open implements UserAgent: it starts to listen.
func (l *Loopback) Open(ctx context.Context, registered []string) (Visit, error) {
	path := cmp.Or(l.Path, callbackPath)
	listener, err := l.listen(ctx, registered, path)
	if err != nil {
		return nil, fmt.Errorf("cannot wait for the redirect: %w", err)
	}
	v := &loopbackVisit{
		agent: l, listener: listener, answers: make(chan string, 1),
		uri: &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: path},
	}
	v.server = &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	v.served.Go(func() { _ = v.server.Serve(listener) }) // ends with Close, and says no more than that
	return v, nil
}

// listen listens on the configured port, or on the port of a registered
// redirect URI, or on any.
func (l *Loopback) listen(ctx context.Context, registered []string, path string) (net.Listener, error) {
	var config net.ListenConfig
	if l.Port != 0 {
		return config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port)))
	}
	for _, uri := range registered {
		u, err := url.Parse(uri)
		if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Path != path || u.Port() == "" {
			continue
		}
		if listener, err := config.Listen(ctx, "tcp4", u.Host); err == nil {
			return listener, nil
		}
	}
	return config.Listen(ctx, "tcp4", "127.0.0.1:0")
}

// RedirectURI implements Visit.
func (v *loopbackVisit) RedirectURI() string { return v.uri.String() }

// Authorize implements Visit. It returns when the redirect arrives or ctx ends.
func (v *loopbackVisit) Authorize(ctx context.Context, authorizeURL string) (string, error) {
	u, err := url.Parse(authorizeURL)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	v.state = u.Query().Get("state")
	v.mu.Unlock()
	if v.agent.Prompt != nil {
		v.agent.Prompt(authorizeURL)
	}
	browse := v.agent.Browse
	if browse == nil {
		browse = OpenBrowser
	}
	if err := browse(ctx, authorizeURL); err != nil && v.agent.Prompt == nil {
		return "", fmt.Errorf("cannot open the browser, use Manual where there is none: %w", err)
	}
	select {
	case redirected := <-v.answers:
		return redirected, nil
	case <-ctx.Done():
		return "", fmt.Errorf("the user has not come back: %w", ctx.Err())
	}
}

// ServeHTTP receives the redirect. A request from another page or program has a
// different state and does not end the visit.
func (v *loopbackVisit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet || r.URL.Path != v.uri.Path || r.Host != v.uri.Host {
		http.NotFound(w, r)
		return
	}
	v.mu.Lock()
	state := v.state
	v.mu.Unlock()
	if state == "" || r.URL.Query().Get("state") != state {
		http.Error(w, "This is not the answer to a request of this application.", http.StatusBadRequest)
		return
	}
	redirected := *v.uri
	redirected.RawQuery = r.URL.RawQuery
	select {
	case v.answers <- redirected.String():
	default: // the first answer counts
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(answered))
}

// Close implements Visit. It stops listening after the page of the answer has
// been delivered, or after a second.
func (v *loopbackVisit) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := v.server.Shutdown(ctx)
	if err != nil {
		err = v.server.Close()
	}
	v.served.Wait()
	return err
}

// Manual is the UserAgent for machines without a browser: it shows the URL, and
// the user gives back the URL that the browser ended at, which may well be a
// page that could not be loaded.
type Manual struct {
	// RedirectURI is where the browser ends; "http://127.0.0.1/callback" if
	// empty.
	RedirectURI string
	// Ask shows a URL to the user and returns the URL that the user gives back.
	// See AskUser.
	Ask func(ctx context.Context, authorizeURL string) (redirected string, err error)
}

// Open implements UserAgent: it checks the fields.
func (m *Manual) Open(context.Context, []string) (Visit, error) {
	if m.Ask == nil {
		return nil, errors.New("Manual.Ask is nil")
	}
	uri := cmp.Or(m.RedirectURI, "http://127.0.0.1"+callbackPath)
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "https" && !(u.Scheme == "http" && facts.Loopback(u.Hostname())) {
		return nil, fmt.Errorf("Manual.RedirectURI %q is neither https nor loopback", uri)
	}
	return &manualVisit{ask: m.Ask, uri: uri}, nil
}

// manualVisit is the Visit of Manual, which leaves everything to Manual.Ask.
type manualVisit struct {
	ask func(context.Context, string) (string, error)
	uri string
}

// RedirectURI, Authorize and Close implement Visit.
func (v *manualVisit) RedirectURI() string { return v.uri }

func (v *manualVisit) Authorize(ctx context.Context, authorizeURL string) (string, error) {
	return v.ask(ctx, authorizeURL)
}

func (v *manualVisit) Close() error { return nil }
