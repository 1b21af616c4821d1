package oauth

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/auth/oauth/internal/outbound"
)

// resourceMetadata is what a protected resource says of itself (RFC 9728,
// section 2), as far as a client needs it.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
}

// serverMetadata is what an authorization server says of itself (RFC 8414,
// section 2), as far as a client needs it.
type serverMetadata struct {
	Issuer                 string   `json:"issuer"`
	AuthorizationEndpoint  string   `json:"authorization_endpoint"`
	TokenEndpoint          string   `json:"token_endpoint"`
	RegistrationEndpoint   string   `json:"registration_endpoint"`
	RevocationEndpoint     string   `json:"revocation_endpoint"`
	ScopesSupported        []string `json:"scopes_supported"`
	ResponseTypes          []string `json:"response_types_supported"`
	GrantTypes             []string `json:"grant_types_supported"`
	CodeChallengeMethods   []string `json:"code_challenge_methods_supported"`
	TokenAuthMethods       []string `json:"token_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms    []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthMethods  []string `json:"revocation_endpoint_auth_methods_supported"`
	DPoPAlgorithms         []string `json:"dpop_signing_alg_values_supported"`
	DocumentsSupported     bool     `json:"client_id_metadata_document_supported"`
	IssuerParameterPromise bool     `json:"authorization_response_iss_parameter_supported"`

	// legacy says that these are the default endpoints of 2025-03-26, of a
	// server without metadata.
	legacy bool
}

// supportsGrant says whether a grant type can be used. A list that is left out
// means the authorization code (RFC 8414, section 2), though servers with
// other grants leave it out too.
func (m *serverMetadata) supportsGrant(grant string) bool {
	return len(m.GrantTypes) == 0 || slices.Contains(m.GrantTypes, grant)
}

// checkCode says what keeps the authorization code flow from being used.
func (m *serverMetadata) checkCode() error {
	problem := ""
	switch {
	case m.AuthorizationEndpoint == "":
		problem = "it has no authorization_endpoint"
	case !m.supportsGrant(grantCode):
		problem = fmt.Sprintf("it does not support the grant type authorization_code, only %q", m.GrantTypes)
	case len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, "code"):
		problem = fmt.Sprintf("it does not support the response type code, only %q", m.ResponseTypes)
	case m.legacy: // no metadata to look into; PKCE is used, as 2025-03-26 demands
	case len(m.CodeChallengeMethods) == 0:
		problem = "it does not support PKCE: its metadata has no code_challenge_methods_supported"
	case !slices.Contains(m.CodeChallengeMethods, "S256"):
		problem = fmt.Sprintf("it does not support PKCE with S256, only %q", m.CodeChallengeMethods)
	}
	if problem == "" {
		return nil
	}
	return &Error{Step: StepAuthorization, URL: m.Issuer, Problem: problem}
}

// authority is what discovery finds: who may issue tokens for a resource.
type authority struct {
	resource string // its identifier, for the resource parameter
	scopes   scopes // that it lists
	server   *serverMetadata
	dpop     bool // the resource takes DPoP tokens
	bearer   bool // the resource takes Bearer tokens
}

// origin is scheme, host and port of a URL, written in one way.
func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + outbound.HostPort(u)
}
