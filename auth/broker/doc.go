// Package broker is an authorization server inside an MCP server. MCP clients
// register themselves there; users log in at the identity provider that their
// company has, which knows one client, the broker. It also keeps tokens of
// other services for each user, so that handlers can call these services as
// their caller.
//
//	door, err := broker.New("https://notes.example.com", broker.Entra(tenant, id, secret), &broker.Options{
//		Resources: []string{"https://notes.example.com/mcp"}, Keys: keys, Store: store,
//		Scopes:    []broker.Scope{{Name: "notes:read", Allows: "read your notes"}},
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	notes, err := auth.New("https://notes.example.com/mcp", door.Verifier("https://notes.example.com/mcp"), nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	r := chi.NewRouter()
//	r.Use(door.Middleware, notes.Metadata)
//	r.With(notes.Bearer).Mount("/mcp", server.Handler())
//
// Register two kinds of redirect URIs at providers: ISSUER/callback for the
// login, and ISSUER/callback/NAME for the service NAME.
//
// # What is kept where
//
// Clients, questions, visits to a provider, codes and access tokens are sealed
// with Options.Keys and kept by clients and browsers, so that unknown clients make the
// server keep nothing. The store has one entry for each user, with the user's
// logins, and one for each user and service. Entries are sealed and their names
// are hashes. All of it is bound to the issuer: brokers of different issuers can
// share keys and a store.
//
// # Guarantees
//
// A Broker is safe for concurrent use and has no goroutine of its own. Functions
// of users run on goroutines for which the request waits, so that a panic in
// them ends in an answer. No token, secret or code is part of an error or an
// Event.
//
// # Specifications
//
// OAuth 2.1 with PKCE, RFC 7591 (registration), Client ID Metadata Documents,
// RFC 8414 (metadata), RFC 8707 (resource), RFC 9207 (iss), RFC 9449 (DPoP), RFC
// 7009 (revocation), and OpenID Connect Core towards providers, as
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
// and the page on security best practices require them.
package broker
