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

// sessionComponents is the Server as frame.Add sees it.
type sessionComponents Server

var errNoSession = errors.New("mcp: components for one client need a legacy session: " +
	"in the modern era lists must not differ between requests; add them to the Server")

// Add implements frame.Components.
func (c *sessionComponents) Add(f *frame.Frame, components []any) error {
	s := (*Server)(c)
	x, ok := f.Session().(*session.Session)
	if !ok {
		return errNoSession
	}
	list := make([]Component, len(components))
	for i, component := range components {
		if list[i], ok = component.(Component); !ok {
			return fmt.Errorf("mcp: component %d is of type %T; give what Tool, Resource or Prompt returns", i, component)
		}
	}
	all, err := s.compile(list)
	if err != nil {
		return err
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

// Remove implements frame.Components.
func (c *sessionComponents) Remove(f *frame.Frame, names []string) (int, error) {
	x, ok := f.Session().(*session.Session)
	if !ok {
		return 0, errNoSession
	}
	own := catalogOf(f)
	if own == noCatalog {
		return 0, nil
	}
	tools := own.tools.Remove(names...)
	resources := own.resources.Remove(names...) + own.templates.Remove(names...)
	prompts := own.prompts.Remove(names...)
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
