package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// TaskOptions say how a tool runs as a task. The zero value is the default.
type TaskOptions struct {
	TTL          time.Duration // how long a task is kept, from its start; 0 means Timeouts.Task
	PollInterval time.Duration // how often clients should ask for its state; 0 means 1 s
	// Wait is how long a call may take before it becomes a task: one that ends
	// sooner is answered like any call, and sends its progress as one. 0 means
	// 250 ms, negative makes it a task at once. A call that asks its client
	// becomes a task first, so that its handler runs once.
	Wait time.Duration
	// Required refuses clients that take no tasks. Without it, the tool runs
	// for them as any other.
	Required bool
	// Manual leaves the moment to the handler, which calls Frame.Detach when
	// it has asked what it must know first; Wait does not count then.
	Manual bool
	// Replay lets the task outlive its replica, with Options.Store. If that is lost,
	// or shuts down before the task has ended, another one runs the handler again
	// from its beginning, with the same arguments and identity, through the
	// middleware of the server but without an HTTP request. Elicit and the like
	// return the recorded answers, unless the question under a key has changed, and
	// Once returns its recorded value. Everything else happens again, possibly while
	// the previous run has not yet noticed its end: see Frame.TaskRun.
	//
	// A task runs again at most twice after it was lost, while the access token of
	// its call has not ended, and only where its tool has the same schemas; otherwise
	// it fails. A call with more than 1 MiB of params is not run again.
	Replay bool
	// Worker leaves the call to a process that is in Server.Work: it becomes a task
	// at once, for clients that take tasks, and waits for one. It is for servers with
	// Options.Store, has what Replay says, and does not go with Manual. Wait does not
	// count.
	Worker bool
}

// defaultTaskWait is how long a call may take before it becomes a task, if
// TaskOptions.Wait is 0.
const defaultTaskWait = 250 * time.Millisecond

// AsTask lets a tool outlive its request: clients that declare the extension
// io.modelcontextprotocol/tasks get a task, unless the call ends at once, and
// ask for its result later. The handler is the same in both cases; Elicit and the like work in
// it, too. nil stands for the default TaskOptions; they are copied.
func AsTask(opts *TaskOptions) ToolOption {
	o := TaskOptions{}
	if opts != nil {
		o = *opts
	}
	return tools(func(set *toolSettings) {
		if o.TTL < 0 || o.PollInterval < 0 {
			set.fault("AsTask: TTL and PollInterval must not be negative")
		}
		if o.Worker && o.Manual {
			set.fault("AsTask: Worker and Manual exclude each other: a handler that begins at once decides when to detach, and not one that a worker runs")
		}
		if o.Wait == 0 {
			o.Wait = defaultTaskWait
		}
		if o.PollInterval == 0 {
			o.PollInterval = time.Second
		}
		set.task = &o
	})
}

// takesTasks reports whether the client of f declared the extension.
func takesTasks(f *frame.Frame) bool {
	_, ok := f.ClientCapabilities().Extensions[wire.TasksExtension]
	return ok && f.Revision().Has(protocol.FeaturePerRequestMeta)
}

// errNeedsTasks is the error for a client that did not.
func errNeedsTasks() *protocol.Error {
	fault := wire.MissingCapability("extensions", wire.TasksExtension)
	fault.Message = fmt.Sprintf("the client did not declare the extension %s, which this request needs", wire.TasksExtension)
	return fault
}

// detachable makes calls of a tool able to become tasks. Calls for clients that
// take none run as those of any tool, on the goroutine of their request, unless
// the tool decides by itself when to detach: then Frame.Detach has to find that
// there is nothing to do.
func (x *taskExtension) detachable(o *TaskOptions, digest schemaDigest, call frame.Handler) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if f.Outer() != nil { // it is a part of its request
			if o.Required && !takesTasks(f) {
				return nil, errNeedsTasks()
			}
			return call(f)
		}
		d := &detachedCall{
			server: outermost(f, x.server), options: o, digest: digest, owner: f.Principal(), takes: takesTasks(f), call: f,
			handle: make(chan tasks.Handle, 1), ended: make(chan outcome, 1),
		}
		if again, ok := f.Value(replayKey{}).(*replay); ok {
			return again.begin(d, call)
		}
		if !d.takes {
			if o.Required {
				return nil, errNeedsTasks()
			}
			if !o.Manual {
				return call(f)
			}
		}
		if o.Worker && d.takes && d.server.post != nil {
			return d.leave()
		}
		return d.run(call)
	}
}

// outcome is what a handler returned.
type outcome struct {
	result protocol.Result
	err    error
}

// The causes of the contexts of tasks, in addition to ErrServerClosed, for
// errors.Is with context.Cause.
var (
	ErrTaskLost      = tasks.ErrLost      // this replica has it no more: see TaskOptions.Replay
	ErrTaskCancelled = tasks.ErrCancelled // its client has cancelled it
	ErrTaskExpired   = tasks.ErrExpired   // it has outlived its time
)

// detachedCall is a call that may become a task. It runs on a goroutine of its
// own, which the server's shutdown waits for, while the goroutine of the
// request waits in await for whichever comes first: its end or its task.
//
// While it is a call, its context ends with that of the request. From Detach on
// it ends when the task is cancelled, expires, or the server gives up waiting.
// Its place among the tasks is reserved before it begins, or, with
// TaskOptions.Manual, when it detaches; a call that ends as one gives it back.
//
// The channels have room for one value each, which is all that is ever sent on
// them, so a send never waits for a request that has ended.
type detachedCall struct {
	server  *Server
	options *TaskOptions
	digest  schemaDigest // of the tool
	call    *frame.Frame // of the request
	again   *replay      // nil for the first run
	owner   string       // the principal
	takes   bool         // the client takes tasks
	handle  chan tasks.Handle
	ended   chan outcome
	began   time.Time
	ctx     context.Context // of the handler: the request's until detached
	cancel  context.CancelCauseFunc
	follow  func() bool // ends following the request's context

	mu       sync.Mutex
	reserved *tasks.Task // until it is a task, or over
	task     *tasks.Task // once it is one
	over     bool        // the handler has returned
}

// run serves the request with call. It is called once, on the goroutine of
// the request, and returns its answer.
func (d *detachedCall) run(call frame.Handler) (protocol.Result, error) {
	f, ends := d.call, context.Context(d.call)
	work, ok := d.server.running.Begin(context.WithoutCancel(f))
	if !ok {
		return nil, protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	d.ctx, d.cancel = context.WithCancelCause(work)
	d.began = time.Now()
	switch {
	case d.again != nil:
		// The task ends it, and not the middleware around it, whose part is over soon.
		ends = d.again.ctx
		d.again.begun.Store(true)
	case !d.options.Manual:
		// Its place first: what there is no place for must not begin.
		var err error
		if d.reserved, err = d.reserve(); err != nil {
			work.End()
			return nil, err
		}
	}
	d.follow = context.AfterFunc(ends, func() { d.cancel(context.Cause(ends)) })
	inner := f.WithContext(core.WithTaskStarter(d.ctx, d))
	go func() {
		defer work.End()
		defer d.cancel(nil)
		o := outcome{nil, dispatch.ErrPanicked} // unless the handler returns
		defer func() { d.end(inner, o) }()
		o.result, o.err = d.server.dispatch().Guard(inner, func(inner *frame.Frame) (protocol.Result, error) {
			if d.again != nil || !d.options.Manual && d.options.Wait < 0 {
				if err := inner.Detach(); errors.Is(err, scale.ErrUnavailable) {
					return nil, wire.Unavailable("a task cannot begin", err) // and has not
				} else if err != nil {
					return nil, err
				}
			}
			return call(inner)
		})
	}()
	return d.await(inner)
}

// await returns the answer to the request: the handler's, or the task that it
// has become.
func (d *detachedCall) await(inner *frame.Frame) (protocol.Result, error) {
	var soon <-chan time.Time
	if !d.options.Manual && d.options.Wait > 0 {
		timer := time.NewTimer(d.options.Wait)
		defer timer.Stop()
		soon = timer.C
	}
	for {
		select {
		case handle := <-d.handle:
			return handle, nil
		case o := <-d.ended:
			return o.result, o.err
		case <-soon:
			soon = nil
			if err := inner.Detach(); err != nil {
				// It has begun and is not lost: it stays a call.
				safely.Log(d.server.logger.Warn().Err(visible.Error(err)).Str("name", visible.Line(inner.Request().Params.Name, visible.Name)), "a call did not become a task")
			}
		}
	}
}

// reserve takes the place of a task. The task calls d.cancel with its cause when
// it is to end.
func (d *detachedCall) reserve() (*tasks.Task, error) {
	return d.server.tasks.Reserve(d.owner, d.options.TTL, d.options.PollInterval, d.cancel)
}

// close notes that the handler has returned, and reports whether it did as a
// task. Nothing becomes one any more.
func (d *detachedCall) close() (isTask bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.reserved != nil {
		d.reserved.Drop()
		d.reserved = nil
	}
	return d.task != nil
}

// Asks implements core.TaskStarter.
func (d *detachedCall) Asks() bool { return d.takes && !d.options.Manual }

// Detach implements core.TaskStarter. The Frame calls it for one goroutine at a
// time, and not again once it has succeeded; d.mu keeps it apart from the end of
// the handler, which may come while await detaches.
func (d *detachedCall) Detach(known core.Recorded) (*core.StartedTask, error) {
	if !d.takes {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil, nil
	}
	if d.again != nil {
		d.task = d.again.task
	} else if err := d.keep(known); err != nil {
		return nil, err
	}
	return &core.StartedTask{
		Asker: &taskAsker{d.task}, Note: d.task.Note, Run: d.task.Run,
		Answer: func() {
			d.handle <- tasks.Handle{Record: d.task.Record()}
			e := Event{Kind: "task.started", ID: d.task.Record().ID, Name: host{d.server}.toolLabel(d.call)}
			if run, _ := d.task.Run(); run > 1 {
				e.Reason = "replay"
			}
			host{d.server}.tell(e)
		},
	}, nil
}

// keep makes the call a task that clients can ask for. d.mu is held.
func (d *detachedCall) keep(known core.Recorded) (err error) {
	if d.reserved == nil {
		if d.reserved, err = d.reserve(); err != nil {
			return err
		}
	}
	var call *tasks.Call
	if d.options.Replay && d.server.post != nil {
		if call, err = d.kept(known); err != nil {
			return err
		}
	}
	if err := d.reserved.Keep(call); err != nil {
		return err
	}
	d.task, d.reserved = d.reserved, nil
	d.follow()
	return nil
}

// leave makes the call a task that waits for a worker.
func (d *detachedCall) leave() (protocol.Result, error) {
	d.cancel = func(error) {} // nothing runs
	task, err := d.reserve()
	if err != nil {
		return nil, err
	}
	call, err := d.kept(core.Recorded{})
	if err == nil {
		call.Worker = true
		err = task.Keep(call)
	}
	if err != nil {
		task.Drop()
		if errors.Is(err, scale.ErrUnavailable) {
			err = wire.Unavailable("a task cannot begin", err) // and has not
		}
		return nil, err
	}
	handle := tasks.Handle{Record: task.Record()}
	task.Leave()
	return handle, nil
}

// end passes the outcome to the request or the task, whichever waits for it.
func (d *detachedCall) end(f *frame.Frame, o outcome) {
	if !d.close() {
		d.ended <- o
		return
	}
	ended := Event{Kind: "task.ended", Reason: "released", ID: d.task.Record().ID, Name: host{d.server}.toolLabel(f), Duration: time.Since(d.began)}
	if d.cutShort(o) && d.task.Release() {
		host{d.server}.tell(ended)
		return
	}
	// What the task ends with if its result, or its error, ends the goroutine.
	status, text, fault := protocol.TaskFailed, json.RawMessage(nil), json.RawMessage(wire.AppendError(nil, dispatch.ErrPanicked))
	defer func() {
		if err := d.task.Finish(status, text, fault); err != nil {
			safely.Log(d.server.logger.Error().Err(visible.Error(err)).Str("name", visible.Line(f.Request().Params.Name, visible.Name)), "the state of a task could not be kept")
		}
		// Its client may have cancelled it, or there is no room for its result.
		ended.Reason = cmp.Or(string(d.task.Ended()), ended.Reason)
		host{d.server}.tell(ended)
	}()
	status, text, fault = d.encode(f, o)
}

// cutShort reports whether the handler failed because the server shuts down.
func (d *detachedCall) cutShort(o outcome) bool {
	result, ok := o.result.(*protocol.CallToolResult)
	return errors.Is(context.Cause(d.ctx), ErrServerClosed) && (o.err != nil || ok && result.IsError)
}

// encode returns how the task ends. All that it calls may be users' code: the
// result and the error encode themselves.
func (d *detachedCall) encode(f *frame.Frame, o outcome) (status protocol.TaskStatus, text, fault json.RawMessage) {
	guard := d.server.dispatch().Guard
	err := o.err
	if err == nil {
		text, err = d.server.dispatch().Encode(f, nil, o.result, wire.To{Revision: f.Revision()})
	}
	if err == nil {
		return protocol.TaskCompleted, text, nil
	}
	d.server.dispatch().Invalid(f, err)
	if errors.Is(context.Cause(d.ctx), tasks.ErrCancelled) {
		return protocol.TaskCancelled, nil, nil
	}
	_, panicked := guard(f, func(*frame.Frame) (protocol.Result, error) {
		fault = wire.AppendError(nil, d.server.dispatch().Fault(err))
		return nil, nil
	})
	if panicked != nil {
		fault = wire.AppendError(nil, dispatch.ErrPanicked)
	}
	return protocol.TaskFailed, nil, fault
}

// keptCall is what another replica needs to run a call again, as tasks.Call has it.
type keptCall struct {
	ID        protocol.ID
	Params    json.RawMessage
	Revision  string
	Principal string
	Identity  *frame.Identity `json:",omitempty"`
	Digest    []byte          // of the tool's schemas
}

// kept returns the call of d for other replicas, as its client has sent it.
func (d *detachedCall) kept(known core.Recorded) (*tasks.Call, error) {
	r := d.call.Request()
	text, err := json.Marshal(keptCall{r.ID, r.Params.Raw, d.call.Revision().String(), d.owner, d.call.Identity(), d.digest[:]})
	if err != nil {
		return nil, fmt.Errorf("the call cannot be kept for another replica: %w", err)
	}
	return &tasks.Call{Text: text, Known: known}, nil
}

// replayKey is the context key of the replay that a request is.
type replayKey struct{}

// replay is a task that is run again, from where it enters the middleware to where
// its tool begins.
type replay struct {
	ctx    context.Context // ends with the task
	task   *tasks.Task
	digest []byte
	begun  atomic.Bool
}

// replay runs a task of another replica again: see tasks.Config.
func (x *taskExtension) replay(ctx context.Context, task *tasks.Task, text []byte) error {
	var c keptCall
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if id := c.Identity; id != nil && !id.Expiry.IsZero() && !time.Now().Before(id.Expiry) {
		return protocol.Errorf(protocol.CodeUnauthorized, "the replica that ran the task is gone, and the access token with which it could run again has ended")
	}
	message := protocol.Message{Method: protocol.MethodToolsCall, Params: c.Params}
	var params protocol.Params
	if err := message.DecodeParams(&params); err != nil {
		return err
	}
	revision, ok := protocol.ParseRevision(c.Revision)
	if _, known := x.server.catalog.Internal(facts.Private{}).Get(KindTool, params.Name); !known || !ok {
		return fmt.Errorf("%w: there is no tool %q here", tasks.ErrElsewhere, params.Name)
	}
	grant := &core.Grant{Name: c.Principal}
	if c.Identity != nil {
		grant.Identity = c.Identity
	}
	again := &replay{ctx: ctx, task: task, digest: c.Digest}
	f := frame.Internal(facts.Private{}).New(core.WithGrant(context.WithValue(ctx, replayKey{}, again), grant), core.Config{
		Request: &core.Request{ID: c.ID, Method: protocol.MethodToolsCall, Params: params}, Revision: revision, Server: x.server.connections.Upcalls(),
	})
	err := safely.Try(func() error { return x.server.dispatch().Notify(f) }) // a notification has no response
	switch {
	case again.begun.Load():
		return nil
	case err == nil:
		return errors.New("a middleware answered in place of the tool")
	}
	return err
}

// begin runs the handler of the tool as d, unless the tool was replaced after the
// call.
func (r *replay) begin(d *detachedCall, call frame.Handler) (protocol.Result, error) {
	if !bytes.Equal(r.digest, d.digest[:]) {
		return nil, fmt.Errorf("%w: the tool has other schemas here", tasks.ErrElsewhere)
	}
	d.again, d.takes = r, true
	return d.run(call)
}

// taskAsker puts the questions of a task to its client. They become part of the
// task's state, which the client reads, and are answered with tasks/update. The
// handler waits for the answers.
type taskAsker struct{ task *tasks.Task }

// Ask implements core.Asker.
func (a *taskAsker) Ask(ctx context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error) {
	return a.task.Ask(ctx, questions)
}

// Recall implements core.Asker.
func (a *taskAsker) Recall(key string) (value json.RawMessage, ok bool, err error) {
	value, ok = a.task.Recall(key)
	return value, ok, nil
}

// Keep implements core.Asker.
func (a *taskAsker) Keep(ctx context.Context, key string, value json.RawMessage) error {
	return a.task.Remember(ctx, key, value)
}

// Known implements core.Asker: what a task knows, it has.
func (a *taskAsker) Known() core.Recorded { return core.Recorded{} }

// Required implements core.Asker. It is not called for questions, which wait
// for their answers here.
func (a *taskAsker) Required() (protocol.Result, error) {
	return nil, wire.ErrInputRequired
}

// taskExtension serves the extension io.modelcontextprotocol/tasks: its methods,
// and the notifications of changes for those who subscribed to a task. The
// Manager keeps the tasks.
type taskExtension struct {
	*tasks.Manager
	server *Server

	mu   sync.Mutex
	told map[string]told // by the ids of tasks with subscribers at this replica; with Options.Store
}

// newTaskExtension makes the tasks of s, whose options must be complete.
func newTaskExtension(s *Server) *taskExtension {
	x := &taskExtension{server: s, told: make(map[string]told)}
	config := s.opts.tasks(host{s}.storeFailed("task store", "tasks"))
	if s.post != nil {
		config.Replay = x.replay
		config.Store = &tasks.Shared{Store: s.opts.Store, Seal: s.opts.sealer("task"), Post: s.post}
	}
	x.Manager = tasks.NewManager(config, func(state tasks.State) { x.changed(state.Record) })
	return x
}

// methods are the rows of the extension in the method table.
func (x *taskExtension) methods() []dispatch.Method {
	return []dispatch.Method{
		{Name: protocol.MethodTasksGet, Revisions: dispatch.Modern, Params: true, Serve: x.method(func(f *frame.Frame, id string) (protocol.Result, error) {
			record, err := x.Get(f, f.Principal(), id)
			if err != nil {
				return nil, err
			}
			if record.Status.Final() {
				x.Told(id)
			}
			return tasks.State{Record: record}, nil
		})},
		{Name: protocol.MethodTasksUpdate, Revisions: dispatch.Modern, Params: true, Serve: x.method(func(f *frame.Frame, id string) (protocol.Result, error) {
			if f.Request().Params.InputResponses == nil {
				return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.inputResponses is missing: it has the answers, by their keys")
			}
			var answers map[string]json.RawMessage
			if err := jsonx.Unmarshal(f.Request().Params.InputResponses, &answers); err != nil {
				return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.inputResponses must be an object: %w", err)
			}
			return wire.EmptyResult{}, x.Update(f, f.Principal(), id, answers)
		})},
		{Name: protocol.MethodTasksCancel, Revisions: dispatch.Modern, Params: true, Serve: x.method(func(f *frame.Frame, id string) (protocol.Result, error) {
			return wire.EmptyResult{}, x.Cancel(f, f.Principal(), id)
		})},
	}
}

// method serves a method about one task, which exists once there was a tool that
// may run as one. Whose task it is the Manager checks.
func (x *taskExtension) method(serve func(f *frame.Frame, id string) (protocol.Result, error)) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if !x.server.had(hasTasks) {
			return nil, wire.MethodNotFound(f.Request().Method)
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

// taskTopic returns the topic of one task in the Broker.
func taskTopic(id string) string { return protocol.MethodTaskStatus + " " + id }

// changed notifies the subscribers of a task, unless they know that state or a
// newer one. The Manager calls it after each change here, and heard after one
// at another replica. If there are subscribers, they count as notified of the
// end of the task, for which a shutdown waits.
func (x *taskExtension) changed(r tasks.Record) {
	state := tasks.State{Record: r}
	change, err := state.Change()
	if err != nil {
		safely.Log(x.server.logger.Error().Err(visible.Error(err)), "the state of a task does not encode")
		return
	}
	if x.isNews(&r, change) && x.server.subscriptions.broker.Publish(taskTopic(r.ID), change) && r.Status.Final() {
		x.Told(r.ID)
	}
}

// told is the last state that the subscribers of a task received here.
type told struct {
	rev  scale.Rev
	text []byte
}

// isNews reports whether a state of a task is newer than the last one that its
// subscribers received. Hints of changes, at this replica and at others, come in
// any order.
func (x *taskExtension) isNews(r *tasks.Record, change *wire.Change) bool {
	if x.server.topics == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	last, wanted := x.told[r.ID]
	if !wanted || r.Rev() < last.rev || bytes.Equal(last.text, change.Plain()) {
		return false
	}
	x.told[r.ID] = told{r.Rev(), change.Plain()}
	return true
}

// interest subscribes to changes of a task at other replicas.
func (x *taskExtension) interest(id string, wanted bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if wanted {
		x.told[id] = told{}
		x.server.topics.Watch(taskTopic(id), tasks.EntryOf(id))
	} else {
		delete(x.told, id)
		x.server.topics.Unwatch(tasks.EntryOf(id))
	}
}

// heard notifies the subscribers of a task that may have changed. It returns
// false while the store is unavailable.
func (x *taskExtension) heard(id string) (ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	r, there, err := x.Look(ctx, id)
	if err != nil && !errors.Is(err, scale.ErrUnavailable) {
		safely.Log(x.server.logger.Error().Err(visible.Error(err)), "the subscribers of a task are not told of a change")
	}
	if there {
		x.changed(r)
	}
	return !errors.Is(err, scale.ErrUnavailable)
}

// accept returns which of the tasks are the caller's, and their topics
// after the others.
func (x *taskExtension) accept(f *frame.Frame, ids, topics []string) (accepted, all []string) {
	for _, id := range ids {
		if _, err := x.Get(f, f.Principal(), id); err == nil {
			accepted = append(accepted, id)
			topics = append(topics, taskTopic(id))
		}
	}
	return accepted, topics
}
