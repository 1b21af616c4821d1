package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/tasks"
)

// TaskOptions say how a tool runs as a task. The zero value is the default.
type TaskOptions struct {
	TTL          time.Duration // how long a task is kept, from its start; 0 means Options.Tasks.TTL
	PollInterval time.Duration // how often clients should ask for its state; 0 leaves it to them
	// Required refuses clients that take no tasks. Without it, the tool runs
	// for them as any other.
	Required bool
	// Manual leaves the moment to the handler, which calls Frame.Detach when
	// it has asked what it must know first. Without it, calls are tasks from
	// their start.
	Manual bool
}

// AsTask lets a tool outlive its request: clients that declare the extension
// io.modelcontextprotocol/tasks get a task at once and ask for its result
// later. The handler is the same in both cases; Elicit and the like work in
// it, too.
func AsTask(o TaskOptions) ComponentOption {
	return func(set *settings) {
		if o.TTL < 0 || o.PollInterval < 0 {
			set.fault("AsTask: TTL and PollInterval must not be negative")
		}
		set.use("AsTask", toolKind)
		set.task = &o
	}
}

// takesTasks tells whether the client of f declared the extension.
func takesTasks(f *frame.Frame) bool {
	_, ok := f.ClientCapabilities().Extensions[tasks.Extension]
	return ok && f.Revision().Has(protocol.PerRequestMeta)
}

// errNeedsTasks is the error for a client that did not.
func errNeedsTasks() *protocol.Error {
	fault := protocol.MissingCapability("extensions", tasks.Extension)
	fault.Message = fmt.Sprintf("the client did not declare the extension %s, which this request needs", tasks.Extension)
	return fault
}

// detachable makes calls of a tool able to become tasks.
func (s *Server) detachable(o *TaskOptions, call dispatch.Handler) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if !takesTasks(f) {
			if o.Required {
				return nil, errNeedsTasks()
			}
			if !o.Manual {
				return call(f)
			}
		}
		d := &detachedCall{server: s.host(f), options: o, handle: make(chan tasks.Record, 1), ended: make(chan outcome, 1)}
		return d.run(f, call)
	}
}

type outcome struct {
	result protocol.Result
	err    error
}

// detachedCall is a call that may become a task. It runs on a goroutine of its
// own, which the server's shutdown waits for.
type detachedCall struct {
	server  *Server
	options *TaskOptions
	handle  chan tasks.Record
	ended   chan outcome
	ctx     context.Context // of the handler: the request's until detached
	cancel  context.CancelCauseFunc
	follow  func() bool // ends following the request's context
	task    *tasks.Task
}

func (d *detachedCall) run(f *frame.Frame, call dispatch.Handler) (protocol.Result, error) {
	work, ok := d.server.running.Begin(context.WithoutCancel(f))
	if !ok {
		return nil, protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	d.ctx, d.cancel = context.WithCancelCause(work)
	d.follow = context.AfterFunc(f, func() { d.cancel(context.Cause(f)) })
	inner := f.WithContext(frame.WithDetacher(d.ctx, d))
	go func() {
		defer work.End()
		defer d.cancel(nil)
		result, err := d.server.dispatch().Guard(inner, func(inner *frame.Frame) (protocol.Result, error) {
			if !d.options.Manual {
				if err := inner.Detach(); err != nil {
					return nil, err
				}
			}
			return call(inner)
		})
		if d.task == nil {
			d.ended <- outcome{result, err}
			return
		}
		d.finish(inner, result, err)
	}()
	select {
	case record := <-d.handle:
		return tasks.Handle{Record: record}, nil
	case o := <-d.ended:
		return o.result, o.err
	}
}

// Detach implements frame.Detacher.
func (d *detachedCall) Detach(f *frame.Frame) (frame.Asker, func(string) error, bool, error) {
	if !takesTasks(f) {
		return nil, nil, false, nil
	}
	task, err := d.server.tasks.Create(f.Principal(), d.options.TTL, d.options.PollInterval, d.cancel)
	if err != nil {
		return nil, nil, false, err
	}
	d.follow()
	d.task = task
	d.handle <- task.Record()
	return &taskAsker{task}, task.Note, true, nil
}

// finish gives the task its outcome.
func (d *detachedCall) finish(f *frame.Frame, result protocol.Result, err error) {
	status, text, fault := tasks.Completed, json.RawMessage(nil), json.RawMessage(nil)
	if err == nil {
		_, err = d.server.dispatch().Guard(f, func(*frame.Frame) (protocol.Result, error) {
			var err error
			text, err = result.Append(nil, protocol.Wire{Revision: f.Revision()})
			return nil, err
		})
	}
	switch {
	case err == nil:
	case errors.Is(context.Cause(d.ctx), tasks.ErrCancelled):
		status, text = tasks.Cancelled, nil
	default:
		status, text, fault = tasks.Failed, nil, d.server.dispatch().Fault(err).Append(nil)
	}
	if err := d.task.Finish(status, text, fault); err != nil {
		d.server.logger.Error().Err(err).Str("name", f.Request().Params.Name).Msg("the state of a task could not be kept")
	}
}

// taskAsker puts the questions of a task to its client.
type taskAsker struct{ task *tasks.Task }

// Ask implements frame.Asker.
func (a *taskAsker) Ask(f *frame.Frame, questions []*frame.Question) ([]json.RawMessage, error) {
	requests := make([]protocol.InputRequest, len(questions))
	for i, q := range questions {
		params, err := q.Params(f)
		if err != nil {
			return nil, err
		}
		requests[i] = protocol.InputRequest{Key: q.Key(), Method: q.Method(), Params: params}
	}
	return a.task.Ask(f, requests)
}

// Recall implements frame.Asker: a task's handler does not run again.
func (a *taskAsker) Recall(*frame.Frame, string) (json.RawMessage, bool, error) {
	return nil, false, nil
}

// Keep implements frame.Asker.
func (a *taskAsker) Keep(*frame.Frame, string, json.RawMessage) {}

// Required implements frame.Asker.
func (a *taskAsker) Required(*frame.Frame) (protocol.Result, error) {
	return nil, frame.ErrInputRequired
}

// taskMethods are the rows of the extension in the method table.
func (s *Server) taskMethods() []dispatch.Method {
	return []dispatch.Method{
		{Name: "tasks/get", Era: dispatch.Modern, Params: true, Serve: s.taskMethod(func(f *frame.Frame, id string) (protocol.Result, error) {
			record, err := s.tasks.Get(f, f.Principal(), id)
			if err != nil {
				return nil, err
			}
			return tasks.State{Record: record}, nil
		})},
		{Name: "tasks/update", Era: dispatch.Modern, Params: true, Serve: s.taskMethod(func(f *frame.Frame, id string) (protocol.Result, error) {
			if f.Request().Params.InputResponses == nil {
				return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.inputResponses is missing: it has the answers, by their keys")
			}
			var answers map[string]json.RawMessage
			if err := json.Unmarshal(f.Request().Params.InputResponses, &answers); err != nil {
				return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.inputResponses must be an object: %w", err)
			}
			return protocol.EmptyResult{}, s.tasks.Update(f, f.Principal(), id, answers)
		})},
		{Name: "tasks/cancel", Era: dispatch.Modern, Params: true, Serve: s.taskMethod(func(f *frame.Frame, id string) (protocol.Result, error) {
			return protocol.EmptyResult{}, s.tasks.Cancel(f, f.Principal(), id)
		})},
	}
}

// taskMethod serves a method about one task.
func (s *Server) taskMethod(serve func(f *frame.Frame, id string) (protocol.Result, error)) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if !s.hasTasks.Load() {
			return nil, protocol.MethodNotFound(f.Request().Method)
		}
		if !takesTasks(f) {
			return nil, errNeedsTasks()
		}
		id := f.Request().Params.Name
		if id == "" {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.taskId is missing: it names the task")
		}
		return serve(f, id)
	}
}

// taskTopic returns the topic of one task in the hub.
func taskTopic(id string) string { return tasks.MethodStatus + " " + id }

// taskChanged tells the subscribers of a task.
func (s *Server) taskChanged(r tasks.Record) {
	params, err := r.Params()
	if err != nil {
		s.logger.Error().Err(err).Msg("the state of a task does not encode")
		return
	}
	s.hub.Publish(taskTopic(r.ID), protocol.NewChange(tasks.MethodStatus, params[1:len(params)-1]))
}

// honourTasks returns which of the tasks are the caller's, and their topics
// after the others.
func (s *Server) honourTasks(f *frame.Frame, ids, topics []string) (honoured, all []string) {
	for _, id := range ids {
		if _, err := s.tasks.Get(f, f.Principal(), id); err == nil {
			honoured = append(honoured, id)
			topics = append(topics, taskTopic(id))
		}
	}
	return honoured, topics
}
