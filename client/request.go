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
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// request is what a caller asks for, over all rounds and attempts. It is used
// by the goroutine of the caller.
type request struct {
	client  *Client
	op      string
	method  string
	name    string // what the header Mcp-Name says
	members []byte // of params, without braces and without _meta
	meta    []byte // members of _meta that the caller wants
	token   []byte // of progress, if the caller has one of its own
	args    []byte // the arguments of tools/call, a part of members
	tool    *toolInfo
	options *callOptions
	conn    *connection // of the last attempt; nil if there was none
	cache   bool        // the result may be kept
	safe    bool        // sending it twice is harmless
	// refreshed is set when the tool was listed again because of this request.
	refreshed bool
	// renewed is set when the session of this request had expired once.
	renewed bool
	// visited is set when the user was shown the URLs that the request needs.
	visited bool
	// sent is closed when the link has the message; nil if no caller waits for that.
	sent   chan struct{}
	legacy bool // the call requests a task of 2025-11-25
	// task is set when the call has become a task.
	task bool
	// asked is how long answering the server's questions has taken; it does not
	// count for the timeout.
	asked time.Duration
}

// round is what a request carries beyond itself when it is sent again with
// answers (basic/patterns/mrtr).
type round struct {
	responses []byte // the object of answers; nil for none
	state     string
	stated    bool // there is a state, though it may be empty
}

// attempts is how often a request without Retry is sent at most. Each case of
// resend happens once, except a connection that is lost again.
const attempts = 3

// do sends a request and returns its result: from the cache, after as many
// rounds as the server wants, and repeatedly where that is safe.
func (r *request) do(ctx context.Context) (result json.RawMessage, err error) {
	err = r.client.within(ctx, r.method, r.name, func(ctx context.Context) error {
		result, err = r.doAround(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// doAround calls do within Options.Around.
func (r *request) doAround(ctx context.Context) (json.RawMessage, error) {
	began := time.Now()
	for n := 1; ; n++ {
		result, err := r.attempt(ctx)
		if err == nil {
			return result, nil
		}
		err = wrap(r.op, r.method, err)
		if own, ok := err.(*Error); ok {
			one := *own // others may have the same
			one.Safe = one.Safe || r.harmless() && r.options.attempts != 1
			if fault, ok := errors.AsType[*protocol.Error](one.Err); ok && one.kind == ErrInvalidParams && r.method == protocol.MethodResourcesRead &&
				r.conn != nil && wire.IsNotFound(fault, r.conn.revision(), r.name) {
				one.kind = ErrNotFound
			}
			err = &one
		}
		if ctx.Err() != nil {
			return nil, err
		}
		again := n < cmp.Or(r.options.attempts, attempts)
		if expired, ok := errors.AsType[*expiredError](err); ok {
			again = r.sessionExpired(ctx, expired) && again
		} else if again {
			again = r.resend(ctx, err, n, began)
		}
		if !again {
			return nil, err
		}
	}
}

// sessionExpired replaces a session that the server has ended, and reports
// whether the request may be sent again in the new one.
func (r *request) sessionExpired(ctx context.Context, expired *expiredError) bool {
	if r.client.opts.NoReconnect && r.options.attempts == 1 {
		r.client.life.lost(expired.conn, expired)
		return false
	}
	first := !r.renewed
	r.renewed = true
	return r.client.life.renew(ctx, expired.conn) == nil && first && (r.harmless() || errors.Is(expired, link.ErrUnprocessed))
}

// resend reports whether a request whose n-th attempt failed with err is to be
// sent again, after doing what that needs. Without Retry that is so only if the
// server did not run the request, or may not have received it.
func (r *request) resend(ctx context.Context, err error, n int, began time.Time) bool {
	var fault *protocol.Error
	switch {
	case errors.As(err, &fault) && fault.Code == protocol.CodeHeaderMismatch && r.method == protocol.MethodToolsCall:
		// It was rejected before it ran. The tool's schema has changed.
		if r.refreshed {
			return false
		}
		tool, err := r.client.tools.refresh(ctx, r.name)
		if err != nil || tool == nil {
			return false
		}
		r.tool, r.refreshed = tool, true
		return true
	case errors.As(err, &fault) && fault.Code == codeURLRequired:
		// It was refused before it ran.
		if r.visited {
			return false
		}
		r.visited = true
		return r.client.handlers.visit(ctx, fault)
	case fault != nil && fault.Code == protocol.CodeUnsupportedVersion && r.conn != nil:
		// The server has been replaced. It refused the request before it ran.
		if r.renewed {
			return false
		}
		r.renewed = true
		return r.client.life.renew(ctx, r.conn) == nil
	case !r.harmless():
		return false
	case errors.Is(err, ErrConnection) && (n == 1 || r.options.attempts == 0):
		// A kept connection, perhaps, that the server has closed: no waiting, except for
		// a new one.
		if gone := r.conn == nil || r.conn.lostErr() != nil; r.options.attempts == 0 && (slow(err) || n > 1 && !gone) {
			return false // the next request over HTTP would fail alike
		}
		_, err := r.client.life.current(ctx)
		return err == nil
	}
	return r.options.attempts > 1 && Retriable(err) && r.waitToRetry(ctx, err, n, began)
}

// waitToRetry waits before another attempt: as long as Options.Reconnect says,
// or as the server says if that is longer. It returns false at once if the time
// of the request would be over by then.
func (r *request) waitToRetry(ctx context.Context, err error, n int, began time.Time) bool {
	wait := max(r.client.opts.Reconnect.pause(n), retryAfter(err))
	then := time.Now().Add(wait)
	if most := r.client.most(); most > 0 && then.Sub(began)-r.asked > most {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && then.After(deadline) {
		return false
	}
	return pause.For(ctx, wait) == nil
}

// harmless reports whether sending the request twice has the same effect as
// sending it once.
func (r *request) harmless() bool {
	if r.safe || r.options.idempotent {
		return true
	}
	if r.method != protocol.MethodToolsCall {
		return false
	}
	tool := cmp.Or(r.tool, r.client.tools.get(r.name))
	return tool != nil && tool.harmless()
}

// expiredError is the error of a request whose session is gone. It carries the
// connection, for renewing.
type expiredError struct {
	conn *connection
	err  error
}

// Error is that of the cause: the type is only for resending.
func (e *expiredError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *expiredError) Unwrap() error { return e.err }

// attempt sends a request on the current connection, or returns a cached
// result.
func (r *request) attempt(ctx context.Context) (json.RawMessage, error) {
	conn, err := r.client.life.current(ctx)
	if err != nil {
		return nil, err
	}
	r.conn = conn
	if err := r.offered(conn); err != nil {
		return nil, err
	}
	if r.client.pin.lock != nil && r.method == protocol.MethodToolsCall {
		if r.tool, err = r.client.pin.use(ctx, r.name); err != nil {
			return nil, err
		}
	}
	cached := r.cache && !r.client.opts.NoCache && conn.revision().Has(protocol.FeatureCacheHints) && r.options.header == nil && r.options.meta == nil &&
		r.options.answers == nil && r.options.state == "" // otherwise the result of a round is not cached
	if cached && !r.options.noCache {
		if result, ok := r.client.opts.Cache.get(r.client.server, r.client.owner, r.method, string(r.members)); ok {
			return result, nil
		}
	}
	result, rounds, err := r.rounds(ctx, conn)
	if err != nil {
		if errors.Is(err, link.ErrSession) {
			err = &expiredError{conn, err}
		}
		return nil, err
	}
	if cached && rounds == 0 {
		r.client.opts.Cache.put(r.client.server, r.client.owner, r.method, string(r.members), result)
	}
	return result, nil
}

// rounds sends a request until the server wants no more input
// (basic/patterns/mrtr of 2026-07-28). rounds is how many answers were sent; a
// result after any is not cached.
func (r *request) rounds(ctx context.Context, conn *connection) (result json.RawMessage, rounds int, err error) {
	more := round{state: r.options.state}
	if r.options.answers != nil {
		if more.responses, err = r.client.encoders.append(nil, r.options.answers); err != nil {
			return nil, 0, fmt.Errorf("the answers do not encode: %w", err)
		}
		rounds = 1
	}
	for turn := 0; ; turn++ {
		result, err = r.roundTrip(ctx, conn, more)
		if err != nil || !conn.revision().Has(protocol.FeatureResultType) {
			return result, rounds, err
		}
		switch kind := resultType(result); kind {
		case "", "complete":
			return result, rounds, nil
		case "task":
			if r.task = r.method == protocol.MethodToolsCall && r.client.takesTasks(); r.task {
				return result, rounds, nil
			}
			abandonUnread(r.client, result, aboutTask(r.options))
			return nil, rounds, invalid(errors.New("it is a task, which this request must not become"))
		case "input_required":
		default:
			return nil, rounds, invalid(fmt.Errorf("its type is %q, which this client does not know", kind))
		}
		rounds++
		asks, err := parseInputRequired(r.method, result)
		if err != nil {
			return nil, rounds, invalid(err)
		}
		if r.options.noRounds || r.client.opts.MaxRounds < 0 {
			return nil, rounds, asks
		}
		if turn >= r.client.opts.MaxRounds {
			return nil, rounds, fmt.Errorf("the server still wants input after %d rounds, the limit of Options.MaxRounds: %w", turn, asks)
		}
		begin := time.Now()
		if more, err = r.client.handlers.answerRound(ctx, conn, asks); err != nil {
			return nil, rounds, err
		}
		r.asked += time.Since(begin)
	}
}

// roundTrip sends a request once and waits for its answer.
func (r *request) roundTrip(ctx context.Context, conn *connection, more round) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, stopped(ctx)
	}
	o := r.options
	p := &call{method: r.method, name: r.name, conn: conn, progress: o.progress}
	if p.progress != nil && !conn.sync {
		p.wake = make(chan struct{}, 1)
	}
	ctx, end := p.begin(ctx, cmp.Or(o.timeout, r.client.opts.Timeout), cmp.Or(o.maxTimeout, r.client.most()))
	defer end()
	r.client.calls.enter(p)
	r.client.note(ctx, func(info *CallInfo) {
		info.Sent++
		info.ID, info.Revision = protocol.NewID(p.id), conn.revision()
	})
	token := o.progress != nil || o.maxTimeout > 0 || r.client.opts.MaxTimeout > 0 && r.method == protocol.MethodToolsCall
	m := &link.Message{
		Body: r.encode(ctx, conn, p.id, more, token), ID: protocol.NewID(p.id),
		Method: r.method, Name: r.name, Revision: conn.revision(), Modern: conn.revision().Modern(),
		Header: r.headers(conn),
	}
	p.size.Store(int64(len(m.Body)))
	err := conn.lostErr()
	if err != nil {
		return p.settle(ctx, unconnected("", err))
	}
	err = conn.carry(ctx, m)
	if r.sent != nil {
		close(r.sent)
	}
	if err == nil && !conn.sync {
		p.wait(ctx)
	}
	return p.settle(ctx, sent(conn, err))
}

// headers returns the HTTP headers of a call, including those that mirror
// arguments.
func (r *request) headers(conn *connection) http.Header {
	h := r.options.header
	if r.method != protocol.MethodToolsCall || !conn.sync || !conn.revision().Modern() {
		return h
	}
	tool := r.tool
	if tool == nil {
		tool = r.client.tools.get(r.name)
	}
	if tool == nil || len(tool.headers) == 0 {
		return h
	}
	return tool.mirror(h, r.args)
}

// offered returns an error if the server has not declared the capability that a
// request needs.
func (r *request) offered(conn *connection) error {
	if r.client.opts.LaxCapabilities {
		return nil
	}
	caps := &conn.server.Capabilities
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
		if caps.Completions == nil && conn.revision().Has(protocol.FeatureCompletionsCapability) {
			missing = "completions"
		}
	case wire.MethodEventsList, wire.MethodEventsPoll, wire.MethodEventsStream:
		if _, ok := caps.Extensions[wire.EventsExtension]; !ok && caps.Events == nil {
			missing = "events"
		}
	}
	if missing == "" {
		return nil
	}
	return unsupported(r.op, r.method, "the server does not declare the capability %q (Options.LaxCapabilities asks it all the same)", missing)
}

// encode returns the message for a request. token asks for progress.
func (r *request) encode(ctx context.Context, conn *connection, id int64, more round, token bool) []byte {
	meta := r.client.inject(ctx, r.meta)
	dst := make([]byte, 0, 160+len(r.method)+len(r.members)+len(meta)+len(*conn.meta.Load())+len(more.responses)+len(more.state))
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = jsonx.AppendInt(dst, id)
	dst = append(dst, `,"method":`...)
	dst = jsonx.AppendString(dst, r.method)
	dst = r.appendParams(dst, conn, meta, id, more, token)
	return append(dst, '}')
}

// appendParams appends the params. A modern request always has some, since its
// _meta says what the handshake says in older revisions; a legacy request
// without params has no such member. meta is what the caller, and Options.Inject,
// want in _meta.
func (r *request) appendParams(dst []byte, conn *connection, meta []byte, id int64, more round, token bool) []byte {
	modern := conn.revision().Modern()
	inMeta := modern || len(meta) > 0 || len(r.token) > 0 || token
	if !inMeta && len(r.members) == 0 {
		return dst
	}
	dst = append(dst, `,"params":{`...)
	dst = append(dst, r.members...)
	if more.responses != nil {
		dst = append(append(comma(dst), `"inputResponses":`...), more.responses...)
	}
	if more.stated || more.state != "" {
		dst = jsonx.AppendString(append(comma(dst), `"requestState":`...), more.state)
	}
	if inMeta {
		dst = append(comma(dst), `"_meta":{`...)
		if modern {
			dst = append(dst, *conn.meta.Load()...)
			if level := r.client.logLevel(); level != 0 {
				dst = jsonx.AppendString(append(dst, `,"`+facts.MetaLogLevel+`":`...), level.String())
			}
		}
		if token {
			dst = jsonx.AppendInt(append(comma(dst), `"progressToken":`...), id)
		} else if len(r.token) > 0 {
			dst = append(append(comma(dst), `"progressToken":`...), r.token...)
		}
		if len(meta) > 0 {
			dst = append(comma(dst), meta...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// stopped returns the error for a context that has ended.
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

// cancelReason returns the reason that a cancellation sends to the server.
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
