// Package browser shows a page of this program to the browser of its user, and to nothing
// else: a listener on the loopback address, a link with a code that is good once, a key
// that the page gets for it, and the guards before all requests.
//
// Protection: the page and its files are not secret, and any program on this machine may
// read them. All else is below /api/ and wants the key, which is in no cookie and no URL,
// so that neither pages of other ports and sites nor programs that listen there have it.
// Out of reach of this package are extensions of the browser that may read every page,
// debuggers, and the administrator of the machine.
package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are the settings of a Listener.
type Options struct {
	// Port is tried first; 0, or one that is taken, means any that is free.
	Port int
	// Origins are further origins that the page may be opened at, such as that of
	// a tunnel, https://name-8080.example.dev: exactly these, as Host, too.
	Origins []string
	// Page makes what serves GET of all but /api/, to all clients. frames is the origin
	// of Frames, "" without.
	Page func(frames string) http.Handler
	// Frames makes the handler of the one document that the page shows in frames: GET of /
	// at a port of its own, and thus another origin. It has no secrets and takes no key.
	// pages are the origins of the page. nil disables the port; FramesPort is like Port.
	Frames     func(pages []string) http.Handler
	FramesPort int
	// API serves what is below /api/, to the page. A request body has at most
	// MaxBody bytes.
	API http.Handler
	// Tell says something to the user, in the terminal. Links are secrets: they
	// belong into no log.
	Tell func(text string)
	// Guards are before all requests; nil means Guards(). Tests leave some out.
	Guards []Guard
}

// MaxBody is how long the body of a request may be, in bytes.
const MaxBody = 32 << 20

// policy is the Content-Security-Policy of the page. Nothing is loaded from elsewhere, no
// text becomes code or markup, and a frame can only be one of the port of frames, wherever
// it navigates to. No policy keeps scripts of a frame from WebRTC.
func policy(frames string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; media-src blob:; " +
		"frame-src " + cmp.Or(frames, "'none'") + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// Listener serves the page. All methods are safe for concurrent use.
type Listener struct {
	options Options
	policy  string
	page    http.Handler
	frames  *Listener // of another port; nil without
	listen  net.Listener
	server  *http.Server
	keys    keys
	own     string          // the origin
	origins map[string]bool // it and the further ones
	hosts   map[string]bool // of the origins
}

// Listen opens a listener on 127.0.0.1, which serves when Serve is called.
func Listen(o Options) (*Listener, error) {
	l := &Listener{options: o, origins: map[string]bool{}, hosts: map[string]bool{}}
	if l.options.Guards == nil {
		l.options.Guards = Guards()
	}
	for _, text := range o.Origins {
		origin, host, err := Origin(text)
		if err != nil {
			return nil, err
		}
		l.origins[origin], l.hosts[host] = true, true
	}
	if err := l.open(o.Port, l.serve); err != nil {
		return nil, err
	}
	l.origins[l.own] = true
	frames := ""
	if o.Frames != nil {
		l.frames = &Listener{options: Options{Guards: l.options.Guards}, hosts: map[string]bool{}}
		if err := l.frames.open(o.FramesPort, l.frames.serveFrame); err != nil {
			return nil, errors.Join(err, l.listen.Close())
		}
		frames, l.frames.page = l.frames.own, o.Frames(slices.Sorted(maps.Keys(l.origins)))
	}
	l.policy, l.page = policy(frames), o.Page(frames)
	return l, nil
}

// open opens a port, and another one if it is taken.
func (l *Listener) open(port int, serve http.HandlerFunc) (err error) {
	if l.listen, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err != nil && port != 0 {
		l.listen, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	host := l.listen.Addr().String()
	l.own = "http://" + host
	l.hosts[host] = true
	l.server = &http.Server{Handler: serve, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ConnContext: withPeer}
	return nil
}

// Origin returns an origin as browsers write it, and its host with the port that
// Host has.
func Origin(text string) (origin, host string, err error) {
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.TrimSuffix(u.Path, "/") != "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(u.Host, "*") {
		return "", "", fmt.Errorf("%q is not an origin; write it as in the address bar, without a path: https://name-8080.example.dev", text)
	}
	host = strings.TrimSuffix(u.Host, map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	return u.Scheme + "://" + host, host, nil
}

// Links are the addresses to open, with a code that is good once: that of the
// listener, then those of Options.Origins.
func (l *Listener) Links() []string {
	code := l.keys.link()
	links := []string{l.own + "/#k=" + code}
	for _, text := range l.options.Origins {
		if origin, _, err := Origin(text); err == nil && origin != l.own {
			links = append(links, origin+"/#k="+code)
		}
	}
	return links
}

// Serve serves until ctx ends, or until a port fails. Requests that are in progress then
// are cut off.
func (l *Listener) Serve(ctx context.Context) error {
	all := []*Listener{l}
	if l.frames != nil {
		all = append(all, l.frames)
	}
	served := make(chan error, len(all))
	for _, one := range all {
		go func() { served <- one.server.Serve(one.listen) }()
	}
	var err error
	ended := 0
	select {
	case err = <-served:
		ended++
	case <-ctx.Done():
	}
	for _, one := range all {
		err = errors.Join(err, one.server.Close())
	}
	for ; ended < len(all); ended++ {
		if last := <-served; !errors.Is(last, http.ErrServerClosed) {
			err = errors.Join(err, last)
		}
	}
	return err
}

// Close closes a listener that Serve was not called for.
func (l *Listener) Close() error {
	if l.frames != nil {
		return errors.Join(l.listen.Close(), l.frames.listen.Close())
	}
	return l.listen.Close()
}

// serveFrame serves the document of frames, which sets a policy of its own.
func (l *Listener) serveFrame(w http.ResponseWriter, r *http.Request) {
	common(w.Header())
	for _, guard := range l.options.Guards {
		if refusal := guard.check(l, r); refusal != nil {
			refuse(w, refusal.status, refusal.why)
			return
		}
	}
	if r.Method != http.MethodGet || r.URL.Path != "/" {
		refuse(w, http.StatusNotFound, "nothing is here but the document of frames")
		return
	}
	l.page.ServeHTTP(w, r)
}

// common sets the headers of both ports.
func common(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-DNS-Prefetch-Control", "off")
	h.Set("Cache-Control", "no-store")
}

func (l *Listener) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	common(h)
	h.Set("Content-Security-Policy", l.policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, ended := l.keys.current() // before the guards look at it
	for _, guard := range l.options.Guards {
		if refusal := guard.check(l, r); refusal != nil {
			refuse(w, refusal.status, refusal.why)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	switch {
	case r.URL.Path == keyPath:
		l.trade(w, r)
	case isAPI(r):
		l.answer(w, r, ended)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w, http.StatusMethodNotAllowed, "only GET here")
	default:
		l.page.ServeHTTP(w, r)
	}
}

// answer answers the page. Requests in progress end with their key, even if the
// response is not read.
func (l *Listener) answer(w http.ResponseWriter, r *http.Request, ended <-chan struct{}) {
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	watch.Go(func() {
		select {
		case <-ended:
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) // a connection of this server has one
			cancel()
		case <-ctx.Done():
		}
	})
	l.options.API.ServeHTTP(w, r.WithContext(ctx))
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
