package protocol

// SubscriptionFilter selects the changes that a client is notified of
// (basic/patterns/subscriptions of 2026-07-28). The zero value means none. The
// server acknowledges a subscription with the part of its filter that it
// honours.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitempty"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitempty"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitempty"`
	EventsListChanged     bool     `json:"eventsListChanged,omitempty"`     // of the extension of events
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"` // URIs
	TaskIDs               []string `json:"taskIds,omitempty"`               // of the extension of tasks
}
