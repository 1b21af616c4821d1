package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// What went wrong, for errors.Is on any error of this package. Each is a cause
// that a program can act on.
var (
	// ErrTimeout: no answer came in time. It is a context.DeadlineExceeded too.
	ErrTimeout error = timeout{}
	// ErrCancelled: the caller, Cancel or the server gave the request up. It is a
	// context.Canceled too where a context of the caller did that.
	ErrCancelled = errors.New("cancelled")
	// ErrClosed: what was called is closed, by its owner or, for a Subscription,
	// by the server.
	ErrClosed = errors.New("closed")
	// ErrConnection: the connection could not be made, or was lost before the
	// answer came. Whether the server has received the request is not known.
	ErrConnection = errors.New("no connection")
	// ErrNotFound: there is no such tool, prompt, resource, task or pending
	// request.
	ErrNotFound = errors.New("not found")
	// ErrInvalidParams: what the request is about is there, but the server, or the
	// client with Options.CheckArguments, rejects the arguments.
	ErrInvalidParams = errors.New("invalid params")
	// ErrSessionExpired: the server ended the session while the request was in
	// progress. The client has a new one by then, if Options.NoReconnect lets it,
	// but the request was not sent again because that may not be safe. A request
	// that the server refused because of its session was not processed, and is
	// sent again.
	ErrSessionExpired = errors.New("session expired")
	// ErrUnsupported: the server, or the revision that it speaks, does not have
	// what was asked for. Nothing was sent, or the server said so.
	ErrUnsupported = errors.New("not supported")
	// ErrUnauthorized: the server wants other credentials, or more rights than
	// these have: HTTP status 401 or 403. StatusCode returns which. A login of
	// package auth/oauth that was refused is one, too. Nothing is tried again in
	// the background after it.
	ErrUnauthorized = attend.ErrUnauthorized
	// ErrBusy: the server refused the request for now, by HTTP status 429 or 503
	// or by the code of its error.
	ErrBusy = errors.New("the server is busy")
	// ErrChanged: a tool, or the instructions of the server, are not what Options.Pin
	// has. Nothing was sent.
	ErrChanged = errors.New("changed")
	// ErrInvalidResult: the server's answer is not what the method has to give,
	// does not fit the tool's output schema, or does not fit the type that the
	// caller wants.
	ErrInvalidResult = errors.New("invalid result")
)

// timeout is ErrTimeout.
type timeout struct{}

// Error implements error.
func (timeout) Error() string { return "timeout" }

// Unwrap returns what it is, too.
func (timeout) Unwrap() error { return context.DeadlineExceeded }

// Error is the error of everything that a client does. errors.Is finds what
// went wrong among this package's sentinels, errors.As the *protocol.Error of a
// server that answered with one.
type Error struct {
	Op     string          // what was done, such as "connect" or "call echo"
	Method string          // of the request; "" if it failed before there was one
	Code   protocol.Code   // of the server's error; 0 if it sent none
	Data   json.RawMessage // the same; nil if there is none
	// Result is the result of a tools/call that is ErrInvalidResult, as it came; nil
	// otherwise. What of it is valid can still be read.
	Result json.RawMessage
	// Safe reports that sending the request again does nothing that sending it
	// once does not: the method only reads, a hint of the tool says so, or the
	// caller does by Idempotent. It is false if Retry(1) forbids it.
	Safe bool
	Err  error // the cause

	kind error // one of the sentinels; nil if the cause tells, or if none fits
}

// Error says what was done and why it failed. Text from the server in it has no
// control and no invisible characters and a limited length; a *ToolError or a
// *protocol.Error within has the text as it came.
func (e *Error) Error() string {
	var parts []string
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.kind != nil && (e.kind != ErrInvalidParams || e.Code != protocol.CodeInvalidParams) {
		parts = append(parts, e.kind.Error()) // the name of a code is part of the error that has it
	}
	if e.Err != nil && e.Err != e.kind {
		parts = append(parts, e.Err.Error())
	}
	return visible.Text(strings.Join(parts, ": "), maxErrorText)
}

// maxErrorText is how long the text of an error is, in bytes.
const maxErrorText = 2 * visible.Sentence

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

// Retriable reports whether the same request may succeed later: it timed out,
// the connection or the session was lost, or the server was busy. It does not
// say that sending it again is safe, which Error.Safe does.
func Retriable(err error) bool {
	if errors.Is(err, ErrUnauthorized) {
		return false
	}
	if status, ok := errors.AsType[*origin.StatusError](err); ok {
		switch status.Code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return slices.ContainsFunc([]error{ErrConnection, ErrTimeout, ErrSessionExpired, ErrBusy}, func(kind error) bool { return errors.Is(err, kind) })
}

// retryAfter returns how long to wait before the next request, from the header
// Retry-After or the data of the server's error; 0 without either.
func retryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*origin.StatusError](err); ok {
		text := status.Header.Get("Retry-After")
		if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
			return time.Duration(seconds) * time.Second
		}
		if at, err := http.ParseTime(text); err == nil {
			return time.Until(at)
		}
	}
	var own *Error
	var said struct {
		RetryAfterMs uint32 `json:"retryAfterMs"`
	}
	if errors.As(err, &own) && own.Data != nil && jsonx.Unmarshal(own.Data, &said) == nil {
		return time.Duration(said.RetryAfterMs) * time.Millisecond
	}
	return 0
}

// StatusCode returns the HTTP status of an answer that carried no message, or
// that refused the request for want of rights: 401 and 403, whose JSON-RPC error
// is in err too if there was one. It is 0 for everything else.
func StatusCode(err error) int {
	var status *origin.StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// LastInvalidMessage returns the beginning of what the server sent last that is
// not a message of the protocol, if that may be the reason for err; otherwise
// "".
func LastInvalidMessage(err error) string {
	if invalid, ok := errors.AsType[*invalidMessageError](err); ok {
		return invalid.text
	}
	return ""
}

// strayIDError adds to an error that the server has answered no request.
type strayIDError struct {
	err error
	id  string
}

func (e *strayIDError) Error() string {
	return fmt.Sprintf("%v; the server has answered with the id %s, which no request has: an answer has the id as it was sent", e.err, e.id)
}

func (e *strayIDError) Unwrap() error { return e.err }

// invalidMessageError is an error that may be explained by text of the server
// that is not a message.
type invalidMessageError struct {
	err  error
	text string
}

// Error adds what was sent to the error that it may explain.
func (e *invalidMessageError) Error() string {
	return fmt.Sprintf("%v; the server sent invalid messages, the last one %q (its log belongs on standard error)", e.err, e.text)
}

// Unwrap returns the error without the guess.
func (e *invalidMessageError) Unwrap() error { return e.err }

// SilentError is among the causes of a timeout, or another end of waiting, while
// the client connects to a command: what may be the reason that it does not
// answer.
type SilentError struct {
	// Stderr is the end of what the command has written to standard error.
	Stderr string
	// Withheld are the names of variables that are set here and that the command did
	// not get, although servers often need such.
	Withheld []string
}

// Error says what the command wrote and what it did not get.
func (e *SilentError) Error() string {
	text := "the command has written nothing to standard error"
	if e.Stderr != "" {
		text = "the command has written to standard error:\n" + visible.Text(e.Stderr, visible.Sentence)
	}
	if len(e.Withheld) > 0 {
		text += "\nit did not get these variables, which are set here (CommandTransport.Env passes them on): " + strings.Join(e.Withheld, ", ")
	}
	return text
}

// ToolError is the cause of the error of a typed Call whose tool failed, that
// is, whose result has isError set.
type ToolError struct {
	Tool   string
	Result *CallToolResult
}

// Error returns what the tool said.
func (e *ToolError) Error() string {
	if text := e.Result.Text(); text != "" {
		return visible.Text(text, visible.Sentence)
	}
	return "the tool failed and said nothing"
}

// serverFault decodes the error object of a response.
func serverFault(raw []byte) error {
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw) + 1}
	if s.Peek() != jsonx.Object {
		return invalid(fmt.Errorf("the server answered with an error that is not an object: %.100s", raw))
	}
	fault, err := origin.ParseFault(raw)
	if err != nil {
		return invalid(fmt.Errorf("the server answered with an error that does not decode: %w", err))
	}
	return fault
}

// kindOf returns the sentinel for a cause, or nil if none fits or the cause has
// one already.
func kindOf(method string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return nil
	}
	if status, ok := errors.AsType[*origin.StatusError](err); ok {
		switch status.Code {
		case http.StatusUnauthorized, http.StatusForbidden:
			return ErrUnauthorized
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			return ErrBusy
		}
	}
	if fault, ok := errors.AsType[*protocol.Error](err); ok {
		return kindOfFault(method, fault)
	}
	switch {
	case errors.Is(err, ErrUnauthorized):
		return ErrUnauthorized // before what it may have been caused by
	case errors.Is(err, link.ErrSession):
		return ErrSessionExpired
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case errors.Is(err, context.Canceled):
		return ErrCancelled
	}
	return nil
}

// unauthorized reports whether err means that only other credentials help.
func unauthorized(err error) bool {
	return errors.Is(err, ErrUnauthorized) || kindOf("", err) == ErrUnauthorized
}

// final reports whether err means that connecting again does not help until the caller
// has acted.
func final(err error) bool { return unauthorized(err) || errors.Is(err, ErrChanged) }

// codeClosed is the code with which the TypeScript SDK says that its connection
// to another server has closed. Its code for a timeout has the number of
// protocol.CodeSessionNotFound.
const codeClosed protocol.Code = -32000

// The codes with which the Python SDK and gateways say that there was no answer in time:
// those of HTTP.
const (
	codeRequestTimeout protocol.Code = http.StatusRequestTimeout
	codeGatewayTimeout protocol.Code = http.StatusGatewayTimeout
)

// kindOfFault returns the sentinel for an error that the server answered with,
// or nil.
func kindOfFault(method string, fault *protocol.Error) error {
	switch wire.EventCodeOf(method, fault.Code) {
	case wire.CodeEventNotFound:
		return ErrNotFound
	case wire.CodeEventForbidden:
		return ErrUnauthorized
	case wire.CodeEventsExhausted:
		return ErrBusy
	case wire.CodeEventsUnsupported:
		return ErrUnsupported
	}
	switch text := strings.ToLower(fault.Message); fault.Code {
	case codeClosed:
		// Many use this code for anything.
		if text == "" || strings.Contains(text, "connection") || strings.Contains(text, "closed") {
			return ErrConnection
		}
	case protocol.CodeSessionNotFound: // which the HTTP status 404 also reports
		// Some use it for a login that is missing, and for what is not there.
		if strings.Contains(text, "timed out") || strings.Contains(text, "timeout") || strings.Contains(text, "time out") || strings.Contains(text, "deadline") {
			return ErrTimeout
		}
	case codeRequestTimeout, codeGatewayTimeout:
		return ErrTimeout
	case protocol.CodeMethodNotFound, protocol.CodeUnsupportedVersion:
		return ErrUnsupported
	case protocol.CodeResourceNotFound:
		return ErrNotFound
	case protocol.CodeBusy, protocol.CodeUnavailable:
		return ErrBusy
	case protocol.CodeUnauthorized, protocol.CodeInsufficientScope:
		return ErrUnauthorized
	case protocol.CodeInvalidParams:
		if method == protocol.MethodTasksGet {
			return ErrNotFound // the id is its only argument
		}
		return ErrInvalidParams
	}
	return nil
}

// wrap returns err as the *Error of an operation. It returns an error that has
// an Op already unchanged, and nil for nil.
func wrap(op, method string, err error) error {
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
	e := &Error{Op: op, Method: method, Err: err, kind: kindOf(method, err)}
	var own *Error
	var fault *protocol.Error
	if errors.As(err, &own) {
		e.Code, e.Data = own.Code, own.Data
	} else if errors.As(err, &fault) {
		e.Code = fault.Code
		e.Data, _ = fault.Data.(json.RawMessage)
	}
	if own == nil && StatusCode(err) == http.StatusUnauthorized {
		e.Err = &unauthorizedError{err}
	}
	return e
}

// invalid returns err as the error of a result that is not what the method must
// give; nil for nil.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return &Error{kind: ErrInvalidResult, Err: err}
}

// unauthorizedError is the error of a request that was answered with 401. Its
// text tells what to do, because it reaches people who have just entered an
// address and know nothing of tokens.
type unauthorizedError struct{ err error }

// Error says what to do: the error reaches people who have just given an address,
// and know nothing of tokens.
func (e *unauthorizedError) Error() string {
	return e.err.Error() + " (HTTPOptions.Header or HeaderFunc sends a token; package auth/oauth gets one)"
}

// Unwrap returns the error of the server.
func (e *unauthorizedError) Unwrap() error { return e.err }

// unsupported returns the error for a request that is not sent, because the
// server or the revision does not have it.
func unsupported(op, method, format string, args ...any) error {
	return &Error{Op: op, Method: method, kind: ErrUnsupported, Err: fmt.Errorf(format, args...)}
}

// unconnected returns the error of something that needs a connection, which was
// lost or could not be made because of err.
func unconnected(op string, err error) *Error {
	if own, ok := err.(*Error); ok && own.kind == ErrConnection {
		err = own.Err // it is said once
	}
	return &Error{Op: op, kind: ErrConnection, Err: err}
}

// sent returns the error of sending a message. A failure of the network is
// worth another attempt, and a byte stream that takes nothing any more is lost.
func sent(conn *connection, err error) error {
	var status *origin.StatusError
	switch {
	case err == nil, errors.As(err, &status), errors.Is(err, link.ErrSession):
		return err
	case !conn.sync, ofNetwork(err):
		return unconnected("", err)
	}
	return err
}

// ofNetwork reports whether an HTTP exchange failed because of its connection,
// and not because of anything said on it.
func ofNetwork(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, ErrUnauthorized) {
		return false // though it may have a net.Error, or be one
	}
	var broken net.Error
	if errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	text := err.Error()
	return slices.ContainsFunc(hiddenErrors[:], func(hidden string) bool { return strings.Contains(text, hidden) })
}

// hiddenErrors are the texts of errors of net/http for a broken connection that
// have neither a name nor a type outside of that package.
var hiddenErrors = [...]string{
	"http: server closed idle connection",
	"http2: client connection lost",
	"http2: client conn not usable",
	"http2: server sent GOAWAY",
	"http2: Transport received Server's graceful shutdown GOAWAY",
	"stream error: stream ID ", // of HTTP/2
}

// slow reports whether a network error is a timeout, so that another attempt
// would take as long.
func slow(err error) bool {
	var broken net.Error
	return errors.As(err, &broken) && broken.Timeout()
}
