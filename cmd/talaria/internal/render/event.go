package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Event says on one line what a notification tells.
func Event(e client.Notification) string {
	var params struct {
		URI string `json:"uri"`
	}
	_ = jsonx.Unmarshal(e.Params, &params) // other methods have other params
	switch e.Method {
	case protocol.MethodResourceUpdated:
		return "resource changed: " + console.Line(params.URI)
	case protocol.MethodToolsChanged:
		return "the list of tools has changed"
	case protocol.MethodPromptsChanged:
		return "the list of prompts has changed"
	case protocol.MethodResourcesChanged:
		return "the list of resources has changed"
	case wire.MethodEventsChanged:
		return "the list of event types has changed"
	}
	return console.Line(e.Method) + " " + console.Line(string(e.Params))
}

// Server names a server.
func Server(info protocol.Implementation) string {
	name := console.Line(info.Name)
	if name == "" {
		name = "a server without a name"
	}
	if title := console.Line(info.Title); title != "" && title != name {
		name = fmt.Sprintf("%s (%s)", title, name)
	}
	if version := console.Line(info.Version); version != "" {
		name += " " + version
	}
	return name
}

// Capabilities names what a server declares, sorted.
func Capabilities(have protocol.ServerCapabilities) []string {
	text, err := json.Marshal(have)
	var members map[string]json.RawMessage
	if err != nil || jsonx.Unmarshal(text, &members) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(members))
}
