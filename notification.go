package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// notification is one that belongs to no request, encoded once for all sessions
// that get it.
type notification struct {
	text   []byte
	params []byte         // encoded; nil if there are none
	uri    string         // of the resource that it is about, or ""
	level  protocol.Level // of a log message, or 0
}

// wanted reports whether a session wants it.
func (n *notification) wanted(x *session.Session) bool {
	return (n.level == 0 || n.level >= x.LogLevel()) && (n.uri == "" || x.Subscribed(n.uri))
}

// newNotification checks that the server may send such a notification, and
// encodes it. It rejects notifications that belong to a request or that
// clients send, and other names of the specification. Unknown names under
// notifications/ pass, because extensions define some.
func newNotification(method string, params any) (n notification, err error) {
	refuse := func(format string, args ...any) (notification, error) {
		return notification{}, fmt.Errorf("mcp: notification %q: %w", method, fmt.Errorf(format, args...))
	}
	var text []byte
	if params != nil {
		if text, err = jsonx.Append(nil, params); err != nil {
			return refuse("params: %w", err)
		}
		if text[0] != '{' {
			return refuse("params must encode to a JSON object, %T does not", params)
		}
	}
	var about struct {
		URI   string `json:"uri"`
		Level string `json:"level"`
	}
	if text != nil {
		_ = json.Unmarshal(text, &about) // other notifications may have other types there
	}
	switch method {
	case protocol.MethodProgress, protocol.MethodCancelled, protocol.MethodAcknowledged, protocol.MethodInitialized:
		return refuse("it belongs to a request, or to clients; see Frame.Progress")
	case protocol.MethodLog:
		if err := n.level.UnmarshalText([]byte(about.Level)); err != nil {
			return refuse("params: %w", err)
		}
	case protocol.MethodResourceUpdated:
		if about.URI == "" {
			return refuse("params need the resource's uri")
		}
		n.uri = about.URI
	default:
		if faults := methodFaults(method); faults != nil && !isNotification(method) {
			return refuse("%s", faults[0])
		}
	}
	n.text, n.params = wire.AppendNotification(nil, method, text), text
	return n, nil
}

// isNotification reports whether method is a name under notifications/.
func isNotification(method string) bool {
	return len(method) > len(notificationPrefix) && method[:len(notificationPrefix)] == notificationPrefix
}
