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
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Method makes a method that the specification does not have of a func, in
// every revision; those that it has go on as they are. The func's first
// parameter is that of a [Tool]. The params, without the members that are the
// protocol's own, are decoded into In and checked by its tags, as the arguments
// of a tool are, but strictly: the string "5" is no number. Params that do not
// pass are the error -32602 with all problems. Out is a struct or a map, or a
// pointer to one: its members are those of the result. struct{} returns
// nothing. json.RawMessage, as In or Out, is the JSON object as it is.
//
// The handler can ask the client only in legacy revisions. Revision 2026-07-28
// lets no other requests than tools/call, prompts/get and resources/read be
// answered with a question (Supported Requests in basic/patterns/mrtr), so
// Elicit and the like return an error there that says so.
//
// Put a name of your own before the method, as in "acme/search": names that
// begin as those of the specification do ("tools/", "server/", …), and names
// that are taken, are faults of Server.Add. So is a method that is added after
// the server began to serve.
//
// VisibleTo and Scopes hide and guard a method; what describes it, as Doc, is
// for who reads the program, since no list has methods.
func Method[Ctx context.Context, In, Out any](name string, fn func(ctx Ctx, in In) (Out, error), opts ...MethodOption) Component {
	m := &method{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), run: erase(fn), settings: &methodSettings{}}
	m.settings.faults = handlerFaults[Ctx](fn == nil)
	apply(&m.settings.settings, opts, MethodOption.methodOption, m.settings)
	return m
}

type method struct {
	name     string
	in, out  reflect.Type
	settings *methodSettings
	run      runner
}

// compile implements Component.
func (m *method) compile(c *compiler) error {
	set := m.settings
	faults := append(slices.Clone(set.faults), resultFaults(m.out)...)
	decode, err := m.decoder(c)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return fmt.Errorf("mcp: method %q: %s", m.name, strings.Join(faults, "\n\t"))
	}
	serve := withScopes(set.scopes, c.limited(set.timeout, m.handler(decode), timedOut("method "+m.name)))
	if visible := set.visible; visible != nil {
		known := serve
		serve = func(f *frame.Frame) (protocol.Result, error) {
			if !visible(f) {
				return nil, protocol.MethodNotFound(m.name)
			}
			return known(f)
		}
	}
	c.methods = append(c.methods, dispatch.Method{Name: m.name, Serve: serve})
	return nil
}

// decoder returns what checks and decodes params.
func (m *method) decoder(c *compiler) (func(ctx context.Context, params []byte, in any) error, error) {
	if m.in == rawType {
		return func(_ context.Context, params []byte, in any) error {
			*in.(*json.RawMessage) = params
			return nil
		}, nil
	}
	opts := c.schemaOptions()
	opts.Strict, opts.Output = true, false
	plan, err := schema.Compile(m.in, &opts)
	return input{plan: plan}.decode, err
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (m *method) handler(decode func(ctx context.Context, params []byte, in any) error) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		params := ownParams(f.Request().Params.Raw)
		out, err := m.run(f, func(in any) error { return decode(f, params, in) })
		if bad, ok := errors.AsType[*inputError](err); ok {
			return nil, invalidArguments(fmt.Sprintf("method %q", m.name), bad)
		}
		if err != nil {
			return nil, err
		}
		value := reflect.ValueOf(out).Elem()
		if kind := value.Kind(); (kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice) && value.IsNil() {
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
	case out == rawType:
		return nil
	case out.Kind() == reflect.Map && out.Key().Kind() == reflect.String:
		return nil
	case out.Kind() != reflect.Struct:
		return []string{fmt.Sprintf("a method cannot return %v: a result is a JSON object; return a struct or json.RawMessage", out)}
	}
	for _, field := range reflect.VisibleFields(out) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && (name == "_meta" || name == "resultType") {
			faults = append(faults, fmt.Sprintf("field %s of the result: the protocol has the member %s for itself; name it otherwise", field.Name, name))
		}
	}
	return faults
}
