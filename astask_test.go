package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

type taskAnswer struct {
	ID     json.RawMessage
	Result struct {
		ResultType, TaskID, Status, StatusMessage, RequestState string
		InputRequests                                           map[string]json.RawMessage
		Content                                                 []struct{ Text string }
		Result                                                  struct{ Content []struct{ Text string } }
		Error                                                   *struct{ Code int }
		Meta                                                    map[string]json.RawMessage `json:"_meta"`
	}
	Error  *protocol.Error
	Method string
	Params struct {
		TaskID, Status, StatusMessage string
		Meta                          map[string]any `json:"_meta"`
	}
}

// taskClient calls tools as a client that takes tasks.
type taskClient struct {
	t  *testing.T
	c  conversation
	id int
}

func (c *taskClient) ask(method, params string) taskAnswer {
	c.t.Helper()
	c.id++
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	heard := c.c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, c.id, method, params, meta))
	var answer taskAnswer
	if err := json.Unmarshal([]byte(heard[len(heard)-1]), &answer); err != nil {
		c.t.Fatalf("%s: %v", heard, err)
	}
	return answer
}

// until asks for the state of a task until it has one of these.
func (c *taskClient) until(id string, states ...string) taskAnswer {
	c.t.Helper()
	for range 10_000 {
		answer := c.ask("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		for _, state := range states {
			if answer.Result.Status == state {
				return answer
			}
		}
	}
	c.t.Fatalf("task %s never became %v", id, states)
	return taskAnswer{}
}

type yesForm struct {
	Yes bool `json:"yes"`
}

// taskServer returns a server with tools that run as tasks, and the gate that
// lets "gated" end and "gated_twice" go on, twice.
func taskServer(t *testing.T) (*mcp.Server, chan struct{}) {
	s := fixture(t, nil)
	gate := make(chan struct{})
	pass := func(f *mcp.Frame) error {
		select {
		case <-gate:
			return nil
		case <-f.Done():
			return f.Err()
		}
	}
	s.MustAdd(
		mcp.Tool("gated", func(f *mcp.Frame, _ empty) (string, error) {
			if err := f.Progress(1, 2, "half way"); err != nil {
				return "", err
			}
			return "through", pass(f)
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("gated_twice", func(f *mcp.Frame, _ empty) (string, error) {
			if err := pass(f); err != nil {
				return "", err
			}
			if err := f.Progress(1, 2, "half way"); err != nil {
				return "", err
			}
			return "through", pass(f)
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("broken", func(*mcp.Frame, empty) (string, error) { return "", &mcp.Error{Code: 4711} }, mcp.AsTask(&mcp.TaskOptions{Required: true, Wait: -1})),
		mcp.Tool("failing", func(*mcp.Frame, empty) (string, error) { return "", errors.New("no luck") }, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("panicking", func(*mcp.Frame, empty) (string, error) { panic("x") }, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("asking", func(f *mcp.Frame, _ empty) (string, error) {
			sure, err := mcp.Elicit[yesForm](f, "sure", "Sure?")
			return fmt.Sprintf("sure: %v", sure.Value.Yes), err
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("later", func(f *mcp.Frame, _ empty) (string, error) {
			first, err := mcp.Elicit[yesForm](f, "first", "Begin?")
			if err != nil {
				return "", err
			}
			if err := f.Detach(); err != nil {
				return "", err
			}
			second, err := mcp.Elicit[yesForm](f, "second", "Go on?")
			return fmt.Sprintf("%v %v", first.Value.Yes, second.Value.Yes), err
		}, mcp.AsTask(&mcp.TaskOptions{Manual: true})),
	)
	return s, gate
}

func TestTasks(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s, gate := taskServer(t)
			c := &taskClient{t: t, c: transport.open(t, s, protocol.Latest)}

			task := c.ask("tools/call", `"name":"gated"`).Result
			if task.ResultType != "task" || task.Status != "working" {
				t.Fatalf("%+v", task)
			}
			if got := c.until(task.TaskID, "working").Result; got.ResultType != "complete" {
				t.Errorf("%+v", got)
			}
			gate <- struct{}{}
			if got := c.until(task.TaskID, "completed").Result; got.StatusMessage != "half way" || got.Result.Content[0].Text != "through" {
				t.Errorf("%+v", got)
			}

			task = c.ask("tools/call", `"name":"gated"`).Result
			if got := c.ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, task.TaskID)); got.Error != nil || got.Result.ResultType != "complete" {
				t.Errorf("%+v", got)
			}
			c.until(task.TaskID, "cancelled")

			if got := c.until(c.ask("tools/call", `"name":"broken"`).Result.TaskID, "failed").Result; got.Error == nil || got.Error.Code != 4711 {
				t.Errorf("%+v", got)
			}
			if got := c.until(c.ask("tools/call", `"name":"failing"`).Result.TaskID, "completed").Result; got.Result.Content[0].Text != "no luck" {
				t.Errorf("%+v", got)
			}
			if got := c.until(c.ask("tools/call", `"name":"panicking"`).Result.TaskID, "failed").Result; got.Error == nil || got.Error.Code != -32603 {
				t.Errorf("%+v", got)
			}
			if got := c.ask("tasks/get", `"taskId":"nobody's"`); got.Error == nil || got.Error.Code != protocol.CodeInvalidParams {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTasksAsk(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s, _ := taskServer(t)
			c := &taskClient{t: t, c: transport.open(t, s, protocol.Latest)}
			answer := func(id, key string) {
				t.Helper()
				if got := c.ask("tasks/update", fmt.Sprintf(`"taskId":%q`, id)); got.Error == nil || !strings.Contains(got.Error.Message, "inputResponses is missing") {
					t.Errorf("without answers: %+v", got)
				}
				if got := c.ask("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"yes":true}}}`, id, key)); got.Error != nil {
					t.Fatal(got.Error)
				}
			}
			id := c.ask("tools/call", `"name":"asking"`).Result.TaskID
			if got := c.until(id, "input_required").Result; !strings.Contains(string(got.InputRequests["sure"]), "Sure?") {
				t.Errorf("%+v", got)
			}
			answer(id, "sure")
			if got := c.until(id, "completed").Result.Result.Content[0].Text; got != "sure: true" {
				t.Errorf("got %q", got)
			}
			// First a question of the request, then one of the task.
			round := c.ask("tools/call", `"name":"later"`).Result
			if round.ResultType != "input_required" || round.InputRequests["first"] == nil {
				t.Fatalf("%+v", round)
			}
			id = c.ask("tools/call", fmt.Sprintf(`"name":"later","requestState":%q,"inputResponses":{"first":{"action":"accept","content":{"yes":true}}}`, round.RequestState)).Result.TaskID
			c.until(id, "input_required")
			answer(id, "second")
			if got := c.until(id, "completed").Result.Result.Content[0].Text; got != "true true" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTasksForClientsWithout(t *testing.T) {
	s, _ := taskServer(t)
	c := openStream(t, s, protocol.Latest)
	for call, want := range map[string]string{
		`"tools/call","params":{"name":"failing",$META}`: `"text":"no luck"`,
		`"tools/call","params":{"name":"broken",$META}`:  `"code":-32021,"message":"the client did not declare the extension io.modelcontextprotocol/tasks, which this request needs","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
		`"tasks/get","params":{"taskId":"x",$META}`:      `"code":-32021`,
	} {
		heard := c.say(expand(`{"jsonrpc":"2.0","id":1,"method":`+call+`}`, protocol.Latest))
		if !strings.Contains(heard[0], want) {
			t.Errorf("%s\ngot  %s\nwant %s", call, heard[0], want)
		}
	}
	plain := openStream(t, fixture(t, nil), protocol.Latest)
	if heard := plain.say(expand(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",$META}}`, protocol.Latest)); !strings.Contains(heard[0], "-32601") {
		t.Errorf("a server without tasks: %s", heard)
	}
}

func TestTaskNotifications(t *testing.T) {
	s, gate := taskServer(t)
	c := &taskClient{t: t, c: openStream(t, s, protocol.Latest)}
	out := c.c.(*stream)
	id := c.ask("tools/call", `"name":"gated_twice"`).Result.TaskID
	read := func() (m taskAnswer) {
		line, err := out.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	fmt.Fprintf(out.in, `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q,"another's"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`+"\n", id)
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
	fmt.Fprintln(out.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}`)
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
			s := fixture(t, nil)
			s.MustAdd(mcp.Tool("endless", func(f *mcp.Frame, _ empty) (string, error) {
				<-f.Done()
				causes <- context.Cause(f)
				return "", nil
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, TTL: test.ttl})))
			c := &taskClient{t: t, c: transports[0].open(t, s, protocol.Latest)}
			task := c.ask("tools/call", `"name":"endless"`).Result
			test.end(t, s, func() { c.ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, task.TaskID)) })
			if got := <-causes; !errors.Is(got, test.want) {
				t.Errorf("the task ends because: %v; want %v", got, test.want)
			}
		})
	}
}
