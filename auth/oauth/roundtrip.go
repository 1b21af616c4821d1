package oauth

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxReplay bounds the bodies that are kept to be sent again, in bytes. It
// matters only for requests without GetBody.
const maxReplay = 4 << 20

// RoundTrip sends a request to the MCP server with a token, and authorizes it
// as often as it has to. Requests to other origins, and requests that have an
// Authorization header already, pass through as they are. Redirects are up to
// the http.Client; none takes the token elsewhere.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
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
	attempt := attempt{client: c, req: req, body: body, rec: rec}
	return attempt.run()
}

// attempt is one request on its way through challenges.
type attempt struct {
	client *Client
	req    *http.Request
	body   func() (io.ReadCloser, error)
	rec    *record
	since  uint64 // flights before the request was sent

	renewals, stepUps int
	nonceRetried      bool
}

// maxRenewals is how often one request may have its token replaced after 401:
// once by refreshing, once by a new login.
const maxRenewals = 2

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

// answer does what a challenge asks for, so that the request can be sent again.
func (a *attempt) answer(ch challenge, status int) error {
	ctx, c := a.req.Context(), a.client
	refused := func(step, problem string) error {
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

// send sends the request once, with the token if there is one.
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

// replayable returns a function that gives the body of a request each time it
// is called, and closes the one that the request has.
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

// discard reads what is left of a small answer, so that the connection can be
// used again.
func discard(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
}
