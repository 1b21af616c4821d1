package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth/oauth/internal/outbound"
)

// Client gets, keeps and sends the access tokens for one MCP server. It is safe
// for concurrent use.
type Client struct {
	opts     Options
	server   *url.URL
	outbound *outbound.Client
	nonces   nonces

	// flow is held by whoever changes the token: one refresh, one visit of the
	// user at a time.
	flow   chan struct{}
	loaded bool // under flow: the store has been asked

	mu       sync.Mutex
	token    *record // the newest; what it points to is never changed
	flights  uint64  // flows that have ended
	failure  error   // of the newest flow
	metadata map[string]*serverMetadata
}

// New returns a client for the MCP server with this URL. nil options are those
// of a native application. Nothing is asked of any server before the first
// request. The error lists every problem of the arguments.
func New(serverURL string, options *Options) (*Client, error) {
	opts, server, err := options.complete(serverURL)
	if err != nil {
		return nil, &Error{Step: StepRequest, Problem: "the client cannot be made", Err: err}
	}
	config := outbound.Config{
		Trusted:   append([]*url.URL{server}, opts.Grant.trusts()...),
		Loopback:  outbound.Loopback(server.Hostname()),
		Private:   opts.AllowPrivate,
		Insecure:  opts.AllowInsecure,
		Transport: opts.Outbound,
	}
	return &Client{
		opts:     opts,
		server:   server,
		outbound: outbound.New(config),
		flow:     make(chan struct{}, 1),
		metadata: map[string]*serverMetadata{},
	}, nil
}

// HTTPClient returns an HTTP client that authorizes requests to the MCP server.
// It has no time limit of its own: a request may wait for the user.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: c} }

// CloseIdleConnections closes connections that are not in use, to the MCP server
// and to authorization servers.
func (c *Client) CloseIdleConnections() {
	c.outbound.CloseIdleConnections()
	if closer, ok := c.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// Token returns the current access token and refreshes it first if it is
// expired. It never involves the user: if there is no token and only the user
// can get one, the error is ErrLoginRequired.
func (c *Client) Token(ctx context.Context) (*oauth2.Token, error) {
	rec, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if !rec.usable() {
		if c.opts.Grant.interactive() {
			return nil, &Error{Step: StepToken, URL: c.server.String(), Err: ErrLoginRequired}
		}
		if rec, err = c.login(ctx, rec); err != nil {
			return nil, err
		}
	}
	token := &oauth2.Token{AccessToken: rec.AccessToken, TokenType: rec.TokenType, Expiry: rec.Expiry}
	return token.WithExtra(map[string]any{"scope": rec.Granted.String()}), nil
}

// Login gets a new access token, whether or not there is one. By default that
// opens the user's browser. It asks the MCP server for its challenge first, with
// a GET request without a token.
func (c *Client) Login(ctx context.Context) error {
	stale, err := c.stored(ctx)
	if err != nil {
		return err
	}
	_, err = c.login(ctx, stale)
	return err
}

func (c *Client) login(ctx context.Context, stale *record) (*record, error) {
	since := c.flown()
	ch, err := c.probe(ctx)
	if err != nil {
		return nil, err
	}
	return c.renew(ctx, need{challenge: ch, stale: stale, since: since, anew: true, force: true})
}

// probe asks the MCP server for its challenge. A server that has none for a GET
// request may still have metadata in its well-known places.
func (c *Client) probe(ctx context.Context) (challenge, error) {
	ctx, cancel := context.WithTimeout(ctx, outbound.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.String(), nil)
	if err != nil {
		return challenge{}, &Error{Step: StepRequest, URL: c.server.String(), Err: err}
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.opts.Transport.RoundTrip(req)
	if err != nil {
		return challenge{}, &Error{Step: StepRequest, URL: c.server.String(), Err: plain(err)}
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return challenge{}, nil
	}
	ch := readChallenge(resp.Header)
	return ch, ch.err
}

// Logout revokes the tokens where the authorization server offers that (RFC
// 7009) and forgets them. They are forgotten even if it returns an error, unless
// that is one of the store. What the authorization server knows of the client
// stays.
func (c *Client) Logout(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := c.load(ctx)
	if err != nil || rec == nil {
		return err
	}
	failed := c.revoke(ctx, rec)
	if err := c.forget(ctx, rec); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// lock waits for the flow that is under way and takes its place.
func (c *Client) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case c.flow <- struct{}{}:
		return func() { <-c.flow }, nil
	case <-ctx.Done():
		return nil, &Error{Step: StepAuthorization, URL: c.server.String(), Problem: "gave up waiting for the authorization under way", Err: ctx.Err()}
	}
}

// newest returns the token that is in use, nil if there is none.
func (c *Client) newest() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

func (c *Client) use(rec *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = rec
}

// remember keeps checked metadata for later requests to the same issuer.
func (c *Client) remember(server *serverMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata[server.Issuer] = server
}

// issuerMetadata returns the metadata of an issuer that has been met before,
// maybe by another program.
func (c *Client) issuerMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	c.mu.Lock()
	known := c.metadata[issuer]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	server, err := c.serverMetadata(ctx, issuer)
	if err != nil || server != nil {
		return server, err
	}
	legacy, err := c.legacyAuthority(ctx, challenge{})
	if err != nil {
		return nil, err
	}
	if legacy.server.Issuer != issuer {
		return nil, &Error{Step: StepServer, URL: issuer, Problem: "there is none any more; log in again"}
	}
	return legacy.server, nil
}

// record is a token with what belongs to it, as the store keeps it.
type record struct {
	Issuer       string    `json:"issuer"`
	Resource     string    `json:"resource"`
	ClientID     string    `json:"client_id,omitempty"`
	Grant        string    `json:"grant"`
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"` // Bearer or DPoP
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	Requested    scopes    `json:"requested,omitempty"`
	Granted      scopes    `json:"granted,omitempty"`
	Key          []byte    `json:"dpop_key,omitempty"` // PKCS #8

	key     *dpopKey // of Key
	granted bool     // by a grant, in this program; not loaded, not refreshed
}

// usable says whether the access token is worth sending.
func (r *record) usable() bool {
	return r != nil && r.AccessToken != "" && (r.Expiry.IsZero() || time.Now().Before(r.Expiry))
}

// sent says whether requests carry the access token. They do even if it has
// expired: to a server that also serves strangers, who sends none is one.
func (r *record) sent() bool { return r != nil && r.AccessToken != "" }

// early is an expiry a little before the real one, so that a token does not
// expire on its way.
func early(expiry time.Time) time.Time {
	if expiry.IsZero() {
		return expiry
	}
	return expiry.Add(-min(10*time.Second, time.Until(expiry)/10))
}

// plain takes the method and URL off an error of net/http: Error names the
// place.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
