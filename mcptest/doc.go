// Package mcptest is a client for tests of servers, and a server for tests of
// clients:
//
//	c := mcptest.New(t, server)
//	result := c.Call("add", map[string]int{"a": 1, "b": 2})
//	// result.Text(), result.Structured(&sum), result.IsError
//
// [Each] runs a test in every revision, and the function [Call] returns a typed
// result.
//
// The client speaks any revision, over a pipe within the process or over HTTP
// on a loopback socket. It answers the server's questions (elicitation,
// sampling, roots) from a script given by options. In the modern revision it
// sends a request again with the answers, so that one test covers a handler in
// every revision.
//
// [Frame] makes the Frame for a test that calls a handler as a function, and
// [NewScript] a server that says what a test wants, for tests of clients.
//
// Methods that return no error end the test on failure, at the line that called
// them. The end of the test closes the client, and with it the server's side of
// the connection; an error of that side fails the test.
//
// The test client never retries, caches, reconnects or waits for tasks, so that
// a test sees exactly what the server sent. Only pings are answered without a
// script.
package mcptest
