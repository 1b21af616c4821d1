package events

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/outbound"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
)

// Numbers of requests to endpoints.
const (
	postsAtOnce     = 64               // of a replica
	postsOfOne      = 16               // of a principal
	postTimeout     = 10 * time.Second // for one, until the header of the response is there
	postLate        = time.Second      // how long a Transport may take to return after that
	maxResponse     = 4 << 10          // bytes that are read of a response
	maxChallenge    = 64 << 10         // bytes that are read of the response to a challenge
	maxRetryAfter   = 5 * time.Minute  // the longest pause that an endpoint can ask for
	attempts        = 5                // of one event
	attemptsRefused = 4                // of one event, if the endpoint answers with 4xx
	attemptsTime    = 15 * time.Minute // for all of them
)

// pauses are those between the attempts, plus or minus 20 %.
var pauses = [attempts - 1]time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// sender sends requests to endpoints. It is safe for concurrent use.
type sender struct {
	outbound *outbound.Client
	client   *http.Client
	users    bool // the transport is that of the user
	turns    *turns
}

// newSender returns a sender. transport replaces the one that checks addresses; it may be nil.
func newSender(loopback bool, transport http.RoundTripper) *sender {
	client := outbound.New(outbound.Config{Loopback: loopback, Direct: true, Transport: transport})
	return &sender{
		outbound: client, users: transport != nil, turns: newTurns(postsAtOnce, postsOfOne),
		client: &http.Client{Transport: client, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// outcome is what became of a request.
type outcome struct {
	status int           // 0 without a response
	reason string        // one of wire's; "" if the endpoint has accepted it
	after  time.Duration // that the endpoint asks for before the next attempt; 0 if it asks for none
	body   []byte
}

// accepted reports whether the endpoint has taken what was sent.
func (o *outcome) accepted() bool { return o.reason == "" }

// post sends a signed body, for which the principal has a turn, and reads at most most bytes
// of the response. The error is that of ctx.
func (s *sender) post(ctx context.Context, to *Subscription, id string, body []byte, most int) (out outcome, err error) {
	limited, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return outcome{reason: wire.ReasonRefused}, nil
	}
	now := time.Now()
	for _, h := range [][2]string{
		{"Content-Type", "application/json"}, {wire.HeaderWebhookID, id}, {wire.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10)},
		{wire.HeaderWebhookSignature, wire.WebhookSignature(id, now, body, to.keys(now)...)}, {wire.HeaderSubscriptionID, to.ID},
	} {
		req.Header.Set(h[0], h[1])
	}
	if !s.users {
		return s.do(ctx, req, most)
	}
	type answer struct {
		out outcome
		err error
	}
	answered := make(chan answer, 1)
	inflight.Within(limited, postLate, func() {
		var a answer
		if safely.Apart(func() { a.out, a.err = s.do(ctx, req, most) }) != nil {
			a = answer{out: outcome{reason: wire.ReasonRefused}}
		}
		answered <- a
	})
	select {
	case a := <-answered:
		return a.out, a.err
	default:
		return outcome{reason: wire.ReasonTimeout}, ctx.Err()
	}
}

// do sends one request.
func (s *sender) do(ctx context.Context, req *http.Request, most int) (out outcome, err error) {
	resp, err := s.client.Do(req)
	if ctx.Err() != nil {
		if err == nil {
			resp.Body.Close()
		}
		return out, context.Cause(ctx)
	}
	if err != nil {
		return outcome{reason: reasonOf(err)}, nil
	}
	defer resp.Body.Close()
	out.status = resp.StatusCode
	out.body, _ = io.ReadAll(io.LimitReader(resp.Body, int64(most))) // the header counts
	switch {
	case out.status >= 500:
		out.reason = wire.ReasonServer
	case out.status < 200 || out.status > 299:
		out.reason = wire.ReasonClient
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		out.after = min(time.Duration(min(seconds, 1e6))*time.Second, maxRetryAfter)
	}
	return out, nil
}

// reasonOf returns the word for why there is no response.
func reasonOf(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	var slow net.Error
	switch {
	case certificate, authority, host, alert, record, strings.HasPrefix(err.Error(), "tls: "), strings.HasPrefix(err.Error(), "remote error: tls: "):
		return wire.ReasonTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return wire.ReasonTimeout
	}
	return wire.ReasonRefused
}

// pause returns how long to wait after an attempt, counting from 1, which began a while after
// the first. If there is no further one, why says so, in a word for observers.
func (o *outcome) pause(attempt int, since time.Duration) (pause time.Duration, why string) {
	switch o.status {
	case http.StatusGone:
		return 0, droppedGone
	case http.StatusRequestEntityTooLarge:
		return 0, droppedTooLarge
	}
	refused := o.status >= 400 && o.status < 500 && o.status != http.StatusRequestTimeout && o.status != http.StatusTooEarly && o.status != http.StatusTooManyRequests
	if refused && attempt >= attemptsRefused {
		return 0, droppedRefused
	}
	if attempt >= attempts {
		return 0, droppedRetries
	}
	if pause = o.after; pause == 0 {
		pause = around(pauses[attempt-1])
	}
	if since+pause > attemptsTime {
		return 0, droppedRetries
	}
	return pause, ""
}

// around returns d plus or minus 20 %.
func around(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5) }
