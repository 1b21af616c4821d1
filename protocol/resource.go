package protocol

import (
	"fmt"
)

// Resource describes a resource to clients (server/resources of every
// revision).
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

// For returns r without what rev lacks.
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

// ResourceTemplate describes resources whose URIs follow a template (RFC
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

// For returns t without what rev lacks.
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

// ReadResourceResult is the result of resources/read.
type ReadResourceResult struct {
	Contents []ResourceContents
	Cache    Cache // for revisions that have it; the zero value means not at all, private
	Meta     MetaMap
}

// Append implements Result.
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

// ResourceNotFound is the error for a resource that does not exist. It has the
// code of legacy revisions; Error.For gives that of a revision.
func ResourceNotFound(uri string) *Error {
	return &Error{
		Code:    CodeResourceNotFound,
		Message: "Resource not found: " + uri,
		Data: struct {
			URI string `json:"uri"`
		}{uri},
	}
}

// For returns e with the code that rev has for it: CodeResourceNotFound is
// CodeInvalidParams in modern revisions.
func (e *Error) For(rev Revision) *Error {
	if e.Code != CodeResourceNotFound || !rev.Modern() {
		return e
	}
	modern := *e
	modern.Code = CodeInvalidParams
	return &modern
}
