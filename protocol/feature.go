package protocol

// Feature is a set of abilities that some revisions have and others lack, one
// bit each; | joins them. Where the specification changed the form of something
// rather than adding it, the newer form is the feature. See [Revision.Has].
type Feature uint32

// The features, in the order in which they came.
const (
	// FeatureBatches: a JSON array of messages may be sent at once, in 2025-03-26
	// only.
	FeatureBatches Feature = 1 << iota
	// FeatureToolAnnotations: tools carry hints about what they do.
	FeatureToolAnnotations
	// FeatureAudioContent: content items of type audio.
	FeatureAudioContent
	// FeatureProgressMessage: progress notifications may carry a message.
	FeatureProgressMessage
	// FeatureCompletionsCapability: the completions capability is declared.
	FeatureCompletionsCapability
	// FeatureStructuredContent: results with structuredContent, tools with
	// outputSchema.
	FeatureStructuredContent
	// FeatureResourceLinks: content items of type resource_link.
	FeatureResourceLinks
	// FeatureTitles: title next to name.
	FeatureTitles
	// FeatureVersionHeader: MCP-Protocol-Version on HTTP.
	FeatureVersionHeader
	// FeatureLastModified: lastModified in annotations.
	FeatureLastModified
	// FeatureIcons: icons on tools, resources, prompts and implementations;
	// description and websiteUrl on implementations.
	FeatureIcons
	// FeatureElicitModes: elicitation has a form and a URL mode, lists of enums,
	// titles of enums, and defaults of every type.
	FeatureElicitModes
	// FeatureSamplingTools: tools in sampling, and several items in its messages.
	FeatureSamplingTools
	// FeatureOptionalErrorID: an error response to an unreadable message has no id;
	// before, its id is null.
	FeatureOptionalErrorID
	// FeatureAnyStructured: structuredContent and outputSchema of any JSON type, not
	// only objects.
	FeatureAnyStructured
	// FeatureResultType: every result says what it is.
	FeatureResultType
	// FeatureCacheHints: lists carry ttlMs and cacheScope.
	FeatureCacheHints
	// FeatureElicitation: a server may ask the user.
	FeatureElicitation
	// FeaturePerRequestMeta: version, client and log level travel in each request's
	// _meta, and there are no sessions.
	FeaturePerRequestMeta
	// FeatureResumableStreams: a client may come back to a stream of events over
	// HTTP.
	FeatureResumableStreams
	// FeaturePrimedStreams: such a stream begins with an event that has no data.
	FeaturePrimedStreams
	// FeatureSkills: the extension io.modelcontextprotocol/skills.
	FeatureSkills
)

// revisionFeatures are the features of each revision. Batches came and went
// with one of them.
var revisionFeatures = [...]Feature{
	V20250326: in2025March | FeatureBatches,
	V20250618: in2025June,
	V20251125: in2025November,
	V20260728: in2026July,
}

const (
	in2025March = FeatureResumableStreams | FeatureToolAnnotations | FeatureAudioContent | FeatureProgressMessage | FeatureCompletionsCapability
	in2025June  = in2025March | FeatureElicitation | FeatureStructuredContent | FeatureResourceLinks | FeatureTitles |
		FeatureVersionHeader | FeatureLastModified
	in2025November = in2025June | FeaturePrimedStreams | FeatureIcons | FeatureElicitModes | FeatureSamplingTools |
		FeatureOptionalErrorID | FeatureSkills
	in2026July = in2025November&^(FeatureResumableStreams|FeaturePrimedStreams) | FeatureAnyStructured | FeatureResultType |
		FeatureCacheHints | FeaturePerRequestMeta
)
