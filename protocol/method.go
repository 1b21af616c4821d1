package protocol

// The methods of the specification that this package has messages for.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	MethodPing        = "ping"
	MethodDiscover    = "server/discover"
	MethodToolsList   = "tools/list"
	MethodToolsCall   = "tools/call"
	MethodSetLevel    = "logging/setLevel"
	MethodCancelled   = "notifications/cancelled"
	MethodProgress    = "notifications/progress"
	MethodLog         = "notifications/message"

	MethodToolsChanged = "notifications/tools/list_changed"
)
