package facts

// Keys of _meta that the specification reserves (basic/index and
// basic/patterns/subscriptions of 2026-07-28). protocol.Meta has the values of
// those that requests carry.
const (
	MetaVersion      = metaPrefix + "protocolVersion"
	MetaClientInfo   = metaPrefix + "clientInfo"
	MetaCapabilities = metaPrefix + "clientCapabilities"
	MetaLogLevel     = metaPrefix + "logLevel"
	MetaServerInfo   = metaPrefix + "serverInfo"
	MetaSubscription = metaPrefix + "subscriptionId" // in messages, which one they belong to

	metaPrefix = "io.modelcontextprotocol/"
)
