package protocol

import (
	"encoding/base64"
	"errors"
	"math/big"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ErrAnswered is the error of sending a message that belongs to a request
// after its answer.
var ErrAnswered = errors.New("mcp: the request is answered already")

// HeaderParam is an argument of a tool that is mirrored into the HTTP header
// Mcp-Param-{Name}.
type HeaderParam struct {
	Name string   // the part of the header after Mcp-Param-
	Path []string // member names from the arguments' root to the value
}

// ErrNoStream is the error of sending a message ahead of an answer to a client
// that takes one JSON answer and no more.
var ErrNoStream = errors.New("mcp: the client takes no event stream, so nothing can be sent ahead of the answer")

const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// DecodeHeaderValue returns what the value of a mirrored HTTP header stands
// for: itself, or the text that it encodes between =?base64? and ?=. ok is
// false if it does not decode or has characters that a header value must not
// have (Value Encoding in basic/transports/streamable-http of 2026-07-28).
func DecodeHeaderValue(value string) (text string, ok bool) {
	inner, open := strings.CutPrefix(value, sentinelOpen)
	inner, closed := strings.CutSuffix(inner, sentinelClose)
	if open && closed {
		decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
		return string(decoded), err == nil
	}
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// EncodeHeaderValue returns text as the value of a mirrored HTTP header,
// encoded if it must be.
func EncodeHeaderValue(text string) string {
	decoded, ok := DecodeHeaderValue(text)
	if ok && decoded == text && strings.TrimSpace(text) == text && text != "" {
		return text
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(text)) + sentinelClose
}

// EqualsHeader tells whether raw, the JSON text of an argument, is what value,
// a decoded header, says: strings as they are, numbers by value, booleans by
// name.
func EqualsHeader(raw []byte, value string) bool {
	s := jsonx.Scanner{Buf: raw}
	switch s.Peek() {
	case jsonx.String:
		text, err := s.Str()
		return err == nil && string(text) == value
	case jsonx.Number:
		return string(raw) == value || sameNumber(string(raw), value)
	}
	return string(raw) == value
}

// sameNumber compares decimal numbers. Long ones and ones with exponents are
// left out: a few bytes could stand for a number that fills the memory.
func sameNumber(a, b string) bool {
	if len(a) > 32 || len(b) > 32 || strings.ContainsAny(a+b, "eE/_xXpP") {
		return false
	}
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// Lookup returns the JSON text at a path of member names inside raw, nil if
// there is none. raw must be text that Scan has accepted.
func Lookup(raw []byte, path []string) []byte {
	for _, name := range path {
		if raw = member(raw, name); raw == nil {
			return nil
		}
	}
	return raw
}

func member(raw []byte, want string) []byte {
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw) + 1}
	if s.Peek() != jsonx.Object {
		return nil
	}
	more, err := s.ObjectStart()
	for more && err == nil {
		name, nameErr := s.Name()
		if nameErr != nil {
			return nil
		}
		found := string(name) == want
		s.Peek()
		start := s.Pos
		s.SkipChecked()
		if found {
			return s.Buf[start:s.Pos]
		}
		more, err = s.ObjectNext()
	}
	return nil
}
