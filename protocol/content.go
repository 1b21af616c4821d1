package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Content is one item of a tool result, a prompt message or a sampling message:
// TextContent, ImageContent, AudioContent, ResourceLink or EmbeddedResource, and
// in sampling ToolUseContent and ToolResultContent. An item of another type, as
// a peer may send it, is an UnknownContent. The interface is sealed
// because clients reject types that the specification does not name. A pointer
// to one of the types is Content as well, and is written as what it points to;
// it must not be nil. A type that embeds one of them is written as what it
// embeds, also for revisions that have no such content: pass what it embeds.
type Content interface {
	appendContent(dst []byte) ([]byte, error)
	check() error
}

// Annotations tell a client whom content is for and how much it matters
// (server/resources, "Annotations"). All members are optional: an empty Audience
// means all clients, a nil Priority none, and a zero LastModified is left out.
type Annotations struct {
	Audience     []Role    `json:"audience,omitempty"`
	Priority     *float64  `json:"priority,omitempty"` // 0 (least) to 1 (most)
	LastModified time.Time `json:"lastModified,omitzero"`
}

// UnmarshalJSON implements [json.Unmarshaler]. A LastModified without a zone is
// in UTC, and may be only a day.
func (a *Annotations) UnmarshalJSON(data []byte) error {
	type members Annotations
	wire := struct {
		*members
		LastModified jsonx.Time `json:"lastModified"`
	}{(*members)(a), jsonx.Time{Time: a.LastModified}}
	if err := jsonx.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	a.LastModified = wire.LastModified.Time
	return nil
}

// check returns what the specification does not permit; nil annotations are in order.
func (a *Annotations) check() error {
	if a == nil {
		return nil
	}
	if p := a.Priority; p != nil && !(*p >= 0 && *p <= 1) {
		return fmt.Errorf("the Priority is %v: it must be between 0 and 1", *p)
	}
	for _, r := range a.Audience {
		if r != RoleUser && r != RoleAssistant {
			return fmt.Errorf("the Audience has %q: use RoleUser and RoleAssistant", r)
		}
	}
	return nil
}

// Role is the speaker or audience of content.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// TextContent is plain text. Text that is not valid UTF-8 is sent with
// replacement characters.
type TextContent struct {
	Text        string
	Annotations *Annotations
	Meta        map[string]any
}

// ImageContent is an image; Data holds its bytes, not base64. An empty MIMEType
// is found by the bytes; an item whose bytes are of no known type is an error. In
// what a server returns, so is a MIMEType that is not that of an image.
type ImageContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        map[string]any
}

// AudioContent is a sound; Data holds its bytes, not base64. Its MIMEType is found
// and checked as that of an ImageContent. Revision 2024-11-05 has none: there it
// becomes a line of text that says so.
type AudioContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        map[string]any
}

// ResourceLink points at a resource that the client may read. Characters that a URI
// cannot have, such as spaces, are sent percent-encoded. In what a server returns, a
// URI without a scheme is an error. Revisions before 2025-06-18 have none: there it becomes its name and URI as text.
type ResourceLink struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Size        int64 // bytes; 0 is left out
	Icons       []Icon
	Annotations *Annotations
	Meta        map[string]any
}

// EmbeddedResource carries the contents of a resource within a result, so that
// the client need not read it. The resource need not be listed anywhere.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        map[string]any
}

// UnknownContent is an item that a peer sent and whose Type the specification does not
// name, such as one of a later revision. It is read so that the items next to it are not
// lost. It is written as it came. Do not send it to clients: most reject the whole result.
type UnknownContent struct {
	Type string          // "" if the item has none
	Raw  json.RawMessage // the whole item, an object
}

// ResourceContents are the contents of a resource: the bytes of Blob, sent in
// base64, if it is not nil, else Text. An empty, non-nil Blob is an empty
// binary resource.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
	Meta     map[string]any
}

// Icon is an image that stands for something in a user interface. A program that
// shows one of a server should load only https: and data: URIs, without
// credentials.
type Icon struct {
	Src      string   `json:"src"` // https: or data: URI
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // "48x48" or "any"
	Theme    string   `json:"theme,omitempty"` // "light" or "dark"
}

// appendContents appends the array of items.
func appendContents(dst []byte, items []Content) ([]byte, error) {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if item == nil {
			return nil, fmt.Errorf("content item %d is nil", i)
		}
		var err error
		if dst, err = item.appendContent(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendContent implements Content. As that of the other types it appends the
// item as one JSON object in the form of the newest revision, and returns nil
// with an error, which annotations or metadata that do not encode are.
func (c TextContent) appendContent(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"text","text":`...)
	dst = jsonx.AppendString(dst, c.Text)
	return closeContent(dst, c.Annotations, c.Meta)
}

// check implements Content. The methods of all types find what makes strict clients
// reject the whole result, and what only the author of the item can fix.
func (c TextContent) check() error { return c.Annotations.check() }

// appendContent implements Content.
func (c ImageContent) appendContent(dst []byte) ([]byte, error) {
	return appendBinary(dst, "image", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

// check implements Content.
func (c ImageContent) check() error { return checkMedia("image", c.MIMEType, c.Annotations) }

// appendContent implements Content.
func (c AudioContent) appendContent(dst []byte) ([]byte, error) {
	return appendBinary(dst, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

// check implements Content.
func (c AudioContent) check() error { return checkMedia("audio", c.MIMEType, c.Annotations) }

// appendBinary appends an item of type kind that carries data in base64. The two
// types that do are alike except for that name. The base64 is encoded straight
// into dst, without a copy in between.
func appendBinary(dst []byte, kind string, data []byte, mime string, a *Annotations, meta map[string]any) ([]byte, error) {
	if mime = mediaType(kind, mime, data); mime == "" {
		return nil, fmt.Errorf("the %s content has no MIMEType, and its bytes do not show one: name it, such as %s/…", kind, kind)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = jsonx.AppendString(dst, mime)
	return closeContent(dst, a, meta)
}

// appendContent implements Content. Unlike in the description of a resource, a
// Size of 0 means that the size is unknown.
func (c ResourceLink) appendContent(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"resource_link","uri":`...)
	dst = jsonx.AppendString(dst, escapeURI(c.URI))
	dst = append(dst, `,"name":`...)
	dst = jsonx.AppendString(dst, c.Name)
	dst = appendOptional(dst, `,"title":`, c.Title)
	dst = appendOptional(dst, `,"description":`, c.Description)
	dst = appendOptional(dst, `,"mimeType":`, c.MIMEType)
	if c.Size != 0 {
		dst = fmt.Appendf(dst, `,"size":%d`, c.Size)
	}
	if len(c.Icons) > 0 {
		var err error
		if dst, err = appendJSON(append(dst, `,"icons":`...), c.Icons); err != nil {
			return nil, err
		}
	}
	return closeContent(dst, c.Annotations, c.Meta)
}

// check implements Content.
func (c ResourceLink) check() error {
	return checkURI("resource link", c.URI, c.MIMEType, c.Annotations)
}

// appendContent implements Content.
func (c EmbeddedResource) appendContent(dst []byte) ([]byte, error) {
	c.Resource.URI = escapeURI(c.Resource.URI)
	dst, err := c.Resource.append(append(dst, `{"type":"resource","resource":`...))
	if err != nil {
		return nil, err
	}
	return closeContent(dst, c.Annotations, c.Meta)
}

// check implements Content.
func (c EmbeddedResource) check() error {
	return checkURI("embedded resource", c.Resource.URI, c.Resource.MIMEType, c.Annotations)
}

// appendContent implements Content.
func (c UnknownContent) appendContent(dst []byte) ([]byte, error) {
	if text := bytes.TrimSpace(c.Raw); len(text) == 0 || text[0] != '{' {
		return nil, fmt.Errorf("the content of the type %q is not an object", c.Type)
	}
	return appendJSON(dst, c.Raw)
}

// check implements Content.
func (UnknownContent) check() error { return nil }

// append appends the contents as one JSON object. They are no Content by
// themselves: results of resources/read have them without an item around, and an
// EmbeddedResource has one.
func (c ResourceContents) append(dst []byte) ([]byte, error) {
	dst = append(dst, `{"uri":`...)
	dst = jsonx.AppendString(dst, c.URI)
	dst = appendOptional(dst, `,"mimeType":`, c.MIMEType)
	if c.Blob != nil {
		dst = append(dst, `,"blob":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, c.Blob), '"')
	} else {
		dst = jsonx.AppendString(append(dst, `,"text":`...), c.Text)
	}
	return closeContent(dst, nil, c.Meta)
}

// closeContent appends the members that every item may end with, annotations
// and _meta, and the closing brace.
func closeContent(dst []byte, a *Annotations, meta map[string]any) ([]byte, error) {
	var err error
	if a != nil {
		if dst, err = appendJSON(append(dst, `,"annotations":`...), a); err != nil {
			return nil, err
		}
	}
	if len(meta) > 0 {
		if dst, err = appendJSON(append(dst, `,"_meta":`...), meta); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendOptional appends a string member unless its value is empty. key holds
// the comma, the quoted name and the colon.
func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonx.AppendString(append(dst, key...), value)
}

// appendJSON appends v as encoding/json encodes it. It is for small values that
// have no encoder of their own; on an error it returns nil.
func appendJSON(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(dst, text...), nil
}
