package openapi

import (
	"slices"
	"strings"
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
			case isMap && (name == "properties" || name == "patternProperties" || name == "dependentSchemas"):
				kept, below := make(tree, len(members)), level
				if name == "properties" {
					below++
				}
				for member, schema := range members {
					kept[member] = t.trim(schema, below, name != "properties" || slices.Contains(required, any(member)))
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
