package desk

import (
	"context"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/pause"
)

// The time between two looks at a task, unless the server names one.
const (
	usualPoll = 500 * time.Millisecond
	leastPoll = 50 * time.Millisecond
	mostPoll  = 5 * time.Second
	hangUp    = 2 * time.Second // for telling the server that a task is not wanted
)

// Call calls a tool within an Operation. A call that became a task is waited
// for, and every answer about it is a sign of life.
func (d *Desk) Call(ctx context.Context, c *client.Client, name string, args any, call ...client.CallOption) (*client.CallToolResult, error) {
	result, err := c.Call(ctx, name, args, append(call, client.Detached())...)
	if err != nil || result.Task == nil {
		return result, err
	}
	d.mu.Lock()
	bar, wait := d.bar, d.wait
	d.mu.Unlock()
	task := result.Task
	for !task.Status.Final() && task.Status != client.TaskInputRequired {
		wait.heard()
		bar.Tell(0, 0, task.StatusMessage)
		if err := untilPoll(ctx, task.PollInterval); err != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUp)
			defer cancel()
			_ = c.CancelTask(last, task.ID) // it ends by itself, too
			return nil, err
		}
		if task, err = c.Task(ctx, task.ID, call...); err != nil {
			return nil, err
		}
	}
	if task.Status == client.TaskInputRequired {
		wait.pause() // the client answers, and says no more before the end
		defer wait.resume()
	}
	return c.WaitTask(ctx, task, call...)
}

func untilPoll(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		d = usualPoll
	}
	return pause.For(ctx, min(max(d, leastPoll), mostPoll))
}
