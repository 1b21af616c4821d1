package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
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

// keepListed lists what a connection offers of one kind, and again when it has changed,
// until ctx ends.
func (i *Inspector) keepListed(ctx context.Context, attempt int, kind string, changed <-chan struct{}) {
	for rest := listRest; ; {
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, listTime)
		o, err := i.list(within, kind)
		cancel()
		if err != nil {
			return // there is no connection any more
		}
		kept := max(rest, (listShare-1)*time.Since(began))
		if rest >= longRest {
			o.Note = fmt.Sprintf("The list changes constantly, so it is refreshed every %v.", kept.Round(100*time.Millisecond))
		}
		i.offers(attempt, kind, *o)
		if pause(ctx, kept, nil) != nil {
			return
		}
		if pause(ctx, (listCalm-1)*rest, changed) == nil { // it did not change
			rest = listRest
			if o.Note != "" {
				o.Note = ""
				i.offers(attempt, kind, *o)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		} else if rest = min(2*rest, maxRest); ctx.Err() != nil {
			return
		}
	}
}

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

// offers takes a list of a connection, and tells the page.
func (i *Inspector) offers(attempt int, kind string, o offer) {
	o.text, _ = json.Marshal(o) // texts always encode
	i.mu.Lock()
	if attempt == i.attempt {
		i.offered[kind] = &o
	}
	i.mu.Unlock()
	i.pulse.beat()
}

// list asks for a list, entry by entry.
func (i *Inspector) list(ctx context.Context, name string) (*offer, error) {
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("there is no list of %q", visible.Line(name, visible.Name))
	}
	c := i.current()
	if c == nil {
		return nil, errNoConnection
	}
	o := &offer{Entries: []entry{}}
	if !k.offered(c) {
		return o, nil
	}
	plain, size, judge := !i.showsViews(), 0, newJudge(&i.schemas, name, c.Revision())
	for text, err := range c.List(ctx, k.list, k.member, client.NoCache()) {
		switch own, _ := errors.AsType[*client.Error](err); {
		case errors.Is(err, client.ErrUnsupported), own != nil && own.Code == protocol.CodeMethodNotFound && k.capability != "":
			return o, nil
		case err != nil:
			o.Error = visible.Text(err.Error(), visible.Sentence)
		case len(o.Entries) == maxEntries, size > maxListed:
			o.Error = fmt.Sprintf("the list is too long: these are the first %d entries", len(o.Entries))
		}
		if o.Error != "" {
			break
		}
		size += len(text)
		e := entryOf(k, text, len(o.Entries))
		if plain { // hosts without views do not look at them
			e.View = ""
		}
		judge.mark(&e)
		o.Entries = append(o.Entries, e)
	}
	if name == "tool" {
		o.found = hostrules.Server("", o.tools(), c.Server().Instructions)
	}
	o.count()
	return o, nil
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

// find returns an entry of a list by its name, listing again if it is not known.
// A resource may be one that is not listed.
func (i *Inspector) find(ctx context.Context, kind, name string) (entry, error) {
	i.mu.Lock()
	o := i.offered[kind]
	i.mu.Unlock()
	if o == nil {
		var err error
		if o, err = i.list(ctx, kind); err != nil {
			return entry{}, err
		}
	}
	for _, e := range o.Entries {
		if e.Name == name {
			if kind == "template" {
				e.readVariables()
			}
			return e, nil
		}
	}
	if kind == "resource" && name != "" {
		return entry{Name: name, Label: visible.Line(name, visible.Name), input: textsSchema(nil), raw: json.RawMessage("null")}, nil
	}
	return entry{}, fmt.Errorf("the server lists no %s %q", kind, visible.Line(name, visible.Name))
}

// inputOf returns the schema of what a listed tool or event type takes.
func (i *Inspector) inputOf(method, name string) (json.RawMessage, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	kind := "tool"
	if method == wire.MethodEventsStream {
		kind = "event"
	}
	if o := i.offered[kind]; o != nil {
		for _, e := range o.Entries {
			if e.Name == name {
				return e.input, true
			}
		}
	}
	return nil, false
}

// checkOutput checks a result against the tool's output schema. One of a tool that failed
// needs no structured content (server/tools).
func (i *Inspector) checkOutput(ctx context.Context, tool string, result *client.CallToolResult) (issues []schema.Issue, checked bool) {
	e, err := i.find(ctx, "tool", tool)
	switch {
	case err != nil || len(e.output) == 0 || string(e.output) == "null" || !i.revisionNow().Has(protocol.FeatureStructuredContent):
		return nil, false
	case result.Structured != nil:
		return i.schemas.check(e.output, result.Structured), true
	case result.IsError:
		return nil, false
	}
	return []schema.Issue{{Rule: "outputSchema", Message: "has no structuredContent, which a tool with an outputSchema must return"}}, true
}
