package config

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// plainJSON returns text without its byte order mark, comments and commas
// before a closing bracket; spaces take their place, so that positions stay. It
// checks nothing else: encoding/json does, whose errors then have the right
// position. The text that it was given is not changed.
func plainJSON(text []byte) ([]byte, error) {
	text = fromUTF16(bytes.Clone(text))
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		copy(text, "   ")
	}
	comma := -1 // where the last comma is, if nothing but space followed it
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*'):
			end, err := commentEnd(text, i)
			if err != nil {
				return nil, err
			}
			blank(text[i:end])
			i = end - 1
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			text[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return text, nil
}

// fromUTF16 returns a text that begins with a mark of UTF-16, which programs of Windows write,
// as UTF-8; any other text as it is.
func fromUTF16(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return text
	}
	var units []uint16
	for at := 2; at+1 < len(text); at += 2 {
		units = append(units, order.Uint16(text[at:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// commentEnd returns where the comment that begins at i ends: at the end of the
// line, which is not a part of it, or after */.
func commentEnd(text []byte, i int) (int, error) {
	end, extra := []byte("\n"), 0
	if text[i+1] == '*' {
		end, extra = []byte("*/"), 2
	}
	n := bytes.Index(text[i+2:], end)
	switch {
	case n >= 0:
		return i + 2 + n + extra, nil
	case extra > 0:
		line, _ := position(text, i)
		return 0, fmt.Errorf("line %d: a comment begins here and does not end", line)
	}
	return len(text), nil
}

// blank overwrites text, save its line ends.
func blank(text []byte) {
	for i, c := range text {
		if c != '\n' && c != '\r' {
			text[i] = ' '
		}
	}
}

// position returns line and column of an offset, from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// locate says where in text a JSON error is: people fix these files by hand.
// An error that is not one of JSON syntax is returned as it is.
func locate(text []byte, err error) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("it is empty; write {\"mcpServers\": {}}")
	}
	offset := len(text)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok && e.Offset > 0 {
		offset = int(e.Offset) - 1
	} else if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	line, column := position(text, offset)
	return fmt.Errorf("it is no JSON: line %d, column %d: %w", line, column, err)
}

// member is a member of an object, with its value as it stands.
type member struct {
	name  string
	value json.RawMessage
}

// objectMembers are the members of an object in their order, which is that of the
// servers in every list that a program shows.
type objectMembers []member

// find returns the first member of that name.
func (o objectMembers) find(name string) (json.RawMessage, bool) {
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil, false
	}
	return o[i].value, true
}

// names lists the members' names for an error.
func (o objectMembers) names() string {
	if len(o) == 0 {
		return "none"
	}
	var names []string
	for _, m := range o {
		names = append(names, m.name)
	}
	const most = 10
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

// orderedMembers reads an object and keeps the order of its members, which
// encoding/json does not do for maps. A name that comes twice is there twice.
func orderedMembers(text []byte) (objectMembers, error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, err // of the whole text, with the right position
	}
	d := json.NewDecoder(bytes.NewReader(text))
	start, err := d.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	var members objectMembers
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // d yields nothing else where a name is
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}
