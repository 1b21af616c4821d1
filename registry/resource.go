package registry

import (
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Resource is a resource that can be listed and read.
type Resource struct {
	Definition protocol.Resource
	// Read reads it for the frame's request.
	Read func(f *frame.Frame) (protocol.Result, error)
	// Visible is as that of a Tool.
	Visible func(f *frame.Frame) bool
	// Scopes are as those of a Tool.
	Scopes []string
}

// Restricted implements Restricted.
func (r *Resource) Restricted() bool { return r.Visible != nil }

// VisibleTo implements Restricted.
func (r *Resource) VisibleTo(f *frame.Frame) bool { return r.Visible == nil || r.Visible(f) }

// Needs implements Restricted.
func (r *Resource) Needs() []string { return r.Scopes }

// Key implements Entry.
func (r *Resource) Key() string { return r.Definition.URI }

// Define implements Entry.
func (r *Resource) Define(rev protocol.Revision) (json.RawMessage, error) {
	return encode(r.Definition.For(rev))
}

// ResourceTemplate is a template whose resources can be read.
type ResourceTemplate struct {
	Definition protocol.ResourceTemplate
	// Match returns the func that reads the resource at uri, or nil if uri does
	// not fit the template.
	Match func(uri string) func(f *frame.Frame) (protocol.Result, error)
	// Literals tells how closely the template fits what it matches: of two, the
	// one with more is asked first.
	Literals int
	// Completers are by variable.
	Completers map[string]Completer
	// Variables are the names of all variables.
	Variables []string
	// Visible is as that of a Tool.
	Visible func(f *frame.Frame) bool
	// Scopes are as those of a Tool.
	Scopes []string
}

// Restricted implements Restricted.
func (t *ResourceTemplate) Restricted() bool { return t.Visible != nil }

// VisibleTo implements Restricted.
func (t *ResourceTemplate) VisibleTo(f *frame.Frame) bool { return t.Visible == nil || t.Visible(f) }

// Needs implements Restricted.
func (t *ResourceTemplate) Needs() []string { return t.Scopes }

// Key implements Entry.
func (t *ResourceTemplate) Key() string { return t.Definition.URITemplate }

// Define implements Entry.
func (t *ResourceTemplate) Define(rev protocol.Revision) (json.RawMessage, error) {
	return encode(t.Definition.For(rev))
}
