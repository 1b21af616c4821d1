//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInspectInputs: what a file wants to know is asked in the terminal; a password is
// not shown there.
func TestInspectInputs(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mcp.json")
	text := `{"inputs":[{"id":"key","type":"promptString","description":"the key","password":true},{"id":"place","type":"pickString","options":["here","there"],"default":"here"}],
		"servers":{"one":{"command":"/no/such/command","args":["${input:key}","${input:place}"]}}}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x := startPerson(t, t.TempDir(), "inspect", "-b", "--no-open", "--config", name)
	x.expect("the key:")
	x.press("hush-hush" + enter)
	x.expect("place (here, there) [here]:")
	x.press("nowhere" + enter)
	x.glimpse("choose one of: here, there")
	x.press("there" + enter)
	x.expect("Ctrl-C stops")
	if shown := x.text(); strings.Contains(shown, "hush") {
		t.Errorf("the password was shown: %q", shown)
	}
	x.press(ctrlC)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}
}

// TestInspectInputsInterrupted: Ctrl-C at a question ends the command, at that for a
// password, too.
func TestInspectInputsInterrupted(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mcp.json")
	for _, password := range []string{"true", "false"} {
		text := `{"inputs":[{"id":"key","type":"promptString","description":"the key","password":` + password + `}],
			"servers":{"one":{"command":"/no/such/command","args":["${input:key}"]}}}`
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		x := startPerson(t, t.TempDir(), "inspect", "-b", "--no-open", "--config", name)
		x.expect("the key:")
		x.press("hu" + ctrlC)
		if code := x.exit(); code != exitInterrupted {
			t.Errorf("password %s: got the exit code %d and\n%s", password, code, x.text())
		}
	}
}
