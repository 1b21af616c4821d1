//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// One list that fails does not take the others away, and is still an error.
func TestInspectWithoutOneList(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m wireMessage
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case m.Method == "prompts/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"prompts":[{"name":"greet"}]}}`, m.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"out of order"}}`, m.ID)
		}
	}))
	defer web.Close()
	for _, args := range [][]string{{"inspect", web.URL}, {"inspect", web.URL, "--json"}} {
		got := talaria(t, "", args...)
		if got.code != exitProtocol || !strings.Contains(got.stdout, "greet") || !strings.Contains(got.stderr, "out of order") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

// A command that does not begin to speak: its last words, and what it may miss.
func TestSilentCommand(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--use-system-ca")
	t.Setenv("HTTPS_PROXY", "http://ann:hunter2@proxy.example:3128")
	for _, test := range []struct {
		script, limit string
		code          int
		want, not     []string
	}{
		{`i=0; while [ $i -lt 30 ]; do echo line $i >&2; i=$((i+1)); done; printf 'self-signed \033[2Jcertificate\n' >&2; cat >/dev/null`, "2s", exitConnect,
			[]string{"no answer for 2s", "line 25\n", "self-signed ␛[2Jcertificate", "NODE_OPTIONS", "HTTPS_PROXY", "--env NAME", `sh -c 'i=0; while`}, []string{"line 15\n", "hunter2", "\x1b", "CommandTransport"}},
		{`cat >/dev/null`, "1s", exitConnect, []string{"it has written nothing to standard error", "NODE_OPTIONS"}, nil},
		{`echo NODE_OPTIONS is not set >&2; exit 1`, "30s", exitConnect, []string{"--env NODE_OPTIONS passes it on"}, nil},
	} {
		got := talaria(t, "", "ping", "--timeout", test.limit, quoted([]string{"sh", "-c", test.script}))
		if got.code != test.code {
			t.Errorf("%s: %+v", test.script, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%s: no %q in %s", test.script, want, got.stderr)
			}
		}
		for _, not := range test.not {
			if strings.Contains(got.stderr, not) {
				t.Errorf("%s: %q in %s", test.script, not, got.stderr)
			}
		}
	}
}

// Ctrl-C ends a script of the shell with the command that runs.
func TestScriptInterrupted(t *testing.T) {
	t.Parallel()
	const server = `read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}'
read -r line; echo it waits >&2; exec sleep 100`
	var stdout, stderr syncBuffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "stdio", "-v", "sh", "-c", server)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("list_tools\ntimeout\n"), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.wait(t, "it waits")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the state says how it ended
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(stderr.String(), "error: interrupted\n") || strings.Contains(stdout.String(), "must come within") {
		t.Errorf("got %d, %s%s", code, stdout.String(), stderr.String())
	}
}

func TestVersionFlag(t *testing.T) {
	if got := talaria(t, "", "--version"); got.code != exitOK || !strings.Contains(got.stdout, version()) {
		t.Errorf("got %+v", got)
	}
}

// A project whose modules could not be found is written, and not a success.
func TestNewWithoutModules(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOMODCACHE", t.TempDir())
	got := talaria(t, "", "new", "example.com/weather", "--dir", t.TempDir()+"/x")
	if got.code != exitTool || !strings.Contains(got.stdout, "wrote") || !strings.Contains(got.stderr, "go mod tidy failed: exit status 1\ngo: ") {
		t.Errorf("got %+v", got)
	}
}
