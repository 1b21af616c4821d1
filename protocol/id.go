package protocol

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ID is the id of a JSON-RPC request: the JSON text of a string or an integer,
// exactly as it was received, so that the answer carries the same bytes. A peer's
// has at most 1 KiB. The zero ID means that a message has none. IDs are comparable
// with == as they are written; Canonical compares them by value.
type ID struct{ text string }

// NewID returns the id with that value.
func NewID[T int | int64 | string](value T) ID {
	switch v := any(value).(type) {
	case int:
		return ID{strconv.Itoa(v)}
	case int64:
		return ID{strconv.FormatInt(v, 10)}
	case string:
		return ID{string(jsonx.AppendString(nil, v))}
	}
	return ID{} // there are no other types
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Canonical returns the one spelling of all ids that are the same: 1, 1.0 and 10e-1 are,
// and so are "a/b" and "a\/b", but not 1 and "1". It is what to find a request by.
func (id ID) Canonical() ID {
	switch {
	case id.text == "":
	case id.text[0] == '"':
		if strings.IndexByte(id.text, '\\') >= 0 {
			s := jsonx.Scanner{Buf: []byte(id.text)}
			value, _ := s.Str() // it was checked
			return ID{string(jsonx.AppendStringBytes(nil, value))}
		}
	case id.text[0] == '-' || len(id.text) > 19 || strings.ContainsAny(id.text, ".eE"):
		return ID{string(jsonx.Canonical([]byte(id.text)))}
	}
	return id
}

// String returns the JSON text of the id, for messages to people; "" for the
// zero ID.
func (id ID) String() string { return id.text }

// MarshalJSON implements json.Marshaler; the zero ID is null.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.text == "" {
		return []byte("null"), nil
	}
	return []byte(id.text), nil
}

// UnmarshalJSON implements json.Unmarshaler. It fails unless text is a string or
// an integer of at most 1 KiB; id is then zero.
func (id *ID) UnmarshalJSON(text []byte) (err error) {
	if *id, err = parseID(text); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	return nil
}

// parseID returns the id whose whole JSON text is text.
func parseID(text []byte) (ID, error) {
	s := jsonx.Scanner{Buf: text}
	id, err := scanID(&s)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return ID{}, err
	}
	return id, nil
}

// maxID is how many bytes the JSON text of an id may have, and that of a
// progress token: the other side keeps them, and repeats them in what it sends.
const maxID = 1 << 10

// errLongID is the error of an id that is longer.
var errLongID = fmt.Errorf("is longer than %d bytes", maxID)

// scanID reads an id. Its error is a text that follows the name of the id.
func scanID(s *jsonx.Scanner) (ID, error) {
	kind := s.Peek()
	switch kind {
	case jsonx.String:
		start := s.Pos
		if _, err := s.Str(); err != nil {
			return ID{}, err
		}
		if s.Pos-start > maxID {
			return ID{}, errLongID
		}
		return ID{string(s.Buf[start:s.Pos])}, nil
	case jsonx.Number:
		text, err := scanInteger(s)
		if err == nil && len(text) > maxID {
			err = errLongID
		}
		if err != nil {
			return ID{}, err
		}
		return ID{string(text)}, nil
	default:
		return ID{}, fmt.Errorf("must be a string or an integer, got %s", kind)
	}
}

// scanInteger reads a number whose value is an integer, in any spelling, and returns
// its text. Its error is a text that follows the name of the number.
func scanInteger(s *jsonx.Scanner) ([]byte, error) {
	text, plain, err := s.Number()
	if err != nil || plain {
		return text, err
	}
	if _, form := jsonx.Integer(text, 0); form == jsonx.Fraction {
		return nil, fmt.Errorf("must be a string or an integer, got %.100s", text)
	}
	return text, nil
}
