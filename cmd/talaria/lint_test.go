package main

import (
	"strings"
	"testing"
)

// Lint prints what hosts do not accept and exits with 1 for it, unless it is allowed;
// notes fail nothing.
func TestLint(t *testing.T) {
	server := quoted(stdioExample(t, t.TempDir()))
	long := strings.Repeat("x", 60)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // in standard output and error
		not  string
	}{
		{"as it is", nil, exitOK, "every host accepts the", "refused"},
		{"notes", []string{"--notes"}, exitOK, "every host accepts the", "refused"},
		{"the name of the server", []string{"--as", long}, exitTool, "refused  name-long  calculate: mcp__" + long + "__calculate has 76 characters, and Claude's API accepts 64; shorten it", ""},
		{"JSON", []string{"--json", "--as", long}, exitTool, `"rule": "name-long"`, "refused  "},
		{"JSON without findings", []string{"--json"}, exitOK, "[]", ""},
		{"one tool", []string{"--as", long, "--allow", "name-long:calculate"}, exitTool, "name-long  ", "name-long  calculate"},
		{"no such rule", []string{"--allow", "nam"}, exitUsage, `there is no rule "nam"; did you mean name?`, ""},
	} {
		got := talaria(t, "", append([]string{"lint", server}, tt.args...)...)
		if out := got.stdout + got.stderr; got.code != tt.code || !strings.Contains(out, tt.want) || tt.not != "" && strings.Contains(out, tt.not) {
			t.Errorf("%s: exit %d, want %d with %q and without %q: %s", tt.name, got.code, tt.code, tt.want, tt.not, out)
		}
	}
}
