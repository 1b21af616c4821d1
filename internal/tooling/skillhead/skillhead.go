// Package skillhead reads the head of a SKILL.md: the YAML between two lines of
// three dashes. Server and client read it with the same code.
//
// It reads a part of YAML and refuses the rest, because a head is compared field by
// field by programs that read YAML with other libraries, of two versions of that
// language. Accepted text means the same to all of them. Text that one of them
// could read as something else is an error that says how to write it.
//
// What there is:
//
//   - mappings and sequences, by indentation or in brackets;
//   - text without quotes, in one line or several; in single and double quotes; and
//     below | and >, with or without a - behind;
//   - true, false and null, in these letters, or nothing at all for null;
//   - integers and decimals of up to 15 digits, as JSON writes them;
//   - comments, but not within brackets or text.
//
// Not supported: anchors, aliases, tags, merge keys, directives, several documents,
// tabs, keys that are not text, duplicate keys, and text without quotes that looks
// like a number, a date, a time or a word for a boolean.
//
// Reading takes time and memory in proportion to the head, which is bounded, as are
// its depth and the number of its values: a head may come from an untrusted server.
package skillhead

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The limits of a head. Usual heads have some hundred bytes and three levels;
// larger ones are made to cost something.
const (
	maxBytes  = 64 << 10
	maxLines  = 4096
	maxDepth  = 32
	maxValues = 4096 // keys are not counted
	maxKey    = 256  // bytes; libraries stop at 1,024
	maxJSON   = 4 * maxBytes

	maxName        = 64
	maxDescription = 1024 // characters
)

// Head is what a SKILL.md says of its skill.
type Head struct {
	Name, Description string
	// Fields are all fields: text, bool, nil, json.Number, []any and map[string]any.
	Fields map[string]any
}

// Read reads the head of the SKILL.md whose bytes are file. Lines end with a line
// feed, or, if carriage is set, with a carriage return before it: servers make
// entries of files with only line feeds, as not every program that reads a head
// knows of another end, and clients take what servers of others have made.
func Read(file []byte, carriage bool) (*Head, error) {
	text, err := Split(file, carriage)
	if err != nil {
		return nil, err
	}
	fields, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return Of(fields)
}

// Decode reads the head of a skill that is JSON, as entries of servers have it: of
// as many values and as deep as one that is YAML. They are counted before anything
// is made of them.
func Decode(text []byte) (*Head, error) {
	if len(text) > maxJSON {
		return nil, fmt.Errorf("it must be an object of at most %d KiB", maxJSON>>10)
	}
	if err := countJSON(text); err != nil {
		return nil, err
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return nil, errors.New("it must be an object")
	}
	return Of(fields)
}

// countJSON counts the values of JSON text, without the names of members, and how deep
// they are.
func countJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	var objects []bool // of each object or list that is open, whether it is an object
	within := func() bool { return len(objects) > 0 && objects[len(objects)-1] }
	for values, name := 0, false; ; {
		token, err := dec.Token()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return errors.New("it must be an object")
		case token == json.Delim('}') || token == json.Delim(']'):
			objects = objects[:len(objects)-1]
			name = within()
			continue
		case name:
			name = false
			continue
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			objects = append(objects, token == json.Delim('{'))
		}
		name = within()
		if values++; values > maxValues+1 || len(objects) > maxDepth { // one is the head itself
			return fmt.Errorf("it has more than %d values, or is more than %d levels deep", maxValues, maxDepth)
		}
	}
}

// Of returns the head that has fields, of which name and description are checked:
// they reach people and models before anything of the skill was verified. The caller
// must not change fields any more.
func Of(fields map[string]any) (*Head, error) {
	h := &Head{Fields: fields}
	var ok bool
	if h.Name, ok = fields["name"].(string); !ok || !ValidName(h.Name) {
		return nil, errors.New("name must be text of 1 to 64 letters a-z, digits and single hyphens, which neither begin nor end it")
	}
	h.Description, ok = fields["description"].(string)
	if n := utf8.RuneCountInString(h.Description); !ok || n == 0 || n > maxDescription {
		return nil, fmt.Errorf("description must be text of 1 to %d characters", maxDescription)
	}
	if strings.ContainsFunc(h.Description, unfit) {
		return nil, errors.New("description must have no control characters, no invisible ones, and none that change the direction of text")
	}
	return h, nil
}

// unfit tells characters that a description must not have, since it is shown to
// people and models before anything else of a skill is.
func unfit(r rune) bool {
	switch {
	case r == '\n':
		return false // text below | has them
	case r < ' ', 0x7f <= r && r < 0xa0:
		return true
	case r == 0x61c, 0x200e <= r && r <= 0x200f, 0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return true // marks, embeddings and isolates of bidirectional text, and ends of lines
	case r == 0xfe0f, r == 0x200c, r == 0x200d:
		return false // of emoji, and of scripts that join letters
	}
	// Characters that are invisible to people but visible to models: soft hyphens,
	// spaces without width, selectors of variants, and tags.
	return r == 0xad || r == 0x200b || 0x2060 <= r && r <= 0x2064 || r == 0x3164 || r == 0xfeff || 0xfe00 <= r && r <= 0xfe0f || 0xe0000 <= r && r <= 0xe01ef
}

// ValidName reports whether name can be that of a skill, and of its folder: by the
// rule of the Agent Skills format, in ASCII, so that it is a part of a URI and of a
// path as it stands, and looks like no other name.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName || strings.Contains(name, "--") || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Split returns the head of a SKILL.md, without the lines of dashes around it and
// with the last line feed. Programs find its end by patterns of their own, so that
// it begins with the first byte and has no other line that one of them could take
// for its end.
func Split(file []byte, carriage bool) (string, error) {
	text := string(file[:min(len(file), maxBytes+16)]) // the head, and both lines of dashes
	if carriage {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", errors.New(`it must begin with a line "---" that ends with a line feed, without a byte order mark or blanks`)
	}
	end := 0
	for number := 2; ; number++ {
		line, _, whole := strings.Cut(rest[end:], "\n")
		switch {
		case !whole:
			return "", fmt.Errorf(`the head has no end within %d bytes: a line "---" that ends with a line feed`, maxBytes)
		case line == "---":
			return rest[:end], nil
		case marker(line):
			return "", fmt.Errorf("line %d: %.20q could be taken for the end of the head; leave it out", number, line)
		}
		end += len(line) + 1
	}
}

// marker reports whether a line could be taken for the end of a head: by YAML, for
// which it would begin or end a document, by programs that look for a line that has
// nothing else but blanks, and by those that look for three dashes behind a line
// feed.
func marker(line string) bool {
	for _, mark := range []string{"---", "..."} {
		if strings.TrimSpace(line) == mark || strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// Equal reports whether two heads, or parts of them, say the same. Numbers are
// equal by value, however they are written: a server in another language makes 1 of
// the 1.0 in a head, and has not changed it. All else is equal only if it is of one
// kind: the text "1" is not a number, and null is not a field that is missing.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key := range a {
			other, there := b[key]
			if !there || !Equal(a[key], other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case json.Number, []any, map[string]any:
		return false
	}
	return a == b
}

// sameNumber compares as floats, which tell all numbers apart that a head can have.
func sameNumber(a, b json.Number) bool {
	x, err := a.Float64()
	if err != nil {
		return false
	}
	y, err := b.Float64()
	return err == nil && x == y
}
