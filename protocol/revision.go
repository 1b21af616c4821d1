package protocol

// Revision is one published revision of the specification: V20241105 to
// V20260728, of which Latest is the newest. Revisions are ordered by date and
// compare with < and >, but code that asks for an ability should use Has. The
// zero Revision is none of them: it has no name and no features.
type Revision uint8

// The revisions, oldest first. All but the last are legacy: they open a
// session with initialize. From V20260728 on the protocol is modern: every
// request carries its revision and stands alone.
const (
	V20241105 Revision = iota + 1
	V20250326
	V20250618
	V20251125
	V20260728

	// Latest is the newest revision that this package speaks.
	Latest = V20260728
	// LatestLegacy is the newest revision that has initialize.
	LatestLegacy = V20251125
	// Unnamed is what an HTTP request without a version header is taken for,
	// as the specification says since 2025-06-18.
	Unnamed = V20250326
)

// revisionNames are the dates by which revisions are named on the wire.
var revisionNames = [...]string{
	V20241105: "2024-11-05",
	V20250326: "2025-03-26",
	V20250618: "2025-06-18",
	V20251125: "2025-11-25",
	V20260728: "2026-07-28",
}

// String returns the date that names the revision on the wire, or "" for the
// zero Revision.
func (r Revision) String() string {
	if int(r) >= len(revisionNames) {
		return ""
	}
	return revisionNames[r]
}

// ParseRevision returns the revision with that name, a date such as
// "2025-11-25". ok is false if this package does not know it. The newest are
// compared first, because most peers use them.
func ParseRevision(name string) (Revision, bool) {
	for r := Latest; r > 0; r-- {
		if revisionNames[r] == name {
			return r, true
		}
	}
	return 0, false
}

// Revisions lists every revision, newest first.
func Revisions() []Revision {
	list := make([]Revision, 0, Latest)
	for r := Latest; r > 0; r-- {
		list = append(list, r)
	}
	return list
}

// RevisionNames lists the names of revs in their order.
func RevisionNames(revs []Revision) []string {
	names := make([]string, len(revs))
	for i, r := range revs {
		names[i] = r.String()
	}
	return names
}

// Modern reports whether requests of r carry their own metadata and need no
// session. It is false for the zero Revision.
func (r Revision) Modern() bool { return r >= V20260728 }

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
)

// revisionFeatures says what each revision has. Batches came with 2025-03-26
// and went with the revision after it; all other features stay until 2026-07-28
// removes the resumption of streams together with sessions.
var revisionFeatures = [...]Feature{
	V20241105: 0,
	V20250326: in2025March | Batches,
	V20250618: in2025June,
	V20251125: in2025November,
	V20260728: in2026July,
}

// The features of each revision, built from those of the one before it.
const (
	in2025March    = ResumableStreams | ToolHints | AudioContentItems | ProgressMessage | CompletionsCapability
	in2025June     = in2025March | Elicitation | StructuredContent | ResourceLinks | Titles | VersionHeader | LastModified
	in2025November = in2025June | PrimedStreams | Icons | ElicitModes | SamplingTools | OptionalErrorID
	in2026July     = in2025November&^(ResumableStreams|PrimedStreams) | AnyStructured | ResultType | CacheHints | PerRequestMeta
)

// Has tells whether r has every feature in f.
func (r Revision) Has(f Feature) bool {
	return int(r) < len(revisionFeatures) && revisionFeatures[r]&f == f
}
