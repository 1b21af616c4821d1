package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Method makes a custom method from a function, in every revision. Methods of
// the specification cannot be replaced. The first parameter of the function is
// that of a [Tool]. The params, without the members that are the protocol's own,
// are decoded into In and checked by its tags, as the arguments of a tool are,
// but strictly: the string "5" is not a number, and null is not an absent
// member. Params that do not pass are the error -32602 with all problems. Out is
// a struct or a map, or a pointer to one: its members are those of the result.
// struct{} returns nothing. json.RawMessage, as In or Out, is the JSON object as
// it is.
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
// VisibleTo and Scopes hide and guard a method; its description, as Doc, is for
// readers of the program, since no list has methods.
func Method[Ctx context.Context, In, Out any](name string, fn func(ctx Ctx, in In) (Out, error), opts ...MethodOption) Component {
	m := &method{name: name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), run: erase(fn), settings: &methodSettings{}}
	m.settings.faults = handlerFaults[Ctx](fn == nil)
	apply(&m.settings.settings, opts, MethodOption.methodOption, m.settings)
	return m
}

// method is a custom method with the types of its function erased.
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
	faults.note(err)
	if err := faults.of("method", m.name); err != nil {
		return err
	}
	serve := withScopes(set.scopes, c.limited(set.timeout, m.handler(decode), timedOut("method "+m.name)))
	if visible := set.visible; visible != nil {
		known := serve
		serve = func(f *frame.Frame) (protocol.Result, error) {
			if !visible(f) {
				return nil, wire.MethodNotFound(m.name)
			}
			return known(f)
		}
	}
	c.methods = append(c.methods, dispatch.Method{Name: m.name, Serve: serve})
	return nil
}

// decoder returns what checks and decodes params. Unlike the arguments of tools,
// which models write, params come from programs: a value of the wrong type is
// never made to fit.
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

// rawType is the type that stands for any JSON object, in and out.
var rawType = reflect.TypeFor[json.RawMessage]()

// handler returns the function that decodes params, calls fn and makes the
// result. A nil pointer, map or slice is the empty result, since null is not a
// result.
func (m *method) handler(decode func(ctx context.Context, params []byte, in any) error) frame.Handler {
	own := func(f *frame.Frame, in any) error { return decode(f, ownParams(f.Request().Params.Raw), in) }
	return func(f *frame.Frame) (protocol.Result, error) {
		out, err := m.run(f, own)
		if bad, ok := errors.AsType[*inputError](err); ok {
			return nil, bad.invalidParams(fmt.Sprintf("method %q", m.name))
		}
		if err != nil {
			return nil, err
		}
		value := reflect.ValueOf(out).Elem()
		if kind := value.Kind(); (kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice) && value.IsNil() {
			return wire.EmptyResult{}, nil
		}
		return protocol.JSONResult{Value: value.Interface()}, nil
	}
}

// ownParams returns params without the members that the protocol has put into
// them. The result is always an object, and a copy: raw belongs to the message.
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

// protocolParams are the members that the specification may put into the params
// of any request (basic/index and basic/patterns/mrtr of 2026-07-28).
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

// customs are the rows of the method table that the user brought. Server.adding
// guards them. They can grow until the first request makes the table, and are
// frozen from then on, since a Dispatcher does not change.
type customs struct {
	frozen        bool // the table is made
	methods       []dispatch.Method
	notifications []notificationHandler
}

// notificationHandler is what OnNotification was given.
type notificationHandler struct {
	method string
	fn     func(f *frame.Frame) error
}

// notification adds what serves the notifications of a method. The names of the
// specification's own notifications are allowed: fn then runs after the server's
// own part.
func (c *customs) notification(method string, fn func(f *frame.Frame) error) error {
	var faults []string
	switch {
	case fn == nil:
		faults = append(faults, "the func is nil")
	case !strings.HasPrefix(method, notificationPrefix):
		faults = append(faults, methodFaults(method)...)
	}
	if c.frozen {
		faults = append(faults, errServing)
	}
	if c.has(method) {
		faults = append(faults, "it is registered already; choose another name")
	}
	if faults != nil {
		return fmt.Errorf("mcp: notification %q: %s", method, strings.Join(faults, "; "))
	}
	c.notifications = append(c.notifications, notificationHandler{method, fn})
	return nil
}

const (
	notificationPrefix = "notifications/"
	errServing         = "the server serves already; register it before"
)

// has reports whether there is a method or a notification of that name already.
func (c *customs) has(name string) bool {
	return slices.ContainsFunc(c.methods, func(m dispatch.Method) bool { return m.Name == name }) ||
		slices.ContainsFunc(c.notifications, func(n notificationHandler) bool { return n.method == name })
}

// check returns the faults of methods that are to be added, nil if there are
// none. It adds nothing: the caller adds them when the rest of the Add has
// passed, too.
func (c *customs) check(methods []dispatch.Method) error {
	var faults []error
	for i, m := range methods {
		list := methodFaults(m.Name)
		if c.frozen {
			list = append(list, errServing)
		}
		twice := slices.ContainsFunc(methods[:i], func(other dispatch.Method) bool { return other.Name == m.Name })
		if twice || c.has(m.Name) {
			list = append(list, "it is registered already; choose another name")
		}
		if list != nil {
			faults = append(faults, fmt.Errorf("method %q: %s", m.Name, strings.Join(list, "; ")))
		}
	}
	return errors.Join(faults...)
}

// specified are the names, and the beginnings of names, that belong to the
// specification or to JSON-RPC.
var specified = []string{
	"initialize", "ping", "completion/", "elicitation/", "events/", "logging/", notificationPrefix, "prompts/", "resources/",
	"roots/", "sampling/", "server/", "skills/", "subscriptions/", "tasks/", "tools/", "rpc.",
}

// methodFaults says what is wrong with the name of a custom method.
func methodFaults(name string) (faults []string) {
	plain := func(c rune) bool { return '!' <= c && c <= '~' }
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		faults = append(faults, "a method has 1 to 128 visible ASCII characters")
	}
	for _, owned := range specified {
		if name == owned || strings.HasPrefix(name, owned) && !isLetter(owned[len(owned)-1]) {
			faults = append(faults, fmt.Sprintf("the specification owns names that begin with %q; put a name of your own before it, as in %q", owned, "acme/"+name))
		}
	}
	return faults
}

// isLetter tells the whole names among specified from the beginnings, which end
// in a slash or a dot.
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// appendTo adds the rows to the table of all methods, which is then final.
func (c *customs) appendTo(table []dispatch.Method, logger *zerolog.Logger) []dispatch.Method {
	c.frozen = true
	for _, m := range c.methods {
		table = append(table, dispatch.Method{Name: m.Name, Revisions: dispatch.Both, Params: m.Params, Serve: forRequests(m.Serve)})
	}
	for _, n := range c.notifications {
		at := slices.IndexFunc(table, func(m dispatch.Method) bool { return m.Name == n.method })
		if at < 0 {
			at = len(table)
			table = append(table, dispatch.Method{Name: n.method, Revisions: dispatch.Both, Serve: forNotifications})
		}
		table[at].Serve = notified(table[at].Serve, n.fn, logger)
	}
	return table
}

// forRequests keeps notifications from a method that wants to answer.
func forRequests(h frame.Handler) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if f.Request().ID.IsZero() {
			return nil, protocol.Errorf(protocol.CodeInvalidRequest, "%s is a request; give it an id", f.Request().Method)
		}
		return h(f)
	}
}

// forNotifications rejects requests to a method without a response.
func forNotifications(f *frame.Frame) (protocol.Result, error) {
	if !f.Request().ID.IsZero() {
		return nil, wire.MethodNotFound(f.Request().Method)
	}
	return nil, nil
}

// notified serves a notification with own, and then with fn. A request of that
// name, and a notification that own refuses, do not come to fn. Its error is
// logged, because a notification has no response.
func notified(own frame.Handler, fn func(f *frame.Frame) error, logger *zerolog.Logger) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		result, err := own(f)
		if err != nil || !f.Request().ID.IsZero() {
			return result, err
		}
		if err = fn(f); err != nil {
			safely.Log(logger.Warn().Str("method", visible.Line(f.Request().Method, visible.Name)).Err(visible.Error(err)), "a notification handler failed")
		}
		return nil, err
	}
}
