package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// ConcurrencyLimit lets so many requests run at a time, of all clients
// together; less than 1 counts as 1. Those beyond that wait for as long as wait
// and are then refused; 0 refuses them at once. Only requests that run handlers
// count: the handshake, lists and subscriptions do not. A handler that waits for
// its client's answer, in legacy revisions, keeps its place. A call that a handler makes
// with mcp.Server.Call runs in the place of that.
func ConcurrencyLimit(limit int, wait time.Duration) mcp.Middleware {
	places := make(chan struct{}, max(1, limit))
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if !runsHandler(f) || f.Outer() != nil {
				return next(f)
			}
			if err := enter(f, places, wait); err != nil {
				return nil, err
			}
			defer func() { <-places }()
			return next(f)
		}
	}
}

// enter takes a place, waiting for one if need be. It returns an error if none
// becomes free in time.
func enter(f *mcp.Frame, places chan struct{}, wait time.Duration) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	full := busy(0, "The server has %d requests under way, which is the limit", cap(places))
	if wait <= 0 {
		return full
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-timer.C:
		return full
	case <-f.Done():
		return context.Cause(f)
	}
}

// ResultSizeLimit refuses results of handlers that take more than limit bytes
// on the wire: a tool's becomes one that tells the model so, others an error. 0
// or less is no limit. The result is encoded before it is measured: this guards
// clients, and the model's context, not the server's memory. Results of tasks
// are not measured.
func ResultSizeLimit(limit int) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		if limit <= 0 {
			return next
		}
		return func(f *mcp.Frame) (protocol.Result, error) {
			result, err := next(f)
			if err != nil || result == nil || !runsHandler(f) {
				return result, err
			}
			return &sized{Result: result, limit: limit, method: f.Request().Method}, nil
		}
	}
}

// sized is a result with a limit, which is applied when it is encoded: how long
// a result is depends on the revision, and encoding it here as well would do
// the work twice. Other middleware that looks at results has to unwrap it (wire.Unwrap).
type sized struct {
	protocol.Result
	limit  int
	method string
}

// Append implements wire.Result. What exceeds the limit is overwritten: dst
// then has nothing but the result that takes its place.
func (r *sized) Append(dst []byte, to wire.To) ([]byte, error) {
	start := len(dst)
	grown, err := wire.AppendResult(dst, r.Result, to)
	if err != nil || len(grown)-start <= r.limit {
		return grown, err
	}
	text := fmt.Sprintf("The result has %d bytes, over the limit of %d. Ask for less.", len(grown)-start, r.limit)
	if r.method == protocol.MethodToolsCall {
		return wire.AppendResult(dst[:start], failed(text), to)
	}
	return nil, protocol.Errorf(protocol.CodeInternal, "%s", text)
}

// Unwrap implements wire.Wrapper.
func (r *sized) Unwrap() protocol.Result { return r.Result }
