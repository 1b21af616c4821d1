package everything

import (
	"fmt"
	"sync/atomic"

	"github.com/talaria-go/mcp"
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
	}
}
