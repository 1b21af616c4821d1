package protocol

// The methods of the specification that client and server both know. Those by
// which a server asks its client, and those of subscriptions, are next to their
// params.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	MethodPing        = "ping"
	MethodDiscover    = "server/discover"
	MethodToolsList   = "tools/list"
	MethodToolsCall   = "tools/call"
	MethodSetLevel    = "logging/setLevel"

	MethodResourcesList     = "resources/list"
	MethodResourceTemplates = "resources/templates/list"
	MethodResourcesRead     = "resources/read"
	MethodPromptsList       = "prompts/list"
	MethodPromptsGet        = "prompts/get"
	MethodComplete          = "completion/complete"

	MethodCancelled = "notifications/cancelled"
	MethodProgress  = "notifications/progress"
	MethodLog       = "notifications/message"

	MethodToolsChanged     = "notifications/tools/list_changed"
	MethodResourcesChanged = "notifications/resources/list_changed"
	MethodPromptsChanged   = "notifications/prompts/list_changed"
)
