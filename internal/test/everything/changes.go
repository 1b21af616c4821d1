package everything

import (
	"fmt"
	"sync/atomic"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// changeTools change what the server offers, for clients that listen. Each call
// adds a component and takes it away again, so that the lists stay as they were;
// what the changes of one call amount to may reach a client as one message.
func changeTools(s *mcp.Server) []mcp.Component {
	var calls atomic.Int64 // each with a name of its own: calls may overlap
	return []mcp.Component{
		mcp.Tool("test_trigger_tool_change", func(*mcp.Frame, none) (string, error) {
			name := fmt.Sprintf("temporary_tool_%d", calls.Add(1))
			err := s.Add(mcp.Tool(name, func(*mcp.Frame, none) (string, error) { return name, nil }, mcp.Doc("Is gone at once")))
			s.Remove(mcp.KindTool, name)
			return "The list of tools has changed", err
		}, mcp.Doc("Changes the list of tools")),
		mcp.Tool("test_trigger_prompt_change", func(*mcp.Frame, none) (string, error) {
			name := fmt.Sprintf("temporary_prompt_%d", calls.Add(1))
			err := s.Add(mcp.Prompt(name, func(*mcp.Frame, none) (string, error) { return name, nil }, mcp.Doc("Is gone at once")))
			s.Remove(mcp.KindPrompt, name)
			return "The list of prompts has changed", err
		}, mcp.Doc("Changes the list of prompts")),
		mcp.Tool("test_notify", func(_ *mcp.Frame, in NotifyIn) (string, error) {
			return "told", s.Notify(in.Session, protocol.MethodLog, map[string]any{"level": protocol.LevelInfo, "data": in.Text})
		}, mcp.Doc("Tells a session a text")),
		mcp.Tool("test_touch", func(_ *mcp.Frame, in TouchIn) (string, error) {
			s.ResourceUpdated(in.URI)
			return "touched", nil
		}, mcp.Doc("Tells who has subscribed to a resource that it has changed")),
	}
}

// NotifyIn has the arguments of test_notify, which, like test_touch, is for tests
// with several replicas; the suite does not know them.
type NotifyIn struct {
	Session string `json:"session" jsonschema_description:"id of the session that is told"`
	Text    string `json:"text" jsonschema_description:"what it is told"`
}

// TouchIn has the argument of test_touch.
type TouchIn struct {
	URI string `json:"uri" jsonschema_description:"which resource has changed"`
}
