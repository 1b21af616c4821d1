package protocol

import (
	"fmt"
)

// Resource describes a resource to clients (server/resources of every
// revision). URI identifies it in resources/read; Name and Title are for
// display.
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Icons       []Icon       `json:"icons,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Size        *int64       `json:"size,omitempty"` // bytes, before any encoding; nil if unknown
	Annotations *Annotations `json:"annotations,omitempty"`
	Meta        MetaMap      `json:"_meta,omitempty"`
}

// For returns r without the members that rev lacks.
func (r Resource) For(rev Revision) Resource {
	if !rev.Has(Titles) {
		r.Title = ""
	}
	if !rev.Has(Icons) {
		r.Icons = nil
	}
	r.Annotations = r.Annotations.For(rev)
	return r
}

// ResourceTemplate describes the resources whose URIs match a template (RFC
// 6570).
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Icons       []Icon       `json:"icons,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"` // "" unless all of them have the same
	Annotations *Annotations `json:"annotations,omitempty"`
	Meta        MetaMap      `json:"_meta,omitempty"`
}

// For returns t without the members that rev lacks.
func (t ResourceTemplate) For(rev Revision) ResourceTemplate {
	if !rev.Has(Titles) {
		t.Title = ""
	}
	if !rev.Has(Icons) {
		t.Icons = nil
	}
	t.Annotations = t.Annotations.For(rev)
	return t
}

// ReadResourceResult is the result of resources/read. It usually has one item;
// a directory, for example, may have one for each file in it, each with its own
// URI.
type ReadResourceResult struct {
	Contents []ResourceContents
	Cache    Cache // for revisions that have it; the zero value means not at all, private
	Meta     MetaMap
}

// Append implements [Result]. Cache is written in revisions that have it; an
// empty scope is private, so that nothing is shared that was not declared
// public.
func (r *ReadResourceResult) Append(dst []byte, to Wire) ([]byte, error) {
	dst = append(separate(openResult(dst, to)), `"contents":[`...)
	for i, c := range r.Contents {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.Append(dst, to.Revision); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if to.Revision.Has(CacheHints) {
		scope := r.Cache.Scope
		if scope == "" {
			scope = CachePrivate
		}
		dst = fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":%q`, r.Cache.TTLMs, scope)
	}
	return closeResult(dst, r.Meta, to)
}

// ResourceNotFound returns the error for a resource that does not exist. It has
// the code of legacy revisions, -32002; Error.For gives the code of the
// revision that it is sent in.
func ResourceNotFound(uri string) *Error {
	return &Error{
		Code:    CodeResourceNotFound,
		Message: "Resource not found: " + uri,
		Data: struct {
			URI string `json:"uri"`
		}{uri},
	}
}

// For returns e with the code that rev uses for it: CodeResourceNotFound
// becomes CodeInvalidParams in modern revisions, which have withdrawn the
// former. Other errors are returned as they are. e is not changed.
func (e *Error) For(rev Revision) *Error {
	if e.Code != CodeResourceNotFound || !rev.Modern() {
		return e
	}
	modern := *e
	modern.Code = CodeInvalidParams
	return &modern
}
