package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

var update = flag.Bool("update", false, "write testdata anew")

// example is the program of cmd/example, which TestMain builds.
var example string

// leadTerminal runs the command in a terminal, on systems that have those of tests.
var leadTerminal func()

// TestMain also is the command: tests start it again as a process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == consenting {
		browse(os.Args[2])
		return
	}
	if len(os.Args) == 2 && (os.Args[1] == "hostile" || os.Args[1] == "hostile-modern") {
		hostileServer(os.Args[1] == "hostile-modern")
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "cunning" {
		cunningServer()
		return
	}
	if len(os.Args) == 3 && (os.Args[1] == "stubborn" || os.Args[1] == "silent") {
		stubbornServer(os.Args[1] == "silent", os.Args[2])
		return
	}
	switch os.Getenv("TALARIA_COMMAND") {
	case "1":
		main()
		return
	case "terminal":
		leadTerminal()
		return
	}
	flag.Parse()
	log.SetOutput(io.Discard) // as main does
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "talaria-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// What the user of this machine has logged in to is none of the tests' business.
	for name, value := range map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "config"), "TALARIA_TOKEN": "", "TALARIA_CLIENT_SECRET": ""} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	example = filepath.Join(dir, "example")
	build := exec.Command("go", "build", "-o", example, "github.com/talaria-go/mcp/cmd/example")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the example: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// talaria runs the command within this process, without a terminal.
func talaria(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return talariaContext(t.Context(), stdin, args...)
}

func talariaContext(ctx context.Context, stdin string, args ...string) result {
	var stdout, stderr syncBuffer
	code := run(ctx, args, &console.Console{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return result{code, stdout.String(), stderr.String()}
}

// stdioExample is the command line of an example server with files of its own.
func stdioExample(t *testing.T, dir string) []string {
	t.Helper()
	return []string{example, "-stdio", "-notes", filepath.Join(dir, "notes.json"), "-events", filepath.Join(dir, "events.json"),
		"-files", "../example/testdata"}
}

// quoted returns a command as one word in quotes.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = shellwords.Quote(word)
	}
	return strings.Join(list, " ")
}

// httpExample starts the example server and returns its URL.
func httpExample(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-http", "127.0.0.1:0"}, stdioExample(t, dir)[2:]...)
	args = append(args, flags...)
	cmd := exec.Command(example, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the example server: %v", err)
		}
	})
	hello := make([]byte, 4096)
	n, err := io.ReadAtLeast(stdout, hello, 20)
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://\S+/mcp`).Find(hello[:n])
	if url == nil {
		t.Fatalf("there is no URL in %q", hello[:n])
	}
	return string(url)
}

// unstable are the parts of an output that differ from run to run.
var unstable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`pong \([^)]*\)`), "pong (TIME)"},
	{regexp.MustCompile(`"milliseconds": [0-9.]+`), `"milliseconds": N`},
	{regexp.MustCompile(`listen  \([0-9.µm]*s\)`), "listen  (TIME)"},
}

func stable(text string, replace ...string) string {
	text = strings.NewReplacer(replace...).Replace(text)
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.with)
	}
	return text
}

// transcript runs the lines of a file that begin with "$ talaria" and compares
// what they print with what follows them there. Lines with # are for readers.
func transcript(t *testing.T, name string, replace ...string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for i := 0; i < len(replace); i += 2 {
		back = append(back, replace[i+1], replace[i])
	}
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		command, ok := strings.CutPrefix(line, "$ talaria ")
		if !ok {
			if strings.HasPrefix(line, "#") {
				fmt.Fprintln(&out, line)
			}
			continue
		}
		list, err := shellwords.Split(strings.NewReplacer(replace...).Replace(command))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got := talaria(t, "", shellwords.Texts(list)...)
		fmt.Fprintf(&out, "%s\n%s", line, stable(got.stdout, back...))
		for errLine := range strings.SplitSeq(strings.TrimSuffix(got.stderr, "\n"), "\n") {
			if got.stderr != "" {
				fmt.Fprintf(&out, "! %s\n", stable(errLine, back...))
			}
		}
		fmt.Fprintf(&out, "=> %d\n", got.code)
	}
	compare(t, path, out.String())
}

// compare holds a text against a file, or writes it there with -update.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			at := func(list []string) string { return strings.Join(list[min(i, len(list)):min(i+8, len(list))], "\n") }
			t.Fatalf("%s differs from line %d on (-update renews it): got\n%s\nwant\n%s", path, i+1, at(b), at(a))
		}
	}
}

func TestOnceStdio(t *testing.T) {
	t.Parallel()
	transcript(t, "once-stdio.txt", "SERVER", shellwords.Quote(quoted(stdioExample(t, t.TempDir()))), "OUT", t.TempDir())
}

func TestOnceHTTP(t *testing.T) {
	t.Parallel()
	transcript(t, "once-http.txt", "URL", httpExample(t))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	transcript(t, "usage.txt", "/no/", "/no/")
}

// Every command explains itself.
func TestHelp(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&console.Console{})
	for _, cmd := range root.Commands() {
		for _, flag := range []string{"-h", "--help"} {
			got := talaria(t, "", cmd.Name(), flag)
			if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "talaria "+cmd.Name()) {
				t.Errorf("%s %s: got %+v", cmd.Name(), flag, got)
			}
		}
		if cmd.Short == "" || cmd.GroupID == "" && cmd.Name() != "help" && cmd.Name() != "completion" {
			t.Errorf("%s lacks a short help or a group", cmd.Name())
		}
	}
	for _, args := range [][]string{{"help", "call"}, {"-h", "call"}, {"--help", "call"}} {
		if got, want := talaria(t, "", args...), talaria(t, "", "call", "-h"); got != want {
			t.Errorf("%q: got %+v, want %+v", args, got, want)
		}
	}
	if got := talaria(t, "", "-h"); got.code != 0 || !strings.Contains(got.stdout, "Exit codes: 0 fine") {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := talaria(t, "", "completion", name); got.code != 0 || !strings.Contains(got.stdout, "talaria") {
			t.Errorf("completion %s: got %d %q", name, got.code, got.stderr)
		}
	}
}

// Servers that are dead, slow or nonsense must give their exit codes in time.
func TestDeadServers(t *testing.T) {
	t.Parallel()
	silent := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	garbage := listen(t, func(c net.Conn) { fmt.Fprint(c, "220 mail.example.com ESMTP\r\n"); _ = c.Close() })
	web := func(status int) string {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><title>Welcome</title></html>")
		})}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
		return "http://" + l.Addr().String() + "/mcp"
	}
	for _, test := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing listens", []string{"ping", "http://127.0.0.1:1/mcp"}, exitConnect, "is the server running"},
		{"no such program", []string{"ping", "no-such-program-here"}, exitConnect, "not found in PATH"},
		{"it exits at once", []string{"ping", "false"}, exitConnect, "exit status 1"},
		{"it says why", []string{"ping", `sh -c "echo my reason >&2; exit 3"`}, exitConnect, "my reason"},
		{"it is silent", []string{"ping", "http://" + silent + "/mcp", "--timeout", "300ms"}, exitConnect, "--timeout sets how long"},
		{"it is silent on a pipe", []string{"ping", "sleep 60", "--timeout", "300ms"}, exitConnect, "--timeout sets how long"},
		{"it talks nonsense", []string{"ping", "http://" + garbage + "/mcp"}, exitConnect, "cannot connect"},
		{"it prints nonsense", []string{"ping", "echo hello", "--timeout", "5s"}, exitConnect, "cannot connect"},
		{"401, and nowhere to log in", []string{"ping", web(401)}, exitAuth, "--token-file FILE"},
		{"403", []string{"ping", web(403)}, exitAuth, "check the host in the URL"},
		{"500", []string{"ping", web(500)}, exitConnect, "500"},
		{"a page", []string{"ping", web(200)}, exitConnect, "many servers have /mcp"},
		{"no TLS", []string{"ping", strings.Replace(web(200), "http:", "https:", 1)}, exitConnect, "try http://"},
		{"no socket", []string{"ping", "unix://" + filepath.Join(t.TempDir(), "none.sock")}, exitConnect, "there is no such socket"},
		{"a banner", []string{"ping", "sh -c 'echo Ready.; sleep 60'", "--timeout", "300ms"}, exitConnect, `it sent text that is not a message, lastly "Ready."`},
		{"another revision", append([]string{"ping"}, quoted(stdioExample(t, t.TempDir())), "--revision", "2024-11-05"), exitOK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := talaria(t, "", test.args...)
			if got.code != test.code || !strings.Contains(got.stderr, test.want) {
				t.Errorf("got %d %q, want %d and %q", got.code, got.stderr, test.code, test.want)
			}
		})
	}
}

// listen gives each connection to fn.
func listen(t *testing.T, fn func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go fn(c)
		}
	}()
	return l.Addr().String()
}

// A tool that never answers costs the time that was given, and no more.
func TestCallTimeout(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(mcp.Info{Name: "slow", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("hang", func(f *mcp.Frame, _ struct{}) (string, error) {
		<-f.Done()
		return "", f.Err()
	}))
	web := httptest.NewServer(server.Handler())
	defer web.Close()
	got := talaria(t, "", "call", web.URL, "hang", "--timeout", "1s")
	if got.code != exitTimeout || !strings.Contains(got.stderr, "no answer for 1s") {
		t.Errorf("got %+v", got)
	}
}

// A bare script of shell commands, from a pipe.
func TestScript(t *testing.T) {
	t.Parallel()
	server := stdioExample(t, t.TempDir())
	script := "# a comment\n\nadd_note\nping\ncall_tool add_note text='from a script' tags=a,b\ncall_tool calculate {\"operation\": \"add\", \"a\": 1, \"b\": 2}\n" +
		"call calculate operation=add a=1\nread_resource notes://all\ncomplete summarize_notes style \"\"\nexit\nping\n"
	got := talaria(t, script, append([]string{"stdio"}, server...)...)
	compare(t, filepath.Join("testdata", "script.txt"), stable(got.stdout)+"----\n"+stable(got.stderr))
	if got.code != exitUsage {
		t.Errorf("got the exit code %d, want that of the last command that failed", got.code)
	}
	if got := talaria(t, "call calculate operation=divide a=1 b=0\n", append([]string{"stdio"}, server...)...); got.code != exitTool {
		t.Errorf("got %+v", got)
	}
	if got := talaria(t, "", "stdio", "false"); got.code != exitConnect {
		t.Errorf("got %+v", got)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "weather")
	got := talaria(t, "", "new", "example.com/weather", "--dir", dir, "--replace", "../..", "--no-tidy")
	if got.code != 0 || !strings.Contains(got.stdout, "Next:") {
		t.Fatalf("got %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !bytes.Contains(text, []byte("module example.com/weather\n")) || !bytes.Contains(text, []byte("replace github.com/talaria-go/mcp => /")) {
		t.Errorf("got %s, %v", text, err)
	}
	if got := talaria(t, "", "new", "weather", "--dir", dir); got.code != exitUsage || !strings.Contains(got.stderr, "is not empty") {
		t.Errorf("got %+v", got)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mcp.json")
	before := "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\", \"disabled\": true}\n  }\n}\n"
	if err := os.WriteFile(file, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	args := []string{"install", "--host", "cursor", "--name", "weather", "--file", file, "--env", "KEY=1", "--", "go", "version"}
	dry := talaria(t, "", append([]string{"install", "--dry-run"}, args[1:]...)...)
	if dry.code != 0 || !strings.Contains(dry.stdout, `+    "weather": {`) {
		t.Errorf("dry run: got %+v", dry)
	}
	if got := talaria(t, "", args...); got.code != exitUsage || !strings.Contains(got.stderr, "--yes") {
		t.Errorf("without a person: got %+v", got)
	}
	if text, _ := os.ReadFile(file); string(text) != before {
		t.Errorf("it was written all the same: %s", text)
	}
	got := talaria(t, "", append([]string{"install", "--yes"}, args[1:]...)...)
	text, err := os.ReadFile(file)
	if got.code != 0 || err != nil || !bytes.Contains(text, []byte(`"other": {"command": "x", "disabled": true}`)) || !bytes.Contains(text, []byte(`"args": ["version"]`)) {
		t.Errorf("got %+v, %s, %v", got, text, err)
	}
	if kept, err := filepath.Glob(file + ".backup-*"); err != nil || len(kept) != 1 {
		t.Errorf("got the backups %v, %v", kept, err)
	}
	if got := talaria(t, "", append([]string{"install", "--yes"}, args[1:]...)...); got.code != 0 || !strings.Contains(got.stdout, "nothing to do") {
		t.Errorf("again: got %+v", got)
	}
	if got := talaria(t, "", "install", "--yes", "--host", "cursor", "--name", "weather", "--file", file, "--remove"); got.code != 0 {
		t.Errorf("remove: got %+v", got)
	}
	if text, _ := os.ReadFile(file); string(text) != before {
		t.Errorf("after removing: got %s, want what was there before", text)
	}
	bridge := talaria(t, "", "install", "--dry-run", "--host", "claude-desktop", "--name", "far", "--file", file, "--header", "X-Key=k", "https://example.com/mcp")
	if bridge.code != 0 || !strings.Contains(bridge.stdout, `"serve-proxy", "--stdio", "https://example.com/mcp", "--header-env", "X-Key=TALARIA_HEADER_1"`) ||
		!strings.Contains(bridge.stdout, `"TALARIA_HEADER_1": "…"`) || !strings.Contains(bridge.stderr, "as they are") {
		t.Errorf("a URL for a host that starts commands alone: got %+v", bridge)
	}
	// Nor are keys shown that somebody else wrote into the file, or that give way.
	other := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(other, []byte("{\n  // mine\n  \"mcpServers\": {\n    \"old\": {\"url\": \"https://example.com/?key=k0\", \"headers\": {\"X-Key\": \"k1\"}}, \"far\": {\"url\": \"https://example.com/\", \"headers\": {\n        \"X-Key\": \"k2\"\n      }}\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{"only values change": {"--header", "X-Key=k3"}, `     "old": {"url": "https://example.com/?key=…", "headers": {"X-Key": "…"}}`: {"--header", "X-Key=k3", "--header", "Y-Key=k4"}} {
		got := talaria(t, "", append([]string{"install", "--dry-run", "--host", "cursor", "--name", "far", "--file", other, "https://example.com/"}, args...)...)
		if got.code != 0 || !strings.Contains(got.stdout, want) || regexp.MustCompile("k[0-9]").MatchString(got.stdout+got.stderr) {
			t.Errorf("%v: got %+v, want %q and no key", args, got, want)
		}
	}
	const secret = "s3cret&amp"
	for _, host := range []string{"claude-desktop", "cursor", "vscode"} {
		file := filepath.Join(t.TempDir(), "mcp.json")
		got := talaria(t, "", "install", "--yes", "--host", host, "--name", "far", "--file", file, "https://example.com/mcp?user=1&key="+secret)
		text, err := os.ReadFile(file)
		if got.code != 0 || err != nil || !strings.Contains(got.stdout, "key=…") && host != "claude-desktop" || !strings.Contains(got.stderr, "as they are") || strings.Contains(got.stdout+got.stderr, "s3cret") {
			t.Errorf("%s, a URL with a key: got %+v, %v", host, got, err)
		}
		if !bytes.Contains(text, []byte("s3cret")) || host == "claude-desktop" &&
			(!bytes.Contains(text, []byte(`"args": ["serve-proxy", "--stdio", "--url-env", "TALARIA_URL"]`)) || !bytes.Contains(text, []byte(`"TALARIA_URL": "https://example.com/mcp?user=1`))) {
			t.Errorf("%s, a URL with a key: wrote %s", host, text)
		}
	}
	if got := talaria(t, "", "serve-proxy", "--stdio", "--url-env", "TALARIA_NO_SUCH"); got.code != exitUsage || !strings.Contains(got.stderr, "no such variable") {
		t.Errorf("--url-env without a variable: got %+v", got)
	}
}

// A call that becomes a task ends when the task does, as long as the server may
// keep its clients from looking; --no-task takes none.
func TestCallAsTask(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(mcp.Info{Name: "later", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("later", func(f *mcp.Frame, in struct {
		Fail bool `json:"fail,omitempty"`
	}) (string, error) {
		if in.Fail {
			return "", fmt.Errorf("no luck; a task: %v", f.Detached())
		}
		return fmt.Sprint("a task: ", f.Detached()), nil
	}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, PollInterval: time.Hour})))
	web := httptest.NewServer(server.Handler())
	defer web.Close()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 0, "a task: true"},
		{[]string{"fail=true"}, exitTool, "no luck; a task: true"},
		{[]string{"--no-task"}, 0, "a task: false"},
		{[]string{"--no-task", "fail=true"}, exitTool, "no luck; a task: false"},
		{[]string{"--revision", "2025-11-25"}, 0, "a task: false"},
	} {
		got := talaria(t, "", append([]string{"call", web.URL, "later", "--timeout", "1m"}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.want) {
			t.Errorf("%q: got %+v", test.args, got)
		}
	}
	if got := talaria(t, "call later\n", "http", web.URL); !strings.Contains(got.stdout, "a task: true") {
		t.Errorf("the shell: %+v", got)
	}
}
