package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/schema"
)

// exporting is an Inspector of a server over HTTP that echoes what it gets, with
// secrets in its address, its headers, the arguments and an answer.
func exporting(t *testing.T, secret string, echo bool) (*Inspector, *httptest.Server) {
	t.Helper()
	s := workbench(t)
	if err := s.Add(mcp.Tool("login", func(f *mcp.Frame, in login) (string, error) {
		if !echo {
			return "hello " + in.User, nil
		}
		return "", errors.New(fmt.Sprint(in, f.Header("X-Key"), f.Header("Authorization"), url.QueryEscape(in.Password)))
	})); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	address := web.URL + "?key=" + url.QueryEscape(secret+"-query")
	i := New(Options{Target: address, Words: []string{"--header", "X-Key=" + secret + "-key", address},
		Transport: func(_ io.Writer, around func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			return client.HTTP(address, &client.HTTPOptions{Client: &http.Client{Transport: around(http.DefaultTransport)},
				Header: http.Header{"X-Key": {secret + "-key"}, "Authorization": {"Bearer " + secret + "-token"}}}), nil
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
	})
	t.Cleanup(i.Close)
	i.Connect(0)
	until(t, i, func() bool { return snapshot(i).State != "connecting" })
	listed(t, i, "tool")
	return i, web
}

func export(t *testing.T, i *Inspector, id int64, as, kind string) (string, int) {
	t.Helper()
	var answer struct{ Text, Error string }
	code := ask(t, i, "GET", fmt.Sprintf("/api/export?call=%d&as=%s&kind=%s", id, as, kind), "", &answer)
	return answer.Text + answer.Error, code
}

// TestShare: what is shared has none of the secrets that were planted, in none of the
// ways in which they could be written; raw has them.
func TestShare(t *testing.T) {
	for _, secret := range []string{`plain-s3cret`, `it's "a\b" 100%`, `zoë+ключ/&<>`, "😀 emoji"} {
		if strings.ContainsFunc(secret, func(r rune) bool { return r > '~' }) {
			t.Logf("%s is in no header", secret)
			continue
		}
		i, _ := exporting(t, secret, true)
		for _, revision := range []string{"2026-07-28", "2025-06-18"} {
			ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
			until(t, i, func() bool { return snapshot(i).State == "ready" && snapshot(i).Revision == revision })
			listed(t, i, "tool")
			c := finished(t, i, "login", fmt.Sprintf(`{"user":"ann","password":%s}`, encoders[1](secret+"-pass")))
			for _, as := range []string{"result", "command", "curl", "go", "report"} {
				text, code := export(t, i, c.ID, as, "share")
				if code != http.StatusOK || !strings.Contains(text, "ann") {
					t.Errorf("%s: %d %s", as, code, text)
				}
				for _, end := range []string{"-key", "-token", "-pass", "-query"} {
					hidden(t, text, secret+end)
				}
				if raw, code := export(t, i, c.ID, as, "raw"); code != http.StatusOK || !strings.Contains(raw, "ann") || raw == text {
					t.Errorf("raw %s: %d %s", as, code, raw)
				}
			}
		}
	}
}

func TestReport(t *testing.T) {
	i := connected(t)
	listed(t, i, "tool")
	c := finished(t, i, "sum", `{"a":1,"b":0}`)
	until(t, i, func() bool {
		text, code := export(t, i, c.ID, "report", "share")
		for _, want := range []string{"# sum: the tool failed", "- server: bench 1", "- revision: 2026-07-28", "## Arguments", `"b": 0`, "## Result", "tools/call sum, from the client", `"jsonrpc":"2.0"`, "## Standard error", "listening"} {
			if code != http.StatusOK || !strings.Contains(text, want) {
				return false
			}
		}
		return true
	})
	for _, query := range []string{"as=report&kind=share&call=99", "as=report&kind=all&call=1", "as=html&kind=raw&call=1", "as=curl&kind=raw&call=1"} {
		if code := ask(t, i, "GET", "/api/export?"+query, "", nil); code/100 != 4 {
			t.Errorf("%s: %d", query, code)
		}
	}
}

// TestPressed: no name of a tool leaves its quotes in a terminal that it is pasted into.
func TestPressed(t *testing.T) {
	i := connected(t)
	for name, good := range map[string]bool{"x\ny": true, "it's; id": true, "x\x03\nid\n": false, "x\x7f\x7f; id": false, "x\x15id\r": false} {
		text, err := exporter{i}.exported(call{Method: "tools/call", Tool: name, Arguments: "{}"}, "command", "raw")
		if (err == nil) != good {
			t.Errorf("%q: %s, %v", name, text, err)
		}
	}
}

// TestReportText: what a server says is no markup of a report, and has no lines of its own.
func TestReportText(t *testing.T) {
	i := connected(t)
	text, err := exporter{i}.exported(call{Method: "tools/call", Tool: "sum", Label: "![x](http://evil.example) <img>", State: "done", Arguments: "{}",
		Issues: []schema.Issue{{Path: "/a\n# b `c`", Message: "is *bad*"}}}, "report", "raw")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# !\\[x\\](http://evil.example) \\<img\\>: done\n", "- does not match its output schema: /a # b \\`c\\` is \\*bad\\*\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// TestCurl: the script does what it says, in each era.
func TestCurl(t *testing.T) {
	testdep.LookPath(t, "curl")
	i, _ := exporting(t, "it's s3cret", false)
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { return snapshot(i).State == "ready" && snapshot(i).Revision == revision })
		listed(t, i, "tool")
		c := finished(t, i, "login", `{"user":"it's \"ann\"","password":"p$HOME"}`)
		script, _ := export(t, i, c.ID, "curl", "raw")
		out, err := exec.CommandContext(t.Context(), "sh", "-euc", script).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `hello it's \"ann\"`) {
			t.Errorf("%s: %v\n%s\n%s", revision, err, script, out)
		}
	}
}

// TestGoTest: what is written compiles and passes, beside a server that is the same.
func TestGoTest(t *testing.T) {
	i := connected(t)
	listed(t, i, "tool")
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	// The package is within the module, to import it, but in no folder of it.
	dir, at := t.TempDir(), filepath.Join(root, "exported")
	overlay := map[string]string{}
	write := func(name, text string) {
		overlay[filepath.Join(at, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("server.go", `package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/talaria-go/mcp"
)

func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "bench", Version: "1"}, nil)
	err := s.Add(
		mcp.Tool("sum", func(_ context.Context, in struct {
			A json.Number `+"`json:\"a\"`"+`
			B int `+"`json:\"b\"`"+`
		}) (map[string]any, error) {
			return map[string]any{"a": in.A, "b": in.B}, nil
		}),
		mcp.Tool("fail", func(context.Context, struct{}) (string, error) { return "", errors.New("disk full") }),
	)
	if err != nil {
		panic(err)
	}
	return s
}
`)
	for tool, arguments := range map[string]string{"sum": `{"a":9007199254740993,"b":2}`, "fail": `{}`} {
		text, code := export(t, i, finished(t, i, tool, arguments).ID, "go", "share")
		if code != http.StatusOK {
			t.Fatal(text)
		}
		write(tool+"_test.go", text)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, replaced, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "exported.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", list, "./exported")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSum") || !strings.Contains(string(out), "--- PASS: TestFail") {
		t.Errorf("%v: %s", err, out)
	}
	bad := &exported{Inspector: i, call: call{Tool: "`a b`\n", Method: "tools/call"}, arguments: "{\"a\":\"`\"}"}
	if text := bad.goTest(); !strings.Contains(text, "TestAB(") || strings.Contains(text, "``") {
		t.Error(text)
	}
}

// TestQuotes: a server chooses some of what is secret, such as its sessions, and cannot
// have quotes or fences masked: what is copied has the parts that it had.
func TestQuotes(t *testing.T) {
	const tool = "a'; touch /tmp/x; #`\nt.Log(1)"
	// parts tells apart what a text consists of.
	parts := map[string]func(text string) string{
		"command": func(text string) string {
			words, err := shellwords.Split(text)
			return fmt.Sprint(len(words), err)
		},
		"curl": func(text string) string {
			words, err := shellwords.Split(strings.ReplaceAll(text, "\\\n", " "))
			return fmt.Sprint(len(words), err)
		},
		"go": func(text string) string {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.SkipObjectResolution)
			calls := 0
			ast.Inspect(file, func(n ast.Node) bool {
				if _, is := n.(*ast.CallExpr); is {
					calls++
				}
				return true
			})
			return fmt.Sprint(calls, err)
		},
		"report": func(text string) string {
			blocks, outside, fence := 0, 0, 0
			for line := range strings.Lines(text) {
				ticks := len(line) - len(strings.TrimLeft(line, "`"))
				switch {
				case fence == 0 && ticks >= 3:
					fence = ticks
					blocks++
				case fence == 0:
					outside++
				case ticks >= fence && strings.TrimSpace(line[ticks:]) == "":
					fence = 0
				}
			}
			return fmt.Sprint(blocks, outside, fence)
		},
	}
	r := rand.New(rand.NewPCG(1, 2))
	one := call{Method: "tools/call", Tool: tool, Label: "a", Arguments: `{"note":"it's '; $(x) ` + "```" + `","n":1}`, State: "done",
		Result: `{"content":[{"type":"text","text":"x"}]}`, Error: &callError{Message: "```\n# not a title\n```"}}
	for as, of := range parts {
		text := ""
		for n := range testdep.Rounds(300, 3000) {
			i := New(Options{Target: "http://127.0.0.1/mcp", Words: []string{"--header", "X-Day=it's 12", "http://127.0.0.1/mcp"}})
			i.reach.url, i.reach.header = "http://127.0.0.1/mcp", http.Header{"X-Day": {"it's 12"}}
			i.offered = map[string]*offer{"tool": {Entries: []entry{{Name: tool, input: []byte(`{}`)}}}}
			if n > 0 {
				from := r.IntN(len(text) - 5)
				i.mask.into(&i.mask.received, text[from:min(len(text), from+4+r.IntN(12))])
			}
			out, err := exporter{i}.exported(one, as, "share")
			i.Close()
			if err != nil {
				t.Fatal(as, err)
			}
			if n == 0 {
				text = out
			} else if of(out) != of(text) {
				t.Fatalf("%s has %s parts, and had %s:\n%s\nwhich was\n%s", as, of(out), of(text), out, text)
			}
		}
	}
}

// TestShareOrder: known secrets are found before a query is masked in them, before what
// repeats them is encoded, and before a line is cut.
func TestShareOrder(t *testing.T) {
	const secret = "before?key=7&after"
	long := strings.Repeat("p", 490) + "sëcret-of-ann"
	i := New(Options{Target: "http://127.0.0.1/mcp", Words: []string{"http://127.0.0.1/mcp"}})
	defer i.Close()
	i.reach.url = "http://127.0.0.1/mcp"
	const tool = "tool sëcret-of-ann"
	i.offered = map[string]*offer{"tool": {Entries: []entry{{Name: tool, input: []byte(`{"properties":{"a":{"x-mcp-header":"A"}}}`)}}}}
	i.mask.add(secret, "sëcret-of-ann")
	at := time.Now()
	i.store.Add(recording.Entry{At: at, Dir: recording.Err, Text: []byte(long)})
	until(t, i, func() bool { return len(i.store.Rows(record.Query{Limit: 1}).Rows) == 1 })
	one := call{Method: "tools/call", Tool: tool, Label: tool, Arguments: `{"a":"sëcret-of-ann"}`, Result: strconv.Quote(secret), At: at, State: "done"}
	for as, want := range map[string]string{
		"result": `"***"`,
		"curl":   "-H 'Mcp-Name: tool ***'|-H 'Mcp-Param-A: ***'",
		"report": "```json\n\"***\"\n```|" + strings.Repeat("p", 490) + "***\n",
	} {
		text, err := exporter{i}.exported(one, as, "share")
		for part := range strings.SplitSeq(want, "|") {
			if err != nil || !strings.Contains(text, part) {
				t.Errorf("%s: %s is not in\n%s, %v", as, part, text, err)
			}
		}
	}
}

// TestReportFails: what cannot be masked is no report without it.
func TestReportFails(t *testing.T) {
	testdep.NoRace(t, "one goroutine compares long texts")
	i := New(Options{Target: "target", Words: []string{"target"}})
	defer i.Close()
	i.offered = map[string]*offer{"tool": {Entries: []entry{{Name: "sum", input: []byte(`{}`)}}}}
	i.mask.add(strings.Repeat("a", 100<<10) + "b")
	one := call{Method: "tools/call", Tool: "sum", Label: "sum", Arguments: "{}", Result: strings.Repeat("a", 500<<10), State: "done"}
	if text, err := (exporter{i}).exported(one, "report", "share"); !errors.Is(err, errTooLong) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
