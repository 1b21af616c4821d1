// Package telemetry tells OpenTelemetry what servers do: spans and metrics by the
// semantic conventions for MCP, below the spans of the clients that send their trace
// in _meta.
//
//	stop, err := telemetry.Server(server, nil) // before serving
//
// It uses only the API of OpenTelemetry. The SDK of the program decides what happens
// with spans and metrics; without one the cost is close to zero.
//
//   - [Server] gives each message a span of the kind SERVER and counts it.
//   - [Options] say which providers and which propagator, whose trace is continued,
//     and what more is put on spans.
//
// Arguments, results, addresses, principals, sessions, URIs and texts of errors are
// not exported, unless Options.Attributes adds them. Names that are not registered
// with the server become _OTHER, and so do targets after the first 500 and codes
// that the protocol does not have, so that a client cannot make series.
//
// Names, kinds, units and buckets follow docs/gen-ai/mcp.md of OpenTelemetry's
// semantic-conventions-genai as of commit 0393513, which is in development; what it
// does not know begins with "talaria.".
package telemetry
