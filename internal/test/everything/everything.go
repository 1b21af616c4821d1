// Package everything is the everything-server that the official conformance suite
// expects: the tools, names and texts here are those of the suite's scenarios.
package everything

import (
	"embed"
	"io/fs"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/skill"
)

//go:embed skills
var skillFiles embed.FS

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
	skills, err := fs.Sub(skillFiles, "skills")
	if err != nil {
		panic("everything: " + err.Error()) // the path is a constant
	}
	s.MustAdd(skill.Directory(skills))
	return s
}
