package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema/raw"
)

// operation is an operation that becomes a tool. It does not change once it is made.
type operation struct {
	is      Operation
	doc     string
	base    string // URL without a slash at its end
	server  *origin.Server
	timeout time.Duration
	auth    func(*mcp.Frame, Operation, *http.Request) error
	params  []*parameter
	body    *body
	schema  json.RawMessage
}

// methods are those that become tools, in the order in which they do.
var methods = []string{"get", "head", "options", "post", "put", "patch", "delete"}

// operations makes the operations of all paths.
func (a *api) operations() {
	a.secured = map[[2]string]bool{}
	for _, m := range membersOf(a.doc.components()["securitySchemes"]) {
		if scheme, err := a.doc.follow(m.value); err == nil && scheme.text("type") == "apiKey" {
			a.secured[[2]string{scheme.text("in"), strings.ToLower(scheme.text("name"))}] = true
		}
	}
	seen := map[string]bool{}
	for _, path := range membersOf(a.doc.root["paths"]) {
		pointer := "/paths/" + escape(path.name)
		if seen[path.name] || !strings.HasPrefix(path.name, "/") {
			if !strings.HasPrefix(path.name, "x-") {
				a.problem(pointer, true, "a path begins with / and is there once")
			}
			continue
		}
		seen[path.name] = true
		item, err := a.doc.follow(path.value)
		if err != nil {
			a.problem(pointer, true, "%v", err)
			continue
		}
		if item["trace"] != nil {
			a.problem(pointer+"/trace", true, "TRACE would show the caller's credentials")
		}
		for _, name := range sortedKeys(item) {
			if method := strings.ToLower(name); name != method && slices.Contains(methods, method) {
				a.problem(pointer+"/"+name, true, "a method is written in lower case")
			}
		}
		for _, method := range methods {
			if item[method] != nil {
				a.operation(pointer+"/"+method, method, path.name, item)
			}
		}
	}
}

// operation makes one operation, or notes why it cannot.
func (a *api) operation(pointer, method, path string, item object) {
	o := objectOf(item[method])
	op := &operation{server: a.server, timeout: a.timeout, auth: a.opts.Auth, is: Operation{
		ID: o.text("operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: cmp.Or(o.text("summary"), item.text("summary")), Tags: o.texts("tags"),
	}}
	if a.opts.Include != nil && !a.opts.Include(op.is) {
		return
	}
	op.doc = documentation(op.is, cmp.Or(o.text("description"), item.text("description")), o.yes("deprecated"))
	problems := len(a.problems)
	err := a.complete(pointer, op, o, item)
	if err != nil {
		a.problems = a.problems[:problems]
		a.problem(pointer, true, "%v", err)
		return
	}
	a.made = append(a.made, op)
}

// maxDoc is how long a description of a tool is, in bytes: hosts cut longer ones.
const maxDoc = 1_024

// documentation returns the description of a tool.
func documentation(is Operation, description string, deprecated bool) string {
	text := strings.TrimSpace(is.Summary)
	if description = strings.TrimSpace(description); description != "" && description != text {
		text = strings.TrimSpace(text + "\n\n" + description)
	}
	if deprecated {
		text = strings.TrimSpace("Deprecated. " + text)
	}
	if len(text) > maxDoc {
		text = strings.ToValidUTF8(text[:maxDoc-len("…")], "") + "…"
	}
	return cmp.Or(text, is.Method+" "+is.Path)
}

// complete adds everything that a call needs.
func (a *api) complete(pointer string, op *operation, o, item object) (err error) {
	if a.room < 0 {
		return errAll
	}
	if op.base, err = a.baseOf(o, item); err != nil {
		return err
	}
	if err := a.parameters(pointer, op, o, item); err != nil {
		return err
	}
	if o["requestBody"] != nil {
		if op.body, err = newBody(a.schemas, o["requestBody"]); err != nil {
			return err
		}
	}
	if m := op.is.Method; op.body != nil && (m == http.MethodGet || m == http.MethodHead) {
		a.problem(pointer+"/requestBody", false, "%s has no body: it is left out", m)
		op.body = nil
	}
	args := op.arguments(a.schemas)
	text, cut, err := a.schemas.arguments(args)
	if err != nil {
		return err
	}
	if cut != "" {
		a.problem(pointer, false, "%s", cut)
	}
	if len(text) > maxLarge {
		return fmt.Errorf("its schema has %d bytes, more than %d", len(text), maxLarge)
	}
	if a.room -= len(text); a.room < 0 {
		return errAll
	}
	op.schema = text
	return valid(text)
}

// errAll is the error of all operations from the one on with which the schemas are too large.
var errAll = fmt.Errorf("the schemas of the document have more than %d bytes", maxAll)

// The limits of what a document makes this package keep. References can make it much longer.
const (
	maxParameters = 1_000    // of an operation
	maxLarge      = 1 << 20  // bytes of a schema after trimming
	maxAll        = 64 << 20 // bytes of all schemas
)

// valid reports why package raw refuses a schema. The keywords that are kept have their
// forms, so that this is only needed for patterns, which may be too large together, and
// for the depth.
func valid(schema []byte) error {
	s := jsonx.Scanner{Buf: schema, MaxDepth: safeDepth}
	if _, err := s.Skip(); err == nil && !bytes.Contains(schema, []byte(`"pattern`)) {
		return nil
	}
	if _, err := raw.Compile(schema); err != nil {
		return fmt.Errorf("its arguments have no valid schema: %w", err)
	}
	return nil
}

// safeDepth is the depth of schemas that package raw certainly takes.
const safeDepth = 100

// baseOf returns the base URL of an operation: of its own servers, of those of its path,
// or of the document.
func (a *api) baseOf(o, item object) (string, error) {
	servers := o.list("servers")
	if len(servers) == 0 {
		servers = item.list("servers")
	}
	if len(servers) == 0 {
		return a.base, nil
	}
	address, err := serverURL(servers[0])
	if err != nil {
		return "", err
	}
	base, err := url.Parse(a.base + "/")
	if err != nil {
		return "", err
	}
	u, err := base.Parse(address)
	if err != nil {
		return "", fmt.Errorf("its server %.200q is no URL", address)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if u, err = a.server.Resolve(u.String()); err != nil {
		return "", fmt.Errorf("its server %s is another origin: call Tools again with it as Options.Server", address)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// serverURL returns the URL of a server object with the defaults of its variables.
func serverURL(text []byte) (string, error) {
	o := objectOf(text)
	address := o.text("url")
	for _, m := range membersOf(o["variables"]) {
		v := objectOf(m.value)
		value := v.text("default")
		if value == "" && len(v["default"]) > 0 && v["default"][0] != '"' {
			value = string(v["default"]) // a number
		}
		address = strings.ReplaceAll(address, "{"+m.name+"}", value)
	}
	if strings.ContainsAny(address, "{}") {
		return "", fmt.Errorf("its server %.200q has a variable without a default", address)
	}
	return address, nil
}

// baseURL returns the URL of a server without query and fragment.
func baseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the URL of the server is not valid")
	}
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	return u, nil
}

// templated matches the variables of a path.
var templated = regexp.MustCompile(`\{([^{}]*)\}`)

// parameters reads the parameters of an operation. Its own come before those of the path
// with the same place and name.
func (a *api) parameters(pointer string, op *operation, o, item object) error {
	in := templated.FindAllStringSubmatch(op.is.Path, -1)
	seen := map[[2]string]bool{}
	all := append(o.list("parameters"), item.list("parameters")...)
	if len(all) > maxParameters {
		return fmt.Errorf("it has more than %d parameters", maxParameters)
	}
	for _, text := range all {
		of, err := a.doc.follow(text)
		if err != nil {
			return fmt.Errorf("a parameter: %w", err)
		}
		p, err := newParameter(a.schemas, of)
		if errors.Is(err, errUnsendable) {
			a.problem(pointer, false, "%v", err)
			continue
		}
		if err != nil {
			return err
		}
		key := [2]string{p.in, p.name}
		if p.in == "header" {
			key[1] = strings.ToLower(p.name)
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		fixed, isFixed := a.opts.Fixed[p.name]
		switch {
		case p.in == "header" && ignored(p.name):
			continue
		case p.in == "path" && !slices.ContainsFunc(in, func(m []string) bool { return m[1] == p.name }):
			a.problem(pointer, false, "the path has no {%s}: the parameter is left out", p.name)
			continue
		case isFixed:
			p.fixed = &fixed
			delete(a.unused, p.name)
		case a.secured[[2]string{p.in, strings.ToLower(p.name)}]:
			continue
		}
		op.params = append(op.params, p)
	}
	for _, m := range in {
		if seen[[2]string{"path", m[1]}] {
			continue
		}
		seen[[2]string{"path", m[1]}] = true
		p := &parameter{name: m[1], in: "path", style: "simple", required: true, schema: tree{"type": "string"}}
		if fixed, ok := a.opts.Fixed[p.name]; ok {
			p.fixed = &fixed
			delete(a.unused, p.name)
		}
		a.problem(pointer, false, "{%s} of the path is no parameter: it is taken as a text", p.name)
		op.params = append(op.params, p)
	}
	return nil
}

// arguments names the arguments and returns them: parameters, then the body or its
// members.
func (op *operation) arguments(s *schemas) []argument {
	var free []*parameter
	places := map[string]map[string]bool{}
	for _, p := range op.params {
		if p.fixed != nil {
			continue
		}
		free = append(free, p)
		if places[p.name] == nil {
			places[p.name] = map[string]bool{}
		}
		places[p.name][p.in] = true
	}
	var members tree
	var needed []any
	if op.body != nil {
		var flat bool
		if members, needed, flat = op.body.flat(s); flat {
			for name := range members {
				flat = flat && places[name] == nil
			}
		}
		if !flat {
			members, op.body.arg = nil, "body"
		}
	}
	var wanted []string
	for _, p := range free {
		name := p.name
		if len(places[name]) > 1 || name == "body" && op.body != nil && op.body.arg != "" {
			name += "_" + p.in
		}
		for slices.Contains(wanted, name) || members[name] != nil && name != p.name {
			name += "_" + p.in
		}
		wanted = append(wanted, name)
	}
	sorted := sortedKeys(members)
	fitted := names.Fit(append(append(slices.Clone(wanted), sorted...), "body"), names.Max)
	var args []argument
	for i, p := range free {
		p.arg = fitted[wanted[i]]
		args = append(args, argument{p.arg, named(p.schema, p.arg, p.name), p.required})
	}
	if op.body == nil {
		return args
	}
	if op.body.arg != "" {
		return append(args, argument{"body", op.body.schema, op.body.required})
	}
	op.body.members = map[string]string{}
	for _, name := range sorted {
		op.body.members[fitted[name]] = name
		args = append(args, argument{fitted[name], named(members[name], fitted[name], name), slices.Contains(needed, any(name))})
	}
	return args
}

// named returns a schema whose description has the name in the document, if the argument
// has another.
func named(schema any, arg, name string) any {
	t, ok := schema.(tree)
	if !ok || arg == name {
		return schema
	}
	out := maps.Clone(t)
	said, _ := t["description"].(string)
	out["description"] = strings.TrimSpace(name + "\n" + said)
	return out
}

// tool returns the tool of the operation.
func (op *operation) tool(a *api, name string) mcp.Component {
	opts := []mcp.ToolOption{mcp.InputSchema(op.schema), mcp.Doc(op.doc), mcp.OpenWorld(true), mcp.MadeOption(option.Tool{Name: "openapi", Foreign: true})}
	if title := strings.TrimSpace(op.is.Summary); title != "" && len(title) <= 100 {
		opts = append(opts, mcp.Title(title))
	}
	switch op.is.Method {
	case http.MethodGet, http.MethodHead:
		opts = append(opts, mcp.ReadOnly())
	case http.MethodPut:
		opts = append(opts, mcp.Idempotent())
	case http.MethodDelete:
		opts = append(opts, mcp.Idempotent(), mcp.Destructive(true))
	}
	if a.opts.Tool != nil {
		opts = append(opts, a.opts.Tool(op.is)...)
	}
	return mcp.Tool(name, func(f *mcp.Frame, in json.RawMessage) (protocol.Result, error) { return op.call(f, in) }, opts...)
}
