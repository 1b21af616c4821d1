package mcp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
)

// Component is something that a Server offers: what [Tool], [Resource],
// [Template], [Prompt], [EventType], [Method], [File], [Bytes], [Directory] and [Extension]
// return, skill.Directory and app.View. The interface is sealed, since a Server has to know
// each kind.
type Component interface {
	// compile adds what the component is to c, checked and ready.
	compile(c *compiler) error
}

// Kind tells the kinds of components apart.
type Kind = registry.Kind

// The kinds of components.
const (
	KindTool     = registry.KindTool
	KindResource = registry.KindResource // its name is the URI
	KindTemplate = registry.KindTemplate // its name is the template's text
	KindPrompt   = registry.KindPrompt
	KindEvent    = registry.KindEvent // of an event type
)

// compiler makes components ready to be served by a server. It belongs to one
// Add or AddToSession and to its goroutine; what it has gathered is registered
// when all components have compiled, and dropped if one has a fault. A component
// may be compiled several times, for several servers: compile must not change
// it.
type compiler struct {
	server  *Server
	entries []*registry.Entry
	methods []dispatch.Method
	notes   []note              // what is legal and yet probably a mistake
	hosts   []hostrules.Finding // what some host does not accept, to be logged
}

// note is a warning about a component.
type note struct{ component, text string }

// register puts what was compiled into the server, all or nothing, and into the set
// of that name, if one is given.
func (c *compiler) register(set string) error {
	s := c.server
	s.adding.Lock()
	defer s.adding.Unlock()
	if err := s.customs.check(c.methods); err != nil {
		return errors.Join(s.catalog.Internal(facts.Private{}).Check(c.entries...), err)
	}
	if err := s.catalog.Add(c.entries...); err != nil {
		return err
	}
	s.customs.methods = append(s.customs.methods, c.methods...)
	if set != "" {
		if s.sets == nil {
			s.sets = make(map[string][]string)
		}
		s.sets[set] = append(s.sets[set], listsOf(c.entries)...)
	}
	return nil
}

// logNotes logs the notes, once the components are there, and returns nil.
func (c *compiler) logNotes() error {
	for _, n := range c.notes {
		safely.Log(c.server.logger.Warn().Str("component", n.component).Str("warning", n.text), "a component is probably not as it should be")
	}
	logFindings(&c.server.logger, c.hosts)
	return nil
}

// logFindings logs what some host does not accept, if the rule has a warning.
func logFindings(logger *zerolog.Logger, findings []hostrules.Finding) {
	for _, f := range findings {
		if !f.Warn {
			continue
		}
		safely.Log(logger.Warn().Str("tool", f.Tool).Str("rule", f.Rule.ID).Str("place", f.Path).Str("fix", f.Rule.Fix), f.String())
	}
}

// compile makes components ready, or returns every fault of them.
func (c *compiler) compile(components []Component) error {
	var faults []error
	for i, component := range components {
		if component == nil {
			faults = append(faults, fmt.Errorf("mcp: component %d is nil", i))
			continue
		}
		if err := component.compile(c); err != nil {
			faults = append(faults, err)
		}
	}
	for _, e := range c.entries {
		if e.View != "" && !c.offers(e.View) {
			faults = append(faults, fmt.Errorf("mcp: tool %q: there is no view at %s; add it with app.View, before the tool or with it", e.Key(), e.View))
		}
	}
	return errors.Join(faults...)
}

// offers reports whether the server has a view, or gets it now.
func (c *compiler) offers(view string) bool {
	e, ok := c.server.catalog.Internal(facts.Private{}).Get(KindResource, view)
	return ok && e.IsView() || slices.ContainsFunc(c.entries, func(e *registry.Entry) bool { return e.IsView() && e.Key() == view })
}

// forServer returns an error if something is compiled that belongs to a server as
// a whole, and not to where, which is a part of it.
func (c *compiler) forServer(where string) error {
	if len(c.methods) > 0 {
		return fmt.Errorf("method %q cannot be in %s; add it to the Server", c.methods[0].Name, where)
	}
	for _, e := range c.entries {
		switch d := e.Definition.(type) {
		case *wire.Extension:
			return fmt.Errorf("extension %q cannot be in %s; add it to the Server", d.ID, where)
		case *protocol.EventType:
			return fmt.Errorf("event %q cannot be in %s, as its subscribers have no session; add it to the Server, and use VisibleTo", d.Name, where)
		}
	}
	return nil
}

// schemaOptions returns a copy of Options.Schema.
func (c *compiler) schemaOptions() schema.Options {
	if c.server.opts.Schema == nil {
		return schema.Options{}
	}
	return *c.server.opts.Schema
}

// limited puts a time limit on h: its own, or else that of the server. late
// answers a request for which it has passed. Without either limit h is returned
// as it is. With one, h runs on a goroutine of its own, and the request is
// answered in time even if h ignores its context.
//
// That goroutine is counted by the server whose request it is, which is not
// that of the compiler if this one is mounted: its shutdown waits for the
// goroutine.
func (c *compiler) limited(limit time.Duration, h frame.Handler, late lateAnswer) frame.Handler {
	s := c.server
	if limit <= 0 {
		limit = s.opts.Timeouts.Call
	}
	if limit <= 0 {
		return h
	}
	return func(f *frame.Frame) (protocol.Result, error) {
		host := outermost(f, s)
		result, err := host.dispatch().Timeout(f, limit, h, host.running.Go)
		if errors.Is(err, dispatch.ErrTimeout) {
			return late(limit, err)
		}
		return result, err
	}
}

// lateAnswer answers a request for which limit has passed, as err says.
type lateAnswer func(limit time.Duration, err error) (protocol.Result, error)

// timedOut returns the error that says so of what.
func timedOut(what string) lateAnswer {
	return func(limit time.Duration, err error) (protocol.Result, error) {
		return nil, &protocol.Error{Code: protocol.CodeInternal, Message: fmt.Sprintf("%s timed out after %v", what, limit), Err: err}
	}
}

// Option is what every kind of component takes: tools, resources, templates,
// prompts and methods. [Bundle] makes one of several.
type Option interface {
	ToolOption
	ResourceOption
	PromptOption
	MethodOption
}

// ToolOption describes or shapes a [Tool]. An [Option], which every kind of
// component takes, is a ToolOption too. The interface is sealed, because it is
// bound to grow; [ToolOptions] makes one of several.
type ToolOption interface{ toolOption(set *toolSettings) }

// ResourceOption describes or shapes a [Resource], [Template], [File], [Bytes]
// or [Directory]. An [Option] and an [ArgumentOption] are also a ResourceOption.
// The interface is sealed, because it is bound to grow.
type ResourceOption interface{ resourceOption(set *resourceSettings) }

// PromptOption describes or shapes a [Prompt]. An [Option] and an
// [ArgumentOption] are also a PromptOption. The interface is sealed, because it is
// bound to grow.
type PromptOption interface{ promptOption(set *promptSettings) }

// MethodOption shapes a [Method]. An [Option] is a MethodOption too; methods
// have none of their own. The interface is sealed, because it is bound to grow.
type MethodOption interface{ methodOption(set *methodSettings) }

// ArgumentOption helps to fill in an argument: of a [Prompt], or a variable of
// a [Template].
type ArgumentOption interface {
	ResourceOption
	PromptOption
}

// Bundle is several options that are given as one. A nil Bundle is an empty
// one; what is given later wins.
type Bundle []Option

// ToolOptions is several options of tools that are given as one. Nil
// ToolOptions are empty; what is given later wins.
type ToolOptions []ToolOption

func (b Bundle) toolOption(set *toolSettings) { apply(&set.settings, b, Option.toolOption, set) }
func (b Bundle) resourceOption(set *resourceSettings) {
	apply(&set.settings, b, Option.resourceOption, set)
}
func (b Bundle) promptOption(set *promptSettings) { apply(&set.settings, b, Option.promptOption, set) }
func (b Bundle) methodOption(set *methodSettings) { apply(&set.settings, b, Option.methodOption, set) }

func (o ToolOptions) toolOption(set *toolSettings) {
	apply(&set.settings, o, ToolOption.toolOption, set)
}

// settings are what the options of every kind of component say. Options change
// them while the component is made, on one goroutine; from then on they are only
// read. Faults of options are kept here until the component is compiled, because
// options have no error to return.
type settings struct {
	title, doc string
	icons      []protocol.Icon
	meta       map[string]any
	timeout    time.Duration
	visible    func(f *Frame) bool
	scopes     []string
	completers map[string]completer // of prompts and templates
	faults     faults
}

// entry returns what definition describes, for those whom the options name.
func (set *settings) entry(definition any) *registry.Entry {
	return &registry.Entry{Definition: definition, Visible: set.visible, Scopes: set.scopes}
}

// faults are what is wrong with a component, each a sentence for its author.
// They are gathered, so that Add reports all of them at once.
type faults []string

// note adds err, if it is one.
func (f *faults) note(err error) {
	if err != nil {
		*f = append(*f, err.Error())
	}
}

// of returns the error of a component that has them; nil if there are none.
func (f faults) of(kind, name string) error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("mcp: %s %q: %s", kind, name, strings.Join(f, "\n\t"))
}

// promptSettings are what the options of a prompt say.
type promptSettings struct {
	settings
	arguments []protocol.PromptArgument // of Arguments; nil without it
}

// methodSettings are what the options of a method say, which has none of its own.
type methodSettings struct{ settings }

// apply makes each of opts change set, whose common part is s. A nil option is a
// fault in place of a panic: it has its number, by which the author finds it.
func apply[O comparable, S any](s *settings, opts []O, change func(O, S), set S) {
	var none O
	for i, o := range opts {
		if o == none {
			s.fault("option %d is nil; leave it out", i)
			continue
		}
		change(o, set)
	}
}

// fault notes what is wrong with an option.
func (set *settings) fault(format string, args ...any) {
	set.faults = append(set.faults, fmt.Sprintf(format, args...))
}

// common is an Option: it changes what every kind of component has.
type common func(*settings)

func (o common) toolOption(set *toolSettings)         { o(&set.settings) }
func (o common) resourceOption(set *resourceSettings) { o(&set.settings) }
func (o common) promptOption(set *promptSettings)     { o(&set.settings) }
func (o common) methodOption(set *methodSettings)     { o(&set.settings) }

// Doc says what the component is for. Models choose by it. The description of a
// method is not sent to clients.
func Doc(text string) Option { return common(func(set *settings) { set.doc = text }) }

// Title is the name that people see.
func Title(text string) Option { return common(func(set *settings) { set.title = text }) }

// Icons are images for user interfaces (revisions from 2025-11-25 on). Each has
// an https: or data: URI.
func Icons(icons ...Icon) Option {
	return common(func(set *settings) {
		for i, icon := range icons {
			if err := checkIcon(icon); err != nil {
				set.fault("Icons: icon %d: %v", i, err)
			}
		}
		set.icons = append(set.icons, icons...)
	})
}

// checkIcon refuses the images that clients must not load (basic/index,
// "Icons").
func checkIcon(icon protocol.Icon) error {
	if len(icon.Src) > 5 && strings.EqualFold(icon.Src[:5], "data:") {
		return nil
	}
	if err := wire.CheckWebURL(icon.Src); err != nil {
		return fmt.Errorf("its Src is %.40q; give it an https: or data: URI", icon.Src)
	}
	return nil
}

// Meta adds a member to the component's _meta.
func Meta(key string, value any) Option {
	return common(func(set *settings) {
		if set.meta == nil {
			set.meta = map[string]any{}
		}
		set.meta[key] = value
	})
}

// Timeout limits each call of a tool or method, read of a resource or get of a
// prompt, in place of the limit of the server. When it passes, the client
// receives an error at once, and the handler's context ends.
func Timeout(limit time.Duration) Option {
	return common(func(set *settings) {
		if limit <= 0 {
			set.fault("Timeout(%v) must be positive", limit)
		}
		set.timeout = limit
	})
}

// Scopes restricts a component to clients with all of scopes. Lists omit it for other
// clients, and are then private. A request of such a client is rejected before any
// handler and, except for custom methods, before any middleware runs: over HTTP with
// the challenge by which clients ask their user for more and come again (step-up,
// basic/authorization of 2025-11-25 and 2026-07-28), elsewhere with a JSON-RPC error.
//
//	mcp.Tool("add_note", addNote, mcp.Scopes("notes:write"))
//
// The middleware of package auth, or WithIdentity, sets the scopes of a client.
// Without either a client has no scope, also on stdio. Given twice, the option adds.
// For needs that depend on arguments see Frame.RequireScopes.
func Scopes(scopes ...string) Option {
	scopes = slices.Clone(scopes)
	return common(func(set *settings) {
		if len(scopes) == 0 {
			set.fault("Scopes: there is no scope; name one, or leave the option out")
		}
		for _, scope := range scopes {
			if !validScope(scope) {
				set.fault("Scopes: %q is not a scope; it has visible ASCII characters other than \" and \\", scope)
			}
			if !slices.Contains(set.scopes, scope) {
				set.scopes = append(set.scopes, scope)
			}
		}
	})
}

// validScope reports whether scope is a scope-token (RFC 6749, section 3.3).
func validScope(scope string) bool {
	for _, c := range []byte(scope) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return scope != ""
}

// withScopes puts a check before h. It is for custom methods, which gate does
// not know; for components the methods of the specification check.
func withScopes(scopes []string, h frame.Handler) frame.Handler {
	if len(scopes) == 0 {
		return h
	}
	return func(f *frame.Frame) (protocol.Result, error) {
		if err := f.RequireScopes(scopes...); err != nil {
			return nil, err
		}
		return h(f)
	}
}

// VisibleTo restricts a component to clients whose requests fn accepts; see Options.Filter, which must also let it pass. fn runs for each
// list and each call. It should decide by the client, as by Frame.Principal,
// and not by the request. Given twice, both must return true.
func VisibleTo(fn func(f *Frame) bool) Option {
	return common(func(set *settings) {
		if fn == nil {
			set.fault("VisibleTo: the func is nil")
		}
		if before := set.visible; before != nil {
			set.visible = func(f *Frame) bool { return before(f) && fn(f) }
			return
		}
		set.visible = fn
	})
}

// runner is a function with its types erased: decode fills a pointer to its input,
// and out is a pointer to its result. It calls decode once, before the function. An
// error of decode is returned unchanged; the function does not run, and out is nil.
// Several goroutines may run one at once.
type runner func(f *frame.Frame, decode func(f *frame.Frame, in any) error) (out any, err error)

// erase takes the types of a handler away. Its context is a *Frame or a
// context.Context, as handlerFaults makes sure; both are the Frame.
func erase[Ctx context.Context, In, Out any](fn func(ctx Ctx, in In) (Out, error)) runner {
	type call struct {
		in  In
		out Out
	}
	return func(f *frame.Frame, decode func(f *frame.Frame, in any) error) (any, error) {
		c := new(call) // input and result in one piece of memory
		if err := decode(f, &c.in); err != nil {
			return nil, err
		}
		var err error
		c.out, err = fn(any(f).(Ctx), c.in)
		return &c.out, err
	}
}

// handlerFaults returns the errors in the signature of a component's function.
func handlerFaults[Ctx context.Context](isNil bool) (f faults) {
	if isNil {
		f = append(f, "the func is nil")
	}
	switch ctx := reflect.TypeFor[Ctx](); ctx {
	case reflect.TypeFor[*Frame](), reflect.TypeFor[context.Context]():
	default:
		f = append(f, fmt.Sprintf("the first parameter of the func is a %v; it must be a *mcp.Frame or a context.Context", ctx))
	}
	return f
}

// checkName returns what is wrong with the name of a tool or prompt.
func checkName(name string) error {
	if !validName(name) {
		return errors.New("a name has 1 to 128 letters, digits, '_', '-' or '.'")
	}
	return nil
}

// validName reports whether a name has the form that the specification has for
// those of tools (server/tools of 2025-11-25, "Tool Names"). Names of prompts
// are held to the same.
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
