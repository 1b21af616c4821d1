package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// PromptFor returns p without what rev lacks.
func PromptFor(p protocol.Prompt, rev protocol.Revision) protocol.Prompt {
	if !rev.Has(protocol.FeatureTitles) {
		p.Title = ""
		arguments := make([]protocol.PromptArgument, len(p.Arguments))
		for i, a := range p.Arguments {
			a.Title = ""
			arguments[i] = a
		}
		p.Arguments = arguments
	}
	if !rev.Has(protocol.FeatureIcons) {
		p.Icons = nil
	}
	return p
}

// ResourceFor returns r without what rev lacks.
func ResourceFor(r protocol.Resource, rev protocol.Revision) protocol.Resource {
	if !rev.Has(protocol.FeatureTitles) {
		r.Title = ""
	}
	if !rev.Has(protocol.FeatureIcons) {
		r.Icons = nil
	}
	r.Annotations = annotationsFor(r.Annotations, rev)
	return r
}

// ResourceTemplateFor returns t without what rev lacks.
func ResourceTemplateFor(t protocol.ResourceTemplate, rev protocol.Revision) protocol.ResourceTemplate {
	if !rev.Has(protocol.FeatureTitles) {
		t.Title = ""
	}
	if !rev.Has(protocol.FeatureIcons) {
		t.Icons = nil
	}
	t.Annotations = annotationsFor(t.Annotations, rev)
	return t
}

// EventTypeFor returns t without what rev lacks.
func EventTypeFor(t protocol.EventType, rev protocol.Revision) protocol.EventType {
	if !rev.Modern() {
		t.Delivery = slices.DeleteFunc(slices.Clone(t.Delivery), func(mode string) bool { return mode == DeliveryPush })
	}
	return t
}

// ErrorFor returns e as rev has it. Modern revisions have no CodeResourceNotFound:
// CodeInvalidParams stands for it, and data names the resource. uri is that of the
// resource which the request reads; "" if it reads none.
func ErrorFor(e *protocol.Error, rev protocol.Revision, uri string) *protocol.Error {
	if e.Code != protocol.CodeResourceNotFound || !rev.Modern() && (uri == "" || e.Data != nil) {
		return e
	}
	own := *e
	if rev.Modern() {
		own.Code = protocol.CodeInvalidParams
	}
	if uri != "" && own.Data == nil {
		own.Data = ResourceNotFound(uri).Data
	}
	return &own
}

// IsNotFound reports whether e, with which a server of rev answered a request to read the
// resource at uri, means that there is no such resource. The official Go SDK gives the
// answer of modern revisions in older ones, too, with a message that says it.
func IsNotFound(e *protocol.Error, rev protocol.Revision, uri string) bool {
	if e.Code != protocol.CodeInvalidParams {
		return e.Code == protocol.CodeResourceNotFound
	}
	var named string
	data, _ := e.Data.(json.RawMessage)
	var about map[string]json.RawMessage
	if jsonx.Unmarshal(data, &about) != nil || jsonx.Unmarshal(about["uri"], &named) != nil || named != uri {
		return false
	}
	return rev.Modern() || strings.Contains(e.Message, "Resource not found")
}

// PassReadError returns e, which another server answered to the request to read the
// resource at uri, as ErrorFor needs it to say the same in rev. missing is what IsNotFound
// says of e.
func PassReadError(e *protocol.Error, rev protocol.Revision, uri string, missing bool) *protocol.Error {
	own := *e
	var about map[string]json.RawMessage
	data, _ := e.Data.(json.RawMessage)
	hasURI := jsonx.Unmarshal(data, &about) == nil && about["uri"] != nil
	switch {
	case missing:
		own.Code = protocol.CodeResourceNotFound
		if hasURI {
			about["uri"], _ = json.Marshal(uri) // text can be encoded
			own.Data = about
		}
	case hasURI && e.Code == protocol.CodeInvalidParams && rev.Modern():
		delete(about, "uri")
		own.Data = about
	}
	return &own
}

// ToolFor returns t without what rev lacks, and without tasks of 2025-11-25, which servers of
// this module do not have.
func ToolFor(t protocol.Tool, rev protocol.Revision) protocol.Tool {
	t.Execution = nil
	if !rev.Has(protocol.FeatureTitles) {
		if t.Title != "" && rev.Has(protocol.FeatureToolAnnotations) {
			hints := protocol.ToolAnnotations{}
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
	if !rev.Has(protocol.FeatureToolAnnotations) {
		t.Annotations = nil
	}
	if !rev.Has(protocol.FeatureIcons) {
		t.Icons = nil
	}
	if !rev.Has(protocol.FeatureStructuredContent) || !rev.Has(protocol.FeatureAnyStructured) && !objectSchema(t.OutputSchema) {
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
	return len(schema) > 0 && jsonx.Unmarshal(schema, &root) == nil && root.Type == "object"
}

// annotationsFor returns a without what rev lacks.
func annotationsFor(a *protocol.Annotations, rev protocol.Revision) *protocol.Annotations {
	if a == nil || rev.Has(protocol.FeatureLastModified) || a.LastModified.IsZero() {
		return a
	}
	older := *a
	older.LastModified = time.Time{}
	return &older
}

// ImplementationFor returns i without what rev lacks.
func ImplementationFor(i protocol.Implementation, rev protocol.Revision) protocol.Implementation {
	if !rev.Has(protocol.FeatureTitles) {
		i.Title = ""
	}
	if !rev.Has(protocol.FeatureIcons) {
		i.Description, i.WebsiteURL, i.Icons = "", "", nil
	}
	return i
}

// ClientCapabilitiesFor returns c without what rev lacks: a client may declare what it can do in
// a newer revision than the one that was agreed on.
func ClientCapabilitiesFor(c protocol.ClientCapabilities, rev protocol.Revision) protocol.ClientCapabilities {
	if !rev.Has(protocol.FeatureElicitation) {
		c.Elicitation = nil
	}
	if c.Elicitation != nil && !rev.Has(protocol.FeatureElicitModes) {
		c.Elicitation = &protocol.ElicitationCapability{}
	}
	if c.Sampling != nil && !rev.Has(protocol.FeatureSamplingTools) {
		c.Sampling = &protocol.SamplingCapability{}
	}
	c.Extensions = extensionsFor(c.Extensions, rev)
	return c
}

// ServerCapabilitiesFor returns c without what rev lacks.
func ServerCapabilitiesFor(c protocol.ServerCapabilities, rev protocol.Revision) protocol.ServerCapabilities {
	if !rev.Has(protocol.FeatureCompletionsCapability) {
		c.Completions = nil
	}
	c.Extensions = extensionsFor(c.Extensions, rev)
	return c
}

// extensionsFor returns the extensions of either side without those that rev
// does not have. Extensions that are not known here belong to every revision:
// the schemas of capabilities are open, and hosts look for apps in legacy
// sessions, too. all is not changed.
func extensionsFor[V any](all map[string]V, rev protocol.Revision) map[string]V {
	own := [...]struct {
		id    string
		since protocol.Feature
	}{{TasksExtension, protocol.FeaturePerRequestMeta}, {SkillsExtension, protocol.FeatureSkills}, {EventsExtension, protocol.FeaturePerRequestMeta}}
	copied := false
	for _, x := range own {
		if _, ok := all[x.id]; !ok || rev.Has(x.since) {
			continue
		}
		if !copied {
			all, copied = maps.Clone(all), true
		}
		delete(all, x.id)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// SampleParamsFor returns the params as a client of rev takes them. Before 2025-11-25 a
// message has one item, so that each becomes a message of its own, and there are
// no tools; what else the revision lacks becomes text.
func SampleParamsFor(p protocol.SampleParams, rev protocol.Revision) protocol.SampleParams {
	single := !rev.Has(protocol.FeatureSamplingTools)
	if single {
		p.Tools, p.ToolChoice = nil, nil
	}
	var messages []protocol.SampleMessage
	for _, m := range p.Messages {
		content := make([]protocol.Content, len(m.Content))
		for i, item := range m.Content {
			content[i] = contentFor(item, rev)
		}
		if !single || len(content) == 0 {
			messages = append(messages, protocol.SampleMessage{Role: m.Role, Content: content})
			continue
		}
		for i := range content {
			messages = append(messages, protocol.SampleMessage{Role: m.Role, Content: content[i : i+1]})
		}
	}
	p.Messages = messages
	return p
}

// contentFor returns item without what rev lacks: what it has no type for becomes
// text.
func contentFor(item protocol.Content, rev protocol.Revision) protocol.Content {
	if rev >= protocol.V20251125 { // which was the last to add to content
		return item
	}
	switch c := item.(type) {
	case protocol.TextContent:
		if a := annotationsFor(c.Annotations, rev); a != c.Annotations {
			c.Annotations = a
			return c
		}
	case protocol.ImageContent:
		if a := annotationsFor(c.Annotations, rev); a != c.Annotations {
			c.Annotations = a
			return c
		}
	case protocol.AudioContent:
		c.Annotations = annotationsFor(c.Annotations, rev)
		mime := protocol.Internal(facts.Private{}).AudioType(c)
		if rev.Has(protocol.FeatureAudioContent) || mime == "" { // which is an error in every revision
			return c
		}
		text := fmt.Sprintf("[audio, %s, %d bytes: not available in protocol revision %s]", mime, len(c.Data), rev)
		return protocol.TextContent{Text: text, Annotations: c.Annotations}
	case protocol.ResourceLink:
		c.Annotations = annotationsFor(c.Annotations, rev)
		if !rev.Has(protocol.FeatureResourceLinks) {
			return protocol.TextContent{Text: c.Name + ": " + protocol.Internal(facts.Private{}).EscapeURI(c.URI), Annotations: c.Annotations}
		}
		c.Icons = nil // since 2025-11-25
		return c
	case protocol.EmbeddedResource:
		c.Annotations = annotationsFor(c.Annotations, rev)
		return c
	case protocol.ToolUseContent:
		return protocol.TextContent{Text: fmt.Sprintf("[call of the tool %s with %s]", c.Name, c.Input)}
	case protocol.ToolResultContent:
		var text strings.Builder
		for _, item := range c.Content {
			if t, ok := item.(protocol.TextContent); ok {
				text.WriteString(t.Text)
			}
		}
		return protocol.TextContent{Text: "[result of a tool] " + text.String()}
	case *protocol.TextContent:
		return contentFor(*c, rev)
	case *protocol.ImageContent:
		return contentFor(*c, rev)
	case *protocol.AudioContent:
		return contentFor(*c, rev)
	case *protocol.ResourceLink:
		return contentFor(*c, rev)
	case *protocol.EmbeddedResource:
		return contentFor(*c, rev)
	case *protocol.ToolUseContent:
		return contentFor(*c, rev)
	case *protocol.ToolResultContent:
		return contentFor(*c, rev)
	}
	return item
}
