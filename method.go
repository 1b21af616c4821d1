package mcp

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Method makes a method that the specification does not have of a func; see
// Server.HandleMethod for its name and for when it can be added. The params,
// without _meta, are decoded into In and checked by its tags, as the arguments
// of a tool are; params that do not pass are the error -32602 with all
// problems. Out is a struct or a map, or a pointer to one: its members are
// those of the result. struct{} returns nothing.
//
// Timeout, Strict and Scopes are the options that a method takes.
func Method[In, Out any](name string, fn func(f *Frame, in In) (Out, error), opts ...ComponentOption) Component {
	m := &method{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), settings: newSettings(opts)}
	if fn == nil {
		m.settings.fault("the func is nil")
	}
	m.run = erase(fn)
	return m
}

type method struct {
	name     string
	in, out  reflect.Type
	settings *settings
	run      runner
}

// compile implements Component.
func (m *method) compile(s *Server, all *offer) error {
	set := m.settings
	faults := append(append(append([]string(nil), set.faults...), set.misused(methodKind, "a method")...), m.described()...)
	faults = append(faults, resultFaults(m.out)...)
	opts := schema.Options{}
	if s.opts.Schema != nil {
		opts = *s.opts.Schema
	}
	opts.Strict = opts.Strict || set.strict
	opts.Output = false
	plan, err := schema.Compile(m.in, &opts)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return fmt.Errorf("mcp: method %q: %s", m.name, strings.Join(faults, "\n\t"))
	}
	all.methods = append(all.methods, dispatch.Method{Name: m.name, Serve: withScopes(set.scopes, s.limited("method "+m.name, set.timeout, m.serve(s, plan)))})
	return nil
}

// described returns the faults of options that describe: no list has methods.
func (m *method) described() (faults []string) {
	set := m.settings
	for _, o := range []struct {
		name  string
		given bool
	}{{"Doc", set.doc != ""}, {"Title", set.title != ""}, {"Icons", set.icons != nil}, {"Meta", set.meta != nil}} {
		if o.given {
			faults = append(faults, "the option "+o.name+" is not for a method; leave it out")
		}
	}
	return faults
}

func (m *method) serve(s *Server, plan *schema.Plan) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		params := ownParams(f.Request().Params.Raw)
		if len(params) > s.opts.MaxArguments {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params are larger than the limit of %d bytes", s.opts.MaxArguments)
		}
		out, err := m.run(f, func(in any) error { return input{plan: plan}.decode(params, in) })
		if bad, ok := errors.AsType[*inputError](err); ok {
			return nil, invalidArguments(fmt.Sprintf("method %q", m.name), bad)
		}
		if err != nil {
			return nil, err
		}
		value := reflect.ValueOf(out).Elem()
		if kind := value.Kind(); (kind == reflect.Pointer || kind == reflect.Map) && value.IsNil() {
			return protocol.EmptyResult{}, nil
		}
		return protocol.JSONResult{Value: value.Interface()}, nil
	}
}

// ownParams returns params without the members that the protocol has put into
// them.
func ownParams(raw []byte) []byte {
	own := []byte{'{'}
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw)}
	// The text was scanned before, so that it holds no faults.
	for more, err := s.ObjectStart(); more && err == nil; more, err = s.ObjectNext() {
		name, err := s.Name()
		if err != nil {
			break
		}
		keep := !slices.Contains(protocolParams, string(name))
		if keep {
			if len(own) > 1 {
				own = append(own, ',')
			}
			own = append(jsonx.AppendString(own, string(name)), ':')
		}
		s.Peek()
		start := s.Pos
		s.SkipChecked()
		if keep {
			own = append(own, raw[start:s.Pos]...)
		}
	}
	return append(own, '}')
}

var protocolParams = []string{"_meta", "inputResponses", "requestState"}

// resultFaults says why out cannot be the result of a method.
func resultFaults(out reflect.Type) (faults []string) {
	if out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	switch {
	case out.Kind() == reflect.Map && out.Key().Kind() == reflect.String:
		return nil
	case out.Kind() != reflect.Struct:
		return []string{fmt.Sprintf("a method cannot return %v: a result is a JSON object; return a struct", out)}
	}
	for _, field := range reflect.VisibleFields(out) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && (name == "_meta" || name == "resultType") {
			faults = append(faults, fmt.Sprintf("field %s of the result: the protocol has the member %s for itself; name it otherwise", field.Name, name))
		}
	}
	return faults
}
