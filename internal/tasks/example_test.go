package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/protocol"
)

func ExampleManager() {
	m := tasks.NewManager(tasks.Config{}, func(s tasks.State) { fmt.Println("now", s.Record.Status) })
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	task, err := m.Create("ada", 0, 0, cancel)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{"content":[]}`), nil); err != nil {
		fmt.Println(err)
	}
	record, err := m.Get(ctx, "ada", task.Record().ID)
	fmt.Println(string(record.Result), err)
	_, err = m.Get(ctx, "eve", task.Record().ID)
	fmt.Println(err != nil)
	// Output:
	// now completed
	// {"content":[]} <nil>
	// true
}
