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
// input; Listen tells of changes in both eras.
//
// A Pool spreads calls over several connections and replaces those that are
// lost. A Many uses many servers as one, such as those of a configuration file
// that ReadConfig has read. Both are a Caller, as a Client is.
//
// A Client and everything it gives is safe for concurrent use. Handlers run on
// goroutines of the client; they may call it, but must not wait for Close.
package client
