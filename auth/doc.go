// Package auth protects a server with access tokens: it is the resource server
// of OAuth 2.1 that basic/authorization of every revision of MCP asks for. Its
// middleware goes in front of the endpoint, in any router of net/http:
//
//	notes, err := auth.New("https://notes.example.com/mcp", auth.NewJWT("https://auth.example.com", nil),
//		&auth.Options{Scopes: []string{"notes:read"}})
//	if err != nil {
//		log.Fatal(err)
//	}
//	r := chi.NewRouter()
//	r.Use(notes.Metadata)
//	r.With(notes.Bearer).Mount("/mcp", server.Handler())
//
// A request without a valid token is answered with 401, one whose token lacks a
// scope with 403, both with a WWW-Authenticate header that tells a client where
// to get what is missing. Every other request reaches the server with an
// Identity. Handlers get it from Frame.Identity and Frame.HasScope; sessions,
// subscriptions, tasks and the state of questions are bound to it. The option
// mcp.Scopes demands further scopes for single components.
//
// # Verifying tokens
//
// A [Verifier] finds out what a token says: [NewJWT] by the keys of its issuer,
// [NewIntrospection] by asking the issuer, [Any] by whichever of several is
// responsible, [VerifierFunc] in any other way. Tokens that are bound to a key
// (DPoP, RFC 9449) are accepted only with a proof of that key.
//
// The result of a Verifier for a token is kept for Options.CacheFor, a minute by default, and never
// beyond the expiry of the token. Requests that arrive with the same token while it is verified wait
// for that one verification.
//
// # Specifications
//
// The package follows OAuth 2.1, RFC 6750 (bearer tokens), RFC 9728 (metadata
// of the resource), RFC 8707 (audience), RFC 9068 and RFC 7519 (JWT), RFC 7662
// (introspection), RFC 8414 and OpenID Connect Discovery (metadata of the
// issuer) and RFC 9449 (DPoP), as far as
// https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
// requires them.
//
// # Guarantees
//
// Nothing here logs a token or repeats it in an answer. A Resource and all
// Verifiers of this package are safe for concurrent use. Options are copied. No
// goroutine outlives the request that started it: functions of users run on
// goroutines of their own, for which the request waits, so that a panic or
// runtime.Goexit in them ends in an answer.
package auth
