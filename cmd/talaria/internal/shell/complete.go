package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/internal/wire"
)

// complete is the editor's completer.
func (s *Shell) complete(line string) (head string, candidates []string) {
	list := shellwords.Partial(line)
	last := list[len(list)-1]
	head = line[:last.Start]
	var found []string
	if len(list) == 1 {
		found = matching(names(), last.Text)
	} else if c, ok := find(list[0].Text); ok && c.complete != nil {
		found = matching(c.complete(s, shellwords.Texts(list[1:])), last.Text)
	}
	for _, text := range found {
		if quoted := shellwords.Quote(text); strings.HasSuffix(text, "=") {
			candidates = append(candidates, quoted)
		} else {
			candidates = append(candidates, quoted+" ")
		}
	}
	return head, candidates
}

// matching returns those that go on from what was typed.
func matching(list []string, typed string) []string {
	var out []string
	for _, text := range list {
		if strings.HasPrefix(text, typed) {
			out = append(out, text)
		}
	}
	return out
}

func completeTool(s *Shell, typed []string) []string {
	if len(typed) > 1 {
		return nil
	}
	return s.toolNames()
}

func completeCall(s *Shell, typed []string) []string {
	if len(typed) == 1 {
		return s.toolNames()
	}
	for _, tool := range s.knownTools() {
		if tool.Name != typed[0] {
			continue
		}
		object, err := arguments.ReadObject(tool.InputSchema)
		if err != nil {
			return nil
		}
		return append(completeFields(object, typed[1:], nil), "--json")
	}
	return nil
}

// completeFields completes name= and, after it, the value. ask may know more
// values than the schema.
func completeFields(object *arguments.Object, typed []string, ask func(field, value string, before map[string]string) []string) []string {
	last := typed[len(typed)-1]
	before := map[string]string{}
	for _, text := range typed[:len(typed)-1] {
		name, value, _ := strings.Cut(text, "=")
		before[strings.TrimSuffix(name, ":")] = value
	}
	var list []string
	if name, value, ok := strings.Cut(last, "="); ok {
		f, known := object.Field(name)
		if !known {
			return nil
		}
		values := form.Values(f, value)
		if len(values) == 0 && ask != nil {
			for _, v := range ask(name, value, before) {
				values = append(values, arguments.Typed(v))
			}
		}
		for _, v := range values {
			list = append(list, name+"="+v)
		}
		return list
	}
	for _, f := range object.Fields {
		if _, given := before[f.Name]; f.Nameable() && (!given || slices.Contains(f.Types, "array")) {
			list = append(list, f.Name+"=")
		}
	}
	return list
}

func completePrompt(s *Shell, typed []string) []string {
	if len(typed) == 1 {
		return s.promptNames()
	}
	for _, p := range s.knownPrompts() {
		if p.Name == typed[0] {
			return completeFields(render.PromptFields(p), typed[1:], func(field, value string, before map[string]string) []string {
				return s.suggest(client.Completion{Prompt: p.Name, Argument: field, Value: value, Context: before})
			})
		}
	}
	return nil
}

// suggest asks the server for values, if it knows any.
func (s *Shell) suggest(q client.Completion) []string {
	have := s.client.Server().Capabilities
	if have.Completions == nil && wire.CompletionsCapability.In(s.client.Revision()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	result, err := s.client.Complete(ctx, q)
	if err != nil {
		return nil
	}
	return result.Values
}

func completeURI(s *Shell, typed []string) []string {
	if len(typed) > 1 {
		return nil
	}
	return s.uris()
}

func completeReference(s *Shell, typed []string) []string {
	switch len(typed) {
	case 1:
		return append(s.promptNames(), s.templates()...)
	case 2:
		for _, p := range s.knownPrompts() {
			if p.Name == typed[0] {
				return render.PromptFields(p).Names()
			}
		}
	}
	return nil
}

func completeRoots(s *Shell, typed []string) []string {
	switch {
	case len(typed) == 1:
		return []string{"add", "remove", "clear"}
	case len(typed) == 2 && typed[0] == "remove" && s.client != nil:
		var list []string
		for _, root := range s.client.Roots() {
			list = append(list, root.URI)
		}
		return list
	}
	return nil
}
