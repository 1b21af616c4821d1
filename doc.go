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
//	func add(f *mcp.Frame, in AddIn) (int, error) { return in.A + in.B, nil }
//
//	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1.0.0"}, nil)
//	s.MustAdd(mcp.Tool("add", add, mcp.Doc("Adds two integers"), mcp.ReadOnly()))
//
// Resource and Prompt make resources and prompts in the same way: variables of
// a URI template and arguments of a prompt are fields of a struct.
//
// One Server serves every protocol revision from 2024-11-05 to 2026-07-28, at
// the same time, over HTTP (Handler) and standard input and output
// (ServeStdio). Package schema decides what tags mean; package frame says what
// a handler can ask of its request.
package mcp
