package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

type TaskAnswer struct {
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

// TaskClient calls tools as a client that takes tasks.
type TaskClient struct {
	T  *testing.T
	C  Conversation
	id int
}

func (c *TaskClient) Ask(method, params string) TaskAnswer {
	c.T.Helper()
	c.id++
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	heard := c.C.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, c.id, method, params, meta))
	var answer TaskAnswer
	if err := json.Unmarshal([]byte(heard[len(heard)-1]), &answer); err != nil {
		c.T.Fatalf("%s: %v", heard, err)
	}
	return answer
}

// until asks for the state of a task until it has one of these.
func (c *TaskClient) Until(id string, states ...string) TaskAnswer {
	c.T.Helper()
	for range 10_000 {
		answer := c.Ask("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		for _, state := range states {
			if answer.Result.Status == state {
				return answer
			}
		}
	}
	c.T.Fatalf("task %s never became %v", id, states)
	return TaskAnswer{}
}

type YesForm struct {
	Yes bool `json:"yes"`
}

// TaskServer returns a server with tools that run as tasks, and the gate that
// lets "gated" end and "gated_twice" go on, twice.
func TaskServer(t *testing.T) (*mcp.Server, chan struct{}) {
	s := Fixture(t, nil)
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
		mcp.Tool("gated", func(f *mcp.Frame, _ struct{}) (string, error) {
			if err := f.Progress(1, 2, "half way"); err != nil {
				return "", err
			}
			return "through", pass(f)
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("gated_twice", func(f *mcp.Frame, _ struct{}) (string, error) {
			if err := pass(f); err != nil {
				return "", err
			}
			if err := f.Progress(1, 2, "half way"); err != nil {
				return "", err
			}
			return "through", pass(f)
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("broken", func(*mcp.Frame, struct{}) (string, error) { return "", &mcp.Error{Code: 4711} }, mcp.AsTask(&mcp.TaskOptions{Required: true, Wait: -1})),
		mcp.Tool("failing", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("no luck") }, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("panicking", func(*mcp.Frame, struct{}) (string, error) { panic("x") }, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("asking", func(f *mcp.Frame, _ struct{}) (string, error) {
			sure, err := mcp.Elicit[YesForm](f, "sure", "Sure?")
			return fmt.Sprintf("sure: %v", sure.Value.Yes), err
		}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
		mcp.Tool("later", func(f *mcp.Frame, _ struct{}) (string, error) {
			first, err := mcp.Elicit[YesForm](f, "first", "Begin?")
			if err != nil {
				return "", err
			}
			if err := f.Detach(); err != nil {
				return "", err
			}
			second, err := mcp.Elicit[YesForm](f, "second", "Go on?")
			return fmt.Sprintf("%v %v", first.Value.Yes, second.Value.Yes), err
		}, mcp.AsTask(&mcp.TaskOptions{Manual: true})),
	)
	return s, gate
}
