package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// Tool makes a tool from a function. Its first parameter is a *Frame, or a
// context.Context if that is enough; see [FromContext]. In is a struct whose tags
// describe and check the arguments; struct{} takes none. Out decides the form of the
// result:
//
//	string            text
//	Content           one item of content, of any type
//	[]Content         several
//	*Result           the content of its builder
//	*ResultOf[T]      structured content with a schema made from T, and other content
//	struct{}          nothing
//	protocol.Result   that of Server.Call, unchanged, also with an error
//	any other type    structured content, with a schema made from the type
//
// An error becomes a result that says so (isError), for the model to read; an
// *Error anywhere in its chain becomes that JSON-RPC error. A panic costs the
// call and nothing else.
//
// Names have 1 to 128 letters, digits, '_', '-' and '.'. Faults of name, types,
// tags and options are reported by Server.Add.
func Tool[Ctx context.Context, In, Out any](name string, fn func(ctx Ctx, in In) (Out, error), opts ...ToolOption) Component {
	t := &tool{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), run: erase(fn), settings: &toolSettings{}}
	t.settings.faults = handlerFaults[Ctx](fn == nil)
	apply(&t.settings.settings, opts, ToolOption.toolOption, t.settings)
	return t
}

// tool is a function with its types erased. It is made by Tool and does not
// change.
type tool struct {
	name     string
	in, out  reflect.Type
	settings *toolSettings
	run      runner
}

// toolSettings are what options say of a tool.
type toolSettings struct {
	settings
	hints          *protocol.ToolAnnotations
	task           *TaskOptions
	strict         bool
	structuredOnly bool
	text           *modelText
	ui             wire.ToolUI // what package app says
	inputSchema    json.RawMessage
	outputSchema   json.RawMessage
	foreign        bool     // another program wrote its schema
	listed         []string // what package toolsearch says, and so is as
	as             func(f *frame.Frame, definition protocol.Tool) protocol.Tool
}

// tools is a ToolOption that nothing but tools takes.
type tools func(*toolSettings)

// toolOption implements ToolOption.
func (o tools) toolOption(set *toolSettings) { o(set) }

// ReadOnly hints that a tool changes nothing.
func ReadOnly() ToolOption {
	return hint(func(h *protocol.ToolAnnotations) { h.ReadOnlyHint = boolean(true) })
}

// Destructive hints whether a tool may destroy what is there; clients take
// tools for destructive unless told.
func Destructive(yes bool) ToolOption {
	return hint(func(h *protocol.ToolAnnotations) { h.DestructiveHint = boolean(yes) })
}

// Idempotent hints that calling a tool again with the same arguments changes
// nothing more.
func Idempotent() ToolOption {
	return hint(func(h *protocol.ToolAnnotations) { h.IdempotentHint = boolean(true) })
}

// OpenWorld hints whether a tool deals with the world outside, as a web search
// does; clients assume that it does unless told.
func OpenWorld(yes bool) ToolOption {
	return hint(func(h *protocol.ToolAnnotations) { h.OpenWorldHint = boolean(yes) })
}

// hint returns the option that changes the hints of a tool, made when the first
// one is given: a tool without any has none in its definition.
func hint(change func(*protocol.ToolAnnotations)) ToolOption {
	return tools(func(set *toolSettings) {
		if set.hints == nil {
			set.hints = &protocol.ToolAnnotations{}
		}
		change(set.hints)
	})
}

// boolean returns a pointer to b, since a hint that is absent is not one that is
// false.
func boolean(b bool) *bool { return &b }

// Strict turns coercion off for a tool: the string "5" is then no integer. With
// InputSchema it also leaves out defaults.
func Strict() ToolOption { return tools(func(set *toolSettings) { set.strict = true }) }

// InputSchema gives a tool's schema in JSON, in place of the one from its
// argument type. As with a type, absent members get their defaults, and what
// models are known to send is read as what it means, unless Strict leaves
// arguments as they are. Then they are checked against the schema and decoded
// with encoding/json. Use it with json.RawMessage or a map as argument type, for
// tools whose schema comes from elsewhere. Its root has "type": "object"; it is
// of draft 2020-12 unless its $schema names another. One that is not valid, in
// an unknown dialect, or refers to what lies elsewhere is an error of Server.Add.
func InputSchema(schema json.RawMessage) ToolOption {
	return tools(func(set *toolSettings) { set.inputSchema = schema })
}

// OutputSchema gives the schema of a tool's structured result in JSON, in
// place of the one from its result type; results are checked against it.
func OutputSchema(schema json.RawMessage) ToolOption {
	return tools(func(set *toolSettings) { set.outputSchema = schema })
}

// StructuredOnly leaves out the text item that repeats a structured result for
// clients that read only text. Revisions without structured results keep it.
func StructuredOnly() ToolOption {
	return tools(func(set *toolSettings) { set.structuredOnly = true })
}

// Text gives the text of a structured result, in place of the JSON that repeats
// it; other items of content come after it. Out is the type that the tool returns,
// or the T of its *ResultOf[T]; any other is a fault of Server.Add.
//
// Some hosts, such as Claude Code and Codex, pass only the structured content to
// models, without this text and further content. Others pass only the text. So put
// everything that a model needs into both; a tool whose text must reach every model
// returns a string or a *Result. No part is private: put no secret into structured
// content or _meta.
//
// fn runs for each result that is not a failure, on the goroutine of the tool's
// function. With StructuredOnly the text is sent as well.
func Text[Out any](fn func(out Out) string) ToolOption {
	return tools(func(set *toolSettings) {
		if fn == nil {
			set.fault("Text: the func is nil")
			return
		}
		set.text = &modelText{reflect.TypeFor[Out](), func(out any) string { return fn(*out.(*Out)) }}
	})
}

// modelText is what Text says: write takes a pointer to a value of a type.
type modelText struct {
	of    reflect.Type
	write func(out any) string
}

// compile implements Component.
func (t *tool) compile(c *compiler) error {
	set := t.settings
	faults := slices.Clone(set.faults)
	if set.task != nil && set.timeout > 0 {
		faults = append(faults, "Timeout does not go with AsTask; limit the task with TaskOptions.TTL")
	}
	faults.note(checkName(t.name))
	input, def, err := t.compileInput(c)
	faults.note(err)
	output, err := t.compileOutput(c)
	faults.note(err)
	if err == nil && set.text != nil && set.text.of != output.of {
		faults = append(faults, fmt.Sprintf("Text: the func takes %v, but %s", set.text.of, output.structure()))
	}
	meta := set.meta
	if set.ui.View != "" || set.ui.Visibility != nil {
		if _, taken := meta[wire.MetaUI]; taken {
			faults = append(faults, fmt.Sprintf("Meta(%q): package app writes it; leave one of them out", wire.MetaUI))
		}
		if set.ui.View != "" && set.structuredOnly && set.text == nil {
			faults = append(faults, "StructuredOnly: hosts that show no views have nothing to show then, nor models to read; leave it out, or say with Text what there is")
		}
		meta = wire.MetaWithUI(meta, set.ui)
	}
	if def.less {
		meta = wire.MetaWithChecks(meta)
	}
	if err := faults.of("tool", t.name); err != nil {
		return err
	}
	definition := &protocol.Tool{
		Name: t.name, Title: set.title, Description: set.doc, Icons: set.icons,
		InputSchema: def.sent, OutputSchema: output.schema, Annotations: set.hints, Meta: meta,
	}
	t.noteHosts(c, definition, input.plan, def)
	e := set.entry(definition)
	e.Task, e.View = set.task != nil, set.ui.View
	e.Headers, e.Listed = def.headers, set.listed
	if set.as != nil {
		e.As = func(f *frame.Frame) any {
			own := set.as(f, *definition)
			return &own
		}
	}
	e.Serve = t.caller(c, input, output, schemaDigest(sha256.Sum256(slices.Concat(def.exact, []byte{0}, output.schema))))
	if def.less {
		e.Checks, e.Serve = true, t.checked(c, input, e.Serve)
	}
	c.entries = append(c.entries, e)
	return nil
}

// checked is serve, but a request that asks for the check of arguments calls no function.
func (t *tool) checked(c *compiler, in input, serve frame.Handler) frame.Handler {
	check := c.limited(t.settings.timeout, func(f *frame.Frame) (protocol.Result, error) {
		if err := in.arguments(f, reflect.New(t.in).Interface()); err != nil {
			return t.failed(c.server, err)
		}
		return wire.EmptyResult{}, nil
	}, timedOut("the check of tool "+t.name))
	return func(f *frame.Frame) (protocol.Result, error) {
		if f.Request().Method == wire.MethodCheck {
			return check(f)
		}
		return serve(f)
	}
}

// schemaDigest tells the schemas of a tool, of arguments and result, from others.
type schemaDigest [sha256.Size]byte

// caller puts the parts of a call together: arguments, func and result, and
// around them either the time limit or the task, which has a time of its own.
// digest is that of the tool.
func (t *tool) caller(c *compiler, input input, output *output, digest schemaDigest) frame.Handler {
	s, decode := c.server, input.arguments
	call := func(f *frame.Frame) (protocol.Result, error) {
		out, err := t.run(f, decode)
		if passed, ok := out.(*protocol.Result); ok && *passed != nil && !errors.Is(err, wire.ErrInputRequired) {
			return *passed, nil
		}
		if err != nil {
			return t.failed(s, err)
		}
		r, err := output.result(out)
		if err != nil {
			return nil, err
		}
		for i, item := range r.Content {
			if err := protocol.Internal(facts.Private{}).CheckContent(i, item); err != nil {
				return nil, t.badResult("cannot be sent", err)
			}
		}
		return r, nil
	}
	if t.settings.task != nil {
		return s.tasks.detachable(t.settings.task, digest, call)
	}
	return c.limited(t.settings.timeout, call, func(limit time.Duration, err error) (protocol.Result, error) {
		r := errorResult(fmt.Sprintf("Tool %q timed out after %v.", t.name, limit))
		r.Err = err
		return r, nil
	})
}

// noteHosts notes what some host does not accept of the definition: what has a
// warning, and of a schema that the user wrote, or methods of types, all that lint
// reports. The exact keywords of ExactSchemas are the user's choice. Names and types
// without a description, of a Go type, are among the warnings of its plan.
func (t *tool) noteHosts(c *compiler, definition *protocol.Tool, plan *schema.Plan, def toolArguments) {
	if t.settings.foreign || c.server.logger.GetLevel() > zerolog.WarnLevel {
		return
	}
	arguments := def.narrow
	if plan != nil && !def.authored && !bytes.Contains(arguments, []byte(`"$ref"`)) {
		arguments = nil // every host accepts it, except for what its plan warns of
	}
	for _, f := range hostrules.Tool(definition.Name, definition.Description, arguments) {
		f.Warn = f.Warn || def.authored && f.Rule.Schema
		if plan != nil && (f.Rule.ID == "member" || f.Rule.ID == "type-none") {
			f.Warn = f.Warn && def.authored && !slices.ContainsFunc(plan.Warnings(), func(p schema.Problem) bool {
				return strings.HasSuffix(f.Path, "/properties/"+p.JSONName)
			})
		}
		c.hosts = append(c.hosts, f)
	}
}

// failed turns the error of a call into its result: errors are for the model
// to read, unless they are protocol errors.
func (t *tool) failed(s *Server, err error) (protocol.Result, error) {
	if _, ok := errors.AsType[*protocol.Error](err); ok || errors.Is(err, wire.ErrInputRequired) {
		return nil, err
	}
	if bad, ok := errors.AsType[*inputError](err); ok {
		r := errorResult(bad.faults.Text(fmt.Sprintf("tool %q", t.name)))
		r.Meta, r.Err = map[string]any{wire.MetaIssues: bad.faults.Issues}, bad
		return r, nil
	}
	if s.opts.MaskErrors {
		safely.Log(s.logger.Error().Err(visible.Error(err)).Str("tool", t.name), "tool failed")
		r := errorResult(fmt.Sprintf("Tool %q failed.", t.name))
		r.Err = err
		return r, nil
	}
	r := errorResult(err.Error())
	r.Err = err
	return r, nil
}

// inputError tells faults of the arguments from a *schema.Error that a handler
// may return for reasons of its own.
type inputError struct{ faults *schema.Error }

// Error implements error.
func (e *inputError) Error() string { return e.faults.Error() }

// Unwrap returns what is known of the faults.
func (e *inputError) Unwrap() error { return e.faults }

// Is makes it facts.ErrArguments.
func (e *inputError) Is(target error) bool { return target == facts.ErrArguments }

// invalidParams returns the protocol error of what is not a tool. Its data names no
// URI: in modern revisions that would mean that the resource does not exist.
func (e *inputError) invalidParams(what string) error {
	return &protocol.Error{
		Code:    protocol.CodeInvalidParams,
		Message: e.faults.Text(what),
		Data: struct {
			Issues []schema.Issue `json:"issues"`
		}{e.faults.Issues},
		Err: e,
	}
}

// errorResult returns the result of a call that failed, with a text for the
// model.
func errorResult(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}, IsError: true}
}

// input decodes and checks arguments, by a plan or, if the user brought a
// schema, by that. One of the two is set, and fit if the arguments are first made
// to fit the schema. It does not change and is used by many calls at once.
type input struct {
	plan *schema.Plan
	raw  *raw.Schema
	fit  *raw.Fitter
}

// toolArguments is what a tool says of its arguments: the schema that clients receive,
// the one that is checked, the one that every host takes, and the arguments that are
// mirrored into headers. authored is set if the user, or methods of types, wrote a part;
// less, if the plan may check more than the first says.
type toolArguments struct {
	sent, exact, narrow json.RawMessage
	authored, less      bool
	headers             []facts.Header
}

// compileInput returns what decodes the arguments, and what the tool says of them.
// The root of a user's schema must say that it is of an
// object, which the specification demands of every tool.
func (t *tool) compileInput(c *compiler) (in input, def toolArguments, err error) {
	opts := c.schemaOptions()
	opts.Strict = opts.Strict || t.settings.strict
	if t.settings.inputSchema != nil {
		in.raw, err = raw.Compile(t.settings.inputSchema)
		if err != nil {
			return in, def, fmt.Errorf("InputSchema: %w", err)
		}
		text := in.raw.JSON()
		if kind := jsonx.Lookup(text, []string{"type"}); string(kind) != `"object"` {
			return in, def, errors.New(`InputSchema: arguments are an object; put "type": "object" at its root`)
		}
		if jsonx.Lookup(text, []string{"properties"}) == nil { // some model providers refuse arguments without it
			end := len(text) - 1
			text = slices.Concat(text[:end], []byte(`,"properties":{}}`))
		}
		if !opts.Strict {
			var bad []schema.Issue
			in.fit, bad = raw.NewFitter(in.raw)
			for _, is := range bad {
				c.notes = append(c.notes, note{fmt.Sprintf("tool %q", t.name), fmt.Sprintf("InputSchema: %s is not filled in: it %s", is.Path, is.Message)})
			}
		}
		headers, err := wire.HeaderParams(text)
		if err != nil { // clients leave the tool out
			return in, def, fmt.Errorf("InputSchema: %w", err)
		}
		return in, toolArguments{text, text, text, true, false, headers}, nil
	}
	opts.Output = false
	if in.plan, err = schema.Compile(t.in, &opts); err != nil {
		return in, def, err
	}
	for _, warning := range in.plan.Warnings() {
		c.notes = append(c.notes, note{fmt.Sprintf("tool %q", t.name), warning.String()})
	}
	known := in.plan.Internal(facts.Private{})
	def = toolArguments{known.Narrow, in.plan.JSON(), known.Narrow, known.Authored, known.Unsaid, known.Headers}
	if c.server.opts.ExactSchemas {
		def.sent = def.exact
	}
	return in, def, nil
}

// arguments is decode for what f calls with.
func (in input) arguments(f *frame.Frame, dst any) error {
	return in.decode(f, f.Request().Params.Arguments, dst)
}

// noArguments is the JSON of arguments that a client has left out. It is only
// read.
var noArguments = []byte("{}")

// decode checks args and decodes them into dst, a pointer to the input of the
// function. Arguments that are absent or null are an empty object: clients
// leave them out for tools that need none. The error is an *inputError with
// all problems.
func (in input) decode(ctx context.Context, args []byte, dst any) error {
	if len(args) == 0 || string(args) == "null" {
		args = noArguments
	}
	var err error
	switch {
	case in.plan != nil:
		err = in.plan.Decode(ctx, args, dst)
	case in.fit != nil:
		if args, err = in.fit.Fit(args); err == nil {
			err = jsonx.Unmarshal(args, dst)
		}
	default:
		if err = in.raw.Check(args); err == nil {
			err = jsonx.Unmarshal(args, dst)
		}
	}
	if issues, ok := errors.AsType[*schema.Error](err); ok {
		return &inputError{issues}
	}
	return err
}

// output turns the result of a function, behind a pointer, into a result for the
// client.
type output struct {
	schema json.RawMessage // nil for results that are not structured
	of     reflect.Type    // whose values are structured content, where the framework encodes them
	result func(out any) (*protocol.CallToolResult, error)
}

// structure describes the result type of the tool's function, for an error.
func (o *output) structure() string {
	if o.of == nil {
		return "the tool returns no type that is structured content; leave Text out"
	}
	return fmt.Sprintf("the structured content of the tool is %v", o.of)
}

var (
	contentType     = reflect.TypeFor[protocol.Content]()
	typedResultType = reflect.TypeFor[typedResult]()
	resultType      = reflect.TypeFor[protocol.Result]() // of Server.Call
)

// compileOutput chooses the form of results by the result type of the function.
func (t *tool) compileOutput(c *compiler) (*output, error) {
	if t.settings.outputSchema != nil && (t.out == reflect.TypeFor[string]() || t.out == reflect.TypeFor[*Result]()) {
		return t.rawOutput(c)
	}
	switch {
	case t.out == reflect.TypeFor[string]():
		return &output{result: textResult}, nil
	case t.out == reflect.TypeFor[struct{}](), t.out == resultType:
		if t.settings.outputSchema != nil && t.out == resultType {
			return nil, errors.New("OutputSchema: a protocol.Result goes out as it is, and is not checked; return *mcp.Result")
		}
		return &output{result: func(any) (*protocol.CallToolResult, error) { return &protocol.CallToolResult{}, nil }}, nil
	case t.out == reflect.TypeFor[*Result]():
		return &output{result: t.builtResult}, nil
	case t.out.Implements(typedResultType):
		return t.typedOutput(c)
	case t.out == reflect.TypeFor[[]protocol.Content]():
		return &output{result: func(out any) (*protocol.CallToolResult, error) {
			return &protocol.CallToolResult{Content: *out.(*[]protocol.Content)}, nil
		}}, nil
	case t.out.Implements(contentType):
		return &output{result: contentResult}, nil
	}
	encode, definition, err := t.structured(c, t.out)
	if err != nil {
		return nil, err
	}
	return &output{schema: definition, of: t.out, result: func(out any) (*protocol.CallToolResult, error) {
		if t.out.Kind() == reflect.Interface {
			switch v := reflect.ValueOf(out).Elem().Interface().(type) {
			case protocol.Content, []protocol.Content, *Result, typedResult, protocol.Result, error:
				return nil, t.badResult("is no JSON", fmt.Errorf("it is a %T in an interface; declare a function that returns %T", v, v))
			}
		}
		return t.withStructured(&protocol.CallToolResult{}, out, encode), nil
	}}, nil
}

// withStructured adds structured content to a result, and the text for it: that of
// Text, or else what repeats it, unless the tool wants none.
func (t *tool) withStructured(r *protocol.CallToolResult, value any, encode func(dst []byte, out any) ([]byte, error)) *protocol.CallToolResult {
	r.AppendStructured = func(dst []byte) ([]byte, error) { return encode(dst, value) }
	if text := t.settings.text; text != nil {
		r.Content = append([]protocol.Content{protocol.TextContent{Text: text.write(value)}}, r.Content...)
		return r
	}
	r.RepeatStructured = !t.settings.structuredOnly
	return r
}

// typedOutput is that of a *ResultOf.
func (t *tool) typedOutput(c *compiler) (*output, error) {
	of := reflect.Zero(t.out).Interface().(typedResult).valueType()
	encode, definition, err := t.structured(c, of)
	if err != nil {
		return nil, err
	}
	return &output{schema: definition, of: of, result: func(out any) (*protocol.CallToolResult, error) {
		r, value := reflect.ValueOf(out).Elem().Interface().(typedResult).parts()
		switch {
		case r == nil:
			return nil, t.badResult("cannot be sent", errors.New("it is a nil *mcp.ResultOf, and there is no error"))
		case r.structured != nil:
			return nil, t.badResult("cannot be sent", errors.New("the structured content of a *mcp.ResultOf is its Value; leave Structured out"))
		case r.err != nil:
			return nil, t.badResult("cannot be sent", r.err)
		}
		result := &protocol.CallToolResult{Content: r.content, IsError: r.isError, Meta: r.meta}
		if r.isError {
			return result, nil
		}
		return t.withStructured(result, value, encode), nil
	}}, nil
}

// textResult is the result of a function that returns a string.
func textResult(out any) (*protocol.CallToolResult, error) {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: *out.(*string)}}}, nil
}

// contentResult is the result of a function that returns a type of content, or
// the interface, of which nil is an empty result.
func contentResult(out any) (*protocol.CallToolResult, error) {
	item, _ := reflect.ValueOf(out).Elem().Interface().(protocol.Content)
	if item == nil {
		return &protocol.CallToolResult{}, nil
	}
	return &protocol.CallToolResult{Content: []protocol.Content{item}}, nil
}

// builtResult is the result of a function that returns a *Result, of which nil
// is an empty one.
func (t *tool) builtResult(out any) (*protocol.CallToolResult, error) {
	r := *out.(**Result)
	if r == nil {
		return &protocol.CallToolResult{}, nil
	}
	if r.err != nil {
		return nil, t.badResult("cannot be sent", r.err)
	}
	return r.build(), nil
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
		switch {
		case err != nil:
			err = t.badResult("cannot be encoded", err)
		case check != nil:
			if err = check(dst[start:]); err != nil {
				err = t.badResult("does not match its output schema", err)
			}
		}
		return dst, err
	}, definition, nil
}

// badResult returns the error of a result that cannot be sent.
func (t *tool) badResult(what string, err error) error {
	return &wire.ResultError{Of: fmt.Sprintf("tool %q", t.name), Err: fmt.Errorf("%s: %w", what, err)}
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
	switch {
	case plan.Internal(facts.Private{}).Constrained:
		check = plan.Check
	case of.Kind() == reflect.Pointer:
		check = func(text []byte) error {
			if string(text) == "null" {
				return fmt.Errorf("it is a nil %v", of)
			}
			return nil
		}
	}
	return plan.JSON(), check, nil
}

// rawOutput serves funcs that bring a schema for results they build by hand.
func (t *tool) rawOutput(c *compiler) (*output, error) {
	custom, err := raw.Compile(t.settings.outputSchema)
	if err != nil {
		return nil, fmt.Errorf("OutputSchema: %w", err)
	}
	if t.out != reflect.TypeFor[*Result]() {
		return nil, fmt.Errorf("OutputSchema: a function that returns %v has no structured result; return *mcp.Result or a type of your own", t.out)
	}
	return &output{schema: custom.JSON(), result: func(out any) (*protocol.CallToolResult, error) {
		r := *out.(**Result)
		if r == nil || r.structured == nil && !r.isError {
			return nil, t.badResult("does not match its output schema", errors.New("it has no structured content"))
		}
		if r.structured != nil {
			if err := custom.Check(r.structured); err != nil {
				return nil, t.badResult("does not match its output schema", err)
			}
		}
		return t.builtResult(out)
	}}, nil
}

// callTool serves tools/call (server/tools of every revision), and the check of arguments.
func callTool(f *frame.Frame, view registry.View) (protocol.Result, error) {
	params := &f.Request().Params
	if params.Name == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the tool to call")
	}
	tool, ok := view.Get(KindTool, params.Name)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown tool: %s", params.Name)
	}
	if method := f.Request().Method; method == wire.MethodCheck && !tool.Checks {
		return nil, wire.MethodNotFound(method)
	}
	if err := f.RequireScopes(tool.Scopes...); err != nil {
		return nil, err
	}
	return tool.Serve(f)
}
