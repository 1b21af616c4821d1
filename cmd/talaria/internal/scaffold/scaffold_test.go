package scaffold

import (
	"bytes"
	"go/format"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
)

func TestCheck(t *testing.T) {
	for module, want := range map[string]string{
		"weather": "weather", "example.com/me/weather": "weather", "example.com/weather/v2": "weather", "v2": "v2",
	} {
		p := Project{Module: module}
		if err := p.Check(); err != nil || p.Name() != want {
			t.Errorf("%s: got %q, %v", module, p.Name(), err)
		}
	}
	for _, module := range []string{"", "a b", "/abs", "a//b", "..", "../up", "a/", "wetter\n", "ü", "example.com/internal",
		"time", "fmt", "Time", "cmd", "all", "std", "work", "tool", "toolchain", "builtin", "net/http", "text/weather", "command-line-arguments", "vendor", "main", "example.com/Main",
		"nul", "example.com/me/CON", "aux.x", "a/com1/b", "lpt9", "example.com/x~1", "x/v0", "x/v1", "x/v02", "gopkg.in/x", "example.com/go", "example.com/main.go", "server_test.go", "x/Y.GO",
		"example.com/readme.md", "-x", "x.", "wea\u0301ther", "weather\u200b", "github.com/talaria-go/mcp", "github.com/talaria-go/mcp/x"} {
		err := (Project{Module: module}).Check()
		if err == nil {
			t.Errorf("%q passed", module)
			continue
		}
		// What is suggested is a way out.
		if _, name, ok := strings.Cut(err.Error(), "a name such as "); ok {
			name, _, _ = strings.Cut(name, ",")
			if err := (Project{Module: name}).Check(); err != nil {
				t.Errorf("%q: the suggestion %q: %v", module, name, err)
			}
		}
	}
}

// What passes is a module that the go command builds, and nothing that it has itself.
func TestCheckedBuilds(t *testing.T) {
	testdep.LookPath(t, "go")
	run := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
		}
		return string(out)
	}
	for _, module := range []string{"weather", "v2", "x/v2", "com10", "con-x", "test", "example", "gopkg.in/x.v1", "github.com/you/time", "x_test", "8ball", "func", "mcp"} {
		p := Project{Module: module}
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", module, err)
			continue
		}
		dir := t.TempDir()
		run(dir, "mod", "init", module)
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"time\"\n\nfunc main() { println(time.Second) }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(dir, "build", "-o", os.DevNull, "./...")
	}
	for path := range strings.FieldsSeq(run(".", "list", "std")) {
		if err := (Project{Module: path}).Check(); err == nil {
			t.Errorf("%s passed, which Go itself has", path)
		}
	}
}

// What is written must be formatted, and build, and pass its tests.
func TestProject(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "weather")
	p := Project{Module: "example.com/me/weather", Version: "v0.0.0", Replace: root}
	files, err := p.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(files, " "); got != "README.md .gitignore go.mod main.go mcp.lock words.go words_test.go" {
		t.Errorf("got %s", got)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			if nice, err := format.Source(text); err != nil || string(nice) != string(text) {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
	}
	// go mod tidy would want the modules that the tests of dependencies need;
	// the sums of the framework do, and the network stays out of it.
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	serves(t, dir)
	main := filepath.Join(dir, "main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, bytes.Replace(text, []byte(`"count_words"`), []byte(`"count.words"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-run", "TestTools", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"refused  name  count.words", "count_words", "the tools are not what mcp.lock has", "MCPTEST_UPDATE=1 go test accepts it"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("of a tool that was renamed, %v has no %q: %s", err, want, out)
		}
	}
	if _, err := p.Write(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v, want the directory refused", err)
	}
}

// serves checks that the program is ready until it is asked to end, and ends at once when it
// is asked again, however soon.
func serves(t *testing.T, dir string) {
	t.Helper()
	program := filepath.Join(dir, "weather.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	const once, twice, atOnce = 0, 1, 2
	for signals, grace := range []time.Duration{once: time.Second, twice: time.Hour, atOnce: time.Hour} {
		cmd := exec.CommandContext(t.Context(), program, "-http", address, "-grace", grace.String())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		statusOf := func(path string) int {
			res, err := http.Get("http://" + address + path)
			if err != nil {
				return 0
			}
			res.Body.Close()
			return res.StatusCode
		}
		until := func(path string, want int) {
			t.Helper()
			for range 2000 {
				if statusOf(path) == want {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			t.Errorf("%s is never %d", path, want)
		}
		until("/readyz", http.StatusOK)
		if got := statusOf("/livez"); got != http.StatusOK {
			t.Errorf("/livez: %d", got)
		}
		if signals == atOnce {
			testproc.SignalTwice(t, cmd.Process)
		} else if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if signals == twice {
			until("/readyz", http.StatusServiceUnavailable)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		err := cmd.Wait()
		if signals == once && err != nil || signals > once && !testproc.Killed(cmd.ProcessState, 1) {
			t.Errorf("with %d signals and a grace of %v it ended with %v", min(signals+1, 2), grace, err)
		}
	}
}
