package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/uritemplate"
)

// The bounds of the lists of an upstream.
const (
	maxListed     = 10_000  // items of a kind
	maxListedSize = 4 << 20 // bytes of JSON, of all kinds
	maxKnown      = 4 * maxListed
	maxNotes      = 100
)

// place is where clients find something: tools and prompts by full names, resources by
// URIs, templates by their text.
type place struct {
	kind registry.Kind
	key  string
}

// String names the place in notes.
func (p place) String() string {
	return fmt.Sprintf("%s %q", p.kind, visible.Text(p.key, visible.Name))
}

// item is one thing that a connection lists.
type item struct {
	definition any    // what clients see; it does not change
	name       string // by which the upstream knows it
	fixed      map[string]json.RawMessage
	headers    []facts.Header // arguments of a tool that are mirrored
	arguments  []string       // of a prompt
	sum        [16]byte       // tells whether it has changed
}

// catalog is all that a connection lists. It does not change once it is read.
type catalog struct {
	items map[place]*item
	notes []string // what is left out, or a rule does not do
	size  int
	fault error // why it cannot be read; then the rest of it does not count
}

// places yields where there is something; nothing for a nil catalog.
func (c *catalog) places() iter.Seq[place] {
	if c == nil {
		return func(func(place) bool) {}
	}
	return maps.Keys(c.items)
}

// note adds a note.
func (c *catalog) note(format string, args ...any) {
	if len(c.notes) < maxNotes {
		c.notes = append(c.notes, fmt.Sprintf(format, args...))
	}
}

// put adds an item. Of two at one place the first counts.
func (c *catalog) put(at place, it *item) {
	text, err := json.Marshal(it.definition)
	if err != nil {
		c.note("%v: %v", at, err)
		return
	}
	if c.size += len(text); c.size > maxListedSize {
		c.fault = cmp.Or(c.fault, fmt.Errorf("its lists have more than %d bytes", maxListedSize))
		return
	}
	for name, value := range it.fixed {
		text = append(append(text, name...), value...)
	}
	sum := sha256.Sum256(text)
	it.sum = [16]byte(sum[:])
	if c.items[at] != nil {
		c.note("%v is listed twice", at)
		return
	}
	c.items[at] = it
}

// newCatalog lists everything that a connection to u has.
func newCatalog(ctx context.Context, u *upstream, c *client.Client) (*catalog, error) {
	all := &catalog{items: map[place]*item{}}
	all.addTools(u, listed(all, c.Tools(ctx)))
	if c.Supports("prompts") {
		all.addPrompts(u, listed(all, c.Prompts(ctx)))
	}
	if c.Supports("resources") {
		for _, r := range listed(all, c.Resources(ctx)) {
			if u.allows(r.Name) {
				all.put(place{registry.KindResource, r.URI}, &item{definition: &r, name: r.URI})
			}
		}
		for _, t := range listed(all, c.Templates(ctx)) {
			at := place{registry.KindTemplate, t.URITemplate}
			if !u.allows(t.Name) {
				continue
			}
			if _, err := uritemplate.Parse(t.URITemplate); err != nil {
				all.note("%v: %v", at, visible.Error(err))
				continue
			}
			all.put(at, &item{definition: &t, name: t.URITemplate})
		}
	}
	if all.fault != nil {
		return nil, all.fault
	}
	return all, nil
}

// listed returns a list of bounded length; nothing if the upstream does not have the kind, or
// after a fault of c.
func listed[T any](c *catalog, list iter.Seq2[T, error]) (all []T) {
	if c.fault != nil {
		return nil
	}
	size := 0
	for one, err := range list {
		if errors.Is(err, client.ErrUnsupported) {
			return nil
		}
		text, _ := json.Marshal(one) // what does not encode is left out later
		size += len(text)
		switch {
		case err != nil:
			c.fault = err
		case len(all) == maxListed:
			c.fault = fmt.Errorf("one of its lists has more than %d items", maxListed)
		case size > maxListedSize:
			c.fault = fmt.Errorf("one of its lists has more than %d bytes", maxListedSize)
		}
		if c.fault != nil {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// addTools adds tools with the rules applied.
func (c *catalog) addTools(u *upstream, tools []protocol.Tool) {
	items, wanted := map[string]*item{}, []string(nil)
	used := make([]bool, len(u.Rules))
	for _, t := range tools {
		if !u.allows(t.Name) {
			continue
		}
		own := t
		it := &item{definition: &own, name: t.Name}
		var err error
		if own.InputSchema, err = objectSchema(own.InputSchema); err != nil {
			c.note("tool %q: %v; the tool is left out", visible.Text(t.Name, visible.Name), err)
			continue
		}
		if !bytes.HasPrefix(bytes.TrimSpace(own.OutputSchema), []byte("{")) {
			own.OutputSchema = nil
		}
		if !c.apply(u, it, &own, used) {
			continue
		}
		if u.prefix != "" { // views call tools by the upstream's own names
			own.Meta = wire.MetaWithoutView(own.Meta)
		}
		if items[own.Name] != nil {
			c.note("tool %q: the name %q is taken", visible.Text(t.Name, visible.Name), visible.Text(own.Name, visible.Name))
			continue
		}
		if it.headers, err = wire.HeaderParams(own.InputSchema); err != nil {
			c.note("tool %q: %v; clients that use headers leave it out", visible.Text(t.Name, visible.Name), visible.Error(err))
		}
		items[own.Name] = it
		wanted = append(wanted, own.Name)
	}
	for i, r := range u.Rules {
		if !used[i] {
			c.note("rule %d of %q: no tool matches %q", i+1, u.name, r.Tool)
		}
	}
	for original, name := range names.Fit(wanted, names.Max-len(u.prefix)) {
		it := items[original]
		it.definition.(*protocol.Tool).Name = u.prefix + name
		c.put(place{registry.KindTool, u.prefix + name}, it)
	}
}

// objectSchema returns the input schema of a tool as hosts take it: they refuse the whole list
// for one that does not have the type "object". Without a type it gets this one.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if len(schema) > 0 && jsonx.Unmarshal(schema, &members) != nil {
		return nil, errors.New("its input schema is not an object")
	}
	var kind string
	switch {
	case members["type"] == nil:
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		members["type"] = json.RawMessage(`"object"`)
		return json.Marshal(members)
	case jsonx.Unmarshal(members["type"], &kind) != nil || kind != "object":
		return nil, errors.New("the type of its input schema is not \"object\"")
	}
	return schema, nil
}

// apply applies the rules to a tool. ok is false if the tool must not be offered.
func (c *catalog) apply(u *upstream, it *item, t *protocol.Tool, used []bool) (ok bool) {
	for i, r := range u.Rules {
		if match, _ := path.Match(r.Tool, it.name); !match {
			continue
		}
		used[i] = true
		if r.Name != "" {
			t.Name = r.Name
		}
		if r.Description != nil {
			t.Description = *r.Description
		}
		if r.Hints != nil {
			t.Annotations = r.Hints
		}
		if len(r.Fixed) == 0 {
			continue
		}
		schema, err := without(t.InputSchema, r.Fixed, strings.ContainsAny(r.Tool, `*?[\`))
		if err != nil {
			c.note("rule %d of %q: Fixed: %v of %s; the tool is left out", i+1, u.name, err, visible.Text(it.name, visible.Name))
			return false
		}
		t.InputSchema = schema
		if it.fixed == nil {
			it.fixed = map[string]json.RawMessage{}
		}
		maps.Copy(it.fixed, r.Fixed)
	}
	return true
}

// without takes arguments out of the schema of a tool. One that is not there is an error,
// unless the rule is for several tools.
func without(schema json.RawMessage, fixed map[string]json.RawMessage, several bool) (json.RawMessage, error) {
	var root, properties map[string]json.RawMessage
	var required []string
	if jsonx.Unmarshal(schema, &root) != nil || jsonx.Unmarshal(root["properties"], &properties) != nil || properties == nil {
		return nil, errors.New("there are no properties in the schema")
	}
	if len(root["required"]) > 0 && jsonx.Unmarshal(root["required"], &required) != nil {
		return nil, errors.New("\"required\" is not a list in the schema")
	}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if _, there := properties[name]; !there && !several {
			err := fmt.Errorf("%q is not an argument", name)
			if near := names.Nearest(name, slices.Sorted(maps.Keys(properties))); near != "" {
				err = fmt.Errorf("%w (did you mean %s?)", err, visible.Text(near, visible.Name))
			}
			return nil, err
		}
		delete(properties, name)
		required = slices.DeleteFunc(required, func(other string) bool { return other == name })
	}
	var err error
	if root["properties"], err = json.Marshal(properties); err != nil {
		return nil, err
	}
	delete(root, "required")
	if len(required) > 0 {
		if root["required"], err = json.Marshal(required); err != nil {
			return nil, err
		}
	}
	return json.Marshal(root)
}

// argumentsOf returns the arguments for the upstream: those of the caller, with the fixed
// ones over them. A member that differs from a fixed one in case only is left out, too, as
// some upstreams take it for the same.
func (it *item) argumentsOf(raw []byte) (json.RawMessage, error) {
	if len(it.fixed) == 0 {
		return raw, nil
	}
	members := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := jsonx.Unmarshal(raw, &members); err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.arguments: %w", err)
		}
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		for fixed := range it.fixed {
			if strings.EqualFold(name, fixed) {
				return true
			}
		}
		return false
	})
	maps.Copy(members, it.fixed)
	return json.Marshal(members)
}

// checkHeaders compares the arguments of a call with the headers that mirror them, as a
// server has to do from 2026-07-28 on.
func (it *item) checkHeaders(f *mcp.Frame) error {
	r := f.HTTPRequest()
	if len(it.headers) == 0 || f.Transport() != frame.HTTP || f.Outer() != nil || f.Revision() < protocol.V20260728 {
		return nil
	}
	for _, p := range it.headers {
		if fault := wire.CheckHeaderParam(r.Header, p, f.Request().Params.Arguments); fault != nil {
			return fault
		}
	}
	return nil
}

// addPrompts adds prompts.
func (c *catalog) addPrompts(u *upstream, prompts []protocol.Prompt) {
	items, wanted := map[string]*item{}, []string(nil)
	for _, p := range prompts {
		if !u.allows(p.Name) || items[p.Name] != nil {
			continue
		}
		it := &item{definition: &p, name: p.Name}
		for _, a := range p.Arguments {
			it.arguments = append(it.arguments, a.Name)
		}
		items[p.Name] = it
		wanted = append(wanted, p.Name)
	}
	for original, name := range names.Fit(wanted, names.Max-len(u.prefix)) {
		it := items[original]
		it.definition.(*protocol.Prompt).Name = u.prefix + name
		c.put(place{registry.KindPrompt, u.prefix + name}, it)
	}
}
