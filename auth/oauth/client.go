package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/outbound"
)

// Client gets, keeps and sends the access tokens for one MCP server. It is safe
// for concurrent use.
type Client struct {
	*setup
	discovery *discovery
	storage   *storage
	registrar *registrar
	endpoints *endpoints

	// flow is held during each change of the token: one refresh, one visit of the
	// user at a time. It has room for one value; see lock.
	flow   chan struct{}
	loaded bool // the store has been read; guarded by flow

	mu sync.Mutex
	// token is the newest one, nil before the first. Its value does not change.
	token   *record // the newest; what it points to is never changed
	flights uint64  // flows that have ended
	failure error   // of the newest flow
}

// setup is what the parts of a client share. It does not change after New,
// apart from nonces, which have a lock of their own.
type setup struct {
	opts     Options
	server   *url.URL
	outbound *outbound.Client
	nonces   nonces
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
		Loopback:  facts.Loopback(server.Hostname()),
		Private:   opts.AllowPrivate,
		Insecure:  opts.AllowInsecure,
		Transport: opts.Outbound,
	}
	shared := &setup{opts: opts, server: server, outbound: outbound.New(config)}
	c := &Client{setup: shared, flow: make(chan struct{}, 1)}
	c.discovery = &discovery{setup: shared, metadata: map[string]*serverMetadata{}}
	c.storage = &storage{shared}
	c.registrar = &registrar{shared, c.storage}
	c.endpoints = &endpoints{shared}
	return c, nil
}

// HTTPClient returns an HTTP client that sends requests to the MCP server with a
// token, and authorizes them as often as it has to. Requests to other origins,
// and requests that have an Authorization header already, pass through as they
// are; no redirect takes the token elsewhere. The client has no time limit of its
// own: a request may wait for the user. Its Transport can be wrapped, and
// CloseIdleConnections closes connections to authorization servers, too.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: authorizing{c}} }

// Extension returns the extension of the specification that the grant belongs to,
// such as "io.modelcontextprotocol/oauth-client-credentials"; "" for none. The
// Transport of HTTPClient has it, too: package client declares it to the server.
// A Transport around that one has to pass it on.
//
// https://modelcontextprotocol.io/extensions/auth/overview
func (c *Client) Extension() string { return c.opts.Grant.extension() }

// authorizing is the Transport of HTTPClient.
type authorizing struct{ *Client }

// CloseIdleConnections is called by that of http.Client.
func (c authorizing) CloseIdleConnections() {
	c.outbound.CloseIdleConnections()
	if closer, ok := c.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (c authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	if origin(req.URL) != origin(c.server) || req.Header.Get("Authorization") != "" {
		return c.opts.Transport.RoundTrip(req)
	}
	body, err := replayable(req)
	if err != nil {
		return nil, &Error{Step: StepRequest, URL: c.server.String(), Err: err}
	}
	rec, err := c.current(req.Context())
	if err != nil {
		return nil, err
	}
	attempt := attempt{client: c.Client, req: req, body: body, rec: rec}
	return attempt.run()
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

// login runs the grant, whatever token there is. stale is the token in use, or
// nil.
func (c *Client) login(ctx context.Context, stale *record) (*record, error) {
	since := c.flown()
	ch, err := c.probe(ctx)
	if err != nil {
		return nil, err
	}
	return c.renew(ctx, need{challenge: ch, stale: stale, since: since, anew: true, force: true})
}

// probe asks the MCP server for its challenge. A server that does not challenge
// a GET request may still have metadata in the well-known places, so that is
// not an error.
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

// ForgetRegistration forgets the client that was registered dynamically with the
// authorization server that the MCP server names now. The next login registers
// a new one. Use it when the page of the authorization server says that it does
// not know the client: only the user sees that. Tokens stay; the authorization
// server decides whether the old client may still refresh them.
func (c *Client) ForgetRegistration(ctx context.Context) error {
	ch, err := c.probe(ctx)
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := c.load(ctx)
	if err != nil {
		return err
	}
	auth, err := c.discovery.discover(ctx, ch, stored.issuer())
	if err != nil {
		return err
	}
	return c.storage.write(ctx, c.storage.clientKey(auth.server.Issuer), nil)
}

// lock waits for the flow that is in progress, or for the end of ctx, and begins
// one. The caller must call unlock. That flow may ask the user, and so the clock
// of the waiting request stops, too.
func (c *Client) lock(ctx context.Context) (unlock func(), err error) {
	unlock = func() { <-c.flow }
	select {
	case c.flow <- struct{}{}:
		return unlock, nil
	default:
	}
	if done, err := attend.Ask(ctx); err == nil {
		defer done(nil)
	}
	select {
	case c.flow <- struct{}{}:
		return unlock, nil
	case <-ctx.Done():
		return nil, &Error{Step: StepAuthorization, URL: c.server.String(), Problem: "gave up waiting for the authorization under way", Err: ctx.Err()}
	}
}

// newest returns the token in use, or nil.
func (c *Client) newest() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// use makes a token the one in use; nil for none. c.flow is held.
func (c *Client) use(rec *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = rec
}

// MetadataDocument returns the Client ID Metadata Document to serve at
// Options.Document.URL. The redirect URIs are those of the application; for a
// native one they are http://127.0.0.1/callback, since authorization servers
// let any port of a loopback address pass (RFC 8252, section 7.3).
func (c *Client) MetadataDocument(redirectURIs ...string) ([]byte, error) {
	doc := c.opts.Document
	if doc == nil || len(redirectURIs) == 0 {
		return nil, &Error{Step: StepRegistration, Problem: "a metadata document needs Options.Document and a redirect URI"}
	}
	meta := c.registrar.codeMetadata(redirectURIs...)
	meta.ClientID = doc.URL
	if doc.Key != nil {
		key, err := publicJWK(doc.Key, doc.KeyID)
		if err != nil {
			return nil, &Error{Step: StepRegistration, Err: err}
		}
		meta.AuthMethod = AuthPrivateKeyJWT
		meta.JWKS = json.RawMessage(`{"keys":[` + string(key) + `]}`)
	}
	return json.MarshalIndent(meta, "", "  ")
}

// Status describes the token that is in use or stored, nil if there is none. It
// asks nothing of any server: whether the token was revoked is unknown.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	rec, err := c.stored(ctx)
	if err != nil || rec == nil {
		return nil, err
	}
	return &Status{
		Issuer: rec.Issuer, ClientID: rec.ClientID, Scopes: slices.Clone(rec.Granted), Expiry: rec.Expiry,
		Refreshable: rec.RefreshToken != "", DPoP: rec.TokenType == tokenTypeDPoP,
	}, nil
}

// attempt is one request on its way through challenges. It is used by the
// goroutine that called RoundTrip.
//
// renewals and stepUps count how often its token was replaced; nonceRetried is
// set if the last refusal was about a nonce, which may happen once in a row.
type attempt struct {
	client *Client
	req    *http.Request
	body   func() (io.ReadCloser, error)
	rec    *record
	since  uint64 // flights before the request was sent

	renewals, stepUps int
	nonceRetried      bool
}

// run sends the request until its token is accepted, or answer gives up.
func (a *attempt) run() (*http.Response, error) {
	for {
		a.since = a.client.flown()
		resp, err := a.send()
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, nil
		}
		ch := readChallenge(resp.Header)
		if ch.foreign || resp.StatusCode == http.StatusForbidden && ch.errorCode != "insufficient_scope" {
			return resp, nil // not a matter of tokens
		}
		discard(resp)
		if ch.err != nil {
			return nil, &Error{Step: StepRequest, URL: a.client.server.String(), Status: resp.StatusCode, Err: ch.err}
		}
		if err := a.answer(ch, resp.StatusCode); err != nil {
			return nil, err
		}
	}
}

// answer does what a challenge demands, so that the request can be sent again.
// It returns an error if nothing more can be done.
func (a *attempt) answer(ch challenge, status int) error {
	ctx, c := a.req.Context(), a.client
	refused := func(step Step, problem string) error {
		return &Error{Step: step, URL: c.server.String(), Code: ch.errorCode, Status: status, Problem: problem}
	}
	var err error
	switch {
	case ch.errorCode == "use_dpop_nonce" && a.rec.sent() && a.rec.key != nil:
		if a.nonceRetried {
			return refused(StepRequest, "the MCP server refuses the nonce that it has given")
		}
		a.nonceRetried = true
		return nil
	case ch.errorCode == "insufficient_scope" && a.rec.sent():
		if a.stepUps >= c.opts.MaxStepUps {
			return refused(StepStepUp, fmt.Sprintf("the MCP server demands more scopes after %d step-ups of one request", a.stepUps))
		}
		a.stepUps++
		a.rec, err = c.stepUp(ctx, need{challenge: ch, stale: a.rec, since: a.since})
	default:
		// A token that was refreshed may be of no use any more; one that was
		// granted for this request is refused for good.
		if a.renewals >= maxRenewals || a.renewals > 0 && a.rec.sent() && a.rec.granted {
			return refused(StepRequest, "the MCP server refuses the token that its authorization server has just issued")
		}
		a.rec, err = c.renew(ctx, need{challenge: ch, stale: a.rec, since: a.since, anew: a.renewals > 0})
		a.renewals++
	}
	a.nonceRetried = false
	return err
}

// send sends the request once, with the token if there is one, and a DPoP proof
// if the token is bound to a key.
func (a *attempt) send() (*http.Response, error) {
	body, err := a.body()
	if err != nil {
		return nil, &Error{Step: StepRequest, URL: a.client.server.String(), Err: err}
	}
	req := a.req.Clone(a.req.Context())
	req.Body = body
	if a.rec.sent() {
		req.Header.Set("Authorization", a.rec.TokenType+" "+a.rec.AccessToken)
		if a.rec.key != nil {
			proof, err := a.rec.key.proof(req.Method, req.URL, a.client.nonces.get(nonceResource, req.URL), a.rec.AccessToken)
			if err != nil {
				body.Close()
				return nil, &Error{Step: StepRequest, URL: a.client.server.String(), Problem: "cannot sign a DPoP proof", Err: err}
			}
			req.Header.Set("DPoP", proof)
		}
	}
	resp, err := a.client.opts.Transport.RoundTrip(req)
	if err == nil {
		a.client.nonces.note(nonceResource, req.URL, resp.Header)
	}
	return resp, err
}

// replayable returns a function that returns the body of a request each time it
// is called. It reads or closes the body that the request has.
func replayable(req *http.Request) (func() (io.ReadCloser, error), error) {
	if req.Body == nil || req.Body == http.NoBody {
		return func() (io.ReadCloser, error) { return http.NoBody, nil }, nil
	}
	defer req.Body.Close()
	if req.GetBody != nil {
		return req.GetBody, nil
	}
	text, err := io.ReadAll(io.LimitReader(req.Body, maxReplay+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxReplay {
		return nil, fmt.Errorf("the body has more than %d bytes and cannot be sent again; set Request.GetBody", maxReplay)
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }, nil
}

// discard reads the rest of a small response, so that the connection can be
// used again. A response that does not end within lastBytes is closed.
func discard(resp *http.Response) {
	timer := time.AfterFunc(lastBytes, func() { resp.Body.Close() })
	defer timer.Stop()
	io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
}

// plain removes the method and URL that net/http adds to an error: Error names
// the place.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// maxReplay bounds, in bytes, the bodies that are kept so that they can be sent
// again. It matters only for requests without GetBody.
const maxReplay = 4 << 20

// maxRenewals is how often the token of one request may be replaced after 401:
// once by refreshing, once by a new grant.
const maxRenewals = 2

// lastBytes is how long reading the rest of a response may take.
const lastBytes = time.Second

// Status describes a token without giving it away.
type Status struct {
	// Issuer is the authorization server that issued it.
	Issuer string
	// ClientID is the client that it was issued to; it may be empty.
	ClientID string
	// Scopes are those that were granted.
	Scopes []string
	// Expiry is when the access token ends; zero means unknown. It may be past.
	Expiry time.Time
	// Refreshable says that there is a refresh token, so that the end of the
	// access token is not that of the login.
	Refreshable bool
	// DPoP says that the token is bound to a key.
	DPoP bool
}
