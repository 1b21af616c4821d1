package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// writeServers writes a configuration file with servers that stdioExample starts.
func writeServers(t *testing.T, file string, servers map[string]string) {
	t.Helper()
	command := stdioExample(t, t.TempDir())
	all := map[string]any{}
	for name, own := range servers {
		all[name] = map[string]any{"command": command[0], "args": command[1:], "talaria": json.RawMessage(own)}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// bridgeArgs starts a gateway of a file over standard input and output.
func bridgeArgs(file string) []string {
	return []string{os.Args[0], "gateway", "--config", file, "--stdio"}
}

// A file of servers is offered as one server, and followed while clients call.
func TestGateway(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".mcp.json")
	writeServers(t, file, map[string]string{"sums": `{"only": ["calc*"]}`, "other": `{"only": ["calculate"], "rules": [{"tool": "calculate", "name": "reckon"}, {"tool": "none"}]}`})
	got := talaria(t, "", "gateway", "--config", file, "--check")
	for _, want := range []string{"sums: 1 tool\n  sums_calculate\n", "other_reckon", `left out: rule 2 of "other": no tool matches "none"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is not in %+v", want, got)
		}
	}
	if got.code != exitTool {
		t.Errorf("the exit code is %d", got.code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"gateway", "--config", file, "--http", "127.0.0.1:0"}, &console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	}()
	url := stderr.wait(t, `http://\S+/mcp`)
	for _, rev := range []string{"2024-11-05", "2026-07-28"} {
		if got := talaria(t, "", "call", url, "sums_calculate", "operation=add", "a=40", "b=2", "--revision", rev); got.code != 0 || !strings.Contains(got.stdout, "42") {
			t.Errorf("got %+v", got)
		}
	}
	writeServers(t, file, map[string]string{"more": `{"only": ["calculate"]}`})
	for {
		got := talaria(t, "", "call", url, "more_calculate", "operation=add", "a=40", "b=2", "--no-check")
		if got.code == 0 && strings.Contains(got.stdout, "42") {
			break
		}
		if t.Context().Err() != nil {
			t.Fatalf("got %+v", got)
		}
	}
	bridge := quoted(bridgeArgs(file))
	if got := talaria(t, "", "call", bridge, "--env", "TALARIA_COMMAND=1", "more_calculate", "operation=add", "a=40", "b=2"); got.code != 0 || !strings.Contains(got.stdout, "42") {
		t.Errorf("got %+v", got)
	}
	for query, want := range map[string]string{"calculate numbers": `"name":"more_calculate"`, "bake bread": "No tool has the words: bake, bread."} {
		if got := talaria(t, "", "call", quoted(append(bridgeArgs(file), "--search")), "--env", "TALARIA_COMMAND=1", "search_tools", "query="+query); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %+v", query, got)
		}
	}
	if got := talaria(t, "", "call", quoted(append(bridgeArgs(file), "--search")), "--env", "TALARIA_COMMAND=1", "call_tool", "name=more_calculate", `arguments={"operation":"add","a":40,"b":2}`); got.code != 0 || !strings.Contains(got.stdout, "42") {
		t.Errorf("got %+v", got)
	}
	cancel()
	if c := <-code; c != 0 || stdout.String() != "" {
		t.Errorf("got %d and %q, %q", c, stdout.String(), stderr.String())
	}
}

func TestGatewayUsage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".mcp.json")
	writeServers(t, file, nil)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--stdio"}, "give --config FILE"},
		{[]string{"--config", file}, "give one of --http ADDRESS, --stdio and --check"},
		{[]string{"--config", file, "--stdio", "--check"}, "give one of --http ADDRESS, --stdio and --check"},
		{[]string{"--config", file + "x", "--check"}, "--config: "},
		{[]string{"--config", file, "--http", "8080"}, "is not an address"},
		{[]string{"--config", file, "--http", "127.0.0.1:0", "--max-sessions", "0"}, "must be more than 0"},
		{[]string{"--config", file, "--http", "127.0.0.1:0", "--session-idle", "-1s"}, "must be more than 0"},
		{[]string{"--config", file, "--http", "0.0.0.0:0"}, "without authentication"},
	} {
		got := talaria(t, "", append([]string{"gateway"}, test.args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q: got %+v", test.args, got)
		}
	}
}

// Abandoned sessions of a gateway keep no more processes than its flags say.
func TestGatewaySessions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".mcp.json")
	writeServers(t, file, map[string]string{"sums": `{}`})
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"gateway", "--config", file, "--http", "127.0.0.1:0", "--max-sessions", "3"}, &console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	}()
	url := stderr.wait(t, `http://\S+/mcp`)
	post := func(id, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
		return res.Header.Get("Mcp-Session-Id")
	}
	opened := 0
	for range 10 {
		if id := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); id != "" {
			post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			post(id, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`) // one that is unused makes room
			opened++
		}
	}
	if opened != 3 {
		t.Errorf("%d sessions were opened", opened)
	}
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("got %d and %q", c, stderr.String())
	}
}
