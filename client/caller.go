package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/talaria-go/mcp/protocol"
)

// Caller is what a *Client, a *pool.Pool and a *group.Group have in common.
type Caller interface {
	Ping(ctx context.Context, options ...CallOption) error
	Call(ctx context.Context, tool string, args any, options ...CallOption) (*CallToolResult, error)
	Read(ctx context.Context, uri string, options ...CallOption) (*protocol.ReadResourceResult, error)
	GetPrompt(ctx context.Context, name string, args map[string]string, options ...CallOption) (*protocol.GetPromptResult, error)
	Complete(ctx context.Context, q Completion, options ...CallOption) (*protocol.Completion, error)
	Tools(ctx context.Context, options ...CallOption) iter.Seq2[Tool, error]
	Prompts(ctx context.Context, options ...CallOption) iter.Seq2[Prompt, error]
	Resources(ctx context.Context, options ...CallOption) iter.Seq2[Resource, error]
	Templates(ctx context.Context, options ...CallOption) iter.Seq2[ResourceTemplate, error]
	Close() error
}

// A Client is the simplest of the callers.
var _ Caller = (*Client)(nil)

// Completion asks what an argument of a prompt or of a resource template can
// be. Either Prompt or Template is set.
type Completion struct {
	Prompt   string            // the name of a prompt
	Template string            // the URI template of resources
	Argument string            // the name of the argument
	Value    string            // what is there so far
	Context  map[string]string // arguments filled in before; revisions from 2025-06-18 on
}

// Call calls a tool and returns its structured content as an Out, after
// checking it against the tool's output schema. in encodes to an object, or is
// nil. A tool that fails is an error with a *ToolError in it. A tool without
// structured content gives its text: an Out of string takes it as it is, any
// other reads it as JSON.
func Call[Out any](ctx context.Context, c Caller, tool string, in any, options ...CallOption) (Out, error) {
	var out Out
	result, err := c.Call(ctx, tool, in, append(options[:len(options):len(options)], checkResult())...)
	if err != nil {
		return out, err
	}
	op := "call " + tool
	if result.IsError {
		return out, &Error{Op: op, Method: protocol.MethodToolsCall, Err: &ToolError{Tool: tool, Result: result}}
	}
	switch dst := any(&out).(type) {
	case *json.RawMessage:
		*dst = result.Structured
	case **CallToolResult:
		*dst = result
	default:
		if err := result.Decode(&out); err != nil {
			return out, wrap(op, protocol.MethodToolsCall, invalid(fmt.Errorf("it does not fit %T: %w", out, err)))
		}
	}
	return out, nil
}
