package wire

import (
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// EventsExtension is for events that clients ask for, or are sent. Its text is for
// 2026-07-28; hosts look for it in sessions, too, as the capability "events".
const EventsExtension = "io.modelcontextprotocol/events"

// The methods of events.
const (
	MethodEventsList       = "events/list"
	MethodEventsPoll       = "events/poll"
	MethodEventsStream     = "events/stream"
	MethodEventsChanged    = "notifications/events/list_changed"
	MethodEventsActive     = "notifications/events/active"     // begins a stream, and follows a gap
	MethodEventsEvent      = "notifications/events/event"      // an occurrence
	MethodEventsHeartbeat  = "notifications/events/heartbeat"  // a sign of life, with a position
	MethodEventsError      = "notifications/events/error"      // the stream waits, and continues
	MethodEventsTerminated = "notifications/events/terminated" // the stream is over
)

// DeliveryPush is the mode of delivery that is events/stream.
const DeliveryPush = "push"

// The codes of events. Those of the specification are provisional there (SEP-3415, "Error
// Handling"). Before it had any, hosts and servers used the numbers from -32011 on, in the
// same order.
const (
	CodeEventNotFound     protocol.Code = -32023 // no such event type, or subscription
	CodeEventForbidden    protocol.Code = -32024 // this client may not have it
	CodeEventsExhausted   protocol.Code = -32025 // a limit of the server
	CodeEventsUnsupported protocol.Code = -32026 // a mode of delivery that the type does not have
	CodeEventCallback     protocol.Code = -32027 // the endpoint of a webhook

	earlier protocol.Code = 12 // from a code of the specification to the one before it
)

// EventCode returns a code of events as a client knows it: that of the specification if
// the client has declared the extension.
func EventCode(code protocol.Code, declared bool) protocol.Code {
	if declared {
		return code
	}
	return code + earlier
}

// EventCodeOf returns the code of the specification for one that a server has sent in
// answer to method; 0 for any other code.
func EventCodeOf(method string, code protocol.Code) protocol.Code {
	switch method {
	case MethodEventsList, MethodEventsPoll, MethodEventsStream, MethodEventsSubscribe, MethodEventsUnsubscribe:
	default:
		return 0
	}
	for _, known := range []protocol.Code{CodeEventNotFound, CodeEventForbidden, CodeEventsExhausted, CodeEventsUnsupported, CodeEventCallback} {
		if code == known || code == known+earlier {
			return known
		}
	}
	return 0
}

// EventPoll are the params of events/poll without name and arguments.
type EventPoll struct {
	Cursor    string        // "" for none
	MaxAge    time.Duration // less than 0 for none
	MaxEvents int           // 0 for none
}

// ParseEventPoll reads the params of events/poll or events/stream.
func ParseEventPoll(method string, raw []byte) (EventPoll, *protocol.Error) {
	var in struct {
		Cursor    *string `json:"cursor"`
		MaxAgeMs  *int64  `json:"maxAgeMs"`
		MaxEvents *int    `json:"maxEvents"`
	}
	p := EventPoll{MaxAge: -1}
	if err := jsonx.Unmarshal(raw, &in); err != nil {
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params of %s: cursor is a string or null, maxAgeMs and maxEvents are integers: %w", method, err)
	}
	if in.Cursor != nil {
		p.Cursor = *in.Cursor
	}
	if in.MaxAgeMs != nil {
		if *in.MaxAgeMs < 0 {
			return p, protocol.Errorf(protocol.CodeInvalidParams, "params.maxAgeMs is %d; give 0 or more", *in.MaxAgeMs)
		}
		p.MaxAge = time.Duration(min(*in.MaxAgeMs, int64(maxEventAge/time.Millisecond))) * time.Millisecond
	}
	if in.MaxEvents != nil {
		if *in.MaxEvents < 1 {
			return p, protocol.Errorf(protocol.CodeInvalidParams, "params.maxEvents is %d; give 1 or more", *in.MaxEvents)
		}
		p.MaxEvents = *in.MaxEvents
	}
	return p, nil
}

// maxEventAge keeps a duration in range: no log is that long.
const maxEventAge = 365 * 24 * time.Hour

// EventPage is the result of events/poll.
type EventPage struct {
	Events     []json.RawMessage `json:"events"` // never nil
	Cursor     string            `json:"cursor"`
	Truncated  bool              `json:"truncated"`
	HasMore    bool              `json:"hasMore"`
	NextPollMs int64             `json:"nextPollMs"`
}
