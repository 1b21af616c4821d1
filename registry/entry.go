package registry

import (
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Kind tells the components of a Catalog apart.
type Kind string

// The kinds of components.
const (
	KindTool     Kind = "tool"
	KindResource Kind = "resource"         // its key is the URI
	KindTemplate Kind = "resourceTemplate" // its key is the template's text
	KindPrompt   Kind = "prompt"
	KindEvent    Kind = "event" // an event type
)

// The kinds that packages of this module add, so that they come and go with a
// mount as the others do. They have no exported names: what users list, filter and
// remove are the five above, and a skill is removed as the resource that its SKILL.md
// is.
const (
	kindUnlisted  Kind = "unlistedResource" // read as a resource, and in no list; its key is the URI
	kindSkill     Kind = "skill"            // its key is the URI of its SKILL.md
	kindExtension Kind = "extension"        // its key is the identifier, and by which mount it came
)

// kinds are all of them.
var kinds = [...]Kind{KindTool, KindResource, KindTemplate, KindPrompt, KindEvent, kindUnlisted, kindSkill, kindExtension}

// names returns the kind among whose keys those of kind are unique.
func (kind Kind) names() Kind {
	if kind == kindUnlisted {
		return KindResource
	}
	return kind
}

// prefixed reports whether the keys of kind are names, which a mount puts a prefix before.
func (kind Kind) prefixed() bool {
	return kind == KindTool || kind == KindPrompt || kind == KindEvent
}

// plural returns the name of the member that holds a list of kind.
func plural(kind Kind) string {
	if kind == "" {
		return "components"
	}
	return string(kind) + "s"
}

// Entry is one component. It must not change once it was added to a Catalog.
type Entry struct {
	// Definition is what lists say of it: a *protocol.Tool, *protocol.Resource,
	// *protocol.ResourceTemplate, *protocol.Prompt or *protocol.EventType, which decides the kind.
	// Packages of this module have two more: a skill and an extension.
	Definition any
	// As returns the Definition for the client of f, of the same type and with the same
	// key; nil is the Definition above, for all clients. It is asked only where Visible
	// reports true, and its result must not change.
	As func(f *frame.Frame) any
	// Unlisted keeps a resource out of lists; it is read as any other.
	Unlisted bool
	// Root is the resource that Config.Filter is asked about in place of this
	// component, which is a part of that resource; "" means none of this.
	Root string
	// Directory returns the resources and directories right below the directory at
	// uri, if the component has it; nil means that it has no directories.
	Directory func(uri string) (children []protocol.Resource, ok bool)
	// View is the URI of the view that hosts show for results of the tool; "" without
	// one. If the view does not exist, the tool is described without it.
	View string
	// Listed are the names of the tools in the lists of clients that see this tool, which
	// finds the others; nil is all tools. They have "anthropic/alwaysLoad" for all clients.
	// It ends where the catalog is mounted: there, lists have all tools.
	Listed []string
	// Under returns what reads a resource of which the text differs below a prefix
	// that the names of tools have by a mount; nil is Serve, wherever it is.
	Under func(prefix string) frame.Handler
	// Serve calls a tool, reads a resource, gets a prompt or polls an event type for the
	// request of f.
	Serve frame.Handler
	// Visible reports whether the component is there for the client of f; nil means
	// for all clients.
	Visible func(f *frame.Frame) bool
	// Scopes are those that a client must have been granted to use it.
	Scopes []string

	// Headers are the arguments of a tool that clients mirror into HTTP headers.
	Headers []facts.Header
	// Task reports whether calls of a tool may become tasks.
	Task bool
	// Checks is set if Serve of a tool also serves requests to check arguments, by which it
	// does not run.
	Checks bool

	// Match returns what reads the resource of a template at uri, or nil if uri
	// does not fit the template. Templates have it in place of Serve.
	Match func(uri string) frame.Handler
	// Literals returns how closely a template fits what it matches: of two, the
	// one with more is asked first.
	Literals int

	// Arguments are the names of a prompt's arguments, or of a template's
	// variables.
	Arguments []string
	// Emits is what package mcp encodes the events of an event type with.
	Emits any
	// Completers find values for arguments; not every argument has one. value is
	// what was typed, arguments are the others that are known.
	Completers map[string]func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error)

	from string // the mounts that it came by; "" is the server itself
	copy *Entry // the original in the mounted catalog; nil for an original
}

// copies reports whether e is original, or a copy of it over any number of mounts.
func (e *Entry) copies(original *Entry) bool {
	for ; e != nil; e = e.copy {
		if e == original {
			return true
		}
	}
	return false
}

// IsView reports whether the component is a view, which hosts can show.
func (e *Entry) IsView() bool {
	d, ok := e.Definition.(*protocol.Resource)
	return ok && d.MIMEType == wire.ViewType
}

// For returns the Definition for the client of f; a nil f is for all clients. It runs users'
// code and must be called without a lock.
func (e *Entry) For(f *frame.Frame) any {
	if e.As != nil && f != nil {
		if own := e.As(f); own != nil {
			return own
		}
	}
	return e.Definition
}

// Kind returns the kind of the component; "" if there is none for what the
// Definition is.
func (e *Entry) Kind() Kind {
	kind, _ := e.place()
	return kind
}

// Key returns what clients call the component by; it is unique among those of
// its kind.
func (e *Entry) Key() string {
	_, key := e.place()
	return key
}

// place returns kind and key, both of which follow from the type and the content
// of the Definition. Both are "" for a type that describes no component.
func (e *Entry) place() (kind Kind, key string) {
	switch d := e.Definition.(type) {
	case *protocol.Tool:
		return KindTool, d.Name
	case *protocol.Resource:
		if e.Unlisted {
			return kindUnlisted, d.URI
		}
		return KindResource, d.URI
	case *protocol.ResourceTemplate:
		return KindTemplate, d.URITemplate
	case *protocol.Prompt:
		return KindPrompt, d.Name
	case *protocol.EventType:
		return KindEvent, d.Name
	case *wire.Skill:
		return kindSkill, d.URI
	case *wire.Extension:
		return kindExtension, d.ID + e.from
	}
	return "", ""
}

// define returns the JSON object that describes the component in rev: with the view
// of a tool, or without it.
func (e *Entry) define(rev protocol.Revision, viewed bool) (json.RawMessage, error) {
	return e.defineAs(e.Definition, rev, viewed)
}

// defineAs is define with another Definition.
func (e *Entry) defineAs(definition any, rev protocol.Revision, viewed bool) (json.RawMessage, error) {
	switch d := definition.(type) {
	case *protocol.Tool:
		tool := wire.ToolFor(*d, rev)
		if e.View != "" && !viewed {
			tool.Meta = wire.MetaWithoutView(tool.Meta)
		}
		return jsonx.Plain(tool)
	case *protocol.Resource:
		return jsonx.Plain(wire.ResourceFor(*d, rev))
	case *protocol.ResourceTemplate:
		return jsonx.Plain(wire.ResourceTemplateFor(*d, rev))
	case *protocol.Prompt:
		return jsonx.Plain(wire.PromptFor(*d, rev))
	case *protocol.EventType:
		return jsonx.Plain(wire.EventTypeFor(*d, rev))
	case *wire.Skill:
		return jsonx.Plain(d)
	case *wire.Extension:
		return d.Settings, nil
	}
	return nil, fmt.Errorf("a %T describes no component", definition)
}
