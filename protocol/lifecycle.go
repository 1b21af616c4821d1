package protocol

import (
	"encoding/json"
	"maps"
)

// Implementation names a server or a client.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
}

// For returns i without what rev lacks.
func (i Implementation) For(rev Revision) Implementation {
	if !rev.Has(Titles) {
		i.Title = ""
	}
	if !rev.Has(Icons) {
		i.Description, i.WebsiteURL, i.Icons = "", "", nil
	}
	return i
}

// ClientCapabilities are what a client declares that it can do. A nil pointer
// means that it cannot.
type ClientCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Roots        *RootsCapability           `json:"roots,omitempty"`
	Sampling     *SamplingCapability        `json:"sampling,omitempty"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitempty"`
	Extensions   map[string]json.RawMessage `json:"extensions,omitempty"`
}

// For returns c without what rev lacks: a client may declare what it can do in
// a newer revision than the one that was agreed on.
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

// RootsCapability says that the client can list its roots.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// SamplingCapability says that the client can ask its model.
type SamplingCapability struct {
	Tools   *struct{} `json:"tools,omitempty"`
	Context *struct{} `json:"context,omitempty"`
}

// ElicitationCapability says that the client can ask its user.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitempty"`
	URL  *struct{} `json:"url,omitempty"`
}

// ServerCapabilities are what a server declares that it offers.
type ServerCapabilities struct {
	Experimental map[string]any       `json:"experimental,omitempty"`
	Logging      *struct{}            `json:"logging,omitempty"`
	Completions  *struct{}            `json:"completions,omitempty"`
	Prompts      *ListCapability      `json:"prompts,omitempty"`
	Resources    *ResourcesCapability `json:"resources,omitempty"`
	Tools        *ListCapability      `json:"tools,omitempty"`
	Extensions   map[string]any       `json:"extensions,omitempty"`
}

// ListCapability says that there is a list, and whether changes are told.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// ResourcesCapability is ListCapability with subscriptions.
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
// does not have. Any that is not known here is for every revision: the schemas
// of capabilities are open, and hosts look for apps and skills in sessions, too.
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

// InitializeParams are the params of initialize, in legacy revisions.
type InitializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ClientInfo      json.RawMessage `json:"clientInfo"`
}

// InitializeResult is the result of initialize.
type InitializeResult struct {
	ProtocolVersion string             `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation     `json:"serverInfo"`
	Instructions    string             `json:"instructions,omitempty"`
}

// DiscoverResult is the result of server/discover, in modern revisions.
type DiscoverResult struct {
	SupportedVersions []string           `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitempty"`
	Cache
	Meta MetaMap `json:"_meta,omitempty"`
}

// Cache tells clients how long and for whom a result may be kept
// (server/utilities/caching of 2026-07-28).
type Cache struct {
	TTLMs int64      `json:"ttlMs"` // milliseconds; 0 means not at all
	Scope CacheScope `json:"cacheScope"`
}

// CacheScope says who may share a cached result.
type CacheScope string

// The cache scopes.
const (
	CachePublic  CacheScope = "public"
	CachePrivate CacheScope = "private"
)

// Negotiate picks the revision that answers an initialize request: the one
// asked for if it is legacy and supported, else the newest legacy one that
// is. ok is false when supported has no legacy revision.
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
