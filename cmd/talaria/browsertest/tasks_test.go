package browsertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// serveTasks is a server of 2025-11-25 whose tools are called as tasks only: slow ends at its
// third look, endless when it is cancelled. A hostile one lists what no task is.
func serveTasks(hostile bool) {
	type task struct {
		name, status string
		looks        int
	}
	tasks := map[string]*task{}
	var order []string
	shown := func(id string) string {
		t := tasks[id]
		return fmt.Sprintf(`"taskId":%q,"status":%q,"statusMessage":"look %d of %s","createdAt":"2026-07-28T10:00:00Z","lastUpdatedAt":"2026-07-28T10:00:00Z","ttl":60000,"pollInterval":50`, id, t.status, t.looks, t.name)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name, TaskID string
				Task         *struct{}
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result, t := "", tasks[m.Params.TaskID]
		switch {
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"endless","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`
		case m.Method == "tools/call" && m.Params.Task != nil:
			id := fmt.Sprint("task-", len(order)+1)
			order = append(order, id)
			tasks[id] = &task{name: m.Params.Name, status: "working"}
			result = `{"task":{` + shown(id) + `}}`
		case m.Method == "tasks/list" && hostile:
			result = `{"tasks":[` + hostileTasks + `,` + many(300, "@", `{"taskId":"more @","status":"working"}`) + `],"nextCursor":"again"}`
		case m.Method == "tasks/list":
			var list []string
			for _, id := range order {
				list = append(list, "{"+shown(id)+"}")
			}
			result = `{"tasks":[` + strings.Join(list, ",") + `]}`
		case t != nil && m.Method == "tasks/get":
			if t.looks++; t.name == "slow" && t.looks == 3 {
				t.status = "completed"
			}
			result = "{" + shown(m.Params.TaskID) + "}"
		case t != nil && m.Method == "tasks/cancel":
			t.status = "cancelled"
			result = "{" + shown(m.Params.TaskID) + "}"
		case t != nil && m.Method == "tasks/result":
			result = `{"content":[{"type":"text","text":"it took a while"}]}`
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s without a task"}}`+"\n", m.ID, m.Method)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

// hostileTasks are invalid tasks, and tasks with unusual content.
const hostileTasks = `5,null,{"status":"working"},{"taskId":7,"status":"working"},{"taskId":"pay\u202enoisrev","status":"constructor","statusMessage":"<img src=x onerror=alert(1)>\u202e\n"},` +
	`{"taskId":"__proto__","status":"__proto__"},{"taskId":"unread","status":"working","createdAt":"never"},{"taskId":"same","status":"working","createdAt":"9999-12-31T23:59:59Z"},{"taskId":"same","status":"toString"}`

// TestHostileTasks: the page shows the valid part of an invalid list of tasks, up to a limit.
func TestHostileTasks(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "tasks", "hostile"))
	b.until(`document.querySelector('nav button[data-tool]')`)
	b.tabTo("Server")
	b.press(enter)
	b.until(`document.querySelectorAll('.server tbody tr').length === 200`)
	b.reads("The server has more.")
	got := eval[string](b, `[...document.querySelectorAll('.server tbody tr')].slice(0, 5).map(r => r.cells[0].innerText + ': ' + r.cells[1].innerText + ' ' + r.cells[3].innerText).join('|')`)
	if want := "pay�noisrev: constructor <img src=x onerror=alert(1)>� |__proto__: __proto__ |same: working Cancel|same: toString |more 0: working Cancel"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestTasks: a tool that is called as a task only can be called; running tasks have a list, in
// which they are cancelled, and so do those of the server.
func TestTasks(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "tasks"))
	b.call("slow")
	b.until(`document.querySelector('[data-state=done] .view').innerText.includes('it took a while')`)
	b.reads("runs as a task")
	b.call("endless")
	b.until(`document.querySelector('section[aria-label=Running] li').innerText.includes('of endless')`)
	b.tabTo("Cancel endless")
	b.press(enter)
	b.until(`document.querySelector('.result[data-state=cancelled]') && !document.querySelector('section[aria-label=Running]')`)
	b.ctrl(enter)
	b.until(`document.querySelector('section[aria-label=Running]')`)
	b.tabTo("Server")
	b.press(enter)
	b.until(`[...document.querySelectorAll('.server tbody tr')].map(e => e.cells[0].innerText + ' ' + e.cells[1].innerText.split(' ')[0]).join() === 'task-1 completed,task-2 cancelled,task-3 working'`)
	b.tabTo("Cancel task-3")
	b.press(enter)
	b.until(`document.querySelectorAll('.server tbody tr')[2].innerText.includes('cancelled') && !document.querySelector('section[aria-label=Running]')`)
}
