// Package client talks to MCP servers of every revision from 2024-11-05 to
// 2026-07-28, over any transport.
//
//	c, err := client.Connect(ctx, client.HTTP("https://example.com/mcp", nil), nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	sum, err := client.Call[Sum](ctx, c, "sum", Numbers{2, 3})
//
// Connect finds out which revision the server speaks. The same code then works
// with all of them: questions of the server (roots, sampling, elicitation) go
// to the same handlers whether they arrive as requests or in a result that
// wants more input, and Listen reports changes in every revision.
//
// # Errors
//
// Errors are an *Error. Each cause that a program can act on has a sentinel for
// errors.Is, such as ErrTimeout or ErrNotFound. Retriable reports which errors may
// pass, and the option Retry sends a call again then. A tool that fails is not an
// error but a result with IsError, except for the typed Call, which returns a
// *ToolError.
//
// # Related packages
//
// Package client/pool spreads calls over several connections and replaces those
// that are lost; client/group uses many servers as one; client/config reads the
// files in which desktop programs list servers. A pool and a group are a
// Caller, as a Client is.
//
// # Concurrency
//
// A Client and everything it returns is safe for concurrent use. Handlers and
// callbacks run on goroutines of the client; they may call it, but must not
// wait for Close. A panic in one is logged and does no other harm. Close waits
// for all goroutines of the client, up to Options.CloseTimeout.
//
// # How it works
//
// This part is for those who change the package.
//
// A Client consists of parts that have a lock of their own. They call users' code
// outside of it; the one exception is the progress callback, which a call runs under
// its own lock so that it is never called after the call has ended. lifecycle owns the
// current connection and its state; it reconnects and renews sessions. calls is the
// table of requests in progress, which all connections share, so that request ids are
// never used twice. A connection is one link to the server, from opening to end, and
// is used once: after a loss there is a new one. handshake makes connections. handlers
// answer the server's questions, notifications delivers what the server reports,
// subscriptions are those of Listen, and toolIndex remembers definitions of tools.
//
// A call goes Client.Call → request.do → attempt → rounds → roundTrip. do
// repeats where that is safe, attempt picks the connection and looks into the
// cache, rounds answers results that want input, and roundTrip registers a
// call, hands the message to the link and waits. Over HTTP the link's Send
// returns when the answer has been read, on the goroutine of the caller
// (connection.sync). Over byte streams a goroutine of the link reads, and
// call.wait waits.
//
// How messages travel is the business of client/internal/link and the packages
// that implement it. They know nothing of what messages mean.
//
// Legacy and modern: a legacy revision (up to 2025-11-25) opens a session with
// initialize. A modern one (2026-07-28) has no sessions; its requests carry in
// _meta what the handshake says otherwise. Code asks the revision for a feature
// and does not compare dates.
package client
