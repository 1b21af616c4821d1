package inspector

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/uritemplate"
)

// textsSchema is the schema of an object with texts: what a prompt takes, and the
// variables of a template.
func textsSchema(list []protocol.PromptArgument) json.RawMessage {
	type property struct {
		Type        string `json:"type"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
	}
	var properties []byte
	required := []string{}
	seen := map[string]bool{}
	for _, a := range list {
		if seen[a.Name] {
			continue // the first counts, as in any object
		}
		seen[a.Name] = true
		name, err := json.Marshal(a.Name)
		one, fault := json.Marshal(property{"string", a.Title, a.Description})
		if err != nil || fault != nil {
			continue // texts always encode
		}
		properties = append(append(append(append(properties, ','), name...), ':'), one...)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	names, _ := json.Marshal(required) // texts always encode
	return fmt.Appendf(nil, `{"type":"object","additionalProperties":false,"required":%s,"properties":{%s}}`, names, strings.TrimPrefix(string(properties), ","))
}

// wholeURI is the field of a template whose variables cannot be read.
const wholeURI = "uri"

// inQuery are the variables of a template that may be left out.
var inQuery = regexp.MustCompile(`\{[?&]([^{}]*)\}`)

// The bounds of a template that is read: its bytes, and the variables and expressions
// in it. To read one of many takes long.
const (
	maxTemplate  = 4 << 10
	maxVariables = 64
)

func parseTemplate(text string) (*uritemplate.Template, error) {
	if len(text) > maxTemplate || strings.Count(text, "{")+strings.Count(text, ",") > maxVariables {
		return nil, fmt.Errorf("the template has more than %d bytes or %d variables", maxTemplate, maxVariables)
	}
	return uritemplate.Parse(text)
}

// variablesOf returns what a template takes. The error says why a person has to
// type the whole URI.
func variablesOf(template string) ([]protocol.PromptArgument, error) {
	t, err := parseTemplate(template)
	if err != nil {
		return []protocol.PromptArgument{{Name: wholeURI, Required: true}}, fmt.Errorf("its variables cannot be read; enter the URI: %w", err)
	}
	var optional []string
	for _, part := range inQuery.FindAllStringSubmatch(template, -1) {
		for name := range strings.SplitSeq(part[1], ",") {
			optional = append(optional, strings.TrimRight(name, "*"))
		}
	}
	var list []protocol.PromptArgument
	for _, name := range t.Names() {
		list = append(list, protocol.PromptArgument{Name: name, Required: !slices.Contains(optional, name)})
	}
	return list, nil
}

// expanded is the URI of a template with these values, a JSON object; "" if the
// values are invalid.
func expanded(template string, value []byte) string {
	var given map[string]json.RawMessage
	if json.Unmarshal(value, &given) != nil {
		return ""
	}
	values := uritemplate.Values{}
	for name, text := range given {
		var one string
		var list []string
		switch {
		case json.Unmarshal(text, &one) == nil:
			values[name] = []string{one}
		case json.Unmarshal(text, &list) == nil:
			values[name] = list
		default:
			return ""
		}
	}
	t, err := parseTemplate(template)
	if err != nil {
		return strings.Join(values[wholeURI], "")
	}
	return t.Expand(values)
}
