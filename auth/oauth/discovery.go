package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/outbound"
	"github.com/talaria-go/mcp/protocol"
)

// discovery finds out who may issue tokens for the MCP server, and the metadata
// of that issuer. mu guards metadata, which holds one entry for each issuer
// met.
type discovery struct {
	*setup
	mu       sync.Mutex
	metadata map[string]*serverMetadata // checked, by issuer
}

// discover returns who may issue tokens for the MCP server. It prefers the
// issuer preferred, which has issued the stored token, or "" if there is none.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery
func (d *discovery) discover(ctx context.Context, ch challenge, preferred string) (*authority, error) {
	resource, err := d.resourceMetadata(ctx, ch.metadata)
	if err != nil {
		return nil, err
	}
	if resource == nil {
		return d.legacyAuthority(ctx, ch)
	}
	issuer, err := d.chooseIssuer(resource.AuthorizationServers, preferred)
	if err != nil {
		return nil, err
	}
	server, err := d.serverMetadata(ctx, issuer)
	if err != nil {
		return nil, err
	}
	if server == nil {
		return nil, &Error{Step: StepServer, URL: issuer,
			Problem: "there is none, neither of OAuth nor of OpenID Connect; the MCP server names this authorization server"}
	}
	return &authority{
		resource: resource.Resource,
		scopes:   scopes(nil).with(resource.ScopesSupported...),
		server:   server,
		dpop:     ch.dpop || resource.DPoPRequired,
		bearer:   (ch.bearer || !ch.dpop) && !resource.DPoPRequired,
	}, nil
}

// resourceMetadata fetches the document that the challenge names or, if it
// names none, those at the well-known places. It returns nil if there is none.
func (d *discovery) resourceMetadata(ctx context.Context, named string) (*resourceMetadata, error) {
	places := []string{named}
	if named == "" {
		const wellKnown = "/.well-known/oauth-protected-resource"
		base := d.server.Scheme + "://" + d.server.Host + wellKnown
		if path := strings.TrimRight(d.server.EscapedPath(), "/"); path != "" {
			places = []string{base + path, base}
		} else {
			places = []string{base}
		}
	}
	for _, place := range places {
		var found resourceMetadata
		ok, err := d.fetch(ctx, StepResource, place, &found)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := d.checkResource(&found); err != nil {
			return nil, &Error{Step: StepResource, URL: place, Err: err}
		}
		return &found, nil
	}
	if named != "" {
		return nil, &Error{Step: StepResource, URL: named, Problem: "there is none, although the challenge of the MCP server names this place"}
	}
	return nil, nil
}

// checkResource checks that metadata is about this server and no other: the
// resource must be the server's URL, or a prefix of it that ends between
// segments of the path.
func (d *discovery) checkResource(m *resourceMetadata) error {
	u, err := url.Parse(m.Resource)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(m.Resource, "#") {
		return fmt.Errorf("resource %s is not an absolute URL without fragment", printable(m.Resource))
	}
	above := strings.TrimRight(u.EscapedPath(), "/")
	path := strings.TrimRight(d.server.EscapedPath(), "/")
	within := path == above || strings.HasPrefix(path, above+"/")
	if origin(u) != origin(d.server) || !within || u.RawQuery != "" && u.RawQuery != d.server.RawQuery {
		return fmt.Errorf("resource is %s, not the MCP server %s: a token for it is of no use here, and metadata of another server is not to be trusted",
			printable(m.Resource), d.server)
	}
	if len(m.AuthorizationServers) == 0 {
		return errors.New("authorization_servers is empty")
	}
	if text := strings.Join(m.ScopesSupported, " "); text != "" {
		if _, err := parseScopes(text); err != nil {
			return fmt.Errorf("scopes_supported: %w", err)
		}
	}
	return nil
}

// chooseIssuer picks one of the authorization servers that the resource lists.
func (d *discovery) chooseIssuer(issuers []string, preferred string) (string, error) {
	if d.opts.ChooseIssuer != nil {
		issuer, err := d.opts.ChooseIssuer(slices.Clone(issuers))
		if err == nil && !slices.Contains(issuers, issuer) {
			err = fmt.Errorf("Options.ChooseIssuer chose %q, which the resource does not list", issuer)
		}
		if err != nil {
			return "", &Error{Step: StepResource, URL: d.server.String(), Err: err}
		}
		return issuer, nil
	}
	for _, client := range d.opts.Clients {
		if client.Issuer != "" && slices.Contains(issuers, client.Issuer) {
			return client.Issuer, nil
		}
	}
	if slices.Contains(issuers, preferred) {
		return preferred, nil
	}
	return issuers[0], nil
}

// serverMetadata fetches the metadata of an issuer from the places and in the
// order of the specification. It returns nil if there is none.
func (d *discovery) serverMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	u, err := url.Parse(issuer)
	if err != nil || strings.ContainsAny(issuer, "?#") || !sendable(issuer) { // with a space it would be two words of a key of the store
		return nil, &Error{Step: StepServer, URL: printable(issuer), Problem: "an issuer is a URL without query, fragment and space (RFC 8414, section 2)"}
	}
	if err := d.outbound.Check(u); err != nil {
		return nil, &Error{Step: StepServer, URL: printable(issuer), Err: err}
	}
	const oauthPlace, openidPlace = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	host, path := u.Scheme+"://"+u.Host, strings.TrimRight(u.EscapedPath(), "/")
	places := []string{host + oauthPlace + path, host + openidPlace + path}
	if path != "" {
		places = append(places, host+path+openidPlace)
	}
	for _, place := range places {
		var found serverMetadata
		ok, err := d.fetch(ctx, StepServer, place, &found)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := d.checkServer(&found, issuer); err != nil {
			return nil, &Error{Step: StepServer, URL: place, Err: err}
		}
		d.remember(&found)
		return &found, nil
	}
	return nil, nil
}

// checkServer checks what everything else relies on: metadata is that of the
// issuer it was fetched for (RFC 8414, section 3.3), and requests may be sent
// to its endpoints.
func (d *discovery) checkServer(m *serverMetadata, issuer string) error {
	switch m.Issuer {
	case issuer:
	case "":
		return fmt.Errorf("issuer is missing; it must be identical to %s, for which the metadata was fetched", issuer)
	default:
		return fmt.Errorf("issuer is %s, but the metadata was fetched for %s; they must be identical", printable(m.Issuer), issuer)
	}
	if m.TokenEndpoint == "" {
		return errors.New("token_endpoint is missing")
	}
	for name, endpoint := range map[string]string{
		"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint,
		"registration_endpoint": m.RegistrationEndpoint, "revocation_endpoint": m.RevocationEndpoint,
	} {
		if endpoint == "" {
			continue
		}
		u, err := url.Parse(endpoint)
		if err == nil {
			err = d.outbound.Check(u)
		}
		if err == nil && u.Fragment != "" {
			err = errors.New("it has a fragment")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// legacyAuthority returns the authorization server of an MCP server of
// 2025-03-26: the origin of the MCP server, with metadata or with the default
// endpoints.
//
// https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization
func (d *discovery) legacyAuthority(ctx context.Context, ch challenge) (*authority, error) {
	base := d.server.Scheme + "://" + d.server.Host
	if d.opts.NoLegacyDiscovery {
		return nil, &Error{Step: StepResource, URL: base,
			Problem: "the MCP server demands authorization but has no metadata; set a token by hand, or allow the fallbacks of 2025-03-26"}
	}
	server, err := d.serverMetadata(ctx, base)
	if err != nil {
		return nil, err
	}
	if server == nil {
		server = &serverMetadata{
			Issuer:                base,
			AuthorizationEndpoint: base + "/authorize",
			TokenEndpoint:         base + "/token",
			RegistrationEndpoint:  base + "/register",
			TokenAuthMethods:      []string{string(AuthNone), string(AuthSecretBasic), string(AuthSecretPost)},
			legacy:                true,
		}
	}
	resource := strings.TrimSuffix(d.server.String(), "/")
	return &authority{resource: resource, server: server, dpop: ch.dpop, bearer: ch.bearer || !ch.dpop}, nil
}

// fetch reads a metadata document. It returns false if there is none, which a
// server says with a 4xx status or with something other than JSON. A server
// that is broken or cannot be reached is an error: otherwise an attacker who
// can disturb it could choose the fallback.
func (d *discovery) fetch(ctx context.Context, step Step, place string, into any) (bool, error) {
	header := http.Header{}
	if strings.HasPrefix(place, d.server.Scheme+"://"+d.server.Host+"/") {
		header.Set("MCP-Protocol-Version", protocol.Latest.String()) // 2025-03-26 asks for it
	}
	answer, err := d.outbound.Get(ctx, place, header)
	if err != nil {
		return false, &Error{Step: step, URL: place, Err: err}
	}
	switch {
	case answer.Status >= 400 && !passingStatus(answer.Status):
		return false, nil
	case answer.Status != http.StatusOK:
		return false, &Error{Step: step, URL: place, Status: answer.Status, Problem: fmt.Sprintf("HTTP status %d", answer.Status)}
	}
	if text := strings.TrimSpace(string(answer.Body)); !strings.HasPrefix(text, "{") {
		return false, nil // a page for people
	}
	if err := jsonx.Unmarshal(answer.Body, into); err != nil {
		return false, &Error{Step: step, URL: place, Problem: "the document is " + misfit(answer.Body, err)}
	}
	return true, nil
}

// issuerMetadata returns the metadata of an issuer that has been used before,
// perhaps by another program.
func (d *discovery) issuerMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	d.mu.Lock()
	known := d.metadata[issuer]
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	server, err := d.serverMetadata(ctx, issuer)
	if err != nil || server != nil {
		return server, err
	}
	legacy, err := d.legacyAuthority(ctx, challenge{})
	if err != nil {
		return nil, err
	}
	if legacy.server.Issuer != issuer {
		return nil, &Error{Step: StepServer, URL: issuer, Problem: "there is none any more; log in again"}
	}
	return legacy.server, nil
}

// remember keeps checked metadata for later requests to the same issuer.
func (d *discovery) remember(server *serverMetadata) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.metadata[server.Issuer] = server
}

// resourceMetadata is the metadata of a protected resource (RFC 9728, section
// 2), as far as a client needs it.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
}

// serverMetadata is the metadata of an authorization server (RFC 8414, section
// 2), as far as a client needs it. It is not changed after it has been checked.
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

	// legacy is set for the default endpoints of 2025-03-26, of a server
	// without metadata.
	legacy bool
}

// supportsGrant reports whether a grant type can be used. A missing list means
// the authorization code only (RFC 8414, section 2), but servers with other
// grants leave it out too, so anything may be tried then.
func (m *serverMetadata) supportsGrant(grant string) bool {
	return len(m.GrantTypes) == 0 || slices.Contains(m.GrantTypes, grant)
}

// checkCode returns what keeps the authorization code from being used, or nil.
// A server without PKCE is refused.
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

// authority is what discovery returns: the resource, and who may issue tokens
// for it.
type authority struct {
	resource string // its identifier, for the resource parameter
	scopes   scopes // that it lists
	server   *serverMetadata
	dpop     bool // the resource takes DPoP tokens
	bearer   bool // the resource takes Bearer tokens
}

// origin returns scheme, host and port of a URL in one canonical form.
func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + outbound.HostPort(u)
}
