package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// The bounds of a saved recording: its size in bytes, of which the newest messages remain, and the
// time to mask them. Messages after that time are saved without their content.
const (
	maxSaved = 8 << 20
	saveTime = 10 * time.Second
)

// maxName is the length of an ID or a method that is saved without the content of its message.
const maxName = 256

// withoutContent returns the members of a message that identify it, and its length; for other text only the length.
func withoutContent(text []byte) string {
	note := fmt.Sprintf("%d bytes, which take too long to be masked", len(text))
	member := func(name string) json.RawMessage {
		if v := jsonx.Lookup(text, []string{name}); len(v) <= maxName {
			return v
		}
		return nil
	}
	m := map[string]any{"jsonrpc": "2.0", "left": note}
	id, method := member("id"), member("method")
	switch {
	case id == nil && method == nil:
		return note
	case method != nil:
		m["method"] = method
	case jsonx.Lookup(text, []string{"error"}) != nil:
		m["error"] = map[string]any{"code": 0, "message": note}
	default:
		m["result"] = struct{}{}
	}
	if id != nil {
		m["id"] = id
	}
	out, err := json.Marshal(m)
	if err != nil { // it is not JSON
		return note
	}
	return string(out)
}

// errNoReplay refuses every other row.
var errNoReplay = errors.New("only calls of tools, prompts and resources can be replayed")
