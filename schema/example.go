package schema

import (
	"context"
	"reflect"
	"slices"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// examples are two or so texts that the rules of a date, a time or a duration
// accept: their form is not obvious to everyone.
func (n *node) examples() []any {
	var candidates []string
	switch {
	case n.kind == nodeDuration && n.unit == 0 && n.iso:
		candidates = []string{"PT30S", "PT1H30M"}
	case n.kind == nodeDuration && n.unit == 0:
		candidates = []string{"30s", "1h30m"}
	case n.typ == reflect.TypeFor[TimeOfDay]():
		candidates = []string{"09:30", "23:59:59"}
	case n.typ == reflect.TypeFor[NaiveDateTime]():
		candidates = []string{"2026-01-31T09:30:00"}
	default:
		return nil
	}
	if low, high := n.ownEnds(); low != nil || high != nil {
		for _, b := range []*bound{low, high} {
			if b != nil && !b.open {
				candidates = append(candidates, b.limit)
			}
		}
	}
	var fine []any
	for _, text := range candidates {
		if len(fine) < 2 && !slices.Contains(fine, any(text)) && n.passes(text) {
			fine = append(fine, text)
		}
	}
	return fine
}

// passes tells whether a text has a node's form and passes its checks, but for
// custom rules.
func (n *node) passes(text string) bool {
	own := *n
	own.ptrs, own.special = nil, true
	own.checks = slices.DeleteFunc(slices.Clone(n.checks), func(c check) bool { return c.custom != nil })
	p := &Plan{opts: &Options{}, root: &own, typ: n.typ, maxDepth: defaultMaxDepth, maxNodes: defaultMaxNodes}
	return p.decode(context.Background(), jsonx.AppendString(nil, text), reflect.New(n.typ).UnsafePointer(), false, nil) == nil
}
