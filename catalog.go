package mcp

import (
	"slices"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// feature is what a server has of components, as far as it is declared to
// clients or costs something.
type feature uint32

const (
	hasResources feature = 1 << iota // or templates
	hasPrompts
	hasCompletions
	hasTasks
	hasScopes
)

func featuresOf(entries []*registry.Entry) (all feature) {
	for _, e := range entries {
		switch e.Kind() {
		case KindResource, KindTemplate:
			all |= hasResources
		case KindPrompt:
			all |= hasPrompts
		}
		if len(e.Completers) > 0 {
			all |= hasCompletions
		}
		if e.Task {
			all |= hasTasks
		}
		if len(e.Scopes) > 0 {
			all |= hasScopes
		}
	}
	return all
}

// listsOf returns the methods that tell of changes of the lists that entries are
// in, each once.
func listsOf(entries []*registry.Entry) (methods []string) {
	for _, list := range []struct {
		method string
		kinds  []Kind
	}{
		{protocol.MethodToolsChanged, []Kind{KindTool}},
		{protocol.MethodResourcesChanged, []Kind{KindResource, KindTemplate}},
		{protocol.MethodPromptsChanged, []Kind{KindPrompt}},
	} {
		if slices.ContainsFunc(entries, func(e *registry.Entry) bool { return slices.Contains(list.kinds, e.Kind()) }) {
			methods = append(methods, list.method)
		}
	}
	return methods
}

type catalogKey struct{} // of a session's assigns

// catalogOf returns what a session has of its own; nil if that is nothing, as
// modern requests, which have no session, have nothing.
func catalogOf(x frame.Session) *registry.Catalog {
	if x != nil {
		if own, ok := x.Assigns().Get(catalogKey{}); ok {
			return own.(*registry.Catalog)
		}
	}
	return nil
}
