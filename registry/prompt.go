package registry

import (
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Prompt is a prompt that can be listed and got.
type Prompt struct {
	Definition protocol.Prompt
	// Get makes the messages from the arguments of the frame's request.
	Get func(f *frame.Frame) (protocol.Result, error)
	// Completers are by argument.
	Completers map[string]Completer
	// Visible is as that of a Tool.
	Visible func(f *frame.Frame) bool
	// Scopes are as those of a Tool.
	Scopes []string
}

// Restricted implements Restricted.
func (p *Prompt) Restricted() bool { return p.Visible != nil }

// VisibleTo implements Restricted.
func (p *Prompt) VisibleTo(f *frame.Frame) bool { return p.Visible == nil || p.Visible(f) }

// Needs implements Restricted.
func (p *Prompt) Needs() []string { return p.Scopes }

// Key implements Entry.
func (p *Prompt) Key() string { return p.Definition.Name }

// Define implements Entry.
func (p *Prompt) Define(rev protocol.Revision) (json.RawMessage, error) {
	return encode(p.Definition.For(rev))
}

// Completer finds values for an argument; value is what was typed, arguments
// are the others that are known.
type Completer func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error)
