package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// What went wrong, for errors.Is on any error of this package.
var (
	// ErrTimeout: no answer came in time. It is a context.DeadlineExceeded too.
	ErrTimeout = errors.New("timeout")
	// ErrCancelled: the caller, Cancel or the server gave the request up.
	ErrCancelled = errors.New("cancelled")
	// ErrClosed: the client is closed, or the connection was lost.
	ErrClosed = errors.New("connection closed")
	// ErrNotFound: there is no such resource, task or pending request.
	ErrNotFound = errors.New("not found")
	// ErrSessionExpired: the server ended the session. The client has a new one
	// by then, if Options.NoReconnect lets it, but the request was not sent again
	// because that may not be safe.
	ErrSessionExpired = errors.New("session expired")
	// ErrUnsupported: the server, or the revision that it speaks, does not have
	// what was asked for. Nothing was sent, or the server said so.
	ErrUnsupported = errors.New("not supported")
)

// Error is the error of everything that a client does. errors.Is finds what
// went wrong among this package's sentinels, errors.As the *protocol.Error of a
// server that answered with one.
type Error struct {
	Op     string          // what was done, such as "connect" or "call echo"
	Method string          // of the request; "" if it failed before there was one
	Code   protocol.Code   // of the server's error; 0 if it sent none
	Data   json.RawMessage // likewise; nil if there is none
	Err    error           // the cause

	kind error // one of the sentinels, or nil
	lost bool  // the connection was lost while the request was under way
}

// Error says what was done and why that failed.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("mcp client")
	if e.Op != "" {
		b.WriteString(": " + e.Op)
	}
	if e.kind != nil {
		b.WriteString(": " + e.kind.Error())
	}
	if e.Err != nil && e.Err != e.kind {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the sentinel and the cause.
func (e *Error) Unwrap() []error {
	switch {
	case e.kind == nil:
		return []error{e.Err}
	case e.Err == nil:
		return []error{e.kind}
	}
	return []error{e.kind, e.Err}
}

// Is makes a timeout the error that contexts have for it.
func (e *Error) Is(target error) bool {
	return target == context.DeadlineExceeded && e.kind == ErrTimeout
}

// Retriable tells whether the same request may succeed later: it timed out, the
// connection or the session was lost, or the server was busy. It does not say
// that sending it again is safe; see Idempotent.
func Retriable(err error) bool {
	var status *link.StatusError
	if errors.As(err, &status) {
		switch status.Code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.lost {
		return true
	}
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrSessionExpired) || e.Code == protocol.CodeBusy
}

// StatusCode returns the HTTP status of an answer that carried no message, or
// that refused the request for want of rights: 401 and 403, whose JSON-RPC error
// is in err too if there was one. It is 0 for everything else.
func StatusCode(err error) int {
	var status *link.StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// Garbage returns the beginning of what the server sent last that is no message
// of the protocol, if that may be the reason for err; otherwise "".
func Garbage(err error) string {
	var garbled *garbledError
	if errors.As(err, &garbled) {
		return garbled.text
	}
	return ""
}

// garbledError is an error after something came that is no message.
type garbledError struct {
	err  error
	text string
}

func (e *garbledError) Error() string {
	return fmt.Sprintf("%v; the server sent what is no message, lastly %q (what it logs belongs on its standard error)", e.err, e.text)
}

func (e *garbledError) Unwrap() error { return e.err }

// ToolError is the cause of the error of a typed Call whose tool failed, that
// is, whose result has isError set.
type ToolError struct {
	Tool   string
	Result *CallToolResult
}

// Error returns what the tool said.
func (e *ToolError) Error() string {
	if text := e.Result.Text(); text != "" {
		return fmt.Sprintf("tool %q failed: %s", e.Tool, text)
	}
	return fmt.Sprintf("tool %q failed and said nothing", e.Tool)
}

// serverFault reads the error object of an answer.
func serverFault(raw []byte) error {
	fault := &protocol.Error{}
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw) + 1}
	if s.Peek() != jsonx.Object {
		return fmt.Errorf("the server answered with an error that is no object: %.100s", raw)
	}
	var wire struct {
		Code    protocol.Code   `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return fmt.Errorf("the server answered with an error that does not decode: %w", err)
	}
	fault.Code, fault.Message = wire.Code, wire.Message
	if wire.Data != nil {
		fault.Data = wire.Data
	}
	return fault
}

// kindOf finds the sentinel for a server's error.
func kindOf(method string, fault *protocol.Error, name string) error {
	switch fault.Code {
	case protocol.CodeMethodNotFound, protocol.CodeUnsupportedVersion:
		return ErrUnsupported
	case protocol.CodeResourceNotFound:
		return ErrNotFound
	case protocol.CodeInvalidParams:
		if strings.HasPrefix(method, "tasks/") {
			return ErrNotFound
		}
		data, _ := fault.Data.(json.RawMessage)
		var about struct {
			URI string `json:"uri"`
		}
		// Modern revisions have no code for it; the data names the resource.
		if method == protocol.MethodResourcesRead && len(data) > 0 && json.Unmarshal(data, &about) == nil && about.URI == name {
			return ErrNotFound
		}
	}
	return nil
}

// wrap makes err the error of an operation.
func wrap(op, method, name string, err error) error {
	if err == nil {
		return nil
	}
	// One that stands inside another error keeps its place there.
	if own, ok := err.(*Error); ok {
		if own.Op != "" {
			return err
		}
		done := *own
		done.Op, done.Method = op, method
		return &done
	}
	e := &Error{Op: op, Method: method, Err: err}
	var own *Error
	var fault *protocol.Error
	switch {
	case errors.As(err, &own):
		e.Code, e.Data, e.lost = own.Code, own.Data, own.lost
	case errors.As(err, &fault):
		e.Code = fault.Code
		e.Data, _ = fault.Data.(json.RawMessage)
		e.kind = kindOf(method, fault, name)
	case errors.Is(err, link.ErrSession):
		e.kind = ErrSessionExpired
	case errors.Is(err, context.DeadlineExceeded):
		e.kind = ErrTimeout
	case errors.Is(err, context.Canceled):
		e.kind = ErrCancelled
	}
	if own == nil && StatusCode(err) == http.StatusUnauthorized {
		e.Err = &unauthorizedError{err}
	}
	return e
}

// unauthorizedError is the error of a request without credentials, or with the
// wrong ones.
type unauthorizedError struct{ err error }

func (e *unauthorizedError) Error() string {
	return e.err.Error() + " (HTTPOptions.Header or HeaderFunc sends a token; package auth/oauth gets one)"
}

func (e *unauthorizedError) Unwrap() error { return e.err }

// unsupported is the error for what cannot be asked for.
func unsupported(op, method, format string, args ...any) error {
	return &Error{Op: op, Method: method, kind: ErrUnsupported, Err: fmt.Errorf(format, args...)}
}
