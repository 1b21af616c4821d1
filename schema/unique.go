package schema

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// rawItem is the key of an item that has issues. Such an item is compared by
// its text, because its decoded value may not be what the document says.
type rawItem string

// distinct records that two items of a list, or two values of a map, are equal.
// raw is the text of the list. Items with issues of their own, which are
// d.issues[before:], are compared by their text.
func distinct(d *decoder, n *node, c *rules.Check, u *rules.UniqueRule, v reflect.Value, raw []byte, before int) {
	bad := faulty(u.Among, wording.Pointer(d.path)+"/", d.issues[before:])
	var texts []json.RawMessage
	if len(bad) > 0 && u.Among == "" && n.kind != nodeMap {
		_ = json.Unmarshal(raw, &texts) // not a list when it came inside a string
	}
	a, b, equal := u.Pair(v, func(name string) (any, bool) {
		if !bad[name] {
			return nil, false
		}
		if i, err := strconv.Atoi(name); err == nil && i < len(texts) {
			return rawItem(texts[i]), true
		}
		return nil, true
	})
	if !equal {
		return
	}
	what := "items "
	if n.kind == nodeMap {
		what = "the values of "
	}
	d.fail(n, c, "", what+a+" and "+b+" are equal")
}

// unescape makes a name of a reference token of a JSON Pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// faulty returns the names of the items below prefix that have issues in what
// is compared: in the member among of each item, or anywhere if among is "".
func faulty(among, prefix string, issues []Issue) map[string]bool {
	bad := map[string]bool{}
	for _, is := range issues {
		below, ok := strings.CutPrefix(is.Path, prefix)
		if !ok || is.Rule == "propertyNames" {
			continue
		}
		item, rest, _ := strings.Cut(below, "/")
		if member, _, _ := strings.Cut(rest, "/"); among == "" || member == "" || unescape.Replace(member) == among {
			bad[unescape.Replace(item)] = true
		}
	}
	return bad
}
