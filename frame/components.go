package frame

import "errors"

// Components are where Frame.Add and Frame.Remove lead: the server.
type Components interface {
	Add(f *Frame, components []any) error
	Remove(f *Frame, names []string) (int, error)
}

// Add adds components to what the legacy session of this request is offered:
// what mcp.Tool, mcp.Resource and mcp.Prompt return. Other clients do not see
// them, and they go with the session. All are added, or none; the error lists
// every fault, as that of Server.Add does, and a name that the server or the
// session has already is one. The client is told of the change.
//
// In the modern era, where lists must not differ between requests, it is an
// error: add components to the Server there.
func (f *Frame) Add(components ...any) error {
	if f.root.components == nil {
		return errNoComponents
	}
	return f.root.components.Add(f, components)
}

// Remove takes components back that Add has added to the session of this
// request, by name, URI or URI template, and returns how many there were. It is
// an error where Add is.
func (f *Frame) Remove(names ...string) (int, error) {
	if f.root.components == nil {
		return 0, errNoComponents
	}
	return f.root.components.Remove(f, names)
}

var errNoComponents = errors.New("frame: there is no server that could take or give components")
