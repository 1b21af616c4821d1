package mcp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/session"
)

// catalog is what handlers have added to one legacy session.
type catalog struct {
	adding    sync.Mutex // makes add all or nothing
	tools     *registry.List[*registry.Tool]
	resources *registry.List[*registry.Resource]
	templates *registry.List[*registry.ResourceTemplate]
	prompts   *registry.List[*registry.Prompt]
}

// noCatalog is what modern requests, and sessions without components of their
// own, have. It does not change.
var noCatalog = &catalog{}

func newCatalog() *catalog {
	// Pages are those of the server's lists; these are never asked for any.
	return &catalog{
		tools:     registry.NewList[*registry.Tool](registry.Config{Member: "tools of the session"}),
		resources: registry.NewList[*registry.Resource](registry.Config{Member: "resources of the session"}),
		templates: registry.NewList[*registry.ResourceTemplate](registry.Config{Member: "resource templates of the session"}),
		prompts:   registry.NewList[*registry.Prompt](registry.Config{Member: "prompts of the session"}),
	}
}

type catalogKey struct{} // of a session's assigns

// catalogOf returns what f's session has of its own.
func catalogOf(f *frame.Frame) *catalog {
	if x := f.Session(); x != nil {
		if own, ok := x.Assigns().Get(catalogKey{}); ok {
			return own.(*catalog)
		}
	}
	return noCatalog
}

func (s *Server) toolsFor(f *frame.Frame) registry.View[*registry.Tool] {
	return only(s, f, KindTool, s.tools.With(catalogOf(f).tools))
}

func (s *Server) resourcesFor(f *frame.Frame) registry.View[*registry.Resource] {
	return only(s, f, KindResource, s.resources.With(catalogOf(f).resources))
}

func (s *Server) templatesFor(f *frame.Frame) registry.View[*registry.ResourceTemplate] {
	return only(s, f, KindTemplate, s.templates.With(catalogOf(f).templates))
}

func (s *Server) promptsFor(f *frame.Frame) registry.View[*registry.Prompt] {
	return only(s, f, KindPrompt, s.prompts.With(catalogOf(f).prompts))
}

var errNoSession = errors.New("mcp: components for one client need a legacy session: " +
	"in the modern era lists must not differ between requests; add them to the Server")

// AddToSession adds components to what the legacy session of f's request is
// offered. Other clients do not see them, and they go with the session. All are
// added, or none; the error lists every fault, as that of Add does, and a name
// that the server or the session has already is one. The client is told of the
// change.
//
// In the modern era, where lists must not differ between requests, it is an
// error: add components to the Server there. Methods cannot be added.
func (s *Server) AddToSession(f *Frame, components ...Component) error {
	s = s.host(f)
	x, ok := f.Session().(*session.Session)
	if !ok {
		return errNoSession
	}
	all, err := s.compile(components)
	if err != nil {
		return err
	}
	if len(all.methods) > 0 {
		return fmt.Errorf("mcp: method %q: a session has no methods of its own; add it to the Server", all.methods[0].Name)
	}
	own := x.Assigns().SetNew(catalogKey{}, func() any { return newCatalog() }).(*catalog)
	if err := own.add(s, all); err != nil {
		return err
	}
	s.declare(all)
	tellSession(x, len(all.tools), len(all.resources)+len(all.templates), len(all.prompts))
	return nil
}

// add adds all, or nothing and returns why not.
func (c *catalog) add(s *Server, all *offer) error {
	c.adding.Lock()
	defer c.adding.Unlock()
	err := errors.Join(s.tools.Check(all.tools...), s.resources.Check(all.resources...),
		s.templates.Check(all.templates...), s.prompts.Check(all.prompts...),
		c.tools.Check(all.tools...), c.resources.Check(all.resources...),
		c.templates.Check(all.templates...), c.prompts.Check(all.prompts...))
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	// These fail only for what Check has found: nobody else adds meanwhile.
	return errors.Join(c.tools.Add(all.tools...), c.resources.Add(all.resources...),
		c.templates.Add(all.templates...), c.prompts.Add(all.prompts...))
}

// RemoveFromSession takes components of one kind back that AddToSession has
// added to the session of f's request, by name, URI or URI template, and returns
// how many there were. It is an error where AddToSession is.
func (s *Server) RemoveFromSession(f *Frame, kind Kind, names ...string) (int, error) {
	x, ok := f.Session().(*session.Session)
	if !ok {
		return 0, errNoSession
	}
	own := catalogOf(f)
	if own == noCatalog {
		return 0, nil
	}
	var tools, resources, prompts int
	switch kind {
	case KindTool:
		tools = own.tools.Remove(names...)
	case KindResource:
		resources = own.resources.Remove(names...)
	case KindTemplate:
		resources = own.templates.Remove(names...)
	case KindPrompt:
		prompts = own.prompts.Remove(names...)
	}
	tellSession(x, tools, resources, prompts)
	return tools + resources + prompts, nil
}

// tellSession tells a session of which kinds so many components came or went.
func tellSession(x *session.Session, tools, resources, prompts int) {
	for _, kind := range []struct {
		changed int
		method  string
	}{
		{tools, protocol.MethodToolsChanged}, {resources, protocol.MethodResourcesChanged},
		{prompts, protocol.MethodPromptsChanged},
	} {
		if kind.changed > 0 {
			x.Send(protocol.AppendNotification(nil, kind.method, nil))
		}
	}
}
