package inspector

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/schema"
)

// counts are how much there is to say of a server, as the head of the page shows it.
type counts struct {
	Fails   int `json:"fails"`   // findings for which some hosts refuse or change something
	Notes   int `json:"notes"`   // findings that fail nothing
	Broken  int `json:"broken"`  // definitions
	Results int `json:"results"` // tools whose last result was invalid
}

// verdict is what hosts and the protocol do not accept of a server: what "talaria lint
// --notes" prints, and what only an inspector sees.
type verdict struct {
	Findings []place       `json:"findings"`
	Broken   []brokenEntry `json:"broken"`
	Results  []wrongResult `json:"results"`
	Tokens   []weight      `json:"tokens"`         // of each tool, the longest first
	Total    int           `json:"total"`          // tokens of all tools
	Tools    int           `json:"tools"`          // how many there are
	More     int           `json:"more,omitempty"` // findings and broken definitions that are left out
}

// place is a finding, with the name by which its tool is opened.
type place struct {
	hostrules.Row
	Name string `json:"name,omitempty"`
	Line int    `json:"line,omitempty"` // of the definition as it is shown, from 1
}

// brokenEntry is a definition that is invalid.
type brokenEntry struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Label string `json:"label"`
	Wrong string `json:"wrong"`
}

// wrongResult is the last result of a tool, if it is invalid.
type wrongResult struct {
	Name   string         `json:"name"`
	Label  string         `json:"label"`
	Call   int64          `json:"call"`
	Issues []schema.Issue `json:"issues"`
}

// weight is how many tokens a tool takes, about.
type weight struct {
	Name   string `json:"name"`
	Label  string `json:"label"`
	Tokens int    `json:"tokens"`
}

// The bounds of a verdict: how many findings it has, how many findings of one tool have
// a line, and how many tools and broken definitions it lists.
const (
	maxFindings = 2000
	maxPlaces   = 60
	maxWeighed  = 1000
)

// weigh estimates how many tokens an entry takes in the context of a model. Of a tool,
// hosts send the name, the description and the schema of its arguments.
func weigh(kind string, e entry) int {
	if kind != "tool" {
		return tokens(e.raw)
	}
	text, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	}{e.Name, e.about, e.input})
	if err != nil { // the schema is not JSON
		return tokens(e.raw)
	}
	return tokens(text)
}

// pointerOf returns the place of a finding in the definition of its tool.
func pointerOf(f hostrules.Finding) string {
	switch {
	case f.Path != "" || f.Rule.Schema:
		return "/inputSchema" + f.Path
	case strings.HasPrefix(f.Rule.ID, "text-"):
		return "/description"
	case f.Rule.ID == "hints":
		return "/annotations"
	}
	return "/name"
}

// lineOf returns the line, from 1, on which the value begins that a JSON Pointer leads to
// in an indented text, or the last one on the way that is there.
func lineOf(text, pointer string) int {
	d := json.NewDecoder(strings.NewReader(text))
	line := 1
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		open, err := d.Token()
		if err != nil || open != json.Delim('{') && open != json.Delim('[') || !enter(d, open == json.Delim('['), name) {
			return line
		}
		at := int(d.InputOffset())
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \n\t\r,:"))
		line = 1 + strings.Count(text[:at], "\n")
	}
	return line
}

// enter moves a decoder within an object or a list to the value with that name or index.
func enter(d *json.Decoder, list bool, name string) bool {
	for n := 0; d.More(); n++ {
		key := any(strconv.Itoa(n))
		if !list {
			key, _ = d.Token() // the text is JSON up to here, as More says
		}
		if key == any(name) {
			return true
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}
