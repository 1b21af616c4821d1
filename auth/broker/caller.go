package broker

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/frame"
)

// maxRefusal limits what is read of the body of a 401, in bytes, so that its
// connection can be used again.
const maxRefusal = 64 << 10

// caller is the http.RoundTripper of Service.Client: it adds the token of the caller
// of a Frame to requests to Origins. It is safe for concurrent use.
type caller struct {
	s *Service
	f *frame.Frame

	mu    sync.Mutex
	token *oauth2.Token
}

// current returns a token that is valid, other than the one that was refused; "" for
// none. It waits no longer than the request and the call.
func (c *caller) current(ctx context.Context, refused string) (*oauth2.Token, error) {
	c.mu.Lock()
	t := c.token
	c.mu.Unlock()
	if t.AccessToken != refused && t.Valid() {
		return t, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.f, cancel)()
	t, err := c.s.b.vault.replace(ctx, c.s.up, c.f.Principal(), c.s.key, refused)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.token = t
	c.mu.Unlock()
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (c *caller) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.f.Err(); err != nil {
		closeBody(r)
		return nil, c.s.failed(err)
	}
	if !sendable(r.URL) || !slices.Contains(c.s.opts.Origins, originOf(r.URL)) || r.Header.Get("Authorization") != "" {
		return c.s.opts.Transport.RoundTrip(r)
	}
	t, err := c.current(r.Context(), "")
	if err != nil {
		closeBody(r)
		return nil, c.s.unusable(c.f, err)
	}
	res, err := c.send(r, t)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return res, nil // it cannot be sent again
		}
		if again.Body, err = r.GetBody(); err != nil {
			return res, nil
		}
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxRefusal)
	_ = res.Body.Close()
	if t, err = c.current(r.Context(), t.AccessToken); err != nil {
		closeBody(again)
		return nil, c.s.unusable(c.f, err)
	}
	if res, err = c.send(again, t); err == nil && res.StatusCode == http.StatusUnauthorized {
		_ = res.Body.Close()
		return nil, c.s.missing(c.f, errRefused)
	}
	return res, err
}

// send sends a request with a token.
func (c *caller) send(r *http.Request, t *oauth2.Token) (*http.Response, error) {
	r = r.Clone(r.Context())
	t.SetAuthHeader(r)
	return c.s.opts.Transport.RoundTrip(r)
}

// closeBody closes the body of a request that is not sent, as a RoundTripper has to.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
