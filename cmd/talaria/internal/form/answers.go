package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	naming "github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/protocol"
)

// Answers answers questions without a person, from name=value pairs: forms whose
// fields they and the defaults fill are accepted, all else is cancelled. So is a
// form that has fields but none of the names, or for a field without an answer a
// name that looks like it: there the defaults are hardly what was meant. Other
// names of no field are ignored, since another form may have them.
type Answers []string

// Reply is what Answers makes of a question.
type Reply struct {
	Result *protocol.ElicitResult
	Note   string // what was done, for the log
	// Form says that the question was one that names can fit, and Fit which of
	// them do. In a form without fields they all do.
	Form bool
	Fit  []string
}

// name returns the name of a pair.
func name(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return strings.TrimSuffix(name, ":")
}

// Names lists the names, each once.
func (a Answers) Names() []string {
	var list []string
	for _, pair := range a {
		if n := name(pair); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// Elicit answers one question.
func (a Answers) Elicit(params *protocol.ElicitParams) Reply {
	cancel := &protocol.ElicitResult{Action: protocol.ElicitCancel}
	message := console.Line(params.Message)
	if params.URL != "" || params.Mode == "url" {
		return Reply{Result: cancel, Note: "the server asked to open " + console.Line(params.URL) + " (" + message + "); nobody is there to do that, so it was cancelled"}
	}
	object, err := arguments.ReadObject(params.RequestedSchema)
	if err != nil {
		return Reply{Result: cancel, Note: "the server asked something that cannot be read: " + err.Error()}
	}
	head := "the server asked: " + message
	r := Reply{Result: cancel, Form: true, Fit: a.fit(object)}
	if why := a.misspelt(object, r.Fit); why != "" {
		r.Note = head + "; " + why + ", so it was cancelled. Its fields: " + fields(object)
		return r
	}
	values, err := a.values(object)
	if err != nil || len(a) == 0 {
		r.Note = head + "; nobody is there to answer, so it was cancelled. Answer with --answer name=value for each of: " + fields(object)
		return r
	}
	r.Result, r.Note = &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: values}, head+"; answered "+string(values)
	return r
}

func fields(object *arguments.Object) string { return console.Line(strings.Join(object.Names(), ", ")) }

// fit lists the names that the form has.
func (a Answers) fit(object *arguments.Object) []string {
	return slices.DeleteFunc(a.Names(), func(name string) bool {
		_, ok := object.Field(name)
		return !ok && len(object.Fields) > 0
	})
}

// leastTypo is how long a name is at least that is taken for another one.
const leastTypo = 3

// misspelt says which name is probably that of a field, "" if none is.
func (a Answers) misspelt(object *arguments.Object, fit []string) string {
	open := slices.DeleteFunc(object.Names(), func(name string) bool { return slices.Contains(fit, name) })
	for _, n := range a.Names() {
		if slices.Contains(fit, n) || len(n) < leastTypo {
			continue
		}
		if near := naming.Nearest(n, open); near != "" {
			return fmt.Sprintf("the form has no field %s (did you mean --answer %s=value?)", n, console.Line(near))
		}
	}
	if len(a) > 0 && len(fit) == 0 {
		return "the form has no field " + strings.Join(a.Names(), " or ")
	}
	return ""
}

// values fills the form from the answers and the defaults.
func (a Answers) values(object *arguments.Object) (json.RawMessage, error) {
	var list []string
	for _, f := range object.Fields {
		if len(f.Default) > 0 {
			if member, err := json.Marshal(map[string]json.RawMessage{f.Name: f.Default}); err == nil {
				list = append(list, string(member))
			}
		}
	}
	typed := []string{}
	for _, f := range object.Fields {
		for _, pair := range a {
			if name(pair) == f.Name {
				typed = append(typed, pair)
			}
		}
	}
	values, err := object.Parse(typed)
	if err == nil {
		values, err = (&arguments.Object{}).Parse(append(list, string(values)))
	}
	if err == nil {
		err = object.Check(values)
	}
	return values, err
}
