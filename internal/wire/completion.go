package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// MaxCompletions is how many values one completion may have
// (server/utilities/completion).
const MaxCompletions = 100

// The types of protocol.CompletionReference.
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// ParseCompleteParams reads the params of completion/complete and checks that
// the required members are there. An error has CodeInvalidParams and names the
// member.
func ParseCompleteParams(raw []byte) (*protocol.CompleteParams, *protocol.Error) {
	var p protocol.CompleteParams
	if err := jsonx.Unmarshal(raw, &p); err != nil {
		return nil, misfit(err)
	}
	switch {
	case p.Ref.Type != RefPrompt && p.Ref.Type != RefResource:
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.ref.type must be %q or %q, got %q", RefPrompt, RefResource, p.Ref.Type)
	case p.Ref.Type == RefPrompt && p.Ref.Name == "":
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.ref.name is missing: it names the prompt")
	case p.Ref.Type == RefResource && p.Ref.URI == "":
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.ref.uri is missing: it is the URI template")
	case p.Argument.Name == "":
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.argument.name is missing: it names the argument to complete")
	case p.Argument.Value == "" && !there(raw, "argument", "value"):
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.argument.value is missing: it is what the user has typed, or the empty string")
	}
	return &p, nil
}

// there reports whether a member is in an object, at the end of a path, and not
// null.
func there(raw []byte, path ...string) bool {
	value := jsonx.Lookup(raw, path)
	return value != nil && string(value) != "null"
}

// misfit turns an error of encoding/json into one that names the member of the
// params which has the wrong type.
func misfit(err error) *protocol.Error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return protocol.Errorf(protocol.CodeInvalidParams, "params must be an object: %w", err)
	}
	want := "an object"
	switch {
	case wrong.Field == "context.arguments": // encoding/json does not say which of them
		want = "an object of strings"
	case wrong.Type.Kind() == reflect.String:
		want = "a string"
	}
	return protocol.Errorf(protocol.CodeInvalidParams, "%s must be %s, got %s", strings.TrimSuffix("params."+wrong.Field, "."), want, wrong.Value)
}

// CompleteResult is the result of completion/complete.
type CompleteResult struct {
	Completion protocol.Completion `json:"completion"`
}
