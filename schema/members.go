package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// member is a field of a struct, or of one embedded in it, that encoding/json
// would read or write. Apart from json its tags have not been read.
type member struct {
	// name is the name in JSON.
	name string
	// tagged is set if the name comes from the json tag. Of two members with
	// one name at one level of nesting the tagged one wins.
	tagged bool
	// options are those of the json tag, in its order.
	options []string
	// index leads to the field through the embedded structs, as for reflect's
	// FieldByIndex.
	index []int
	// sf is the field as it is declared.
	sf reflect.StructField
	// owner is the struct that declares the field.
	owner reflect.Type
	// byPtr is set if an embedded pointer is on the way, so that the member can
	// be absent together with its struct.
	byPtr bool
}

// level is a struct type whose fields have to be looked through, with the way
// to it from the outermost struct. If byPtr is set, that way leads through an
// embedded pointer.
type level struct {
	typ   reflect.Type
	index []int
	byPtr bool
}

// findMembers returns the members of t as encoding/json determines them: fields
// of embedded structs are promoted, the least nested field of a name wins, then
// the one with a json tag, and a name that is still ambiguous has no field.
//
// The walk goes level by level, as in encoding/json. A struct that is embedded
// twice on one level contributes each field twice, so that they are ambiguous.
// The result is in the order of the struct.
func findMembers(c *compiler, t reflect.Type) []*member {
	var found []*member
	visited := map[reflect.Type]bool{}
	next := []level{{typ: t}}
	var nextCount map[reflect.Type]int
	for len(next) > 0 {
		current, count := next, nextCount
		next, nextCount = nil, map[reflect.Type]int{}
		for _, l := range current {
			if visited[l.typ] {
				continue
			}
			visited[l.typ] = true
			for i := range l.typ.NumField() {
				m, inner := memberAt(c, l, i)
				if inner != nil {
					if nextCount[inner.typ]++; nextCount[inner.typ] == 1 {
						next = append(next, *inner)
					}
				} else if m != nil {
					found = append(found, m)
					if count[l.typ] > 1 {
						found = append(found, m) // twice on one level: they cancel out
					}
				}
			}
		}
	}
	return dominantMembers(c, found)
}

// memberAt looks at field i of a struct. It returns a member, or a struct to
// look through, or neither if the field does not take part in JSON. A field of
// an embedded struct is promoted only if its json tag gives the struct no name.
func memberAt(c *compiler, l level, i int) (*member, *level) {
	sf := l.typ.Field(i)
	ft := sf.Type
	if ft.Name() == "" && ft.Kind() == reflect.Pointer {
		ft = ft.Elem()
	}
	if sf.Anonymous {
		if !sf.IsExported() && ft.Kind() != reflect.Struct {
			return nil, nil
		}
	} else if !sf.IsExported() {
		return nil, nil
	}
	tag := sf.Tag.Get("json")
	if tag == "-" || sf.Tag.Get("jsonschema") == "-" {
		return nil, nil
	}
	parts := strings.Split(tag, ",")
	name, options := parts[0], parts[1:]
	c.where = place{l.typ.String(), sf.Name, name}
	if name != "" && !validName(name) {
		c.report(`json:"`+tag+`"`, fmt.Sprintf("%q is not a member name that encoding/json accepts", name), "use letters, digits and !#$%&()*+-./:;<=>?@[]^_{|}~")
		return nil, nil
	}
	index := append(slices.Clone(l.index), i)
	if name == "" && sf.Anonymous && ft.Kind() == reflect.Struct {
		byPtr := sf.Type.Kind() == reflect.Pointer
		if byPtr && !sf.IsExported() {
			c.report("", "embedded pointer to an unexported struct cannot be set", "embed the struct itself, or export its type")
			return nil, nil
		}
		return nil, &level{ft, index, l.byPtr || byPtr}
	}
	m := &member{name: name, tagged: name != "", options: options, index: index, sf: sf, owner: l.typ, byPtr: l.byPtr}
	if name == "" {
		m.name = sf.Name
	}
	return m, nil
}

// dominantMembers keeps the one field of each name that encoding/json would
// use, in the order of the struct. If it would use none, because two fields of
// one struct have the same name, that is reported: a member must not vanish
// silently.
func dominantMembers(c *compiler, found []*member) []*member {
	slices.SortStableFunc(found, func(a, b *member) int {
		if d := strings.Compare(a.name, b.name); d != 0 {
			return d
		}
		if d := len(a.index) - len(b.index); d != 0 {
			return d
		}
		if a.tagged != b.tagged {
			if a.tagged {
				return -1
			}
			return 1
		}
		return slices.Compare(a.index, b.index)
	})
	var kept []*member
	for i := 0; i < len(found); {
		j := i + 1
		for j < len(found) && found[j].name == found[i].name {
			j++
		}
		if j == i+1 || len(found[i+1].index) != len(found[i].index) || found[i+1].tagged != found[i].tagged {
			kept = append(kept, found[i])
		} else if a, b := found[i], found[i+1]; slices.Equal(a.index[:len(a.index)-1], b.index[:len(b.index)-1]) && !slices.Equal(a.index, b.index) {
			c.where = place{b.owner.String(), b.sf.Name, b.name}
			c.report(b.tag("json"), fmt.Sprintf("two fields are named %q, so encoding/json takes neither; the other is %s", b.name, a.sf.Name), "give one another name")
		}
		i = j
	}
	slices.SortFunc(kept, func(a, b *member) int { return slices.Compare(a.index, b.index) })
	return kept
}

// validName reports whether encoding/json uses s as the name in a json tag.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// locate returns the place of the field at index within t: the embedded
// pointers on the way, and the offset behind the last of them, or within t if
// there is none.
func locate(t reflect.Type, index []int) (offset uintptr, hops []hop) {
	for i, x := range index {
		sf := t.Field(x)
		offset += sf.Offset
		t = sf.Type
		if i < len(index)-1 && t.Kind() == reflect.Pointer {
			t = t.Elem()
			hops = append(hops, hop{offset, t})
			offset = 0
		}
	}
	return offset, hops
}

// misspelt reports a struct tag that reflection cannot read, such as one with a
// missing quote. reflect and encoding/json ignore such a tag without a word.
func misspelt(c *compiler, sf reflect.StructField) {
	for _, key := range [...]string{"json", "validate", "jsonschema", "jsonschema_description", "jsonschema_extras", "mcp"} {
		if _, ok := sf.Tag.Lookup(key); ok {
			continue
		}
		at := strings.Index(string(sf.Tag), key+":")
		if at >= 0 && (at == 0 || sf.Tag[at-1] == ' ' || sf.Tag[at-1] == '\t') {
			c.report(strconv.Quote(string(sf.Tag)), "the struct tag is malformed, so its "+key+" part is not seen", `write key:"value" pairs separated by single spaces`)
			return
		}
	}
}
