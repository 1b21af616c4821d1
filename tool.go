package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
)

// Tool makes a tool of a func. In is a struct whose tags describe and check
// the arguments; struct{} takes none. Out decides the form of the result:
//
//	string                 text
//	protocol.Content       one item of content, of any type
//	[]protocol.Content     several
//	*Result                whatever its builder was told
//	struct{}               nothing
//	any other type         structured content, with a schema made from the type
//
// An error becomes a result that says so (isError), for the model to read; an
// *Error anywhere in its chain becomes that JSON-RPC error. A panic costs the
// call and nothing else.
//
// Names have 1 to 128 letters, digits, '_', '-' and '.'. Faults of name, types
// and tags are reported by Server.Add.
func Tool[In, Out any](name string, fn func(f *Frame, in In) (Out, error), opts ...ComponentOption) Component {
	type call struct {
		in  In
		out Out
	}
	t := &tool{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), settings: newSettings(opts)}
	if fn == nil {
		t.settings.fault("the func is nil")
	}
	t.run = func(f *frame.Frame, decode func(dst any) error) (any, error) {
		c := new(call) // arguments and result in one piece of memory
		if err := decode(&c.in); err != nil {
			return nil, err
		}
		var err error
		c.out, err = fn(f, c.in)
		return &c.out, err
	}
	return t
}

// Plain adapts a func that takes any context to one that takes a Frame.
// frame.From finds the Frame in the context.
func Plain[In, Out any](fn func(ctx context.Context, in In) (Out, error)) func(f *Frame, in In) (Out, error) {
	return func(f *Frame, in In) (Out, error) { return fn(f, in) }
}

// tool is a func with its types erased.
type tool struct {
	name     string
	in, out  reflect.Type
	settings *settings
	// run decodes the arguments and calls the func; out is a pointer to its
	// result.
	run func(f *frame.Frame, decode func(dst any) error) (out any, err error)
}

// compile implements Component.
func (t *tool) compile(s *Server, all *offer) error {
	set := t.settings
	faults := append(append([]string(nil), set.faults...), set.misused(toolKind, "a tool")...)
	if set.task != nil && set.timeout > 0 {
		faults = append(faults, "Timeout does not go with AsTask; limit the task with TaskOptions.TTL")
	}
	if !validName(t.name) {
		faults = append(faults, "a name has 1 to 128 letters, digits, '_', '-' or '.'")
	}
	input, inputJSON, err := t.compileInput(s)
	if err != nil {
		faults = append(faults, err.Error())
	}
	output, err := t.compileOutput(s)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return fmt.Errorf("mcp: tool %q: %s", t.name, strings.Join(faults, "\n\t"))
	}
	r := &registry.Tool{Definition: protocol.Tool{
		Name: t.name, Title: set.title, Description: set.doc, Icons: set.icons,
		InputSchema: inputJSON, OutputSchema: output.schema, Annotations: set.hints, Meta: set.meta,
	}, Visible: set.visible, Scopes: set.scopes, Task: set.task != nil}
	if input.plan != nil {
		for _, h := range input.plan.Headers() {
			r.Headers = append(r.Headers, protocol.HeaderParam{Name: h.Header, Path: h.Path})
		}
	}
	limit := set.timeout
	if limit == 0 {
		limit = s.opts.Timeout
	}
	r.Call = t.caller(s, input, output, limit)
	all.tools = append(all.tools, r)
	return nil
}

func validName(name string) bool {
	if len(name) == 0 || len(name) > 128 {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// caller puts the parts of a call together.
func (t *tool) caller(s *Server, input input, output *output, limit time.Duration) dispatch.Handler {
	call := func(f *frame.Frame) (protocol.Result, error) {
		out, err := t.run(f, func(dst any) error { return input.decode(f.Request().Params.Arguments, dst) })
		if err != nil {
			return t.failed(s, err)
		}
		return output.result(out)
	}
	if t.settings.task != nil {
		return s.detachable(t.settings.task, call)
	}
	if limit <= 0 {
		return call
	}
	return func(f *frame.Frame) (protocol.Result, error) {
		result, err := s.host(f).timeout(f, limit, call)
		if errors.Is(err, dispatch.ErrTimeout) {
			return errorResult(fmt.Sprintf("Tool %q timed out after %v.", t.name, limit)), nil
		}
		return result, err
	}
}

// failed turns the error of a call into its result: errors are for the model
// to read, unless they are protocol errors.
func (t *tool) failed(s *Server, err error) (protocol.Result, error) {
	if _, ok := errors.AsType[*protocol.Error](err); ok || errors.Is(err, frame.ErrInputRequired) {
		return nil, err
	}
	if bad, ok := errors.AsType[*inputError](err); ok {
		r := errorResult(bad.faults.Text(fmt.Sprintf("tool %q", t.name)))
		r.Meta = protocol.MetaMap{issuesKey: bad.faults.Issues}
		return r, nil
	}
	if s.opts.MaskErrors {
		s.logger.Error().Err(err).Str("tool", t.name).Msg("tool failed")
		return errorResult(fmt.Sprintf("Tool %q failed.", t.name)), nil
	}
	r := errorResult(err.Error())
	r.Err = err
	return r, nil
}

// issuesKey is where the _meta of a result has the faults of the arguments,
// for programs.
const issuesKey = "io.github.talaria-go/issues"

// inputError tells faults of the arguments from a *schema.Error that a handler
// may return for reasons of its own.
type inputError struct{ faults *schema.Error }

func (e *inputError) Error() string { return e.faults.Error() }

func errorResult(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}, IsError: true}
}

// input decodes and checks arguments, by a plan or, if the user brought a
// schema, by that.
type input struct {
	plan *schema.Plan
	raw  *schema.Raw
}

func (t *tool) compileInput(s *Server) (in input, definition json.RawMessage, err error) {
	if t.settings.inputSchema != nil {
		in.raw, err = schema.CompileRaw(t.settings.inputSchema)
		if err != nil {
			return in, nil, fmt.Errorf("InputSchema: %w", err)
		}
		var root struct{ Type any }
		if _ = json.Unmarshal(in.raw.JSON(), &root); root.Type != "object" {
			return in, nil, errors.New(`InputSchema: arguments are an object; put "type": "object" at its root`)
		}
		return in, in.raw.JSON(), nil
	}
	opts := schema.Options{}
	if s.opts.Schema != nil {
		opts = *s.opts.Schema
	}
	opts.Strict = opts.Strict || t.settings.strict
	opts.Output = false
	if in.plan, err = schema.Compile(t.in, &opts); err != nil {
		return in, nil, err
	}
	return in, in.plan.JSON(), nil
}

var noArguments = []byte("{}")

func (in input) decode(args []byte, dst any) error {
	if len(args) == 0 || string(args) == "null" {
		args = noArguments
	}
	var err error
	switch {
	case in.plan != nil:
		err = in.plan.Decode(args, dst)
	default:
		if err = in.raw.Check(args); err == nil {
			err = json.Unmarshal(args, dst)
		}
	}
	if issues, ok := errors.AsType[*schema.Error](err); ok {
		return &inputError{issues}
	}
	return err
}
