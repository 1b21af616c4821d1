package mcp

import (
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/tasks"
)

// methods is the table of everything that clients may ask for.
func (s *Server) methods() []dispatch.Method {
	table := []dispatch.Method{
		{Name: protocol.MethodInitialize, Era: dispatch.Legacy, Params: true, Serve: s.initialize},
		{Name: protocol.MethodInitialized, Era: dispatch.Legacy, Serve: ignore},
		{Name: protocol.MethodPing, Era: dispatch.Legacy, Serve: ignore},
		{Name: protocol.MethodDiscover, Era: dispatch.Modern, Serve: s.discover},
		{Name: protocol.MethodToolsList, Era: dispatch.Both, Serve: s.listTools},
		{Name: protocol.MethodToolsCall, Era: dispatch.Both, Params: true, Serve: s.callTool},
		{Name: protocol.MethodResourcesList, Era: dispatch.Both, Serve: s.listResources},
		{Name: protocol.MethodResourceTemplates, Era: dispatch.Both, Serve: s.listTemplates},
		{Name: protocol.MethodResourcesRead, Era: dispatch.Both, Params: true, Serve: s.readResource},
		{Name: protocol.MethodPromptsList, Era: dispatch.Both, Serve: s.listPrompts},
		{Name: protocol.MethodPromptsGet, Era: dispatch.Both, Params: true, Serve: s.getPrompt},
		{Name: protocol.MethodComplete, Era: dispatch.Both, Params: true, Serve: s.complete},
		{Name: protocol.MethodListen, Era: dispatch.Modern, Params: true, Serve: s.listen},
		{Name: protocol.MethodSubscribe, Era: dispatch.Legacy, Params: true, Serve: s.subscribe},
		{Name: protocol.MethodUnsubscribe, Era: dispatch.Legacy, Params: true, Serve: s.unsubscribe},
		{Name: protocol.MethodSetLevel, Era: dispatch.Legacy, Params: true, Serve: s.setLevel},
		// The transport has cancelled the request before these arrive here.
		{Name: protocol.MethodCancelled, Era: dispatch.Both, Serve: ignore},
		{Name: protocol.MethodProgress, Era: dispatch.Both, Serve: ignore},
	}
	table = append(table, s.taskMethods()...)
	return s.customize(table)
}

// ignore serves methods that need no more than to be known.
func ignore(*frame.Frame) (protocol.Result, error) { return protocol.EmptyResult{}, nil }

// initialize answers with what the server is. The session is there already,
// with the revision that was negotiated.
func (s *Server) initialize(f *frame.Frame) (protocol.Result, error) {
	rev := f.Revision()
	if start := s.opts.OnSessionStart; start != nil {
		if err := start(f); err != nil {
			return nil, err
		}
	}
	d := s.discovery(f)
	return protocol.JSONResult{Value: protocol.InitializeResult{
		ProtocolVersion: rev.String(),
		Capabilities:    d.Capabilities,
		ServerInfo:      d.Info,
		Instructions:    d.Instructions,
	}}, nil
}

// discover serves server/discover (server/discover of 2026-07-28).
func (s *Server) discover(f *frame.Frame) (protocol.Result, error) {
	d := s.discovery(f)
	return s.identified(d, protocol.JSONResult{Value: protocol.DiscoverResult{
		SupportedVersions: protocol.RevisionNames(s.opts.Revisions),
		Capabilities:      d.Capabilities,
		Instructions:      d.Instructions,
		Cache:             s.discoverCache(),
	}}), nil
}

// capabilities tells what the server offers in rev.
func (s *Server) capabilities(rev protocol.Revision) protocol.ServerCapabilities {
	c := protocol.ServerCapabilities{
		Tools: &protocol.ListCapability{ListChanged: true},
	}
	if s.offersResources.Load() {
		c.Resources = &protocol.ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if s.offersPrompts.Load() {
		c.Prompts = &protocol.ListCapability{ListChanged: true}
	}
	if s.offersCompletions.Load() {
		c.Completions = &struct{}{}
	}
	if s.hasTasks.Load() {
		c.Extensions = map[string]any{tasks.Extension: struct{}{}}
	}
	c.Logging = &struct{}{}
	return c.For(rev)
}

// serverMeta returns the member that names the server in the _meta of modern
// results.
func (s *Server) serverMeta() []byte {
	return metaOf(s.info)
}

func (s *Server) listTools(f *frame.Frame) (protocol.Result, error) {
	return page(s, KindTool, s.toolsFor(f), f)
}

func (s *Server) callTool(f *frame.Frame) (protocol.Result, error) {
	params := &f.Request().Params
	if params.Name == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the tool to call")
	}
	tool, ok := s.toolsFor(f).Get(params.Name)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "Unknown tool: %s", params.Name)
	}
	if err := f.NeedScopes(tool.Scopes...); err != nil {
		return nil, err
	}
	return tool.Call(f)
}

// setLevel serves logging/setLevel (server/utilities/logging of the legacy
// revisions).
func (s *Server) setLevel(f *frame.Frame) (protocol.Result, error) {
	var params struct {
		Level string `json:"level"`
	}
	if err := json.Unmarshal(f.Request().Params.Raw, &params); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.level must be a string: %w", err)
	}
	level, fault := protocol.ParseLevel(params.Level)
	if fault != nil {
		return nil, fault
	}
	if x := f.Session(); x != nil {
		x.SetLogLevel(level)
	}
	return protocol.EmptyResult{}, nil
}
