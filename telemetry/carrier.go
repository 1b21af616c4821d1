package telemetry

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// carrier is what a message says of its trace, for a propagator to read: the fields
// that the propagator asks for, as far as they are there. It is made with room for
// one field: clients without a tracestate send no more.
type carrier struct {
	fields []field
	room   [1]field
}

// field is one of them.
type field struct{ name, value string }

// Bounds of what is read, in bytes: of _meta, which is not looked into if it is
// longer, and of one field, which then counts as absent.
const (
	maxMeta  = 64 << 10
	maxField = 8 << 10 // baggage, as the W3C has it
)

// longest returns how long a field may be.
func longest(name string) int {
	switch name {
	case "traceparent":
		return 128
	case "tracestate":
		return 512
	}
	return maxField
}

// added returns c, or a new one, with a field more unless that is empty or too long.
func (c *carrier) added(name, value string) *carrier {
	if value == "" || len(value) > longest(name) {
		return c
	}
	if c == nil {
		c = &carrier{}
		c.fields = c.room[:0]
	}
	c.fields = append(c.fields, field{name, value})
	return c
}

// fromMeta returns the fields that are members of the JSON object meta and texts; nil
// if there are none.
func fromMeta(meta []byte, fields []string) (c *carrier) {
	if len(meta) > maxMeta || !slices.ContainsFunc(fields, func(name string) bool { return bytes.Contains(meta, []byte(name)) }) {
		return nil
	}
	for name, value := range members(meta) {
		if i := slices.IndexFunc(fields, func(field string) bool { return field == string(name) }); i >= 0 && value[0] == '"' {
			c = c.added(fields[i], unquote(value))
		}
	}
	return c
}

// fromHeader returns the fields that are headers; nil if there are none.
func fromHeader(h http.Header, fields []string) (c *carrier) {
	for _, name := range fields {
		if values := h.Values(name); len(values) > 0 {
			c = c.added(name, strings.Join(values, ","))
		}
	}
	return c
}

// Get implements propagation.TextMapCarrier. A nil carrier has nothing.
func (c *carrier) Get(name string) string {
	if c == nil {
		return ""
	}
	for _, f := range c.fields {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// Set implements propagation.TextMapCarrier. Nothing is written to a message that
// has come.
func (c *carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string {
	var names []string
	for _, f := range c.fields {
		names = append(names, f.name)
	}
	return names
}

// members yields the members of an object: the name as it is between its quotes, and
// the text of the value from its first byte on, to the end of the object unless it
// is a string. text is valid JSON, since a message that is not has been refused; of
// anything else some members may be missing.
func members(text []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		depth := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			case '"':
				end := closing(text, i)
				if end < 0 {
					return
				}
				name := text[i+1 : end]
				i = end
				if depth != 1 {
					continue
				}
				rest := bytes.TrimLeft(text[end+1:], " \t\r\n")
				if len(rest) == 0 || rest[0] != ':' {
					continue // a value
				}
				value := bytes.TrimLeft(rest[1:], " \t\r\n")
				if len(value) == 0 {
					return
				}
				if value[0] == '"' {
					end := closing(value, 0)
					if end < 0 {
						return
					}
					value = value[:end+1]
				}
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// closing returns where the string ends that begins at text[start]; -1 if it does
// not.
func closing(text []byte, start int) int {
	for i := start + 1; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// unquote returns the value of a JSON string, "" for another value.
func unquote(text []byte) string {
	if inner := text[1 : len(text)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var value string
	if jsonx.Unmarshal(text, &value) != nil {
		return ""
	}
	return value
}
