package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/mcptest"
)

func TestHosts(t *testing.T) {
	mcptest.New(t, newServer()).Lint()
}

// The table of the page is the one that Lint has.
func TestHostsTable(t *testing.T) {
	var want strings.Builder
	for i, r := range hostrules.Rules {
		reason := hostrules.Reasons[i]
		decision := "note"
		switch {
		case r.Warns:
			decision = "fails, logged"
		case r.Fails:
			decision = "fails"
		}
		cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
		fmt.Fprintf(&want, "| `%s`<br>%s | %s | %s | %s |\n", r.ID, decision, cell.Replace(reason.What), cell.Replace(reason.Who), cell.Replace(r.Fix))
	}
	_, got, found := strings.Cut(page(t, "hosts.md"), "| rule | what breaks it | what hosts do | fix |\n|---|---|---|---|\n")
	if !found || got != want.String() {
		t.Errorf("docs/hosts.md ends with\n%s\nwant\n%s", got, want.String())
	}
}
