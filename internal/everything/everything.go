// Package everything is the everything-server that the official conformance suite
// expects: the tools, names and texts here are those of the suite's scenarios.
package everything

import "github.com/talaria-go/mcp"

// NewServer returns a server with everything that the suite asks for. It completes
// the options.
func NewServer(opts mcp.Options) *mcp.Server {
	opts.HTTP.Polling = true
	s := mcp.NewServer(mcp.Info{Name: "talaria-conformance", Version: "1.0.0"}, &opts)
	s.MustAdd(contentTools()...)
	s.MustAdd(behaviourTools()...)
	s.MustAdd(askingTools()...)
	s.MustAdd(askingPrompts()...)
	s.MustAdd(taskTools()...)
	s.MustAdd(schemaTools()...)
	s.MustAdd(resources()...)
	s.MustAdd(prompts()...)
	s.MustAdd(changeTools(s)...)
	return s
}
