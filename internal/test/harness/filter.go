package harness

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
)

type IDIn struct {
	ID string `json:"id" validate:"oneof=one two"`
}

// Guarded returns a server on which half of everything is for admins.
func Guarded(t testing.TB, opts mcp.Options, only mcp.Option) *mcp.Server {
	t.Helper()
	s := Bare(opts)
	byID := func(_ *mcp.Frame, in IDIn) (string, error) { return in.ID, nil }
	for _, who := range []struct {
		name string
		opts mcp.Bundle
	}{{"open", nil}, {"shut", mcp.Bundle{only}}} {
		s.MustAdd(
			mcp.Tool(who.name, Text, who.opts),
			mcp.Prompt(who.name, byID, who.opts),
			mcp.Resource(who.name+":x", ReadText, who.opts),
			mcp.Template(who.name+":{id}/y", byID, who.opts),
		)
	}
	return s
}

var ListMethods = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

// Calls are requests for components that are called NAME.
var Calls = []struct{ Method, Params string }{
	{"tools/call", `{"name":"NAME"}`},
	{"prompts/get", `{"name":"NAME","arguments":{"id":"one"}}`},
	{"resources/read", `{"uri":"NAME:x"}`},
	{"resources/read", `{"uri":"NAME:one/y"}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"NAME"},"argument":{"name":"id","value":"o"}}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"NAME","uri":"` + strings.Repeat("x", 9000) + `"},"argument":{"name":"id","value":"o"}}`},
	{"completion/complete", `{"ref":{"type":"ref/resource","uri":"NAME:{id}/y"},"argument":{"name":"id","value":"o"}}`},
}
