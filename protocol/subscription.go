package protocol

// SubscriptionFilter says which changes a client wants to be told of
// (basic/patterns/subscriptions of 2026-07-28). The zero value means none. The
// server acknowledges a subscription with the part of its filter that it
// honours.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitempty"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitempty"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitempty"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"` // URIs
	TaskIDs               []string `json:"taskIds,omitempty"`               // of the extension of tasks
}
