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
// Connect finds out what the server speaks. The same code then works with all
// of them: questions of the server (roots, sampling, elicitation) go to the
// same handlers, whether they come as requests or in a result that wants more
// input; Listen tells of changes in every revision.
//
// Errors are an *Error. Each cause that a program can act on has a sentinel for
// errors.Is, such as ErrTimeout or ErrNotFound; Retriable says which may pass, and
// Retry makes a call again then. A tool that fails is no error, but for the typed
// Call: there it is a *ToolError.
//
// Package client/pool spreads calls over several connections and replaces those
// that are lost; client/group uses many servers as one; client/config reads the
// files in which they are listed. A pool and a group are a Caller, as a Client is.
//
// A Client and everything it gives is safe for concurrent use. Handlers run on
// goroutines of the client; they may call it, but must not wait for Close.
package client
