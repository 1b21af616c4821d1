package jsonx

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxOutlined is how long a member may be that an Outline keeps, in bytes with its
// name.
const maxOutlined = 512

// Outline reads an object of any length in parts, and keeps the members with certain
// names. A value that makes its member longer than maxOutlined is kept as {}. The
// values are not checked. The zero value keeps nothing.
type Outline struct {
	Names []string // of the members that are kept

	kept    [][2][]byte // names, and values
	member  []byte      // the beginning of the member that is being read
	colon   int         // where its value begins; 0 before the colon
	long    bool        // it is longer than member
	depth   int
	text    bool // in a string
	escaped bool // after a backslash in a string
	closed  bool // after the object
	broken  bool // the text is not one object, or a member is there twice
}

// Write takes the next part. Its error is always nil.
func (o *Outline) Write(p []byte) (int, error) {
	for _, c := range p {
		if o.broken {
			break
		}
		o.take(c)
	}
	return len(p), nil
}

// take takes the next byte.
func (o *Outline) take(c byte) {
	space := c == ' ' || c == '\t' || c == '\n' || c == '\r' || o.depth == 0 && !o.closed && strings.IndexByte("\xEF\xBB\xBF", c) >= 0 // a byte order mark
	switch {
	case o.text:
		switch {
		case o.escaped:
			o.escaped = false
		case c == '\\':
			o.escaped = true
		case c == '"':
			o.text = false
		}
	case o.depth == 0:
		if c == '{' && !o.closed {
			o.depth = 1
		} else if !space {
			o.broken = true
		}
		return
	case c == '"':
		o.text = true
	case c == '{', c == '[':
		o.depth++
	case c == '}', c == ']':
		if o.depth--; o.depth == 0 {
			o.end()
			o.closed = true
			return
		}
	case o.depth > 1:
	case c == ',':
		o.end()
		return
	case c == ':' && o.colon == 0:
		if !o.long {
			o.colon = len(o.member)
		}
		return
	case space:
		return
	}
	if len(o.member) < maxOutlined {
		o.member = append(o.member, c)
	} else {
		o.long = true
	}
}

// end keeps the member that has been read.
func (o *Outline) end() {
	var name string
	if o.colon > 0 && json.Unmarshal(o.member[:o.colon], &name) == nil && slices.Contains(o.Names, name) {
		value := []byte("{}")
		if !o.long {
			value = slices.Clone(o.member[o.colon:])
		}
		for _, other := range o.kept {
			o.broken = o.broken || string(other[0]) == name
		}
		o.kept = append(o.kept, [2][]byte{[]byte(name), value})
	}
	o.member, o.colon, o.long = o.member[:0], 0, false
}

// Text returns the object of the members that were kept, in their order, or nil if
// what was read is not the beginning of an object, or has a member twice. whole
// reports whether the object has ended. Nothing is read after Text.
func (o *Outline) Text() (text []byte, whole bool) {
	if !o.closed && o.colon > 0 { // the value is not whole
		o.long = true
		o.end()
	}
	if o.broken || !o.closed && o.depth == 0 {
		return nil, false
	}
	text = []byte{'{'}
	for i, member := range o.kept {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(AppendString(text, string(member[0])), ':')
		text = append(text, member[1]...)
	}
	return append(text, '}'), o.closed
}
