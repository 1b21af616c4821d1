package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
)

// headerKeyword marks an argument that is mirrored into an HTTP header.
const headerKeyword = "x-mcp-header"

// headerParams returns the arguments of a tool that are mirrored into headers
// (Custom Headers from Tool Parameters in basic/transports/streamable-http of
// 2026-07-28). An annotation that is not valid is an error.
func headerParams(input json.RawMessage) ([]facts.Header, error) {
	if !bytes.Contains(input, []byte(headerKeyword)) {
		return nil, nil
	}
	var root map[string]any
	if err := jsonx.Unmarshal(input, &root); err != nil {
		return nil, fmt.Errorf("inputSchema is not an object: %w", err)
	}
	w := headerWalk{names: map[string]bool{}}
	if err := w.schema(root, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

// headerWalk collects the annotated arguments of one schema.
type headerWalk struct {
	found []facts.Header
	names map[string]bool // in lower case
}

// schema visits one schema. reachable reports whether path leads to it only
// through properties.
func (w *headerWalk) schema(node map[string]any, path []string, reachable bool) error {
	if name, ok := node[headerKeyword]; ok {
		if err := w.annotated(node, name, path, reachable); err != nil {
			return fmt.Errorf("/%s: %w", strings.Join(path, "/"), err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(node)) {
		var err error
		switch key {
		case "const", "enum", "default", "examples", headerKeyword:
			continue // data, not schemas
		case "properties":
			err = w.named(node[key], path, reachable)
		case "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			err = w.named(node[key], path, false)
		default:
			err = w.any(node[key], path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named walks a map of schemas.
func (w *headerWalk) named(v any, path []string, reachable bool) error {
	children, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(children)) {
		child, ok := children[name].(map[string]any)
		if !ok {
			continue
		}
		if err := w.schema(child, append(slices.Clip(path), name), reachable); err != nil {
			return err
		}
	}
	return nil
}

// any walks what a keyword holds: a schema or a list of them.
func (w *headerWalk) any(v any, path []string) error {
	switch v := v.(type) {
	case map[string]any:
		return w.schema(v, path, false)
	case []any:
		for _, item := range v {
			if err := w.any(item, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotated handles one annotation. It refuses what the specification refuses:
// with a header that cannot be sent, or not be read back, every call of the
// tool would fail.
func (w *headerWalk) annotated(node map[string]any, value any, path []string, reachable bool) error {
	name, ok := value.(string)
	switch {
	case !ok || !token(name):
		return fmt.Errorf("%s must be a token of RFC 9110, got %v", headerKeyword, value)
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s %q is at a place that is reached by more than properties", headerKeyword, name)
	case w.names[strings.ToLower(name)]:
		return fmt.Errorf("%s %q stands twice", headerKeyword, name)
	case !primitive(node["type"]):
		return fmt.Errorf("%s %q is at a value of type %v; only a string, an integer or a boolean can be mirrored", headerKeyword, name, node["type"])
	}
	w.names[strings.ToLower(name)] = true
	w.found = append(w.found, facts.Header{Name: name, Path: slices.Clone(path)})
	return nil
}

// primitive reports whether a header can carry values of a schema's type. null
// next to the type means that the argument may be left out.
func primitive(t any) bool {
	if list, ok := t.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if len(list) != 1 {
			return false
		}
		t = list[0]
	}
	return t == "string" || t == "integer" || t == "boolean"
}

// token reports whether name can be the name of a header.
func token(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// mirror returns h with the headers that mirror args. It does not change h.
func (t *toolInfo) mirror(h http.Header, args []byte) http.Header {
	if args == nil {
		return h
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	for _, p := range t.headers {
		if text, ok := headerText(jsonx.Lookup(args, p.Path)); ok {
			h.Set("Mcp-Param-"+p.Name, wire.EncodeHeaderValue(text))
		}
	}
	return h
}

// headerText returns the value of a header for the JSON text of an argument; ok
// is false if there is nothing to mirror.
func headerText(raw []byte) (text string, ok bool) {
	s := jsonx.Scanner{Buf: raw}
	switch s.Peek() {
	case jsonx.String:
		b, err := s.Str()
		return string(b), err == nil
	case jsonx.Bool:
		return string(raw), true
	case jsonx.Number:
		n, integer, err := s.Number()
		if err != nil || integer {
			return string(n), err == nil
		}
		plain, form := jsonx.Integer(n, 20)
		if form != jsonx.Whole {
			return string(n), true // not an integer that fits: the server will say so
		}
		return string(plain), true
	}
	return "", false
}
