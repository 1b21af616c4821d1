package oidc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	front "github.com/talaria-go/mcp/auth/broker"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

// host is an application of others that is installed, with a home of its own. Its browser
// is a program that writes the address into a pipe.
type host struct {
	program, home string
	env           []string
}

func newHost(t *testing.T, program string, env ...string) *host {
	t.Helper()
	h := &host{filepath.Join(testdep.Env(t, "E2E_HOSTS", installed), "node_modules", ".bin", program), t.TempDir(), nil}
	if err := exec.CommandContext(t.Context(), "mkfifo", h.file("visits")).Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file("xdg-open"), []byte("#!/bin/sh\necho \"$1\" >'"+h.file("visits")+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.env = append(env, "HOME="+h.home, "PATH="+h.home+":/usr/bin:/bin", "TERM=xterm", "DISPLAY=:0")
	return h
}

func (h *host) file(name string) string { return filepath.Join(h.home, name) }

// run runs a command of the application in a terminal, and returns what that shows.
func (h *host) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "script", "-qec", strings.Join(append([]string{h.program}, args...), " "), "/dev/null")
	cmd.Dir, cmd.Env = h.home, h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// login logs in with a command, while the user visits where the browser is sent.
func (h *host) login(t *testing.T, visit func(ctx context.Context, address string) error, args ...string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		address, err := os.ReadFile(h.file("visits"))
		if err == nil {
			err = visit(t.Context(), strings.TrimSpace(string(address)))
		}
		done <- err
	}()
	shown, err := h.run(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, shown)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// shows runs a command that has to show a text.
func (h *host) shows(t *testing.T, want string, args ...string) {
	t.Helper()
	if shown, err := h.run(t.Context(), args...); err != nil || !strings.Contains(shown, want) {
		t.Errorf("%s: %v: %s", strings.Join(args, " "), err, shown)
	}
}

// TestBrokerOpencode logs in by the program opencode.
func TestBrokerOpencode(t *testing.T) { opencode(t, broker(t, fromNPM)) }

// opencode logs in by the program of that name, which registers itself.
func opencode(t *testing.T, s *site) {
	h := newHost(t, "opencode", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	config := `{"autoupdate":false,"mcp":{"notes":{"type":"remote","url":"` + s.self + `/mcp","enabled":true}}}`
	if err := os.WriteFile(h.file("opencode.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	alice := s.user()
	h.login(t, func(ctx context.Context, address string) error { _, err := alice.visit(ctx, address); return err }, "mcp", "auth", "notes")
	h.shows(t, "connected", "mcp", "list")
	if pages := alice.seen(); len(pages) != 1+len(s.pages) {
		t.Errorf("alice saw %q", pages)
	}
}

// TestBrokerClaudeCode logs in by Claude Code. It is known by a document on the web, which is
// configured here because tests reach only this machine.
func TestBrokerClaudeCode(t *testing.T) {
	h := newHost(t, "claude", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	p := newProvider(t)
	endpoint, _, _ := newDoor(t, p, front.Client{ID: "https://claude.ai/oauth/claude-code-client-metadata", Name: "Claude Code", RedirectURIs: []string{"http://localhost/callback"}})
	h.shows(t, "Added", "mcp", "add", "--transport", "http", "notes", endpoint)
	h.login(t, func(ctx context.Context, address string) error { return p.enter(ctx, address, "") }, "mcp", "login", "notes")
	h.shows(t, "Connected", "mcp", "get", "notes")
}
