package protocol

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Content is one item of a tool result, a prompt message or a sampling
// message: TextContent, ImageContent, AudioContent, ResourceLink or
// EmbeddedResource. The interface is sealed because clients reject types that
// the specification does not name.
type Content interface {
	appendContent(dst []byte, rev Revision) ([]byte, error)
}

// Annotations tell a client whom content is for and how much it matters.
type Annotations struct {
	Audience     []Role    `json:"audience,omitempty"`
	Priority     *float64  `json:"priority,omitempty"` // 0 (least) to 1 (most)
	LastModified time.Time `json:"lastModified,omitzero"`
}

// For returns a without what rev lacks.
func (a *Annotations) For(rev Revision) *Annotations {
	if a == nil || rev.Has(LastModified) || a.LastModified.IsZero() {
		return a
	}
	older := *a
	older.LastModified = time.Time{}
	return &older
}

// Role is the speaker or audience of content.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// MetaMap is metadata that goes with a value; keys follow the specification's rules for
// _meta. It is encoded with encoding/json.
type MetaMap map[string]any

// TextContent is plain text.
type TextContent struct {
	Text        string
	Annotations *Annotations
	Meta        MetaMap
}

// ImageContent is an image; Data holds its bytes, not base64.
type ImageContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        MetaMap
}

// AudioContent is a sound; Data holds its bytes, not base64. Revision
// 2024-11-05 has none: there it becomes a line of text that says so.
type AudioContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        MetaMap
}

// ResourceLink points at a resource that the client may read. Revisions
// before 2025-06-18 have none: there it becomes its name and URI as text.
type ResourceLink struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Size        int64 // bytes; 0 is left out
	Icons       []Icon
	Annotations *Annotations
	Meta        MetaMap
}

// EmbeddedResource carries a resource's contents.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        MetaMap
}

// ResourceContents are the contents of a resource: Blob if it is not nil,
// else Text.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
	Meta     MetaMap
}

// Icon is an image that stands for something in a user interface. Who shows one
// that a server has sent loads https: and data: URIs alone, without credentials.
type Icon struct {
	Src      string   `json:"src"` // https: or data: URI
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // "48x48" or "any"
	Theme    string   `json:"theme,omitempty"` // "light" or "dark"
}

// AppendContent appends the array of items as rev has them.
func AppendContent(dst []byte, items []Content, rev Revision) ([]byte, error) {
	dst, err := appendItems(append(dst, '['), items, rev)
	if err != nil {
		return nil, err
	}
	return append(dst, ']'), nil
}

func appendItems(dst []byte, items []Content, rev Revision) ([]byte, error) {
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if item == nil {
			return nil, fmt.Errorf("content item %d is nil", i)
		}
		var err error
		if dst, err = item.appendContent(dst, rev); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (c TextContent) appendContent(dst []byte, rev Revision) ([]byte, error) {
	dst = append(dst, `{"type":"text","text":`...)
	dst = jsonx.AppendString(dst, c.Text)
	return closeContent(dst, c.Annotations, c.Meta, rev)
}

func (c ImageContent) appendContent(dst []byte, rev Revision) ([]byte, error) {
	return appendBinary(dst, "image", c.Data, c.MIMEType, c.Annotations, c.Meta, rev)
}

func (c AudioContent) appendContent(dst []byte, rev Revision) ([]byte, error) {
	if !rev.Has(AudioContentItems) {
		text := fmt.Sprintf("[audio, %s, %d bytes: not available in protocol revision %s]", c.MIMEType, len(c.Data), rev)
		return TextContent{Text: text, Annotations: c.Annotations}.appendContent(dst, rev)
	}
	return appendBinary(dst, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta, rev)
}

func appendBinary(dst []byte, kind string, data []byte, mime string, a *Annotations, meta MetaMap, rev Revision) ([]byte, error) {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = jsonx.AppendString(dst, mime)
	return closeContent(dst, a, meta, rev)
}

func (c ResourceLink) appendContent(dst []byte, rev Revision) ([]byte, error) {
	if !rev.Has(ResourceLinks) {
		return TextContent{Text: c.Name + ": " + c.URI, Annotations: c.Annotations}.appendContent(dst, rev)
	}
	dst = append(dst, `{"type":"resource_link","uri":`...)
	dst = jsonx.AppendString(dst, c.URI)
	dst = append(dst, `,"name":`...)
	dst = jsonx.AppendString(dst, c.Name)
	dst = appendOptional(dst, `,"title":`, c.Title)
	dst = appendOptional(dst, `,"description":`, c.Description)
	dst = appendOptional(dst, `,"mimeType":`, c.MIMEType)
	if c.Size != 0 {
		dst = fmt.Appendf(dst, `,"size":%d`, c.Size)
	}
	if len(c.Icons) > 0 && rev.Has(Icons) {
		var err error
		if dst, err = appendJSON(append(dst, `,"icons":`...), c.Icons); err != nil {
			return nil, err
		}
	}
	return closeContent(dst, c.Annotations, c.Meta, rev)
}

func (c EmbeddedResource) appendContent(dst []byte, rev Revision) ([]byte, error) {
	dst, err := c.Resource.Append(append(dst, `{"type":"resource","resource":`...), rev)
	if err != nil {
		return nil, err
	}
	return closeContent(dst, c.Annotations, c.Meta, rev)
}

// Append appends the JSON object of c as rev has it.
func (c ResourceContents) Append(dst []byte, rev Revision) ([]byte, error) {
	dst = append(dst, `{"uri":`...)
	dst = jsonx.AppendString(dst, c.URI)
	dst = appendOptional(dst, `,"mimeType":`, c.MIMEType)
	if c.Blob != nil {
		dst = append(dst, `,"blob":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, c.Blob), '"')
	} else {
		dst = jsonx.AppendString(append(dst, `,"text":`...), c.Text)
	}
	return closeContent(dst, nil, c.Meta, rev)
}

// closeContent appends what every item may end with, and the brace.
func closeContent(dst []byte, a *Annotations, meta MetaMap, rev Revision) ([]byte, error) {
	var err error
	if a != nil {
		if dst, err = appendJSON(append(dst, `,"annotations":`...), a.For(rev)); err != nil {
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

func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonx.AppendString(append(dst, key...), value)
}

func appendJSON(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(dst, text...), nil
}
