//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// devProgramText is a server without a framework, so that builds are short.
const devProgramText = `package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

//go:embed word.txt
var word string

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = ` + "`" + `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}` + "`" + `
		case "tools/list":
			result = ` + "`" + `{"tools":[{"name":"version","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false}},{"name":"exit","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}` + "`" + `
		case "tools/call":
			if m.Params.Name == "exit" {
				os.Exit(3)
			}
			result = fmt.Sprintf(` + "`" + `{"content":[{"type":"text","text":"%d VERSION %s"}]}` + "`" + `, os.Getpid(), word)
		}
		if result == "" {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n", m.ID)
			continue
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", m.ID, result)
	}
}
`

// devModule is a program that is worked on, and talaria dev, which serves it.
type devModule struct {
	t      *testing.T
	dir    string
	temp   string // for temporary files, none of which must be left
	stderr syncBuffer
	cmd    *exec.Cmd
}

func newDevModule(t *testing.T) *devModule {
	testdep.LookPath(t, "go")
	m := &devModule{t: t, dir: t.TempDir(), temp: t.TempDir()}
	m.write("go.mod", "module example.com/worked\n\ngo 1.26\n")
	m.write("word.txt", "one")
	m.edit("0")
	return m
}

func (m *devModule) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// edit makes a version of the program.
func (m *devModule) edit(version string) {
	m.t.Helper()
	m.write("main.go", strings.Replace(devProgramText, "VERSION", version, 1))
}

// env is the environment of talaria dev.
func (m *devModule) env() []string {
	return append(os.Environ(), "TALARIA_COMMAND=1", "TMPDIR="+m.temp, "GOWORK=")
}

// serve starts talaria dev with an address and returns its URL.
func (m *devModule) serve() string {
	m.cmd = exec.Command(os.Args[0], "dev", "--http", "127.0.0.1:0", ".")
	m.cmd.Dir, m.cmd.Env, m.cmd.Stderr = m.dir, m.env(), &m.stderr
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = m.cmd.Process.Kill() }) // if the test fails before its end
	return m.stderr.wait(m.t, `http://\S+/mcp`)
}

// caller is a client that calls the program all the time.
type caller struct {
	*client.Client
	m       *devModule
	changes chan string // notifications

	mu    sync.Mutex
	calls int
	last  string
	pids  map[int]bool
}

func (m *devModule) connect(t client.Transport, rev protocol.Revision) *caller {
	m.t.Helper()
	c := &caller{m: m, changes: make(chan string, 1000), pids: map[int]bool{}}
	var err error
	c.Client, err = client.Connect(m.t.Context(), t, &client.Options{Revisions: []protocol.Revision{rev}, OnNotification: func(n client.Notification) {
		c.changes <- n.Method + string(n.Params)
	}})
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.stderr.String())
	}
	return c
}

// version calls the program.
func (c *caller) version(ctx context.Context) (string, error) {
	r, err := c.Call(ctx, "version", nil)
	if err != nil {
		return "", err
	}
	pid, version, _ := strings.Cut(r.Text(), " ")
	n, err := strconv.Atoi(pid)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.calls, c.pids[n] = version, c.calls+1, true
	return version, err
}

// run calls the program until ctx ends.
func (c *caller) run(ctx context.Context) {
	for now := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			now.Stop()
			return
		case <-now.C:
		}
		if _, err := c.version(ctx); err != nil && ctx.Err() == nil {
			c.m.t.Errorf("call %d: %v", c.calls, err)
			return
		}
	}
}

// waitsFor waits for a notification.
func (c *caller) waitsFor(part string) {
	c.m.t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case text := <-c.changes:
			if strings.Contains(text, part) {
				return
			}
		case <-limit:
			c.m.t.Fatalf("there is no notification with %s\n%s", part, c.m.stderr.String())
		}
	}
}

// wants calls the program, which is to be of a version.
func (c *caller) wants(version string) {
	c.m.t.Helper()
	if got, err := c.version(c.m.t.Context()); err != nil || got != version {
		c.m.t.Errorf("got %q, %v, want %q\n%s", got, err, version, c.m.stderr.String())
	}
}

// leavesNothing checks that no program runs any more, and that no file is left.
func (m *devModule) leavesNothing(callers ...*caller) {
	m.t.Helper()
	for _, c := range callers {
		for pid := range c.pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				m.t.Errorf("process %d is left: %v", pid, err)
			}
		}
	}
	if left, err := os.ReadDir(m.temp); err != nil || len(left) > 0 {
		m.t.Errorf("%v is left: %v", left, err)
	}
}

// TestDev edits a program while clients call it. No call fails.
func TestDev(t *testing.T) {
	t.Parallel()
	m := newDevModule(t)
	url := m.serve()
	legacy, modern := m.connect(client.HTTP(url, nil), protocol.V20250618), m.connect(client.HTTP(url, nil), protocol.V20260728)
	if _, err := modern.Listen(t.Context(), client.Filter{ToolsListChanged: true}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, c := range []*caller{legacy, modern} {
		c.wants("0 one")
		running.Go(func() { c.run(ctx) })
	}
	edits := testdep.Rounds(2, 100)
	for i := range edits {
		if i == edits/2 {
			m.write("main.go", devProgramText+"\nfunc x( {\n")
			legacy.waitsFor("syntax error")
		}
		m.edit(strconv.Itoa(i + 1))
		legacy.waitsFor(protocol.MethodToolsChanged)
		modern.waitsFor(protocol.MethodToolsChanged)
		legacy.wants(fmt.Sprint(i+1, " one"))
		modern.wants(fmt.Sprint(i+1, " one"))
	}
	m.write("word.txt", "two")
	legacy.waitsFor(protocol.MethodToolsChanged)
	legacy.wants(fmt.Sprint(edits, " two"))
	stop()
	running.Wait()
	for _, c := range []*caller{legacy, modern} {
		t.Logf("%d calls, %d processes", c.calls, len(c.pids))
		if c.calls < 10 || len(c.pids) < edits {
			t.Errorf("only %d calls of %d processes", c.calls, len(c.pids))
		}
	}
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, m.stderr.String())
	}
	_, _ = legacy.Close(), modern.Close() // the server is gone
	m.leavesNothing(legacy, modern)
}

// Over standard input and output, a program that ends by itself is started again, until
// it has ended three times; then a change helps. So it does if the first build fails.
func TestDevEnds(t *testing.T) {
	t.Parallel()
	m := newDevModule(t)
	m.write("main.go", "package main\n\nfunc main() { x }\n")
	way := client.Command(os.Args[0], "dev", ".")
	way.Dir, way.Env, way.Stderr = m.dir, m.env(), &m.stderr
	mended := make(chan struct{})
	go func() {
		defer close(mended)
		m.stderr.wait(t, "undefined: x\n.*waiting for a change")
		m.edit("1")
	}()
	c := m.connect(way, protocol.V20250618)
	<-mended
	c.wants("1 one")
	for i := range maxEnds {
		if _, err := c.Call(t.Context(), "exit", nil); err == nil || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("end %d: got %v", i, err)
		}
		if i < maxEnds-1 {
			c.wants("1 one")
		}
	}
	if _, err := c.version(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended 3 times within 5s") {
		t.Errorf("got %v", err)
	}
	m.edit("2")
	m.stderr.wait(t, "worked is built and serves")
	c.wants("2 one")
	m.write("main.go", strings.NewReplacer("VERSION", "3", `"serverInfo"`, `"instructions":"Ask first.","serverInfo"`).Replace(devProgramText))
	m.stderr.wait(t, "keep the capabilities and instructions from before: connect again")
	c.wants("3 one")
	if n := c.Stats().InvalidMessages; n > 0 {
		t.Errorf("%d messages are none", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	m.leavesNothing(c)
}

func TestDevUsage(t *testing.T) {
	m := newDevModule(t)
	t.Chdir(m.dir)
	t.Setenv("TMPDIR", m.temp)
	t.Setenv("GOWORK", "")
	if err := os.Mkdir("tools", 0o755); err != nil {
		t.Fatal(err)
	}
	m.write("tools/tools.go", "package tools\n")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "PACKAGE is missing"},
		{"-- -x", exitUsage, "PACKAGE is missing"},
		{". x", exitUsage, "arguments of the program stand behind --: talaria dev . -- ARGS"},
		{". -stdio", exitUsage, "arguments of the program stand behind --"},
		{"./tools", exitUsage, "./tools is not a program: package tools"},
		{"./nope", exitUsage, "directory not found"},
		{"--http 8080 .", exitUsage, "write host:port, such as 127.0.0.1:8080"},
		{"--http 0.0.0.0:0 .", exitUsage, "others could reach it; take 127.0.0.1"},
		{"https://example.com/mcp", exitUsage, "malformed import path"},
	} {
		got := talaria(t, "", append([]string{"dev"}, strings.Fields(test.args)...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%s: got %+v, want %d and %s", test.args, got, test.code, test.want)
		}
	}
	// A host that goes while there is no program ends the wait for one.
	m.write("main.go", "package main\n\nfunc main() { x }\n")
	if got := talaria(t, "", "dev", "."); got.code != exitTool || !strings.Contains(got.stderr, "waiting for a change") {
		t.Errorf("got %+v", got)
	}
	// A signal does so, too; it is no failure, also if standard input has ended before.
	ctx, signal := context.WithCancel(t.Context())
	var stderr endsAt
	stderr.end = signal
	code := run(ctx, []string{"dev", "."}, &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: &stderr})
	if code != exitOK || !strings.Contains(stderr.String(), "waiting for a change") {
		t.Errorf("a signal: got %d %s", code, stderr.String())
	}
	m.leavesNothing()
}

// endsAt is a standard error that ends a context when the wait for a change begins.
type endsAt struct {
	syncBuffer
	end func()
}

func (w *endsAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "waiting for a change") {
		w.end()
	}
	return w.syncBuffer.Write(p)
}
