package inspector

import (
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp/schema"
)

// The bounds of the events that a call shows: how many, and their size in bytes. The newest remain.
const (
	maxWatched     = 100
	maxWatchedSize = 128 << 10
)

// shownEvent is an event with the members first that a person reads.
type shownEvent struct {
	Time   time.Time       `json:"timestamp"`
	Data   json.RawMessage `json:"data"`
	ID     string          `json:"eventId"`
	Name   string          `json:"name"`
	Cursor string          `json:"cursor,omitempty"`
}

// watched are the events of a call that watches, the newest first. The mutex of calls guards it.
type watched struct {
	list []json.RawMessage
	size int
}

func (w *watched) add(event json.RawMessage) {
	w.list = append([]json.RawMessage{event}, w.list...)
	for w.size += len(event); len(w.list) > maxWatched || w.size > maxWatchedSize && len(w.list) > 1; {
		last := len(w.list) - 1
		w.size -= len(w.list[last])
		w.list = w.list[:last]
	}
}

// result returns the events as the result of the call.
func (w *watched) result() string { return indented(w.json()) }

func (w *watched) json() json.RawMessage {
	text, err := json.Marshal(map[string]any{"events": append([]json.RawMessage{}, w.list...)})
	if err != nil {
		return nil // they were decoded before
	}
	return text
}

// missedIssue is shown for a call that has missed events.
var missedIssue = schema.Issue{Rule: "events", Message: "events are missing: the server does not have them any more"}
