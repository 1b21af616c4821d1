package mcp

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Component is something that a Server offers: what Tool, Resource and Prompt
// return. The interface is sealed, since a Server has to know each kind.
type Component interface {
	// compile adds what the component is to all, checked and ready.
	compile(s *Server, all *offer) error
}

// offer is what components have compiled to, by kind.
type offer struct {
	tools     []*registry.Tool
	resources []*registry.Resource
	templates []*registry.ResourceTemplate
	prompts   []*registry.Prompt
	methods   []dispatch.Method
}

// ComponentOption describes or shapes a component.
type ComponentOption func(*settings)

// settings are what the options of a component say.
type settings struct {
	title, doc   string
	icons        []protocol.Icon
	meta         protocol.MetaMap
	hints        *protocol.ToolAnnotations
	timeout      time.Duration
	task         *TaskOptions
	visible      func(f *Frame) bool
	scopes       []string
	strict       bool
	inputSchema  json.RawMessage
	outputSchema json.RawMessage
	noTwin       bool
	faults       []string
	used         []use // options that are not for every kind of component
	resourceSettings
	completers map[string]registry.Completer
}

func newSettings(opts []ComponentOption) *settings {
	set := &settings{}
	for _, o := range opts {
		o(set)
	}
	return set
}

func (set *settings) fault(format string, args ...any) {
	set.faults = append(set.faults, fmt.Sprintf(format, args...))
}

// Doc says what the component is for. Models choose by it.
func Doc(text string) ComponentOption { return func(set *settings) { set.doc = text } }

// Title is the name that people see.
func Title(text string) ComponentOption { return func(set *settings) { set.title = text } }

// Icons are images for user interfaces (revisions from 2025-11-25 on).
func Icons(icons ...protocol.Icon) ComponentOption {
	return func(set *settings) {
		for i, icon := range icons {
			if icon.Src == "" {
				set.fault("Icons: icon %d has no Src; give it an https: or data: URI", i)
			}
		}
		set.icons = append(set.icons, icons...)
	}
}

// Meta adds a member to the component's _meta.
func Meta(key string, value any) ComponentOption {
	return func(set *settings) {
		if set.meta == nil {
			set.meta = protocol.MetaMap{}
		}
		set.meta[key] = value
	}
}

// ReadOnly hints that a tool changes nothing.
func ReadOnly() ComponentOption {
	return func(set *settings) { set.hint("ReadOnly").ReadOnlyHint = boolean(true) }
}

// Destructive hints whether a tool may destroy what is there; clients take
// tools for destructive unless told.
func Destructive(yes bool) ComponentOption {
	return func(set *settings) { set.hint("Destructive").DestructiveHint = boolean(yes) }
}

// Idempotent hints that calling a tool again with the same arguments changes
// nothing more.
func Idempotent() ComponentOption {
	return func(set *settings) { set.hint("Idempotent").IdempotentHint = boolean(true) }
}

// OpenWorld hints whether a tool deals with the world outside, as a web search
// does; clients assume that it does unless told.
func OpenWorld(yes bool) ComponentOption {
	return func(set *settings) { set.hint("OpenWorld").OpenWorldHint = boolean(yes) }
}

func (set *settings) hint(option string) *protocol.ToolAnnotations {
	set.use(option, toolKind)
	if set.hints == nil {
		set.hints = &protocol.ToolAnnotations{}
	}
	return set.hints
}

func boolean(b bool) *bool { return &b }

// Timeout limits each call of a tool or method, read of a resource or get of a
// prompt.
// When it passes, the client is told so at once and the handler's context ends.
func Timeout(limit time.Duration) ComponentOption {
	return func(set *settings) {
		if limit <= 0 {
			set.fault("Timeout(%v) must be positive", limit)
		}
		set.timeout = limit
	}
}

// Strict turns coercion off for a tool or a method: the string "5" is then no integer.
func Strict() ComponentOption {
	return func(set *settings) {
		set.use("Strict", toolKind|methodKind)
		set.strict = true
	}
}

// InputSchema gives a tool's schema in JSON, in place of the one from its
// argument type; arguments are checked against it, and then decoded with
// encoding/json. Use it with json.RawMessage or a map as argument type, for
// tools whose schema comes from elsewhere. Its root has "type": "object"; it is
// of draft 2020-12 unless its $schema names another. One that is not valid, in
// an unknown dialect, or refers to what lies elsewhere is an error of Server.Add.
func InputSchema(schema json.RawMessage) ComponentOption {
	return func(set *settings) {
		set.use("InputSchema", toolKind)
		set.inputSchema = schema
	}
}

// OutputSchema gives the schema of a tool's structured result in JSON, in
// place of the one from its result type; results are checked against it.
func OutputSchema(schema json.RawMessage) ComponentOption {
	return func(set *settings) {
		set.use("OutputSchema", toolKind)
		set.outputSchema = schema
	}
}

// NoTextTwin leaves out the text item that repeats a structured result for
// clients that read text alone. Revisions without structured results keep it.
func NoTextTwin() ComponentOption {
	return func(set *settings) {
		set.use("NoTextTwin", toolKind)
		set.noTwin = true
	}
}
