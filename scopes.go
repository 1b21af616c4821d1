package mcp

import (
	"slices"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// validScope tells whether scope is a scope-token (RFC 6749, section 3.3).
func validScope(scope string) bool {
	for _, c := range []byte(scope) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return scope != ""
}

// needsScopes tells whether something of o does.
func (o *offer) needsScopes() bool {
	return scoped(o.tools) || scoped(o.resources) || scoped(o.templates) || scoped(o.prompts)
}

func scoped[E registry.Restricted](list []E) bool {
	return slices.ContainsFunc(list, func(e E) bool { return len(e.Needs()) > 0 })
}

// granted returns what of list is listed for the client of f.
func granted[E registry.Restricted](s *Server, f *frame.Frame, kind Kind, list registry.View[E]) registry.View[E] {
	if !list.Scoped() {
		return list
	}
	return list.Only(func(e E) bool { return s.shows(f, kind, e) && f.HasScope(e.Needs()...) })
}

// withScopes puts a check before h.
func withScopes(scopes []string, h dispatch.Handler) dispatch.Handler {
	if len(scopes) == 0 {
		return h
	}
	return func(f *frame.Frame) (protocol.Result, error) {
		if err := f.NeedScopes(scopes...); err != nil {
			return nil, err
		}
		return h(f)
	}
}

// gate is the outermost middleware. It refuses what needs scopes that were not
// granted before other middleware may answer, from a cache for one. The methods
// check again: middleware may have turned the request into another. Without
// middleware they are enough.
func (s *Server) gate(next Handler) Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if err := lapsed(f); err != nil {
			return nil, err
		}
		if len(s.middleware) > 0 && s.scoped.Load() {
			if err := f.NeedScopes(s.needs(f)...); err != nil {
				return nil, err
			}
		}
		return next(f)
	}
}

// lapsed returns an error if the token that a connection began with has ended.
// Requests over HTTP bring one each, and it was checked with them.
func lapsed(f *frame.Frame) error {
	if kind := f.Transport().Kind; kind == frame.HTTP || kind == frame.SSE {
		return nil
	}
	if id := f.Identity(); id == nil || id.Expiry.IsZero() || time.Now().Before(id.Expiry) {
		return nil
	}
	return protocol.Errorf(protocol.CodeUnauthorized, "the access token of this connection has ended; connect again with a new one")
}

// needs returns the scopes that the request of f needs for what it names.
func (s *Server) needs(f *frame.Frame) []string {
	req := f.Request()
	switch req.Method {
	case protocol.MethodToolsCall:
		if t, ok := s.toolsFor(f).Get(req.Params.Name); ok {
			return t.Scopes
		}
	case protocol.MethodPromptsGet:
		if p, ok := s.promptsFor(f).Get(req.Params.Name); ok {
			return p.Scopes
		}
	case protocol.MethodResourcesRead, protocol.MethodSubscribe:
		return s.scopesOf(f, req.Params.Name)
	case protocol.MethodComplete:
		return s.completionNeeds(f)
	}
	return nil
}

// completionNeeds returns the scopes that a completion needs: those of the prompt
// or the template.
func (s *Server) completionNeeds(f *frame.Frame) []string {
	params, fault := protocol.ParseCompleteParams(f.Request().Params.Raw)
	switch {
	case fault != nil:
	case params.Ref.Type == protocol.RefPrompt:
		if p, ok := s.promptsFor(f).Get(params.Ref.Name); ok {
			return p.Scopes
		}
	case len(params.Ref.URI) <= protocol.MaxURI:
		if t, ok := s.templateOf(f, params.Ref.URI); ok {
			return t.Scopes
		}
	}
	return nil
}

// scopesOf returns the scopes that the resource at uri needs: its own, or those
// of the template that is asked for it first. Others are asked after it only if
// they need no more (see fitting), so that this is known before anything runs.
func (s *Server) scopesOf(f *frame.Frame, uri string) []string {
	if len(uri) > protocol.MaxURI {
		return nil
	}
	if r, ok := s.resourcesFor(f).Get(uri); ok {
		return r.Scopes
	}
	if templates := s.templatesFor(f); !templates.Scoped() {
		return nil
	}
	if fits := s.fits(f, uri); len(fits) > 0 {
		return fits[0].template.Scopes
	}
	return nil
}
