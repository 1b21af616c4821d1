package protocol

import "encoding/json"

// EventType is the definition of an event type, as events/list has it (extension
// io.modelcontextprotocol/events). Delivery has the ways in which clients can receive its
// events: "poll", "push" and "webhook". The arguments of a subscription fit InputSchema,
// and the data of each event fits PayloadSchema.
type EventType struct {
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	Delivery      []string        `json:"delivery"`
	InputSchema   json.RawMessage `json:"inputSchema"`
	PayloadSchema json.RawMessage `json:"payloadSchema"`
	Meta          map[string]any  `json:"_meta,omitempty"`
}
