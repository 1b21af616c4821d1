package skillhead

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// line is one line of a head. The reader changes it while it goes through: behind
// a "- " the rest of a line is a line of its own, that is indented further.
type line struct {
	indent int
	text   string // behind the indentation, with blanks at its end
}

// reader reads a head line by line. It goes forward only: the kind of a line follows
// from its indentation, by how it begins, and by whether there is a colon in it, so
// that no line is read more than a few times, and time is linear in the head.
//
// Its methods leave r.at at the line behind what they have read, and at the line
// with the fault if there is one. indent is how far the field, or the dash, is
// indented that a value belongs to: the value's further lines have more.
type reader struct {
	lines  []line
	at     int // the line that is next
	values int
}

// fault is an error in a line, reported once to the caller of Parse.
type fault struct {
	line int
	text string
}

func (f *fault) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.text) }

// Parse returns the fields of a head, which begins in line 2 of its file.
func Parse(head string) (map[string]any, error) {
	if len(head) > maxBytes {
		return nil, fmt.Errorf("the head has %d bytes, more than %d", len(head), maxBytes)
	}
	r := &reader{}
	if n := strings.Count(head, "\n"); n > maxLines {
		return nil, fmt.Errorf("the head has %d lines, more than %d", n, maxLines)
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		rest := strings.TrimLeft(text, " ")
		r.lines = append(r.lines, line{len(text) - len(rest), rest})
		if err := characters(text); err != "" {
			r.at = len(r.lines) - 1
			return nil, r.fault("%s", err)
		}
	}
	if !r.next() {
		return nil, r.fault("the head is empty; it needs name and description")
	}
	if r.lines[r.at].indent > 0 {
		return nil, r.fault("the first field is indented; begin at the left")
	}
	fields, err := r.mapping(0, 1)
	if err != nil {
		return nil, err
	}
	if r.next() {
		return nil, r.fault("%.40q is neither a field nor a part of the one before it", r.lines[r.at].text)
	}
	return fields, nil
}

// characters says which character of a line must not be there; "" if there is none
// of that kind. Some of these end lines in YAML 1.1 and not in 1.2, a byte order
// mark is skipped by some, and others are not allowed in YAML at all. Tabs are
// allowed in places about which libraries differ.
func characters(text string) string {
	if !utf8.ValidString(text) {
		return "it is not UTF-8"
	}
	for _, c := range text {
		switch {
		case c == '\t':
			return "it has a tab; use blanks"
		case c < ' ', 0x7f <= c && c < 0xa0, c == 0x2028, c == 0x2029, c == 0xfeff, c == 0xfffe, c == 0xffff:
			return fmt.Sprintf("it has the character %U; leave it out", c)
		}
	}
	return ""
}

// fault returns an error in the line that is next.
func (r *reader) fault(format string, args ...any) error {
	return &fault{min(r.at, max(len(r.lines)-1, 0)) + 2, fmt.Sprintf(format, args...)}
}

// next goes to the next line that says something, and reports whether there is
// one.
func (r *reader) next() bool {
	for ; r.at < len(r.lines); r.at++ {
		if text := r.lines[r.at].text; text != "" && text[0] != '#' {
			return true
		}
	}
	return false
}

// count notes one more value, before anything is made of it.
func (r *reader) count(depth int) error {
	if r.values++; r.values > maxValues {
		return r.fault("the head has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return r.fault("the head is deeper than %d levels", maxDepth)
	}
	return nil
}

// mapping reads the fields that stand at indent. It ends before a line that is
// indented less, which belongs to a value around it, or to nothing.
func (r *reader) mapping(indent, depth int) (map[string]any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	for r.next() && r.lines[r.at].indent == indent {
		text := r.lines[r.at].text
		key, rest, err := r.key(text)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[key]; twice {
			return nil, r.fault("the field %.40q is there twice", key)
		}
		if fields[key], err = r.value(rest, indent, true, depth+1); err != nil {
			return nil, err
		}
	}
	if r.at < len(r.lines) && r.lines[r.at].indent > indent {
		return nil, r.fault("it is indented further than the field before it, to which it does not belong")
	}
	return fields, nil
}

// key divides the line of a field into its key and what is behind the colon. A key
// is text, by the rules for plain text or in quotes: on: and 1: are not text to
// some programs, and JSON has no other keys.
func (r *reader) key(text string) (key, rest string, err error) {
	if text[0] == '"' || text[0] == '\'' {
		f := &flow{r: r, text: text}
		if key, err = f.quoted(); err != nil {
			return "", "", err
		}
		text = text[f.at:]
		if rest, ok := strings.CutPrefix(text, ":"); ok && (rest == "" || rest[0] == ' ') {
			return key, rest, r.checkKey(key)
		}
		return "", "", r.fault("behind a key in quotes there must be a colon and a blank")
	}
	at := colon(text)
	if at < 0 {
		return "", "", r.fault(`%.40q is no field, which is a key, a colon and a blank, as in "name: x"`, text)
	}
	key = strings.TrimRight(text[:at], " ")
	if err := r.plainAt(key, true); err != nil {
		return "", "", err
	}
	if _, err := plain(key); err != nil {
		return "", "", r.fault("the key %v", err)
	}
	switch key {
	case "true", "false", "null":
		return "", "", r.fault("the key %q is no text; put it in quotes", key)
	}
	if number(key) {
		return "", "", r.fault("the key %q is no text; put it in quotes", key)
	}
	return key, text[at+1:], r.checkKey(key)
}

// checkKey returns an error for a key that is too long, or that means more to a
// program than other keys do.
func (r *reader) checkKey(key string) error {
	if key == "" || len(key) > maxKey || key == "__proto__" || key == "<<" {
		return r.fault("%.40q cannot be a key; a key has 1 to %d bytes", key, maxKey)
	}
	return nil
}

// colon returns where in a line the colon behind a key is; -1 if there is none.
func colon(text string) int {
	for i := range len(text) {
		switch {
		case text[i] == ':' && (i+1 == len(text) || text[i+1] == ' '):
			return i
		case text[i] == '#' && i > 0 && text[i-1] == ' ':
			return -1
		}
	}
	return -1
}

// value reads the value of a field, or an item of a sequence, at indent: rest, of
// the line that is next, and what belongs to it of the lines below. Where nothing
// belongs to it, it is null. The items of a field's sequence may stand as far left as
// the field; those of an item's may not.
func (r *reader) value(rest string, indent int, field bool, depth int) (any, error) {
	rest = strings.TrimLeft(rest, " ")
	if rest != "" && rest[0] != '#' {
		return r.scalar(rest, indent, depth)
	}
	r.at++
	if !r.next() {
		return nil, r.count(depth)
	}
	l := r.lines[r.at]
	switch {
	case l.indent > indent && item(l.text), field && l.indent == indent && item(l.text):
		return r.sequence(l.indent, depth)
	case l.indent <= indent:
		return nil, r.count(depth)
	case colon(l.text) >= 0 && l.text[0] != '[' && l.text[0] != '{' && !r.quotedText(l.text):
		return r.mapping(l.indent, depth)
	}
	return r.scalar(l.text, indent, depth)
}

// quotedText reports whether a line begins with text in quotes that is not a
// key.
func (r *reader) quotedText(text string) bool {
	if text[0] != '"' && text[0] != '\'' {
		return false
	}
	f := &flow{r: r, text: text}
	if _, err := f.quoted(); err != nil {
		return true // it continues in the next line, or scalar returns the error
	}
	return !strings.HasPrefix(text[f.at:], ":")
}

// item reports whether a line is an item of a sequence.
func item(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

// sequence reads the items that stand at indent. The text after the dash is read
// like a separate line.
func (r *reader) sequence(indent, depth int) ([]any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	items := []any{}
	for r.next() && r.lines[r.at].indent == indent && item(r.lines[r.at].text) {
		behind := r.lines[r.at].text[1:]
		text := strings.TrimLeft(behind, " ")
		var v any
		var err error
		switch {
		case item(text):
			return nil, r.fault("a sequence begins within the line of another; write it on the next line")
		case text != "" && text[0] != '#' && text[0] != '[' && text[0] != '{' && colon(text) >= 0 && !r.quotedText(text):
			r.lines[r.at] = line{indent + 1 + len(behind) - len(text), text}
			v, err = r.mapping(r.lines[r.at].indent, depth+1)
		default:
			v, err = r.value(text, indent, false, depth+1)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	if r.at < len(r.lines) && r.lines[r.at].indent > indent {
		return nil, r.fault("it is indented further than the item before it, to which it does not belong")
	}
	return items, nil
}

// scalar reads text that begins with rest in the line that is next, or a flow
// mapping or sequence. Its further lines are indented further than indent.
func (r *reader) scalar(rest string, indent, depth int) (any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	switch rest[0] {
	case '|', '>':
		return r.block(rest, indent)
	case '"', '\'', '[', '{':
		f := &flow{r: r, text: rest, indent: indent}
		v, err := f.value(depth)
		if err != nil {
			return nil, err
		}
		return v, f.end()
	}
	return r.text(rest, indent)
}

// plainAt returns why text cannot be without quotes, for how it begins or for a colon
// in it. first is false for a line that continues from the one above, where signs
// mean nothing any more: but what looks like an item or a comment there was hardly
// meant as text.
func (r *reader) plainAt(text string, first bool) error {
	if text == "" {
		return r.fault("there is a colon without a key")
	}
	c := text[0]
	switch {
	case !first && c == '#', !first && (item(text) || c == '?' || c == ':'):
		return r.fault("text cannot go on with %.20q in a new line; put it in quotes, or below |", text)
	case !first:
	case strings.IndexByte("&*!", c) >= 0:
		return r.fault("anchors, aliases and tags cannot be used; if %.40q is text, put it in quotes", text)
	case strings.IndexByte("?:,[]{}#|>@`%\"'", c) >= 0, item(text):
		return r.fault("text cannot begin with %q; put it in quotes", c)
	}
	if colon(text) >= 0 {
		return r.fault("text cannot have a colon with a blank behind it, nor end with one; put it in quotes")
	}
	return nil
}

// uncomment returns text without a comment at its end, and whether there was one.
func uncomment(text string) (string, bool) {
	before, _, found := strings.Cut(text, " #")
	return strings.TrimRight(before, " "), found
}

// text reads plain text, which may continue in further lines: one line feed is a
// blank, and each one more is a line feed. A comment ends it; that a line behind one
// could continue with it is read differently. All of its lines together decide its
// value.
func (r *reader) text(rest string, indent int) (any, error) {
	var all strings.Builder
	feeds := 0
	for first := true; ; first = false {
		part, comment := uncomment(rest)
		if err := r.plainAt(part, first); err != nil {
			return nil, err
		}
		all.WriteString(fold(feeds))
		all.WriteString(part)
		r.at++
		if comment {
			break
		}
		feeds = 1
		for r.at < len(r.lines) && r.lines[r.at].text == "" {
			feeds++
			r.at++
		}
		if r.at == len(r.lines) || r.lines[r.at].indent <= indent || r.lines[r.at].text[0] == '#' {
			break
		}
		rest = r.lines[r.at].text
	}
	v, err := plain(all.String())
	if err != nil {
		r.at--
		return nil, r.fault("%v", err)
	}
	return v, nil
}

// fold returns what line feeds between two lines of text stand for.
func fold(feeds int) string {
	if feeds == 1 {
		return " "
	}
	return strings.Repeat("\n", max(feeds-1, 0))
}

// block reads the lines below | or >. The first of them says how far they are
// indented. With a - behind the sign the text has no line feed at its end, and else
// one; + and digits, which would say more, are refused: what they keep of the last
// lines depends on where a program has cut the head.
func (r *reader) block(rest string, indent int) (any, error) {
	folded := rest[0] == '>'
	strip := rest[1:] == "-"
	if !strip && strings.TrimRight(rest[1:], " ") != "" {
		return nil, r.fault("behind %q there can be - and nothing else", rest[0])
	}
	var lines []string // "" is an empty one
	own := 0
	for r.at++; r.at < len(r.lines); r.at++ {
		l := r.lines[r.at]
		if l.text == "" {
			// Beyond the indentation blanks are text, and before it is known an error to
			// some.
			if l.indent > own && (own > 0 || l.indent > indent) {
				return nil, r.fault("the line has nothing but blanks; take them out")
			}
			lines = append(lines, "")
			continue
		}
		if own == 0 {
			own = l.indent
		}
		if l.indent <= indent || l.indent < own {
			break
		}
		lines = append(lines, strings.Repeat(" ", l.indent-own)+l.text)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	text := strings.Join(lines, "\n")
	if folded {
		text = foldLines(lines)
	}
	if !strip && len(lines) > 0 {
		text += "\n"
	}
	return text, nil
}

// foldLines joins the lines of folded text, and keeps the blanks at their ends. A line
// that begins with a blank keeps the line feeds around it, as a list or a table in the
// text would have them.
func foldLines(lines []string) string {
	var all strings.Builder
	feeds, before, begun := 0, false, false
	for _, l := range lines {
		if l == "" {
			feeds++
			continue
		}
		indented := l[0] == ' '
		switch {
		case !begun, before || indented:
			all.WriteString(strings.Repeat("\n", feeds))
		default:
			all.WriteString(fold(feeds))
		}
		all.WriteString(l)
		feeds, before, begun = 1, indented, true
	}
	return all.String()
}
