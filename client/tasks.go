package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// TaskStatus is the state of a task.
type TaskStatus string

// The states of tasks. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final tells whether a task in that state has ended.
func (s TaskStatus) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Task is the state of a call that outlives its request
// (the extension io.modelcontextprotocol/tasks).
type Task struct {
	ID            string
	Status        TaskStatus
	StatusMessage string
	Created       time.Time
	Updated       time.Time
	TTL           time.Duration           // from Created; 0 means unlimited
	PollInterval  time.Duration           // how often to ask; 0 means that the server does not say
	Requests      []protocol.InputRequest // what it asks, in TaskInputRequired
	Result        json.RawMessage         // of TaskCompleted
	Fault         json.RawMessage         // of TaskFailed: a JSON-RPC error
}

// The clients' side of polling.
const (
	defaultPoll = time.Second
	leastPoll   = 20 * time.Millisecond
	mostPoll    = time.Minute
)

// parseTask reads a task out of a result or a notification.
func parseTask(raw []byte) (*Task, error) {
	var wire struct {
		ID       string          `json:"taskId"`
		Status   TaskStatus      `json:"status"`
		Message  string          `json:"statusMessage"`
		Created  time.Time       `json:"createdAt"`
		Updated  time.Time       `json:"lastUpdatedAt"`
		TTL      *int64          `json:"ttlMs"`
		Poll     int64           `json:"pollIntervalMs"`
		Requests json.RawMessage `json:"inputRequests"`
		Result   json.RawMessage `json:"result"`
		Error    json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, fmt.Errorf("the server's task does not decode: %w", err)
	}
	if wire.ID == "" {
		return nil, errors.New("the server's task has no taskId")
	}
	t := &Task{ID: wire.ID, Status: wire.Status, StatusMessage: wire.Message, Created: wire.Created, Updated: wire.Updated,
		PollInterval: time.Duration(wire.Poll) * time.Millisecond, Result: wire.Result, Fault: wire.Error}
	if wire.TTL != nil {
		t.TTL = time.Duration(*wire.TTL) * time.Millisecond
	}
	switch t.Status {
	case TaskWorking, TaskInputRequired, TaskCompleted, TaskFailed, TaskCancelled:
	default:
		return nil, fmt.Errorf("the server's task has the unknown status %q", t.Status)
	}
	if wire.Requests != nil {
		var err error
		if t.Requests, err = parseInputRequests(wire.Requests); err != nil {
			return nil, fmt.Errorf("the questions of the server's task do not decode: %w", err)
		}
	}
	return t, nil
}

func (c *Client) taskRequest(ctx context.Context, method, id string, more []byte, options []CallOption) (json.RawMessage, error) {
	r, err := c.request(method+" "+id, method, id, join(named("taskId", id), more), options)
	if err != nil {
		return nil, err
	}
	if conn := c.conn.Load(); c.opts.Tasks == TasksOff || conn != nil && !conn.revision().Modern() {
		return nil, unsupported(r.op, method, "tasks need a modern revision and Options.Tasks")
	}
	r.safe = true // asking, answering and cancelling twice is as once
	return c.do(ctx, r)
}

// Task asks for the state of a task. One that does not exist is ErrNotFound.
func (c *Client) Task(ctx context.Context, id string, options ...CallOption) (*Task, error) {
	raw, err := c.taskRequest(ctx, "tasks/get", id, nil, options)
	if err != nil {
		return nil, err
	}
	task, err := parseTask(raw)
	return task, wrap("tasks/get "+id, "tasks/get", id, err)
}

// UpdateTask gives a task answers to its questions, by their keys.
func (c *Client) UpdateTask(ctx context.Context, id string, answers map[string]any, options ...CallOption) error {
	text, err := c.encoders.object([]byte(`"inputResponses":`), "answers", answers)
	if err != nil {
		return &Error{Op: "tasks/update " + id, Method: "tasks/update", Err: err}
	}
	_, err = c.taskRequest(ctx, "tasks/update", id, text, options)
	return err
}

// CancelTask asks a task to end. It may end otherwise all the same.
func (c *Client) CancelTask(ctx context.Context, id string, options ...CallOption) error {
	_, err := c.taskRequest(ctx, "tasks/cancel", id, nil, options)
	return err
}

// WaitTask waits for the result of a task and answers what it asks. It asks the
// server as often as that wants, for as long as ctx and the task last. When ctx
// ends the task is cancelled. Timeout and MaxTimeout bound each asking, not the
// waiting. OnProgress hears the task's status messages.
func (c *Client) WaitTask(ctx context.Context, task *Task, options ...CallOption) (*CallToolResult, error) {
	result, err := c.drive(ctx, task, newCallOptions(options), taskClock{})
	return result, wrap("wait for task "+task.ID, "tasks/get", task.ID, err)
}

// drive polls a task until it has ended, or the clock says that it takes too
// long.
func (c *Client) drive(ctx context.Context, task *Task, o *callOptions, clock taskClock) (*CallToolResult, error) {
	options := []CallOption{func(each *callOptions) { each.header, each.meta, each.timeout = o.header, o.meta, o.timeout }}
	answered := map[string]bool{}
	own := *task
	task = &own
	if task.Status.Final() && task.Result == nil && task.Fault == nil {
		task.Status = TaskWorking // a new task comes without its result: it has to be asked for
	}
	told := ""
	for {
		if message := task.StatusMessage; o.progress != nil && !task.Status.Final() && message != "" && message != told {
			told = message
			c.guard("OnProgress", func() { o.progress(Progress{Message: message}) })
		}
		if task.Status == TaskInputRequired {
			begin := time.Now()
			if err := c.answerTask(ctx, task, answered, options); err != nil {
				return nil, c.leave(ctx, task.ID, clock.own, err)
			}
			clock.stood(begin)
		}
		if done, result, err := task.outcome(); done {
			if err != nil {
				return nil, err
			}
			return decodeCall(result)
		}
		next, err := c.nextLook(ctx, task, clock, options)
		if err != nil {
			return nil, err
		}
		task = next
	}
}

// nextLook waits until it is time to look at a task again, and does.
func (c *Client) nextLook(ctx context.Context, task *Task, clock taskClock, options []CallOption) (*Task, error) {
	ctx, stop := clock.bound(ctx)
	defer stop()
	id := task.ID
	err := pause.For(ctx, task.poll())
	if err == nil {
		task, err = c.Task(ctx, task.ID, options...)
	}
	if err != nil {
		return nil, c.leave(ctx, id, clock.own, err)
	}
	return task, nil
}

// leave returns what to say of err, for which a task is waited for no more. The
// task is cancelled if its time is up. Otherwise somebody else may wait for it,
// unless it is this call's own and the server does not answer.
func (c *Client) leave(ctx context.Context, id string, own bool, err error) error {
	switch {
	case ctx.Err() != nil:
		err = stopped(ctx)
	case !own || !errors.Is(err, ErrTimeout):
		return err
	}
	c.abandon(id)
	return err
}

// poll returns how long to wait before asking again.
func (t *Task) poll() time.Duration {
	d := t.PollInterval
	if d == 0 {
		d = defaultPoll
	}
	return min(max(d, leastPoll), mostPoll)
}

// outcome tells whether a task has ended, and how.
func (t *Task) outcome() (done bool, result json.RawMessage, err error) {
	switch t.Status {
	case TaskCompleted:
		if t.Result == nil {
			return true, nil, errors.New("the server's task is completed but has no result")
		}
		return true, t.Result, nil
	case TaskFailed:
		if t.Fault == nil {
			return true, nil, fmt.Errorf("the task failed: %s", t.StatusMessage)
		}
		return true, nil, serverFault(t.Fault)
	case TaskCancelled:
		return true, nil, &Error{kind: ErrCancelled, Err: fmt.Errorf("the server cancelled the task: %s", t.StatusMessage)}
	}
	return false, nil, nil
}

// answerTask answers the questions of a task that were not answered before.
func (c *Client) answerTask(ctx context.Context, task *Task, answered map[string]bool, options []CallOption) error {
	var open []protocol.InputRequest
	for _, q := range task.Requests {
		if !answered[q.Key] {
			open = append(open, q)
		}
	}
	if len(open) == 0 {
		return nil
	}
	conn, err := c.current(ctx)
	if err != nil {
		return err
	}
	answers, err := c.answerAll(ctx, conn, open)
	if err != nil {
		if ctx.Err() == nil { // or else who waits for it leaves it
			c.abandon(task.ID)
		}
		return err
	}
	for _, q := range open {
		answered[q.Key] = true
	}
	_, err = c.taskRequest(ctx, "tasks/update", task.ID, append([]byte(`"inputResponses":`), answers...), options)
	return err
}

// abandon cancels a task that nobody waits for any more.
func (c *Client) abandon(id string) {
	c.note(func(ctx context.Context) {
		if err := c.CancelTask(ctx, id); err != nil {
			c.opts.Logger.Debug().Err(err).Str("task", id).Msg("a task was not cancelled")
		}
	})
}
