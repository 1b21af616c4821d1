package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// Revision 2025-11-25 has tasks of its own (basic/utilities/tasks): the client requests one
// with the call, and asks for its result apart.

// legacyTask is the member of tools/call that requests a task for as long as the server likes.
const legacyTask = `,"task":{}`

// callsTasks reports whether the server of a connection makes tasks of calls that request one.
func (conn *connection) callsTasks() bool {
	return conn != nil && conn.revision() == protocol.V20251125 && jsonx.Lookup(conn.server.Capabilities.Tasks, []string{"requests", "tools", "call"}) != nil
}

// asLegacyTask reports whether a tools/call must request a task: the options want one, or the
// tool, as far as it was listed, takes no other call.
func (c *Client) asLegacyTask(r *request) bool {
	if c.opts.Tasks == TasksOff || !c.life.conn.Load().callsTasks() {
		return false
	}
	if r.options.asTask {
		return true
	}
	tool := c.tools.get(r.name)
	return tool != nil && tool.tool.Execution != nil && tool.tool.Execution.TaskSupport == protocol.TaskRequired
}

// doCall sends a tools/call. A server that takes it only as a task refuses it first, if the
// tool was not listed: "Servers MUST return a -32601 (Method not found) error if a client does
// not attempt to do so" (basic/utilities/tasks of 2025-11-25).
func (c *Client) doCall(ctx context.Context, r *request) (json.RawMessage, error) {
	if r.legacy = c.asLegacyTask(r); r.legacy {
		r.members = append(r.members, legacyTask...)
	}
	raw, err := r.do(ctx)
	fault, refused := errors.AsType[*protocol.Error](err)
	if refused && fault.Code == protocol.CodeMethodNotFound && !r.legacy && c.opts.Tasks != TasksOff && r.conn.callsTasks() {
		// A tool may also fail with this code after it has run: only the list tells.
		if _, unlisted := c.tools.need(ctx, r.name); unlisted == nil && c.asLegacyTask(r) {
			r.legacy, r.members = true, append(r.members, legacyTask...)
			raw, err = r.do(ctx)
		}
	}
	if err == nil && r.legacy {
		if task := jsonx.Lookup(raw, []string{"task"}); task != nil {
			raw, r.task = task, true
		}
	}
	return raw, err
}

// finished adds the outcome of a task of 2025-11-25 that has ended, or waits for it where the
// server asks: it sends its questions while the client waits.
func (w *taskWait) finished(ctx context.Context, task *Task) error {
	asks := task.Status == protocol.TaskInputRequired
	if task.Status == protocol.TaskWorking || task.Status == protocol.TaskCancelled || !w.client.life.conn.Load().callsTasks() || task.Result != nil || task.Fault != nil {
		return nil
	}
	r, err := w.client.request(protocol.MethodTasksResult+" "+task.ID, protocol.MethodTasksResult, task.ID, named("taskId", task.ID), w.each)
	if err != nil {
		return err
	}
	r.safe = true
	began := time.Now()
	raw, err := r.do(ctx)
	if asks {
		w.clock.stood(began)
	}
	fault, ended := errors.AsType[*protocol.Error](err)
	switch {
	case err == nil:
		task.Status, task.Result = protocol.TaskCompleted, raw
	case asks && errors.Is(err, ErrTimeout):
		return nil // it may work again
	case ended:
		return fault
	}
	return err
}
