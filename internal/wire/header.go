package wire

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ErrAnswered is returned when a message that belongs to a request is sent
// after the request has been answered.
var ErrAnswered = errors.New("mcp: the request is answered already")

// ErrInputRequired is the error of a question that the client has not answered
// yet, in modern revisions; see mcp.ErrInputRequired.
var ErrInputRequired = errors.New("mcp: the client has to answer first")

// ErrNoStream is returned when a message is sent ahead of an answer to a client
// that accepts a single JSON answer and no event stream.
var ErrNoStream = errors.New("mcp: the client takes no event stream, so nothing can be sent ahead of the answer")

const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// DecodeHeaderValue returns the text that the value of a mirrored HTTP header
// stands for: the value itself, or what is encoded in base64 between =?base64?
// and ?=. ok is false if the base64 is invalid or if the value has characters
// that a header must not have (basic/transports/streamable-http of 2026-07-28,
// "Value Encoding").
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

// EncodeHeaderValue returns the value of a mirrored HTTP header for text. It
// encodes text in base64 if a header cannot carry it as it is: if it is empty,
// begins or ends with space, has characters other than printable ASCII and tab,
// or looks like an encoded value. DecodeHeaderValue reverses it.
func EncodeHeaderValue(text string) string {
	decoded, ok := DecodeHeaderValue(text)
	if ok && decoded == text && strings.TrimSpace(text) == text && text != "" {
		return text
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(text)) + sentinelClose
}

// EqualsHeader reports whether raw, the JSON text of an argument, agrees with
// value, a decoded header. Strings must be equal, numbers equal by value ("1.0"
// agrees with 1), booleans equal by name. Other kinds of value are compared as
// text.
func EqualsHeader(raw []byte, value string) bool {
	s := jsonx.Scanner{Buf: raw}
	switch s.Peek() {
	case jsonx.String:
		text, err := s.Str()
		return err == nil && string(text) == value
	case jsonx.Number:
		n := jsonx.Scanner{Buf: []byte(value)}
		text, _, err := n.Number()
		return err == nil && len(text) == len(value) && string(jsonx.Canonical(raw)) == string(jsonx.Canonical(text))
	}
	return string(raw) == value
}
