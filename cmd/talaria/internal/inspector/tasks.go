package inspector

import (
	"context"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// runningTask is the state of a task, as the page shows it.
type runningTask struct {
	ID      string     `json:"id"` // as the server wrote it
	Status  string     `json:"status"`
	Message string     `json:"message,omitempty"`
	Created *time.Time `json:"created,omitempty"`
}

// maxTaskID is the length of an id that the page can name, in bytes.
const maxTaskID = 1 << 10

func taskOf(t *client.Task) *runningTask {
	shown := &runningTask{Status: string(t.Status), Message: visible.Line(t.StatusMessage, visible.Sentence)}
	if len(t.ID) <= maxTaskID {
		shown.ID = t.ID
	}
	if !t.Created.IsZero() {
		shown.Created = &t.Created
	}
	return shown
}

// listsTasks reports whether a server lists its tasks, as those of 2025-11-25 may.
func listsTasks(c *client.Client) bool {
	return c.Revision() == protocol.V20251125 && jsonx.Lookup(c.Server().Capabilities.Tasks, []string{"list"}) != nil
}

// maxTasks is how many tasks of a server are shown.
const maxTasks = 200

// taskList is the tasks of a server of 2025-11-25, the first ones. Those that cannot be read are left out.
func taskList(ctx context.Context, c *client.Client) (any, error) {
	shown := struct {
		Tasks []*runningTask `json:"tasks"`
		More  bool           `json:"more,omitempty"`
	}{Tasks: []*runningTask{}}
	for text, err := range c.List(ctx, protocol.MethodTasksList, "tasks") {
		if err != nil {
			return nil, err
		}
		if shown.More = len(shown.Tasks) == maxTasks; shown.More {
			break
		}
		var t struct {
			TaskID, Status, StatusMessage string
			CreatedAt                     jsonx.Time
		}
		if jsonx.Unmarshal(text, &t) == nil && t.TaskID != "" {
			shown.Tasks = append(shown.Tasks, taskOf(&client.Task{ID: t.TaskID, Status: protocol.TaskStatus(visible.Line(t.Status, visible.Name)), StatusMessage: t.StatusMessage, Created: t.CreatedAt.Time}))
		}
	}
	return shown, nil
}
