package shell

import (
	"context"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

// prompts are the commands for prompts.
type prompts struct {
	*link
	person
}

func (p prompts) get(ctx context.Context, rest string) error {
	w, err := wordsOf(rest)
	if err == nil && w.name == "" {
		w.name, err = p.ask("prompt", p.lists.promptNames)
	}
	if err != nil {
		return err
	}
	list, err := fetch(ctx, p.link, (*client.Client).Prompts)
	if err != nil {
		return err
	}
	raw, err := p.fill(render.PromptFields(list, w.name), w.typed)
	if err != nil {
		return err
	}
	given, err := arguments.Texts(raw)
	if err != nil {
		return err
	}
	result, err := terminal.Get(ctx, p.Terminal, func(ctx context.Context, call ...client.CallOption) (*protocol.GetPromptResult, error) {
		return p.client.GetPrompt(ctx, w.name, given, call...)
	})
	if err != nil {
		return err
	}
	return p.Render.Prompt(w.name, result)
}

// complete completes what follows get_prompt.
func (p prompts) complete(typed []string) []string {
	if len(typed) == 1 {
		return p.lists.promptNames()
	}
	return completeFields(p.lists.promptFields(typed[0]), typed[1:], func(field, value string, before map[string]string) []string {
		return p.suggest(client.Completion{Prompt: typed[0], Argument: field, Value: value, Context: before})
	})
}

// suggest asks the server for values, if it knows any.
func (p prompts) suggest(q client.Completion) []string {
	have := p.client.Server().Capabilities
	if have.Completions == nil && p.client.Revision().Has(protocol.FeatureCompletionsCapability) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	result, err := p.client.Complete(ctx, q)
	if err != nil {
		return nil
	}
	return result.Values
}
