package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Extension declares that the server has an extension of the protocol, with its
// settings, in the answers to initialize and server/discover of every revision.
// It declares and no more: what the extension adds are components of yours, as a
// [Method]. The extensions of this module are declared with their components.
//
// id has the name of a domain that you own, reversed, and a name, as in
// "com.example/search". settings encode to a JSON object when the component is
// added; nil is an empty one. A second declaration of an id is a fault of
// Server.Add. A mounted server's extensions are declared with those of the server
// that it is mounted into, and other settings for the same id are a fault of
// Server.Mount. An extension cannot be added to a session or a set.
func Extension(id string, settings any) Component { return &extension{id, settings} }

// extension is what Extension returns.
type extension struct {
	id       string
	settings any
}

// compile implements Component.
func (x *extension) compile(c *compiler) error {
	var faults faults
	if !validExtension(x.id) {
		faults = append(faults, `an identifier has the name of a domain, reversed, a slash and a name, as in "com.example/search"`)
	}
	if x.id == wire.TasksExtension || x.id == wire.SkillsExtension || x.id == wire.EventsExtension {
		faults = append(faults, "the server declares it by itself, with the components that it is for")
	}
	text := []byte("{}")
	if x.settings != nil {
		var err error
		if text, err = json.Marshal(x.settings); err != nil {
			faults = append(faults, fmt.Sprintf("the settings do not encode: %v", err))
		} else if !bytes.HasPrefix(text, []byte("{")) {
			faults = append(faults, fmt.Sprintf("the settings are %.40s; they must be a JSON object", text))
		}
	}
	if err := faults.of("extension", x.id); err != nil {
		return err
	}
	c.entries = append(c.entries, &registry.Entry{Definition: &wire.Extension{ID: x.id, Settings: text}})
	return nil
}

// validExtension reports whether id has the form of a key of _meta with a prefix
// (basic/index of 2025-11-25), which identifiers of extensions have.
func validExtension(id string) bool {
	const label = `[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?`
	return len(id) <= 256 && regexp.MustCompile(`^`+label+`(\.`+label+`)*/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`).MatchString(id)
}

// Made makes a Component of what another package of this module offers. Only those
// can call it.
func Made(of option.Component, opts ...Option) Component {
	m := &made{of: of, settings: &methodSettings{}}
	apply(&m.settings.settings, opts, Option.methodOption, m.settings)
	return m
}

// MadeOption makes a ToolOption of what another package of this module offers. Only
// those can call it.
func MadeOption(of option.Tool) ToolOption {
	return tools(func(set *toolSettings) {
		if of.Foreign {
			set.foreign = true
			return
		}
		if of.Listed != nil {
			set.listed, set.as = of.Listed, of.As
			return
		}
		if of.View == "" && !of.AppOnly {
			set.fault("%s: there is no view without a URI", of.Name)
		}
		if of.View != "" && set.ui.View != "" && of.View != set.ui.View {
			set.fault("%s: the tool shows %s already, and has one view", of.Name, set.ui.View)
		}
		set.ui.View = cmp.Or(of.View, set.ui.View)
		if of.AppOnly {
			set.ui.Visibility = []string{"app"}
		}
		if of.Visible != nil {
			VisibleTo(of.Visible).toolOption(set)
		}
	})
}

// made is the result of Made. It can be added to several servers, and is made for
// each of them with that server's limits.
type made struct {
	of       option.Component
	settings *methodSettings
}

// compile implements Component.
func (m *made) compile(c *compiler) error {
	set, s := m.settings, c.server
	faults := set.faults
	if set.title != "" || set.doc != "" || set.icons != nil || set.timeout != 0 {
		faults = append(faults[:len(faults):len(faults)], "it describes itself and runs nothing of yours: leave Title, Doc, Icons and Timeout out")
	}
	if len(faults) > 0 {
		return fmt.Errorf("mcp: %s: %s", m.of.Name, strings.Join(faults, "\n\t"))
	}
	entries, err := m.of.Make(option.Settings{
		Visible: set.visible, Scopes: set.scopes, Meta: set.meta,
		Cache: s.opts.listCache(), MaxMessage: s.opts.Limits.Message, MaxFile: s.opts.Limits.File,
		Contents: func(name, mediaType string, data []byte) ResourceContents {
			return contentsFrom(data, cmp.Or(mediaType, typeOf(name, data)))
		},
		Catalog: s.catalog, Logger: &s.logger, Down: s.connections.Down(), Rounds: s.opts.Limits.Rounds, Question: s.opts.Timeouts.Question,
		Warn: func(text string, names []string) { safely.Log(s.logger.Warn().Strs("names", names), text) },
	})
	if err != nil {
		return fmt.Errorf("mcp: %s: %w", m.of.Name, err)
	}
	c.entries = append(c.entries, entries...)
	return nil
}

// The functions below serve the methods of the extension
// io.modelcontextprotocol/skills from the catalog, to which package skill adds
// its entries. The methods are in the table from the start, because a mounted
// server may add the first skill much later.

// skillSettings are those of the extension, as it is declared. The server always
// reads directories: it has the files of each skill at hand.
type skillSettings struct {
	DirectoryRead bool `json:"directoryRead"`
}

// skillMethods are the rows of the method table for skills. In a revision that the
// extension is not for, and at a server that never had a skill, they answer like
// unknown methods.
func skillMethods(s *Server) []dispatch.Method {
	row := func(name string, params bool, serve func(f *frame.Frame, view registry.View) (protocol.Result, error)) dispatch.Method {
		known := s.viewed(hasSkills, serve)
		return dispatch.Method{Name: name, Revisions: dispatch.Both, Params: params, Serve: forRequests(func(f *frame.Frame) (protocol.Result, error) {
			if !f.Revision().Has(protocol.FeatureSkills) {
				return nil, wire.MethodNotFound(name)
			}
			return known(f)
		})}
	}
	return []dispatch.Method{
		row(wire.MethodSkillsList, false, listSkills),
		row(wire.MethodSkillsGet, true, getSkill(s.opts.listCache())),
		row(wire.MethodDirectoryRead, true, readDirectory),
	}
}

// listSkills serves skills/list: a page of the skills that are there for the client,
// made and kept as the pages of all other lists are.
func listSkills(f *frame.Frame, view registry.View) (protocol.Result, error) {
	page, err := view.Internal(facts.Private{}).Skills(f.Request().Params.Cursor)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// getSkill serves skills/get. A client that may not see a skill receives the
// answer for one that does not exist.
func getSkill(cache protocol.Cache) func(f *frame.Frame, view registry.View) (protocol.Result, error) {
	return func(f *frame.Frame, view registry.View) (protocol.Result, error) {
		uri := f.Request().Params.Name
		e, ok := view.Internal(facts.Private{}).Skill(uri)
		if !ok {
			return nil, noURI("there is no skill whose SKILL.md is at %q", uri)
		}
		if err := f.RequireScopes(e.Scopes...); err != nil {
			return nil, err
		}
		if !f.Revision().Has(protocol.FeatureCacheHints) {
			return protocol.JSONResult{Value: skillResult{e.Definition}}, nil
		}
		own := cache
		if len(e.Scopes) > 0 || view.Internal(facts.Private{}).Private(e) {
			own.Public = false
		}
		ttl, scope := wire.CacheMembers(own)
		return protocol.JSONResult{Value: cachedSkillResult{e.Definition, ttl, scope}}, nil
	}
}

// skillResult is the result of skills/get.
type skillResult struct {
	Skill any `json:"skill"`
}

// cachedSkillResult is that of revisions with hints for caches.
type cachedSkillResult struct {
	Skill      any    `json:"skill"`
	TTLMs      int64  `json:"ttlMs"`
	CacheScope string `json:"cacheScope"`
}

// readDirectory serves resources/directory/read. A directory has no more children
// than a skill has files, so that all are on one page.
func readDirectory(f *frame.Frame, view registry.View) (protocol.Result, error) {
	params := &f.Request().Params
	e, ok := view.Internal(facts.Private{}).Directory(params.Name)
	if !ok {
		return nil, noURI("there is no directory at %q", params.Name)
	}
	if err := f.RequireScopes(e.Scopes...); err != nil {
		return nil, err
	}
	children, ok := e.Directory(params.Name)
	if !ok {
		return nil, noURI("there is no directory at %q", params.Name)
	}
	if params.Cursor != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "cursor is not one that nextCursor gave; a directory has one page")
	}
	all := directoryResult{Resources: make([]protocol.Resource, len(children))}
	for i, child := range children {
		all.Resources[i] = wire.ResourceFor(child, f.Revision())
	}
	return protocol.JSONResult{Value: all}, nil
}

// directoryResult is the result of resources/directory/read.
type directoryResult struct {
	Resources []protocol.Resource `json:"resources"`
}

// noURI returns the error for something that is not at uri, or not for the client,
// who cannot tell the two apart. It is -32602 in every revision, as the extension
// has it, also where a resource that is not there has a code of its own.
func noURI(format, uri string) error {
	if uri == "" {
		return protocol.Errorf(protocol.CodeInvalidParams, "params.uri is missing")
	}
	if len(uri) > wire.MaxURI {
		return protocol.Errorf(protocol.CodeInvalidParams, "params.uri is longer than %d bytes", wire.MaxURI)
	}
	fault := protocol.Errorf(protocol.CodeInvalidParams, format, uri)
	fault.Data = struct {
		URI string `json:"uri"`
	}{uri}
	return fault
}
