package middleware

import (
	"errors"
	"fmt"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// MaskErrors keeps the text of handlers' errors from clients, as
// Options.MaskErrors does for a whole server; in a chain it can stand where it
// is wanted, and tells report, if that is not nil, of each error that it masks.
// What is meant for clients passes as it is: a *mcp.Error, a result that a tool
// made itself, faults of arguments, resources that are not found.
func MaskErrors(report func(f *mcp.Frame, err error)) mcp.Middleware {
	if report == nil {
		report = func(*mcp.Frame, error) {}
	}
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			result, err := next(f)
			if err != nil {
				return nil, maskError(f, err, report)
			}
			call, ok := unwrap(result).(*protocol.CallToolResult)
			if !ok || !call.IsError || call.Err == nil {
				return result, nil
			}
			report(f, call.Err)
			return failed(fmt.Sprintf("Tool %q failed.", f.Request().Params.Name)), nil
		}
	}
}

func maskError(f *mcp.Frame, err error, report func(f *mcp.Frame, err error)) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok || errors.Is(err, mcp.ErrInputRequired) || errors.Is(err, mcp.ErrNotFound) {
		return err
	}
	report(f, err)
	return &protocol.Error{Code: protocol.CodeInternal, Err: err}
}
