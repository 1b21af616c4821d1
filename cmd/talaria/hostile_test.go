//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// nasty is what a hostile server says everywhere: the title of the window, a
// question to the terminal, C1 in both forms, direction, invisible characters.
const nasty = "x\x1b]0;owned\a\x1b[6n\u009b6n\u202e\u2066\u200b\U000e0041\x7f\x00y"

// hostile answers a message of the client with everything that there is to say;
// other messages come before the answer.
func hostile(m *wireMessage, modern bool) []string {
	n, _ := json.Marshal(nasty) // a text always encodes
	q := string(n)
	long, _ := json.Marshal(strings.Repeat(nasty, 2000))
	answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
	fault := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s,"data":{"x":%[2]s}}}`, m.ID, q)
	schema := strings.ReplaceAll(`{"type":"object","properties":{Q:{"type":"string","title":Q,"description":Q,"pattern":Q},"e":{"type":"string","enum":[Q,"b"],"default":Q},"n":{"type":"integer","format":Q}}}`, "Q", q)
	content := strings.ReplaceAll(`[{"type":"text","text":Q},{"type":"resource_link","uri":Q,"name":Q,"description":Q,"mimeType":Q},{"type":"resource","resource":{"uri":Q,"mimeType":Q,"text":Q}}]`, "Q", q)
	before := []string{
		strings.ReplaceAll(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":Q,"data":Q}}`, "Q", q),
		strings.ReplaceAll(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"a":Q}}}`, "Q", q),
		fmt.Sprintf(`{"jsonrpc":"2.0","method":%s,"params":{"uri":%[1]s}}`, q),
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`, q),
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4711,"reason":%s}}`, q),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q),
	}
	if m.Params.Meta.Token != nil {
		before = append(before, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2,"message":%s}}`, m.Params.Meta.Token, q))
	}
	if modern {
		answer = func(result string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private"%s%s}`, m.ID, map[bool]string{true: ","}[result != "{}"], result[1:])
		}
	}
	switch {
	case modern && m.Method == "server/discover":
		return []string{answer(strings.ReplaceAll(`{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{},"completions":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":Q,"title":Q,"version":Q}},"instructions":L}`, "L", string(long)))}
	case modern && m.Method == "tasks/get":
		return append(before, answer(`{"taskId":`+q+`,"status":"failed","statusMessage":`+q+`,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"error":{"code":-1,"message":`+q+`}}`))
	}
	switch m.Method {
	case "initialize":
		return []string{answer(strings.ReplaceAll(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{},"experimental":{Q:{}}},"serverInfo":{"name":Q,"title":Q,"version":Q},"instructions":L}`, "L", string(long)))}
	case "tools/list":
		return append(before, answer(`{"tools":[{"name":`+q+`,"title":`+q+`,"description":`+string(long)+`,"inputSchema":`+schema+`},{"name":"fails","inputSchema":`+schema+`},{"name":"tool","title":`+q+`,"description":`+q+`,"inputSchema":`+schema+`,"outputSchema":`+schema+`},{"name":"ask","inputSchema":{"type":"object"}},{"name":"sample","inputSchema":{"type":"object"}},{"name":"task","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}`))
	case "tools/call":
		switch m.Params.Name {
		case "fails":
			return append(before, fault)
		case "sample":
			params := strings.ReplaceAll(`{"systemPrompt":Q,"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":Q}}]}`, "Q", q)
			if modern && m.Params.Responses == nil {
				return append(before, strings.ReplaceAll(answer(`{"inputRequests":{"s":{"method":"sampling/createMessage","params":`+params+`}},"requestState":`+q+`}`), `"complete"`, `"input_required"`))
			}
			return append(before, fmt.Sprintf(`{"jsonrpc":"2.0","id":"sample","method":"sampling/createMessage","params":%s}`, params), answer(`{"content":`+content+`}`))
		case "task":
			return append(before, strings.ReplaceAll(answer(`{"taskId":`+q+`,"status":"working","statusMessage":`+q+`,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":1}`), `"complete"`, `"task"`))
		case "ask":
			return append(before, fmt.Sprintf(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":%s,"requestedSchema":%s}}`, q, schema),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":"url","method":"elicitation/create","params":{"mode":"url","elicitationId":"e","message":%s,"url":%[1]s}}`, q), answer(`{"isError":true,"content":`+content+`}`))
		}
		return append(before, answer(`{"content":`+content+`}`))
	case "prompts/list":
		return append(before, answer(strings.ReplaceAll(`{"prompts":[{"name":Q,"title":Q,"description":Q,"arguments":[{"name":Q,"title":Q,"description":Q,"required":false}]},{"name":"p"}]}`, "Q", q)))
	case "prompts/get":
		return append(before, answer(`{"description":`+q+`,"messages":[{"role":"user","content":{"type":"text","text":`+q+`}}]}`))
	case "resources/list":
		return append(before, answer(strings.ReplaceAll(`{"resources":[{"uri":Q,"name":Q,"title":Q,"description":Q,"mimeType":Q,"size":1}]}`, "Q", q)))
	case "resources/templates/list":
		return append(before, answer(strings.ReplaceAll(`{"resourceTemplates":[{"uriTemplate":Q,"name":Q,"title":Q,"description":Q,"mimeType":Q}]}`, "Q", q)))
	case "resources/read":
		return append(before, answer(`{"contents":[{"uri":`+q+`,"mimeType":`+q+`,"text":`+q+`},{"uri":"x","text":`+q+`}]}`))
	case "completion/complete":
		return append(before, answer(`{"completion":{"values":[`+q+`]}}`))
	case "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel":
		return append(before, answer(`{}`))
	}
	if m.ID == nil {
		return nil
	}
	return append(before, fault)
}

type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Responses json.RawMessage `json:"inputResponses"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// hostileServer speaks over standard input and output.
func hostileServer(modern bool) {
	in := bufio.NewScanner(os.Stdin)
	fmt.Fprintln(os.Stderr, nasty)
	for in.Scan() {
		var m wireMessage
		if json.Unmarshal(in.Bytes(), &m) != nil || m.Method == "" {
			continue
		}
		fmt.Fprintln(os.Stderr, nasty)
		if m.Method != "initialize" && m.Method != "server/discover" {
			fmt.Println("no message " + nasty)
		}
		for _, text := range hostile(&m, modern) {
			fmt.Println(strings.ReplaceAll(text, "Q", quotedNasty()))
		}
		if m.Params.Name == "die" {
			os.Exit(3)
		}
	}
}

func quotedNasty() string {
	text, _ := json.Marshal(nasty)
	return string(text)
}

// hostileWeb speaks HTTP, and is as hostile about authorization.
func hostileWeb(t *testing.T) *httptest.Server {
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := quotedNasty()
		switch {
		case r.URL.Path == "/broken":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "%s", strings.Repeat(nasty, 500))
			return
		case r.URL.Path == "/login" || r.URL.Path == "/denied":
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", scope="`+"a\u009b\u202e"+`", error_description="`+"\u009b6n\u202e"+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":%s}}`, q)
			return
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			fmt.Fprintf(w, `{"resource":%q,"resource_name":%s,"scopes_supported":[%[2]s],"authorization_servers":[%[3]q]}`, web.URL+"/login", q, web.URL)
			return
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"scopes_supported":[%s]}`,
				web.URL, web.URL+"/authorize", web.URL+"/token", web.URL+"/register", q)
			return
		case r.URL.Path == "/register" || r.URL.Path == "/token":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%s,"error_description":%[1]s,"error_uri":%[1]s}`, q)
			return
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m wireMessage
		_ = json.Unmarshal(body, &m)
		if m.ID == nil || m.Method == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range hostile(&m, r.URL.Path == "/modern") {
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(text, "Q", q))
		}
	}))
	t.Cleanup(web.Close)
	return web
}

// judgeOutput finds what must never come out.
func judgeOutput(t *testing.T, where, text string) {
	t.Helper()
	for _, bad := range []string{"\x1b]", "\x1b[6n", "\a", "\x00", "\x7f"} {
		if i := strings.Index(text, bad); i >= 0 {
			t.Errorf("%s has %q: %q", where, bad, text[max(0, i-80):min(len(text), i+40)])
			return
		}
	}
	for i, r := range text {
		if r >= 0x80 && unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], "\ufffd") {
			t.Errorf("%s has %U: %q", where, r, text[max(0, i-80):min(len(text), i+40)])
			return
		}
	}
}

// Whatever a server says in whatever place, no control character of it reaches
// a terminal, standard error or a table. Results that were asked for go into a
// pipe as they are.
func TestHostileServer(t *testing.T) {
	testdep.NoRace(t, "its processes run one after another")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("BROWSER", "/bin/false")
	web := hostileWeb(t)
	// With the race detector a process sleeps a second before it ends.
	program := "env GORACE=atexit_sleep_ms=0 " + os.Args[0] + " hostile"
	const shellScript = "list_tools\nlist_tools tool\ncall_tool tool\ncall_tool fails\ncall_tool ask\nlist_prompts\nget_prompt p\nlist_resources\ntemplates\nread_resource x\ncomplete p a\n" +
		"subscribe x\nunsubscribe x\nset_level debug\nrequest tools/list\nrequest none\nshow_state -v\nping\nnonsense\nhelp\nroots\ntool\n"
	save, n := t.TempDir(), 0
	for _, test := range []struct {
		args  []string // TARGET stands for the server
		stdin string
		raw   bool // standard output is data, and may be a pipe's
	}{
		{args: []string{"tools", "TARGET"}}, {args: []string{"tools", "TARGET", "--json"}}, {args: []string{"tools", "TARGET", "tool"}},
		{args: []string{"tools", "TARGET", "too"}}, {args: []string{"call", "TARGET", "fail"}},
		{args: []string{"call", "TARGET", "tool"}, raw: true}, {args: []string{"call", "TARGET", "tool", "--json"}},
		{args: []string{"call", "TARGET", "tool", "-vv"}, raw: true}, {args: []string{"call", "TARGET", "tool", "-vvv"}, raw: true},
		{args: []string{"call", "TARGET", "tool", "e=c"}}, {args: []string{"call", "TARGET", "tool", "nn=1"}, raw: true},
		{args: []string{"call", "TARGET", "fails"}}, {args: []string{"call", "TARGET", "ask", "--answer", "e=c"}, raw: true}, {args: []string{"call", "TARGET", "ask", "--answer", "ee=b"}, raw: true},
		{args: []string{"call", "TARGET", "sample", "--sample", "x"}, raw: true}, {args: []string{"call", "TARGET", "sample", "--sample", "ask"}, raw: true}, {args: []string{"call", "TARGET", "sample"}, raw: true},
		{args: []string{"call", "TARGET", "task", "-vv"}, raw: true},
		{args: []string{"call", "TARGET", "die"}, raw: true},
		{args: []string{"prompts", "TARGET"}}, {args: []string{"prompt", "TARGET", "p"}, raw: true}, {args: []string{"prompt", "TARGET", "p", "--json"}},
		{args: []string{"resources", "TARGET"}}, {args: []string{"resources", "TARGET", "--templates"}},
		{args: []string{"read", "TARGET", "x"}, raw: true}, {args: []string{"read", "TARGET", "x", "-o", "-"}, raw: true}, {args: []string{"read", "TARGET", "x", "--json"}},
		{args: []string{"complete", "TARGET", "p", "a"}, raw: true}, {args: []string{"ping", "TARGET", "-v"}}, {args: []string{"ping", "TARGET", "--json"}},
		{args: []string{"request", "TARGET", "tools/list"}}, {args: []string{"request", "TARGET", "no/such"}},
		{args: []string{"inspect", "TARGET"}}, {args: []string{"inspect", "TARGET", "--json", "-vvv"}},
		{args: []string{"SHELL", "-vv"}, stdin: shellScript, raw: true},
		{args: []string{"tools", web.URL + "/broken"}}, {args: []string{"tools", web.URL + "/denied"}}, {args: []string{"tools", web.URL + "/denied", "--token", "abc"}},
		{args: []string{"login", web.URL + "/login"}}, {args: []string{"login", web.URL + "/login", "--client-id", "x", "--manual"}},
	} {
		n++
		for name, target := range map[string]string{"stdio": program, "http": web.URL, "stdio modern": program + "-modern", "http modern": web.URL + "/modern"} {
			shown := strings.Join(test.args, " ")
			if testdep.Rounds(1, 2) == 1 && strings.Contains(shown, "TARGET") && strings.HasPrefix(name, "http") == (n%2 == 0) {
				continue // each has every other command
			}
			if !strings.Contains(shown, "TARGET") && !strings.Contains(shown, "SHELL") && name != "http" {
				continue
			}
			if strings.HasSuffix(name, "modern") && !slices.Contains([]string{"call", "inspect", "SHELL"}, test.args[0]) {
				continue // the revision makes no difference
			}
			var args []string
			for _, arg := range test.args {
				switch {
				case arg == "TARGET":
					arg = target
				case arg == "SHELL" && strings.HasPrefix(name, "stdio"):
					arg = "stdio"
				case arg == "SHELL":
					arg = "http"
				}
				args = append(args, arg)
			}
			if test.args[0] == "SHELL" {
				args = append(args, strings.Fields(target)...)
			}
			if test.args[0] != "login" {
				args = append(args[:1:1], append([]string{"--save", save, "--timeout", "10s"}, args[1:]...)...)
			}
			t.Run(name+" "+strings.ReplaceAll(shown, web.URL, ""), func(t *testing.T) {
				got := talaria(t, test.stdin, args...)
				if got.stdout+got.stderr == "" {
					t.Error("it says nothing")
				}
				judgeOutput(t, "standard error", got.stderr)
				if len(got.stderr) > 200_000 {
					t.Errorf("%d bytes in standard error", len(got.stderr))
				}
				if !test.raw {
					judgeOutput(t, "standard output", got.stdout)
				}
				seen := inTerminal(t, test.stdin, args)
				if seen == "" {
					t.Error("the terminal shows nothing")
				}
				judgeOutput(t, "the terminal", seen)
			})
		}
	}
}

// inTerminal runs the command with a terminal for what it writes, and returns
// what comes out.
func inTerminal(t *testing.T, stdin string, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1", "TERM=xterm", "NO_COLOR=1", "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), theirs, theirs
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(ours) // a terminal ends with an error
	_ = cmd.Wait()              // most commands fail, as they should
	return string(text)
}
