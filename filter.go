package mcp

import (
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Kind tells a filter what a name names.
type Kind string

// The kinds of components.
const (
	KindTool     Kind = "tool"
	KindResource Kind = "resource"         // its name is the URI
	KindTemplate Kind = "resourceTemplate" // its name is the template's text
	KindPrompt   Kind = "prompt"
)

// only returns what of v is there for the client of f.
func only[E registry.Restricted](s *Server, f *frame.Frame, kind Kind, v registry.View[E]) registry.View[E] {
	if s.opts.Filter == nil && !v.Restricted() {
		return v
	}
	return v.Only(func(e E) bool { return s.shows(f, kind, e) })
}

func (s *Server) shows(f *frame.Frame, kind Kind, e registry.Restricted) bool {
	return e.VisibleTo(f) && (s.opts.Filter == nil || s.opts.Filter(f, kind, e.Key()))
}

// hidden tells whether there is a resource at uri that the client of f must
// not hear of.
func (s *Server) hidden(f *frame.Frame, uri string) bool {
	own := catalogOf(f)
	resources, templates := s.resources.With(own.resources), s.templates.With(own.templates)
	if s.opts.Filter == nil && !resources.Restricted() && !templates.Restricted() {
		return false
	}
	hidden := false
	if r, ok := resources.Get(uri); ok {
		if s.shows(f, KindResource, r) {
			return false
		}
		hidden = true
	}
	for _, t := range templates.All() {
		if t.Match(uri) == nil {
			continue
		}
		if s.shows(f, KindTemplate, t) {
			return false
		}
		hidden = true
	}
	return hidden
}

// Tool describes a tool of the server's, if it is there for the client of
// f; those that a handler added to its session are not found. It is for
// middleware, which finds the name in f.Request().Params.Name.
func (s *Server) Tool(f *Frame, name string) (definition protocol.Tool, ok bool) {
	if own := catalogOf(f).tools; own != nil {
		if _, ok := own.Get(name); ok {
			return protocol.Tool{}, false
		}
	}
	tool, ok := s.toolsFor(f).Get(name)
	if !ok {
		return protocol.Tool{}, false
	}
	return tool.Definition, true
}
