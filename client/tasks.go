package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// Task is the state of a call that outlives its request
// (the extension io.modelcontextprotocol/tasks).
type Task struct {
	ID            string
	Status        protocol.TaskStatus
	StatusMessage string
	Created       time.Time
	Updated       time.Time
	TTL           time.Duration           // from Created; 0 means unlimited
	PollInterval  time.Duration           // how often to ask; 0 means that the server does not say
	Progress      *Progress               // how far it is, without message; nil if the server does not say
	Requests      []protocol.InputRequest // what it asks, in TaskInputRequired
	Result        json.RawMessage         // of TaskCompleted
	Fault         json.RawMessage         // of TaskFailed: a JSON-RPC error
}

// The times between two looks at a task. The first is firstPoll, and each is
// twice as long as the one before, up to the interval that the server names,
// which is kept between leastPoll and mostPoll.
const (
	firstPoll   = 50 * time.Millisecond // and twice as long each time, up to the server's interval
	defaultPoll = time.Second
	leastPoll   = 20 * time.Millisecond
	mostPoll    = time.Minute
)

// progressKey is the key in a task's _meta under which servers made with this
// module tell the progress.
const progressKey = "io.github.talaria-go/progress"

// parseTask decodes a task from a result or a notification.
func parseTask(raw []byte) (*Task, error) {
	var wire struct {
		ID       string                     `json:"taskId"`
		Status   protocol.TaskStatus        `json:"status"`
		Message  string                     `json:"statusMessage"`
		Created  time.Time                  `json:"createdAt"`
		Updated  time.Time                  `json:"lastUpdatedAt"`
		TTL      *int64                     `json:"ttlMs"`
		Poll     int64                      `json:"pollIntervalMs"`
		Requests json.RawMessage            `json:"inputRequests"`
		Result   json.RawMessage            `json:"result"`
		Error    json.RawMessage            `json:"error"`
		Meta     map[string]json.RawMessage `json:"_meta"`
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
	if raw := wire.Meta[progressKey]; raw != nil {
		var p struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
		}
		if json.Unmarshal(raw, &p) == nil { // or else the server means something else by it
			t.Progress = &Progress{Progress: p.Progress, Total: p.Total}
		}
	}
	switch t.Status {
	case protocol.TaskWorking, protocol.TaskInputRequired, protocol.TaskCompleted, protocol.TaskFailed, protocol.TaskCancelled:
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

// poll returns the interval that the server wants between two looks.
func (t *Task) poll() time.Duration {
	d := t.PollInterval
	if d == 0 {
		d = defaultPoll
	}
	return min(max(d, leastPoll), mostPoll)
}

// progress returns the task's state as OnProgress gets it.
func (t *Task) progress() Progress {
	p := Progress{Message: t.StatusMessage}
	if t.Progress != nil {
		p.Progress, p.Total = t.Progress.Progress, t.Progress.Total
	}
	return p
}

// outcome reports whether a task has ended, with its result or error.
func (t *Task) outcome() (done bool, result json.RawMessage, err error) {
	switch t.Status {
	case protocol.TaskCompleted:
		if t.Result == nil {
			return true, nil, errors.New("the server's task is completed but has no result")
		}
		return true, t.Result, nil
	case protocol.TaskFailed:
		if t.Fault == nil {
			return true, nil, fmt.Errorf("the task failed: %s", t.StatusMessage)
		}
		return true, nil, serverFault(t.Fault)
	case protocol.TaskCancelled:
		return true, nil, &Error{kind: ErrCancelled, Err: fmt.Errorf("the server cancelled the task: %s", t.StatusMessage)}
	}
	return false, nil, nil
}

// taskRequest sends a request about a task. All of them may be sent twice.
func taskRequest(ctx context.Context, c *Client, method, id string, more []byte, options []CallOption) (json.RawMessage, error) {
	r, err := c.request(method+" "+id, method, id, join(named("taskId", id), more), options)
	if err != nil {
		return nil, err
	}
	if conn := c.life.conn.Load(); c.opts.Tasks == TasksOff || conn != nil && !conn.revision().Modern() {
		return nil, unsupported(r.op, method, "tasks need a modern revision and Options.Tasks")
	}
	r.safe = true // asking, answering and cancelling twice is as once
	return r.do(ctx)
}

// taskWait waits for a task to end and answers its questions. It is used by the
// goroutine of the caller.
type taskWait struct {
	client   *Client
	options  *callOptions // of the call that became the task, or of WaitTask
	each     []CallOption // of the requests about the task
	clock    taskClock
	watch    *taskWatch
	answered map[string]bool // the task's questions, by their keys
}

// newTaskWait returns a taskWait for one task. Requests about the task get the
// headers, the metadata and the timeout of the call; its other options are
// about the call itself.
func newTaskWait(c *Client, o *callOptions, clock taskClock) *taskWait {
	each := func(each *callOptions) { each.header, each.meta, each.timeout = o.header, o.meta, o.timeout }
	return &taskWait{client: c, options: o, each: []CallOption{each}, clock: clock, answered: map[string]bool{}}
}

// run looks at a task until it has ended or the clock says that it takes too
// long, and returns the result of the call.
func (w *taskWait) run(ctx context.Context, task *Task) (*CallToolResult, error) {
	own := *task
	task = &own
	if task.Status.Final() && task.Result == nil && task.Fault == nil {
		task.Status = protocol.TaskWorking // a new task comes without its result: it has to be asked for
	}
	w.watch = watchTask(ctx, w.client, task)
	defer w.watch.end()
	var told Progress
	if w.clock.own && task.Progress != nil {
		told = task.progress() // the call has told it, before it became a task
	}
	for {
		if fn := w.options.onTask; fn != nil {
			state := *task
			_ = w.client.guard("OnTask", func() { fn(&state) }) // a panic is in the log
		}
		if p, fn := task.progress(), w.options.progress; fn != nil && !task.Status.Final() && p != told && p != (Progress{}) {
			told = p
			_ = w.client.guard("OnProgress", func() { fn(p) })
		}
		if task.Status == protocol.TaskInputRequired {
			begin := time.Now()
			if err := w.answer(ctx, task); err != nil {
				return nil, w.leave(ctx, task.ID, err)
			}
			w.clock.stood(begin)
		}
		if done, result, err := task.outcome(); done {
			if err != nil {
				return nil, err
			}
			call, err := decodeCall(result)
			return call, invalid(err)
		}
		next, err := w.next(ctx, task)
		if err != nil {
			return nil, err
		}
		task = next
	}
}

// next waits until the server reports on the task, or until it is time to look
// at it again.
func (w *taskWait) next(ctx context.Context, task *Task) (*Task, error) {
	ctx, stop := w.clock.bound(ctx)
	defer stop()
	next, early, err := w.watch.wait(ctx, task)
	if next != nil {
		return next, nil
	}
	if err == nil {
		next, err = w.client.Task(ctx, task.ID, w.each...)
	}
	if early && errors.Is(err, ErrBusy) {
		w.watch.busy() // servers may limit who asks sooner than they want
		return task, nil
	}
	if errors.Is(err, ErrConnection) || errors.Is(err, ErrClosed) || errors.Is(err, ErrBusy) {
		// A server that ends tells how the task ended before it refuses to be asked.
		if last := w.watch.lastWord(ctx); last != nil {
			return last, nil
		}
	}
	if err != nil {
		return nil, w.leave(ctx, task.ID, err)
	}
	return next, nil
}

// leave returns the error with which the waiting ends. The task is cancelled if
// its time is over. After any other error somebody else may wait for it, unless
// it is this call's own and the server does not answer.
func (w *taskWait) leave(ctx context.Context, id string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = stopped(ctx)
	case !w.clock.own || !errors.Is(err, ErrTimeout):
		return err
	}
	w.abandon(id)
	return err
}

// answer answers the questions of a task that have not been answered before.
func (w *taskWait) answer(ctx context.Context, task *Task) error {
	var open []protocol.InputRequest
	for _, q := range task.Requests {
		if !w.answered[q.Key] {
			open = append(open, q)
		}
	}
	if len(open) == 0 {
		return nil
	}
	conn, err := w.client.life.current(ctx)
	if err != nil {
		return err
	}
	answers, err := w.client.handlers.answerAll(ctx, conn, open)
	if err != nil {
		if ctx.Err() == nil { // or else who waits for it leaves it
			w.abandon(task.ID)
		}
		return err
	}
	for _, q := range open {
		w.answered[q.Key] = true
	}
	_, err = taskRequest(ctx, w.client, protocol.MethodTasksUpdate, task.ID, append([]byte(`"inputResponses":`), answers...), w.each)
	return err
}

// abandon cancels a task that nobody waits for any more.
func (w *taskWait) abandon(id string) {
	c := w.client
	c.life.note(func(ctx context.Context) {
		if err := c.CancelTask(ctx, id); err != nil {
			safely.Log(c.opts.Logger.Debug().Err(visible.Error(err)).Str("task", visible.Line(id, visible.Name)), "a task was not cancelled")
		}
	})
}

// taskClock bounds the waiting for a task. The zero value does not.
type taskClock struct {
	own  bool      // the task is that of the call that waits, and of nobody else
	end  time.Time // of the whole call; zero: none
	most time.Duration
}

// newTaskClock returns the clock of a call that began at a time and may take
// most in all; a negative value is no limit.
func newTaskClock(most time.Duration, began time.Time) taskClock {
	if most < 0 {
		return taskClock{own: true}
	}
	return taskClock{true, began.Add(most), most}
}

// bound returns a context that ends when the time is over. stop must be called.
func (t *taskClock) bound(ctx context.Context) (limited context.Context, stop context.CancelFunc) {
	if t.end.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, t.end, &Error{kind: ErrTimeout, Err: fmt.Errorf("the task has not ended within the MaxTimeout of %v", t.most)})
}

// stood extends the time by what has passed since a time, while a question was
// answered.
func (t *taskClock) stood(since time.Time) {
	if !t.end.IsZero() {
		t.end = t.end.Add(time.Since(since))
	}
}

// taskWatch decides when to look at a task, and receives what the server
// reports about it. Its subscription runs on a goroutine of the client; told,
// listening and listened are what that goroutine and the waiting one share.
type taskWatch struct {
	id        string
	stop      context.CancelFunc
	over      chan struct{}   // closed when the subscription is
	agreed    <-chan struct{} // closed once the server tells of the task; nil when that was noticed
	listening atomic.Bool     // the server tells of the task now
	listened  atomic.Bool     // it has agreed to
	told      chan *Task      // holds the newest
	pause     time.Duration   // before the next look
}

// watchTask subscribes to a task where the server offers that, without waiting
// for the server to agree. end must be called.
func watchTask(ctx context.Context, c *Client, task *Task) *taskWatch {
	ctx, stop := context.WithCancel(ctx)
	agreed := make(chan struct{})
	w := &taskWatch{id: task.ID, stop: stop, over: make(chan struct{}), agreed: agreed, told: make(chan *Task, 1), pause: firstPoll}
	if task.Status.Final() || !c.life.spawn(func() {
		defer close(w.over)
		s, err := c.Listen(ctx, protocol.SubscriptionFilter{TaskIDs: []string{task.ID}}, w.hear)
		if err != nil {
			return // looking at the task is enough
		}
		if slices.Contains(s.Accepted().TaskIDs, task.ID) {
			w.listened.Store(true)
			w.listening.Store(true)
			close(agreed)
			select {
			case <-s.Done():
			case <-ctx.Done():
			}
			w.listening.Store(false)
		}
		_ = s.Close() // what it could say is about a subscription that nobody needs any more
	}) {
		close(w.over)
	}
	return w
}

// end ends the subscription and waits for its goroutine.
func (w *taskWatch) end() {
	w.stop()
	<-w.over
}

// hear receives a notification about the task. A newer one replaces one that
// has not been taken.
func (w *taskWatch) hear(n Notification) {
	if n.Method != protocol.MethodTaskStatus {
		return
	}
	task, err := parseTask(n.Params)
	if err != nil || task.ID != w.id {
		return
	}
	select {
	case <-w.told:
	default:
	}
	select {
	case w.told <- task:
	default:
	}
}

// wait returns what the server has reported, or nil when it is time to look;
// early says that this is sooner than the server asked for.
func (w *taskWatch) wait(ctx context.Context, task *Task) (told *Task, early bool, err error) {
	most := task.poll()
	wait := min(w.pause, most)
	if w.listening.Load() {
		wait = most
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case next := <-w.told:
			if next.Updated.Before(task.Updated) {
				continue // a look was faster
			}
			return next, false, nil
		case <-w.agreed:
			w.agreed = nil
			return nil, true, nil // what came before the agreement
		case <-timer.C:
			w.pause = min(2*w.pause, mostPoll)
			return nil, wait < most, nil
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// lastWord returns the final state of the task if the server has reported it;
// the report may still be on its way. It returns nil if the server did not
// agree to report.
func (w *taskWatch) lastWord(ctx context.Context) *Task {
	if !w.listened.Load() {
		return nil
	}
	timer := time.NewTimer(lastWordTime)
	defer timer.Stop()
	for {
		select {
		case last := <-w.told:
			if last.Status.Final() {
				return last
			}
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// lastWordTime is how long lastWord waits. A server that shuts down has sent
// its report by then.
const lastWordTime = time.Second

// busy makes the next look wait for as long as the server asks.
func (w *taskWatch) busy() { w.pause = mostPoll }
