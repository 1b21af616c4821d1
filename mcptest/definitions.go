package mcptest

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/tooling/toollock"
)

// updateVariable is the environment variable that makes Golden write its file, unless
// it is empty.
const updateVariable = "MCPTEST_UPDATE"

// Golden compares the definitions of the server's tools, and its instructions, with
// those of a lock, such as mcp.lock next to the test. It fails the test if they
// differ: each line says what does, and whether that is breaking for callers, changes
// words that models read, or is compatible. With MCPTEST_UPDATE=1 in the environment
// it writes the file instead, so that the difference can be reviewed.
//
// "talaria lock" writes and checks the same file, and client.Options.Pin holds a
// server to it.
func (c *Client) Golden(file string) {
	c.t.Helper()
	now, err := toollock.New(c.Server.Info.Name, c.Server.Instructions, c.Tools())
	if err != nil {
		c.t.Fatalf("mcptest: %v", err)
	}
	if os.Getenv(updateVariable) != "" {
		if err := now.Write(file); err != nil {
			c.t.Fatalf("mcptest: %v", err)
		}
		return
	}
	old, err := toollock.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		c.t.Fatalf("mcptest: there is no %s; %s=1 go test writes it", file, updateVariable)
	}
	if err != nil {
		c.t.Fatalf("mcptest: %v", err)
	}
	var lines []string
	for _, d := range toollock.Compare(old, now) {
		lines = append(lines, d.String())
	}
	if lines != nil {
		c.t.Errorf("mcptest: the tools are not what %s has:\n%s\n%s=1 go test accepts it", file, strings.Join(lines, "\n"), updateVariable)
	}
}

// Lint checks the definitions of the tools that this client is shown, and the
// instructions of the server, against what hosts and model providers accept; see
// docs/hosts.md. It fails the test once, with everything that some of them refuse,
// drop or change. What costs tokens or confirmations only goes to the log of the test.
//
// allow accepts findings: of a rule, as in "ref", or of a rule and a tool, as in
// "name:weather.now". A rule that does not exist ends the test.
//
// A client is shown what its identity and its revision get; see [As] and [Revision].
func (c *Client) Lint(allow ...string) {
	c.t.Helper()
	allowed, err := hostrules.Allow(allow)
	if err != nil {
		c.t.Fatalf("mcptest: Lint: %v", err)
	}
	var fails, notes []string
	for _, f := range hostrules.Server("", c.Tools(), c.Server.Instructions) {
		switch {
		case allowed.Has(f):
		case f.Rule.Fails:
			fails = append(fails, f.Line())
		default:
			notes = append(notes, f.Line())
		}
	}
	if notes != nil {
		c.t.Logf("mcptest: notes on the tools:\n%s", strings.Join(notes, "\n"))
	}
	if fails != nil {
		c.t.Errorf("mcptest: some hosts do not accept the tools; Lint takes rules to allow:\n%s", strings.Join(fails, "\n"))
	}
}
