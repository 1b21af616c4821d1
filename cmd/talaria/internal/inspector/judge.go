package inspector

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// maxJudged is how many bytes of schemas a list is checked for at most. The schemas of
// later entries are checked when their forms are opened.
const maxJudged = 4 << 20

// check checks the definitions of one list.
type judge struct {
	schemas  *schemas
	kind     string
	revision protocol.Revision
	seen     map[string]bool // names that were listed
	bytes    int             // of the definitions that were checked
}

func newJudge(s *schemas, kind string, rev protocol.Revision) *judge {
	return &judge{schemas: s, kind: kind, revision: rev, seen: map[string]bool{}}
}

// mark notes the first thing that is wrong with the definition of an entry, as a JSON
// Pointer into it and the rule that it breaks.
func (j *judge) mark(e *entry) {
	if j.bytes += len(e.raw); j.bytes > maxJudged {
		return
	}
	if e.Wrong == "" {
		e.Wrong = visible.Line(j.fault(e), visible.Sentence)
	}
	if e.Wrong == "" && j.seen[e.Name] {
		e.Wrong = "its name is listed twice: clients use the first or the last one"
	}
	j.seen[e.Name] = true
}

func (j *judge) fault(e *entry) string {
	switch j.kind {
	case "tool":
		input := j.schemas.fault("/inputSchema", e.input, true)
		if len(e.output) == 0 || string(e.output) == "null" {
			return input
		}
		return cmp.Or(input, j.schemas.fault("/outputSchema", e.output, !j.revision.Modern()))
	case "event":
		input := j.schemas.fault("/inputSchema", e.input, true)
		return cmp.Or(input, j.schemas.fault("/payloadSchema", e.output, true))
	case "prompt":
		return argumentsFault(e.raw)
	case "resource":
		return cmp.Or(uriFault(e.Name), nameFault(e.raw))
	case "template":
		if e.Name == "" {
			return "/uriTemplate: is missing; a template must have one"
		}
		return nameFault(e.raw)
	}
	return ""
}

// argumentsFault is what is wrong with the arguments of a prompt.
func argumentsFault(raw json.RawMessage) string {
	var p protocol.Prompt
	if jsonx.Unmarshal(raw, &p) != nil {
		return "" // which was said
	}
	seen := map[string]bool{}
	for n, a := range p.Arguments {
		switch {
		case a.Name == "":
			return fmt.Sprintf("/arguments/%d: must have a name", n)
		case seen[a.Name]:
			return fmt.Sprintf("/arguments/%d/name: must differ from the names of other arguments; got %q again", n, a.Name)
		}
		seen[a.Name] = true
	}
	return ""
}

// nameFault is what is wrong with the name of a resource, which is not its URI.
func nameFault(raw json.RawMessage) string {
	var r struct{ Name string }
	if jsonx.Unmarshal(raw, &r) == nil && r.Name == "" {
		return "/name: is missing; a resource must have one"
	}
	return ""
}

// uriFault is what is wrong with the URI of a resource.
func uriFault(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case uri == "":
		return "/uri: is missing; a resource must have one"
	case err != nil:
		return "/uri: must be a URI: " + err.Error()
	case u.Scheme == "":
		return "/uri: must begin with a scheme, such as file:; got " + uri
	}
	return ""
}
