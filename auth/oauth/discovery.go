package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// discover finds out who may issue tokens for the MCP server. preferred is the
// issuer that did so before.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery
func (c *Client) discover(ctx context.Context, ch challenge, preferred string) (*authority, error) {
	resource, err := c.resourceMetadata(ctx, ch.metadata)
	if err != nil {
		return nil, err
	}
	if resource == nil {
		return c.legacyAuthority(ctx, ch)
	}
	issuer, err := c.chooseIssuer(resource.AuthorizationServers, preferred)
	if err != nil {
		return nil, err
	}
	server, err := c.serverMetadata(ctx, issuer)
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
func (c *Client) resourceMetadata(ctx context.Context, named string) (*resourceMetadata, error) {
	places := []string{named}
	if named == "" {
		const wellKnown = "/.well-known/oauth-protected-resource"
		base := c.server.Scheme + "://" + c.server.Host + wellKnown
		if path := strings.TrimRight(c.server.EscapedPath(), "/"); path != "" {
			places = []string{base + path, base}
		} else {
			places = []string{base}
		}
	}
	for _, place := range places {
		var found resourceMetadata
		ok, err := c.fetch(ctx, StepResource, place, &found)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := c.checkResource(&found); err != nil {
			return nil, &Error{Step: StepResource, URL: place, Err: err}
		}
		return &found, nil
	}
	if named != "" {
		return nil, &Error{Step: StepResource, URL: named, Problem: "there is none, although the challenge of the MCP server names this place"}
	}
	return nil, nil
}

// checkResource makes sure that metadata is about this server and no other: the
// resource is the server's URL, or what a path of whole segments has above it.
func (c *Client) checkResource(m *resourceMetadata) error {
	u, err := url.Parse(m.Resource)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(m.Resource, "#") {
		return fmt.Errorf("resource %s is no absolute URL without fragment", printable(m.Resource))
	}
	above := strings.TrimRight(u.EscapedPath(), "/")
	path := strings.TrimRight(c.server.EscapedPath(), "/")
	within := path == above || strings.HasPrefix(path, above+"/")
	if origin(u) != origin(c.server) || !within || u.RawQuery != "" && u.RawQuery != c.server.RawQuery {
		return fmt.Errorf("resource is %s, not the MCP server %s: a token for it is of no use here, and metadata of another server is not to be trusted",
			printable(m.Resource), c.server)
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

func (c *Client) chooseIssuer(issuers []string, preferred string) (string, error) {
	if c.opts.ChooseIssuer != nil {
		issuer, err := c.opts.ChooseIssuer(slices.Clone(issuers))
		if err == nil && !slices.Contains(issuers, issuer) {
			err = fmt.Errorf("Options.ChooseIssuer chose %q, which the resource does not list", issuer)
		}
		if err != nil {
			return "", &Error{Step: StepResource, URL: c.server.String(), Err: err}
		}
		return issuer, nil
	}
	for _, client := range c.opts.Clients {
		if client.Issuer != "" && slices.Contains(issuers, client.Issuer) {
			return client.Issuer, nil
		}
	}
	if slices.Contains(issuers, preferred) {
		return preferred, nil
	}
	return issuers[0], nil
}

// serverMetadata fetches the metadata of an issuer, in the order of the
// specification. It returns nil if there is none.
func (c *Client) serverMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	u, err := url.Parse(issuer)
	if err != nil || strings.ContainsAny(issuer, "?#") || !sendable(issuer) { // with a space it would be two words of a key of the store
		return nil, &Error{Step: StepServer, URL: printable(issuer), Problem: "an issuer is a URL without query, fragment and space (RFC 8414, section 2)"}
	}
	if err := c.outbound.Check(u); err != nil {
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
		ok, err := c.fetch(ctx, StepServer, place, &found)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if err := c.checkServer(&found, issuer); err != nil {
			return nil, &Error{Step: StepServer, URL: place, Err: err}
		}
		c.remember(&found)
		return &found, nil
	}
	return nil, nil
}

// checkServer checks what everything else relies on: metadata speaks for the
// issuer that it was fetched for (RFC 8414, section 3.3), and its endpoints may
// be asked.
func (c *Client) checkServer(m *serverMetadata, issuer string) error {
	if m.Issuer != issuer {
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
			err = c.outbound.Check(u)
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

// legacyAuthority is how servers of 2025-03-26 are authorized: the server's
// origin is the authorization server, with or without metadata.
//
// https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization
func (c *Client) legacyAuthority(ctx context.Context, ch challenge) (*authority, error) {
	base := c.server.Scheme + "://" + c.server.Host
	if c.opts.NoLegacyDiscovery {
		return nil, &Error{Step: StepResource, URL: base,
			Problem: "the MCP server demands authorization but has no metadata; set a token by hand, or allow the fallbacks of 2025-03-26"}
	}
	server, err := c.serverMetadata(ctx, base)
	if err != nil {
		return nil, err
	}
	if server == nil {
		server = &serverMetadata{
			Issuer:                base,
			AuthorizationEndpoint: base + "/authorize",
			TokenEndpoint:         base + "/token",
			RegistrationEndpoint:  base + "/register",
			TokenAuthMethods:      []string{AuthNone, AuthSecretBasic, AuthSecretPost},
			legacy:                true,
		}
		c.remember(server)
	}
	resource := strings.TrimSuffix(c.server.String(), "/")
	return &authority{resource: resource, server: server, dpop: ch.dpop, bearer: ch.bearer || !ch.dpop}, nil
}

// fetch reads a metadata document. It returns false if there is none: the
// server says so with a 4xx status, or has something else than JSON there. That
// the server is broken or out of reach is an error, lest an attacker who can
// disturb it choose the fallback.
func (c *Client) fetch(ctx context.Context, step, place string, into any) (bool, error) {
	header := http.Header{}
	if strings.HasPrefix(place, c.server.Scheme+"://"+c.server.Host+"/") {
		header.Set("MCP-Protocol-Version", protocol.Latest.String()) // 2025-03-26 asks for it
	}
	answer, err := c.outbound.Get(ctx, place, header)
	if err != nil {
		return false, &Error{Step: step, URL: place, Err: err}
	}
	switch {
	case answer.Status >= 400 && answer.Status < 500 && answer.Status != http.StatusTooManyRequests:
		return false, nil
	case answer.Status != http.StatusOK:
		return false, &Error{Step: step, URL: place, Status: answer.Status, Problem: fmt.Sprintf("HTTP status %d", answer.Status)}
	}
	if text := strings.TrimSpace(string(answer.Body)); !strings.HasPrefix(text, "{") {
		return false, nil // a page for people
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return false, &Error{Step: step, URL: place, Problem: "the document is no JSON of the right form", Err: err}
	}
	return true, nil
}
