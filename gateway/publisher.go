package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/uritemplate"
)

// completer is one of registry.Entry.Completers.
type completer = func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error)

// known is something that a connection of an upstream lists: what is the same for all
// callers.
type known struct {
	arguments []string // of a prompt, of all callers
	plain     *item    // where one connection serves all
	entry     *registry.Entry
}

// covers reports whether the entry of k serves an item, too.
func (k *known) covers(it *item) bool {
	for _, name := range it.arguments {
		if !slices.Contains(k.arguments, name) {
			return false
		}
	}
	return k.plain == nil || k.plain.sum == it.sum
}

// with returns what covers an item, too; k may be nil.
func (k *known) with(it *item) *known {
	next := &known{arguments: it.arguments}
	if k != nil {
		next.arguments = slices.Compact(slices.Sorted(slices.Values(slices.Concat(k.arguments, it.arguments))))
	}
	return next
}

// published is an entry in the catalog of the server, and whose it is.
type published struct {
	*registry.Entry
	upstream *upstream
}

// publisher keeps the names of all upstreams in the catalog of the server. mu serialises
// its work; the locks of the Gateway and of upstreams are taken within it.
type publisher struct {
	gateway *Gateway

	mu   sync.Mutex
	here map[place]published
	left map[*upstream][]string // what is left out, with the reason
}

// publish brings the catalog of the server up to date. The entries of fresh are replaced,
// so that clients are notified.
func (p *publisher) publish(fresh map[*upstream]map[place]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	catalog := p.gateway.host.Catalog.Internal(facts.Private{})
	for range 3 { // a component of the server may come at the same time
		want, left := p.want(fresh)
		var gone, come []*registry.Entry
		for at, e := range p.here {
			if want[at].Entry != e.Entry {
				gone = append(gone, e.Entry)
			}
		}
		for at, e := range want {
			if p.here[at].Entry != e.Entry {
				come = append(come, e.Entry)
			}
		}
		if err := catalog.Replace(gone, come); err != nil {
			safely.Log(p.gateway.log.Warn().Err(err), "components of upstreams were not published")
			continue
		}
		p.here = want
		for u, notes := range left {
			for _, note := range notes {
				if !slices.Contains(p.left[u], note) {
					safely.Log(p.gateway.log.Warn().Str("server", u.name).Str("reason", note), "something of an upstream is left out")
				}
			}
		}
		p.left = left
		return
	}
}

// want returns what the catalog shall have, and what is left out of it.
func (p *publisher) want(fresh map[*upstream]map[place]bool) (map[place]published, map[*upstream][]string) {
	catalog := p.gateway.host.Catalog.Internal(facts.Private{})
	want, left := map[place]published{}, map[*upstream][]string{}
	all := p.gateway.all()
	for i, u := range all {
		u.mu.Lock()
		places := slices.Collect(maps.Keys(u.known))
		u.mu.Unlock()
		for _, at := range places {
			why := ""
			there, taken := catalog.Get(at.kind, at.key)
			owner := i
			if at.kind == registry.KindTool || at.kind == registry.KindPrompt {
				owner = names.Owner(at.key, len(all), func(i int) string { return all[i].prefix })
			}
			switch {
			case owner != i:
				why = fmt.Sprintf("the name belongs to %q", all[owner].name)
			case want[at].upstream != nil:
				why = fmt.Sprintf("%q has it, too", want[at].upstream.name)
			case taken && p.here[at].Entry != there:
				why = "the server itself has it"
			}
			if why != "" {
				if len(left[u]) < maxNotes {
					left[u] = append(left[u], fmt.Sprintf("%v: %s", at, why))
				}
				continue
			}
			if e := entryOf(u, at, fresh[u][at]); e != nil {
				want[at] = published{e, u}
			}
		}
		slices.Sort(left[u])
	}
	return want, left
}

// has reports whether there is something at a place.
func (p *publisher) has(at place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here[at].Entry != nil
}

// source is where a URI may be read.
type source struct {
	published
	at place // of the resource or template
}

// of returns where a URI may be read: a resource, or else templates in the order in which the
// server tries them.
func (p *publisher) of(uri string) (all []source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := place{registry.KindResource, uri}
	if e := p.here[at]; e.Entry != nil {
		return []source{{e, at}}
	}
	for at, e := range p.here {
		if at.kind == registry.KindTemplate && e.Match(uri) != nil {
			all = append(all, source{e, at})
		}
	}
	slices.SortFunc(all, func(a, b source) int {
		return cmp.Or(b.Literals-a.Literals, strings.Compare(a.at.key, b.at.key))
	})
	return all
}

// tools returns the names of the tools of an upstream, and what is left out.
func (p *publisher) tools(u *upstream) (tools, left []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	for at, k := range u.known {
		if at.kind == registry.KindTool && k.entry != nil && p.here[at].Entry == k.entry {
			tools = append(tools, at.key)
		}
	}
	slices.Sort(tools)
	return tools, slices.Clone(p.left[u])
}

// entryOf returns the entry of u at a place, another one if it is fresh; nil if u has
// nothing there any more.
func entryOf(u *upstream, at place, fresh bool) *registry.Entry {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.known[at]
	if k == nil {
		return nil
	}
	if k.entry != nil && !fresh {
		return k.entry
	}
	e := &registry.Entry{Arguments: k.arguments, Serve: func(f *frame.Frame) (protocol.Result, error) { return u.serve(f, at, at.key) }}
	switch at.kind {
	case registry.KindTool:
		e.Definition = &protocol.Tool{Name: at.key, InputSchema: []byte(`{"type":"object"}`)}
	case registry.KindPrompt:
		e.Definition = &protocol.Prompt{Name: at.key}
	case registry.KindResource:
		e.Definition = &protocol.Resource{URI: at.key, Name: at.key}
	case registry.KindTemplate:
		e.Definition = &protocol.ResourceTemplate{URITemplate: at.key, Name: at.key}
		matches(u, e, at)
	}
	e.Completers = map[string]completer{}
	for _, name := range e.Arguments {
		e.Completers[name] = u.completer(at, name)
	}
	k.plain = nil
	if u.list != nil && u.single() {
		if all := u.list.catalog.Load(); all != nil && all.items[at] != nil {
			k.plain = all.items[at]
			e.Definition = k.plain.definition
		}
	}
	if k.plain == nil { // what is said of it is that of each caller's own connection
		e.As = func(f *frame.Frame) any {
			if it, _, err := u.find(f, at, false); err == nil && it != nil {
				return it.definition
			}
			return nil
		}
		e.Visible = func(f *frame.Frame) bool { return u.visible(f, at) }
	}
	k.entry = e
	return e
}

// matches makes e the entry of a template of u.
func matches(u *upstream, e *registry.Entry, at place) {
	template, err := uritemplate.Parse(at.key)
	if err != nil { // the catalog has none of these
		e.Match = func(string) frame.Handler { return nil }
		return
	}
	e.Arguments, e.Literals, e.Serve = template.Names(), template.Internal(facts.Private{}).Literals(), nil
	e.Match = func(uri string) frame.Handler {
		if _, ok := template.Match(uri); !ok {
			return nil
		}
		return func(f *frame.Frame) (protocol.Result, error) { return u.serve(f, at, uri) }
	}
}
