package auth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// wellKnown is the path of the metadata of a resource without a path (RFC 9728,
// section 3).
const wellKnown = "/.well-known/oauth-protected-resource"

// metadataPath returns the path of the metadata of a resource: wellKnown
// followed by the path of the resource.
func metadataPath(u *url.URL) string {
	if u.EscapedPath() == "/" {
		return wellKnown
	}
	path := wellKnown + u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}

// isMetadata reports whether r asks for the metadata, at path or at the root.
func isMetadata(r *http.Request, path string) bool {
	if !strings.HasPrefix(r.URL.Path, wellKnown) {
		return false
	}
	asked := r.URL.EscapedPath()
	return asked == path || asked == wellKnown
}

// metadata returns the handler that serves the metadata of a resource (RFC
// 9728), whatever the path. The document is encoded once.
func metadata(resource string, opts *Options) http.Handler {
	text, err := json.Marshal(document(resource, opts))
	if err != nil {
		panic("auth: the metadata does not encode: " + err.Error()) // it is plain data
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*") // clients in browsers read it, and it is not a secret
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodOptions:
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
			header.Set("Access-Control-Allow-Headers", "Mcp-Protocol-Version")
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			header.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(text) // the client is gone; net/http notices by itself
	})
}

// resourceMetadata is the metadata document (RFC 9728, section 2).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name,omitempty"`
	Documentation        string   `json:"resource_documentation,omitempty"`
	DPoPAlgorithms       []string `json:"dpop_signing_alg_values_supported,omitempty"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required,omitempty"`
}

// document returns the metadata of a resource.
func document(resource string, opts *Options) resourceMetadata {
	scopes := opts.ScopesSupported
	if len(scopes) == 0 {
		scopes = opts.Scopes
	}
	m := resourceMetadata{
		Resource: resource, AuthorizationServers: opts.AuthorizationServers, BearerMethods: []string{"header"},
		// Refresh tokens are between client and authorization server (basic/authorization).
		ScopesSupported: slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == "offline_access" }),
		Name:            opts.Name, Documentation: opts.Documentation,
		DPoPRequired: opts.DPoP.Required,
	}
	if opts.DPoP.Offer || opts.DPoP.Required {
		m.DPoPAlgorithms = opts.DPoP.algorithms()
	}
	return m
}
