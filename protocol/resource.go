package protocol

// Resource describes a resource to clients (server/resources of every
// revision). URI identifies it in resources/read; Name and Title are for
// display.
type Resource struct {
	URI         string         `json:"uri"`
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Icons       []Icon         `json:"icons,omitempty"`
	MIMEType    string         `json:"mimeType,omitempty"`
	Size        *int64         `json:"size,omitempty"` // bytes, before any encoding; nil if unknown
	Annotations *Annotations   `json:"annotations,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// ResourceTemplate describes the resources whose URIs match a template (RFC
// 6570).
type ResourceTemplate struct {
	URITemplate string         `json:"uriTemplate"`
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Icons       []Icon         `json:"icons,omitempty"`
	MIMEType    string         `json:"mimeType,omitempty"` // "" unless all of them have the same
	Annotations *Annotations   `json:"annotations,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// ReadResourceResult is the result of resources/read. It usually has one item;
// a directory, for example, may have one for each file in it, each with its own
// URI.
type ReadResourceResult struct {
	Contents []ResourceContents
	Cache    Cache // for revisions that have it
	Meta     map[string]any
}
