package toollock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/visible"
)

// Class is what a difference means for those who use the tools.
type Class int

// The classes, from the one that needs the least attention.
const (
	Compatible Class = iota // what was right before is right now
	Words                   // models read something else
	Breaking                // a call or its reader may fail now, or the comparison cannot tell
)

// String returns the class as a word.
func (c Class) String() string { return [...]string{"compatible", "words", "breaking"}[c] }

// Difference is one between two locks.
type Difference struct {
	Class Class
	Tool  string // "" for the server itself
	Text  string // what is new, such as "/limit is required now"
}

// String returns the difference as a line, safe for a terminal.
func (d Difference) String() string {
	tool := visible.Line(cmp.Or(d.Tool, "the server"), visible.Name)
	return fmt.Sprintf("%v: %s: %s", d.Class, tool, visible.Line(d.Text, visible.Sentence))
}

// Compare returns how a server that was as in old is now, the breaking differences
// first, and of one class by the names of the tools.
func Compare(old, now *Lock) []Difference {
	var found []Difference
	add := func(class Class, tool, text string) { found = append(found, Difference{class, tool, text}) }
	if old.server != now.server {
		add(Words, "", fmt.Sprintf("its name is %s, and was %s", quoted(now.server), quoted(old.server)))
	}
	if old.instructions != now.instructions {
		add(Words, "", "its instructions differ")
	}
	for _, name := range slices.Sorted(maps.Keys(old.tools)) {
		was, is := old.tools[name], now.tools[name]
		if is == nil {
			add(Breaking, name, "the tool is gone")
			continue
		}
		compareTools(was, is, func(class Class, text string) { add(class, name, text) })
	}
	for name := range now.tools {
		if old.tools[name] == nil {
			add(Compatible, name, "the tool is new")
		}
	}
	slices.SortStableFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Class, a.Class), strings.Compare(a.Tool, b.Tool))
	})
	return found
}

// compareTools adds the differences of a tool.
func compareTools(was, is definition, add func(Class, string)) {
	for _, name := range slices.Sorted(maps.Keys(union(was, is))) {
		if equal(was[name], is[name]) {
			continue
		}
		switch name {
		case "title", "description":
			add(Words, "its "+name+" differs")
		case "annotations":
			compareAnnotations(was[name], is[name], add)
		case "inputSchema":
			compareSchemas(is[name], was[name], false, add)
		case "outputSchema":
			switch {
			case was[name] == nil:
				add(Compatible, "its results have a schema now")
			case is[name] == nil:
				add(Breaking, "its results have no schema now")
			default:
				compareSchemas(was[name], is[name], true, add)
			}
		default:
			add(Breaking, "its "+name+" differs")
		}
	}
}

// cautious has what an absent hint means, which is the value that makes clients take
// care (ToolAnnotations of the schema of every revision since 2025-03-26).
var cautious = map[string]bool{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}

// compareAnnotations adds the differences of annotations: a hint that promises less
// than before is breaking, because clients call without asking on its word.
func compareAnnotations(was, is any, add func(Class, string)) {
	before, _ := was.(map[string]any)
	after, _ := is.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		careful, hint := cautious[name]
		switch {
		case equal(before[name], after[name]):
		case name == "title":
			add(Words, "annotations.title differs")
		case !hint:
			add(Breaking, "annotations."+name+" differs")
		default:
			old, isOld := before[name].(bool)
			now, isNow := after[name].(bool)
			if old, now = old || !isOld && careful, now || !isNow && careful; old == now {
				add(Compatible, "annotations."+name+" says what its absence means")
			} else if now == careful {
				add(Breaking, fmt.Sprintf("annotations.%s is %v now", name, now))
			} else {
				add(Compatible, fmt.Sprintf("annotations.%s is %v now", name, now))
			}
		}
	}
}
