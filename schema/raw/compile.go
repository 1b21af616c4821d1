// Package raw checks documents against JSON Schemas that arrived as text: the
// output schemas and forms that a client receives from servers, and the schemas
// that a server's author wrote by hand. It supports draft
// 2020-12, which the specification of MCP names, and draft 7, which many tools
// write (https://json-schema.org/specification-links).
//
// [Compile] prepares a [Schema]; [Schema.Check] checks a document and returns
// an [*Error] that lists every [Issue]. Package schema, which makes schemas
// from Go types, uses the same Issue and Error, so that users handle one kind
// of error.
//
// # Decisions
//
// Nothing is ever fetched. A schema may refer to its own parts and to the
// meta-schemas of the drafts above; any other reference is an error of Compile,
// because a server could otherwise make a client send requests on its behalf.
//
// Formats are asserted, although the drafts leave that open. Unknown formats
// and unknown keywords are ignored. Patterns are regular expressions of package
// regexp, which run in linear time; a pattern that it does not accept is an
// error of Compile.
//
// Schemas come from peers that are not trusted, so everything is bounded: the
// nesting of a schema, the length of the numbers in it, the number of schemas
// tried on a document, and how often a schema may refer to itself on one value.
// A check that runs into such a bound reports the document as invalid, never as
// valid.
//
// A [Fitter] makes a document fit before it is checked: it fills in defaults, and reads
// values in other forms than their own as package schema does. It guesses nothing. A
// value that can mean two things stays as it is, and so does a document of which a
// default would make an invalid one. Its result is checked like any document, so that a
// mistake in it can refuse a document and never let one pass.
//
// # Parts
//
// A compiler (compile.go) indexes the resources and anchors of a schema and
// checks the form of each keyword against a table (draft.go). It then makes a
// tree of nodes with the keywords in the form in which they are used. A
// validation (node.go) walks a document along that tree and returns a failure,
// or nil. A fitting (fit.go) walks the same tree beforehand and changes a copy of the
// document. raw.go turns failures into issues; for anyOf and oneOf it looks for
// the alternative that was meant.
//
// Documents and schemas are held as encoding/json decodes them with UseNumber, so that
// numbers keep their digits. The package has no init work and imports neither
// invopop/jsonschema nor a validator, because every client links it. A Schema is
// immutable; there are no locks and no goroutines.
package raw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/schema/internal/lexical"
)

// base is the URI of a schema that does not name itself. References within it
// are resolved against base.
const base = "schema:///"

// resource is a schema with a URI of its own, in which anchors and JSON
// Pointers are looked up. Drafts call it a schema resource.
type resource struct {
	uri     string
	at      string // JSON Pointer from the document
	value   any
	draft   draft
	anchors map[string]string // JSON Pointers from the document
	dynamic map[string]*node  // by name
}

// compiler turns one schema into nodes. It lives for one call of compile. All
// maps use JSON Pointers from the root of the document, except resources.
//
// It works in two passes. index visits every subschema in place, because an
// anchor may be used before it is declared. Then nodes are made on demand,
// beginning with the root: node reserves one and fill reads its keywords, so
// recursion in the schema is not a recursion here.
type compiler struct {
	doc       any
	resources map[string]*resource // by URI
	scopes    map[string]*resource // by JSON Pointer of the schema that begins it
	indexed   map[string]bool      // by JSON Pointer
	nodes     map[string]*node     // by JSON Pointer
	later     []*node              // nodes to be filled in
	// tracks is set if some schema has unevaluatedItems or
	// unevaluatedProperties. Only then do validations record what has been
	// evaluated.
	tracks   bool
	patterns int     // how large they are, together
	defaults []*node // that have the keyword
}

// compile prepares a decoded schema. Its draft is 2020-12 unless it names
// another one in $schema. The returned tree does not change any more;
// defaults are the nodes in it that have a default.
func compile(doc any) (root *node, defaults []*node, err error) {
	c := &compiler{doc: doc, resources: map[string]*resource{}, scopes: map[string]*resource{},
		indexed: map[string]bool{}, nodes: map[string]*node{}}
	top := &resource{uri: base, value: doc, draft: draft2020}
	c.resources[base], c.scopes[""] = top, top
	if err := c.index(doc, "", top); err != nil {
		return nil, nil, err
	}
	n := c.node("")
	// Anchors that $dynamicRef may find have to be compiled, too.
	for _, r := range c.resources {
		for name := range r.dynamic {
			r.dynamic[name] = c.node(r.anchors[name])
		}
	}
	for len(c.later) > 0 {
		next := c.later[0]
		c.later = c.later[1:]
		if err := c.fill(next); err != nil {
			return nil, nil, err
		}
	}
	for _, n := range c.nodes {
		n.tracks = c.tracks
	}
	slices.SortFunc(c.defaults, func(a, b *node) int { return strings.Compare(a.at, b.at) })
	return n, c.defaults, nil
}

// wrong returns an error about the schema, with the JSON Pointer of the place
// in front.
func wrong(at, format string, args ...any) error {
	at = cmp.Or(at, "(root)")
	return fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
}

// index visits the schema at a place and everything below it. It records
// resources and anchors, and reports the first keyword whose value does not
// have the form that the draft demands. r is the resource around the schema.
func (c *compiler) index(value any, at string, r *resource) error {
	c.indexed[at] = true
	object, ok := value.(map[string]any)
	if !ok {
		if _, isBool := value.(bool); isBool {
			return nil
		}
		return wrong(at, "a schema is an object, true or false; got %s", kindOf(value))
	}
	r, err := c.scope(object, at, r)
	if err != nil {
		return err
	}
	if r.draft == draft7 && object["$ref"] != nil { // what is next to it is ignored
		return c.checkShape(object["$ref"], aString, at+"/$ref")
	}
	if err := c.anchors(object, at, r); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		s, known := r.draft.shapeOf(name)
		if !known {
			continue
		}
		place := at + "/" + escape(name)
		if err := c.checkShape(object[name], s, place); err != nil {
			return err
		}
		for sub, below := range subschemas(object[name], s, place) {
			if err := c.index(below, sub, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// scope returns the resource that a schema belongs to: a new one if it has an
// $id of its own, otherwise r. In draft 7 an $id next to $ref is ignored,
// and one that is only a fragment declares an anchor instead.
func (c *compiler) scope(object map[string]any, at string, r *resource) (*resource, error) {
	d := r.draft
	_, refers := object["$ref"]
	if uri, ok := object["$schema"].(string); ok {
		if d = draftOf(uri); d == 0 {
			return nil, wrong(at+"/$schema", "%q is not supported; use draft 2020-12 or 7", uri)
		}
	}
	if at == "" {
		r.draft = d
	}
	id, ok := object["$id"].(string)
	if !ok || id == "" || id[0] == '#' || (d == draft7 && refers) {
		return r, nil
	}
	uri, err := resolve(r.uri, id)
	if err != nil {
		return nil, wrong(at+"/$id", "%q is not a URI: %v", id, err)
	}
	uri, fragment, _ := strings.Cut(uri, "#")
	if fragment != "" && d == draft2020 {
		return nil, wrong(at+"/$id", "%q has a fragment", id)
	}
	own := &resource{uri: uri, at: at, value: object, draft: d}
	if other := c.resources[uri]; other != nil && other.at != at && other.uri != base {
		return nil, wrong(at, "the URI %q is used twice", uri)
	}
	c.resources[uri], c.scopes[at] = own, own
	if fragment != "" {
		own.anchors = map[string]string{fragment: at}
	}
	return own, nil
}

// anchors records the names by which references can reach this schema: $anchor
// and $dynamicAnchor, and the fragment-only $id of draft 7. The nodes of dynamic anchors are made by compile.
func (c *compiler) anchors(object map[string]any, at string, r *resource) error {
	note := func(name string) error {
		if r.anchors == nil {
			r.anchors = map[string]string{}
		}
		if other, taken := r.anchors[name]; taken && other != at {
			return wrong(at, "the anchor %q is used twice", name)
		}
		r.anchors[name] = at
		return nil
	}
	if r.draft == draft7 {
		if id, ok := object["$id"].(string); ok && len(id) > 1 && id[0] == '#' {
			return note(id[1:])
		}
		return nil
	}
	if name, ok := object["$anchor"].(string); ok {
		if err := note(name); err != nil {
			return err
		}
	}
	if name, ok := object["$dynamicAnchor"].(string); ok {
		if r.dynamic == nil {
			r.dynamic = map[string]*node{}
		}
		r.dynamic[name] = nil
		return note(name)
	}
	return nil
}

// subschemas returns the schemas within the value of a keyword, by their JSON
// Pointers.
func subschemas(value any, s shape, at string) map[string]any {
	below := map[string]any{}
	switch s {
	case oneSchema:
		below[at] = value
	case schemaList, schemaOrList:
		list, ok := value.([]any)
		if !ok {
			below[at] = value
		}
		for i, v := range list {
			below[at+"/"+strconv.Itoa(i)] = v
		}
	case schemaMap, schemaPatterns, dependencies:
		object, _ := value.(map[string]any)
		for name, v := range object {
			if _, names := v.([]any); !names || s != dependencies {
				below[at+"/"+escape(name)] = v
			}
		}
	}
	return below
}

// checkShape reports what is wrong with the value of a keyword, given the shape
// that the draft demands. It does not look into subschemas; index does.
func (c *compiler) checkShape(value any, s shape, at string) error {
	text, isText := value.(string)
	list, isList := value.([]any)
	object, isObject := value.(map[string]any)
	_, isBool := value.(bool)
	number := rational(value)
	want := ""
	switch s {
	case aString:
		if !isText {
			want = "text"
		}
	case aPattern:
		if !isText {
			want = "a regular expression"
		} else if err := c.pattern(text); err != nil {
			return wrong(at, "%q is not a regular expression that this supports: %v", text, err)
		}
	case aBoolean:
		if !isBool {
			want = "true or false"
		}
	case aNumber:
		if number == nil {
			want = "a number"
		}
	case aPositive:
		if number == nil || number.Sign() <= 0 {
			want = "a number above 0"
		}
	case aCount:
		if number == nil || !number.IsInt() || number.Sign() < 0 {
			want = "an integer, 0 or more"
		}
	case aList:
		if !isList {
			want = "an array"
		}
	case nameList:
		if !isList || !names(list) {
			want = "an array of different names"
		}
	case namesMap, anObject, schemaMap, schemaPatterns, dependencies:
		if !isObject {
			want = "an object"
		}
		for name, v := range object {
			place := at + "/" + escape(name)
			below, isList := v.([]any)
			if (s == namesMap || s == dependencies && isList) && !(isList && names(below)) {
				return wrong(place, "must be an array of different names")
			}
			if s == schemaPatterns {
				if err := c.checkShape(name, aPattern, place); err != nil {
					return err
				}
			}
		}
	case typeNames:
		if isText {
			list = []any{text}
		}
		if len(list) == 0 || !names(list) || slices.ContainsFunc(list, func(v any) bool { return typeBit(v.(string)) == 0 }) {
			want = "one of array, boolean, integer, null, number, object and string, or an array of those"
		}
	case schemaList:
		if len(list) == 0 {
			want = "an array of schemas"
		}
	}
	if want != "" {
		return wrong(at, "must be %s", want)
	}
	return nil
}

// names reports whether a list holds different strings and nothing else.
func names(list []any) bool {
	seen := map[string]bool{}
	for _, v := range list {
		name, ok := v.(string)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// scopeOf returns the innermost resource around a place. The root has one, so
// the loop ends.
func (c *compiler) scopeOf(at string) *resource {
	for {
		if r := c.scopes[at]; r != nil {
			return r
		}
		at = at[:strings.LastIndexByte(at, '/')]
	}
}

// node returns the node of the schema at a place. A new node is empty and
// queued for fill.
func (c *compiler) node(at string) *node {
	n := c.nodes[at]
	if n == nil {
		n = &node{at: at, resource: c.scopeOf(at)}
		c.nodes[at] = n
		c.later = append(c.later, n)
	}
	return n
}

// refer returns the node that a reference leads to. ref is resolved against the
// URI of the resource r; its fragment is a JSON Pointer or the name of an
// anchor. at is the place of the reference, for errors. A reference to the
// meta-schema of a draft gives a node that checks schemas.
func (c *compiler) refer(ref, at string, r *resource) (*node, error) {
	uri, err := resolve(r.uri, ref)
	if err != nil {
		return nil, wrong(at, "%q is not a URI: %v", ref, err)
	}
	uri, fragment, _ := strings.Cut(uri, "#")
	target := c.resources[uri]
	if target == nil {
		if d := draftOf(uri); d != 0 && fragment == "" {
			return &node{at: uri, resource: r, meta: d}, nil
		}
		return nil, wrong(at, "reference to %s: schemas are not loaded from elsewhere; put it under $defs", ref)
	}
	fragment, err = url.PathUnescape(fragment)
	if err != nil {
		return nil, wrong(at, "%q is not a URI: %v", ref, err)
	}
	if fragment != "" && fragment[0] != '/' {
		place, ok := target.anchors[fragment]
		if !ok {
			return nil, wrong(at, "there is no anchor %q", fragment)
		}
		return c.node(place), nil
	}
	place := target.at + fragment
	value, ok := lookUp(target.value, fragment)
	if !ok {
		return nil, wrong(at, "there is nothing at %s", ref)
	}
	if !c.indexed[place] { // it stands where no keyword expects a schema
		if err := c.index(value, place, c.scopeOf(place)); err != nil {
			return nil, err
		}
	}
	return c.node(place), nil
}

// lookUp follows a JSON Pointer (RFC 6901) from a value.
func lookUp(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	for name := range strings.SplitSeq(pointer[1:], "/") {
		name = unescaped.Replace(name)
		switch v := value.(type) {
		case map[string]any:
			below, ok := v[name]
			if !ok {
				return nil, false
			}
			value = below
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != name {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// fill reads the keywords of a schema into its node. In draft 7 everything
// next to $ref is ignored. Keywords are read in the order of their names, so
// that errors do not depend on map order.
func (c *compiler) fill(n *node) error {
	value, ok := lookUp(c.doc, n.at)
	if !ok {
		return errors.New("schema is not there: " + n.at)
	}
	object, ok := value.(map[string]any)
	if !ok {
		n.never = value == false
		return nil
	}
	d := n.resource.draft
	if ref, ok := object["$ref"].(string); ok {
		target, err := c.refer(ref, n.at+"/$ref", n.resource)
		if err != nil {
			return err
		}
		if n.refs = append(n.refs, reference{to: target}); d == draft7 {
			return nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, known := d.shapeOf(name); !known {
			continue
		}
		if err := c.keyword(n, name, object); err != nil {
			return err
		}
	}
	return nil
}

// keyword reads one keyword into n. index has checked its shape, so type
// assertions cannot fail. Keywords that hold schemas are left to applicator.
func (c *compiler) keyword(n *node, name string, object map[string]any) error {
	value, at := object[name], n.at+"/"+escape(name)
	switch name {
	case "$dynamicRef":
		target, err := c.refer(value.(string), at, n.resource)
		if err != nil {
			return err
		}
		ref := reference{to: target}
		_, fragment, _ := strings.Cut(value.(string), "#")
		if _, dynamic := target.resource.dynamic[fragment]; dynamic && fragment != "" && target.at == target.resource.anchors[fragment] {
			ref.dynamic, ref.name = true, fragment
		}
		n.refs = append(n.refs, ref)
	case "default":
		n.fallback, c.defaults = value, append(c.defaults, n)
	case "type":
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, v := range list {
			n.types |= typeBit(v.(string))
			n.typeNames = append(n.typeNames, v.(string))
		}
	case "enum":
		n.enum = value.([]any)
		n.hasEnum = true
		n.sortEnum()
	case "const":
		n.constant, n.hasConst = value, true
	case "multipleOf":
		n.multipleOf = rational(value)
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		n.bounds = append(n.bounds, newBound(name, rational(value), object["description"]))
	case "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties":
		n.sizes = append(n.sizes, size{keyword: name, limit: count(value)})
	case "minContains":
		n.minContains = new(count(value))
	case "maxContains":
		n.maxContains = new(count(value))
	case "pattern":
		n.pattern = compiled(value.(string))
	case "format":
		n.formatName, n.format, n.integers = value.(string), lexical.Format(value.(string)), integers(value.(string))
	case "uniqueItems":
		n.unique = value.(bool)
	case "required":
		n.required = texts(value.([]any))
	case "dependentRequired":
		n.needs = c.needs(n.needs, value)
	default:
		c.applicator(n, name, object, at)
	}
	return nil
}

// applicator reads a keyword that applies other schemas to the value or to
// parts of it. items and additionalItems of draft 7 become prefix and items, which have the meaning of 2020-12.
func (c *compiler) applicator(n *node, name string, object map[string]any, at string) {
	value := object[name]
	switch name {
	case "items":
		if list, ok := value.([]any); ok {
			n.prefix = c.list(list, at)
		} else {
			n.items = c.node(at)
		}
	case "prefixItems":
		n.prefix = c.list(value.([]any), at)
	case "additionalItems":
		if _, ok := object["items"].([]any); ok {
			n.items = c.node(at)
		}
	case "contains":
		n.contains = c.node(at)
	case "properties":
		n.properties = c.named(value, at)
	case "patternProperties":
		for _, p := range slices.Sorted(maps.Keys(value.(map[string]any))) {
			n.patterns = append(n.patterns, patterned{compiled(p), c.node(at + "/" + escape(p))})
		}
	case "additionalProperties":
		n.additional = c.node(at)
	case "propertyNames":
		n.propertyNames = c.node(at)
	case "dependentSchemas":
		n.dependents = c.named(value, at)
	case "dependencies":
		n.needs = c.needs(n.needs, value)
		for name, v := range value.(map[string]any) {
			if _, isNames := v.([]any); !isNames {
				if n.dependents == nil {
					n.dependents = map[string]*node{}
				}
				n.dependents[name] = c.node(at + "/" + escape(name))
			}
		}
	case "allOf":
		n.allOf = c.list(value.([]any), at)
	case "anyOf":
		n.anyOf = c.list(value.([]any), at)
	case "oneOf":
		n.oneOf = c.list(value.([]any), at)
	case "not":
		n.not = c.node(at)
	case "if":
		n.condition = c.node(at)
	case "then":
		n.then = c.node(at)
	case "else":
		n.otherwise = c.node(at)
	case "unevaluatedItems":
		n.unevaluatedItems, c.tracks = c.node(at), true
	case "unevaluatedProperties":
		n.unevaluatedProperties, c.tracks = c.node(at), true
	}
}

// list returns the nodes of an array of schemas.
func (c *compiler) list(values []any, at string) []*node {
	nodes := make([]*node, len(values))
	for i := range values {
		nodes[i] = c.node(at + "/" + strconv.Itoa(i))
	}
	return nodes
}

// named returns the nodes of an object of schemas, by member name.
func (c *compiler) named(value any, at string) map[string]*node {
	nodes := map[string]*node{}
	for name := range value.(map[string]any) {
		nodes[name] = c.node(at + "/" + escape(name))
	}
	return nodes
}

// needs adds the names that dependentRequired, or dependencies of draft 7,
// demands when a member is present. Members of dependencies that are
// schemas are skipped.
func (c *compiler) needs(needs map[string][]string, value any) map[string][]string {
	for name, v := range value.(map[string]any) {
		if list, ok := v.([]any); ok {
			if needs == nil {
				needs = map[string][]string{}
			}
			needs[name] = append(needs[name], texts(list)...)
		}
	}
	return needs
}

// texts converts a list whose items are known to be strings.
func texts(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.(string)
	}
	return out
}

// resolve returns the absolute form of a reference that is in a schema with the
// URI from.
func resolve(from, ref string) (string, error) {
	b, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	r, err := url.Parse(ref)
	if err != nil {
		return "", err
	}
	if b.Opaque != "" && r.Scheme == "" && r.Host == "" && r.Path == "" { // a URN and a fragment
		b.Fragment, b.RawFragment = r.Fragment, r.RawFragment
		return b.String(), nil
	}
	return b.ResolveReference(r).String(), nil
}

// The two ways between a name and a reference token of a JSON Pointer (RFC 6901).
var (
	escaped   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaped = strings.NewReplacer("~1", "/", "~0", "~")
)

// escape returns a name as a reference token of a JSON Pointer.
func escape(name string) string {
	return escaped.Replace(name)
}

// rational returns the exact value of a number, or nil for anything else.
// Callers have made sure that the exponent is bounded; see unwieldy.
func rational(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

// count returns the value of a keyword that limits a size. Values beyond any
// size that there can be are cut to 1<<31.
func count(v any) int {
	r := rational(v)
	if n := r.Num(); n.IsInt64() && n.Int64() < 1<<31 {
		return int(n.Int64())
	}
	return 1 << 31
}

// kindOf returns the JSON type of a value. An integer is a "number".
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// The types of the keyword type as a set. An integer in a document has
// bitInteger and bitNumber.
const (
	bitNull = 1 << iota
	bitBoolean
	bitInteger
	bitNumber
	bitString
	bitArray
	bitObject
)

// typeBit returns the bit of a type name, or 0 if there is no such type.
func typeBit(name string) uint8 {
	switch name {
	case "null":
		return bitNull
	case "boolean":
		return bitBoolean
	case "integer":
		return bitInteger
	case "number":
		return bitNumber
	case "string":
		return bitString
	case "array":
		return bitArray
	case "object":
		return bitObject
	}
	return 0
}

// length returns the number of characters, which is what minLength and
// maxLength count: code points, not bytes.
func length(s string) int { return utf8.RuneCountInString(s) }
