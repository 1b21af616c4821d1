package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

const (
	headerKeyword = "x-mcp-header" // marks an argument that is mirrored into an HTTP header
	headerParam   = "Mcp-Param-"   // begins the name of the header
)

// HeaderParams returns the arguments of a tool that are mirrored into headers
// (Custom Headers from Tool Parameters in basic/transports/streamable-http of
// 2026-07-28). An annotation that is not valid is an error.
func HeaderParams(input json.RawMessage) ([]facts.Header, error) {
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

// HeaderParam returns the header that mirrors an argument, as a client knows it and in
// the canonical form of net/http.
func HeaderParam(p facts.Header) (name, canonical string) {
	name = headerParam + p.Name
	return name, textproto.CanonicalMIMEHeaderKey(name)
}

// CheckHeaderParam compares one mirrored argument with its header, by value. If the
// argument is absent or null, the header must be absent, too. header has canonical names.
func CheckHeaderParam(header map[string][]string, p facts.Header, args []byte) *protocol.Error {
	name, canonical := HeaderParam(p)
	values, sent := header[canonical]
	raw := jsonx.Lookup(args, p.Path)
	if raw == nil || string(raw) == "null" {
		if sent {
			return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s is sent, but the argument %s is not", name, strings.Join(p.Path, "."))
		}
		return nil
	}
	value, fault := HeaderValue(name, values)
	if fault != nil {
		return fault
	}
	if !EqualsHeader(raw, value) {
		return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s header value %q does not match argument %s", name, value, strings.Join(p.Path, "."))
	}
	return nil
}

// HeaderValue returns the decoded value of a header that must be there once and may be
// encoded in base64. name is that which the client knows.
func HeaderValue(name string, values []string) (string, *protocol.Error) {
	if len(values) != 1 {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s must be sent once", name)
	}
	value, ok := DecodeHeaderValue(values[0])
	if !ok {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s is neither plain ASCII nor valid =?base64?…?=", name)
	}
	return value, nil
}
