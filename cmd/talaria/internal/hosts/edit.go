package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// byteOrderMark begins files that some editors on Windows write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Marked reports whether a file begins with a byte order mark. Claude Desktop reads no
// server of such a file, so that Put and Remove leave the mark out.
func Marked(text []byte) bool { return bytes.HasPrefix(text, byteOrderMark) }

func unmarked(text []byte) []byte {
	for Marked(text) {
		text = text[len(byteOrderMark):]
	}
	return text
}

// Put returns the text of a configuration file with the server in it. Every
// other byte stays: other entries, unknown members, comments, indentation. An
// entry of that name keeps the members that are unknown here.
func (h Host) Put(old []byte, s Server) ([]byte, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	return h.edit(old, func(section *hujson.Object, style style) error {
		i := find(section, s.Name)
		if i < 0 {
			style.add(section, 1, s.Name, &hujson.Object{})
			i = len(section.Members) - 1
		}
		entry, ok := section.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("the entry %q is not an object", s.Name)
		}
		members := h.entry(s)
		entry.Members = slices.DeleteFunc(entry.Members, func(m hujson.ObjectMember) bool {
			name := m.Name.Value.(hujson.Literal).String()
			return slices.Contains(ours, name) && !slices.ContainsFunc(members, func(m member) bool { return m.name == name })
		})
		for _, m := range members {
			if err := style.set(entry, 2, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// ErrAbsent is the error of removing a server that is not there.
var ErrAbsent = errors.New("there is no such server in the file")

// Remove returns the text of a configuration file without the server.
func (h Host) Remove(old []byte, name string) ([]byte, error) {
	return h.edit(old, func(section *hujson.Object, _ style) error {
		i := find(section, name)
		if i < 0 {
			return fmt.Errorf("%q: %w", name, ErrAbsent)
		}
		section.Members = slices.Delete(section.Members, i, i+1)
		if len(section.Members) == 0 && section.AfterExtra.IsStandard() {
			section.AfterExtra = nil
		}
		return nil
	})
}

// maxBrackets bounds the objects and lists of a file. If all of them are within
// each other, reading them takes as many steps of the stack, which has an end.
const maxBrackets = 100_000

// edit gives fn the section of servers, which it makes if there is none.
func (h Host) edit(old []byte, fn func(section *hujson.Object, style style) error) ([]byte, error) {
	text := unmarked(old)
	style := styleOf(text)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + style.newline)
	}
	if n := bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")); n > maxBrackets {
		return nil, fmt.Errorf("it has %d opening brackets, too many for a configuration; nothing was changed", n)
	}
	root, err := hujson.Parse(text)
	if err != nil && bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("it is not UTF-8; save it with that encoding first, nothing was changed")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w; repair it first, nothing was changed", err)
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it holds no JSON object; repair it first, nothing was changed")
	}
	i := find(object, h.Section)
	if i < 0 {
		style.add(object, 0, h.Section, &hujson.Object{})
		i = len(object.Members) - 1
	}
	section, ok := object.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s in it is not an object; repair it first, nothing was changed", h.Section)
	}
	if err := fn(section, style); err != nil {
		return nil, err
	}
	packed := root.Pack()
	if _, err := hujson.Parse(packed); err != nil {
		return nil, fmt.Errorf("the result would not be valid: %w", err)
	}
	return packed, nil
}

// find returns the index of a member; the last one counts, as for most readers.
func find(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// style is how a file is laid out.
type style struct{ newline, indent string }

// styleOf takes the first indented line as the example for all.
func styleOf(text []byte) style {
	s := style{newline: "\n", indent: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		rest := strings.TrimLeft(line, " \t")
		if len(rest) < len(line) && strings.HasPrefix(rest, `"`) {
			s.indent = line[:len(line)-len(rest)]
			break
		}
	}
	return s
}

func (s style) line(depth int) hujson.Extra {
	return hujson.Extra(s.newline + strings.Repeat(s.indent, depth))
}

// add appends a member to an object that stands depth levels below the root.
func (s style) add(o *hujson.Object, depth int, name string, value hujson.ValueTrimmed) {
	before := s.line(depth + 1)
	if !o.AfterExtra.IsStandard() { // a comment at the end belongs to what is before
		before = append(hujson.Extra(bytes.TrimRight(o.AfterExtra, " \t\r\n")), before...)
	}
	if n := len(o.Members); n > 0 && o.Members[n-1].Value.AfterExtra != nil && len(o.Members[n-1].Value.AfterExtra) == 0 {
		o.Members[n-1].Value.AfterExtra = nil // it had a comma after it, and has one now
	}
	o.AfterExtra = s.line(depth)
	o.Members = append(o.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value},
	})
}

// set gives a member its value, unless it has that already.
func (s style) set(o *hujson.Object, depth int, m member) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(strings.Repeat(s.indent, depth+1), s.indent)
	if err := e.Encode(m.value); err != nil {
		return err
	}
	text := strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", s.newline)
	if list, ok := m.value.([]string); ok { // on one line, as people write arguments
		text = flat(list)
	}
	value, err := hujson.Parse([]byte(text))
	if err != nil {
		return err
	}
	i := find(o, m.name)
	if i < 0 {
		s.add(o, depth, m.name, value.Value)
		return nil
	}
	if !same(o.Members[i].Value, value) {
		o.Members[i].Value.Value = value.Value
	}
	return nil
}

func flat(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = string(hujson.String(s))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// same reports whether two values mean the same JSON.
func same(a, b hujson.Value) bool {
	a, b = a.Clone(), b.Clone()
	a.Minimize()
	b.Minimize()
	var x, y any
	if json.Unmarshal(a.Pack(), &x) != nil || json.Unmarshal(b.Pack(), &y) != nil {
		return false
	}
	left, err := json.Marshal(x)
	right, err2 := json.Marshal(y)
	return err == nil && err2 == nil && bytes.Equal(left, right)
}

// Masked returns the text of a configuration file as a screen may show it: without
// the values of environment variables and headers, also existing ones, and with
// each URL as address returns it.
func Masked(text []byte, address func(string) string) string {
	if len(text) == 0 {
		return ""
	}
	root, err := hujson.Parse(unmarked(text))
	if err != nil {
		return "…\n"
	}
	mask(&root, false, address)
	return string(root.Pack())
}

// mask hides what is in v. Within secret, every value is hidden.
func mask(v *hujson.Value, secret bool, address func(string) string) {
	switch x := v.Value.(type) {
	case *hujson.Object:
		for i := range x.Members {
			name := x.Members[i].Name.Value.(hujson.Literal).String()
			mask(&x.Members[i].Value, secret || name == "env" || name == "headers", address)
		}
	case *hujson.Array:
		for i := range x.Elements {
			mask(&x.Elements[i], secret, address)
		}
	case hujson.Literal:
		switch shown := address(x.String()); {
		case secret:
			v.Value = hujson.String("…")
		case x.Kind() == '"' && shown != x.String():
			v.Value = hujson.String(shown)
		}
	}
}
