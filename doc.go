// Package mcp makes servers for the Model Context Protocol from plain Go
// functions.
//
// A tool is a func whose argument is a struct; the struct's tags become, once,
// the JSON Schema that a model sees and the check that runs on every call:
//
//	type AddIn struct {
//		A int `json:"a" jsonschema_description:"first summand"`
//		B int `json:"b" jsonschema_description:"second summand"`
//	}
//
//	func add(ctx context.Context, in AddIn) (int, error) { return in.A + in.B, nil }
//
//	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1.0.0"}, nil)
//	s.MustAdd(mcp.Tool("add", add, mcp.Doc("Adds two integers"), mcp.ReadOnly()))
//
// # Components
//
// What a Server offers is a [Component]: [Tool], [Resource], [Template] and
// [Prompt] make one of a func, [File], [Bytes] and [Directory] of data, [Method]
// a method of your own. Options describe it. There is a type of option for each
// kind, so that one in the wrong place does not compile; [Option] fits all.
//
// The func's first parameter is a [*Frame], or a context.Context if that is
// enough. The Frame is the context of the request and knows who asks, and how to
// tell the client of progress. What the func returns decides the form of the
// result: any Go value, [Content], or the builders [Result], [ResultOf] and
// [Messages]. An error is for the model to read, an [*Error] for the client's
// program. [Elicit] and [Ask] ask the user, [Once] keeps what must not happen
// again when the client comes back with the answer, and a [Key] keeps values for
// the session.
//
// # Serving
//
// One Server serves every protocol revision from 2024-11-05 to 2026-07-28 at the
// same time: over HTTP ([Server.Handler]), over standard input and output
// ([Server.ServeStdio]), over sockets and any transport.Conn. Components may
// come and go meanwhile, and clients that watch are told. Middleware
// ([Server.Use]) wraps every method, [Server.Mount] takes in what another Server
// offers, [Server.Shutdown] ends in order. [Options] shape all of it: its
// [Limits] are the numbers and its [Timeouts] the durations, of which 0 is the
// default and negative is none.
//
// # Other packages
//
// Package schema says what tags mean, frame what a handler can ask of its
// request, middleware and auth what goes around a server, mcptest how to test
// one, client how to use one. The directory docs has a guide for each part.
package mcp
