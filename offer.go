package mcp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// offers are the lists of what a server offers beside tools. What was offered
// once stays declared: a client that was told of prompts may ask for them after
// the last one is gone, and gets an empty list.
type offers struct {
	resources *registry.List[*registry.Resource]
	templates *registry.List[*registry.ResourceTemplate]
	prompts   *registry.List[*registry.Prompt]

	offersResources, offersPrompts, offersCompletions atomic.Bool
}

func (s *Server) newOffers() {
	config := func(member string) registry.Config {
		return registry.Config{Member: member, PageSize: s.opts.PageSize, Cache: s.opts.listCache(), Meta: s.serverMeta()}
	}
	s.resources = registry.NewList[*registry.Resource](config("resources"))
	s.templates = registry.NewList[*registry.ResourceTemplate](config("resourceTemplates"))
	s.prompts = registry.NewList[*registry.Prompt](config("prompts"))
	s.resources.Watch(s.resourcesChanged)
	s.templates.Watch(s.resourcesChanged)
	s.prompts.Watch(s.promptsChanged)
}

// add adds all, or nothing and returns why not.
func (s *Server) add(all *offer) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	err := errors.Join(s.tools.Check(all.tools...), s.resources.Check(all.resources...),
		s.templates.Check(all.templates...), s.prompts.Check(all.prompts...), s.customs.check(all.methods))
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	s.declare(all)
	s.customs.methods = append(s.customs.methods, all.methods...)
	// These fail only for what Check has found: nobody else adds meanwhile.
	return errors.Join(s.tools.Add(all.tools...), s.resources.Add(all.resources...),
		s.templates.Add(all.templates...), s.prompts.Add(all.prompts...))
}

// declare notes what kinds of components there are.
func (s *Server) declare(all *offer) {
	if len(all.resources)+len(all.templates) > 0 {
		s.offersResources.Store(true)
	}
	if len(all.prompts) > 0 {
		s.offersPrompts.Store(true)
	}
	if all.needsScopes() {
		s.scoped.Store(true)
	}
	for _, p := range all.prompts {
		if len(p.Completers) > 0 {
			s.offersCompletions.Store(true)
		}
	}
	for _, t := range all.tools {
		if t.Task {
			s.hasTasks.Store(true)
		}
	}
	for _, t := range all.templates {
		if len(t.Completers) > 0 {
			s.offersCompletions.Store(true)
		}
	}
}

// timeout calls h with a limit; see dispatch.Timeout.
func (s *Server) timeout(f *frame.Frame, limit time.Duration, h dispatch.Handler) (protocol.Result, error) {
	return s.dispatch().Timeout(f, limit, h, s.running.Go)
}

// limited puts a time limit on h: its own, or else that of the server.
func (s *Server) limited(what string, limit time.Duration, h dispatch.Handler) dispatch.Handler {
	if limit <= 0 {
		limit = s.opts.Timeouts.Call
	}
	if limit <= 0 {
		return h
	}
	return func(f *frame.Frame) (protocol.Result, error) {
		result, err := s.host(f).timeout(f, limit, h)
		if errors.Is(err, dispatch.ErrTimeout) {
			return nil, &protocol.Error{Code: protocol.CodeInternal, Message: fmt.Sprintf("%s timed out after %v", what, limit), Err: err}
		}
		return result, err
	}
}
