package protocol

// The methods of the specification. Some revisions lack some of them, which
// [Message.Validate] knows.
const (
	// Requests of clients.
	MethodInitialize        = "initialize"
	MethodDiscover          = "server/discover"
	MethodPing              = "ping"
	MethodToolsList         = "tools/list"
	MethodToolsCall         = "tools/call"
	MethodResourcesList     = "resources/list"
	MethodResourceTemplates = "resources/templates/list"
	MethodResourcesRead     = "resources/read"
	MethodPromptsList       = "prompts/list"
	MethodPromptsGet        = "prompts/get"
	MethodComplete          = "completion/complete"
	MethodSetLevel          = "logging/setLevel"
	MethodSubscribe         = "resources/subscribe"
	MethodUnsubscribe       = "resources/unsubscribe"
	MethodListen            = "subscriptions/listen"

	// Requests of clients about tasks (extension io.modelcontextprotocol/tasks).
	MethodTasksGet    = "tasks/get"
	MethodTasksUpdate = "tasks/update"
	MethodTasksCancel = "tasks/cancel"

	// Requests of clients about tasks that only 2025-11-25 has, as an experiment.
	// Servers of this module have no such tasks.
	MethodTasksList   = "tasks/list"
	MethodTasksResult = "tasks/result"

	// Requests of servers; from 2026-07-28 on they are an [InputRequest].
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"

	// Notifications that end a handshake.
	MethodInitialized  = "notifications/initialized"
	MethodAcknowledged = "notifications/subscriptions/acknowledged"

	// Notifications about requests that are in progress.
	MethodCancelled = "notifications/cancelled"
	MethodProgress  = "notifications/progress"
	MethodLog       = "notifications/message"

	// Notifications about changes.
	MethodToolsChanged     = "notifications/tools/list_changed"
	MethodResourcesChanged = "notifications/resources/list_changed"
	MethodPromptsChanged   = "notifications/prompts/list_changed"
	MethodResourceUpdated  = "notifications/resources/updated"
	MethodRootsChanged     = "notifications/roots/list_changed" // of clients
	MethodTaskStatus       = "notifications/tasks"
	MethodTasksStatus      = "notifications/tasks/status"         // in 2025-11-25
	MethodElicited         = "notifications/elicitation/complete" // the user has visited the URL
)
