package terminal

import (
	"context"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/protocol"
)

// question is what a server asks, and who waits for the answer.
type question struct {
	ctx  context.Context
	ask  func(asker form.Asker) error
	done chan error // has room for one
}

// refusals counts the questions in a row that a person has cancelled.
type refusals int

// mostRefusals is how many of them say that the person wants no more.
const mostRefusals = 3

func (r refusals) enough() bool { return r >= mostRefusals }

// heedful is an Asker that tells whether the person has cancelled.
type heedful struct {
	form.Asker
	cancelled bool
}

// Ask implements form.Asker.
func (h *heedful) Ask(prompt string, complete func(string) []string) (string, error) {
	line, err := h.Asker.Ask(prompt, complete)
	h.cancelled = errors.Is(err, form.ErrCancel)
	return line, err
}

// errNoSample is what a server gets whose request to a model is declined.
var errNoSample = &protocol.Error{Code: -1, Message: "the user rejected the sampling request"}

func askModel(asker form.Asker, params *protocol.SampleParams) (string, error) {
	asker.Say("the server asks a model (Ctrl-C refuses):")
	if params.SystemPrompt != "" {
		asker.Say("  system: " + params.SystemPrompt)
	}
	for _, m := range params.Messages {
		for _, item := range m.Content {
			text := fmt.Sprintf("(%T)", item)
			if t, ok := item.(protocol.TextContent); ok {
				text = t.Text
			}
			asker.Say("  " + console.Line(string(m.Role)) + ": " + text)
		}
	}
	answer, err := asker.Ask("assistant: ", nil)
	if errors.Is(err, form.ErrCancel) || errors.Is(err, form.ErrDecline) {
		return "", errNoSample
	}
	return answer, err
}
