// Package mcptest is an in-memory client for tests of servers:
//
//	c := mcptest.New(t, server)
//	result := c.Call("add", map[string]int{"a": 1, "b": 2})
//	// result.Text(), result.Structured(&sum), result.IsError
//
// Each does that in every revision, and Call returns a typed result.
//
// The client speaks any revision, through a pipe or over HTTP, and answers
// what the server asks from a script: elicitation, sampling and roots. In the
// modern revision it sends a request again with the answers, so that the same
// test covers a handler in every revision. Whatever fails ends the test with the
// line of the call that failed; the end of the test ends the client, and with
// it the server's side of the connection.
//
// It is the client of package client with all turned off that this does by
// itself: what a test sees is what it has done. Pings alone are answered without
// a script.
package mcptest
