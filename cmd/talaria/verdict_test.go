package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// promising serves tools whose results may not be what their output schemas promise.
func promising(t *testing.T, revision string) string {
	t.Helper()
	results := map[string]string{
		"fits":    `{"content":[],"structuredContent":{"n":1}}`,
		"none":    `{"content":[{"type":"text","text":"shown"}]}`,
		"misfits": `{"content":[{"type":"text","text":"shown"}],"structuredContent":{"n":"x"}}`,
		"fails":   `{"content":[{"type":"text","text":"shown"}],"isError":true}`,
		"broken":  `{"content":[{"type":"text","text":"shown"}],"structuredContent":{"n":1}}`,
		"free":    `{"content":[{"type":"text","text":"shown"}]}`,
	}
	var tools []string
	for name := range results {
		output := `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
		switch name {
		case "broken":
			output = `,"outputSchema":{"type":"objekt"}`
		case "free":
			output = ""
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, name, output))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"` + revision + `","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + strings.Join(tools, ",") + `]}`
		case "tools/call":
			result = results[m.Params.Name]
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// A result that is not what the output schema promises is shown with a verdict, and
// fails with --strict alone.
func TestVerdict(t *testing.T) {
	t.Parallel()
	const none, misfit, broken = "its result has no structured content", "does not fit the output schema of the tool:\n         n: must be", "the output schema of the tool is broken"
	for _, test := range []struct{ revision, tool, want string }{
		{"2025-06-18", "fits", ""}, {"2025-06-18", "none", none}, {"2025-06-18", "misfits", misfit}, {"2025-06-18", "broken", broken}, {"2025-06-18", "free", ""},
		{"2025-11-25", "none", none}, {"2025-11-25", "misfits", misfit},
		{"2025-03-26", "none", ""}, {"2024-11-05", "misfits", ""}, // which have no output schemas
	} {
		url := promising(t, test.revision)
		for _, flags := range []string{"", "--json", "--strict", "--strict --no-check", "--strict --json"} {
			got := talaria(t, "", append([]string{"call", url, test.tool}, strings.Fields(flags)...)...)
			code := exitOK
			if test.want != "" && strings.Contains(flags, "--strict") {
				code = exitTool
			}
			said := strings.ReplaceAll(got.stderr, "\n       n:", "\n         n:") // of an error
			if got.code != code || (test.want == "") != (got.stderr == "") || !strings.Contains(said, test.want) || got.stdout == "" {
				t.Errorf("%s, %s %s: got %+v", test.revision, test.tool, flags, got)
			}
		}
	}
	got := talaria(t, "", "call", promising(t, "2025-06-18"), "fails", "--strict")
	if got.code != exitTool || got.stderr != "error: the tool \"fails\" returned an error\n" {
		t.Errorf("isError: got %+v", got)
	}
	shell := talaria(t, "call_tool none\n", "http", promising(t, "2025-06-18"))
	if shell.code != exitOK || !strings.Contains(shell.stderr, none) {
		t.Errorf("the shell: got %+v", shell)
	}
}
