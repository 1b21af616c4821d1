// Package auth protects a server with access tokens: it is the resource server
// of OAuth 2.1, as basic/authorization of every revision asks for it. Its
// middleware goes before the endpoint, in any router of net/http:
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
// Requests without a valid token get 401, those whose token lacks a scope 403,
// both with a WWW-Authenticate that tells a client where to get what it lacks.
// Others reach the server with an Identity, which handlers find with
// Frame.Identity and Frame.HasScope, and to which sessions, subscriptions,
// tasks and the state of questions are bound. The option mcp.Scopes asks for
// more scopes for single components.
//
// A Verifier finds out what a token says: NewJWT by the keys of its issuer,
// NewIntrospection by asking it, Any by what fits of several. Tokens that are
// bound to a key (DPoP, RFC 9449) are taken with a proof of that key alone.
//
// Package authtest has an authorization server for tests.
//
// Nothing here logs a token or repeats it in an answer.
package auth
