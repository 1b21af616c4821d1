package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// inspected is an inspector in a process of its own, and its page.
type inspected struct {
	cmd       *exec.Cmd
	page, key string
}

// inspectApart starts an inspector of a target, whose state is in a directory.
func inspectApart(t *testing.T, dir string, target ...string) *inspected {
	t.Helper()
	i := &inspected{cmd: exec.Command(os.Args[0], append([]string{"inspect", "-b", "--no-open"}, target...)...)}
	i.cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1", "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var stderr syncBuffer
	i.cmd.Stderr = &stderr
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.kill)
	page, code, _ := strings.Cut(stderr.wait(t, `http://127.0.0.1:\d+/#k=\w+`), "/#k=")
	i.page = page
	i.key = regexp.MustCompile(`"key":"([^"]*)"`).FindStringSubmatch(i.api(t, "POST", "/api/key", `{"code":"`+code+`"}`))[1]
	for !strings.Contains(i.api(t, "GET", "/api/state", ""), `"name":"calculate"`) { // its tools
	}
	return i
}

// kill ends it as nobody can hinder, and waits for that.
func (i *inspected) kill() {
	_ = i.cmd.Process.Kill()
	_ = i.cmd.Wait()
}

func (i *inspected) api(t *testing.T, method, path, body string) string {
	t.Helper()
	return askPage(t, i.page, i.key, method, path, body)
}

// TestInspectKilled: the calls, the draft and the tool are there again, at the same
// address, though the inspector was killed.
func TestInspectKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := quoted(stdioExample(t, t.TempDir()))
	i := inspectApart(t, dir, target)
	i.api(t, "POST", "/api/call", `{"tool":"calculate","arguments":"{\"operation\":\"add\",\"a\":40,\"b\":2}"}`)
	i.api(t, "POST", "/api/history", `{"kind":"tool","tool":"calculate","arguments":"{\"a\":41}"}`)
	written := func(want string) bool {
		files, err := os.ReadDir(dir + "/talaria/inspector")
		for _, f := range files {
			text, err := os.ReadFile(dir + "/talaria/inspector/" + f.Name())
			if err == nil && strings.HasSuffix(f.Name(), ".json") && strings.Contains(string(text), want) {
				return true
			}
		}
		return err != nil && t.Context().Err() != nil
	}
	for !written(`"state":"done"`) || !written(`{\"a\":41}`) {
	}
	i.kill()
	again := inspectApart(t, dir, target)
	if again.page != i.page {
		t.Errorf("it was at %s and is at %s", i.page, again.page)
	}
	if state := again.api(t, "GET", "/api/state", ""); !strings.Contains(state, `"open":{"kind":"tool","tool":"calculate"}`) || !strings.Contains(state, `"earlier":true`) {
		t.Error(state)
	}
	if form := again.api(t, "GET", "/api/form?tool=calculate", ""); !strings.Contains(form, `"draft":"{\"a\":41}"`) {
		t.Error(form)
	}
	if other := inspectApart(t, dir, quoted(stdioExample(t, t.TempDir()))); other.page == i.page || strings.Contains(other.api(t, "GET", "/api/state", ""), `"tool":"calculate"`) {
		t.Error("another server has the same history")
	}
}

// TestInspectCommand: the command line that is copied does in a shell what was done.
func TestInspectCommand(t *testing.T) {
	t.Parallel()
	i := inspectApart(t, t.TempDir(), quoted(stdioExample(t, t.TempDir())), "--env", "GREETING=it's $HOME")
	i.api(t, "POST", "/api/call", `{"tool":"add_note","arguments":"{\"text\":\"it's $HOME \\\"b\\\"\"}"}`)
	for strings.Contains(i.api(t, "GET", "/api/calls/1", ""), `"state":"running"`) {
	}
	var answer struct{ Text string }
	if err := json.Unmarshal([]byte(i.api(t, "GET", "/api/export?call=1&as=command&kind=raw", "")), &answer); err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(answer.Text, "talaria ", quoted(os.Args[:1])+" ", 1)
	shell := exec.CommandContext(t.Context(), "sh", "-euc", script)
	shell.Env = append(os.Environ(), "TALARIA_COMMAND=1")
	out, err := shell.CombinedOutput()
	if first := i.api(t, "GET", "/api/calls/1", ""); err != nil || !strings.Contains(first, `"state":"done"`) || !strings.Contains(string(out), "it's $HOME") {
		t.Errorf("%v\n%s\n%s\n%s", err, script, out, first)
	}
	shared := i.api(t, "GET", "/api/export?call=1&as=command&kind=share", "")
	if strings.Contains(shared, "GREETING=it") || !strings.Contains(shared, "GREETING=***") {
		t.Errorf("the environment is shared: %s", shared)
	}
}
