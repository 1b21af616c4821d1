package skillhead

import (
	"fmt"
	"strconv"
	"strings"
)

// flow reads what is in quotes or brackets, character by character. It goes from
// line to line with its reader, whose next line is the one that flow is in. Unlike
// YAML, it takes no comments within brackets, no pairs in sequences, and no plain
// text of several lines there.
type flow struct {
	r      *reader
	text   string // the line, or what is left of it
	at     int    // where in it the next character is
	indent int    // that of the field; further lines have more
}

// value reads one value.
func (f *flow) value(depth int) (any, error) {
	switch f.text[f.at] {
	case '"', '\'':
		return f.lines()
	case '[':
		return f.sequence(depth)
	case '{':
		return f.mapping(depth)
	}
	text, err := f.plain()
	if err != nil {
		return nil, err
	}
	v, err := plain(text)
	if err != nil {
		return nil, f.r.fault("%v", err)
	}
	return v, nil
}

// end checks that nothing is behind the value but a comment, and goes to the next
// line. A comment begins with a blank before its sign; without it some libraries take
// it for an error.
func (f *flow) end() error {
	rest := f.text[f.at:]
	if text, comment := uncomment(rest); text != "" || comment && rest[0] != ' ' {
		return f.r.fault("%.40q stands behind the end of the value", rest)
	}
	f.r.at++
	return nil
}

// more goes to the next line. It must be indented further than the field.
func (f *flow) more() error {
	f.r.at++
	if f.r.at == len(f.r.lines) {
		return f.r.fault("what begins with a quote or a bracket does not end")
	}
	l := f.r.lines[f.r.at]
	if l.text != "" && (l.indent <= f.indent || l.text[0] == '#') {
		return f.r.fault("what begins with a quote or a bracket does not end before this line")
	}
	f.text, f.at = l.text, 0
	return nil
}

// blanks goes to the next character that is not a blank, in further lines if
// necessary. It is called within brackets only, where a line feed is a blank as any
// other.
func (f *flow) blanks() error {
	for {
		for f.at < len(f.text) && f.text[f.at] == ' ' {
			f.at++
		}
		if f.at < len(f.text) {
			if f.text[f.at] == '#' {
				return f.r.fault("there can be no comment within brackets")
			}
			return nil
		}
		if err := f.more(); err != nil {
			return err
		}
	}
}

// open begins a sequence or mapping: it counts it and passes its bracket.
func (f *flow) open(depth int) error {
	if f.r.values++; f.r.values > maxValues || depth > maxDepth {
		return f.r.fault("the head has more than %d values, or is deeper than %d levels", maxValues, maxDepth)
	}
	f.at++
	return f.blanks()
}

// comma passes what is between two items, and reports whether the bracket closes.
func (f *flow) comma(close byte) (done bool, err error) {
	if err := f.blanks(); err != nil {
		return false, err
	}
	c := f.text[f.at]
	if c != ',' && c != close {
		return false, f.r.fault("%.20q stands where a comma or %q must be", f.text[f.at:], close)
	}
	f.at++
	if c == close {
		return true, nil
	}
	if err := f.blanks(); err != nil {
		return false, err
	}
	if f.text[f.at] == ',' {
		return false, f.r.fault("there is nothing between two commas")
	}
	if f.text[f.at] == close { // a comma behind the last item
		f.at++
		return true, nil
	}
	return false, nil
}

// sequence reads a sequence in brackets.
func (f *flow) sequence(depth int) (any, error) {
	if err := f.open(depth); err != nil {
		return nil, err
	}
	items := []any{}
	if f.text[f.at] == ']' {
		f.at++
		return items, nil
	}
	for {
		if err := f.r.count(depth); err != nil {
			return nil, err
		}
		v, err := f.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if done, err := f.comma(']'); done || err != nil {
			return items, err
		}
	}
}

// mapping reads a mapping in braces. Each key has a value.
func (f *flow) mapping(depth int) (any, error) {
	if err := f.open(depth); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if f.text[f.at] == '}' {
		f.at++
		return fields, nil
	}
	for {
		if err := f.r.count(depth); err != nil {
			return nil, err
		}
		key, rest, err := f.r.key(f.text[f.at:])
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(key, ",[]{}?") {
			return nil, f.r.fault("the key %.40q cannot be in braces", key)
		}
		if _, twice := fields[key]; twice {
			return nil, f.r.fault("the field %.40q is there twice", key)
		}
		f.at = len(f.text) - len(rest)
		if err := f.blanks(); err != nil {
			return nil, err
		}
		if strings.IndexByte(",}", f.text[f.at]) >= 0 {
			return nil, f.r.fault("the key %.40q has no value; write null", key)
		}
		if fields[key], err = f.value(depth + 1); err != nil {
			return nil, err
		}
		if done, err := f.comma('}'); done || err != nil {
			return fields, err
		}
	}
}

// plain reads plain text within brackets, which ends in its line.
func (f *flow) plain() (string, error) {
	rest := f.text[f.at:]
	end := strings.IndexAny(rest, ",[]{}?")
	if end < 0 || rest[end] != ',' && rest[end] != ']' && rest[end] != '}' {
		return "", f.r.fault("text without quotes cannot end in another line, nor have one of [{?; put it in quotes")
	}
	text := strings.TrimRight(rest[:end], " ")
	if text == "" {
		return "", f.r.fault("there is nothing where a value must be")
	}
	if _, comment := uncomment(text); comment || strings.HasSuffix(text, ":") {
		return "", f.r.fault("%.40q cannot be without quotes within brackets", text)
	}
	f.at += end
	return text, f.r.plainAt(text, true)
}

// quoted reads text in quotes that ends in its line.
func (f *flow) quoted() (string, error) {
	text, done, err := f.part(f.text[f.at])
	if err == nil && !done {
		err = f.r.fault("text in quotes does not end in its line")
	}
	return text, err
}

// lines reads text in quotes, which may continue in further lines, as plain text
// does: the blanks around a line feed go, one line feed is a blank, and each
// further one is a line feed.
func (f *flow) lines() (string, error) {
	quote := f.text[f.at]
	var all strings.Builder
	for feeds := 0; ; {
		text, done, err := f.part(quote)
		if err != nil {
			return "", err
		}
		if !done {
			text = strings.TrimRight(text, " ")
		}
		if text != "" || done {
			all.WriteString(fold(feeds))
			feeds = 0
		}
		all.WriteString(text)
		if done {
			return all.String(), nil
		}
		for {
			if err := f.more(); err != nil {
				return "", err
			}
			feeds++
			if f.text != "" {
				break
			}
		}
		f.at = -1 // part begins behind the quote
	}
}

// part reads text in quotes up to the quote that ends it, or to the end of the
// line. It begins behind a quote, or at the start of a line. Within single quotes a
// quote is written twice, and a backslash is one; within double quotes a backslash
// begins an escape.
func (f *flow) part(quote byte) (text string, done bool, err error) {
	var b strings.Builder
	for f.at++; f.at < len(f.text); f.at++ {
		switch c := f.text[f.at]; {
		case c == quote && quote == '\'' && strings.HasPrefix(f.text[f.at+1:], "'"):
			b.WriteByte(c)
			f.at++
		case c == quote:
			f.at++
			return b.String(), true, nil
		case c == '\\' && quote == '"':
			escaped, err := f.escape()
			if err != nil {
				return "", false, err
			}
			b.WriteString(escaped)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), false, nil
}

// escape reads what a backslash begins, except for its last byte. Of the escapes
// of YAML these are the ones that JSON has, too; half of a pair is nothing in
// UTF-8.
func (f *flow) escape() (string, error) {
	f.at++
	rest := f.text[f.at:]
	if rest == "" {
		return "", f.r.fault("a line cannot end with a backslash")
	}
	switch rest[0] {
	case '"', '\\', '/':
		return rest[:1], nil
	case 'n':
		return "\n", nil
	case 't':
		return "\t", nil
	case 'u':
		if len(rest) < 5 {
			break
		}
		code, err := strconv.ParseUint(rest[1:5], 16, 16)
		if err != nil || code < ' ' || 0xd800 <= code && code < 0xe000 {
			break
		}
		f.at += 4
		return string(rune(code)), nil
	}
	return "", f.r.fault("%s cannot be used; there are \\\" \\\\ \\/ \\n \\t and \\u with four digits, but for control characters and halves of pairs", fmt.Sprintf(`\%.5s`, rest))
}
