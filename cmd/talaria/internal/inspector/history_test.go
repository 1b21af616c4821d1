package inspector

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

type login struct {
	User     string `json:"user"`
	Password string `json:"password" jsonschema:"format=password"`
}

// remembering is an Inspector of a server with secrets that keeps its history.
func remembering(t *testing.T, path string) *Inspector {
	t.Helper()
	s := workbench(t)
	n := 0
	if err := s.Add(mcp.Tool("login", func(_ context.Context, in login) (string, error) {
		n++
		return fmt.Sprintf("%s logged in with %s, %d", in.User, in.Password, n), nil
	})); err != nil {
		t.Fatal(err)
	}
	i := New(Options{Target: "target", History: path,
		Transport: func(io.Writer, func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			return client.Local(s.ServeConn), nil
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
	})
	t.Cleanup(i.Close)
	i.Connect(0)
	until(t, i, func() bool { return snapshot(i).State != "connecting" })
	listed(t, i, "tool")
	return i
}

// saved waits until the file of a history has a text, without the end of its inspector.
func saved(t *testing.T, path, want string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), want) {
			return string(text)
		}
		runtime.Gosched()
	}
	return ""
}

// TestHistory: calls, drafts and the chosen tool are there again though the inspector
// had no time to end, and no secret was written.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	i := remembering(t, path)
	finished(t, i, "sum", `{"a":9007199254740993,"b":2}`)
	finished(t, i, "login", `{"user":"ann","password":"hunter22"}`)
	ask(t, i, "POST", "/api/call", `{"tool":"wait","arguments":"{}"}`, nil)
	for _, draft := range []string{
		`{"kind":"tool","tool":"sum","arguments":"{\"a\":7}"}`,
		`{"kind":"tool","tool":"no-such-tool","arguments":"{\"token\":\"unknown1\"}"}`,
		`{"kind":"prompt","tool":"greet","arguments":"{\"who\":\"bob\"}"}`,
		`{"kind":"tool","tool":"login","arguments":"{\"user\":\"eve\",\"password\":\"hunter33\"}"}`,
		`{"kind":"tool","tool":"login","arguments":null}`,
	} {
		if code := ask(t, i, "POST", "/api/history", draft, nil); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	saved(t, path, `"tool":"login","drafts"`)
	text := saved(t, path, `"tool":"wait"`)
	for _, secret := range []string{"hunter22", "hunter33", "unknown1"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s was kept: %s", secret, text)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	crashed := filepath.Join(t.TempDir(), "copy.json") // what a process that was killed leaves
	if err := os.WriteFile(crashed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	i = remembering(t, crashed)
	if s := snapshot(i); fmt.Sprint(s.Open, s.Problem, i.history.drafts) != `{tool login map[]}[{tool sum {"a":7}} {prompt greet {"who":"bob"}} {tool login {"user":"eve"}}]` {
		t.Errorf("%v %v %v", s.Open, s.Problem, i.history.drafts)
	}
	var f form
	if ask(t, i, "GET", "/api/form?tool=sum", "", &f); f.Draft != `{"a":7}` || fmt.Sprint(snapshot(i).Open) != "{tool sum map[]}" {
		t.Errorf("%+v %v", f, snapshot(i).Open)
	}
	recent := snapshot(i).Calls
	if len(recent) != 3 || recent[0].Tool != "wait" || recent[0].State != "error" || recent[1].Tool != "login" || recent[1].State != "done" || !recent[1].Partial || recent[2].Partial || !recent[2].Earlier {
		t.Fatalf("%+v", recent)
	}
	var c call
	ask(t, i, "GET", fmt.Sprintf("/api/calls/%d", recent[2].ID), "", &c)
	if c.Arguments != `{"a":9007199254740993,"b":2}` || !strings.Contains(c.Result, "9007199254740993") || c.Label != "sum" {
		t.Errorf("%+v", c)
	}
	c = call{}
	ask(t, i, "GET", fmt.Sprintf("/api/calls/%d", recent[1].ID), "", &c)
	if c.Arguments != `{"user":"ann"}` || !strings.Contains(c.Result, "ann logged in with ***, 1") {
		t.Errorf("%+v", c)
	}
}

// TestDiff: a result is compared with that of the same tool before, also of an earlier
// start.
func TestDiff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	i := remembering(t, path)
	first := finished(t, i, "sum", `{"a":1,"b":2}`)
	if first.Before != 0 {
		t.Errorf("%+v", first)
	}
	finished(t, i, "fail", `{}`)
	i.Close()
	i = remembering(t, path)
	second := finished(t, i, "sum", `{"a":3,"b":2}`)
	if second.Before != first.ID || second.ID <= first.ID {
		t.Errorf("%+v", second)
	}
	var d struct {
		Before    int64
		Lines     []string
		Arguments bool
	}
	ask(t, i, "GET", fmt.Sprintf("/api/calls/%d/diff", second.ID), "", &d)
	text := strings.Join(d.Lines, "\n")
	if d.Before != first.ID || !d.Arguments || !strings.Contains(text, "-    \"a\": 1,") || !strings.Contains(text, "+    \"a\": 3,") || !strings.Contains(text, "     \"b\": 2") {
		t.Errorf("%+v", d)
	}
	third := finished(t, i, "sum", `{"a":3,"b":2}`)
	ask(t, i, "GET", fmt.Sprintf("/api/calls/%d/diff", third.ID), "", &d)
	if len(d.Lines) != 0 || d.Arguments {
		t.Errorf("the same result: %+v", d)
	}
	for id, want := range map[int64]int{first.ID: http.StatusNotFound, 99: http.StatusNotFound} {
		if code := ask(t, i, "GET", fmt.Sprintf("/api/calls/%d/diff", id), "", nil); code != want {
			t.Errorf("%d: %d", id, code)
		}
	}
}

// TestHistoryBounds: however much is done, the file stays small, and the newest is in it.
func TestHistoryBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	i := remembering(t, path)
	long := strings.Repeat("<", maxKeptText/2)
	for n := range maxKeptDrafts * 2 {
		i.history.set("prompt", fmt.Sprint("tool", n), &long)
	}
	for n := range maxKeptCalls * 2 {
		one := &call{Tool: fmt.Sprint("tool", n), State: "done", Arguments: long, Result: long}
		if n%2 == 0 {
			one.Result, one.Error = "", &callError{Message: long, Data: long}
		}
		same := *one
		one.safe = &same
		if err := i.calls.begin(one); err != nil {
			t.Fatal(err)
		}
		i.calls.change(func() { one.State = "done" })
	}
	i.Close()
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2*maxKeptAll+64<<10 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	k, err := readKept(path)
	if err != nil || len(k.Calls) == 0 || k.Calls[len(k.Calls)-1].Tool != "tool199" || k.Drafts[len(k.Drafts)-1].Tool != "tool199" {
		t.Errorf("%d calls, %d drafts, %v", len(k.Calls), len(k.Drafts), err)
	}
}

// TestHistoryBroken: a file that is none, and one that cannot be written, hinder nothing
// and are told.
func TestHistoryBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := remembering(t, path)
	if snapshot(i).Problem == "" {
		t.Error("nothing is said")
	}
	finished(t, i, "sum", `{"a":1,"b":2}`)
	saved(t, path, "sum")
	i = remembering(t, filepath.Join(path, "below-a-file"))
	finished(t, i, "sum", `{"a":1,"b":2}`)
	i.Close()
	if snapshot(i).Problem == "" {
		t.Error("nothing is said")
	}
}
