// Package openapi makes tools of the operations of an OpenAPI document, 3.0 or 3.1
// (https://spec.openapis.org/oas/), so that a server offers an HTTP API.
//
// [Tools] reads a document. An operation that it cannot offer is left out, and a
// [Problem] says why; the others are not affected. Arguments are checked against the
// schemas of the document before anything is sent. Requests go to one origin and to no
// other, whatever the document, a redirect or an argument says. Nothing of the incoming
// request is forwarded: [Options.Auth] puts the credentials of each caller in.
//
// # Parts
//
// A document (document.go) is JSON text in which references are looked up; YAML becomes
// that text (yaml.go). A schemas (schema.go, trim.go) makes the schema of arguments. An
// operation (operation.go) is one tool: its parameters (parameter.go) and its body
// (body.go) make the request (request.go), and the response becomes the result
// (result.go). Once made, an operation does not change.
package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/internal/visible"
)

// Options are the options of Tools. The zero value has the defaults.
type Options struct {
	// Server is the base URL of the API, in place of the servers of the document. It is
	// needed where those are relative, or absent. User and password in it become basic
	// authentication.
	Server string
	// Client gives its transport, timeout and check of redirects; nil means a transport of its own
	// and 30 s. A Jar is an error of Tools, since callers would share its cookies.
	Client *http.Client
	// Auth puts the caller's credentials into headers or the query of r. It runs last, for
	// each attempt, on the goroutine of the call. An error ends the call and is the
	// tool's. Values of 8 bytes and more that it sets are masked in results. nil sends none.
	Auth func(f *mcp.Frame, op Operation, r *http.Request) error
	// Fixed are the values of parameters that are not arguments, by name: a version,
	// or the key of the server itself.
	Fixed map[string]string
	// Include reports whether an operation becomes a tool; nil includes all.
	Include func(Operation) bool
	// Name names the tool of an operation. "" and nil mean the operationId, or else
	// method and path. Names are then changed to what every host accepts.
	Name func(Operation) string
	// Tool returns further options of a tool, such as mcp.Scopes; nil returns none.
	Tool func(Operation) []mcp.ToolOption
}

// defaultTimeout is how long a call takes at most without Options.Client.
const defaultTimeout = 30 * time.Second

// Operation describes an operation of the document, as it is there.
type Operation struct {
	ID, Method, Path, Summary string // Method is upper-case; ID may be ""
	Tags                      []string
}

// Problem is what Tools left out or changed.
type Problem struct {
	Pointer string // JSON Pointer (RFC 6901) of the operation, or of the part
	Text    string
	LeftOut bool // there is no tool for the operation
}

// String returns the pointer and the text on one line, for logs.
func (p Problem) String() string {
	return visible.Line(cmp.Or(p.Pointer, "(root)")+": "+p.Text, visible.Sentence)
}

// Tools returns a tool for each operation of a document in JSON or YAML, in the order of
// the document. The error is of a document or of options that cannot be used at all. A
// document is trusted with the words of tools; it decides neither where requests go nor
// which credentials they have. Tools keeps no reference to doc.
func Tools(doc []byte, o *Options) ([]mcp.Component, []Problem, error) {
	if o == nil {
		o = &Options{}
	}
	d, err := read(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("openapi: %w", err)
	}
	a := &api{doc: d, opts: o, schemas: newSchemas(d), unused: map[string]bool{}, timeout: defaultTimeout, room: maxAll}
	if err := a.connect(); err != nil {
		return nil, nil, fmt.Errorf("openapi: %w", err)
	}
	for name := range o.Fixed {
		a.unused[name] = true
	}
	a.operations()
	tools := a.tools()
	for _, name := range slices.Sorted(maps.Keys(a.unused)) {
		a.problem("", false, "Options.Fixed: no operation has a parameter %q", name)
	}
	return tools, a.problems, nil
}

// api is one run of Tools.
type api struct {
	doc      *document
	opts     *Options
	schemas  *schemas
	server   *origin.Server
	base     string // URL without a slash at its end
	timeout  time.Duration
	secured  map[[2]string]bool // place and name of the keys of security schemes
	unused   map[string]bool    // names of Fixed
	made     []*operation
	room     int // bytes for more schemas
	problems []Problem
}

// problem notes what was left out or changed.
func (a *api) problem(pointer string, leftOut bool, format string, args ...any) {
	a.problems = append(a.problems, Problem{pointer, fmt.Sprintf(format, args...), leftOut})
}

// connect decides which server requests go to.
func (a *api) connect() error {
	if c := a.opts.Client; c != nil {
		if c.Jar != nil {
			return fmt.Errorf("%s has a cookie jar, which callers would share", "Client")
		}
		if c.Timeout > 0 {
			a.timeout = c.Timeout
		}
	}
	address := a.opts.Server
	if address == "" {
		var err error
		if address, err = a.documentServer(); err != nil {
			return err
		}
	}
	u, err := baseURL(address)
	if err != nil {
		return err
	}
	if a.opts.Server == "" {
		u.User = nil // the document has no say in credentials
		address = u.String()
	}
	if a.server, err = origin.New(address, origin.Options{Client: a.opts.Client, API: true}); err != nil {
		return err
	}
	u.User = nil
	a.base = strings.TrimSuffix(u.String(), "/")
	return nil
}

// documentServer returns the URL of the first server of the document.
func (a *api) documentServer() (string, error) {
	servers := a.doc.root.list("servers")
	if len(servers) == 0 {
		return "", errors.New("the document has no servers: say Options.Server")
	}
	address, err := serverURL(servers[0])
	if err != nil {
		return "", fmt.Errorf("servers[0]: %w: say Options.Server", err)
	}
	if !strings.Contains(address, "://") {
		return "", fmt.Errorf("servers[0] is %q: say Options.Server", address)
	}
	return address, nil
}

// tools returns the tools of all operations, with their names.
func (a *api) tools() []mcp.Component {
	wanted, count := make([]string, len(a.made)), map[string]int{}
	for i, op := range a.made {
		if a.opts.Name != nil {
			wanted[i] = a.opts.Name(op.is)
		}
		if wanted[i] == "" {
			wanted[i] = cmp.Or(op.is.ID, op.is.Method+" "+op.is.Path)
		}
		count[wanted[i]]++
	}
	for i, op := range a.made {
		if count[wanted[i]] > 1 {
			wanted[i] += " " + op.is.Method + " " + op.is.Path
		}
	}
	fitted := names.Fit(wanted, names.Max)
	tools := make([]mcp.Component, len(a.made))
	for i, op := range a.made {
		tools[i] = op.tool(a, fitted[wanted[i]])
	}
	return tools
}
