package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ToolUseContent is a model's request to call a tool, in an answer to sampling.
// ID is chosen by the model's provider; the ToolResultContent that answers it
// repeats it. A nil Input is sent as {}.
type ToolUseContent struct {
	ID    string
	Name  string
	Input json.RawMessage // an object
	Meta  map[string]any
}

// appendContent implements Content. The id and the name are left out if they are
// empty, which no valid item has, so that an item that was read goes out as it
// came.
func (c ToolUseContent) appendContent(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"tool_use"`...)
	dst = appendOptional(dst, `,"id":`, c.ID)
	dst = appendOptional(dst, `,"name":`, c.Name)
	input := c.Input
	if input == nil {
		input = json.RawMessage("{}")
	}
	dst, err := appendJSON(append(dst, `,"input":`...), input)
	if err != nil {
		return nil, err
	}
	return closeContent(dst, nil, c.Meta)
}

// check implements Content.
func (ToolUseContent) check() error { return nil }

// ToolResultContent is the result of a tool, handed to the model in a sampling
// message. ToolUseID is the ID of the ToolUseContent that it answers.
type ToolResultContent struct {
	ToolUseID  string
	Content    []Content
	Structured json.RawMessage // nil if there is none
	IsError    bool
	Meta       map[string]any
}

// appendContent implements Content. The items of a tool result are written as
// those of any result; nil Content is an empty array, which the schema demands.
func (c ToolResultContent) appendContent(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"tool_result"`...)
	dst = appendOptional(dst, `,"toolUseId":`, c.ToolUseID)
	dst, err := appendContents(append(dst, `,"content":`...), c.Content)
	if err != nil {
		return nil, err
	}
	if c.Structured != nil {
		if dst, err = appendJSON(append(dst, `,"structuredContent":`...), c.Structured); err != nil {
			return nil, err
		}
	}
	if c.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return closeContent(dst, nil, c.Meta)
}

// check implements Content.
func (c ToolResultContent) check() (err error) {
	for i := 0; i < len(c.Content) && err == nil; i++ {
		err = checkContent(i, c.Content[i])
	}
	return err
}

// contentWire has the members of every type of content. One decoding into it
// costs less than one for the type and another for the rest, and members that
// do not belong to the type are ignored.
type contentWire struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Data        []byte          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Size        int64           `json:"size"`
	Icons       []Icon          `json:"icons"`
	Resource    *resourceWire   `json:"resource"`
	ID          string          `json:"id"`
	Input       json.RawMessage `json:"input,omitempty"`
	ToolUseID   string          `json:"toolUseId"`
	Content     json.RawMessage `json:"content,omitempty"`
	Structured  json.RawMessage `json:"structuredContent,omitempty"`
	IsError     bool            `json:"isError"`
	Annotations *Annotations    `json:"annotations"`
	Meta        map[string]any  `json:"_meta"`
}

// resourceWire is ResourceContents with the names of its members on the wire.
// The two structs have the same fields in the same order, so that one converts
// to the other.
type resourceWire struct {
	URI      string         `json:"uri"`
	MIMEType string         `json:"mimeType"`
	Text     string         `json:"text"`
	Blob     []byte         `json:"blob"`
	Meta     map[string]any `json:"_meta"`
}

// parseContents reads one item of content or an array of them, the two forms
// that sampling allows. Errors name the index of the item, from 0.
func parseContents(raw []byte) ([]Content, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, errors.New("member content is missing")
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil
		if err := jsonx.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	}
	items := make([]Content, 0, len(list))
	for i, text := range list {
		item, err := parseContent(text)
		if err != nil {
			return nil, fmt.Errorf("content item %d: %w", i, err)
		}
		items = append(items, item)
	}
	return items, nil
}

// ParseContent reads one item of content, a JSON object. Missing strings are
// empty. It fails for a type that the specification does not name, for an
// embedded resource without contents, and for members of the wrong type.
func ParseContent(raw []byte) (Content, error) {
	item, err := parseContent(raw)
	if unknown, ok := item.(UnknownContent); ok {
		return nil, fmt.Errorf("unknown type of content: %q", unknown.Type)
	}
	return item, err
}

// parseContent is ParseContent, but an object of another type is an UnknownContent, whatever
// its members are.
func parseContent(raw []byte) (Content, error) {
	var w contentWire
	err := jsonx.Unmarshal(raw, &w)
	if err != nil {
		var other struct {
			Type string `json:"type"`
		}
		if jsonx.Unmarshal(raw, &other) != nil || slices.Contains(contentTypes, other.Type) {
			return nil, err
		}
		w = contentWire{Type: other.Type}
	}
	switch w.Type {
	case "text":
		return TextContent{w.Text, w.Annotations, w.Meta}, nil
	case "image":
		return ImageContent{w.Data, w.MIMEType, w.Annotations, w.Meta}, nil
	case "audio":
		return AudioContent{w.Data, w.MIMEType, w.Annotations, w.Meta}, nil
	case "resource_link":
		return ResourceLink{w.URI, w.Name, w.Title, w.Description, w.MIMEType, w.Size, w.Icons, w.Annotations, w.Meta}, nil
	case "resource":
		if w.Resource == nil {
			return nil, fmt.Errorf("member resource is missing")
		}
		return EmbeddedResource{ResourceContents(*w.Resource), w.Annotations, w.Meta}, nil
	case "tool_use":
		return ToolUseContent{w.ID, w.Name, w.Input, w.Meta}, nil
	case "tool_result":
		items, err := parseContents(w.Content)
		if err != nil {
			return nil, err
		}
		return ToolResultContent{w.ToolUseID, items, w.Structured, w.IsError, w.Meta}, nil
	}
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		return nil, errors.New("content must be an object")
	}
	return UnknownContent{w.Type, bytes.Clone(raw)}, nil
}

// contentTypes are the types that the specification names.
var contentTypes = []string{"text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result"}
