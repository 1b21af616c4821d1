package protocol

import (
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// Internal is for the packages mcp, client and wire of this module. Others cannot call it.
func Internal(facts.Private) internals { return internals{} }

// internals are the functions that those packages share.
type internals struct{}

// AppendContent appends c as the newest revision has it.
func (internals) AppendContent(dst []byte, c Content) ([]byte, error) { return c.appendContent(dst) }

// ParseContent is the function, but an item of a type that the specification does not name is
// an UnknownContent.
func (internals) ParseContent(raw []byte) (Content, error) { return parseContent(raw) }

// AudioType returns the MIME type of c: by its bytes if c has none; "" if they do
// not show it.
func (internals) AudioType(c AudioContent) string {
	return mediaType("audio", c.MIMEType, c.Data)
}

// CheckContent returns the error of item i of what a handler made, if clients refuse it
// or cannot use it.
func (internals) CheckContent(i int, item Content) error { return checkContent(i, item) }

// CheckAnnotations returns what is wrong with annotations; nil ones are in order.
func (internals) CheckAnnotations(a *Annotations) error { return a.check() }

// EscapeURI returns uri as an item of content has it.
func (internals) EscapeURI(uri string) string { return escapeURI(uri) }

// AppendResource is AppendContent for the contents of a resource.
func (internals) AppendResource(dst []byte, c ResourceContents) ([]byte, error) { return c.append(dst) }

// SplitBatch returns the texts of the first max messages of a JSON array, and how
// many it has. An error is an *Error.
func (internals) SplitBatch(text []byte, rev Revision, max int) (messages [][]byte, count int, err error) {
	s := jsonx.Scanner{Buf: jsonx.Document(text), AllowDuplicates: true}
	if messages, count, err = s.Elements(max); err != nil && !utf8.Valid(text) {
		s = jsonx.Scanner{Buf: jsonx.Document(jsonx.UTF8(text)), AllowDuplicates: true}
		messages, count, err = s.Elements(max)
	}
	switch {
	case err != nil:
		return nil, 0, scanError(err)
	case rev != V20250326:
		return nil, 0, Errorf(CodeInvalidRequest, "batches are only for sessions of revision %s: send one message at a time", V20250326)
	case count == 0:
		return nil, 0, Errorf(CodeInvalidRequest, "a batch must not be empty")
	}
	return messages, count, nil
}
