package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// AppendNotification appends a notification with that method. params is an
// encoded JSON object; nil leaves the member out.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = jsonx.AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, jsonx.Paired(params)...)
	}
	return append(dst, '}')
}

// specifiedNotifications are what names of the specification have after notifications/:
// whole, or up to a slash.
var specifiedNotifications = []string{"cancelled", "initialized", "message", "progress",
	"elicitation", "prompts", "resources", "roots", "subscriptions", "tasks", "tools"}

// CustomNotification returns a notification of a method that the specification does not
// define. params encode to an object; nil leaves them out.
func CustomNotification(method string, params any) (text []byte, err error) {
	name, ok := strings.CutPrefix(method, "notifications/")
	first, _, _ := strings.Cut(name, "/")
	if !ok || first == "" || slices.Contains(specifiedNotifications, first) {
		return nil, fmt.Errorf("mcp: notification %q: want a name of your own, such as notifications/acme/row; Progress, Log and NotifyAll send those of the specification", method)
	}
	var members []byte
	if params != nil {
		if members, err = jsonx.Append(nil, params); err == nil && members[0] != '{' {
			err = fmt.Errorf("params must encode to a JSON object, %T does not", params)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp: notification %q: %w", method, err)
		}
	}
	return AppendNotification(nil, method, members), nil
}

// Progress is the content of notifications/progress (basic/utilities/progress).
// The value and the total have no unit of their own; a client shows their
// ratio.
type Progress struct {
	Token    []byte  // the JSON text of the request's progress token
	Progress float64 // must grow from one to the next
	Total    float64 // 0 means unknown
	Message  string  // revisions from 2025-03-26 on
}

// Append appends the whole notification in the form of rev. Progress and Total
// must be finite, because JSON has no infinities. It is written by hand,
// because tools report progress often.
func (p Progress) Append(dst []byte, rev protocol.Revision) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, p.Token...)
	dst = append(dst, `,"progress":`...)
	dst = strconv.AppendFloat(dst, p.Progress, 'f', -1, 64)
	if p.Total != 0 {
		dst = append(dst, `,"total":`...)
		dst = strconv.AppendFloat(dst, p.Total, 'f', -1, 64)
	}
	if p.Message != "" && rev.Has(protocol.FeatureProgressMessage) {
		dst = jsonx.AppendString(append(dst, `,"message":`...), p.Message)
	}
	return append(dst, "}}"...)
}

// CancelledParams are the params of notifications/cancelled
// (basic/utilities/cancellation): the sender no longer wants the answer to the
// request RequestID, which it has sent itself. Reason is for logs.
type CancelledParams struct {
	RequestID protocol.ID `json:"requestId"`
	Reason    string      `json:"reason,omitempty"`
}
