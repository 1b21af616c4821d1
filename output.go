package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// output turns what a func returned, behind a pointer, into a result.
type output struct {
	schema json.RawMessage // nil for results that are not structured
	result func(out any) (protocol.Result, error)
}

var (
	contentType     = reflect.TypeFor[protocol.Content]()
	typedResultType = reflect.TypeFor[typedResult]()
)

// compileOutput decides the form of results by the func's result type.
func (t *tool) compileOutput(c *compiler) (*output, error) {
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
	case t.out.Implements(typedResultType):
		return t.typedOutput(c)
	case t.out == reflect.TypeFor[[]protocol.Content]():
		return &output{result: func(out any) (protocol.Result, error) {
			return &protocol.CallToolResult{Content: *out.(*[]protocol.Content)}, nil
		}}, nil
	case t.out.Implements(contentType):
		return &output{result: contentResult}, nil
	}
	encode, definition, err := t.structured(c, t.out)
	if err != nil {
		return nil, err
	}
	twin := !t.settings.structuredOnly
	return &output{schema: definition, result: func(out any) (protocol.Result, error) {
		return &protocol.CallToolResult{Twin: twin, AppendStructured: func(dst []byte) ([]byte, error) { return encode(dst, out) }}, nil
	}}, nil
}

// typedOutput is that of a *ResultOf.
func (t *tool) typedOutput(c *compiler) (*output, error) {
	encode, definition, err := t.structured(c, reflect.Zero(t.out).Interface().(typedResult).valueType())
	if err != nil {
		return nil, err
	}
	twin := !t.settings.structuredOnly
	return &output{schema: definition, result: func(out any) (protocol.Result, error) {
		r, value := reflect.ValueOf(out).Elem().Interface().(typedResult).parts()
		switch {
		case r == nil:
			return nil, errors.New("the tool returned a nil *mcp.ResultOf, and no error")
		case r.structured != nil:
			return nil, errors.New("the structured content of a *mcp.ResultOf is its Value; leave Structured out")
		case r.err != nil:
			return nil, r.err
		}
		result := &protocol.CallToolResult{Content: r.content, IsError: r.isError, Meta: r.meta, Twin: twin}
		if !r.isError {
			result.AppendStructured = func(dst []byte) ([]byte, error) { return encode(dst, value) }
		}
		return result, nil
	}}, nil
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

// structured makes the encoder of structured content of a type, which checks
// what it writes, and its schema.
func (t *tool) structured(c *compiler, of reflect.Type) (encode func(dst []byte, out any) ([]byte, error), definition json.RawMessage, err error) {
	encoder, err := jsonx.NewEncoder(of)
	if err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	definition, check, err := t.outputCheck(c, of)
	if err != nil {
		return nil, nil, err
	}
	return func(dst []byte, out any) ([]byte, error) {
		start := len(dst)
		dst, err := encoder.Append(dst, out)
		if err == nil && check != nil {
			err = check(dst[start:])
		}
		return dst, err
	}, definition, nil
}

// outputCheck returns the schema of structured results, and the check of their
// JSON; nil if the encoder can write nothing that the schema forbids.
func (t *tool) outputCheck(c *compiler, of reflect.Type) (definition json.RawMessage, check func([]byte) error, err error) {
	if t.settings.outputSchema != nil {
		custom, err := raw.Compile(t.settings.outputSchema)
		if err != nil {
			return nil, nil, fmt.Errorf("OutputSchema: %w", err)
		}
		return custom.JSON(), custom.Check, nil
	}
	opts := c.schemaOptions()
	opts.Output, opts.Strict = true, true
	plan, err := schema.Compile(of, &opts)
	if err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	var known facts.Plan
	if plan.Internal(&known); known.Constrained {
		check = plan.Check
	}
	return plan.JSON(), check, nil
}

// rawOutput serves funcs that bring a schema for results they build by hand.
func (t *tool) rawOutput() (*output, error) {
	custom, err := raw.Compile(t.settings.outputSchema)
	if err != nil {
		return nil, fmt.Errorf("OutputSchema: %w", err)
	}
	if t.out != reflect.TypeFor[*Result]() {
		return nil, fmt.Errorf("OutputSchema: a func that returns %v has no structured result; return *mcp.Result or a type of your own", t.out)
	}
	return &output{schema: custom.JSON(), result: func(out any) (protocol.Result, error) {
		r := *out.(**Result)
		if r == nil || r.structured == nil && !r.isError {
			return nil, fmt.Errorf("the tool has an OutputSchema, but its result has no structured content")
		}
		if r.structured != nil {
			if err := custom.Check(r.structured); err != nil {
				return nil, err
			}
		}
		return r.build()
	}}, nil
}
