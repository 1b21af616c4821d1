package auth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// WellKnown is the path of the metadata (RFC 9728, section 3).
const WellKnown = "/.well-known/oauth-protected-resource"

// MetadataPath returns the path of the metadata of a resource: WellKnown with
// the path of the resource after it. It returns WellKnown for what is no URL.
func MetadataPath(resource string) string {
	u, err := resourceURL(resource)
	if err != nil || u.EscapedPath() == "/" {
		return WellKnown
	}
	path := WellKnown + u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}

// Router is what HandleMetadata registers with: a chi.Router or an
// *http.ServeMux.
type Router interface {
	Handle(pattern string, h http.Handler)
}

// HandleMetadata serves the metadata of the resource where clients look for it:
// under its well-known path, as https://host/.well-known/oauth-protected-resource/mcp,
// and at the root, as https://host/.well-known/oauth-protected-resource, which
// clients try next. r is the router of the whole host; what is behind Bearer
// could not be read without a token. It panics as Metadata does.
func HandleMetadata(r Router, opts *Options) {
	h := Metadata(opts)
	path, _, _ := strings.Cut(MetadataPath(opts.Resource), "?")
	r.Handle(path, h)
	if path != WellKnown {
		r.Handle(WellKnown, h)
	}
}

// isMetadata tells whether r is for the metadata that is at path, or at the root.
func isMetadata(r *http.Request, path string) bool {
	if !strings.HasPrefix(r.URL.Path, WellKnown) {
		return false
	}
	asked := r.URL.EscapedPath()
	return asked == path || asked == WellKnown
}

// Metadata returns the handler of the metadata of a resource (RFC 9728), for
// any path; HandleMetadata registers it under the right ones. It panics if opts
// name no Resource or no AuthorizationServers, without which clients could not
// find their way.
func Metadata(opts *Options) http.Handler {
	if opts == nil {
		opts = &Options{}
	}
	if _, err := resourceURL(opts.Resource); err != nil {
		panic("auth: Options.Resource: " + err.Error())
	}
	if len(opts.AuthorizationServers) == 0 {
		panic("auth: Options.AuthorizationServers is empty; name who issues tokens for this server")
	}
	text, err := json.Marshal(document(opts))
	if err != nil {
		panic("auth: the metadata does not encode: " + err.Error()) // it is plain data
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*") // clients in browsers read it, and it is no secret
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

// resourceMetadata is the document (RFC 9728, section 2).
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

func document(opts *Options) resourceMetadata {
	scopes := opts.ScopesSupported
	if len(scopes) == 0 {
		scopes = opts.Scopes
	}
	m := resourceMetadata{
		Resource: opts.Resource, AuthorizationServers: opts.AuthorizationServers, BearerMethods: []string{"header"},
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
