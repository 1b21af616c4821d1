package dispatch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// watch is one message on its way past the observers; the first begun of them
// have begun and not yet received its end.
type watch struct {
	d       *Dispatcher
	f       *frame.Frame // with the context of the last Begin
	start   time.Time
	begun   int
	outcome frame.Outcome // until it is decided, that of a handler that does not return
}

// watch returns the watch of a message, of which nothing has run. Its end must be
// deferred.
func (d *Dispatcher) watch(f *frame.Frame) watch {
	return watch{d: d, f: f, start: time.Now(), outcome: frame.Outcome{Status: statusPanic, Code: protocol.CodeInternal, Err: ErrPanicked}}
}

// begin tells the observers of the message. The error of one that refuses it is
// made for the client.
func (w *watch) begin() error {
	for i := range w.d.config.Observers {
		if begin := w.d.config.Observers[i].Begin; begin != nil {
			if err := w.ask(begin); err != nil {
				return err
			}
		}
		w.begun++
	}
	return nil
}

// ask calls one Begin. Nothing of why it refuses goes to the client.
func (w *watch) ask(begin func(*frame.Frame) (context.Context, error)) (err error) {
	var ctx context.Context
	var panicked error
	safely.Do(func() { ctx, err = begin(w.f) }, func(failure *safely.Failure) { panicked = w.d.failed(w.f, failure) })
	if panicked != nil {
		return panicked
	}
	if err == nil && ctx == nil {
		err = errors.New("the Begin of an observer returned neither a context nor an error")
	}
	if err != nil {
		if w.d.config.OnRefused != nil {
			w.d.config.OnRefused(w.f, err)
		}
		return &protocol.Error{Code: protocol.CodeInternal, Err: err}
	}
	if ctx != context.Context(w.f) {
		w.f = w.f.WithContext(ctx)
	}
	return nil
}

// end tells the observers that have begun how the message ended, the last first.
// It is deferred, and defers itself, because the handler or one of them may end
// the goroutine.
func (w *watch) end() {
	if w.begun == 0 {
		return
	}
	w.begun--
	defer w.end()
	if end := w.d.config.Observers[w.begun].End; end != nil {
		if w.outcome.Duration == 0 {
			w.outcome.Duration = time.Since(w.start)
		}
		safely.Do(func() { end(w.f, w.outcome) }, func(failure *safely.Failure) { _ = w.d.failed(w.f, failure) })
	}
}

// decide notes how the message has ended: with a result, or with err, for which
// fault is sent. The errors are users' code; if that fails, the outcome stays a
// panic.
func (w *watch) decide(result protocol.Result, fault *protocol.Error, err error) {
	o, toolFailed := frame.Outcome{Err: err}, false
	if err == nil {
		o.Err, toolFailed = toolFault(result)
	}
	if fault != nil {
		o.Code = fault.Code
	}
	safely.Do(func() {
		o.Status = statusOf(w.f, result, o, toolFailed)
		w.outcome = o
	}, func(failure *safely.Failure) { _ = w.d.failed(w.f, failure) })
}

// toolFault reports whether a result says that a tool has failed, and of what, which
// is nil where the tool has made the result by itself.
func toolFault(result protocol.Result) (err error, failed bool) {
	if called, ok := wire.Unwrap(result).(*protocol.CallToolResult); ok && called.IsError {
		return called.Err, true
	}
	return nil, false
}

// The words for what no code tells.
const (
	statusToolError     = "tool_error"
	statusArguments     = "arguments"
	statusTimeout       = "timeout"
	statusCancelled     = "cancelled"
	statusDown          = "down"
	statusPanic         = "panic"
	statusInputRequired = "input_required"
	statusOther         = "_OTHER"
)

// words has the words for the codes that JSON-RPC, the protocol and this module
// have.
var words = map[protocol.Code]string{
	protocol.CodeParseError:         "parse_error",
	protocol.CodeInvalidRequest:     "invalid_request",
	protocol.CodeMethodNotFound:     "method_not_found",
	protocol.CodeInvalidParams:      "invalid_params",
	protocol.CodeInternal:           "internal",
	protocol.CodeResourceNotFound:   "resource_not_found",
	protocol.CodeHeaderMismatch:     "header_mismatch",
	protocol.CodeMissingCapability:  "missing_capability",
	protocol.CodeUnsupportedVersion: "unsupported_version",
	protocol.CodeSessionNotFound:    "session_not_found",
	protocol.CodeBusy:               "busy",
	protocol.CodeUnavailable:        "unavailable",
	protocol.CodeInsufficientScope:  "insufficient_scope",
	protocol.CodeUnauthorized:       "unauthorized",
}

// statusOf decides the Status of a message whose handlers have returned: the one
// place that does. Why the context has ended tells more than what a handler made
// of that; what was done nevertheless counts, unless the client does not want it.
func statusOf(f *frame.Frame, result protocol.Result, o frame.Outcome, toolFailed bool) string {
	failed := o.Code != 0 || o.Err != nil || toolFailed
	if f.Err() != nil {
		switch cause := context.Cause(f); {
		case errors.Is(cause, inflight.ErrShutdown):
			if failed {
				return statusDown
			}
		case errors.Is(cause, context.DeadlineExceeded):
			if failed {
				return statusTimeout
			}
		default:
			return statusCancelled
		}
	}
	switch {
	case !failed:
		return unfinished(result)
	case errors.Is(o.Err, wire.ErrInputRequired):
		return statusInputRequired
	case errors.Is(o.Err, ErrTimeout):
		return statusTimeout
	case errors.Is(o.Err, facts.ErrArguments):
		return statusArguments
	case errors.Is(o.Err, errPanic):
		return statusPanic
	case toolFailed:
		return statusToolError
	case f.Request().ID.IsZero() && o.Code == protocol.CodeMethodNotFound:
		return "" // such a notification is to be ignored
	}
	return cmp.Or(words[o.Code], statusOther)
}

// unfinished returns the word for a result that is not the end of what was asked
// for, "" for others.
func unfinished(result protocol.Result) string {
	switch r := wire.Unwrap(result).(type) {
	case *protocol.InputRequiredResult:
		return statusInputRequired
	case wire.Unfinished:
		return r.Status()
	}
	return ""
}

// Why returns the word for the reason of a refusal: the one place that decides it. It
// looks at no cause of the cause, which may be users' code.
func Why(fault *protocol.Error) string {
	if why, ok := fault.Err.(wire.Refusal); ok {
		return string(why)
	}
	return cmp.Or(words[fault.Code], statusOther)
}

// Refused tells the observers of what is refused before it came here, and why.
func (d *Dispatcher) Refused(via frame.Transport, why string, fault *protocol.Error) {
	if d.hears {
		d.Tell(frame.Event{Kind: "refused", Reason: why, Transport: via, Err: fault})
	}
}

// Tell tells the observers of something that belongs to no one message. It waits
// for them, and must be called without a lock.
func (d *Dispatcher) Tell(e frame.Event) {
	for i := range d.config.Observers {
		if event := d.config.Observers[i].Event; event != nil {
			failure, ok := errors.AsType[*safely.Failure](safely.Apart(func() { event(e) }))
			if ok && d.config.OnPanic != nil {
				d.config.OnPanic(e.Frame, failure)
			}
		}
	}
}
