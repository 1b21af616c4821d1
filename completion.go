package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
)

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
