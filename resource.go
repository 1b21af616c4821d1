package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// ErrNotFound is for handlers of resources: an error that wraps it tells the
// client that there is no such resource, with the code of its revision. If
// another template fits the URI, that one is asked next.
var ErrNotFound = errors.New("resource not found")

// Resource makes a resource of a func that reads it. A uri with braces is a
// template (RFC 6570, see package uritemplate): In is then a struct with a
// field for each variable, named by its json tag, whose tags check the value
// as those of a tool's arguments do. Values are text; numbers, booleans, dates
// and lists are made from it. Values that could lead out of a directory are
// refused; see Unconfined. Without braces In is struct{}.
//
// Out decides the form of the contents:
//
//	string               text
//	[]byte               binary
//	ResourceContents     either, with MIME type and _meta of its own
//	[]ResourceContents   several, such as the files of a directory
//	any other type       its JSON
//
// Contents without URI get the one that was asked for. An error becomes a
// JSON-RPC error; one that wraps ErrNotFound says that there is no such
// resource. Faults of URI, types and tags are reported by Server.Add.
func Resource[In, Out any](uri string, read func(f *Frame, in In) (Out, error), opts ...ComponentOption) Component {
	r := &resource{uri: uri, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), settings: newSettings(opts)}
	if read == nil {
		r.settings.fault("the func is nil")
	}
	r.run = erase(read)
	return r
}

// runner is a func with its types erased: decode fills a pointer to its input,
// and out is a pointer to its result.
type runner func(f *frame.Frame, decode func(in any) error) (out any, err error)

func erase[In, Out any](fn func(f *Frame, in In) (Out, error)) runner {
	type call struct {
		in  In
		out Out
	}
	return func(f *frame.Frame, decode func(in any) error) (any, error) {
		c := new(call)
		if err := decode(&c.in); err != nil {
			return nil, err
		}
		var err error
		c.out, err = fn(f, c.in)
		return &c.out, err
	}
}

type resource struct {
	uri      string
	in, out  reflect.Type
	settings *settings
	run      runner
}

// compile implements Component.
func (r *resource) compile(s *Server, all *offer) error {
	set, k, name := r.settings, resourceKind, "a resource without variables"
	template := strings.ContainsAny(r.uri, "{}")
	if template {
		k, name = templateKind, "a resource template"
	}
	faults := append(append([]string(nil), set.faults...), set.misused(k, name)...)
	form, err := contentsOf(r.out)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if !schemed(r.uri) {
		faults = append(faults, "a URI begins with its scheme, such as file:// or config:")
	}
	if len(set.scopes) > 0 && set.cache.Scope == protocol.CachePublic {
		faults = append(faults, "what needs Scopes is not for everybody; use CachePrivate")
	}
	if template {
		faults = append(faults, r.compileTemplate(s, all, form)...)
	} else {
		faults = append(faults, r.compileStatic(s, all, form)...)
	}
	if len(faults) > 0 {
		return fmt.Errorf("mcp: resource %q: %s", r.uri, strings.Join(faults, "\n\t"))
	}
	return nil
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.\-]*:`)

func schemed(uri string) bool { return scheme.MatchString(uri) }

func (r *resource) compileStatic(s *Server, all *offer, form contentsForm) (faults []string) {
	set := r.settings
	if _, err := url.Parse(r.uri); err != nil {
		faults = append(faults, err.Error())
	}
	if r.in.Kind() != reflect.Struct || r.in.NumField() > 0 {
		faults = append(faults, fmt.Sprintf("its func takes %v, but the URI has no {variables}; take struct{}, or put variables into the URI", r.in))
	}
	all.resources = append(all.resources, &registry.Resource{
		Definition: protocol.Resource{
			URI: r.uri, Name: set.nameOr(r.uri), Title: set.title, Description: set.doc, Icons: set.icons,
			MIMEType: form.mimeOr(set.mime), Size: set.size, Annotations: set.annotations, Meta: set.meta,
		},
		Read:    r.reader(s, form, func(any) error { return nil }),
		Visible: set.visible, Scopes: set.scopes,
	})
	return faults
}

func (set *settings) nameOr(uri string) string {
	if set.name != "" {
		return set.name
	}
	return uri
}

// reader puts the parts of a read together.
func (r *resource) reader(s *Server, form contentsForm, decode func(in any) error) dispatch.Handler {
	set := r.settings
	return s.limited("reading "+r.uri, set.timeout, func(f *frame.Frame) (protocol.Result, error) {
		out, err := r.run(f, decode)
		if err != nil {
			return nil, err
		}
		params := &f.Request().Params
		contents, err := form.contents(out)
		if err != nil {
			return nil, err
		}
		for i := range contents {
			if contents[i].URI == "" {
				contents[i].URI = params.Name
			}
			if contents[i].MIMEType == "" {
				contents[i].MIMEType = form.mimeOr(set.mime)
			}
		}
		cache := set.cache
		if params.InputResponses != nil || params.RequestState != "" {
			// What depends on answers must not be kept (server/utilities/caching).
			cache = protocol.Cache{Scope: protocol.CachePrivate}
		}
		return &protocol.ReadResourceResult{Contents: contents, Cache: cache}, nil
	})
}

func (s *Server) listResources(f *frame.Frame) (protocol.Result, error) {
	if !s.offersResources.Load() {
		return nil, protocol.MethodNotFound(f.Request().Method)
	}
	return page(s, KindResource, s.resourcesFor(f), f)
}

func (s *Server) listTemplates(f *frame.Frame) (protocol.Result, error) {
	if !s.offersResources.Load() {
		return nil, protocol.MethodNotFound(f.Request().Method)
	}
	return page(s, KindTemplate, s.templatesFor(f), f)
}

// page serves any list method.
func page[E registry.Restricted](s *Server, kind ComponentKind, list registry.View[E], f *frame.Frame) (protocol.Result, error) {
	result, err := granted(s, f, kind, list).Page(f.Request().Params.Cursor, f.Revision())
	if err != nil {
		return nil, err
	}
	return result, nil
}

// readResource serves resources/read (server/resources of every revision).
func (s *Server) readResource(f *frame.Frame) (protocol.Result, error) {
	if !s.offersResources.Load() {
		return nil, protocol.MethodNotFound(f.Request().Method)
	}
	params := &f.Request().Params
	uri := params.Name
	switch {
	case uri == "" || protocol.Lookup(params.Raw, []string{"uri"}) == nil:
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.uri is missing: it names the resource to read")
	case protocol.Lookup(params.Raw, []string{"name"}) != nil:
		// Which of the two a header speaks of could not be told.
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params has both uri and name; leave name out")
	case len(uri) > protocol.MaxURI:
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.uri is longer than %d bytes", protocol.MaxURI)
	}
	result, err := s.read(f, uri)
	if fault, ok := errors.AsType[*protocol.Error](err); ok && fault != nil && fault.Code == protocol.CodeResourceNotFound {
		return nil, fault.For(f.Revision())
	}
	return result, err
}

// read reads the resource at uri, or else asks the templates that fit it, the
// closest one first.
func (s *Server) read(f *frame.Frame, uri string) (protocol.Result, error) {
	if r, ok := s.resourcesFor(f).Get(uri); ok {
		if err := f.NeedScopes(r.Scopes...); err != nil {
			return nil, err
		}
		result, err := r.Read(f)
		return result, notFound(err, uri)
	}
	var invalid error // why a template that fits did not take its variables
	for _, read := range s.fitting(f, uri) {
		result, err := read(f)
		if bad, ok := errors.AsType[*inputError](err); ok {
			if invalid == nil {
				invalid = invalidVariables(uri, bad)
			}
			continue
		}
		if err = notFound(err, uri); err != nil && isNotFound(err) {
			continue
		}
		return result, err
	}
	if invalid != nil {
		return nil, invalid
	}
	return nil, protocol.ResourceNotFound(uri)
}

// notFound turns an ErrNotFound into the error for uri.
func notFound(err error, uri string) error {
	if err == nil || !errors.Is(err, ErrNotFound) {
		return err
	}
	fault := protocol.ResourceNotFound(uri)
	fault.Err = err
	return fault
}

func isNotFound(err error) bool {
	fault, ok := errors.AsType[*protocol.Error](err)
	return ok && fault != nil && fault.Code == protocol.CodeResourceNotFound
}

func (s *Server) resourcesChanged() { s.announce(protocol.MethodResourcesChanged) }
