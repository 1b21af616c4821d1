// Package dispatch sends requests to the functions that serve them. It holds
// the one table of methods, the one chain of middleware, and the one place where
// errors, panics among them, become JSON-RPC errors.
package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
)

// Handler serves one request or notification. A notification's result is
// dropped and may be nil.
type Handler func(f *frame.Frame) (protocol.Result, error)

// Middleware wraps a Handler.
type Middleware func(next Handler) Handler

// Era is a set of kinds of revisions.
type Era uint8

// The eras.
const (
	Legacy Era = 1 << iota
	Modern
	Both = Legacy | Modern
)

// Method is a row of the table.
type Method struct {
	Name   string
	Era    Era  // where the method exists
	Params bool // whether params must be there
	Serve  Handler
}

// Config is what a Dispatcher is made of.
type Config struct {
	Methods    []Method
	Middleware []Middleware // the first is outermost
	Meta       []byte       // protocol.Wire.Meta for modern results
	MaskErrors bool         // ordinary errors go out without their text
	// OnPanic is told of a handler that did not return. nil drops it.
	OnPanic func(f *frame.Frame, failure *safely.Failure)
}

// Dispatcher serves requests. It does not change after New and is safe for
// concurrent use.
type Dispatcher struct {
	config  Config
	methods map[string]*Method
	chain   Handler
	via     func() Handler // the middleware around what Via was given, made once
}

// New returns a Dispatcher.
func New(config Config) *Dispatcher {
	d := &Dispatcher{config: config, methods: make(map[string]*Method, len(config.Methods))}
	for i := range config.Methods {
		d.methods[config.Methods[i].Name] = &config.Methods[i]
	}
	d.chain = d.wrap(d.route)
	d.via = sync.OnceValue(func() Handler { return d.wrap(inner) })
	return d
}

func (d *Dispatcher) wrap(h Handler) Handler {
	for i := len(d.config.Middleware) - 1; i >= 0; i-- {
		h = d.config.Middleware[i](h)
	}
	return h
}

type innerKey struct{} // of the Handler that Via was given

// Via runs the middleware around h, in place of a method of the table. It is
// for requests that another Dispatcher serves.
func (d *Dispatcher) Via(f *frame.Frame, h Handler) (protocol.Result, error) {
	return d.via()(f.WithContext(context.WithValue(f, innerKey{}, h)))
}

func inner(f *frame.Frame) (protocol.Result, error) {
	h, ok := f.Value(innerKey{}).(Handler)
	if !ok {
		return nil, errors.New("a middleware passed a Frame on that does not come from its own")
	}
	return h(f)
}

// route is the innermost Handler: it looks the method up.
func (d *Dispatcher) route(f *frame.Frame) (protocol.Result, error) {
	req := f.Request()
	m := d.methods[req.Method]
	if m == nil || m.Era&eraOf(f.Revision()) == 0 {
		return nil, protocol.MethodNotFound(req.Method)
	}
	if m.Params && req.Params.Raw == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s needs params", req.Method)
	}
	return m.Serve(f)
}

func eraOf(rev protocol.Revision) Era {
	if rev.Modern() {
		return Modern
	}
	return Legacy
}

// Serve serves the request of f and appends the whole response to dst. fault
// is nil for a result, else the error that was appended. It does not return if a
// handler ends the goroutine: whoever calls it has to defer that AppendPanicked
// is the answer then.
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

// appendFault appends the error response for err. Errors run users' code too
// (Error, As, MarshalJSON of data), so it is guarded.
func (d *Dispatcher) appendFault(f *frame.Frame, dst []byte, err error) (response []byte, fault *protocol.Error) {
	appendError := func(err error) {
		fault = d.Fault(err)
		response = protocol.AppendErrorResponse(dst, f.Request().ID, fault, f.Revision())
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

// serve runs the chain. A handler that waits for the client's answers has the
// questions for its result.
func (d *Dispatcher) serve(f *frame.Frame) (protocol.Result, error) {
	result, err := d.chain(f)
	if err != nil && errors.Is(err, frame.ErrInputRequired) {
		return f.InputRequired()
	}
	return result, err
}

// Notify serves the notification of f. Its error is for the log: nobody is
// answered.
func (d *Dispatcher) Notify(f *frame.Frame) error {
	_, err := d.Guard(f, d.chain)
	return err
}

// appendResult appends the response; on an error it returns dst as it was.
// Encoding runs users' code too (MarshalJSON), so it is guarded.
func (d *Dispatcher) appendResult(f *frame.Frame, dst []byte, result protocol.Result) ([]byte, error) {
	if result == nil {
		result = protocol.EmptyResult{}
	}
	to := protocol.Wire{Revision: f.Revision()}
	if to.Revision.Has(protocol.PerRequestMeta) {
		to.Meta = d.config.Meta
	}
	response := append(dst, `{"jsonrpc":"2.0","id":`...)
	response = append(f.Request().ID.Append(response), `,"result":`...)
	_, err := d.Guard(f, func(*frame.Frame) (protocol.Result, error) {
		var err error
		response, err = result.Append(response, to)
		return nil, err
	})
	if err != nil {
		return dst, err
	}
	return append(response, '}'), nil
}

// Guard calls h and turns a panic into an internal error, with the stack told
// to OnPanic and nothing of it in the error's message. If h ends the goroutine,
// OnPanic is told and Guard does not return.
func (d *Dispatcher) Guard(f *frame.Frame, h Handler) (result protocol.Result, err error) {
	safely.Do(func() { result, err = h(f) }, func(failure *safely.Failure) {
		if d.config.OnPanic != nil {
			d.config.OnPanic(f, failure)
		}
		result, err = nil, panicked(errors.New("panic: "+failure.Value))
	})
	return result, err
}

// ErrPanicked is the error of a handler that ended its goroutine, for who has
// to give one before the handler can.
var ErrPanicked = panicked(nil)

// panicked returns the error of a handler that did not return. Its client hears
// the message; middleware and the log find the cause.
func panicked(cause error) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeInternal, Message: "Internal error: " + safely.Message, Err: cause}
}

// AppendPanicked appends the response to a request whose handler ended its
// goroutine.
func AppendPanicked(dst []byte, id protocol.ID, rev protocol.Revision) []byte {
	return protocol.AppendErrorResponse(dst, id, ErrPanicked, rev)
}

// ErrTimeout is the cause of a context whose handler ran out of its time.
var ErrTimeout = errors.New("timed out")

// Timeout calls h with a deadline. When that passes, it returns ErrTimeout at
// once, though h may ignore its context: h runs on a goroutine of its own, and
// run is asked to start that, so that a shutdown can wait for it.
func (d *Dispatcher) Timeout(f *frame.Frame, limit time.Duration, h Handler, run func(func())) (protocol.Result, error) {
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

// Fault turns any error into the one that is sent.
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
