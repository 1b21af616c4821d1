package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// kind is one of the lists that a server has.
type kind struct {
	list   string // the method
	member string // of its answer
	// capability is without which the server is not asked; "" asks always, as
	// servers with tools forget to say so.
	capability string
	read       func(text []byte, e *entry) error
	changed    string // the notification of the server when it has
}

// kinds are all of them, by what the page calls them.
var kinds = map[string]kind{
	"tool":     {protocol.MethodToolsList, "tools", "", readTool, protocol.MethodToolsChanged},
	"prompt":   {protocol.MethodPromptsList, "prompts", "prompts", readPrompt, protocol.MethodPromptsChanged},
	"resource": {protocol.MethodResourcesList, "resources", "resources", readResource, protocol.MethodResourcesChanged},
	"template": {protocol.MethodResourceTemplates, "resourceTemplates", "resources", readTemplate, protocol.MethodResourcesChanged},
	"event":    {wire.MethodEventsList, "events", "events", readEvent, wire.MethodEventsChanged},
}

// offered reports whether a server is asked for the list.
func (k kind) offered(c *client.Client) bool {
	return k.capability == "" || c.Supports(k.capability) || k.capability == "events" && c.Supports("extensions", wire.EventsExtension)
}

// entry is one thing that the server offers, as the page lists it. One that is
// broken is listed, too, and says what is wrong.
type entry struct {
	Name          string          `json:"name"` // by which it is used: the URI of a resource
	Label         string          `json:"label"`
	Title         string          `json:"title,omitempty"`
	Description   string          `json:"description,omitempty"`
	Marks         []string        `json:"marks,omitempty"` // read-only, destructive; the type of a resource
	Wrong         string          `json:"wrong,omitempty"`
	Harmless      bool            `json:"harmless,omitempty"` // a tool that says so: read-only, or not destructive
	View          string          `json:"view,omitempty"`     // of a tool, its URI
	Fails         int             `json:"fails,omitempty"`    // findings that hosts refuse or change it for
	title, about  string          // as they came
	input, output json.RawMessage // schemas of what it takes and of what it gives
	task          bool            // a tool that is called as a task only
	raw           json.RawMessage // as it was sent
}

// offer is one list of a connection.
type offer struct {
	Entries []entry             `json:"entries"`
	Error   string              `json:"error,omitempty"` // of the list as a whole
	Note    string              `json:"note,omitempty"`  // what else there is to say of it
	found   []hostrules.Finding // of tools and instructions: what hosts do not accept, the first maxFindings
	counts  counts
	text    json.RawMessage // all of it, as the page gets it
}

// The bounds of a list: how long the server has for it, how long it is kept although
// the server says that it has changed, and how long it may be. A list that changes
// within listCalm rests is kept twice as long the next time; and none takes more of the
// time than one part in listShare.
const (
	listTime   = 30 * time.Second
	listRest   = 200 * time.Millisecond
	longRest   = 1600 * time.Millisecond // after which the page says so
	maxRest    = 10 * time.Second
	listCalm   = 5
	listShare  = 5
	maxEntries = 20_000
	maxListed  = 32 << 20 // bytes
	shownAbout = 500      // bytes of a description that the list has, to be found by
)

// errChanged ends a pause.
var errChanged = errors.New("the list has changed")

// pause waits for a while, or until something has changed, which is an error.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-changed:
		return errChanged
	case <-ctx.Done():
		return ctx.Err()
	}
}

// entryOf reads one entry, as far as it goes.
func entryOf(k kind, text json.RawMessage, n int) entry {
	e := entry{raw: text}
	if err := k.read(text, &e); err != nil {
		e.Wrong = "it does not decode: " + visible.Line(err.Error(), visible.Sentence)
		if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			got, _, _ := strings.Cut(typed.Value, " ") // behind which is the number
			e.Wrong = cmp.Or(visible.Line(typed.Field, visible.Name), "it") + " is " + withArticle(got) + " and must be " + withArticle(jsonType(typed.Type))
		}
		var loose map[string]json.RawMessage
		if jsonx.Unmarshal(text, &loose) == nil {
			for name, into := range map[string]*string{"name": &e.Name, "uri": &e.Name, "uriTemplate": &e.Name, "description": &e.about} {
				_ = jsonx.Unmarshal(loose[name], into) // other values count as absent
			}
			if schema := loose["inputSchema"]; schema != nil {
				e.input = schema
			}
		}
	}
	if e.Label == "" {
		e.Label = e.Name
	}
	if e.Label = visible.Line(e.Label, visible.Name); e.Label == "" {
		e.Label = fmt.Sprintf("(number %d, without a name)", n+1)
		if e.Wrong == "" {
			e.Wrong = "it has no name"
		}
	}
	if e.Title = visible.Line(e.title, visible.Name); e.Title == e.Label {
		e.Title = ""
	}
	e.Description = visible.Line(e.about, shownAbout)
	for n, mark := range e.Marks {
		e.Marks[n] = visible.Line(mark, visible.Name)
	}
	return e
}

// jsonType returns what JSON calls the values of a Go type.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Int, reflect.Int64:
		return "integer"
	}
	return "number"
}

func withArticle(noun string) string {
	switch {
	case noun == "bool":
		noun = "boolean"
	case strings.ContainsAny(noun[:min(1, len(noun))], "aio"):
		return "an " + noun
	}
	return "a " + noun
}

func readTool(text []byte, e *entry) error {
	var t protocol.Tool
	err := jsonx.Unmarshal(text, &t)
	e.Name, e.title, e.about, e.input, e.output = t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema
	e.View = visible.Line(readUI(text).View, visible.Sentence)
	if a := t.Annotations; a != nil {
		if a.ReadOnlyHint != nil && *a.ReadOnlyHint {
			e.Marks = append(e.Marks, "read-only")
		} else if a.DestructiveHint != nil && *a.DestructiveHint {
			e.Marks = append(e.Marks, "destructive")
		}
		e.Harmless = a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.DestructiveHint != nil && !*a.DestructiveHint
		if a.IdempotentHint != nil && *a.IdempotentHint {
			e.Marks = append(e.Marks, "idempotent")
		}
		if a.OpenWorldHint != nil && *a.OpenWorldHint {
			e.Marks = append(e.Marks, "open world")
		}
	}
	if t.Execution != nil {
		if e.task = t.Execution.TaskSupport == protocol.TaskRequired; e.task {
			e.Marks = append(e.Marks, "runs as a task")
		}
	}
	return err
}

func readPrompt(text []byte, e *entry) error {
	var p protocol.Prompt
	err := jsonx.Unmarshal(text, &p)
	e.Name, e.title, e.about, e.input = p.Name, p.Title, p.Description, textsSchema(p.Arguments)
	return err
}

func readResource(text []byte, e *entry) error {
	var r protocol.Resource
	err := jsonx.Unmarshal(text, &r)
	e.Name, e.Label, e.title, e.about, e.input = r.URI, r.Name, r.Title, r.Description, textsSchema(nil)
	if r.MIMEType != "" {
		e.Marks = append(e.Marks, r.MIMEType)
	}
	if r.Size != nil {
		unit := "bytes"
		if *r.Size == 1 {
			unit = "byte"
		}
		e.Marks = append(e.Marks, fmt.Sprintf("%d %s", *r.Size, unit))
	}
	return err
}

func readTemplate(text []byte, e *entry) error {
	var t protocol.ResourceTemplate
	err := jsonx.Unmarshal(text, &t)
	e.Name, e.Label, e.title, e.about = t.URITemplate, t.Name, t.Title, t.Description
	if t.MIMEType != "" {
		e.Marks = append(e.Marks, t.MIMEType)
	}
	return err // find reads the template itself, as a list of many would take long
}

func readEvent(text []byte, e *entry) error {
	var t protocol.EventType
	err := jsonx.Unmarshal(text, &t)
	e.Name, e.about, e.input, e.output, e.Marks = t.Name, t.Description, t.InputSchema, t.PayloadSchema, t.Delivery
	return err
}

// readVariables reads what the template of an entry takes.
func (e *entry) readVariables() {
	variables, wrong := variablesOf(e.Name)
	if e.input = textsSchema(variables); wrong != nil && e.Wrong == "" {
		e.Wrong = visible.Line(wrong.Error(), visible.Sentence)
	}
}

// tools returns the tools of a list as lint gets them. Those that do not decode are
// broken, which their entries say.
func (o *offer) tools() (list []protocol.Tool) {
	for _, e := range o.Entries {
		var t protocol.Tool
		if jsonx.Unmarshal(e.raw, &t) == nil {
			list = append(list, t)
		}
	}
	return list
}

// count notes how many findings there are, of the list and of each tool, and how many
// entries are broken.
func (o *offer) count() {
	of := map[string]int{}
	for _, f := range o.found {
		if f.Rule.Fails {
			of[f.Tool]++
			o.counts.Fails++
		} else {
			o.counts.Notes++
		}
	}
	for n := range o.Entries {
		e := &o.Entries[n]
		if e.Wrong != "" {
			o.counts.Broken++
		} else if label := visible.Line(e.Name, visible.Name); label != "" {
			e.Fails = of[label]
			delete(of, label) // of two tools with one name the first has the mark
		}
	}
	o.found = slices.Clip(o.found[:min(len(o.found), maxFindings)])
}
