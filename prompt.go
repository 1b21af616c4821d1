package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// Prompt makes a prompt from a function, whose first parameter is that of a
// [Tool]. In is a struct whose tags describe and check the arguments, as
// those of a tool's do; clients send every argument as a string, and numbers,
// booleans, dates, lists and objects (as JSON) are made from it. struct{}
// takes none. A prompt that is known at run time only, as one from a
// database, takes a map[string]string and the option [Arguments]. Out decides
// the form of the result:
//
//	*Messages          the content of its builder
//	[]PromptMessage    these messages
//	string             one message of the user
//
// An argument that is unknown, missing or wrong is the error -32602, with all
// problems of the call. So is an error from fn a JSON-RPC error. Names are as
// those of tools. Faults of name, types and tags are reported by Server.Add.
func Prompt[Ctx context.Context, In, Out any](name string, fn func(ctx Ctx, in In) (Out, error), opts ...PromptOption) Component {
	p := &prompt{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), run: erase(fn), settings: &promptSettings{}}
	p.settings.faults = handlerFaults[Ctx](fn == nil)
	apply(&p.settings.settings, opts, PromptOption.promptOption, p.settings)
	return p
}

// prompt is a function with its types erased. It is made by Prompt and does not
// change.
type prompt struct {
	name     string
	in, out  reflect.Type
	settings *promptSettings
	run      runner
}

// compile implements Component.
func (p *prompt) compile(c *compiler) error {
	set := p.settings
	faults := slices.Clone(set.faults)
	faults.note(checkName(p.name))
	result, err := promptResult(p.out)
	faults.note(err)
	in, arguments, err := p.compileInput(c)
	if err != nil {
		return append(faults, err.Error()).of("prompt", p.name)
	}
	e := set.entry(&protocol.Prompt{
		Name: p.name, Title: set.title, Description: set.doc, Icons: set.icons, Arguments: arguments, Meta: set.meta,
	})
	for _, a := range arguments {
		e.Arguments = append(e.Arguments, a.Name)
	}
	completers, more := set.completersFor(in.plan, e.Arguments, "argument")
	e.Completers = completers
	if err := append(faults, more...).of("prompt", p.name); err != nil {
		return err
	}
	decode := in.arguments
	e.Serve = c.limited(set.timeout, func(f *frame.Frame) (protocol.Result, error) {
		out, err := p.run(f, decode)
		if bad, ok := errors.AsType[*inputError](err); ok {
			return nil, bad.invalidParams(fmt.Sprintf("prompt %q", p.name))
		}
		if err != nil {
			return nil, err
		}
		r := result(out, set.doc)
		for i, m := range r.Messages {
			if err := protocol.Internal(facts.Private{}).CheckContent(i, m.Content); err != nil {
				return nil, &wire.ResultError{Of: fmt.Sprintf("%s %q", protocol.MethodPromptsGet, p.name), Err: fmt.Errorf("cannot be sent: %w", err)}
			}
		}
		return r, nil
	}, timedOut("prompt "+p.name))
	c.entries = append(c.entries, e)
	return nil
}

// compileInput returns what decodes the arguments, and their descriptions: by the
// fields of a struct, or for a map by the option Arguments.
func (p *prompt) compileInput(c *compiler) (in input, list []protocol.PromptArgument, err error) {
	declared := p.settings.arguments
	if p.in.Kind() == reflect.Map && p.in.Key().Kind() == reflect.String && p.in.Elem().Kind() == reflect.String {
		if declared == nil {
			return in, nil, fmt.Errorf("a %v does not say which arguments there are; declare them with mcp.Arguments, or take a struct", p.in)
		}
		if in.raw, err = argumentSchema(declared); err == nil {
			in.fit, _ = raw.NewFitter(in.raw) // there are no defaults
		}
		return in, declared, err
	}
	opts := c.schemaOptions()
	opts.Strict, opts.Output = false, false // every argument comes as a string
	if in.plan, err = schema.Compile(p.in, &opts); err != nil {
		return in, nil, err
	}
	list = promptArguments(in.plan)
	fields := p.in
	for fields.Kind() == reflect.Pointer {
		fields = fields.Elem()
	}
	switch {
	case declared != nil:
		err = fmt.Errorf("Arguments is for a map[string]string; the fields of a %v describe the arguments", p.in)
	case list == nil && fields.Kind() != reflect.Struct:
		err = fmt.Errorf("a prompt cannot take a %v, which does not say which arguments there are; take a struct, or a map[string]string with mcp.Arguments", p.in)
	}
	return in, list, err
}

// Arguments declares the arguments of a prompt that takes a map[string]string, as
// one that is made from data: from a database, a file, or the prompt of another
// server. Clients are shown them in that order. The func gets those that the
// client has given, and only if all names are known and no required one is
// missing; else the error is -32602. [Complete] completes them. Given twice, the
// option adds; without arguments, it declares that there are none.
func Arguments(list ...PromptArgument) PromptOption {
	list = slices.Clone(list)
	return promptOption(func(set *promptSettings) {
		for i, a := range list {
			switch {
			case a.Name == "":
				set.fault("Arguments: argument %d has no name", i)
			case slices.ContainsFunc(set.arguments, func(b PromptArgument) bool { return a.Name == b.Name }):
				set.fault("Arguments: %q is there twice", a.Name)
			default:
				set.arguments = append(set.arguments, a)
			}
		}
		if set.arguments == nil {
			set.arguments = []PromptArgument{}
		}
	})
}

// promptOption is a PromptOption.
type promptOption func(*promptSettings)

func (o promptOption) promptOption(set *promptSettings) { o(set) }

// PromptArgument describes an argument of a prompt; see Arguments.
type PromptArgument = protocol.PromptArgument

// argumentSchema returns the schema of declared arguments, by which calls are
// checked. No client sees it.
func argumentSchema(list []protocol.PromptArgument) (*raw.Schema, error) {
	properties, required := map[string]any{}, []string{}
	for _, a := range list {
		properties[a.Name] = map[string]string{"type": "string"}
		if a.Required {
			required = append(required, a.Name)
		}
	}
	text, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		return nil, err
	}
	return raw.Compile(text)
}

// promptResult chooses the form of the result by the function's result type,
// once, when the prompt is added. The function that it returns takes a pointer
// to that result, and the description of the prompt.
func promptResult(out reflect.Type) (func(out any, doc string) *protocol.GetPromptResult, error) {
	switch out {
	case reflect.TypeFor[*Messages]():
		return func(out any, doc string) *protocol.GetPromptResult { return (*out.(**Messages)).build(doc) }, nil
	case reflect.TypeFor[[]protocol.PromptMessage]():
		return func(out any, doc string) *protocol.GetPromptResult {
			return &protocol.GetPromptResult{Description: doc, Messages: *out.(*[]protocol.PromptMessage)}
		}, nil
	case reflect.TypeFor[string]():
		return func(out any, doc string) *protocol.GetPromptResult {
			return NewMessages().User(*out.(*string)).build(doc)
		}, nil
	}
	return nil, fmt.Errorf("a prompt cannot return %v; return *mcp.Messages, []mcp.PromptMessage or string", out)
}

// promptArguments describes the fields of the arguments' struct, in their order.
func promptArguments(plan *schema.Plan) (list []protocol.PromptArgument) {
	for _, field := range plan.Fields() {
		a := protocol.PromptArgument{Name: field.Name, Title: field.Title, Description: field.Description, Required: field.Required}
		switch {
		case a.Description == "":
			a.Description = describeArgument(field)
		case field.Enum != nil: // an argument has no schema that would say it
			a.Description += " (one of: " + strings.Join(field.Enum, ", ") + ")"
		}
		list = append(list, a)
	}
	return list
}

// describeArgument says what a field without description takes.
func describeArgument(field schema.Field) string {
	text := "Optional "
	if field.Required {
		text = "Required "
	}
	switch {
	case field.Enum != nil:
		text += "one of: " + strings.Join(field.Enum, ", ")
	case field.Format != "":
		text += field.Format + " parameter"
	case field.Type == "array" || field.Type == "object":
		text += field.Type + " parameter, as JSON"
	case field.Type != "":
		text += field.Type + " parameter"
	default:
		text += "parameter"
	}
	if field.Default != nil && !field.Secret {
		text += fmt.Sprintf(" (default: %s)", field.Default)
	}
	return text
}

// getPrompt serves prompts/get (server/prompts of every revision). A prompt that
// the client must not see is as unknown as one that is not there; scopes are
// asked for after that, since their names tell of it.
func getPrompt(f *frame.Frame, view registry.View) (protocol.Result, error) {
	params := &f.Request().Params
	if params.Name == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the prompt to get")
	}
	p, ok := view.Get(KindPrompt, params.Name)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown prompt: %s", params.Name)
	}
	if err := f.RequireScopes(p.Scopes...); err != nil {
		return nil, err
	}
	return p.Serve(f)
}

// PromptMessage is one message of a prompt, of the user or the assistant; see
// Messages.
type PromptMessage = protocol.PromptMessage

// Messages builds the result of a prompt: what the user and the assistant say,
// in order. Methods return the Messages, so that they chain. The zero value
// has none.
//
//	return mcp.NewMessages().
//		User("Review this file.").
//		Add(mcp.RoleUser, mcp.EmbeddedResource{Resource: file}).
//		Assistant("I will look for bugs first."), nil
type Messages struct {
	description string
	list        []protocol.PromptMessage
	meta        map[string]any
}

// NewMessages returns empty Messages.
func NewMessages() *Messages { return &Messages{} }

// User appends text that the user says.
func (m *Messages) User(text string) *Messages {
	return m.Add(RoleUser, protocol.TextContent{Text: text})
}

// Userf appends formatted text that the user says.
func (m *Messages) Userf(format string, args ...any) *Messages {
	return m.User(fmt.Sprintf(format, args...))
}

// Assistant appends text that the assistant says.
func (m *Messages) Assistant(text string) *Messages {
	return m.Add(RoleAssistant, protocol.TextContent{Text: text})
}

// Assistantf appends formatted text that the assistant says.
func (m *Messages) Assistantf(format string, args ...any) *Messages {
	return m.Assistant(fmt.Sprintf(format, args...))
}

// Add appends a message for each item of content: text, image, audio, resource
// link or embedded resource.
func (m *Messages) Add(role Role, items ...Content) *Messages {
	for _, item := range items {
		m.list = append(m.list, protocol.PromptMessage{Role: role, Content: item})
	}
	return m
}

// Describe sets the description of the result; that of the prompt unless told.
func (m *Messages) Describe(text string) *Messages {
	m.description = text
	return m
}

// Meta adds a member to the result's _meta.
func (m *Messages) Meta(key string, value any) *Messages {
	if m.meta == nil {
		m.meta = map[string]any{}
	}
	m.meta[key] = value
	return m
}

// build returns the result for the wire; nil has no messages.
func (m *Messages) build(doc string) *protocol.GetPromptResult {
	if m == nil {
		m = &Messages{}
	}
	if m.description != "" {
		doc = m.description
	}
	return &protocol.GetPromptResult{Description: doc, Messages: m.list, Meta: m.meta}
}

// Completion has the values that an argument can have, the best ones first. A
// client receives at most 100, and learns whether there are more. Total is
// the number of all values; 0 means the number of Values.
type Completion = protocol.Completion

// CompletionQuery is what a client asks while its user types.
type CompletionQuery struct {
	Argument string // whose value is wanted
	Value    string // what was typed so far; may be empty
	// Arguments are the others that the user has filled in. Clients send them
	// since revision 2025-06-18; they are not checked.
	Arguments map[string]string
}

// Complete makes fn complete an argument of a prompt or a variable of a
// resource template. Arguments whose tags list their values (oneof or enum),
// and booleans, are completed without it.
func Complete(argument string, fn func(f *Frame, q CompletionQuery) (Completion, error)) ArgumentOption {
	return arguments(func(set *settings) {
		switch {
		case fn == nil:
			set.fault("Complete(%q): the func is nil", argument)
			return
		case set.completers[argument] != nil:
			set.fault("Complete(%q) is there twice", argument)
		}
		if set.completers == nil {
			set.completers = map[string]completer{}
		}
		set.completers[argument] = func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error) {
			return fn(f, CompletionQuery{Argument: argument, Value: value, Arguments: arguments})
		}
	})
}

// arguments is an ArgumentOption.
type arguments func(*settings)

func (o arguments) resourceOption(set *resourceSettings) { o(&set.settings) }
func (o arguments) promptOption(set *promptSettings)     { o(&set.settings) }

// CompleteFrom completes an argument from a fixed list, as Suggest does.
func CompleteFrom(argument string, values ...string) ArgumentOption {
	values = slices.Clone(values)
	return Complete(argument, func(_ *Frame, q CompletionQuery) (Completion, error) {
		return Suggest(q.Value, values...), nil
	})
}

// Suggest returns those of values that fit what was typed: first the ones that
// begin with it, then the ones that contain it, then the ones that have its
// letters in their order. Case does not matter; values of one rank keep their
// order.
func Suggest(typed string, values ...string) Completion {
	want := strings.ToLower(typed)
	var ranks [3][]string
	for _, v := range values {
		if rank := fit(strings.ToLower(v), want); rank < len(ranks) {
			ranks[rank] = append(ranks[rank], v)
		}
	}
	return Completion{Values: slices.Concat(ranks[:]...)}
}

// fit ranks how well have fits want: 0 is best, 3 is not at all.
func fit(have, want string) int {
	switch {
	case strings.HasPrefix(have, want):
		return 0
	case strings.Contains(have, want):
		return 1
	}
	for _, letter := range want {
		i := strings.IndexRune(have, letter)
		if i < 0 {
			return 3
		}
		have = have[i+len(string(letter)):]
	}
	return 2
}

// completersFor returns the completers of names: those that options brought,
// and those that follow from the fields' types. An option for a name that is
// not there is a fault, in which what says what the names are of. Values of
// secret fields are never suggested.
func (set *settings) completersFor(plan *schema.Plan, names []string, what string) (all map[string]completer, faults []string) {
	all = map[string]completer{}
	for _, field := range fieldsOf(plan) {
		values := field.Enum
		if values == nil && field.Type == "boolean" {
			values = []string{"true", "false"}
		}
		if len(values) > 0 && !field.Secret {
			all[field.Name] = func(_ *frame.Frame, typed string, _ map[string]string) (protocol.Completion, error) {
				return Suggest(typed, values...), nil
			}
		}
	}
	for name, c := range set.completers {
		if slices.Contains(names, name) {
			all[name] = c
			continue
		}
		faults = append(faults, fmt.Sprintf("Complete(%q): there is no such %s; there are %q", name, what, names))
	}
	slices.Sort(faults)
	return all, faults
}

// fieldsOf returns the fields of a plan; a resource has none.
func fieldsOf(plan *schema.Plan) []schema.Field {
	if plan == nil {
		return nil
	}
	return plan.Fields()
}

// completer is one of registry.Entry.Completers.
type completer = func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error)

// complete serves completion/complete (server/utilities/completion of every
// revision).
func complete(f *frame.Frame, view registry.View) (protocol.Result, error) {
	params, fault := wire.ParseCompleteParams(f.Request().Params.Raw)
	if fault != nil {
		return nil, fault
	}
	completer, err := completerOf(f, view, params)
	if err != nil {
		return nil, err
	}
	found := protocol.Completion{}
	if completer != nil {
		if found, err = completer(f, params.Argument.Value, params.Context.Arguments); err != nil {
			return nil, err
		}
	}
	found.Total = max(found.Total, len(found.Values))
	if len(found.Values) > wire.MaxCompletions {
		found.Values = found.Values[:wire.MaxCompletions]
	}
	if found.Values == nil {
		found.Values = []string{}
	}
	found.HasMore = found.HasMore || found.Total > len(found.Values)
	return protocol.JSONResult{Value: wire.CompleteResult{Completion: found}}, nil
}

// completerOf finds the completer of an argument; nil if the argument has none,
// an error if there is no such argument.
func completerOf(f *frame.Frame, view registry.View, params *protocol.CompleteParams) (completer, error) {
	e, ok := completed(view, params)
	what := fmt.Sprintf("prompt %q", params.Ref.Name)
	if params.Ref.Type != wire.RefPrompt {
		what = fmt.Sprintf("resource template %q", params.Ref.URI)
	}
	if !ok {
		if params.Ref.Type == wire.RefPrompt {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown prompt: %s", params.Ref.Name)
		}
		if _, static := view.Get(KindResource, params.Ref.URI); static {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "Resource %s has no variables to complete", params.Ref.URI)
		}
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown resource template: %s", params.Ref.URI)
	}
	if err := f.RequireScopes(e.Scopes...); err != nil {
		return nil, err
	}
	if c := e.Completers[params.Argument.Name]; c != nil || slices.Contains(e.Arguments, params.Argument.Name) {
		return c, nil
	}
	return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s has no argument %q; it has %q", what, params.Argument.Name, e.Arguments)
}

// completed finds what the arguments of are to be completed: a prompt, or a
// template by its text or by a URI that fits it.
func completed(view registry.View, params *protocol.CompleteParams) (*registry.Entry, bool) {
	if params.Ref.Type == wire.RefPrompt {
		return view.Get(KindPrompt, params.Ref.Name)
	}
	if t, ok := view.Get(KindTemplate, params.Ref.URI); ok {
		return t, true
	}
	if fits := view.Internal(facts.Private{}).Fits(params.Ref.URI); len(fits) > 0 {
		return fits[0].Entry, true
	}
	return nil, false
}
