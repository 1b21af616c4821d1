package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// do sends a request and returns its result: from the cache, after as many
// rounds as the server wants, and again where that is safe.
func (c *Client) do(ctx context.Context, r *request) (json.RawMessage, error) {
	result, err := c.attempt(ctx, r)
	for again := 0; err != nil && again < 2; again++ {
		if !c.again(ctx, r, err) {
			break
		}
		result, err = c.attempt(ctx, r)
	}
	return result, wrap(r.op, r.method, r.name, err)
}

// again tells whether a request that failed is to be sent once more, after
// doing what that needs.
func (c *Client) again(ctx context.Context, r *request, err error) bool {
	var expired *expiredError
	var fault *protocol.Error
	var own *Error
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &expired) && c.opts.NoReconnect && r.options.noRetry:
		c.lost(expired.conn, expired)
		return false
	case errors.As(err, &expired):
		first := !r.renewed
		r.renewed = true
		renewed := c.renew(ctx, expired.conn)
		return renewed == nil && first && !r.options.noRetry && c.harmless(r)
	case errors.As(err, &fault) && fault.Code == protocol.CodeHeaderMismatch && r.method == protocol.MethodToolsCall:
		// It was refused before it ran. The tool's schema is another by now.
		if r.options.noRetry || r.refreshed {
			return false
		}
		tool, err := c.tools.refresh(ctx, c, r.name)
		if err != nil || tool == nil {
			return false
		}
		r.tool, r.refreshed = tool, true
		return true
	case errors.As(err, &fault) && fault.Code == codeURLRequired:
		// It was refused before it ran.
		if r.options.noRetry || r.visited {
			return false
		}
		r.visited = true
		return c.visit(ctx, fault)
	case errors.As(err, &own) && own.lost && own.kind == nil:
		// A connection that was kept, perhaps, which the server has closed.
		first := !r.resent
		r.resent = true
		return first && !slow(err) && !r.options.noRetry && c.harmless(r)
	case errors.As(err, &own) && own.lost && own.kind == ErrClosed:
		if r.options.noRetry || !c.harmless(r) {
			return false
		}
		_, err := c.current(ctx)
		return err == nil
	}
	return false
}

// harmless tells whether sending a request twice does nothing that once does
// not.
func (c *Client) harmless(r *request) bool {
	if r.safe || r.options.idempotent {
		return true
	}
	if r.method != protocol.MethodToolsCall {
		return false
	}
	tool := cmp.Or(r.tool, c.tools.get(r.name))
	return tool != nil && tool.harmless()
}

// expiredError is the error of a request whose session is gone.
type expiredError struct {
	conn *connection
	err  error
}

func (e *expiredError) Error() string { return e.err.Error() }
func (e *expiredError) Unwrap() error { return e.err }

// attempt sends a request on the connection that there is.
func (c *Client) attempt(ctx context.Context, r *request) (json.RawMessage, error) {
	conn, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.offered(conn, r); err != nil {
		return nil, err
	}
	cached := r.cache && !c.opts.NoCache && conn.revision().Has(protocol.CacheHints) && r.options.header == nil && r.options.meta == nil &&
		r.options.answers == nil && r.options.state == "" // what comes of a round is kept for nobody
	if cached && !r.options.noCache {
		if result, ok := c.opts.Cache.get(c.server, c.owner, r.method, string(r.members)); ok {
			return result, nil
		}
	}
	result, rounds, err := c.rounds(ctx, conn, r)
	if err != nil {
		if errors.Is(err, link.ErrSession) {
			err = &expiredError{conn, err}
		}
		return nil, err
	}
	if cached && rounds == 0 {
		c.opts.Cache.put(c.server, c.owner, r.method, string(r.members), result)
	}
	return result, nil
}

// rounds sends a request until the server wants no more input
// (basic/patterns/mrtr of 2026-07-28).
func (c *Client) rounds(ctx context.Context, conn *connection, r *request) (result json.RawMessage, rounds int, err error) {
	more := round{state: r.options.state}
	if r.options.answers != nil {
		if more.responses, err = c.encoders.append(nil, r.options.answers); err != nil {
			return nil, 0, fmt.Errorf("the answers do not encode: %w", err)
		}
		rounds = 1
	}
	for turn := 0; ; turn++ {
		result, err = c.roundTrip(ctx, conn, r, more)
		if err != nil || !conn.revision().Has(protocol.ResultType) {
			return result, rounds, err
		}
		switch kind := resultType(result); kind {
		case "", "complete":
			return result, rounds, nil
		case "task":
			if r.task = r.method == protocol.MethodToolsCall && c.takesTasks(); r.task {
				return result, rounds, nil
			}
			return nil, rounds, errors.New("the server answered with a task, which this request must not become")
		case "input_required":
		default:
			return nil, rounds, fmt.Errorf("the server answered with a result of type %q, which this client does not know", kind)
		}
		rounds++
		asks, err := parseInputRequired(r.method, result)
		if err != nil {
			return nil, rounds, err
		}
		if r.options.noRounds || c.opts.MaxRounds < 0 {
			return nil, rounds, asks
		}
		if turn >= c.opts.MaxRounds {
			return nil, rounds, fmt.Errorf("the server still wants input after %d rounds, the limit of Options.MaxRounds: %w", turn, asks)
		}
		begin := time.Now()
		if more, err = c.answerRound(ctx, conn, asks); err != nil {
			return nil, rounds, err
		}
		r.asked += time.Since(begin)
	}
}

// roundTrip sends a request once and waits for its answer.
func (c *Client) roundTrip(ctx context.Context, conn *connection, r *request, more round) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, stopped(ctx)
	}
	o := r.options
	p := &call{method: r.method, name: r.name, conn: conn, progress: o.progress}
	if p.progress != nil && !conn.sync {
		p.wake = make(chan struct{}, 1)
	}
	ctx, end := p.begin(ctx, cmp.Or(o.timeout, c.opts.Timeout), cmp.Or(o.maxTimeout, c.opts.MaxTimeout, DefaultMaxTimeout))
	defer end()
	c.calls.enter(p)
	token := o.progress != nil || o.maxTimeout > 0 || c.opts.MaxTimeout > 0 && r.method == protocol.MethodToolsCall
	m := &link.Message{
		Body: conn.encode(p.id, r, more, token, c.levelFor(o)), ID: protocol.IntID(p.id),
		Method: r.method, Name: r.name, Revision: conn.revision(), Modern: conn.revision().Modern(),
		Header: c.headers(conn, r),
	}
	err := conn.lostErr()
	if err != nil {
		return c.settle(ctx, p, &Error{kind: ErrClosed, Err: err, lost: true})
	}
	if err = conn.carry(ctx, m); err == nil && !conn.sync {
		p.wait(ctx)
	}
	return c.settle(ctx, p, sent(conn, err))
}

// settle returns what became of a call.
func (c *Client) settle(ctx context.Context, p *call, err error) (json.RawMessage, error) {
	counter := &c.calls.stats.Failed
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
	case errors.Is(cause, ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		counter = &c.calls.stats.TimedOut
	default:
		counter = &c.calls.stats.Cancelled
	}
	if !c.calls.leave(p, counter) {
		<-p.done // what answered it is about to say so
		p.close()
		return p.result, p.err
	}
	p.close()
	switch {
	case cause != nil:
		failure := stopped(ctx)
		if own, ok := failure.(*Error); ok && (own.kind == ErrTimeout || p.conn.opening.Load()) {
			blamed := *own
			blamed.Err = p.conn.blame(own.Err, p.start)
			failure = &blamed
		}
		// A request that was never written is not cancelled, but that it was
		// not is known of none that ran into its timeout.
		if p.conn.cancels(p.method) {
			done := p.conn.sendSoon(protocol.MethodCancelled, cancelledBody(p.id, cancelReason(failure)))
			if p.sub != nil {
				<-done // so that no other subscription overtakes it
			}
		}
		return nil, failure
	case err != nil:
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return nil, p.fault
	}
	return nil, errors.New("the server ended its answer without a response to the request")
}

// close runs the callback for the progress that is left, and never again.
func (c *call) close() {
	c.tell()
	c.mu.Lock()
	c.progress = nil
	c.mu.Unlock()
}

// stopped is the error for a context that has ended.
func stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var own *Error
	switch {
	case errors.As(cause, &own):
		return cause
	case errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Error{kind: ErrTimeout, Err: cause}
	}
	return &Error{kind: ErrCancelled, Err: cause}
}

// cancelReason says to the server why a request is given up.
func cancelReason(err error) string {
	var own *Error
	if !errors.As(err, &own) || own.kind == nil {
		return err.Error()
	}
	if own.Err == nil {
		return own.kind.Error()
	}
	return own.kind.Error() + ": " + own.Err.Error()
}

// levelFor returns the level that a modern request asks for.
func (c *Client) levelFor(o *callOptions) protocol.Level {
	if o.level != 0 {
		return o.level
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// headers returns the HTTP headers of a call.
func (c *Client) headers(conn *connection, r *request) http.Header {
	h := r.options.header
	if r.method != protocol.MethodToolsCall || !conn.sync || !conn.revision().Modern() {
		return h
	}
	tool := r.tool
	if tool == nil {
		tool = c.tools.get(r.name)
	}
	if tool == nil || len(tool.headers) == 0 {
		return h
	}
	return tool.mirror(h, r.args)
}

// offered fails if the server did not say that it has what a request needs.
func (c *Client) offered(conn *connection, r *request) error {
	if c.opts.LaxCapabilities {
		return nil
	}
	caps := &conn.about.caps
	missing := ""
	switch r.method {
	case protocol.MethodToolsList, protocol.MethodToolsCall:
		if caps.Tools == nil {
			missing = "tools"
		}
	case protocol.MethodPromptsList, protocol.MethodPromptsGet:
		if caps.Prompts == nil {
			missing = "prompts"
		}
	case protocol.MethodResourcesList, protocol.MethodResourceTemplates, protocol.MethodResourcesRead:
		if caps.Resources == nil {
			missing = "resources"
		}
	case protocol.MethodSubscribe, protocol.MethodUnsubscribe:
		if caps.Resources == nil || !caps.Resources.Subscribe {
			missing = "resources.subscribe"
		}
	case protocol.MethodSetLevel:
		if caps.Logging == nil {
			missing = "logging"
		}
	case protocol.MethodComplete:
		if caps.Completions == nil && conn.revision().Has(protocol.CompletionsCapability) {
			missing = "completions"
		}
	}
	if missing == "" {
		return nil
	}
	return unsupported(r.op, r.method, "the server does not declare the capability %q (Options.LaxCapabilities asks it all the same)", missing)
}
