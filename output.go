package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// output turns what a func returned, behind a pointer, into a result.
type output struct {
	schema json.RawMessage // nil for results that are not structured
	result func(out any) (protocol.Result, error)
}

var contentType = reflect.TypeFor[protocol.Content]()

// compileOutput decides the form of results by the func's result type.
func (t *tool) compileOutput(s *Server) (*output, error) {
	if t.settings.outputSchema != nil && (t.out == reflect.TypeFor[string]() || t.out == reflect.TypeFor[*Result]()) {
		return t.rawOutput()
	}
	switch {
	case t.out == reflect.TypeFor[string]():
		return &output{result: textResult}, nil
	case t.out == reflect.TypeFor[struct{}]():
		return &output{result: func(any) (protocol.Result, error) { return &protocol.CallToolResult{}, nil }}, nil
	case t.out == reflect.TypeFor[*Result]():
		return &output{result: builtResult}, nil
	case t.out == reflect.TypeFor[[]protocol.Content]():
		return &output{result: func(out any) (protocol.Result, error) {
			return &protocol.CallToolResult{Content: *out.(*[]protocol.Content)}, nil
		}}, nil
	case t.out.Implements(contentType):
		return &output{result: contentResult}, nil
	}
	return t.structuredOutput(s)
}

func textResult(out any) (protocol.Result, error) {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: *out.(*string)}}}, nil
}

func contentResult(out any) (protocol.Result, error) {
	item, _ := reflect.ValueOf(out).Elem().Interface().(protocol.Content)
	if item == nil {
		return &protocol.CallToolResult{}, nil
	}
	return &protocol.CallToolResult{Content: []protocol.Content{item}}, nil
}

func builtResult(out any) (protocol.Result, error) {
	r := *out.(**Result)
	if r == nil {
		return &protocol.CallToolResult{}, nil
	}
	return r.build()
}

// structuredOutput makes schema and encoder of the result type.
func (t *tool) structuredOutput(s *Server) (*output, error) {
	encoder, err := jsonx.NewEncoder(t.out)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	definition, check, err := t.outputCheck(s)
	if err != nil {
		return nil, err
	}
	twin := !t.settings.noTwin
	return &output{schema: definition, result: func(out any) (protocol.Result, error) {
		return &protocol.CallToolResult{Twin: twin, AppendStructured: func(dst []byte) ([]byte, error) {
			start := len(dst)
			dst, err := encoder.Append(dst, out)
			if err == nil && check != nil {
				err = check(dst[start:])
			}
			return dst, err
		}}, nil
	}}, nil
}

// outputCheck returns the schema of structured results, and the check of their
// JSON; nil if the encoder can write nothing that the schema forbids.
func (t *tool) outputCheck(s *Server) (definition json.RawMessage, check func([]byte) error, err error) {
	if t.settings.outputSchema != nil {
		raw, err := schema.CompileRaw(t.settings.outputSchema)
		if err != nil {
			return nil, nil, fmt.Errorf("OutputSchema: %w", err)
		}
		return raw.JSON(), raw.Check, nil
	}
	opts := schema.Options{}
	if s.opts.Schema != nil {
		opts = *s.opts.Schema
	}
	opts.Output, opts.Strict = true, true
	plan, err := schema.Compile(t.out, &opts)
	if err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	if plan.Constrained() {
		check = plan.Check
	}
	return plan.JSON(), check, nil
}

// rawOutput serves funcs that bring a schema for results they build by hand.
func (t *tool) rawOutput() (*output, error) {
	raw, err := schema.CompileRaw(t.settings.outputSchema)
	if err != nil {
		return nil, fmt.Errorf("OutputSchema: %w", err)
	}
	if t.out != reflect.TypeFor[*Result]() {
		return nil, fmt.Errorf("OutputSchema: a func that returns %v has no structured result; return *mcp.Result or a type of your own", t.out)
	}
	return &output{schema: raw.JSON(), result: func(out any) (protocol.Result, error) {
		r := *out.(**Result)
		if r == nil || r.structured == nil && !r.isError {
			return nil, fmt.Errorf("the tool has an OutputSchema, but its result has no structured content")
		}
		if r.structured != nil {
			if err := raw.Check(r.structured); err != nil {
				return nil, err
			}
		}
		return r.build()
	}}, nil
}
