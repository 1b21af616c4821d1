package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	mcpclient "github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// command starts this program as a process of its own, with its files in dir.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args,
		"-notes", filepath.Join(dir, "notes.json"), "-events", filepath.Join(dir, "events.json"), "-files", dir)...)
	cmd.Env = append(os.Environ(), "EXAMPLE_COMMAND=1")
	return cmd
}

func TestCommandLine(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.json")
	damaged := filepath.Join(dir, "damaged.json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-port", "80"}, 2, "flag provided but not defined: -port"},
		{[]string{"-http"}, 2, "flag needs an argument: -http"},
		{[]string{"-stdio=maybe"}, 2, "invalid boolean value"},
		{[]string{"serve"}, 2, `unexpected argument "serve"`},
		{[]string{"-stdio", "-http", "127.0.0.1:0"}, 2, "-stdio excludes -http"},
		{[]string{"-stdio", "-auth"}, 2, "-stdio excludes -http and -auth"},
		{[]string{"-notes", notes, "-events", notes + "2", "-auth", "-http", "0.0.0.0:0"}, 1, "-auth is for development"},
		{[]string{"-http", "8080"}, 2, `-http "8080" is not an address`},
		{[]string{"-http", "127.0.0.1:99999"}, 2, "is not an address"},
		{[]string{"-notes", ""}, 2, "-notes, -events and -files need a path"},
		{[]string{"-notes", notes, "-events", notes + "2", "-http", busy.Addr().String()}, 1, "address already in use; choose another address with -http"},
		{[]string{"-notes", damaged}, 1, "damaged.json cannot be read"},
		{[]string{"-notes", notes, "-events", damaged}, 1, "-events "},
		{[]string{"-notes", filepath.Join(damaged, "notes.json")}, 1, "not a directory"},
		{[]string{"-notes", notes, "-events", notes + "2", "-files", filepath.Join(dir, "none")}, 1, "-files"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), test.args, &stdout, &stderr)
		if code != test.code || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%q: got %d %q, want %d and %q", test.args, code, stderr.String(), test.code, test.want)
		}
		if strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%q: want one line on standard error alone, got %q and %q", test.args, stderr.String(), stdout.String())
		}
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("got %d, %q", code, stderr.String())
	}
	for _, want := range []string{"-http address", "-stdio", "-notes file", "-events file", "-files directory", "Ctrl-C"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}

// post sends a body with headers and returns the status and the answer.
func post(t *testing.T, url, body string, header http.Header) (*http.Response, message) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if len(text) > 0 {
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	return resp, m
}

var (
	printedURL    = regexp.MustCompile(`curl -sS (\S+) `)
	printedHeader = regexp.MustCompile(`-H '([^:]+): ([^']+)'`)
	printedBody   = regexp.MustCompile(`-d '([^']+)'`)
)

// printed reads the request that the command prints.
func printed(t *testing.T, hello string) (url, body string, header http.Header) {
	t.Helper()
	u, b := printedURL.FindStringSubmatch(hello), printedBody.FindStringSubmatch(hello)
	if u == nil || b == nil {
		t.Fatalf("there is no request in %q", hello)
	}
	header = http.Header{}
	for _, h := range printedHeader.FindAllStringSubmatch(hello, -1) {
		header.Set(h[1], h[2])
	}
	return u[1], b[1], header
}

// serveHTTP must print a request that works, and end when it is told to.
func TestServeHTTP(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"-http", "127.0.0.1:0", "-notes", filepath.Join(dir, "n"), "-events", filepath.Join(dir, "e"), "-files", dir}, in, &stderr)
		in.Close()
	}()
	var hello strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C") {
		hello.WriteString(lines.Text() + "\n")
	}
	url, body, header := printed(t, hello.String())
	resp, m := post(t, url, body, header)
	var got Calculation
	if err := json.Unmarshal(m.Result.Structured, &got); err != nil || resp.StatusCode != http.StatusOK || got.Result != 42 {
		t.Errorf("got %d %+v, %v", resp.StatusCode, m, err)
	}
	cancel()
	rest, _ := io.ReadAll(out)
	if c := <-code; c != 0 || string(rest) != "stopping\n" || stderr.Len() > 0 {
		t.Errorf("got %d, %q, %q, want a quiet end", c, rest, stderr.String())
	}
}

func TestHTTPBothRevisions(t *testing.T) {
	h, _, err := router(newServer(newBench(t, t.TempDir())), "http://x", false)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	defer web.Close()
	resp, err := http.Get(web.URL)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want the page that says how to use the server", resp, err)
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	_, body, modern := printed(t, string(page))
	url := web.URL + "/mcp"

	legacy := func() http.Header {
		return http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	}
	resp, _ = post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, legacy())
	session := legacy()
	session.Set("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
	session.Set("MCP-Protocol-Version", "2025-06-18")
	post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	_, m := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_note","arguments":{"text":"from a session"}}}`, session)
	if m.Error != nil || m.Result.IsError {
		t.Errorf("got %+v", m)
	}

	without := modern.Clone()
	without.Del("Mcp-Name")
	for _, test := range []struct {
		name   string
		body   string
		header http.Header
		status int
		code   int
	}{
		{"no JSON, modern", `{"jsonrpc":`, modern, http.StatusBadRequest, -32700},
		{"no JSON, legacy", `{"jsonrpc":`, session, http.StatusBadRequest, -32700},
		{"a header is missing", body, without, http.StatusBadRequest, -32020},
		{"no such session", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Mcp-Session-Id": {"nope"}}, http.StatusNotFound, -32001},
		{"the name is another", strings.Replace(body, `"name":"calculate"`, `"name":"calc"`, 1), modern, http.StatusBadRequest, -32020},
	} {
		resp, m := post(t, url, test.body, test.header)
		if m.Error == nil || resp.StatusCode != test.status || m.Error.Code != test.code {
			t.Errorf("%s: got %d %+v, want %d and %d", test.name, resp.StatusCode, m.Error, test.status, test.code)
		}
	}
	_, m = post(t, url, strings.Replace(body, `"b":7`, `"c":7`, 1), modern)
	if !m.Result.IsError || !strings.Contains(m.Result.Content[0].Text, "/b: is required") {
		t.Errorf("got %+v", m)
	}
}

// Besides streamable HTTP, clients may use WebSocket and the HTTP+SSE of 2024.
func TestOtherTransports(t *testing.T) {
	h, _, err := router(newServer(newBench(t, t.TempDir())), "http://x", false)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	defer web.Close()
	for kind, to := range map[string]mcpclient.Transport{
		"websocket": mcpclient.WebSocket(web.URL+"/ws", nil), "sse": mcpclient.SSE(web.URL+"/mcp", nil),
	} {
		c, err := mcpclient.Connect(t.Context(), to, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		var got SystemOut
		r, err := c.Call(t.Context(), "system_info", nil)
		if err == nil {
			err = json.Unmarshal([]byte(r.Text()), &got)
		}
		if err != nil || got.Transport != kind {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A client that starts the command must find nothing but the protocol on
// standard output.
func TestStdioProcess(t *testing.T) {
	cmd := command(t, sampleDir(t), "-stdio", "-v")
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`this is no JSON`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"import_events","arguments":{"path":"events.csv"}}}`,
	}, "\n"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	answers := map[string]message{}
	for line := range strings.Lines(stdout.String()) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		answers[string(m.ID)] = m
	}
	if len(answers) != 3 || answers["2"].Result.IsError || answers[""].Error == nil || answers[""].Error.Code != -32700 {
		t.Errorf("got %+v", answers)
	}
	if !strings.Contains(stderr.String(), "import_events") {
		t.Errorf("-v logged %q", stderr.String())
	}
}

// start starts a command, with pipes to it.
func start(t *testing.T, cmd *exec.Cmd) (stdin io.WriteCloser, stdout io.ReadCloser, stderr *bytes.Buffer) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return stdin, stdout, stderr
}

func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	for _, args := range [][]string{{"-http", "127.0.0.1:0"}, {"-stdio"}} {
		cmd := command(t, t.TempDir(), args...)
		stdin, stdout, stderr := start(t, cmd)
		if args[0] == "-stdio" {
			_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		}
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
			t.Errorf("%q: %v after %q: %s", args, err, line, stderr.String())
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v: %s", args, err, stderr.String())
		}
	}
}

// Who interrupts the command while an import runs as a task does not take its
// result from the client.
func TestInterruptTask(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	for _, args := range [][]string{{"-http", "127.0.0.1:0"}, {"-stdio"}} {
		cmd := command(t, sampleDir(t), args...)
		stdin, stdout, stderr := start(t, cmd)
		to := mcpclient.Conn(func(context.Context) (transport.Conn, error) { return transport.NewStream(stdout, stdin, nil), nil })
		if args[0] == "-http" {
			lines := bufio.NewReader(stdout)
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			to = mcpclient.HTTP(regexp.MustCompile(`http://\S+/mcp`).FindString(line), nil)
			go func() { _, _ = io.Copy(io.Discard, lines) }()
		}
		c, err := mcpclient.Connect(t.Context(), to, &mcpclient.Options{Revisions: []protocol.Revision{protocol.Latest}, NoReconnect: true})
		if err != nil {
			t.Fatal(err)
		}
		var interrupted bool
		r, err := c.Call(t.Context(), "import_events", map[string]any{"path": "events.csv", "pace": "60ms"}, mcpclient.OnTask(func(*mcpclient.Task) {
			if !interrupted {
				interrupted = true
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
			}
		}))
		if err != nil || r.IsError || !interrupted {
			t.Errorf("%q: %+v, %v, interrupted: %v", args, r, err, interrupted)
		}
		if err := cmd.Wait(); err != nil { // before Close, which breaks the pipe that it writes to
			t.Errorf("%q: %v: %s", args, err, stderr.String())
		}
		_ = c.Close() // the server is gone
	}
}
