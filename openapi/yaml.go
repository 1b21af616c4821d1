package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// The limits of YAML. Aliases repeat what they stand for.
const (
	maxAliases = 1_000
	maxJSON    = 64 << 20 // bytes that a document has as JSON
)

// jsonOfYAML returns a document in YAML as JSON. Keys of any type become texts.
func jsonOfYAML(text []byte) (result []byte, err error) {
	if bytes.HasPrefix(text, []byte("%YAML 1.2")) { // which the library refuses, and is what it reads
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	w := yamlWriter{}
	if err := w.write(&root, 0); err != nil {
		return nil, err
	}
	return w.out, nil
}

// yamlWriter appends nodes as JSON.
type yamlWriter struct {
	out     []byte
	aliases int
}

// write appends a node.
func (w *yamlWriter) write(n *yaml.Node, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("line %d: nested deeper than %d levels", n.Line, maxNested)
	}
	if len(w.out) > maxJSON {
		return fmt.Errorf("its aliases make more than %d MB of it", maxJSON>>20)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return w.write(n.Content[0], depth)
		}
		return errors.New("it is empty")
	case yaml.AliasNode:
		if w.aliases++; w.aliases > maxAliases {
			return fmt.Errorf("line %d: it has more than %d aliases", n.Line, maxAliases)
		}
		return w.write(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out = append(w.out, '[')
		for i, item := range n.Content {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.write(item, depth+1); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
		return nil
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.ScalarNode:
		w.out = append(w.out, scalarOf(n)...)
		return nil
	}
	return errors.New("it is empty")
}

// mapping appends a mapping. What "<<" merges comes first, so that own keys win.
func (w *yamlWriter) mapping(n *yaml.Node, depth int) error {
	var pairs []*yaml.Node
	if err := w.pairs(n, depth, &pairs); err != nil {
		return err
	}
	w.out = append(w.out, '{')
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = jsonx.AppendString(w.out, pairs[i].Value)
		w.out = append(w.out, ':')
		if err := w.write(pairs[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// pairs appends keys and values of a mapping, those that it merges first.
func (w *yamlWriter) pairs(n *yaml.Node, depth int, all *[]*yaml.Node) error {
	if depth > maxNested {
		return fmt.Errorf("line %d: nested deeper than %d levels", n.Line, maxNested)
	}
	var own []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a text", key.Line)
		}
		if key.Tag != "!!merge" {
			own = append(own, key, value)
			continue
		}
		from := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			from = slices.Clone(value.Content)
			slices.Reverse(from) // the first wins
		}
		for _, f := range from {
			if f.Kind == yaml.AliasNode {
				if w.aliases++; w.aliases > maxAliases {
					return fmt.Errorf("line %d: it has more than %d aliases", f.Line, maxAliases)
				}
				f = f.Alias
			}
			if f.Kind != yaml.MappingNode {
				return fmt.Errorf("line %d: << merges mappings", f.Line)
			}
			if err := w.pairs(f, depth+1, all); err != nil {
				return err
			}
		}
	}
	*all = append(*all, own...)
	return nil
}

// scalarOf returns a scalar as JSON. What JSON has no form for is a text.
func scalarOf(n *yaml.Node) []byte {
	switch n.ShortTag() {
	case "!!null":
		return []byte("null")
	case "!!bool":
		if yes, err := strconv.ParseBool(strings.ToLower(n.Value)); err == nil {
			return strconv.AppendBool(nil, yes)
		}
	case "!!int", "!!float":
		if s := (jsonx.Scanner{Buf: []byte(n.Value)}); s.Peek() == jsonx.Number {
			if _, _, err := s.Number(); err == nil && s.End() == nil {
				return []byte(n.Value)
			}
		}
		var i int64
		if n.Decode(&i) == nil {
			return strconv.AppendInt(nil, i, 10)
		}
		var f float64
		if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			if text, err := jsonx.AppendFloat(nil, f, 64); err == nil {
				return text
			}
		}
	}
	return jsonx.AppendString(nil, string(bytes.ToValidUTF8([]byte(n.Value), []byte("\ufffd"))))
}
