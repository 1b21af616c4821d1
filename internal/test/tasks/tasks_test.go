package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

func TestTasks(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s, gate := harness.TaskServer(t)
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}

			task := c.Ask("tools/call", `"name":"gated"`).Result
			if task.ResultType != "task" || task.Status != "working" {
				t.Fatalf("%+v", task)
			}
			if got := c.Until(task.TaskID, "working").Result; got.ResultType != "complete" {
				t.Errorf("%+v", got)
			}
			gate <- struct{}{}
			if got := c.Until(task.TaskID, "completed").Result; got.StatusMessage != "half way" || got.Result.Content[0].Text != "through" {
				t.Errorf("%+v", got)
			}

			task = c.Ask("tools/call", `"name":"gated"`).Result
			if got := c.Ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, task.TaskID)); got.Error != nil || got.Result.ResultType != "complete" {
				t.Errorf("%+v", got)
			}
			c.Until(task.TaskID, "cancelled")

			if got := c.Until(c.Ask("tools/call", `"name":"broken"`).Result.TaskID, "failed").Result; got.Error == nil || got.Error.Code != 4711 {
				t.Errorf("%+v", got)
			}
			if got := c.Until(c.Ask("tools/call", `"name":"failing"`).Result.TaskID, "completed").Result; got.Result.Content[0].Text != "no luck" {
				t.Errorf("%+v", got)
			}
			if got := c.Until(c.Ask("tools/call", `"name":"panicking"`).Result.TaskID, "failed").Result; got.Error == nil || got.Error.Code != -32603 {
				t.Errorf("%+v", got)
			}
			if got := c.Ask("tasks/get", `"taskId":"nobody's"`); got.Error == nil || got.Error.Code != protocol.CodeInvalidParams {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTasksAsk(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s, _ := harness.TaskServer(t)
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			answer := func(id, key string) {
				t.Helper()
				if got := c.Ask("tasks/update", fmt.Sprintf(`"taskId":%q`, id)); got.Error == nil || !strings.Contains(got.Error.Message, "inputResponses is missing") {
					t.Errorf("without answers: %+v", got)
				}
				if got := c.Ask("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"yes":true}}}`, id, key)); got.Error != nil {
					t.Fatal(got.Error)
				}
			}
			id := c.Ask("tools/call", `"name":"asking"`).Result.TaskID
			if got := c.Until(id, "input_required").Result; !strings.Contains(string(got.InputRequests["sure"]), "Sure?") {
				t.Errorf("%+v", got)
			}
			answer(id, "sure")
			if got := c.Until(id, "completed").Result.Result.Content[0].Text; got != "sure: true" {
				t.Errorf("got %q", got)
			}
			// First a question of the request, then one of the task.
			round := c.Ask("tools/call", `"name":"later"`).Result
			if round.ResultType != "input_required" || round.InputRequests["first"] == nil {
				t.Fatalf("%+v", round)
			}
			id = c.Ask("tools/call", fmt.Sprintf(`"name":"later","requestState":%q,"inputResponses":{"first":{"action":"accept","content":{"yes":true}}}`, round.RequestState)).Result.TaskID
			c.Until(id, "input_required")
			answer(id, "second")
			if got := c.Until(id, "completed").Result.Result.Content[0].Text; got != "true true" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTasksForClientsWithout(t *testing.T) {
	s, _ := harness.TaskServer(t)
	c := harness.OpenStream(t, s, protocol.Latest)
	for call, want := range map[string]string{
		`"tools/call","params":{"name":"failing",$META}`: `"text":"no luck"`,
		`"tools/call","params":{"name":"broken",$META}`:  `"code":-32021,"message":"the client did not declare the extension io.modelcontextprotocol/tasks, which this request needs","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
		`"tasks/get","params":{"taskId":"x",$META}`:      `"code":-32021`,
	} {
		heard := c.Say(harness.Expand(`{"jsonrpc":"2.0","id":1,"method":`+call+`}`, protocol.Latest))
		if !strings.Contains(heard[0], want) {
			t.Errorf("%s\ngot  %s\nwant %s", call, heard[0], want)
		}
	}
	plain := harness.OpenStream(t, harness.Fixture(t, nil), protocol.Latest)
	if heard := plain.Say(harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",$META}}`, protocol.Latest)); !strings.Contains(heard[0], "-32601") {
		t.Errorf("a server without tasks: %s", heard)
	}
}

func TestTaskNotifications(t *testing.T) {
	s, gate := harness.TaskServer(t)
	c := &harness.TaskClient{T: t, C: harness.OpenStream(t, s, protocol.Latest)}
	out := c.C.(*harness.Stream)
	id := c.Ask("tools/call", `"name":"gated_twice"`).Result.TaskID
	read := func() (m harness.TaskAnswer) {
		line, err := out.Out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	fmt.Fprintf(out.In, `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q,"another's"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`+"\n", id)
	if m := read(); m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%+v", m)
	}
	for _, status := range []string{"working", "completed"} {
		gate <- struct{}{}
		m := read()
		if m.Method != "notifications/tasks" || m.Params.TaskID != id || m.Params.Status != status || m.Params.StatusMessage != "half way" || m.Params.Meta["io.modelcontextprotocol/subscriptionId"] != "sub" {
			t.Errorf("%+v", m)
		}
	}
	fmt.Fprintln(out.In, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}`)
}

// The context of a task tells why the task is to end.
func TestWhyATaskEnds(t *testing.T) {
	for name, test := range map[string]struct {
		ttl  time.Duration
		end  func(t *testing.T, s *mcp.Server, cancel func())
		want error
	}{
		"cancelled": {time.Hour, func(_ *testing.T, _ *mcp.Server, cancel func()) { cancel() }, mcp.ErrTaskCancelled},
		"too long":  {time.Millisecond, func(*testing.T, *mcp.Server, func()) {}, mcp.ErrTaskExpired},
		"shut down": {time.Hour, func(t *testing.T, s *mcp.Server, _ func()) {
			now, cancel := context.WithCancel(t.Context())
			cancel()
			_ = s.Shutdown(now) // which waits for nothing
		}, mcp.ErrServerClosed},
	} {
		t.Run(name, func(t *testing.T) {
			causes := make(chan error, 1)
			s := harness.Fixture(t, nil)
			s.MustAdd(mcp.Tool("endless", func(f *mcp.Frame, _ struct{}) (string, error) {
				<-f.Done()
				causes <- context.Cause(f)
				return "", nil
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, TTL: test.ttl})))
			c := &harness.TaskClient{T: t, C: harness.Transports[0].Open(t, s, protocol.Latest)}
			task := c.Ask("tools/call", `"name":"endless"`).Result
			test.end(t, s, func() { c.Ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, task.TaskID)) })
			if got := <-causes; !errors.Is(got, test.want) {
				t.Errorf("the task ends because: %v; want %v", got, test.want)
			}
		})
	}
}
