package spectest

import (
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// tasksFolder has the schema of the extension for tasks, which is separate.
const tasksFolder = "ext-tasks"

// folderOf returns the folder of the schema that has a method's messages.
func folderOf(rev protocol.Revision, method string) string {
	switch {
	case method == protocol.MethodTasksList, method == protocol.MethodTasksResult: // only 2025-11-25 has these
	case strings.HasPrefix(method, "tasks/"), method == protocol.MethodTaskStatus:
		return tasksFolder
	}
	return rev.String()
}

// Results names the schema of each method's result, whichever side it goes to.
var Results = map[string]string{
	"initialize":      "InitializeResult",
	"ping":            "EmptyResult",
	"server/discover": "DiscoverResult",
	"tools/list":      "ListToolsResult",
	"tools/call":      "CallToolResult",

	"resources/list":           "ListResourcesResult",
	"resources/templates/list": "ListResourceTemplatesResult",
	"resources/read":           "ReadResourceResult",
	"resources/subscribe":      "EmptyResult",
	"resources/unsubscribe":    "EmptyResult",
	"prompts/list":             "ListPromptsResult",
	"prompts/get":              "GetPromptResult",
	"completion/complete":      "CompleteResult",
	"logging/setLevel":         "EmptyResult",
	"subscriptions/listen":     "SubscriptionsListenResult",

	"tasks/get":    "GetTaskResult",
	"tasks/update": "UpdateTaskResult",
	"tasks/cancel": "CancelTaskResult",
	"tasks/list":   "ListTasksResult",
	"tasks/result": "GetTaskPayloadResult",

	"elicitation/create":     "ElicitResult",
	"sampling/createMessage": "CreateMessageResult",
	"roots/list":             "ListRootsResult",
}

// FromServer names the schema of each notification and request of a server.
var FromServer = map[string]string{
	"notifications/progress":                   "ProgressNotification",
	"notifications/message":                    "LoggingMessageNotification",
	"notifications/cancelled":                  "CancelledNotification",
	"notifications/tools/list_changed":         "ToolListChangedNotification",
	"notifications/prompts/list_changed":       "PromptListChangedNotification",
	"notifications/resources/list_changed":     "ResourceListChangedNotification",
	"notifications/resources/updated":          "ResourceUpdatedNotification",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
	"notifications/elicitation/complete":       "ElicitationCompleteNotification",
	"notifications/tasks":                      "TaskStatusNotification",
	"notifications/tasks/status":               "TaskStatusNotification",

	"ping":                   "PingRequest",
	"elicitation/create":     "ElicitRequest",
	"sampling/createMessage": "CreateMessageRequest",
	"roots/list":             "ListRootsRequest",
}

// FromClient names the schema of each notification and request of a client.
var FromClient = map[string]string{
	"notifications/initialized":        "InitializedNotification",
	"notifications/cancelled":          "CancelledNotification",
	"notifications/progress":           "ProgressNotification",
	"notifications/roots/list_changed": "RootsListChangedNotification",

	"initialize":      "InitializeRequest",
	"ping":            "PingRequest",
	"server/discover": "DiscoverRequest",
	"tools/list":      "ListToolsRequest",
	"tools/call":      "CallToolRequest",

	"resources/list":           "ListResourcesRequest",
	"resources/templates/list": "ListResourceTemplatesRequest",
	"resources/read":           "ReadResourceRequest",
	"resources/subscribe":      "SubscribeRequest",
	"resources/unsubscribe":    "UnsubscribeRequest",
	"prompts/list":             "ListPromptsRequest",
	"prompts/get":              "GetPromptRequest",
	"completion/complete":      "CompleteRequest",
	"logging/setLevel":         "SetLevelRequest",
	"subscriptions/listen":     "SubscriptionsListenRequest",

	"tasks/get":    "GetTaskRequest",
	"tasks/update": "UpdateTaskRequest",
	"tasks/cancel": "CancelTaskRequest",
	"tasks/list":   "ListTasksRequest",
	"tasks/result": "GetTaskPayloadRequest",
}
