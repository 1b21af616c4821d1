package shell

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

// lists are what completion knows of the server.
type lists struct {
	client    *client.Client // nil is not a server, and empty lists
	tools     list[protocol.Tool]
	prompts   list[protocol.Prompt]
	resources list[protocol.Resource]
	templates list[protocol.ResourceTemplate]
}

// of makes them those of another server.
func (l *lists) of(c *client.Client) {
	l.client = c
	for _, method := range []string{protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged} {
		l.changed(method)
	}
}

// changed handles the notification that a list has changed.
func (l *lists) changed(method string) {
	switch method {
	case protocol.MethodToolsChanged:
		l.tools.drop()
	case protocol.MethodPromptsChanged:
		l.prompts.drop()
	case protocol.MethodResourcesChanged:
		l.resources.drop()
		l.templates.drop()
	}
}

func (l *lists) toolNames() []string {
	return texts(l.tools.get(l.client, (*client.Client).Tools), func(t protocol.Tool) string { return t.Name })
}

func (l *lists) promptNames() []string {
	return texts(l.prompts.get(l.client, (*client.Client).Prompts), func(p protocol.Prompt) string { return p.Name })
}

func (l *lists) promptFields(name string) *arguments.Object {
	return render.PromptFields(l.prompts.get(l.client, (*client.Client).Prompts), name)
}

// uris are those of resources, and templates as they are written.
func (l *lists) uris() []string {
	return append(texts(l.resources.get(l.client, (*client.Client).Resources), func(r protocol.Resource) string { return r.URI }), l.uriTemplates()...)
}

func (l *lists) uriTemplates() []string {
	return texts(l.templates.get(l.client, (*client.Client).Templates), func(t protocol.ResourceTemplate) string { return t.URITemplate })
}

func texts[T any](items []T, text func(T) string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = text(item)
	}
	return out
}

// asking is a method of the client that asks for a list.
type asking[T any] = func(*client.Client, context.Context, ...client.CallOption) iter.Seq2[T, error]

// list is one of the lists of a server. It is asked for when it is needed first,
// and again after a change.
type list[T any] struct {
	mu    sync.Mutex
	items []T
	known bool
}

func (l *list[T]) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// completionTime is how long Tab waits for the server.
const completionTime = 2 * time.Second

// get asks for the list unless it is known. If a server does not answer in time,
// it is what it was.
func (l *list[T]) get(c *client.Client, ask asking[T]) []T {
	if c == nil {
		return nil
	}
	l.mu.Lock()
	items, known := l.items, l.known
	l.mu.Unlock()
	if known {
		return items
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	fresh, err := terminal.All(ask(c, ctx))
	if err != nil {
		return items
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items, l.known = fresh, true
	return fresh
}
