// Package dispatch sends requests to the functions that serve them. It holds
// the one table of methods, the one chain of middleware, and the one place
// where errors, panics among them, become JSON-RPC errors.
//
// Package mcp fills the table; package conn calls [Dispatcher.Serve] and
// [Dispatcher.Notify] for what arrives, and [Dispatcher.Guard] for code that
// users run with a Frame of their own. A request goes through the chain, whose
// middleware sees every method, known or not, and then through the table, which
// refuses methods that the revision does not have.
//
// All code of users that a request runs is called under Guard: handlers,
// middleware, and the methods that encoding results and errors calls
// (MarshalJSON, Error, As). A panic in any of them is one answer, an internal
// error that says nothing of the cause, and one call of Config.OnPanic.
//
// Everything runs on the goroutine of the caller, except for handlers with a
// time limit, see [Dispatcher.Timeout]. A handler may end its goroutine with
// runtime.Goexit; then Serve does not return, and the caller must answer from a
// deferred function, with [AppendPanicked]. The package takes no locks.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Revisions is a set of the two kinds of revisions: legacy ones, with sessions,
// and modern ones, without.
type Revisions uint8

// The kinds of revisions, and both of them.
const (
	Legacy Revisions = 1 << iota
	Modern
	Both = Legacy | Modern
)

// Method is a row of the table: a method of the protocol and the function that
// serves it.
type Method struct {
	Name      string
	Revisions Revisions // where the method exists
	Params    bool      // whether params must be there
	Serve     frame.Handler
}

// Config is what a Dispatcher is made of.
type Config struct {
	Methods    []Method
	Middleware []frame.Middleware // the first is outermost
	Meta       []byte             // wire.To.Meta, for modern results
	MaskErrors bool               // ordinary errors go out without their text
	// OnPanic is told of a handler that did not return. nil drops it.
	OnPanic func(f *frame.Frame, failure *safely.Failure)
}

// Dispatcher serves requests. It does not change after New and is safe for
// concurrent use.
type Dispatcher struct {
	config  Config
	methods map[string]*Method
	chain   frame.Handler
	via     func() frame.Handler // the middleware around what Via was given, made once
}

// New returns a Dispatcher. It keeps config.Methods, which must not change; of
// two methods with the same name the last counts.
func New(config Config) *Dispatcher {
	d := &Dispatcher{config: config, methods: make(map[string]*Method, len(config.Methods))}
	for i := range config.Methods {
		d.methods[config.Methods[i].Name] = &config.Methods[i]
	}
	d.chain = d.wrap(d.route)
	d.via = sync.OnceValue(func() frame.Handler { return d.wrap(inner) })
	return d
}

// wrap puts the middleware around h, the first one outermost.
func (d *Dispatcher) wrap(h frame.Handler) frame.Handler {
	for i := len(d.config.Middleware) - 1; i >= 0; i-- {
		h = d.config.Middleware[i](h)
	}
	return h
}

// innerKey is the context key of the Handler that Via was given.
type innerKey struct{} // of the Handler that Via was given

// Via runs the middleware around h in place of a method of the table, for
// requests that another Dispatcher serves. The chain for it is built at the
// first call; h travels in the context of the Frame.
func (d *Dispatcher) Via(f *frame.Frame, h frame.Handler) (protocol.Result, error) {
	return d.via()(f.WithContext(context.WithValue(f, innerKey{}, h)))
}

// inner is the innermost Handler of Via: it calls the Handler in the context.
// That is missing if a middleware passes on a Frame that it has made from
// another context.
func inner(f *frame.Frame) (protocol.Result, error) {
	h, ok := f.Value(innerKey{}).(frame.Handler)
	if !ok {
		return nil, errors.New("a middleware passed a Frame on that does not come from its own")
	}
	return h(f)
}

// route is the innermost Handler of the chain: it looks the method up and
// checks that it exists in the revision and has the params it needs.
func (d *Dispatcher) route(f *frame.Frame) (protocol.Result, error) {
	req := f.Request()
	m := d.methods[req.Method]
	if m == nil || m.Revisions&kindOf(f.Revision()) == 0 {
		return nil, wire.MethodNotFound(req.Method)
	}
	if m.Params && req.Params.Raw == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s needs params", req.Method)
	}
	return m.Serve(f)
}

// kindOf returns the kind of rev; the zero Revision counts as legacy.
func kindOf(rev protocol.Revision) Revisions {
	if rev.Modern() {
		return Modern
	}
	return Legacy
}

// Serve serves the request of f and appends the whole response to dst. fault is
// nil for a result, else the error that was appended. If a handler ends the
// goroutine, Serve does not return: the caller must have deferred that
// AppendPanicked is the answer then.
func (d *Dispatcher) Serve(f *frame.Frame, dst []byte) (response []byte, fault *protocol.Error) {
	result, err := d.Guard(f, d.serve)
	start := len(dst)
	if err == nil {
		if dst, err = d.appendResult(f, dst, result); err == nil {
			return dst, nil
		}
	}
	return d.appendFault(f, dst[:start], err)
}

// appendFault appends the error response for err. Users' errors run their code,
// too (Error, As, MarshalJSON of data): if that panics, the response is the
// error for the panic.
func (d *Dispatcher) appendFault(f *frame.Frame, dst []byte, err error) (response []byte, fault *protocol.Error) {
	appendError := func(err error) {
		fault = d.Fault(err)
		response = wire.AppendErrorResponse(dst, f.Request().ID, fault, f.Revision())
	}
	_, panicked := d.Guard(f, func(*frame.Frame) (protocol.Result, error) {
		appendError(err)
		return nil, nil
	})
	if panicked != nil {
		appendError(panicked)
	}
	return response, fault
}

// serve runs the chain. If the handler of a modern request needs answers of the
// client first, the result holds its questions.
func (d *Dispatcher) serve(f *frame.Frame) (protocol.Result, error) {
	result, err := d.chain(f)
	if err != nil && errors.Is(err, wire.ErrInputRequired) {
		return frame.Internal(call.Private{}).InputRequired(f)
	}
	return result, err
}

// Notify serves the notification of f. The error is for the log, because nobody
// is answered.
func (d *Dispatcher) Notify(f *frame.Frame) error {
	_, err := d.Guard(f, d.chain)
	return err
}

// appendResult appends the response with that result, nil for an empty one. On
// an error it returns dst as it was, so that an error response can take its
// place.
func (d *Dispatcher) appendResult(f *frame.Frame, dst []byte, result protocol.Result) ([]byte, error) {
	if result == nil {
		result = wire.EmptyResult{}
	}
	to := wire.To{Revision: f.Revision()}
	if wire.PerRequestMeta.In(to.Revision) {
		to.Meta = d.config.Meta
	}
	response := append(dst, `{"jsonrpc":"2.0","id":`...)
	response = append(wire.AppendID(response, f.Request().ID), `,"result":`...)
	_, err := d.Guard(f, func(*frame.Frame) (protocol.Result, error) {
		var err error
		response, err = wire.AppendResult(response, result, to)
		return nil, err
	})
	if err != nil {
		return dst, err
	}
	return append(response, '}'), nil
}

// Guard calls h and turns a panic into an internal error. OnPanic gets the
// value and the stack; the message of the error, which the client sees, has
// neither. If h ends the goroutine, OnPanic is called and Guard does not
// return.
func (d *Dispatcher) Guard(f *frame.Frame, h frame.Handler) (result protocol.Result, err error) {
	safely.Do(func() { result, err = h(f) }, func(failure *safely.Failure) {
		if d.config.OnPanic != nil {
			d.config.OnPanic(f, failure)
		}
		result, err = nil, panicked(errors.New("panic: "+failure.Value))
	})
	return result, err
}

// ErrPanicked is the error of a handler that ended its goroutine, for callers
// that must have an answer ready before they call the handler. It must not be
// changed.
var ErrPanicked = panicked(nil)

// panicked returns the error of a handler that did not return. The client gets
// the message; middleware and the log find the cause, which may be nil.
func panicked(cause error) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeInternal, Message: "Internal error: " + safely.Message, Err: cause}
}

// AppendPanicked appends the response to a request whose handler has ended its
// goroutine.
func AppendPanicked(dst []byte, id protocol.ID, rev protocol.Revision) []byte {
	return wire.AppendErrorResponse(dst, id, ErrPanicked, rev)
}

// ErrTimeout is the cause of a context whose handler has used up its time, and
// the error that Timeout returns then.
var ErrTimeout = errors.New("timed out")

// Timeout calls h with a deadline, and when that passes returns ErrTimeout at
// once, even if h ignores its context. To that end h runs on a goroutine of its
// own, which run must start; a shutdown can thus wait for it. The result of an
// h that ends too late is dropped. If f ends first, Timeout returns its cause.
func (d *Dispatcher) Timeout(f *frame.Frame, limit time.Duration, h frame.Handler, run func(func())) (protocol.Result, error) {
	ctx, cancel := context.WithTimeoutCause(f, limit, ErrTimeout)
	defer cancel()
	type outcome struct {
		result protocol.Result
		err    error
	}
	ended := make(chan outcome, 1)
	run(func() {
		o := outcome{nil, ErrPanicked}
		defer func() { ended <- o }()
		o.result, o.err = d.Guard(f.WithContext(ctx), h)
	})
	select {
	case o := <-ended:
		if o.err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
			return nil, ErrTimeout
		}
		return o.result, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Fault turns any error into the one that is sent: the first *protocol.Error in
// its chain, else an internal error, which has the text of err unless
// Config.MaskErrors is set.
func (d *Dispatcher) Fault(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e != nil {
		if e.Code == 0 {
			masked := *e
			masked.Code = protocol.CodeInternal
			return &masked
		}
		return e
	}
	if d.config.MaskErrors {
		return &protocol.Error{Code: protocol.CodeInternal, Err: err}
	}
	return &protocol.Error{Code: protocol.CodeInternal, Message: "Internal error: " + err.Error(), Err: err}
}
