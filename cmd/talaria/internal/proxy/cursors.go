package proxy

import (
	"encoding/json"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// cursorMark begins every cursor of a modern server that a legacy client gets. The
// empty text is a cursor in modern revisions only, and the end of a list for many
// legacy clients (server/utilities/pagination of 2026-07-28).
const cursorMark = "+"

// cursors carries cursors of lists between a client and the server behind.
type cursors struct {
	front, behind bool // whether the revision of that side is modern
}

// in changes the cursor in params for the server behind.
func (c cursors) in(params map[string]json.RawMessage) {
	var cursor *string
	switch err := jsonx.Unmarshal(params["cursor"], &cursor); {
	case err != nil: // it is absent, or the server behind rejects it
	case cursor == nil:
		delete(params, "cursor")
	case c.behind && !c.front:
		params["cursor"] = text(strings.TrimPrefix(*cursor, cursorMark))
	}
}

// out changes nextCursor in a page for the client.
func (c cursors) out(page map[string]json.RawMessage) {
	var next *string
	switch err := jsonx.Unmarshal(page["nextCursor"], &next); {
	case err != nil: // it is absent, or the client rejects it
	case next == nil, *next == "" && !c.behind:
		delete(page, "nextCursor")
	case c.behind && !c.front:
		page["nextCursor"] = text(cursorMark + *next)
	}
}

// text returns a JSON string.
func text(s string) json.RawMessage {
	t, _ := json.Marshal(s) // a string always encodes
	return t
}
