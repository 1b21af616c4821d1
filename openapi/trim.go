package openapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// The limits of a schema of arguments; beyond them parts of it are left out.
const (
	maxSchema = 16 << 10 // bytes
	maxLevels = 4        // of members, below the arguments
)

// argument is a member of the arguments of a tool.
type argument struct {
	name     string
	schema   any
	required bool
}

// arguments returns the JSON Schema of the arguments, with the definitions that it
// needs, and what had to be left out because it is too large.
func (s *schemas) arguments(args []argument) (schema []byte, cut string, err error) {
	schema, err = s.assemble(args, trimmer{})
	if err != nil || len(schema) <= maxSchema {
		return schema, "", err
	}
	was := len(schema)
	for _, t := range []trimmer{{bare: true}, {bare: true, levels: maxLevels}, {bare: true, levels: maxLevels - 1}, {bare: true, levels: maxLevels - 2}} {
		if schema, err = s.assemble(args, t); err != nil || len(schema) <= maxSchema || t.levels == maxLevels-2 {
			cut = "descriptions are left out"
			if t.levels > 0 {
				cut = fmt.Sprintf("descriptions, and optional members deeper than %d levels, are left out", t.levels)
			}
			break
		}
	}
	return schema, fmt.Sprintf("its schema has %d bytes: %s", was, cut), err
}

// assemble returns the schema as a trimmer leaves it.
func (s *schemas) assemble(args []argument, t trimmer) ([]byte, error) {
	var out, required []byte
	levels := map[string]int{}
	out = append(out, `{"type":"object","properties":{`...)
	for i, a := range args {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, a.name), ':')
		out = append(out, encoded(t.trim(a.schema, 1, a.required))...)
		references(t.trim(a.schema, 1, a.required), 1, levels)
		if a.required {
			required = append(jsonx.AppendString(required, a.name), ',')
		}
	}
	out = append(out, '}')
	if required != nil {
		out = append(append(append(out, `,"required":[`...), bytes.TrimSuffix(required, []byte(","))...), ']')
	}
	out = append(out, `,"additionalProperties":false`...)
	defs, err := s.closure(levels, t)
	if err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		out = append(append(out, `,"$defs":`...), encoded(defs)...)
	}
	return append(out, '}'), nil
}

// closure returns the definitions with these names and all that they refer to. levels
// has the least level at which each is needed.
func (s *schemas) closure(levels map[string]int, t trimmer) (tree, error) {
	defs := tree{}
	done := map[string]int{}
	for len(levels) > 0 {
		next := map[string]int{}
		for name, level := range levels {
			if was, again := done[name]; again && was <= level {
				continue
			}
			done[name] = level
			def, err := s.definition(name)
			if err != nil {
				return nil, err
			}
			if t.bare {
				def = t.trim(def, level, true)
			}
			defs[name] = def
			references(def, level, next)
		}
		levels = next
	}
	return defs, nil
}

// references notes the definitions that a schema refers to, each with its least level.
func references(v any, level int, levels map[string]int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			references(item, level, levels)
		}
	case tree:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/$defs/")
			if was, known := levels[name]; !known || level < was {
				levels[name] = level
			}
		}
		for name, sub := range v {
			switch members, isMap := sub.(tree); {
			case name == "enum" || name == "const":
			case isMap && (name == "properties" || name == "patternProperties" || name == "dependentSchemas"):
				for _, schema := range members {
					references(schema, level+1, levels)
				}
			default:
				references(sub, level, levels)
			}
		}
	}
}

// trimmer makes schemas smaller.
type trimmer struct {
	bare   bool // no descriptions
	levels int  // of members that are kept even if they are optional; 0 means no limit
}

// trim returns a copy of a schema at a level without what t leaves out.
func (t trimmer) trim(v any, level int, needed bool) any {
	if !t.bare {
		return v
	}
	if t.levels > 0 && level > t.levels && !needed {
		return tree{}
	}
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = t.trim(item, level, true)
		}
		return all
	case tree:
		required, _ := v["required"].([]any)
		out := make(tree, len(v))
		for name, sub := range v {
			switch members, isMap := sub.(tree); {
			case (name == "description" || name == "title") && !isMap:
			case name == "enum" || name == "const":
				out[name] = sub
			case name == "properties" && isMap:
				kept := make(tree, len(members))
				for member, schema := range members {
					kept[member] = t.trim(schema, level+1, slices.Contains(required, any(member)))
				}
				out[name] = kept
			case (name == "patternProperties" || name == "dependentSchemas") && isMap:
				kept := make(tree, len(members))
				for member, schema := range members {
					kept[member] = t.trim(schema, level, true)
				}
				out[name] = kept
			default:
				out[name] = t.trim(sub, level, true)
			}
		}
		return out
	}
	return v
}
