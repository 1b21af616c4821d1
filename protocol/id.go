package protocol

import (
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ID is the id of a JSON-RPC request: the JSON text of a string or an integer,
// exactly as it was received, so that the answer carries the same bytes. It has
// at most MaxID bytes. The zero ID means that a message has none. IDs are
// comparable with ==, and 1 differs from "1"; two spellings of the same string
// differ, too.
type ID struct{ text string }

// StringID returns the id with that string value.
func StringID(s string) ID { return ID{string(jsonx.AppendString(nil, s))} }

// IntID returns the id with that integer value.
func IntID(n int64) ID { return ID{fmt.Sprintf("%d", n)} }

// RawID returns the id whose JSON text is raw. It fails unless raw is a single
// JSON string or integer of at most MaxID bytes.
func RawID(raw []byte) (ID, error) {
	s := jsonx.Scanner{Buf: raw}
	id, err := scanID(&s)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return ID{}, fmt.Errorf("id: %w", err)
	}
	return id, nil
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

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

// UnmarshalJSON implements [json.Unmarshaler]. Unlike encoding/json it insists
// on what the schema requires: a known role, a model, which may be the empty
// string, and content that can be parsed. On an error r is unchanged.
func (id *ID) UnmarshalJSON(raw []byte) (err error) {
	*id, err = RawID(raw)
	return err
}

// MaxID is how many bytes the JSON text of an id may have, and that of a
// progress token: the other side keeps them, and repeats them in what it sends.
const MaxID = 1 << 10

// errLongID is the error of an id that is longer.
var errLongID = fmt.Errorf("is longer than %d bytes", MaxID)

// scanID reads an id. Its error goes on where the name of the id ends.
func scanID(s *jsonx.Scanner) (ID, error) {
	kind := s.Peek()
	switch kind {
	case jsonx.String:
		start := s.Pos
		if _, err := s.Str(); err != nil {
			return ID{}, err
		}
		if s.Pos-start > MaxID {
			return ID{}, errLongID
		}
		return ID{string(s.Buf[start:s.Pos])}, nil
	case jsonx.Number:
		text, integer, err := s.Number()
		switch {
		case err != nil:
			return ID{}, err
		case len(text) > MaxID:
			return ID{}, errLongID
		case !integer:
			return ID{}, fmt.Errorf("must be a string or an integer, got %s", text)
		}
		return ID{string(text)}, nil
	default:
		return ID{}, fmt.Errorf("must be a string or an integer, got %s", kind)
	}
}
