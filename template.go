package mcp

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/uritemplate"
)

// Template makes a template of a func that reads the resources whose URIs fit
// it (RFC 6570, see package uritemplate). The func's first parameter is that of
// a [Tool]; In is a struct with a field for each variable, named by its json
// tag, whose tags check the value as those of a tool's arguments do. Values are
// text; numbers, booleans, dates and lists are made from it. Values that could
// lead out of a directory are refused; see [Unconfined]. Out decides the form of
// the contents, and errors are told, as those of a [Resource].
//
//	mcp.Template("users://{id}{?lang}", readUser, mcp.Name("user"))
//
// Faults of URI, types, tags and options are reported by Server.Add.
func Template[Ctx context.Context, In, Out any](uri string, read func(ctx Ctx, in In) (Out, error), opts ...ResourceOption) Component {
	set := newResourceSettings(opts)
	set.faults = append(handlerFaults[Ctx](read == nil), set.faults...)
	return &resource{uri: uri, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), settings: set, run: erase(read)}
}

// variables binds the variables of a template to the fields of a struct.
type variables struct {
	template *uritemplate.Template
	names    []string
	plan     *schema.Plan
	lists    map[string]bool // variables whose field is a list
	rooted   map[string]bool // those that may begin with a slash
	free     []string        // those that may be any path
}

func (r *resource) compileTemplate(c *compiler, form contentsForm) (faults []string) {
	set := r.settings
	if !strings.ContainsAny(r.uri, "{}") {
		return []string{"a template has {variables} in its URI; use mcp.Resource where there are none"}
	}
	template, err := uritemplate.Parse(r.uri)
	if err != nil {
		return []string{err.Error()}
	}
	opts := c.schemaOptions()
	opts.Strict, opts.Output = false, false // a URI has nothing but text
	plan, err := schema.Compile(r.in, &opts)
	if err != nil {
		return []string{err.Error()}
	}
	if set.size != nil {
		faults = append(faults, "Size: the resources of a template differ in size; leave it out")
	}
	v := &variables{template: template, names: template.Names(), plan: plan, free: set.unconfined}
	faults = append(faults, v.bind(r.in)...)
	completers, more := set.completersFor(plan, v.names, "template variable")
	faults = append(faults, more...)
	c.entries = append(c.entries, &registry.Entry{
		Definition: &protocol.ResourceTemplate{
			URITemplate: r.uri, Name: set.nameOr(r.uri), Title: set.title, Description: set.doc, Icons: set.icons,
			MIMEType: form.mimeOr(set.mime), Annotations: set.annotations, Meta: set.meta,
		},
		Match: func(uri string) registry.Handler {
			values, ok := template.Match(uri)
			if !ok {
				return nil
			}
			return r.reader(c, form, func(f *frame.Frame, in any) error { return v.decode(f, values, in) })
		},
		Literals: template.Literals(), Completers: completers, Arguments: v.names, Visible: set.visible, Scopes: set.scopes,
	})
	return faults
}

// bind finds the field of each variable, and reports what does not go together.
func (v *variables) bind(in reflect.Type) (faults []string) {
	v.lists, v.rooted = map[string]bool{}, map[string]bool{}
	fields := map[string]schema.Field{}
	for _, field := range v.plan.Fields() {
		fields[field.Name] = field
		if !slices.Contains(v.names, field.Name) && in.Kind() != reflect.Map {
			faults = append(faults, fmt.Sprintf("field %s: the URI has no variable {%s}; add it, or take the field out with json:\"-\"", field.GoName, field.Name))
		}
	}
	for _, name := range v.names {
		field, ok := fields[name]
		if !ok && in.Kind() != reflect.Map {
			faults = append(faults, fmt.Sprintf("variable {%s} has no field in %v; add one with json:\"%s\"", name, in, name))
		}
		v.lists[name] = field.Type == "array"
		v.rooted[name] = v.template.Rooted(name)
	}
	for _, name := range v.free {
		if !slices.Contains(v.names, name) {
			faults = append(faults, fmt.Sprintf("Unconfined(%q): there is no such variable", name))
		}
	}
	return faults
}

// decode checks the values of a URI and decodes them into in.
func (v *variables) decode(ctx context.Context, values uritemplate.Values, in any) error {
	doc := []byte{'{'}
	var outside []schema.Issue
	for _, name := range v.names {
		list := values[name]
		if list == nil {
			continue
		}
		if reason := v.escapes(name, list); reason != "" {
			outside = append(outside, schema.Issue{Path: "/" + name, Rule: "path", Expected: "a value that stays inside", Message: reason})
		}
		if len(doc) > 1 {
			doc = append(doc, ',')
		}
		doc = append(jsonx.AppendString(doc, name), ':')
		if !v.lists[name] {
			doc = jsonx.AppendString(doc, strings.Join(list, ","))
			continue
		}
		for i, item := range list {
			doc = append(doc, "[,"[min(i, 1)])
			doc = jsonx.AppendString(doc, item)
		}
		doc = append(doc, ']')
	}
	if outside != nil {
		return &inputError{&schema.Error{Issues: outside}}
	}
	return input{plan: v.plan}.decode(ctx, append(doc, '}'), in)
}

// escapes says why values could lead out of a directory, or "".
func (v *variables) escapes(name string, list []string) string {
	for _, value := range list {
		if strings.ContainsRune(value, 0) {
			return "must not contain a zero byte"
		}
		if slices.Contains(v.free, name) {
			continue
		}
		path := strings.ReplaceAll(value, `\`, "/")
		switch {
		case slices.Contains(strings.Split(path, "/"), ".."):
			return `must not contain ".."`
		case strings.HasPrefix(value, `\`), strings.HasPrefix(path, "//"), strings.HasPrefix(path, "/") && !v.rooted[name]:
			return "must not be an absolute path"
		case len(path) > 1 && path[1] == ':' && (len(path) == 2 || path[2] == '/') && drive(path[0]):
			return "must not begin with a drive"
		}
	}
	return ""
}

func drive(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// invalidVariables is the error for a URI whose variables do not pass.
func invalidVariables(uri string, bad *inputError) error {
	return &protocol.Error{
		Code:    protocol.CodeInvalidParams,
		Message: bad.faults.Text(fmt.Sprintf("resource %q", uri)),
		Data: struct {
			URI    string         `json:"uri"`
			Issues []schema.Issue `json:"issues"`
		}{uri, bad.faults.Issues},
		Err: bad.faults,
	}
}
