// Package hostrules says what programs with a model, their hosts, and providers of
// models accept of the definitions of tools, and checks definitions against it.
//
// [Rules] is the one table: what a server logs when a tool is added, what lint
// reports, and the page docs/hosts.md come from it. A rule enters with a request, a
// source or a thread that shows it, in Reasons, and with an input for the test. It leaves
// two minor versions after the host has changed.
//
// The definitions may be of an untrusted server: Check has bounds, and what it
// returns can be shown on a terminal.
package hostrules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/tooling/names"
)

// Severity is what hosts do with a definition that breaks a rule.
type Severity int

const (
	Refused Severity = iota // refuse the tool, the list or the request
	Changed                 // change or leave out something silently
	Costs                   // tokens, confirmations or a store's review
)

// String returns the word that lint prints.
func (s Severity) String() string { return [...]string{"refused", "changed", "costs"}[s] }

// Rule is one row of the table.
type Rule struct {
	ID       string
	Severity Severity
	Warns    bool   // Server.Add and Mount log it
	Fails    bool   // lint fails; else it is a note
	Schema   bool   // it is about the schema of arguments
	Fix      string // imperative
}

// Find returns the rule with that ID; nil if there is none.
func Find(id string) *Rule {
	for i := range Rules {
		if Rules[i].ID == id {
			return &Rules[i]
		}
	}
	return nil
}

// Finding is one place where a definition breaks a rule. Its texts are fit to be
// shown.
type Finding struct {
	Rule *Rule
	Tool string // "" if it is about the whole list
	Path string // JSON Pointer into the schema of arguments, "/properties/q"; "" is the tool itself
	Text string // which host does what, with what it found
	Warn bool   // it is to be logged when the tool is added
}

// String returns the finding as a server logs it, with the fix.
func (f Finding) String() string {
	text := f.Rule.ID + ": "
	if f.Tool != "" {
		text = "tool " + strconv.Quote(f.Tool) + ": " + text
	}
	if f.Path != "" {
		text += f.Path + ": "
	}
	return text + f.Text + "; " + f.Rule.Fix
}

// Line returns the finding as lint prints it.
func (f Finding) Line() string {
	where := strings.TrimSpace(f.Tool + " " + f.Path)
	if where == "" {
		where = "the list"
	}
	return fmt.Sprintf("%-7s  %s  %s: %s; %s", f.Rule.Severity, f.Rule.ID, where, f.Text, f.Rule.Fix)
}

// Row is a finding for programs: what lint prints as JSON, and the page of the
// inspector shows.
type Row struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Fails    bool   `json:"fails"`
	Tool     string `json:"tool"`
	Path     string `json:"path"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
	Who      string `json:"who"`
	Source   string `json:"source"`
	Date     string `json:"date"`
}

// Row returns the finding with what its rule rests on.
func (f Finding) Row() Row {
	reason := Reasons[index(f.Rule.ID)]
	return Row{f.Rule.ID, f.Rule.Severity.String(), f.Rule.Fails, f.Tool, f.Path, f.Text, f.Rule.Fix, reason.Who, reason.Source, reason.Date}
}

// Allowed are accepted findings: by rule, the tools; "" means all of them.
type Allowed map[string]map[string]bool

// Allow reads RULE or RULE:TOOL. A rule that does not exist is an error.
func Allow(texts []string) (Allowed, error) {
	a := Allowed{}
	for _, text := range texts {
		id, tool, ofTool := strings.Cut(text, ":")
		if ofTool && tool == "" {
			return nil, fmt.Errorf("%q names no tool; write RULE or RULE:TOOL", text)
		}
		if Find(id) == nil {
			hint := "; docs/hosts.md lists them"
			if near := names.Nearest(strings.ToLower(id), ids()); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return nil, fmt.Errorf("there is no rule %q%s", id, hint)
		}
		if a[id] == nil {
			a[id] = map[string]bool{}
		}
		a[id][tool] = true
	}
	return a, nil
}

// ids returns the IDs of all rules.
func ids() []string {
	list := make([]string, len(Rules))
	for i := range Rules {
		list[i] = Rules[i].ID
	}
	return list
}

// Has reports whether f was accepted.
func (a Allowed) Has(f Finding) bool { return a[f.Rule.ID][""] || f.Tool != "" && a[f.Rule.ID][f.Tool] }
