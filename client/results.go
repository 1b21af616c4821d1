package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// CallToolResult is what a tool gave.
type CallToolResult struct {
	Content    []protocol.Content // an item of a type that the specification does not name is a protocol.UnknownContent
	Structured json.RawMessage    // structuredContent; nil if there is none
	IsError    bool               // the tool failed, and the content says how
	Meta       json.RawMessage    // nil if there is none
	Task       *Task              // of a Detached call that became one, else nil
	Raw        json.RawMessage    // the whole result
}

// Text returns the text items, joined by newlines.
func (r *CallToolResult) Text() string {
	if len(r.Content) == 1 {
		if t, ok := r.Content[0].(protocol.TextContent); ok {
			return t.Text
		}
	}
	var parts []string
	for _, item := range r.Content {
		if t, ok := item.(protocol.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Images returns the images, in their order.
func (r *CallToolResult) Images() (images []protocol.ImageContent) {
	for _, item := range r.Content {
		if image, ok := item.(protocol.ImageContent); ok {
			images = append(images, image)
		}
	}
	return images
}

// Image returns the first image; Images has all.
func (r *CallToolResult) Image() (image protocol.ImageContent, ok bool) {
	for _, item := range r.Content {
		if image, ok = item.(protocol.ImageContent); ok {
			return image, true
		}
	}
	return image, false
}

// Decode reads the structured content into dst, as encoding/json does save for
// a time.Duration: that may be text such as "1m30s" or "PT1M30S", or a number in
// the unit that the field's tag mcp:"unit=…" names, nanoseconds without one. A
// result without structured content is read from its text, if that is JSON.
func (r *CallToolResult) Decode(dst any) error {
	if r.Structured != nil {
		return jsonx.Unmarshal(r.Structured, dst)
	}
	text := r.Text()
	if s, ok := dst.(*string); ok {
		*s = text
		return nil
	}
	if err := jsonx.Unmarshal([]byte(text), dst); err != nil {
		return fmt.Errorf("the result has no structured content, and its text does not decode into %T: %w", dst, err)
	}
	return nil
}

// errNoObject is the error of a result that is a number, a list or the like.
var errNoObject = errors.New("the result is not an object")

// decodeCall decodes the result of tools/call.
func decodeCall(raw []byte) (*CallToolResult, error) {
	r := &CallToolResult{Raw: raw}
	found := false
	err := given(raw, func(name []byte, s *jsonx.Scanner) error {
		switch string(name) {
		case "content":
			found = true
			var err error
			r.Content, err = decodeContents(s)
			return err
		case "structuredContent":
			r.Structured = value(s)
		case "_meta":
			r.Meta = value(s)
		case "isError":
			if s.Peek() != jsonx.Bool {
				return fmt.Errorf("isError must be a boolean")
			}
			var err error
			r.IsError, err = s.Bool()
			return err
		default:
			s.SkipChecked()
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("member content is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("the server's result is not that of tools/call: %w", err)
	}
	if r.Structured == nil && resultType(raw) != "" {
		// Since 2026-07-28, which has types of results, null is a value there.
		r.Structured = jsonx.Lookup(raw, []string{"structuredContent"})
	}
	return r, nil
}

// members calls fn for each member of an object that Scan has accepted. fn must
// read or skip the value.
func members(raw []byte, fn func(name []byte, s *jsonx.Scanner) error) error {
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw) + 1}
	if s.Peek() != jsonx.Object {
		return errNoObject
	}
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			return err
		}
		s.Peek()
		if err = fn(name, &s); err == nil {
			more, err = s.ObjectNext()
		}
	}
	return err
}

// given is members without those that are null, which count as absent.
func given(raw []byte, fn func(name []byte, s *jsonx.Scanner) error) error {
	return members(raw, func(name []byte, s *jsonx.Scanner) error {
		if s.Peek() == jsonx.Null {
			return s.Null()
		}
		return fn(name, s)
	})
}

// value returns the text of the next value and moves behind it. It is a part of
// the message.
func value(s *jsonx.Scanner) json.RawMessage {
	s.Peek()
	start := s.Pos
	s.SkipChecked()
	return s.Buf[start:s.Pos:s.Pos]
}

// decodeContents decodes an array of content items.
func decodeContents(s *jsonx.Scanner) ([]protocol.Content, error) {
	if s.Peek() != jsonx.Array {
		return nil, fmt.Errorf("content must be an array, got %s", s.Peek())
	}
	var items []protocol.Content
	more, err := s.ArrayStart()
	for more && err == nil {
		var item protocol.Content
		if item, err = decodeContent(value(s)); err != nil {
			return nil, fmt.Errorf("content item %d: %w", len(items), err)
		}
		items = append(items, item)
		more, err = s.ArrayNext()
	}
	return items, err
}

// decodeContent decodes one item. Plain text, the most frequent kind, is read
// without reflection.
func decodeContent(raw []byte) (protocol.Content, error) {
	var text string
	var kind, plain = false, true
	err := given(raw, func(name []byte, s *jsonx.Scanner) error {
		switch string(name) {
		case "type":
			if s.Peek() == jsonx.String {
				t, err := s.Str()
				kind = string(t) == "text"
				return err
			}
		case "text":
			if s.Peek() == jsonx.String {
				t, err := s.Str()
				text = string(t)
				return err
			}
		}
		plain = false
		s.SkipChecked()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if kind && plain {
		return protocol.TextContent{Text: text}, nil
	}
	return protocol.Internal(facts.Private{}).ParseContent(raw)
}

// contentsWire is an item of resources/read on the wire. Its blob is decoded
// from base64, which protocol.ResourceContents does not do by itself.
type contentsWire struct {
	URI      string         `json:"uri"`
	MIMEType string         `json:"mimeType"`
	Text     string         `json:"text"`
	Blob     []byte         `json:"blob"`
	Meta     map[string]any `json:"_meta"`
}

// decodeRead reads the result of resources/read.
func decodeRead(raw []byte) (*protocol.ReadResourceResult, error) {
	var from struct {
		Contents []contentsWire  `json:"contents"`
		TTLMs    json.RawMessage `json:"ttlMs"`
		Scope    string          `json:"cacheScope"`
		Meta     map[string]any  `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &from); err != nil {
		return nil, fmt.Errorf("the server's result is not that of resources/read: %w", err)
	}
	if from.Contents == nil {
		return nil, errors.New("the server's result is not that of resources/read: member contents is missing")
	}
	r := &protocol.ReadResourceResult{Meta: from.Meta, Contents: make([]protocol.ResourceContents, 0, len(from.Contents))}
	r.Cache = protocol.Cache{TTL: parseTTL(from.TTLMs), Public: from.Scope == wire.CachePublic}
	for _, c := range from.Contents {
		r.Contents = append(r.Contents, protocol.ResourceContents(c))
	}
	return r, nil
}

// decodePrompt reads the result of prompts/get.
func decodePrompt(raw []byte) (*protocol.GetPromptResult, error) {
	var wire struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    protocol.Role   `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Meta map[string]any `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return nil, fmt.Errorf("the server's result is not that of prompts/get: %w", err)
	}
	if wire.Messages == nil {
		return nil, errors.New("the server's result is not that of prompts/get: member messages is missing")
	}
	r := &protocol.GetPromptResult{Description: wire.Description, Meta: wire.Meta}
	for i, m := range wire.Messages {
		content, err := decodeContent(bytes.TrimSpace(m.Content))
		if err != nil {
			return nil, fmt.Errorf("the server's prompt has a message %d that does not decode: %w", i, err)
		}
		r.Messages = append(r.Messages, protocol.PromptMessage{Role: m.Role, Content: content})
	}
	return r, nil
}

// resultType returns the member resultType, "" if there is none.
func resultType(raw []byte) string {
	text := jsonx.Lookup(raw, []string{"resultType"})
	if len(text) < 2 || text[0] != '"' {
		return ""
	}
	switch string(text[1 : len(text)-1]) {
	case "complete":
		return "complete"
	case "input_required":
		return "input_required"
	}
	return string(text[1 : len(text)-1])
}

// clone copies bytes that are valid during a call only.
func clone(raw []byte) []byte { return slices.Clone(raw) }
