package dispatch

import (
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// badError panics wherever the dispatcher could touch an error.
type badError struct{ in string }

func (e *badError) Error() string {
	if e.in == "Error" {
		panic("secret in Error")
	}
	return "bad error"
}

func (e *badError) As(any) bool {
	if e.in == "As" {
		panic("secret in As")
	}
	return false
}

type badData struct{}

func (badData) MarshalJSON() ([]byte, error) { panic("secret in MarshalJSON") }

type badResult struct{ protocol.Result }

func (badResult) Append(dst []byte, _ wire.To) ([]byte, error) {
	panic("secret in Append")
}

// Whatever of a user's code panics costs the one call: it is answered with
// -32603, tells the log what happened and the client nothing.
func TestPanics(t *testing.T) {
	fails := func(err error) frame.Handler {
		return func(*frame.Frame) (protocol.Result, error) { return nil, err }
	}
	returns := func(r protocol.Result) frame.Handler {
		return func(*frame.Frame) (protocol.Result, error) { return r, nil }
	}
	var nilError *protocol.Error
	var nilResult *protocol.CallToolResult
	tests := []struct {
		name string
		h    frame.Handler
		told string // to OnPanic
	}{
		{"string", func(*frame.Frame) (protocol.Result, error) { panic("secret") }, "secret"},
		{"error", func(*frame.Frame) (protocol.Result, error) { panic(errors.New("secret")) }, "secret"},
		{"nil map", func(*frame.Frame) (protocol.Result, error) { return protocol.RawResult(nilMap()), nil }, "nil map"},
		{"panic(nil)", func(*frame.Frame) (protocol.Result, error) { panic(nil) }, "nil"},
		{"protocol.Error as value", func(*frame.Frame) (protocol.Result, error) {
			panic(&protocol.Error{Code: 1, Message: "secret"})
		}, "secret"},
		{"result", returns(badResult{}), "secret in Append"},
		{"nil pointer as result", returns(nilResult), "nil pointer"},
		{"MarshalJSON of a result", returns(protocol.JSONResult{Value: map[string]any{"x": badData{}}}), "secret in MarshalJSON"},
		{"Error method", fails(&badError{in: "Error"}), "secret in Error"},
		{"As method", fails(&badError{in: "As"}), "secret in As"},
		{"MarshalJSON of error data", fails(&protocol.Error{Code: 1, Data: badData{}}), "secret in MarshalJSON"},
		{"nil *protocol.Error", fails(nilError), "nil pointer"},
	}
	const want = `before{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error: the handler panicked"}}`
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var told, stack string
			config := Config{OnPanic: func(f *frame.Frame, failure *safely.Failure) {
				told, stack = f.Request().Method+": "+failure.Value, string(failure.Stack)
			}}
			got, fault := serving(config, tt.h).Serve(request(t.Context(), "m", "", legacy), []byte("before"))
			code := codeOf(fault)
			if string(got) != want || code != protocol.CodeInternal {
				t.Errorf("got %d %s\nwant %s", code, got, want)
			}
			if !strings.HasPrefix(told, "m: ") || !strings.Contains(told, tt.told) || !strings.Contains(stack, "dispatch") {
				t.Errorf("OnPanic heard %q, stack of %d bytes; want %q and a stack", told, len(stack), tt.told)
			}
			if got, _ := serving(Config{}, tt.h).Serve(request(t.Context(), "m", "", legacy), []byte("before")); string(got) != want {
				t.Errorf("without OnPanic: %s", got)
			}
		})
	}
}

// The error that Notify and middleware see tells of the panic.
func TestPanicReachesMiddleware(t *testing.T) {
	d := serving(Config{}, func(*frame.Frame) (protocol.Result, error) { panic("boom") })
	err := d.Notify(request(t.Context(), "m", "", legacy))
	if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Err == nil || fault.Err.Error() != "panic: boom" {
		t.Errorf("Notify returned %v, want an error that has the panic as cause", err)
	}
	// A panic in middleware is caught, too.
	d = New(Config{Middleware: []frame.Middleware{func(frame.Handler) frame.Handler {
		return func(*frame.Frame) (protocol.Result, error) { panic("boom") }
	}}})
	if _, fault := d.Serve(request(t.Context(), "m", "", legacy), nil); codeOf(fault) != protocol.CodeInternal {
		t.Errorf("%v", fault)
	}
}

// nilMap writes to a map that is nil.
func nilMap() string {
	m := map[int]int(nil)
	func(m map[int]int) { m[1]++ }(m)
	return ""
}
