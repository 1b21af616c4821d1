package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// consenting makes this test binary a browser whose user agrees to everything.
const consenting = "consent"

func browser() string { return shellwords.Quote(os.Args[0]) + " " + consenting + " %s" }

var (
	formID       = regexp.MustCompile(`name="id" value="([^"]+)"`)
	authorizeURL = regexp.MustCompile(`http://\S+/authorize\?\S+`)
)

// browse is the process of that browser.
func browse(address string) {
	answer, err := consent(address)
	if err == nil {
		var resp *http.Response
		if resp, err = http.Get(answer); err == nil {
			err = resp.Body.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// consent agrees to an authorization request, and returns where the browser ends.
func consent(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	page, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		return "", err
	}
	id := formID.FindSubmatch(text)
	if id == nil {
		return "", fmt.Errorf("the page has no form: %s", text)
	}
	form := url.Values{"id": {string(id[1])}, "user": {"alice"}, "answer": {"allow"}, "scope": strings.Fields(u.Query().Get("scope"))}
	u.Path, u.RawQuery = "/auth/consent", ""
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent, err := stay.PostForm(u.String(), form)
	if err != nil {
		return "", err
	}
	return sent.Header.Get("Location"), sent.Body.Close()
}

// user is somebody with a home of their own, where logins are kept.
type user struct {
	t    *testing.T
	home string
	env  []string
}

func newUser(t *testing.T, env ...string) *user {
	return &user{t: t, home: t.TempDir(), env: env}
}

func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1", "HOME="+u.home, "XDG_CONFIG_HOME="+filepath.Join(u.home, "config"),
		"XDG_STATE_HOME="+filepath.Join(u.home, "state"), "AppData="+u.home, "BROWSER="+browser())
	cmd.Env = append(cmd.Env, u.env...)
	return cmd
}

func (u *user) talaria(args ...string) result {
	u.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := u.command(u.t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		u.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wants runs a command and compares its exit code, and what it says, with what
// it should.
func (u *user) wants(code int, say string, args ...string) result {
	u.t.Helper()
	got := u.talaria(args...)
	if got.code != code || !strings.Contains(got.stdout+got.stderr, say) {
		u.t.Fatalf("talaria %s: got %d %q %q, want %d and %q", strings.Join(args, " "), got.code, got.stdout, got.stderr, code, say)
	}
	return got
}

// stored returns the path and the content of the user's file.
func (u *user) stored() (path, text string) {
	u.t.Helper()
	path = filepath.Join(u.home, "config", "talaria", "oauth.json")
	if runtime.GOOS == "darwin" {
		path = filepath.Join(u.home, "Library", "Application Support", "talaria", "oauth.json")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		u.t.Fatal(err)
	}
	return path, string(content)
}

// From a stranger to a user with all scopes, and back.
func TestLogin(t *testing.T) {
	t.Parallel()
	target := httpExample(t, "-auth")
	alice := newUser(t)
	alice.wants(exitAuth, "run: talaria login "+target+"\n", "call", target, "search_notes")
	alice.wants(exitOK, "there are no logins", "login", "--list")
	alice.wants(exitAuth, "refuses the token", "call", target, "search_notes", "--token", "not.a.token")

	alice.wants(exitOK, "logged in to "+target+" for notes:read\n", "login", target)
	path, text := alice.stored()
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%s: got %v, %v, want mode 0600", path, info.Mode(), err)
	}
	alice.wants(exitOK, `"total": 0`, "call", target, "search_notes")
	tokens := regexp.MustCompile(`"(?:access_token|refresh_token|dpop_key)": "([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(tokens) < 2 {
		t.Fatalf("there are no tokens in %s", text)
	}
	for _, args := range [][]string{{"login", "--list"}, {"login", "--list", "--json"}, {"ping", target, "-vvv"}} {
		got := alice.wants(exitOK, "", args...)
		for _, token := range tokens {
			if strings.Contains(got.stdout+got.stderr, token[1]) {
				t.Errorf("talaria %s shows a secret: %s", args, got.stdout+got.stderr)
			}
		}
	}
	alice.wants(exitOK, "renews itself", "login", "--list")
	alice.wants(exitOK, "kept in "+path, "login", "--list")

	// More scopes: a script cannot open a browser, and says what to run.
	alice.wants(exitAuth, "run: talaria login "+target+" --scope 'notes:read notes:write'", "call", target, "add_note", "text=milk")
	alice.wants(exitAuth, "--scope 'notes:read notes:write'", "call", target, "add_note", "text=milk", "--no-check")
	alice.wants(exitUsage, `no tool "nonsense"`, "call", target, "nonsense", "text=milk")
	alice.wants(exitOK, "for notes:read notes:write", "login", target, "--scope", "notes:read notes:write")
	alice.wants(exitOK, "milk", "call", target, "add_note", "text=milk")

	bob := newUser(t)
	bob.wants(exitAuth, "talaria login", "call", target, "search_notes")
	bob.wants(exitOK, "there is no login", "logout", target)

	alice.wants(exitOK, "logged out of "+target, "logout", target)
	alice.wants(exitAuth, "run: talaria login "+target+"\n", "call", target, "search_notes")
	if _, text := alice.stored(); strings.Contains(text, "access_token") || strings.Contains(text, "refresh_token") {
		t.Errorf("after logout: got %s", text)
	}
}

// Without a browser the user carries the addresses.
func TestLoginManual(t *testing.T) {
	t.Parallel()
	target := httpExample(t, "-auth")
	alice := newUser(t)
	cmd := alice.command(t.Context(), "login", "--manual", target)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown, buffer := "", make([]byte, 4096)
	for !strings.Contains(shown, "paste") {
		n, err := stderr.Read(buffer)
		if shown += string(buffer[:n]); err != nil {
			t.Fatalf("got %q, %v", shown, err)
		}
	}
	answer, err := consent(authorizeURL.FindString(shown))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(stdin, answer); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v, %s", err, rest)
	}
	alice.wants(exitOK, `"total": 0`, "call", target, "search_notes")
	alice.wants(exitOK, "logged out of "+target, "logout", "--all")
	alice.wants(exitOK, "[]", "login", "--list", "--json")
	alice.wants(exitAuth, "no address was given", "login", "--manual", target) // nobody types
}

// guarded is a server that takes one token. Its authorization server knows one
// program with a secret.
func guarded(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(mcp.Info{Name: "guarded", Version: "1"}, nil)
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	answer := func(path string, v any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if id, secret, _ := r.BasicAuth(); path == "/as/token" && (id != "ci" || secret != "s3cret" || r.FormValue("grant_type") != "client_credentials") {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", map[string]any{"resource": web.URL + "/mcp", "authorization_servers": []string{web.URL + "/as"}})
	answer("/.well-known/oauth-authorization-server/as", map[string]any{"issuer": web.URL + "/as", "token_endpoint": web.URL + "/as/token",
		"grant_types_supported": []string{"client_credentials"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}})
	answer("/as/token", map[string]any{"access_token": "open-sesame", "token_type": "Bearer", "expires_in": 3600})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-sesame" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="unknown"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		server.Handler().ServeHTTP(w, r)
	})
	return web.URL + "/mcp"
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestToken(t *testing.T) {
	t.Parallel()
	target := guarded(t)
	nobody := newUser(t)
	nobody.wants(exitOK, "pong", "ping", target, "--token", "open-sesame")
	nobody.wants(exitOK, "pong", "ping", target, "--token-file", write(t, "open-sesame\n"))
	nobody.wants(exitOK, "pong", "ping", target, "-H", "Authorization: Bearer open-sesame")
	nobody.wants(exitAuth, `it says "unknown"`, "ping", target, "--token", "x")
	nobody.wants(exitAuth, "run: talaria login "+target, "ping", target)
	known := newUser(t, tokenVariable+"=open-sesame")
	known.wants(exitOK, "pong", "ping", target)
	known.wants(exitAuth, "refuses the token", "ping", target, "--token", "x")
	known.wants(exitOK, `"tools": []`, "inspect", target, "--json")
	for _, test := range []struct {
		want string
		args []string
	}{
		{"exclude each other", []string{target, "--token", "x", "--token-file", "y"}},
		{"exclude each other", []string{target, "--token", "x", "-H", "Authorization=y"}},
		{"no such file", []string{target, "--token-file", filepath.Join(t.TempDir(), "none")}},
		{"is empty", []string{target, "--token-file", write(t, "\n")}},
		{"this is no token", []string{target, "--token", "a b"}},
		{"travel in the clear", []string{"http://192.0.2.1/mcp", "--token", "x"}},
		{"are for URLs", []string{"server", "--token", "x"}},
	} {
		nobody.wants(exitUsage, test.want, append([]string{"ping"}, test.args...)...)
	}
}

// A program logs in with a secret, which is shown nowhere.
func TestLoginProgram(t *testing.T) {
	t.Parallel()
	target := guarded(t)
	program := newUser(t)
	program.wants(exitAuth, "invalid_client", "login", target, "--client-id", "ci", "--client-secret-file", write(t, "wrong"), "--client-credentials")
	program.wants(exitAuth, "run: talaria login", "ping", target)
	program.wants(exitOK, "logged in to "+target, "login", target, "--client-id", "ci", "--client-secret-file", write(t, "s3cret\n"), "--client-credentials")
	program.wants(exitOK, "pong", "ping", target)
	if got := program.wants(exitOK, target, "login", "--list", "--json"); strings.Contains(got.stdout+got.stderr, "s3cret") || strings.Contains(got.stdout, "open-sesame") {
		t.Errorf("a secret is shown: %+v", got)
	}
	program.wants(exitOK, "logged in", "login", target) // as before
	program.wants(exitOK, "logged out", "logout", "--all")
	if _, text := program.stored(); strings.Contains(text, "s3cret") || strings.Contains(text, "open-sesame") {
		t.Errorf("after logout: got %s", text)
	}
	program.env = []string{secretVariable + "=s3cret"}
	program.wants(exitOK, "logged in", "login", target, "--client-id", "ci", "--client-credentials")
}

// An authorization server that has forgotten the client tells the browser alone.
func TestLoginRegister(t *testing.T) {
	t.Parallel()
	target := httpExample(t, "-auth")
	alice := newUser(t)
	first := alice.wants(exitOK, "logged in", "login", target)
	if strings.Contains(first.stderr, "--register") {
		t.Errorf("at the first login: got %s", first.stderr)
	}
	path, text := alice.stored()
	id := regexp.MustCompile(`"client_id": "([^"]+)"`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("there is no client in %s", text)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, id[1], "forgotten")), 0o600); err != nil {
		t.Fatal(err)
	}
	alice.wants(exitOK, "logged in", "login", target, "--register")
	if _, text := alice.stored(); strings.Contains(text, "forgotten") {
		t.Errorf("got %s", text)
	}
	alice.wants(exitOK, "talaria login "+target+" --register", "login", target) // it is known now, and said to be
	alice.wants(exitOK, `"total": 0`, "call", target, "search_notes")
}

func TestLoginMistakes(t *testing.T) {
	t.Parallel()
	open := httpExample(t)
	alice := newUser(t)
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{exitOK, open + " needs no login", []string{"login", open}},
		{exitConnect, "HTTP status 404", []string{"login", strings.TrimSuffix(open, "/mcp") + "/none"}},
		{exitConnect, "connection refused", []string{"login", "http://127.0.0.1:1/mcp"}},
		{exitUsage, "is no URL", []string{"login", "npx server"}},
		{exitUsage, "is not http or https", []string{"login", "tcp://127.0.0.1:1"}},
		{exitUsage, "a password", []string{"login", "https://me:secret@example.com"}},
		{exitUsage, "URL is missing", []string{"login"}},
		{exitUsage, "--list takes no URL", []string{"login", "--list", open}},
		{exitUsage, "--json is for --list", []string{"login", "--json", open}},
		{exitUsage, "--client-id is missing", []string{"login", open, "--client-secret-file", write(t, "x")}},
		{exitUsage, "--client-credentials needs", []string{"login", open, "--client-credentials"}},
		{exitUsage, "either a URL or --all", []string{"logout"}},
		{exitUsage, "either a URL or --all", []string{"logout", "--all", open}},
		{exitUsage, "is no URL", []string{"logout", "x"}},
	} {
		got := alice.wants(test.code, test.want, test.args...)
		if strings.Contains(got.stderr, "me:secret") {
			t.Errorf("a password is shown: %s", got.stderr)
		}
	}
}
