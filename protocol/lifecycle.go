package protocol

import (
	"encoding/json"
	"time"
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

// InitializeParams are the params of initialize, which opens a session in legacy
// revisions (basic/lifecycle). ProtocolVersion is the revision that the client
// wants, as Revision.String has it; the server answers with that of [Negotiate].
type InitializeParams struct {
	ProtocolVersion string             `json:"protocolVersion"`
	Capabilities    ClientCapabilities `json:"capabilities"`
	ClientInfo      Implementation     `json:"clientInfo"`
	Meta            map[string]any     `json:"_meta,omitempty"`
}

// ClientCapabilities are what a client declares that it can do, in initialize
// or in the _meta of a modern request. A nil pointer means that it cannot; Roots
// says that the client answers roots/list.
// Experimental and Extensions are keyed by the name of the extension; their
// values are its settings.
type ClientCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Roots        *ListCapability            `json:"roots,omitempty"`
	Sampling     *SamplingCapability        `json:"sampling,omitempty"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitempty"`
	Extensions   map[string]json.RawMessage `json:"extensions,omitempty"`
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
	Events       *struct{}            `json:"events,omitempty"` // as clients before SEP-3415 look for it
	Tasks        json.RawMessage      `json:"tasks,omitempty"`  // in 2025-11-25, as it came
	Extensions   map[string]any       `json:"extensions,omitempty"`
}

// ListCapability says that there is a list: of components of the server, or of
// roots of the client. ListChanged says that the other side is notified of
// changes.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// ResourcesCapability is ListCapability for resources. Subscribe says that
// clients can subscribe to changes of a single resource.
type ResourcesCapability struct {
	Subscribe   bool `json:"subscribe,omitempty"`
	ListChanged bool `json:"listChanged,omitempty"`
}

// Cache has the time that a client may cache a result, and whether shared
// caches may (server/utilities/caching of 2026-07-28). The zero value means
// not at all.
type Cache struct {
	TTL time.Duration // in whole milliseconds on the wire
	// Public says that the result is the same for all clients, so that a shared
	// cache may keep it. Otherwise it belongs to the authorization context that it
	// was sent to.
	Public bool
}
