package shell

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// fetch asks for a list, all pages of it.
func fetch[T any](s *Shell, ctx context.Context, list func(context.Context, ...client.CallOption) iter.Seq2[T, error]) (items []T, err error) {
	err = s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error {
		items, err = collect(list(ctx))
		return err
	})
	return items, err
}

func collect[T any](list iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// lists are what completion knows of the server. They are asked for when they
// are needed first, and again after a change.
type lists struct {
	mu        sync.Mutex
	tools     []protocol.Tool
	prompts   []protocol.Prompt
	resources []protocol.Resource
	templates []protocol.ResourceTemplate
	known     map[string]bool // by the method that lists them
}

func (l *lists) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// changed takes the notification that a list is another.
func (l *lists) changed(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch method {
	case protocol.MethodToolsChanged:
		delete(l.known, protocol.MethodToolsList)
	case protocol.MethodPromptsChanged:
		delete(l.known, protocol.MethodPromptsList)
	case protocol.MethodResourcesChanged:
		delete(l.known, protocol.MethodResourcesList)
		delete(l.known, protocol.MethodResourceTemplates)
	}
}

// completionTime is how long Tab waits for the server.
const completionTime = 2 * time.Second

// need asks for a list unless it is known. A server that does not answer in
// time, or has no such list, has an empty one.
func need[T any](s *Shell, method string, into *[]T, list func(context.Context, ...client.CallOption) iter.Seq2[T, error]) []T {
	l := &s.lists
	l.mu.Lock()
	if l.known[method] {
		defer l.mu.Unlock()
		return *into
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	items, err := collect(list(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return *into
	}
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[method] = true
	*into = items
	return items
}

func (s *Shell) knownTools() []protocol.Tool {
	if s.client == nil {
		return nil
	}
	return need(s, protocol.MethodToolsList, &s.lists.tools, s.client.Tools)
}

func (s *Shell) knownPrompts() []protocol.Prompt {
	if s.client == nil {
		return nil
	}
	return need(s, protocol.MethodPromptsList, &s.lists.prompts, s.client.Prompts)
}

func (s *Shell) toolNames() []string {
	var names []string
	for _, t := range s.knownTools() {
		names = append(names, t.Name)
	}
	return names
}

func (s *Shell) promptNames() []string {
	var names []string
	for _, p := range s.knownPrompts() {
		names = append(names, p.Name)
	}
	return names
}

// uris are those of resources, and templates as they are written.
func (s *Shell) uris() []string {
	if s.client == nil {
		return nil
	}
	var list []string
	for _, r := range need(s, protocol.MethodResourcesList, &s.lists.resources, s.client.Resources) {
		list = append(list, r.URI)
	}
	return append(list, s.templates()...)
}

func (s *Shell) templates() []string {
	if s.client == nil {
		return nil
	}
	var list []string
	for _, t := range need(s, protocol.MethodResourceTemplates, &s.lists.templates, s.client.Templates) {
		list = append(list, t.URITemplate)
	}
	return list
}
