package wire

import "github.com/talaria-go/mcp/protocol"

// RevisionNames lists the names of revs in their order.
func RevisionNames(revs []protocol.Revision) []string {
	names := make([]string, len(revs))
	for i, r := range revs {
		names[i] = r.String()
	}
	return names
}

// Feature is a set of abilities that some revisions have and others lack, one
// bit each. Where the specification changed the form of something rather than
// adding it, the newer form is the feature.
type Feature uint32

// The features that the code asks for.
const (
	// Batches: a JSON array of messages may be sent at once.
	Batches Feature = 1 << iota
	// ToolHints: tools carry hints about what they do.
	ToolHints
	// AudioContentItems: content items of type audio.
	AudioContentItems
	// ProgressMessage: progress notifications may carry a message.
	ProgressMessage
	// CompletionsCapability: the completions capability is declared.
	CompletionsCapability
	// StructuredContent: results with structuredContent, tools with
	// outputSchema.
	StructuredContent
	// ResourceLinks: content items of type resource_link.
	ResourceLinks
	// Titles: title beside name.
	Titles
	// VersionHeader: MCP-Protocol-Version on HTTP.
	VersionHeader
	// LastModified: lastModified in annotations.
	LastModified
	// Icons: icons on tools, resources, prompts and implementations;
	// description and websiteUrl on implementations.
	Icons
	// ElicitModes: elicitation has a form and a URL mode, lists of enums,
	// titles of enums, and defaults of every type.
	ElicitModes
	// SamplingTools: tools in sampling, and several items in its messages.
	SamplingTools
	// OptionalErrorID: an error response to an unreadable message has no id;
	// before, its id is null.
	OptionalErrorID
	// AnyStructured: structuredContent and outputSchema of any JSON type, not
	// objects alone.
	AnyStructured
	// ResultType: every result says what it is.
	ResultType
	// CacheHints: lists carry ttlMs and cacheScope.
	CacheHints
	// Elicitation: a server may ask the user.
	Elicitation
	// PerRequestMeta: version, client and log level travel in each request's
	// _meta, and there are no sessions.
	PerRequestMeta
	// ResumableStreams: a client may come back to a stream of events over HTTP.
	ResumableStreams
	// PrimedStreams: such a stream begins with an event that has no data.
	PrimedStreams
	// Skills: the extension of that name.
	Skills
)

// revisionFeatures are the features of each revision. Batches came and went
// with one of them; all that a later revision took back is taken out below.
var revisionFeatures = [...]Feature{
	protocol.V20241105: 0,
	protocol.V20250326: in2025March | Batches,
	protocol.V20250618: in2025June,
	protocol.V20251125: in2025November,
	protocol.V20260728: in2026July,
}

const (
	in2025March    = ResumableStreams | ToolHints | AudioContentItems | ProgressMessage | CompletionsCapability
	in2025June     = in2025March | Elicitation | StructuredContent | ResourceLinks | Titles | VersionHeader | LastModified
	in2025November = in2025June | PrimedStreams | Icons | ElicitModes | SamplingTools | OptionalErrorID | Skills
	in2026July     = in2025November&^(ResumableStreams|PrimedStreams) | AnyStructured | ResultType | CacheHints | PerRequestMeta
)

// In tells whether r has every feature in f.
func (f Feature) In(r protocol.Revision) bool {
	return int(r) < len(revisionFeatures) && revisionFeatures[r]&f == f
}
