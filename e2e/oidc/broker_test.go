package oidc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

const installed = "e2e/run broker sets it"

// question is the title of the page of the broker.
const question = "Let a program in? – Notes"

// program is a process, with the lines that it prints.
type program struct {
	t     *testing.T
	name  string
	lines *bufio.Scanner
	wait  func() error
	kill  func() error
}

// start starts a program, which is stopped with the test.
func start(t *testing.T, dir string, env []string, command string, args ...string) *program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(logs)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		file.Close()
		if text, _ := os.ReadFile(logs); t.Failed() && len(text) > 0 {
			t.Logf("%s: %s", filepath.Base(command), text)
		}
	})
	return &program{t, filepath.Base(command), bufio.NewScanner(out), cmd.Wait, cmd.Process.Kill}
}

// line returns the next line; "" at the end. A program that prints none for two minutes
// is ended.
func (p *program) line() string {
	late := time.AfterFunc(2*time.Minute, func() { _ = p.kill() })
	defer late.Stop()
	if !p.lines.Scan() {
		return ""
	}
	return p.lines.Text()
}

// idp is a provider that knows the example.
type idp struct {
	issuer string
	pages  []string // titles of its forms at the first login
}

// fromNPM starts the provider of npm, which lets everyone in.
func fromNPM(t *testing.T, callback string) idp {
	t.Helper()
	p := start(t, programs(t), nil, testdep.Env(t, "E2E_NODE", installed), "idp.mjs", callback)
	return idp{strings.TrimPrefix(p.line(), "listening on "), []string{"Sign-in", "Sign-in"}}
}

// programs returns a directory with the programs, next to the packages of npm.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("programs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testdep.Env(t, "E2E_MODULES", installed), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// freeAddress returns an address of this machine that a program can listen on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// site is the example in front of a provider.
type site struct {
	idp
	self  string
	users int // that have logged in so far
}

// user returns the next user, whom the provider knows.
func (s *site) user() *person {
	s.users++
	return newPerson(fmt.Sprint("user", s.users))
}

// broker starts a provider, and the example in front of it.
func broker(t *testing.T, provider func(t *testing.T, callback string) idp) *site {
	t.Helper()
	address := freeAddress(t)
	s := &site{idp: provider(t, "http://"+address+"/callback"), self: "http://" + address}
	notes := filepath.Join(t.TempDir(), "notes")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", notes, "github.com/talaria-go/mcp/examples/broker").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start(t, t.TempDir(), []string{"CLIENT_SECRET=a-secret-of-the-notes-server", "ADDRESS=" + address}, notes, s.issuer, "notes")
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the example does not listen")
	return nil
}

// answers lets a program ask alice for visits, and returns what it says besides.
func answers(t *testing.T, alice *person, p *program) (said []string) {
	t.Helper()
	for line := p.line(); line != ""; line = p.line() {
		if address, ok := strings.CutPrefix(line, "visit "); ok {
			go func() {
				if _, err := alice.visit(t.Context(), address); err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
			}()
			continue
		}
		said = append(said, line)
	}
	if err := p.wait(); err != nil {
		t.Errorf("%s: %v, after %q", p.name, err, said)
	}
	return said
}

// TestBrokerOwn logs in by the client of this module.
func TestBrokerOwn(t *testing.T) { own(t, broker(t, fromNPM)) }

// TestBrokerClients logs in by clients of others.
func TestBrokerClients(t *testing.T) { clients(t, broker(t, fromNPM)) }

// TestBrokerRemote logs in by mcp-remote.
func TestBrokerRemote(t *testing.T) { remote(t, broker(t, fromNPM)) }

// TestBrokerKeycloak logs in by all of them, in front of Keycloak.
func TestBrokerKeycloak(t *testing.T) {
	s := broker(t, keycloak)
	for name, login := range map[string]func(*testing.T, *site){"own": own, "clients": clients, "remote": remote, "opencode": opencode} {
		t.Run(name, func(t *testing.T) { login(t, s) })
	}
}

// own logs in by the client of this module in both eras, and asks for a scope later.
func own(t *testing.T, s *site) {
	self := s.self
	for _, revision := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		alice := s.user()
		authorized, err := oauth.New(self+"/mcp", &oauth.Options{Grant: &oauth.AuthorizationCode{Agent: &oauth.Loopback{
			Browse: func(ctx context.Context, address string) error { _, err := alice.visit(ctx, address); return err },
			Prompt: func(string) {},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer authorized.HTTPClient().CloseIdleConnections()
		c, err := client.Connect(t.Context(), client.HTTP(self+"/mcp", &client.HTTPOptions{Client: authorized.HTTPClient()}),
			&client.Options{Revisions: []protocol.Revision{revision}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		use(t, c, "list_notes", nil, "[]")
		first := alice.seen()
		use(t, c, "add_note", noteIn{"milk"}, "noted")
		use(t, c, "list_notes", nil, `["milk"]`)
		second := alice.seen()
		if len(first) != 1+len(s.pages) || len(second) < 1 {
			t.Errorf("%s: alice saw %q, then %q", revision, first, second)
		}
		token, err := authorized.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := authorized.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status, err := authorized.Status(t.Context()); err != nil || status != nil {
			t.Errorf("after logout: %+v, %v; the token was of type %s", status, err, token.Type())
		}
	}
}

// clients logs in by the official clients in TypeScript and Python, in both eras.
func clients(t *testing.T, s *site) {
	self, node, dir := s.self, testdep.Env(t, "E2E_NODE", installed), programs(t)
	python := os.Getenv("E2E_PYTHON")
	for _, tt := range []struct {
		name, revision, note string
		command              []string
	}{
		{"typescript1 none", "2025-11-25", "", []string{node, "login.mjs", "1", "2025-11-25", "none", self + "/mcp"}},
		{"typescript1 post", "2025-11-25", "", []string{node, "login.mjs", "1", "2025-11-25", "client_secret_post", self + "/mcp"}},
		{"typescript1 basic", "2025-11-25", "", []string{node, "login.mjs", "1", "2025-11-25", "client_secret_basic", self + "/mcp"}},
		{"typescript2 legacy", "2025-11-25", "2", []string{node, "login.mjs", "2", "2025-11-25", "none", self + "/mcp"}},
		{"typescript2 modern", "2026-07-28", "2", []string{node, "login.mjs", "2", "2026-07-28", "none", self + "/mcp"}},
		{"python legacy", "2025-11-25", "p", []string{python, "login.py", "2025-11-25", self + "/mcp"}},
		{"python modern", "2026-07-28", "p", []string{python, "login.py", "2026-07-28", self + "/mcp"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.command[0] == "" {
				t.Skip("E2E_PYTHON: " + installed)
			}
			alice := s.user()
			said := answers(t, alice, start(t, dir, nil, tt.command[0], tt.command[1:]...))
			want := []string{"said noted", `said ["` + tt.note + `"]`, "spoke " + tt.revision}
			pages := append([]string{question}, s.pages...)
			if tt.note == "" {
				want = []string{"said []", want[2]}
			} else {
				pages = append(pages, question)
			}
			if seen := alice.seen(); !slices.Equal(said, want) || !slices.Equal(seen, pages) {
				t.Errorf("it said %q, want %q; alice saw %q", said, want, seen)
			}
		})
	}
}

// remote logs in by mcp-remote, which connects programs that speak stdio.
func remote(t *testing.T, s *site) {
	self := s.self
	node, modules := testdep.Env(t, "E2E_NODE", installed), testdep.Env(t, "E2E_MODULES", installed)
	alice := s.user()
	proxy := client.Command(node, filepath.Join(modules, "mcp-remote/dist/proxy.js"), self+"/mcp")
	proxy.Env = []string{"MCP_REMOTE_CONFIG_DIR=" + t.TempDir(), "PATH=/nowhere"} // no browser but alice's
	said, stderr := io.Pipe()
	proxy.Stderr = stderr
	go func() {
		var seen []string
		for lines := bufio.NewScanner(said); lines.Scan(); {
			line := lines.Text()
			seen = append(seen, line)
			if i := strings.Index(line, self+"/authorize?"); i >= 0 {
				go func() {
					if _, err := alice.visit(t.Context(), line[i:]); err != nil && t.Context().Err() == nil {
						t.Error(fmt.Errorf("%w, after %q", err, seen))
					}
				}()
			}
		}
	}()
	defer stderr.Close()
	c, err := client.Connect(t.Context(), proxy, &client.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	use(t, c, "list_notes", nil, "[]")
	if pages := alice.seen(); len(pages) != 1+len(s.pages) || slices.Contains(pages, "") {
		t.Errorf("alice saw %q", pages)
	}
}
