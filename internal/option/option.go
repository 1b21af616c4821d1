// Package option is how other packages of this module make components of a
// server. Package mcp compiles them as its own: it adds their entries to the catalog
// with those of other components, all or none, and names the component in faults.
// The entries bring what serves them. What package mcp has to know of a kind of
// component, such as the methods by which clients ask for it, it has in its own
// table: a component cannot add methods, because that table is made once, and a
// server that is mounted later may bring the first component of a kind.
package option

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Component is what mcp.Made makes a component of. Make returns its parts, or all
// that is wrong with it as one error. It is called again for each server that the
// component is added to, on the goroutine of Add.
type Component struct {
	Name string // in errors
	Make func(s Settings) ([]*registry.Entry, error)
}

// Settings are the values that a server gives to a component when it is added.
type Settings struct {
	// What the options of the component say. Each entry takes them over: they hold for
	// lists and for use, also where the server is mounted.
	Visible func(f *frame.Frame) bool
	Scopes  []string
	Meta    map[string]any
	// What the server says: of its lists, and in bytes.
	Cache               protocol.Cache
	MaxMessage, MaxFile int
	// Contents makes contents of data, without URI: text if its type says so and it
	// is UTF-8. Without a type that is found by the name.
	Contents func(name, mediaType string, data []byte) protocol.ResourceContents
	// Warn writes a line about names to the log of the server.
	Warn func(text string, names []string)
	// What components use that change what they offer while the server serves: its
	// catalog, its log, what is closed when it shuts down, how often a request may ask its
	// client, and how long a client may take to answer.
	Catalog  *registry.Catalog
	Logger   *zerolog.Logger
	Down     <-chan struct{}
	Rounds   int
	Question time.Duration
}

// Fits returns why contents cannot be read: they would make a message beyond the
// limit of the server. It counts a few bytes more than the message will have.
func (s Settings) Fits(contents protocol.ResourceContents) error {
	size := 4<<10 + len(contents.Text) + (len(contents.Blob)+2)/3*4
	for i := range len(contents.Text) {
		switch c := contents.Text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			size++
		case c < ' ':
			size += 5
		}
	}
	if size > s.MaxMessage {
		return fmt.Errorf("to read it would take a message of %d bytes, more than Limits.Message, which is %d", size, s.MaxMessage)
	}
	return nil
}

// Tool is what mcp.MadeOption makes an option of tools of. Several for one tool add
// up.
type Tool struct {
	Name    string // of the option, in errors
	View    string // the URI of the view that shows results
	AppOnly bool   // for views, and not for models
	// Foreign is set for schemas of other programs, which the author of the server cannot
	// change: the log has no warnings about them.
	Foreign bool
	// Listed and As are what registry.Entry has under these names; As takes the definition
	// that all clients have.
	Listed []string
	As     func(f *frame.Frame, definition protocol.Tool) protocol.Tool
	// Visible reports whether the tool is there for the client of f; nil is for all.
	Visible func(f *frame.Frame) bool
}
