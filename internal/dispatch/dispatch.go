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
// Observers are around all of it: a watch is one message on its way past them,
// and decides what they receive at its end. Without observers there is none.
//
// Everything runs on the goroutine of the caller, except for handlers with a
// time limit, see [Dispatcher.Timeout]. A handler may end its goroutine with
// runtime.Goexit; then Serve does not return, and the caller must answer from a
// deferred function, with [AppendPanicked]. The package takes no locks.
package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
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
	Observers  []frame.Observer   // of all messages; the first is outermost, and all are outside of Middleware
	MaskErrors bool               // ordinary errors go out without their text
	// OnUnasked is called when a handler has returned a result in place of
	// wire.ErrInputRequired: the client is not asked the questions with these keys. nil
	// is nothing.
	OnUnasked func(f *frame.Frame, keys []string)
	// OnPanic is called for a handler that did not return. nil drops it. The Frame
	// is nil if it was the Event of an observer.
	OnPanic func(f *frame.Frame, failure *safely.Failure)
	// OnInvalid is called with the *wire.ResultError of a result that cannot be sent. nil
	// is nothing.
	OnInvalid func(f *frame.Frame, err error)
	// OnRefused is called with the reason why an observer refused a message. nil
	// drops it.
	OnRefused func(f *frame.Frame, err error)
}

// Dispatcher serves requests. It does not change after New and is safe for
// concurrent use.
type Dispatcher struct {
	serving *counter
	config  Config
	hears   bool // an observer has an Event
	methods map[string]*Method
	chain   frame.Handler
	via     func() frame.Handler // the middleware around what Via was given, made once
}

// New returns a Dispatcher. It keeps Config.Methods, which must not change; of
// two methods with the same name the last counts.
func New(config Config) *Dispatcher {
	d := &Dispatcher{config: config, serving: &counter{}, methods: make(map[string]*Method, len(config.Methods))}
	for i := range config.Methods {
		d.methods[config.Methods[i].Name] = &config.Methods[i]
	}
	for i := range config.Observers {
		d.hears = d.hears || config.Observers[i].Event != nil
	}
	d.chain = d.wrap(d.route)
	d.via = sync.OnceValue(func() frame.Handler { return d.wrap(inner) })
	return d
}

// counter counts, apart from what is read with every message: two processors that
// count would take that from each other.
type counter struct {
	_ [64]byte
	atomic.Int64
	_ [64]byte
}

// Serving returns how many messages are being served, with the handlers whose time
// was over and that continue.
func (d *Dispatcher) Serving() int { return int(d.serving.Load()) }

// wrap puts the middleware around h, the first one outermost.
func (d *Dispatcher) wrap(h frame.Handler) frame.Handler {
	for i := len(d.config.Middleware) - 1; i >= 0; i-- {
		h = d.config.Middleware[i](h)
	}
	return h
}

// innerKey is the context key of the Handler that Via was given.
type innerKey struct{}

// Via runs the middleware around h in place of a method of the table, for
// requests that another Dispatcher serves. The chain for it is built at the
// first call; h travels in the context of the Frame.
//
// The observers are around it, inside what the other Dispatcher has.
func (d *Dispatcher) Via(f *frame.Frame, h frame.Handler) (result protocol.Result, err error) {
	if len(d.config.Observers) == 0 {
		return d.runVia(f, h)
	}
	w := d.watch(f)
	defer w.end()
	if err = w.begin(); err == nil {
		result, err = d.runVia(w.f, h)
	}
	w.decide(result, d.faultOf(w.f, err), err)
	return result, err
}

// runVia is Via without observers.
func (d *Dispatcher) runVia(f *frame.Frame, h frame.Handler) (protocol.Result, error) {
	return d.via()(f.WithContext(context.WithValue(f, innerKey{}, h)))
}

// Within serves a call that a handler makes in place of its client, with all that is
// around a request: observers, middleware, the table. The error is the one that a client
// would get, or wire.ErrInputRequired.
func (d *Dispatcher) Within(f *frame.Frame) (result protocol.Result, err error) {
	if len(d.config.Observers) == 0 {
		result, err = d.runWithin(f)
		return result, d.within(d.faultOf(f, err), err)
	}
	w := d.watch(f)
	defer w.end()
	if err = w.begin(); err == nil {
		result, err = d.runWithin(w.f)
	}
	fault := d.faultOf(w.f, err)
	w.decide(result, fault, err)
	return result, d.within(fault, err)
}

// runWithin is Within without observers.
func (d *Dispatcher) runWithin(f *frame.Frame) (result protocol.Result, err error) {
	defer func() { d.ended(f, err) }()
	if result, err = d.Guard(f, d.chain); err != nil {
		d.Invalid(f, err)
	}
	return result, err
}

// within returns the error of a call within a handler, for which fault would be sent.
func (d *Dispatcher) within(fault *protocol.Error, err error) error {
	if err == nil || errors.Is(err, wire.ErrInputRequired) {
		return err
	}
	return fault
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

// Knows reports whether the table has a method, in any revision.
func (d *Dispatcher) Knows(method string) bool { return d.methods[method] != nil }

// Observed reports whether there are observers.
func (d *Dispatcher) Observed() bool { return len(d.config.Observers) > 0 }

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
	d.serving.Add(1)
	defer d.serving.Add(-1)
	if len(d.config.Observers) == 0 {
		response, fault, _, _ = d.answer(f, dst)
		frame.Internal(facts.Private{}).Sending(f, len(response)-len(dst))
		return response, fault
	}
	w := d.watch(f)
	defer w.end()
	var result protocol.Result
	err := w.begin()
	if err != nil {
		response, fault = d.appendFault(f, dst, err)
	} else {
		response, fault, result, err = d.answer(w.f, dst)
	}
	w.decide(result, fault, err)
	frame.Internal(facts.Private{}).Sending(w.f, len(response)-len(dst))
	return response, fault
}

// answer is Serve without observers. It returns what the answer was made of, too.
func (d *Dispatcher) answer(f *frame.Frame, dst []byte) (response []byte, fault *protocol.Error, result protocol.Result, err error) {
	result, err = d.Guard(f, d.serve)
	defer func() { d.ended(f, err) }()
	start := len(dst)
	if err == nil {
		if dst, err = d.appendResult(f, dst, result); err == nil {
			return dst, nil, result, nil
		}
	}
	d.Invalid(f, err)
	response, fault = d.appendFault(f, dst[:start], err)
	return response, fault, nil, err
}

// Invalid calls Config.OnInvalid if err is that of a result that cannot be sent.
func (d *Dispatcher) Invalid(f *frame.Frame, err error) {
	if d.config.OnInvalid == nil {
		return
	}
	safely.Do(func() {
		if bad, ok := errors.AsType[*wire.ResultError](err); ok {
			d.config.OnInvalid(f, bad)
		}
	}, func(*safely.Failure) {}) // sending err ends in the same way, and is logged
}

// ended calls what waits for the end of the message of f, which is users' code: the
// answer has been made, and is an error if err is not nil. A failure of that code is
// logged, and changes nothing.
func (d *Dispatcher) ended(f *frame.Frame, err error) {
	end := frame.Internal(facts.Private{}).TakeEnd(f)
	if end == nil {
		return
	}
	if failure, ok := errors.AsType[*safely.Failure](safely.Apart(func() { end(err) })); ok {
		_ = d.failed(f, failure)
	}
}

// appendFault appends the error response for err. Users' errors run their code,
// too (Error, As, MarshalJSON of data): if that panics, the response is the
// error for the panic.
func (d *Dispatcher) appendFault(f *frame.Frame, dst []byte, err error) (response []byte, fault *protocol.Error) {
	appendError := func(err error) {
		fault = d.faultFor(f, err)
		sent := fault
		if fault.Data != nil { // encoded once, as it runs users' code
			encoded := *fault
			sent = &encoded
			data, err := json.Marshal(fault.Data)
			if encoded.Data = json.RawMessage(data); err != nil {
				encoded.Data = nil
				d.Invalid(f, &wire.ResultError{Of: named(f.Request()), Err: fmt.Errorf("is an error without its data, which cannot be encoded: %w", err)})
			}
		}
		response = wire.AppendErrorResponse(dst, f.Request().ID, sent, f.Revision())
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
		return frame.Internal(facts.Private{}).InputRequired(f)
	}
	if d.config.OnUnasked != nil {
		if keys := frame.Internal(facts.Private{}).Unanswered(f); len(keys) > 0 {
			d.config.OnUnasked(f, keys)
		}
	}
	return result, err
}

// Notify serves the notification of f. The error is for the log, because a
// notification has no response.
func (d *Dispatcher) Notify(f *frame.Frame) error {
	d.serving.Add(1)
	defer d.serving.Add(-1)
	if len(d.config.Observers) == 0 {
		_, err := d.Guard(f, d.chain)
		d.ended(f, err)
		return err
	}
	w := d.watch(f)
	defer w.end()
	var result protocol.Result
	err := w.begin()
	if err == nil {
		result, err = d.Guard(w.f, d.chain)
		d.ended(w.f, err)
	}
	w.decide(result, d.faultOf(w.f, err), err)
	return err
}

// faultFor returns the error that is sent for err in the revision of f.
func (d *Dispatcher) faultFor(f *frame.Frame, err error) *protocol.Error {
	uri := ""
	if r := f.Request(); r.Method == protocol.MethodResourcesRead {
		uri = r.Params.Name
	}
	return wire.ErrorFor(d.Fault(err), f.Revision(), uri)
}

// faultOf is faultFor, whatever the methods of err do; nil if there is no error.
func (d *Dispatcher) faultOf(f *frame.Frame, err error) (fault *protocol.Error) {
	if err == nil {
		return nil
	}
	safely.Do(func() { fault = d.faultFor(f, err) }, func(failure *safely.Failure) {
		_ = d.failed(f, failure)
		fault = ErrPanicked
	})
	return fault
}

// appendResult appends the response with that result, nil for an empty one. On
// an error it returns dst as it was, so that an error response can take its
// place.
func (d *Dispatcher) appendResult(f *frame.Frame, dst []byte, result protocol.Result) ([]byte, error) {
	if result == nil {
		result = wire.EmptyResult{}
	}
	to := wire.To{Revision: f.Revision()}
	if to.Revision.Has(protocol.FeaturePerRequestMeta) {
		to.Meta = d.config.Meta
	}
	response := append(dst, `{"jsonrpc":"2.0","id":`...)
	response = append(wire.AppendID(response, f.Request().ID), `,"result":`...)
	response, err := d.Encode(f, response, result, to)
	if err != nil {
		return dst, err
	}
	return append(response, '}'), nil
}

// Encode appends only result. An error names its type.
func (d *Dispatcher) Encode(f *frame.Frame, dst []byte, result protocol.Result, to wire.To) (text []byte, err error) {
	_, err = d.Guard(f, func(*frame.Frame) (protocol.Result, error) {
		var err error
		if text, err = wire.AppendResult(dst, result, to); err != nil {
			err = unsent(f.Request(), err)
		}
		return nil, err
	})
	return text, err
}

// unsent returns err, which came of encoding the result of r, as a *wire.ResultError if it
// is neither that nor meant for the client.
func unsent(r *frame.Request, err error) error {
	if _, named := errors.AsType[*wire.ResultError](err); named {
		return err
	}
	if _, meant := errors.AsType[*protocol.Error](err); meant {
		return err
	}
	return &wire.ResultError{Of: named(r), Err: fmt.Errorf("cannot be sent: %w", err)}
}

// named returns what r is about, for errors.
func named(r *frame.Request) string {
	switch {
	case r.Method == protocol.MethodToolsCall:
		return fmt.Sprintf("tool %q", r.Params.Name)
	case r.Params.Name != "":
		return fmt.Sprintf("%s %q", r.Method, r.Params.Name)
	}
	return r.Method
}

// Guard calls h and turns a panic into an internal error. OnPanic gets the
// value and the stack; the message of the error, which the client sees, has
// neither. If h ends the goroutine, OnPanic is called and Guard does not
// return.
func (d *Dispatcher) Guard(f *frame.Frame, h frame.Handler) (result protocol.Result, err error) {
	safely.Do(func() { result, err = h(f) }, func(failure *safely.Failure) { result, err = nil, d.failed(f, failure) })
	return result, err
}

// failed tells OnPanic how users' code ended, and returns the error for it.
func (d *Dispatcher) failed(f *frame.Frame, failure *safely.Failure) error {
	if d.config.OnPanic != nil {
		d.config.OnPanic(f, failure)
	}
	return panicked(fmt.Errorf("%w: %s", errPanic, failure.Value))
}

// errPanic is in the chain of the error of every handler that did not return.
var errPanic = errors.New("panic")

// ErrPanicked is the error of a handler that ended its goroutine, for callers
// that must have an answer ready before they call the handler. It must not be
// changed.
var ErrPanicked = panicked(errPanic)

// panicked returns the error of a handler that did not return. The client gets
// the message; middleware and the log find the cause.
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
	var over atomic.Bool // for the first of the two that is: the handler, or who waits for it
	run(func() {
		o := outcome{nil, ErrPanicked}
		defer func() {
			ended <- o
			if !over.CompareAndSwap(false, true) {
				d.serving.Add(-1)
			}
		}()
		o.result, o.err = d.Guard(f.WithContext(ctx), h)
	})
	select {
	case o := <-ended:
		if _, failed := toolFault(o.result); (failed || o.err != nil) && errors.Is(context.Cause(ctx), ErrTimeout) {
			return nil, ErrTimeout
		}
		return o.result, o.err
	case <-ctx.Done():
		d.serving.Add(1) // it continues
		if !over.CompareAndSwap(false, true) {
			d.serving.Add(-1)
		}
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
