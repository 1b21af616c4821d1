//go:build unix

package main

import (
	"path/filepath"
	"testing"
)

// Before a terminal, a call that needs more scopes opens the browser.
func TestStepUpInTerminal(t *testing.T) {
	target := httpExample(t, "-auth")
	alice := newUser(t)
	alice.wants(exitOK, "for notes:read\n", "login", target)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(alice.home, "config"))
	t.Setenv("BROWSER", browser())
	x := startPerson(t, alice.home, "http", target)
	x.expect("mcp> ")
	x.press("call_tool add_note text=milk" + enter)
	x.glimpse("the server asks for a login for notes:read notes:write")
	x.glimpse(`"text": "milk"`)
	x.expect("mcp> ")
	x.press(ctrlD)
	if code := x.exit(); code != exitOK {
		t.Errorf("got the exit code %d", code)
	}
	alice.wants(exitOK, "bread", "call", target, "add_note", "text=bread")
}
