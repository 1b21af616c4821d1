package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// methods is the table of everything that clients may ask for. dispatch calls it
// once, with s.composing held; it takes s.adding, and freezes s.customs. The
// handlers in it look up their components for each request, so the table does
// not change with the components.
func (s *Server) methods() []dispatch.Method {
	table := []dispatch.Method{
		{Name: protocol.MethodInitialize, Revisions: dispatch.Legacy, Params: true, Serve: s.initialize},
		{Name: protocol.MethodInitialized, Revisions: dispatch.Legacy, Serve: ignore},
		{Name: protocol.MethodPing, Revisions: dispatch.Legacy, Serve: ignore},
		{Name: protocol.MethodDiscover, Revisions: dispatch.Modern, Serve: s.discover},
		{Name: protocol.MethodToolsList, Revisions: dispatch.Both, Serve: s.lists(0, KindTool)},
		{Name: protocol.MethodToolsCall, Revisions: dispatch.Both, Params: true, Serve: s.viewed(0, callTool)},
		{Name: wire.MethodCheck, Revisions: dispatch.Both, Params: true, Serve: s.viewed(0, callTool)},
		{Name: protocol.MethodResourcesList, Revisions: dispatch.Both, Serve: s.lists(hasResources, KindResource)},
		{Name: protocol.MethodResourceTemplates, Revisions: dispatch.Both, Serve: s.lists(hasResources, KindTemplate)},
		{Name: protocol.MethodResourcesRead, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasResources, readResource)},
		{Name: protocol.MethodPromptsList, Revisions: dispatch.Both, Serve: s.lists(hasPrompts, KindPrompt)},
		{Name: protocol.MethodPromptsGet, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasPrompts, getPrompt)},
		{Name: protocol.MethodComplete, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasCompletions, complete)},
		{Name: protocol.MethodSetLevel, Revisions: dispatch.Legacy, Params: true, Serve: setLevel},
		// The transport has cancelled the request before these arrive here.
		{Name: protocol.MethodCancelled, Revisions: dispatch.Both, Serve: ignore},
		{Name: protocol.MethodProgress, Revisions: dispatch.Both, Serve: ignore},
	}
	table = append(table, s.subscriptions.methods()...)
	table = append(table, s.tasks.methods()...)
	table = append(table, skillMethods(s)...)
	table = append(table, eventMethods(s)...)
	s.adding.Lock()
	defer s.adding.Unlock()
	return s.customs.appendTo(table, &s.logger)
}

// ignore serves methods that need no more than to be known.
func ignore(*frame.Frame) (protocol.Result, error) { return wire.EmptyResult{}, nil }

// catalogKey is the key of the Catalog among the assigns of a session. No name
// or Key of a user equals it, and a session store does not take its value: the
// components of a session end with the process.
type catalogKey struct{}

// catalogOf returns what a session has of its own; nil if that is nothing, as
// modern requests, which have no session, have nothing.
func catalogOf(x core.Session) *registry.Catalog {
	if x != nil {
		if own, ok := x.Assigns().Get(catalogKey{}); ok {
			return own.(*registry.Catalog)
		}
	}
	return nil
}

// view returns what there is for the client of f.
func (s *Server) view(f *frame.Frame) registry.View {
	return s.catalog.View(f, catalogOf(frame.Internal(facts.Private{}).Session(f)))
}

// Tools yields the tools that the client of f sees, sorted by name, as tools/list does,
// and those that a handler added to its session. Tools of a mounted server have their
// names in s, as for Call, if the client sees them in the outermost server. A nil f yields
// all tools of the server, for programs without a client; an f of another server yields
// none. The values are shared and must not be changed. Visibility rules run during the
// iteration.
func (s *Server) Tools(f *Frame) iter.Seq[protocol.Tool] {
	return offered[protocol.Tool](s, f, KindTool)
}

// Prompts yields prompts, as Tools does tools.
func (s *Server) Prompts(f *Frame) iter.Seq[protocol.Prompt] {
	return offered[protocol.Prompt](s, f, KindPrompt)
}

// Resources yields resources sorted by URI, as Tools does tools.
func (s *Server) Resources(f *Frame) iter.Seq[protocol.Resource] {
	return offered[protocol.Resource](s, f, KindResource)
}

// Templates yields resource templates sorted by their text, as Tools does tools.
func (s *Server) Templates(f *Frame) iter.Seq[protocol.ResourceTemplate] {
	return offered[protocol.ResourceTemplate](s, f, KindTemplate)
}

// offered yields the components of a kind that the client of f sees; a nil f
// sees all. T is the type of their definitions.
func offered[T any](s *Server, f *Frame, kind Kind) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, e := range s.offers(f, kind) {
			if !yield(*e.For(f).(*T)) {
				return
			}
		}
	}
}

// offers returns the components of a kind that the client of f sees; a nil f
// sees all.
func (s *Server) offers(f *Frame, kind Kind) []*registry.Entry {
	if f == nil {
		return s.catalog.View(nil, nil).Internal(facts.Private{}).Offered(kind)
	}
	host, prefix, ok := within(f, s)
	switch {
	case !ok:
		return nil
	case host == s:
		return s.view(f).Internal(facts.Private{}).Offered(kind)
	}
	return host.view(f).Internal(facts.Private{}).Through(s.catalog, kind, prefix)
}

// Call calls a tool in place of the client of f, as tools/call of that client would:
// through observers and middleware, with the filter, scopes, checks, time limit and
// questions of the tool. f is the Frame of a handler of s, or of a server that is mounted
// into s, and of no other. In a server that is mounted itself, tool is the name that s
// has, and all that is around the tool in the outermost server counts. The handlers of
// the call find f with Frame.Outer.
//
// args encodes to a JSON object, as the value that a tool returns does; nil is {}. A
// result that is marked as a failure comes with an error that has its text. An error
// without a result is what the client would get as one: return it, which matters for
// ErrInputRequired, as in revision 2026-07-28 the handler runs again when its client has
// answered. A result that is not looked at can be returned as it is, by a function whose
// result is a protocol.Result.
//
// The call is a part of its request: it shares the session, progress and log, and
// becomes no task of its own. Calls may be made at once, and are 8 deep at most. After
// the end of f Call returns the cause.
func (s *Server) Call(f *Frame, tool string, args any) (protocol.Result, error) {
	if err := frame.Internal(facts.Private{}).Check(f, "Call"); err != nil {
		return nil, err
	}
	if f.Err() != nil {
		return nil, context.Cause(f)
	}
	host, prefix, ok := within(f, s)
	if !ok {
		return nil, errors.New("mcp: Call: the request came to another server")
	}
	name, ctx := tool, context.Context(f)
	if host != s {
		if name, ok = host.view(f).Internal(facts.Private{}).NameOf(s.catalog, KindTool, tool, prefix); !ok {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown tool: %s", tool)
		}
	}
	if mountedIn(f) != nil {
		ctx = context.WithValue(f, mountKey{}, nil) // the call begins at the outermost server
	}
	params, err := paramsOf(f, name, args)
	if err != nil {
		return nil, fmt.Errorf("mcp: Call: the arguments of %q: %w", tool, err)
	}
	inner, err := frame.Internal(facts.Private{}).Nested(ctx, f, params)
	if err != nil {
		return nil, err
	}
	result, err := host.dispatch().Within(inner)
	if err != nil {
		return nil, err
	}
	if called, failed := wire.Unwrap(result).(*protocol.CallToolResult); failed && called != nil && called.IsError {
		return result, failureOf(tool, called)
	}
	return result, nil
}

// Emit adds an event to the log of its type, from which clients of all replicas read, and
// to those of the servers that s is mounted into. It waits for the log, and for no
// subscriber. Each type keeps Limits.EventLog bytes, for at most 24 h.
//
// A program that serves no clients can emit as well: it adds the event type, and has the
// Options.Store and the Options.StateKeys of the replicas. After an error that wraps
// scale.ErrUnavailable some logs may have the event: with an ID of its own, it can be
// emitted again.
func (s *Server) Emit(ctx context.Context, o Occurrence) error {
	if err := emit(ctx, s, o); err != nil {
		return fmt.Errorf("mcp: Emit %q: %w", o.Name, err)
	}
	return nil
}

// paramsOf returns the params of a call, with the _meta of the client.
func paramsOf(f *Frame, name string, args any) (protocol.Params, error) {
	p := protocol.Params{Name: name, Meta: frame.Internal(facts.Private{}).Meta(f)}
	raw := append(jsonx.AppendString([]byte(`{"name":`), name), `,"arguments":`...)
	start := len(raw)
	raw, err := jsonx.Append(raw, args)
	if err != nil {
		return p, err
	}
	if text := raw[start:]; string(text) == "null" {
		raw = append(raw[:start], "{}"...)
	} else if text[0] != '{' {
		return p, errors.New("they must encode to an object, as a struct or a map does")
	}
	end := len(raw)
	if p.Meta.Raw != nil {
		raw = append(append(raw, `,"_meta":`...), p.Meta.Raw...)
	}
	p.Raw = append(raw, '}')
	p.Arguments = p.Raw[start:end:end]
	return p, nil
}

// failureOf returns the error of a tool whose result says that it failed.
func failureOf(tool string, r *protocol.CallToolResult) error {
	var texts []string
	for _, item := range r.Content {
		if text, ok := item.(protocol.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if texts == nil {
		return fmt.Errorf("tool %q failed", tool)
	}
	return errors.New(strings.Join(texts, "\n"))
}

// viewed serves a method about components. needs is what the server must once
// have had to know the method; 0 is nothing.
func (s *Server) viewed(needs feature, serve func(f *frame.Frame, view registry.View) (protocol.Result, error)) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if needs != 0 && !s.had(needs) {
			return nil, wire.MethodNotFound(f.Request().Method)
		}
		return serve(f, s.view(f))
	}
}

// lists serves the list of a kind.
func (s *Server) lists(needs feature, kind Kind) frame.Handler {
	return s.viewed(needs, func(f *frame.Frame, view registry.View) (protocol.Result, error) {
		page, err := view.Page(kind, f.Request().Params.Cursor)
		if err != nil {
			return nil, err
		}
		return page, nil
	})
}

// feature is what a server has of components, as far as it is declared to
// clients or costs something. It is a set of the bits below. hasScopes is never
// declared: without it gate looks nothing up.
type feature uint32

const (
	hasResources feature = 1 << iota // or templates
	hasPrompts
	hasCompletions
	hasTasks
	hasSkills
	hasViews
	hasScopes
	hasEvents
)

// featuresOf returns all that entries together have.
func featuresOf(entries []*registry.Entry) (all feature) {
	for _, e := range entries {
		switch e.Definition.(type) {
		case *protocol.Resource, *protocol.ResourceTemplate:
			all |= hasResources
			if e.IsView() {
				all |= hasViews
			}
		case *protocol.Prompt:
			all |= hasPrompts
		case *wire.Skill:
			all |= hasSkills
		case *protocol.EventType:
			all |= hasEvents
		}
		if len(e.Completers) > 0 {
			all |= hasCompletions
		}
		if e.Task {
			all |= hasTasks
		}
		if len(e.Scopes) > 0 {
			all |= hasScopes
		}
	}
	return all
}

// kindsOfLists has the kinds of components of which each method tells that their
// list has changed.
var kindsOfLists = []struct {
	method string
	kinds  []Kind
}{
	{protocol.MethodToolsChanged, []Kind{KindTool}},
	{protocol.MethodResourcesChanged, []Kind{KindResource, KindTemplate}},
	{protocol.MethodPromptsChanged, []Kind{KindPrompt}},
	{wire.MethodEventsChanged, []Kind{KindEvent}},
}

// listsOf returns the methods that tell of changes of the lists that entries are
// in, each once.
func listsOf(entries []*registry.Entry) (methods []string) {
	for _, list := range kindsOfLists {
		if slices.ContainsFunc(entries, func(e *registry.Entry) bool { return slices.Contains(list.kinds, e.Kind()) }) {
			methods = append(methods, list.method)
		}
	}
	return methods
}

// declare notes what kinds of components there are, before a request can find
// them, so that gate checks scopes in time. A kind stays declared: a client
// may list prompts after the last one was removed, and receives an empty
// list. Every change of a Catalog calls it, also that of a session, on any
// goroutine.
func (s *Server) declare(entries []*registry.Entry) { s.has.Or(uint32(featuresOf(entries))) }

// had reports whether the server has, or once had, some of what x says.
func (s *Server) had(x feature) bool { return feature(s.has.Load())&x != 0 }

// gate is the outermost middleware. It refuses what needs scopes that were not
// granted before other middleware may answer, from a cache for one. The methods
// check again: middleware may have turned the request into another. Without
// middleware they are enough.
func (s *Server) gate(next Handler) Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if err := lapsed(f); err != nil {
			return nil, err
		}
		if f.Request().Method != protocol.MethodInitialize {
			if err := s.attach(f); err != nil {
				return nil, err
			}
		}
		if len(s.middleware) > 0 && s.had(hasScopes) {
			if err := f.RequireScopes(scopesFor(f, s.view(f))...); err != nil {
				return nil, err
			}
		}
		return next(f)
	}
}

// attachKey is the key, among the values of a session, of the mark that
// Options.OnSessionAttach has run for it. As with catalogKey, no user's key
// equals it.
type attachKey struct{}

// attachment is the attaching of one copy of a session. turn has a value in it
// while OnSessionAttach runs.
type attachment struct {
	turn chan struct{}
	done atomic.Bool
}

// attach runs Options.OnSessionAttach, unless it has done its work for this copy of
// the session already. Of several requests at once the first runs it, and the
// others wait; if it fails, the next one tries again.
func (s *Server) attach(f *frame.Frame) error {
	x := frame.Internal(facts.Private{}).Session(f)
	if s.opts.OnSessionAttach == nil || x == nil {
		return nil
	}
	a := x.Assigns().GetOrSet(attachKey{}, func() any { return &attachment{turn: make(chan struct{}, 1)} }).(*attachment)
	if a.done.Load() {
		return nil
	}
	select {
	case a.turn <- struct{}{}:
	case <-f.Done():
		return context.Cause(f)
	}
	defer func() { <-a.turn }()
	if a.done.Load() {
		return nil
	}
	err := s.opts.OnSessionAttach(f)
	if err == nil {
		a.done.Store(true)
	}
	return err
}

// expired returns an error if the token of a connection has expired. Each
// HTTP request has its own token, which was checked with it.
func lapsed(f *frame.Frame) error {
	if via := f.Transport(); via == frame.HTTP || via == frame.SSE {
		return nil
	}
	if id := f.Identity(); id == nil || id.Expiry.IsZero() || time.Now().Before(id.Expiry) {
		return nil
	}
	return protocol.Errorf(protocol.CodeUnauthorized, "the access token of this connection has ended; connect again with a new one")
}

// scopesFor returns the scopes that the request of f needs for what it names,
// none for methods that name no component and for what is not there: the method
// itself answers that. It is gate's, and only looks the component up.
func scopesFor(f *frame.Frame, view registry.View) []string {
	params := &f.Request().Params
	var e *registry.Entry
	switch f.Request().Method {
	case protocol.MethodToolsCall:
		e, _ = view.Get(KindTool, params.Name)
	case protocol.MethodPromptsGet:
		e, _ = view.Get(KindPrompt, params.Name)
	case wire.MethodEventsPoll, wire.MethodEventsStream, wire.MethodEventsSubscribe:
		e, _ = view.Get(KindEvent, params.Name)
	case protocol.MethodResourcesRead, protocol.MethodSubscribe:
		return scopesOf(view, params.Name)
	case wire.MethodSkillsGet:
		e, _ = view.Internal(facts.Private{}).Skill(params.Name)
	case wire.MethodDirectoryRead:
		e, _ = view.Internal(facts.Private{}).Directory(params.Name)
	case protocol.MethodComplete:
		if about, fault := wire.ParseCompleteParams(params.Raw); fault == nil && (about.Ref.Type == wire.RefPrompt || len(about.Ref.URI) <= wire.MaxURI) {
			e, _ = completed(view, about)
		}
	}
	if e == nil {
		return nil
	}
	return e.Scopes
}

// scopesOf returns the scopes that the resource at uri needs. A URI beyond
// wire.MaxURI needs none and is not compared with templates: its method refuses
// it.
func scopesOf(view registry.View, uri string) []string {
	if len(uri) > wire.MaxURI {
		return nil
	}
	return view.Internal(facts.Private{}).Scopes(uri)
}

// initialize answers with what the server is. The session is there already,
// with the revision that was negotiated.
func (s *Server) initialize(f *frame.Frame) (protocol.Result, error) {
	rev := f.Revision()
	if start := s.opts.OnSessionStart; start != nil {
		if err := start(f); err != nil {
			return nil, err
		}
	}
	if err := s.attach(f); err != nil {
		return nil, err
	}
	d := s.discovery(f)
	return protocol.JSONResult{Value: wire.InitializeResult{
		ProtocolVersion: rev.String(),
		Capabilities:    d.Capabilities,
		ServerInfo:      d.Info,
		Instructions:    d.Instructions,
	}}, nil
}

// discover serves server/discover (server/discover of 2026-07-28).
func (s *Server) discover(f *frame.Frame) (protocol.Result, error) {
	d := s.discovery(f)
	ttl, scope := wire.CacheMembers(s.discoverCache())
	return s.identified(d, protocol.JSONResult{Value: wire.DiscoverResult{
		SupportedVersions: wire.RevisionNames(s.opts.Revisions),
		Capabilities:      d.Capabilities,
		Instructions:      d.Instructions,
		TTLMs:             ttl,
		CacheScope:        scope,
	}}), nil
}

// capabilities returns the capabilities of the server in rev.
func (s *Server) capabilities(rev protocol.Revision) protocol.ServerCapabilities {
	c := protocol.ServerCapabilities{
		Tools: &protocol.ListCapability{ListChanged: true},
	}
	if s.had(hasResources) {
		c.Resources = &protocol.ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if s.had(hasPrompts) {
		c.Prompts = &protocol.ListCapability{ListChanged: true}
	}
	if s.had(hasCompletions) {
		c.Completions = &struct{}{}
	}
	if s.had(hasEvents) {
		c.Events = &struct{}{}
	}
	c.Extensions = s.extensions()
	c.Logging = &struct{}{}
	return wire.ServerCapabilitiesFor(c, rev)
}

// extensions returns those that the server declares, with their settings.
func (s *Server) extensions() map[string]any {
	all := s.catalog.Internal(facts.Private{}).Extensions()
	if all == nil && s.had(hasTasks|hasSkills|hasViews|hasEvents) {
		all = map[string]any{}
	}
	if s.had(hasTasks) {
		all[wire.TasksExtension] = struct{}{}
	}
	if s.had(hasSkills) {
		all[wire.SkillsExtension] = skillSettings{DirectoryRead: true}
	}
	if s.had(hasEvents) {
		all[wire.EventsExtension] = eventSettings{ListChanged: true}
	}
	if s.had(hasViews) && all[wire.AppsExtension] == nil { // who has views by hand may have declared it
		all[wire.AppsExtension] = struct{}{}
	}
	return all
}

// discovery returns what the server says of itself to the client of f, in the
// form of the request's revision.
func (s *Server) discovery(f *frame.Frame) Discovery {
	d := Discovery{Info: s.info, Capabilities: s.capabilities(f.Revision()), Instructions: s.opts.Instructions}
	if s.opts.Discover != nil {
		d = s.discoveryFor(f, d)
	}
	d.Info = wire.ImplementationFor(d.Info, f.Revision())
	return d
}

// discoveryFor returns what Discover makes of d. It is apart, so that a server
// without Discover keeps d on the stack.
func (s *Server) discoveryFor(f *frame.Frame, d Discovery) Discovery {
	s.opts.Discover(f, &d)
	d.Info.Name = cmp.Or(d.Info.Name, s.info.Name)
	d.Info.Version = cmp.Or(d.Info.Version, s.info.Version)
	d.Capabilities = wire.ServerCapabilitiesFor(d.Capabilities, f.Revision())
	return d
}

// discoverCache returns who may cache the result of server/discover: only the
// client, if it was made for that client.
func (s *Server) discoverCache() protocol.Cache {
	cache := s.opts.listCache()
	if s.opts.Discover != nil {
		cache.Public = false
	}
	return cache
}

// identified makes a result name the server as Discover does.
func (s *Server) identified(d Discovery, result protocol.Result) protocol.Result {
	if s.opts.Discover == nil {
		return result
	}
	return &identifiedResult{result, metaOf(d.Info)}
}

// identifiedResult is a result whose _meta names the server in another way than
// the dispatcher does, to which the name is known once for all requests.
type identifiedResult struct {
	protocol.Result
	meta []byte
}

// Unwrap implements wire.Wrapper.
func (r *identifiedResult) Unwrap() protocol.Result { return r.Result }

// Append implements wire.Result.
func (r *identifiedResult) Append(dst []byte, to wire.To) ([]byte, error) {
	to.Meta = r.meta
	return wire.AppendResult(dst, r.Result, to)
}

// metaOf returns the member of _meta that names the server.
func metaOf(info Info) []byte {
	text, err := json.Marshal(info)
	if err != nil {
		panic("mcp: Info does not encode: " + err.Error()) // it is plain data
	}
	return append([]byte(`"`+facts.MetaServerInfo+`":`), text...)
}

// setLevel serves logging/setLevel (server/utilities/logging of the legacy
// revisions).
func setLevel(f *frame.Frame) (protocol.Result, error) {
	var params struct {
		Level string `json:"level"`
	}
	if err := jsonx.Unmarshal(f.Request().Params.Raw, &params); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.level must be a string: %w", err)
	}
	var level protocol.Level
	if err := level.UnmarshalText([]byte(params.Level)); err != nil {
		return nil, err
	}
	if x := frame.Internal(facts.Private{}).Session(f); x != nil {
		x.SetLogLevel(level)
	}
	return wire.EmptyResult{}, nil
}
