package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// RevisionNames lists the names of revs in their order.
func RevisionNames(revs []protocol.Revision) []string {
	names := make([]string, len(revs))
	for i, r := range revs {
		names[i] = r.String()
	}
	return names
}

// InitializeParams are the params of initialize, which opens a session in
// legacy revisions (basic/lifecycle). Capabilities and ClientInfo stay encoded;
// the code that needs them decodes them.
type InitializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	ClientInfo      json.RawMessage `json:"clientInfo,omitempty"`
}

// NamesVersion reports whether params of initialize have a protocolVersion.
func NamesVersion(params []byte) bool {
	return jsonx.Lookup(params, []string{"protocolVersion"}) != nil
}

// InitializeResult is the result of initialize. ProtocolVersion is the revision
// that the server has chosen, see protocol.Negotiate; Instructions may be put into the
// prompt of the client's model.
type InitializeResult struct {
	ProtocolVersion string                      `json:"protocolVersion"`
	Capabilities    protocol.ServerCapabilities `json:"capabilities"`
	ServerInfo      protocol.Implementation     `json:"serverInfo"`
	Instructions    string                      `json:"instructions,omitempty"`
}

// DiscoverResult is the result of server/discover in modern revisions: what
// initialize said, but kept by the client for as long as TTLMs allows. Which
// server it is is in _meta, as in every modern result.
type DiscoverResult struct {
	SupportedVersions []string                    `json:"supportedVersions"`
	Capabilities      protocol.ServerCapabilities `json:"capabilities"`
	Instructions      string                      `json:"instructions,omitempty"`
	TTLMs             int64                       `json:"ttlMs"`
	CacheScope        string                      `json:"cacheScope"`
	Meta              map[string]any              `json:"_meta,omitempty"`
}

// CacheMembers returns c as results say it. A private result belongs to the
// authorization context that it was sent to, a public one to all clients.
func CacheMembers(c protocol.Cache) (ttlMs int64, scope string) {
	if c.Public {
		return c.TTL.Milliseconds(), CachePublic
	}
	return c.TTL.Milliseconds(), "private"
}

// CachePublic is the scope of a result that may be given to all clients.
const CachePublic = "public"

// AppendCache appends the members of c behind those of a result.
func AppendCache(dst []byte, c protocol.Cache) []byte {
	ttl, scope := CacheMembers(c)
	return fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":%q`, ttl, scope)
}

// RootsResult is the answer to roots/list.
type RootsResult struct {
	Roots []protocol.Root `json:"roots"`
}

// CheckModern checks the metadata that every request of a modern revision must
// carry: the revision, which must be among supported, and the client's
// capabilities (basic/index of 2026-07-28, "Per-Request Metadata"). It returns
// the revision. The order matters: a client that receives the versions can fix
// its request, whatever else is missing in it.
func CheckModern(m *protocol.Meta, supported []protocol.Revision) (protocol.Revision, *protocol.Error) {
	if m.ProtocolVersion == "" {
		return 0, missingMeta(facts.MetaVersion)
	}
	rev, ok := protocol.ParseRevision(m.ProtocolVersion)
	if !ok || !slices.Contains(supported, rev) || !rev.Has(protocol.FeaturePerRequestMeta) {
		return 0, UnsupportedVersion(m.ProtocolVersion, supported)
	}
	if m.ClientCapabilities == nil {
		return 0, missingMeta(facts.MetaCapabilities)
	}
	return rev, nil
}

// missingMeta returns the error for a modern request without a member of _meta
// that it must have.
func missingMeta(key string) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeInvalidParams, Message: fmt.Sprintf("params._meta[%q] is missing; every request must carry it", key)}
}

// SessionEnd is the error of a connection whose session the server's program ended. Its
// text is the reason.
type SessionEnd struct{ Reason error }

// Error implements error.
func (e *SessionEnd) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *SessionEnd) Unwrap() error { return e.Reason }
