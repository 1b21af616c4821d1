package civil

import "fmt"

// ParseError says why a text is not a date or a time of this package. Every
// Parse function and every UnmarshalText returns it, so that a caller can word
// the message in its own way. Its text may reach a language model: it quotes no
// more of Value than it needs.
type ParseError struct {
	Layout string // the form that is read: "2006-01-02"
	Value  string // the text
	// Message says what is wrong and what to write instead. It is "" for a text
	// that does not have the form of Layout at all.
	Message string

	what string // "date"
}

// Error returns the text, cut to 40 bytes, and what is wrong with it.
func (e *ParseError) Error() string {
	value, message := e.Value, e.Message
	if len(value) > 40 {
		value = value[:40] + "…"
	}
	if message == "" {
		message = "must have the form " + e.Layout
	}
	return fmt.Sprintf("%s %q: %s", e.what, value, message)
}
