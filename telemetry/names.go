package telemetry

import "go.opentelemetry.io/otel/attribute"

// scope is the name of the tracer and of the meter.
const scope = "github.com/talaria-go/mcp/telemetry"

// other stands for what has no name of its own in spans and metrics.
const other = "_OTHER"

// The attributes of the convention. Two that it asks for are left out, because they
// may hold private data: mcp.resource.uri, and mcp.session.id, which is a credential
// in legacy revisions. So is client.address, which behind a proxy is the proxy's,
// and else personal.
const (
	keyMethod          = attribute.Key("mcp.method.name")
	keyRevision        = attribute.Key("mcp.protocol.version")
	keyTool            = attribute.Key("gen_ai.tool.name")
	keyPrompt          = attribute.Key("gen_ai.prompt.name")
	keyOperation       = attribute.Key("gen_ai.operation.name")
	keyRequestID       = attribute.Key("jsonrpc.request.id")
	keyStatusCode      = attribute.Key("rpc.response.status_code")
	keyErrorType       = attribute.Key("error.type")
	keyTransport       = attribute.Key("network.transport")
	keyProtocol        = attribute.Key("network.protocol.name")
	keyProtocolVersion = attribute.Key("network.protocol.version")
	keyServerAddress   = attribute.Key("server.address")
	keyServerPort      = attribute.Key("server.port")
)

// Values that the convention has.
const (
	executeTool = "execute_tool" // of keyOperation, for tools/call
	toolError   = "tool_error"   // of keyErrorType, for results with isError
)

// Attributes of our own, for what the convention does not know.
const (
	keyFailure    = attribute.Key("talaria.failure")     // the word of Outcome.Status, of what did not go well
	keyResultType = attribute.Key("talaria.result.type") // input_required or task, of a result that is not the last
	keyRequests   = attribute.Key("talaria.requests")    // of a call of a client: how many requests it took
	keyWaited     = attribute.Key("talaria.waited")      // of a call of a client: seconds spent waiting for people
	keyRefusal    = attribute.Key("talaria.refusal")     // why a message came to no method
	keyStream     = attribute.Key("talaria.stream.end")  // why a stream ended
	keyTaskStatus = attribute.Key("talaria.task.status") // how a task ended
	keyTaskStart  = attribute.Key("talaria.task.start")  // why a task began to run
	keyStore      = attribute.Key("talaria.store")       // what was to be kept
	keyLimit      = attribute.Key("talaria.limit")       // of what there is only so much
	keyEvent      = attribute.Key("talaria.event")       // an event type
	keyDelivery   = attribute.Key("talaria.delivery")    // what became of an event of a webhook
	keyWebhook    = attribute.Key("talaria.webhook")     // opened, or why a subscription ended
)

// The instruments. The first three are the convention's.
const (
	serverDuration  = "mcp.server.operation.duration"
	clientDuration  = "mcp.client.operation.duration"
	sessionDuration = "mcp.server.session.duration"

	streamDuration = "talaria.server.stream.duration"
	taskDuration   = "talaria.server.task.duration"
	taskStarts     = "talaria.server.task.starts"
	refusedCount   = "talaria.server.refused"
	deliveryCount  = "talaria.server.webhook.deliveries"
	webhookCount   = "talaria.server.webhook.subscriptions"
	storeFailures  = "talaria.store.failures"
	activeRequests = "talaria.server.active_requests"
	waitingBytes   = "talaria.server.waiting"
	limitUsed      = "talaria.server.limit.used"
	limitMax       = "talaria.server.limit.max"
	drainingState  = "talaria.server.draining"
)

// buckets returns the bounds of the convention's histograms, in seconds.
func buckets() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}
