package protocol

// Result is the result of a request: *CallToolResult, *ReadResourceResult,
// *GetPromptResult, *InputRequiredResult, JSONResult or RawResult. The interface
// is sealed because a result goes out as the revision of its request has it. A
// type that embeds one of these compiles as a Result, and the request is then
// answered with an error: return what it embeds.
type Result interface{ result() }

func (*CallToolResult) result()      {}
func (*ReadResourceResult) result()  {}
func (*GetPromptResult) result()     {}
func (*InputRequiredResult) result() {}
func (JSONResult) result()           {}
func (RawResult) result()            {}

// RawResult is the whole JSON object of a result, already encoded for the
// revision of its request. Nothing is added to it, neither resultType nor _meta.
type RawResult []byte

// JSONResult is a result whose members come from Value, which must encode to an
// object; otherwise the request is answered with an error. Value is encoded like
// the results of tools. A resultType in it replaces that of the server, and a _meta in
// it is added to Meta, whose members win.
type JSONResult struct {
	Value any
	Meta  map[string]any
}

// CallToolResult is the result of tools/call (server/tools). Every client shows
// Content; structuredContent is for programs. The specification asks servers to
// repeat structured content as text for clients that do not read it: here, this
// text is made in the same pass from the bytes just written, so that the value
// is encoded once.
type CallToolResult struct {
	Content []Content
	IsError bool
	Meta    map[string]any
	// Err is the error of a handler that IsError tells of, for middleware and
	// the log; nil if the handler made the result itself. It is never sent.
	Err error

	// AppendStructured appends structuredContent's JSON text; nil means that
	// there is none.
	AppendStructured func(dst []byte) ([]byte, error)
	// RepeatStructured adds the structured content as a text item before Content, for
	// clients that do not read it. Where a revision cannot carry the structured
	// content, and there is no other, the text is there without it.
	RepeatStructured bool
}
