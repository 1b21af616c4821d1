package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// taskOnly serves a tool of 2025-11-25 that is called as a task only.
func taskOnly(t *testing.T) string {
	t.Helper()
	const task = `"taskId":"t1","status":"%s","createdAt":"2026-07-28T10:00:00Z","lastUpdatedAt":"2026-07-28T10:00:00Z","ttl":null,"pollInterval":20`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Task *struct{} }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"t","version":"1"}}`
		case "tools/list":
			result = `"result":{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`
		case "tools/call":
			if result = `"result":{"task":{` + fmt.Sprintf(task, "working") + `}}`; m.Params.Task == nil {
				result = `"error":{"code":-32601,"message":"slow requires a task"}`
			}
		case "tasks/get":
			result = `"result":{` + fmt.Sprintf(task, "completed") + `}`
		case "tasks/result":
			result = `"result":{"content":[{"type":"text","text":"it took a while"}]}`
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
			return
		default:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestTaskCall: a tool that is called as a task only is called so, with and without a look at
// the list; without tasks, the server's refusal is shown.
func TestTaskCall(t *testing.T) {
	t.Parallel()
	url := taskOnly(t)
	for _, flags := range []string{"", "--no-check"} {
		if got := talaria(t, "", append([]string{"call", url, "slow"}, strings.Fields(flags)...)...); got.code != exitOK || got.stdout != "it took a while\n" {
			t.Errorf("%q: got %+v", flags, got)
		}
	}
	if got := talaria(t, "", "call", url, "slow", "--no-task"); got.code == exitOK || !strings.Contains(got.stderr, "requires a task") {
		t.Errorf("without tasks: got %+v", got)
	}
	if got := talaria(t, "call_tool slow\n", "http", url); got.code != exitOK || !strings.Contains(got.stdout, "it took a while") {
		t.Errorf("the shell: got %+v", got)
	}
}
