package protocol

import "encoding/json"

// Tool describes a tool to clients (server/tools of every revision).
// InputSchema and OutputSchema are JSON Schemas, encoded once; a nil
// OutputSchema means that results have no declared structure.
type Tool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitempty"`
	Description  string           `json:"description,omitempty"`
	Icons        []Icon           `json:"icons,omitempty"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  *ToolAnnotations `json:"annotations,omitempty"`
	Meta         MetaMap          `json:"_meta,omitempty"`
}

// ToolAnnotations are hints about what a tool does. A nil pointer leaves the
// hint to its default, which the specification gives as: not read-only,
// destructive, not idempotent, open world.
type ToolAnnotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// For returns t without the members that rev lacks. Two things are saved rather
// than dropped: in the revision that has hints but no titles, the title moves
// into the annotations, where that revision has it; and in revisions whose
// structured content is always an object, an output schema stays only if it
// describes an object. t itself is not changed.
func (t Tool) For(rev Revision) Tool {
	if !rev.Has(Titles) {
		if t.Title != "" && rev.Has(ToolHints) {
			hints := ToolAnnotations{}
			if t.Annotations != nil {
				hints = *t.Annotations
			}
			if hints.Title == "" {
				hints.Title = t.Title
			}
			t.Annotations = &hints
		}
		t.Title = ""
	}
	if !rev.Has(ToolHints) {
		t.Annotations = nil
	}
	if !rev.Has(Icons) {
		t.Icons = nil
	}
	if !rev.Has(StructuredContent) || !rev.Has(AnyStructured) && !objectSchema(t.OutputSchema) {
		t.OutputSchema = nil
	}
	return t
}

// objectSchema reports whether the root of schema says "type": "object".
// Schemas that mean the same without saying it count as no, because older
// clients read that member.
func objectSchema(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return len(schema) > 0 && json.Unmarshal(schema, &root) == nil && root.Type == "object"
}
