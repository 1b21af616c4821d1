// Package oauth is the client side of MCP authorization over HTTP. A [Client]
// belongs to one MCP server. Its [Client.HTTPClient] adds the access token to
// every request to that server, understands the server's challenges, runs the
// authorization that they ask for once, however many requests wait for it, and
// sends the requests again.
//
//	c, err := oauth.New("https://mcp.example.com/mcp", &oauth.Options{
//		Document: &oauth.Document{URL: "https://app.example.com/client.json"},
//		Store:    store,
//	})
//	if err != nil { … }
//	transport := client.HTTP("https://mcp.example.com/mcp", &client.HTTPOptions{Client: c.HTTPClient()})
//
// It follows the specification of all revisions, 2026-07-28 being the
// strictest: discovery by protected resource metadata (RFC 9728) and
// authorization server metadata (RFC 8414, OpenID Connect Discovery), with the
// fallbacks of 2025-03-26; Client ID Metadata Documents, dynamic registration
// (RFC 7591) and clients that are registered beforehand; PKCE with S256, always;
// resource indicators (RFC 8707); validation of the issuer in answers (RFC
// 9207); step-up; refresh with rotation; revocation (RFC 7009). A [Grant] other
// than [AuthorizationCode] selects one of the extensions. DPoP (RFC 9449) is
// used if a server demands it or Options ask for it.
//
// A token goes to the origin of the server that it was issued for and nowhere
// else, whatever a redirect says. Clients and tokens belong to the issuer that
// gave them. Nothing is logged. Addresses that servers name are fetched only if
// they are https and public, unless the MCP server is on this very machine.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
//
// # How a request is authorized
//
// A request is sent with the token that the client has, or without one. If the server answers 401 or
// 403 with a challenge for bearer or DPoP tokens, the client reads the challenge, gets a token and
// sends the request again; an attempt (client.go) counts how often. A challenge starts a flow
// (flow.go): refreshing the token, or discovery, registration and a new grant. A flow is run by one
// request at a time; requests that were refused at the same time wait for it and share its outcome, so
// that the user is asked once.
//
// # Parts
//
// discovery finds the authorization server and its metadata; registrar finds or
// registers the client to use with it; a Grant gets a token (code.go,
// machine.go); endpoints talks to token, registration and revocation endpoints;
// storage keeps records in the Store. They share a setup, which does not
// change. All requests but those to the MCP server itself go through package
// outbound, which checks their addresses.
//
// # Concurrency
//
// A Client is safe for concurrent use. Its lock is Client.flow, a channel of
// one place, because waiting for it has to end with the context; Client.mu
// guards the fields that are read without it and is never held during a
// request. A Store may be shared by programs: refreshing runs inside
// Store.Update, so that two programs never use one refresh token.
//
// Errors have type [*Error], which never contains a token, a code or a secret.
package oauth
