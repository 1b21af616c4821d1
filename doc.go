// Package mcp makes servers for the Model Context Protocol from plain Go
// functions.
//
// A tool is a function whose argument is a struct. The struct's tags are compiled
// once, into the JSON Schema that a model sees and the check that runs on every
// call:
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
// [Prompt] are made from functions, [File], [Bytes] and [Directory] from data, and
// [Method] serves a custom method. Options describe it. There is a type of option
// for each kind, so that one in the wrong place does not compile; [Option] fits
// all.
//
// The first parameter of the function is a [*Frame], or a context.Context if that
// is enough. The Frame is the context of the request: it has the client and its
// identity, and sends progress. The result type decides the form of the result: any
// Go value, [Content], or the builders [Result], [ResultOf] and [Messages]. An
// error is for the model to read, an [*Error] for the client's program. [Elicit]
// and [Ask] ask the user, [Once] keeps the result of a step that must not run again
// when the client sends the answer, and a [Key] keeps values for the session.
//
// # Serving
//
// One Server serves every protocol revision from 2024-11-05 to 2026-07-28 at the
// same time: over HTTP ([Server.Handler]), over standard input and output
// ([Server.ServeStdio]), over sockets and any transport.Conn. Components can be
// added and removed while it serves, and subscribed clients are notified.
// Middleware ([Server.Use]) wraps every method, [Server.Mount] takes in what
// another Server offers, [Server.Shutdown] ends in order. [Options] shape all of
// it: [Limits] has the sizes and [Timeouts] the durations. 0 is the default, and
// negative means no limit.
//
// # Other packages
//
// Package schema says what tags mean, frame what a handler can ask of its
// request, middleware and auth what goes around a server, mcptest how to test
// one, client how to use one. The directory docs has a guide for each part.
package mcp
