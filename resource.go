package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/uritemplate"
)

// ErrNotFound is for handlers of resources: an error that wraps it tells the
// client that there is no such resource, with the code of its revision. If
// another template fits the URI, that one is asked next, unless it needs scopes
// that the first one does not.
var ErrNotFound = errors.New("resource not found")

// Resource makes a resource at a fixed URI from a function that reads it. The
// function's parameter is a *Frame, or a context.Context if that is enough; see
// [FromContext]. For URIs with variables see [Template]. Out decides the form
// of the contents:
//
//	string               text
//	[]byte               binary
//	ResourceContents     either, with MIME type and _meta of its own
//	[]ResourceContents   several, such as the files of a directory
//	any other type       its JSON
//
// Contents without URI get the one that was asked for. An error becomes a
// JSON-RPC error; one that wraps ErrNotFound says that there is no such
// resource. Faults of URI, types and options are reported by Server.Add.
func Resource[Ctx context.Context, Out any](uri string, read func(ctx Ctx) (Out, error), opts ...ResourceOption) Component {
	return newResource(uri, read, opts)
}

// newResource is Resource for callers in this package, which look into what it
// returns.
func newResource[Ctx context.Context, Out any](uri string, read func(ctx Ctx) (Out, error), opts []ResourceOption) *resource {
	set := newResourceSettings(opts)
	set.faults = append(handlerFaults[Ctx](read == nil), set.faults...)
	return &resource{
		uri: uri, out: reflect.TypeFor[Out](), settings: set,
		run: erase(func(ctx Ctx, _ struct{}) (Out, error) { return read(ctx) }),
	}
}

// resource is what reads a resource or a template, with its types erased. The
// two differ in what they are found by, and are alike in what reads them.
type resource struct {
	uri      string
	in, out  reflect.Type // in is nil unless it is a template
	settings *resourceSettings
	run      runner
}

// resourceSettings are what options say of resources and templates.
type resourceSettings struct {
	settings
	name        string
	mime        string
	size        *int64
	annotations *protocol.Annotations
	cache       protocol.Cache
	unconfined  []string
	oneFile     bool // what File and Bytes return
}

// newResourceSettings returns what opts say.
func newResourceSettings(opts []ResourceOption) *resourceSettings {
	set := &resourceSettings{}
	apply(&set.settings, opts, ResourceOption.resourceOption, set)
	return set
}

// resources is a ResourceOption that nothing but resources and templates take.
type resources func(*resourceSettings)

// resourceOption implements ResourceOption.
func (o resources) resourceOption(set *resourceSettings) { o(set) }

// Name is what programs call a resource; its URI unless told.
func Name(text string) ResourceOption {
	return resources(func(set *resourceSettings) { set.name = text })
}

// MIME is the type of a resource's contents, for those that do not name their
// own. The default is text/plain for text, application/octet-stream for bytes
// and application/json for other Go values.
func MIME(mediaType string) ResourceOption {
	return resources(func(set *resourceSettings) {
		if _, _, err := mime.ParseMediaType(mediaType); err != nil {
			set.fault("MIME(%q): %v; write it as type/subtype", mediaType, err)
		}
		set.mime = mediaType
	})
}

// Size sets the size of a resource in bytes. It is an error for a template.
func Size(bytes int64) ResourceOption {
	return resources(func(set *resourceSettings) {
		if bytes < 0 {
			set.fault("Size(%d) must not be negative", bytes)
		}
		set.size = &bytes
	})
}

// Annotated tells clients whom a resource is for, how much it matters and when
// it changed.
func Annotated(a Annotations) ResourceOption {
	return resources(func(set *resourceSettings) {
		if err := protocol.Internal(facts.Private{}).CheckAnnotations(&a); err != nil {
			set.fault("Annotated: %v", err)
		}
		set.annotations = &a
	})
}

// Cache sets how long a client may cache the contents of a resource, for itself
// only. By default they are not cached.
func Cache(ttl time.Duration) ResourceOption {
	return cacheFor("Cache", protocol.Cache{TTL: ttl})
}

// CachePublic sets how long a client, and shared caches, may keep the contents
// of a resource and serve them to all clients. Use it only for public contents:
// with Scopes it is an error, and resources under VisibleTo or Options.Filter
// are sent as private.
func CachePublic(ttl time.Duration) ResourceOption {
	return cacheFor("CachePublic", protocol.Cache{TTL: ttl, Public: true})
}

// cacheFor returns the option of that name. Given twice, with either name, the
// last one counts.
func cacheFor(option string, cache protocol.Cache) ResourceOption {
	return resources(func(set *resourceSettings) {
		if cache.TTL < 0 {
			set.fault("%s(%v) must not be negative", option, cache.TTL)
		}
		set.cache = cache
	})
}

// Unconfined lets template variables have values that could lead out of a
// directory, such as "../x", "/etc" or "C:\x". They are refused otherwise. Use
// it for variables that never become part of a path.
func Unconfined(variables ...string) ResourceOption {
	variables = slices.Clone(variables)
	return resources(func(set *resourceSettings) { set.unconfined = append(set.unconfined, variables...) })
}

// compile implements Component.
func (r *resource) compile(c *compiler) error {
	set := r.settings
	faults := slices.Clone(set.faults)
	form, err := contentsOf(r.out)
	faults.note(err)
	if !schemed(r.uri) {
		faults = append(faults, "a URI begins with its scheme, such as file:// or config:")
	}
	if len(set.scopes) > 0 && set.cache.Public {
		faults = append(faults, "what needs Scopes is not for everybody; use Cache in place of CachePublic")
	}
	if r.in != nil {
		faults = append(faults, r.compileTemplate(c, form)...)
	} else {
		faults = append(faults, r.compileFixed(c, form)...)
	}
	return faults.of("resource", r.uri)
}

// scheme is the beginning of a URI that is absolute.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.\-]*:`)

// schemed reports whether uri begins with a scheme (RFC 3986, section 3.1). It
// is asked before the URI is parsed, because templates do not parse as one.
// One letter before a single slash is the drive of a path.
func schemed(uri string) bool {
	return scheme.MatchString(uri) && !(len(uri) > 2 && uri[1] == ':' && (uri[2] == '\\' || uri[2] == '/' && !strings.HasPrefix(uri[2:], "//")))
}

// compileFixed adds a resource at one URI to c. If it returns errors, the
// caller drops c.
func (r *resource) compileFixed(c *compiler, form contentsForm) (faults []string) {
	set := r.settings
	switch _, err := url.Parse(r.uri); {
	case strings.ContainsAny(r.uri, "{}") && set.oneFile:
		return []string{"one file has no variables: take the braces out of the URI, or use mcp.Directory"}
	case strings.ContainsAny(r.uri, "{}"):
		return []string{"a resource has no {variables} in its URI; use mcp.Template"}
	case schemed(r.uri) && canonicalURI(r.uri) != r.uri:
		faults = append(faults, fmt.Sprintf("clients that parse the URI ask for it as %q; add it in that form", canonicalURI(r.uri)))
	case err != nil:
		faults = append(faults, err.Error())
	}
	for _, variable := range set.unconfined {
		faults = append(faults, fmt.Sprintf("Unconfined(%q): there is no such variable", variable))
	}
	_, more := set.completersFor(nil, nil, "template variable")
	faults = append(faults, more...)
	e := set.entry(&protocol.Resource{
		URI: r.uri, Name: set.nameOr(r.uri), Title: set.title, Description: set.doc, Icons: set.icons,
		MIMEType: form.mimeOr(set.mime), Size: set.size, Annotations: set.annotations, Meta: set.meta,
	})
	e.Serve = r.reader(c, form, timedOut("reading "+r.uri), func(*frame.Frame, any) error { return nil })
	c.entries = append(c.entries, e)
	return faults
}

// canonicalURI returns a URI in the form that clients ask for: those that parse
// URIs send what the parser makes of them (WHATWG URL), where spaces and what is
// not ASCII are escaped, and dot segments and default ports are gone.
func canonicalURI(uri string) string {
	head, rest, _ := strings.Cut(uri, ":")
	head = strings.ToLower(head)
	rest = protocol.Internal(facts.Private{}).EscapeURI(rest)
	_, special := defaultPorts[head]
	switch slashes := len(rest) - len(strings.TrimLeft(rest, "/")); {
	case special && slashes != 2:
		rest = "//" + rest[slashes:]
	case head == "file" && slashes < 2:
		rest = "///" + rest[slashes:]
	case slashes == 0:
		return head + ":" + rest // config:a/../b has no path with segments
	}
	tail := ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest, tail = rest[:i], rest[i:]
	}
	host, path, hasHost := "", rest, strings.HasPrefix(rest, "//")
	if hasHost {
		host, path = rest[2:], ""
		if i := strings.IndexByte(host, '/'); i >= 0 {
			host, path = host[:i], host[i:]
		}
		switch {
		case special:
			host = canonicalHost(host, defaultPorts[head])
			path = cmp.Or(path, "/")
		case head == "file" && strings.EqualFold(host, "localhost"):
			host = ""
		}
		host = "//" + strings.TrimSuffix(host, ":")
	}
	return head + ":" + host + withoutDots(path) + tail
}

// canonicalHost returns a host name with its port, both as clients write them: in small
// letters, without zeros in front of the port, and without the port that is the default.
func canonicalHost(host, port string) string {
	user := host[:strings.LastIndexByte(host, '@')+1]
	host, number := strings.ToLower(host[len(user):]), ""
	if m := portAtEnd.FindStringSubmatch(host); m != nil {
		host = strings.TrimSuffix(host, m[0])
		if number = ":" + cmp.Or(strings.TrimLeft(m[1], "0"), "0"); number == port {
			number = ""
		}
	}
	return user + canonicalAddress(strings.TrimSuffix(host, ":")) + number
}

// canonicalAddress returns a host that is an IP address as clients write it: 127.1 and
// 0x7f000001 are 127.0.0.1, and [0:0::1] is [::1] (WHATWG URL, host parsing). Other
// hosts, and what is not an address although it looks like one, stay as they are.
func canonicalAddress(host string) string {
	if strings.HasPrefix(host, "[") {
		address, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || address.Zone() != "" {
			return host
		}
		if address.Is4In6() {
			b := address.As16()
			return fmt.Sprintf("[::ffff:%x:%x]", uint16(b[12])<<8|uint16(b[13]), uint16(b[14])<<8|uint16(b[15]))
		}
		return "[" + address.String() + "]"
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return host
	}
	address := uint64(0)
	for i, part := range parts {
		base, limit, shift := 10, uint64(1)<<8, 8*(3-i)
		switch {
		case strings.HasPrefix(part, "0x"):
			part, base = "0"+part[2:], 16
		case strings.HasPrefix(part, "0"):
			base = 8
		}
		if i == len(parts)-1 {
			limit, shift = limit<<shift, 0 // the rest of the address
		}
		n, err := strconv.ParseUint(part, base, 64)
		if err != nil || n >= limit {
			return host
		}
		address |= n << shift
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String()
}

// portAtEnd is the port of a host name.
var portAtEnd = regexp.MustCompile(`:([0-9]+)$`)

// defaultPorts are those of the schemes whose hosts are names of the Internet.
var defaultPorts = map[string]string{"http": ":80", "https": ":443", "ws": ":80", "wss": ":443", "ftp": ":21"}

// withoutDots removes the segments "." and ".." of a path (RFC 3986, section
// 5.2.4), which is empty or begins with a slash.
func withoutDots(path string) string {
	if path == "" {
		return path
	}
	var kept []string
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
			fallthrough
		case ".":
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, segment)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// nameOr returns the name of a resource at uri.
func (set *resourceSettings) nameOr(uri string) string {
	if set.name != "" {
		return set.name
	}
	return uri
}

// reader puts the parts of a read together. A template has one for each URI, with
// a decode that knows the values of its variables; late is the same for all.
func (r *resource) reader(c *compiler, form contentsForm, late lateAnswer, decode func(f *frame.Frame, in any) error) frame.Handler {
	set := r.settings
	return c.limited(set.timeout, func(f *frame.Frame) (protocol.Result, error) {
		out, err := r.run(f, decode)
		if err != nil {
			return nil, err
		}
		params := &f.Request().Params
		contents, err := form.contents(out)
		if err != nil {
			return nil, &wire.ResultError{Of: fmt.Sprintf("resource %q", params.Name), Err: fmt.Errorf("cannot be encoded: %w", err)}
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
			cache = protocol.Cache{}
		}
		return &protocol.ReadResourceResult{Contents: contents, Cache: cache}, nil
	}, late)
}

// readResource serves resources/read (server/resources of every revision).
func readResource(f *frame.Frame, view registry.View) (protocol.Result, error) {
	params := &f.Request().Params
	uri := params.Name
	switch {
	case uri == "" || jsonx.Lookup(params.Raw, []string{"uri"}) == nil:
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.uri is missing: it names the resource to read")
	case jsonx.Lookup(params.Raw, []string{"name"}) != nil:
		// It would be unclear which of the two a header means.
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params has both uri and name; leave name out")
	case len(uri) > wire.MaxURI:
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.uri is longer than %d bytes", wire.MaxURI)
	}
	return readAt(f, view, uri)
}

// readAt reads the resource at uri, or else asks the templates that fit it, the
// closest one first. A template passes the request on if what it has at uri is
// not found, or if the variables do not fit its struct; if none reads it, the
// first such misfit is the error, and otherwise that there is no such resource.
func readAt(f *frame.Frame, view registry.View, uri string) (protocol.Result, error) {
	if r, ok := view.Get(KindResource, uri); ok {
		if err := f.RequireScopes(r.Scopes...); err != nil {
			return nil, err
		}
		result, err := r.Serve(f)
		return personal(view, r, result), notFound(err, uri)
	}
	var invalid error // why a template that fits did not take its variables
	fits := view.Internal(facts.Private{}).Fits(uri)
	for _, one := range fits {
		// The closest one decides which scopes the URI needs: what needs others is not
		// asked for what that one does not have.
		if !covers(fits[0].Scopes, one.Scopes) {
			continue
		}
		if err := f.RequireScopes(one.Scopes...); err != nil {
			return nil, err
		}
		result, err := one.Read(f)
		if bad, ok := errors.AsType[*inputError](err); ok {
			if invalid == nil {
				invalid = bad.invalidParams(fmt.Sprintf("resource %q", uri))
			}
			continue
		}
		if err = notFound(err, uri); err != nil && isNotFound(err) {
			continue
		}
		return personal(view, one.Entry, result), err
	}
	if invalid != nil {
		return nil, invalid
	}
	return nil, wire.ResourceNotFound(uri)
}

// personal marks the contents of e as private to the client, unless all clients
// see e: a shared cache must not serve them to others.
func personal(view registry.View, e *registry.Entry, result protocol.Result) protocol.Result {
	r, ok := result.(*protocol.ReadResourceResult)
	if !ok || r == nil || !r.Cache.Public || !view.Internal(facts.Private{}).Private(e) {
		return result
	}
	own := *r
	own.Cache.Public = false
	return &own
}

// covers reports whether all of scopes are among granted.
func covers(granted, scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(granted, scope) })
}

// notFound turns an ErrNotFound into the error for uri.
func notFound(err error, uri string) error {
	if err == nil || !errors.Is(err, ErrNotFound) {
		return err
	}
	fault := wire.ResourceNotFound(uri)
	fault.Err = err
	return fault
}

// isNotFound reports whether err is the protocol's error for a resource that is
// not there, in whichever way the handler made it.
func isNotFound(err error) bool {
	fault, ok := errors.AsType[*protocol.Error](err)
	return ok && fault != nil && fault.Code == protocol.CodeResourceNotFound
}

// contentsForm turns the result of a function, behind a pointer, into contents.
// contents returns a slice that the caller may change.
type contentsForm struct {
	mime     string // the default; "" if contents name their own
	contents func(out any) ([]protocol.ResourceContents, error)
}

// mimeOr returns the type that an option told, or else the default of the form.
func (c contentsForm) mimeOr(told string) string {
	if told != "" {
		return told
	}
	return c.mime
}

// contentsOf chooses the form of contents by the function's result type.
func contentsOf(out reflect.Type) (contentsForm, error) {
	switch {
	case out == reflect.TypeFor[string]():
		return contentsForm{"text/plain", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{{Text: *out.(*string)}}, nil
		}}, nil
	case out == reflect.TypeFor[[]byte]():
		return contentsForm{"application/octet-stream", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{{Blob: binary(*out.(*[]byte))}}, nil
		}}, nil
	case out == reflect.TypeFor[protocol.ResourceContents]():
		return contentsForm{"", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{*out.(*protocol.ResourceContents)}, nil
		}}, nil
	case out == reflect.TypeFor[[]protocol.ResourceContents]():
		return contentsForm{"", func(out any) ([]protocol.ResourceContents, error) {
			// A copy: what is missing gets filled in.
			return append([]protocol.ResourceContents(nil), *out.(*[]protocol.ResourceContents)...), nil
		}}, nil
	case out == nil || out.Implements(contentType) || out == reflect.TypeFor[[]protocol.Content]() || out == reflect.TypeFor[*Result]() || out.Implements(typedResultType) || out == reflect.TypeFor[*Messages]():
		return contentsForm{}, fmt.Errorf("a resource cannot return %v; return string, []byte, mcp.ResourceContents or a type of your own for JSON", out)
	}
	encoder, err := jsonx.NewEncoder(out)
	if err != nil {
		return contentsForm{}, fmt.Errorf("result: %w", err)
	}
	return contentsForm{"application/json", func(out any) ([]protocol.ResourceContents, error) {
		text, err := encoder.Append(nil, out)
		if err != nil {
			return nil, err
		}
		return []protocol.ResourceContents{{Text: string(text)}}, nil
	}}, nil
}

// binary makes sure that empty data is sent as data, not as text.
func binary(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// Template makes a template from a function that reads the resources whose URIs
// match it (RFC 6570, see package uritemplate). The function's first parameter
// is that of a [Tool]; In is a struct with a field for each variable, named by
// its json tag, whose tags check the value as those of a tool's arguments do.
// Values are text; numbers, booleans, dates and lists are made from it. Values
// that could escape a directory are rejected; see [Unconfined]. Out decides the
// form of the contents, and errors are handled, as for a [Resource].
//
//	mcp.Template("users://{id}{?lang}", readUser, mcp.Name("user"))
//
// Faults of URI, types, tags and options are reported by Server.Add.
func Template[Ctx context.Context, In, Out any](uri string, read func(ctx Ctx, in In) (Out, error), opts ...ResourceOption) Component {
	set := newResourceSettings(opts)
	set.faults = append(handlerFaults[Ctx](read == nil), set.faults...)
	return &resource{uri: uri, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), settings: set, run: erase(read)}
}

// variables binds the variables of a template to the fields of a struct. It is
// made when the template is added and does not change.
type variables struct {
	template *uritemplate.Template
	names    []string
	plan     *schema.Plan
	lists    map[string]bool // variables whose field is a list
	rooted   map[string]bool // those that may begin with a slash
	free     []string        // those that may be any path
}

// compileTemplate adds a template to c; see compileFixed for its faults. Its
// handler is made for each request, because it needs the values of the
// variables.
func (r *resource) compileTemplate(c *compiler, form contentsForm) (faults []string) {
	set := r.settings
	if !strings.ContainsAny(r.uri, "{}") {
		return []string{"a template has {variables} in its URI; use mcp.Resource where there are none"}
	}
	template, err := uritemplate.Parse(r.uri)
	if err != nil {
		return []string{err.Error()}
	}
	fixed, _, _ := strings.Cut(r.uri, "{")
	fixed = fixed[:strings.LastIndexByte(fixed, '/')+1]
	if c := canonicalURI(fixed); c != fixed && len(fixed) > strings.Index(fixed, "://")+len("://") {
		return []string{fmt.Sprintf("clients that parse URIs ask for %q; write that for %q", c, fixed)}
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
	e := set.entry(&protocol.ResourceTemplate{
		URITemplate: r.uri, Name: set.nameOr(r.uri), Title: set.title, Description: set.doc, Icons: set.icons,
		MIMEType: form.mimeOr(set.mime), Annotations: set.annotations, Meta: set.meta,
	})
	e.Arguments, e.Literals = v.names, template.Internal(facts.Private{}).Literals()
	late := timedOut("reading " + r.uri)
	e.Match = func(uri string) frame.Handler {
		values, ok := template.Match(uri)
		if !ok {
			return nil
		}
		return r.reader(c, form, late, func(f *frame.Frame, in any) error { return v.decode(f, values, in) })
	}
	completers, more := set.completersFor(plan, v.names, "template variable")
	e.Completers = completers
	c.entries = append(c.entries, e)
	return append(faults, more...)
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
		v.rooted[name] = v.template.Internal(facts.Private{}).Rooted(name)
	}
	for _, name := range v.free {
		if !slices.Contains(v.names, name) {
			faults = append(faults, fmt.Sprintf("Unconfined(%q): there is no such variable", name))
		}
	}
	return faults
}

// decode checks the values of a URI and decodes them into in. The values become
// a JSON object, so that the plan of the struct checks them as it does the
// arguments of a tool. Values that could lead out of a directory are refused
// before, all at once, as issues of the same form. A variable without value is
// left out.
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

// drive reports whether c is the letter of a drive of Windows.
func drive(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
