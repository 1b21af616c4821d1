package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

func TestErrors(t *testing.T) {
	tests := []struct {
		name      string
		err       error
		method    string
		is        error // nil: none of the sentinels
		retriable bool
		text      string
	}{
		{"timeout", &Error{kind: ErrTimeout, Err: errors.New("no answer within 1s")}, "tools/call", ErrTimeout, true,
			"op: timeout: no answer within 1s"},
		{"deadline", context.DeadlineExceeded, "", ErrTimeout, true, "op: timeout: context deadline exceeded"},
		{"cancelled", context.Canceled, "", ErrCancelled, false, "op: cancelled: context canceled"},
		{"unknown method", &protocol.Error{Code: -32601, Message: "x"}, "x", ErrUnsupported, false, "op: not supported: Method not found: x"},
		{"no such resource, legacy", &protocol.Error{Code: -32002, Message: "x"}, "resources/read", ErrNotFound, false,
			"op: not found: Resource not found: x"},
		{"bad params", &protocol.Error{Code: -32602, Message: "x"}, "resources/read", ErrInvalidParams, false, "op: Invalid params: x"},
		{"bad params, found here", &Error{kind: ErrInvalidParams, Err: errors.New("a is missing")}, "tools/call", ErrInvalidParams, false, "op: invalid params: a is missing"},
		{"busy", &protocol.Error{Code: 429, Message: "x"}, "tools/call", ErrBusy, true, "op: the server is busy: Too many requests: x"},
		{"no token", &origin.StatusError{Code: 401}, "", ErrUnauthorized, false, "op: not authorized: the server answered with HTTP status 401 Unauthorized (HTTPOptions.Header or HeaderFunc sends a token; package auth/oauth gets one)"},
		{"too few rights", &protocol.Error{Code: 403, Message: "x"}, "tools/call", ErrUnauthorized, false, "op: not authorized: Insufficient scope: x"},
		{"no result", invalid(errors.New("it is a number")), "tools/call", ErrInvalidResult, false, "op: invalid result: it is a number"},
		{"session", link.ErrSession, "", ErrSessionExpired, true, "op: session expired: the server ended the session"},
		{"unavailable", &origin.StatusError{Code: 503}, "", ErrBusy, true, "op: the server is busy: the server answered with HTTP status 503 Service Unavailable"},
		{"forbidden", &origin.StatusError{Code: 403}, "", ErrUnauthorized, false, "op: not authorized: the server answered with HTTP status 403 Forbidden"},
		{"lost", &Error{kind: ErrConnection, Err: io.EOF}, "", ErrConnection, true, "op: no connection: EOF"},
		{"closed", &Error{kind: ErrClosed, Err: errClientClosed}, "", ErrClosed, false, "op: closed: by Client.Close"},
		{"network", sent(&connection{sync: true}, fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})), "", ErrConnection, true,
			"op: no connection: post: dial: refused"},
		{"write", sent(&connection{}, io.ErrClosedPipe), "", ErrConnection, true, "op: no connection: io: read/write on closed pipe"},
		{"inside another", fmt.Errorf("outer: %w", &Error{Op: "inner", kind: ErrTimeout, Err: errors.New("late")}), "", ErrTimeout, true,
			"op: outer: inner: timeout: late"},
		{"done before", &Error{Op: "inner", kind: ErrClosed}, "", ErrClosed, false, "inner: closed"},
	}
	sentinels := []error{ErrTimeout, ErrCancelled, ErrClosed, ErrNotFound, ErrInvalidParams, ErrSessionExpired, ErrUnsupported, ErrConnection, ErrUnauthorized, ErrBusy, ErrInvalidResult}
	for _, tt := range tests {
		err := wrap("op", tt.method, tt.err)
		if err.Error() != tt.text {
			t.Errorf("%s: %q, want %q", tt.name, err, tt.text)
		}
		for _, sentinel := range sentinels {
			if errors.Is(err, sentinel) != (sentinel == tt.is) {
				t.Errorf("%s: errors.Is %v: %v", tt.name, sentinel, errors.Is(err, sentinel))
			}
		}
		if Retriable(err) != tt.retriable {
			t.Errorf("%s: Retriable %v", tt.name, !tt.retriable)
		}
		if errors.Is(err, context.DeadlineExceeded) != (tt.is == ErrTimeout) {
			t.Errorf("%s: DeadlineExceeded %v", tt.name, errors.Is(err, context.DeadlineExceeded))
		}
	}
	if wrap("op", "", nil) != nil || Retriable(nil) || Retriable(io.EOF) {
		t.Error("no error is one")
	}
}

// What other SDKs mean by the codes of the implementation's own.
func TestForeignCodes(t *testing.T) {
	tests := []struct {
		code          protocol.Code
		message, text string
		want          error
	}{
		{-32000, "Connection closed", "call x: no connection: error -32000: Connection closed", ErrConnection},
		{-32000, "MCP error -32000: Connection closed", "", ErrConnection},
		{-32000, "the disk is full", "call x: error -32000: the disk is full", nil},
		{-32001, "Request timed out", "call x: timeout: Request timed out", ErrTimeout},
		{-32001, "MCP error -32001: Request timed out", "call x: timeout: MCP error -32001: Request timed out", ErrTimeout},
		{-32001, "Maximum total timeout exceeded", "call x: timeout: Maximum total timeout exceeded", ErrTimeout},
		{-32001, "Session not found", "call x: Session not found", nil},
		{-32001, "Unauthorized", "call x: Unauthorized", nil},
		{-32001, "Tool not found", "call x: Tool not found", nil},
		{408, "Timed out while waiting for response to ClientRequest. Waited 5.0 seconds.", "", ErrTimeout},
		{504, "upstream", "", ErrTimeout},
		{503, "draining", "", ErrBusy},
		{429, "later", "", ErrBusy},
	}
	for _, tt := range tests {
		err := wrap("call x", "tools/call", &protocol.Error{Code: tt.code, Message: tt.message})
		if tt.want != nil && (!errors.Is(err, tt.want) || !Retriable(err)) || tt.want == nil && Retriable(err) {
			t.Errorf("%d %q: %v, Retriable %v", tt.code, tt.message, err, Retriable(err))
		}
		if tt.text != "" && err.Error() != tt.text {
			t.Errorf("%d %q: %q, want %q", tt.code, tt.message, err, tt.text)
		}
	}
}
