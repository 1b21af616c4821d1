package protocol

import (
	"encoding/json"
	"maps"
)

// Implementation names a server or a client: serverInfo and clientInfo. Name is
// for programs, Title for people; if Title is empty, Name is shown.
// Description, WebsiteURL and Icons exist from 2025-11-25 on.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
}

// For returns i without the members that rev lacks.
func (i Implementation) For(rev Revision) Implementation {
	if !rev.Has(Titles) {
		i.Title = ""
	}
	if !rev.Has(Icons) {
		i.Description, i.WebsiteURL, i.Icons = "", "", nil
	}
	return i
}

// ClientCapabilities are what a client declares that it can do, in initialize
// or in the _meta of a modern request. A nil pointer means that it cannot.
// Experimental and Extensions are keyed by the name of the extension; their
// values are its settings.
type ClientCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Roots        *RootsCapability           `json:"roots,omitempty"`
	Sampling     *SamplingCapability        `json:"sampling,omitempty"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitempty"`
	Extensions   map[string]json.RawMessage `json:"extensions,omitempty"`
}

// For returns c without what rev lacks. This matters on both sides: a client
// may declare at once what it can do in several revisions, and a server must
// then not rely on more than the revision that was agreed on.
func (c ClientCapabilities) For(rev Revision) ClientCapabilities {
	if !rev.Has(Elicitation) {
		c.Elicitation = nil
	}
	if c.Elicitation != nil && !rev.Has(ElicitModes) {
		c.Elicitation = &ElicitationCapability{}
	}
	if c.Sampling != nil && !rev.Has(SamplingTools) {
		c.Sampling = &SamplingCapability{}
	}
	c.Extensions = extensionsFor(c.Extensions, rev)
	return c
}

// RootsCapability says that the client answers roots/list. ListChanged says
// that it tells the server when the list changes.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// SamplingCapability says that the client can ask its model. Tools allows tools
// in such a request, Context the values of includeContext other than "none";
// nil means no.
type SamplingCapability struct {
	Tools   *struct{} `json:"tools,omitempty"`
	Context *struct{} `json:"context,omitempty"`
}

// ElicitationCapability says that the client can ask its user. Form and URL
// name the modes that it has; if both are nil, it has forms, which is what the
// capability meant before there were modes.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitempty"`
	URL  *struct{} `json:"url,omitempty"`
}

// ServerCapabilities are what a server declares that it offers, in initialize
// or server/discover. A nil pointer means that it does not, and a client must
// then not send the methods in question.
type ServerCapabilities struct {
	Experimental map[string]any       `json:"experimental,omitempty"`
	Logging      *struct{}            `json:"logging,omitempty"`
	Completions  *struct{}            `json:"completions,omitempty"`
	Prompts      *ListCapability      `json:"prompts,omitempty"`
	Resources    *ResourcesCapability `json:"resources,omitempty"`
	Tools        *ListCapability      `json:"tools,omitempty"`
	Extensions   map[string]any       `json:"extensions,omitempty"`
}

// ListCapability says that there is a list of components. ListChanged says that
// clients are told when it changes.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// ResourcesCapability is ListCapability for resources. Subscribe says that
// clients can subscribe to changes of a single resource.
type ResourcesCapability struct {
	Subscribe   bool `json:"subscribe,omitempty"`
	ListChanged bool `json:"listChanged,omitempty"`
}

// For returns c without what rev lacks.
func (c ServerCapabilities) For(rev Revision) ServerCapabilities {
	if !rev.Has(CompletionsCapability) {
		c.Completions = nil
	}
	c.Extensions = extensionsFor(c.Extensions, rev)
	return c
}

// TasksExtension is the identifier of the extension for calls that outlive
// their request. It came with 2026-07-28 and is for no revision before.
const TasksExtension = "io.modelcontextprotocol/tasks"

// extensionsFor returns the extensions of either side without those that rev
// does not have. Extensions that are not known here belong to every revision:
// the schemas of capabilities are open, and hosts look for apps and skills in
// legacy sessions, too. all is not changed.
func extensionsFor[V any](all map[string]V, rev Revision) map[string]V {
	if _, ok := all[TasksExtension]; !ok || rev.Has(PerRequestMeta) {
		return all
	}
	if len(all) == 1 {
		return nil
	}
	all = maps.Clone(all)
	delete(all, TasksExtension)
	return all
}

// InitializeParams are the params of initialize, which opens a session in
// legacy revisions (basic/lifecycle). Capabilities and ClientInfo stay encoded;
// whoever needs them decodes them.
type InitializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ClientInfo      json.RawMessage `json:"clientInfo"`
}

// InitializeResult is the result of initialize. ProtocolVersion is the revision
// that the server has chosen, see Negotiate; Instructions may be put into the
// prompt of the client's model.
type InitializeResult struct {
	ProtocolVersion string             `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation     `json:"serverInfo"`
	Instructions    string             `json:"instructions,omitempty"`
}

// DiscoverResult is the result of server/discover in modern revisions: what
// initialize said, but kept by the client for as long as Cache allows. Which
// server it is stands in _meta, as in every modern result.
type DiscoverResult struct {
	SupportedVersions []string           `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitempty"`
	Cache
	Meta MetaMap `json:"_meta,omitempty"`
}

// Cache tells clients how long and for whom they may keep a result
// (server/utilities/caching of 2026-07-28). It is embedded in the results that
// can be kept.
type Cache struct {
	TTLMs int64      `json:"ttlMs"` // milliseconds; 0 means not at all
	Scope CacheScope `json:"cacheScope"`
}

// CacheScope says who may share a cached result.
type CacheScope string

// The cache scopes. A public result is the same for everybody and may be kept
// by a shared cache; a private one belongs to the authorization context that it
// was sent to.
const (
	CachePublic  CacheScope = "public"
	CachePrivate CacheScope = "private"
)

// Negotiate picks the revision that answers an initialize request
// (basic/lifecycle, "Version Negotiation"): the requested one if it is legacy
// and supported, else the newest legacy one that is. ok is false if supported
// has no legacy revision; the order of supported does not matter.
func Negotiate(requested string, supported []Revision) (rev Revision, ok bool) {
	if r, known := ParseRevision(requested); known && !r.Modern() && contains(supported, r) {
		return r, true
	}
	for _, r := range supported {
		if !r.Modern() && r > rev {
			rev = r
		}
	}
	return rev, rev > 0
}
