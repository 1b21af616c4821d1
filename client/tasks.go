package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
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
	PollInterval  time.Duration           // least time between two looks; 0 means that the server does not say, which is 1 s
	Progress      *Progress               // how far it is, without message; nil if the server does not say
	Requests      []protocol.InputRequest // what it asks, in TaskInputRequired
	Result        json.RawMessage         // of TaskCompleted
	Fault         json.RawMessage         // of TaskFailed: a JSON-RPC error

	seen time.Time // when the client received this state; zero if a program has made it
	born time.Time // seen of the state with which a call became a task; otherwise zero
}

// Times between two looks at a task. In the first earlyPolls of a task they
// begin with firstPoll and double. Later, the interval of the server is the
// least time (SEP-2663).
const (
	earlyPolls  = 500 * time.Millisecond
	firstPoll   = 50 * time.Millisecond
	defaultPoll = time.Second           // interval of a server that names none
	leastPoll   = 20 * time.Millisecond // for a server with a shorter interval
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
		Created  jsonx.Time                 `json:"createdAt"`
		Updated  jsonx.Time                 `json:"lastUpdatedAt"`
		TTL      json.Number                `json:"ttlMs"`
		Poll     json.Number                `json:"pollIntervalMs"`
		OldTTL   json.Number                `json:"ttl"` // and the next, in 2025-11-25
		OldPoll  json.Number                `json:"pollInterval"`
		Requests json.RawMessage            `json:"inputRequests,omitempty"`
		Result   json.RawMessage            `json:"result,omitempty"`
		Error    json.RawMessage            `json:"error,omitempty"`
		Meta     map[string]json.RawMessage `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return nil, fmt.Errorf("the server's task does not decode: %w", err)
	}
	if wire.ID == "" {
		return nil, errors.New("the server's task has no taskId")
	}
	t := &Task{ID: wire.ID, Status: wire.Status, StatusMessage: wire.Message, Created: wire.Created.Time, Updated: wire.Updated.Time,
		TTL: milliseconds(cmp.Or(wire.TTL, wire.OldTTL)), PollInterval: milliseconds(cmp.Or(wire.Poll, wire.OldPoll)), Result: wire.Result, Fault: wire.Error, seen: time.Now()}
	if raw := wire.Meta[progressKey]; raw != nil {
		var p struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
		}
		if jsonx.Unmarshal(raw, &p) == nil { // or else the server means something else by it
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

// milliseconds returns a number of the server as a duration: 0 for none or a
// negative one, and the longest duration for one that is longer.
func milliseconds(n json.Number) time.Duration {
	ms, _ := n.Float64() // infinite if it is out of range
	if d := ms * float64(time.Millisecond); d < math.MaxInt64 {
		return time.Duration(max(d, 0))
	}
	return math.MaxInt64
}

// poll returns the interval that the server wants between two looks.
func (t *Task) poll() time.Duration {
	if t.PollInterval <= 0 {
		return defaultPoll
	}
	return max(t.PollInterval, leastPoll)
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
	if conn := c.life.conn.Load(); c.opts.Tasks == TasksOff || conn != nil && !conn.revision().Modern() && (method == protocol.MethodTasksUpdate || !conn.callsTasks()) {
		return nil, unsupported(r.op, method, "tasks need a modern revision, or a server with tasks of 2025-11-25, and Options.Tasks")
	}
	r.safe = true // asking, answering and cancelling twice is as once
	raw, err := r.do(ctx)
	return raw, unlisted(ctx, err, func() bool {
		_, err := c.Task(ctx, id, options...)
		return errors.Is(err, ErrNotFound)
	})
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
	stuck    bool            // a question has no answer
}

// newTaskWait returns a taskWait for one task.
func newTaskWait(c *Client, o *callOptions, clock taskClock) *taskWait {
	return &taskWait{client: c, options: o, each: aboutTask(o), clock: clock, answered: map[string]bool{}}
}

// aboutTask returns the options of requests about a task: the headers, the
// metadata and the timeout of the call. Its other options are about the call
// itself.
func aboutTask(o *callOptions) []CallOption {
	return []CallOption{func(each *callOptions) { each.header, each.meta, each.timeout = o.header, o.meta, o.timeout }}
}

// run looks at a task until it has ended or the clock says that it takes too
// long, and returns the result of the call.
func (w *taskWait) run(ctx context.Context, task *Task) (*CallToolResult, error) {
	own := *task
	task = &own
	if task.Status.Final() && task.Result == nil && task.Fault == nil {
		task.Status, task.seen = protocol.TaskWorking, time.Time{} // a new task comes without its result: it has to be asked for
	}
	ctx, done := w.client.life.during(ctx)
	defer done()
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
		switch err := w.finished(ctx, task); {
		case err != nil && task.Status.Final():
			return nil, err
		case err != nil:
			return nil, w.leave(ctx, task.ID, err)
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
		w.watch.born = time.Time{} // servers may limit who asks sooner than they want
		task.seen = time.Now()
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

// leave returns the error with which the waiting ends. A task that only this
// call waits for is cancelled. Another one may have others that wait for it: the
// end of the context cancels it, and a question that this client cannot answer.
func (w *taskWait) leave(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		err = stopped(ctx)
	}
	if w.clock.own || w.stuck || ctx.Err() != nil && !errors.Is(err, ErrClosed) {
		abandon(w.client, id, w.each)
	}
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
		w.stuck = ctx.Err() == nil
		return err
	}
	for _, q := range open {
		w.answered[q.Key] = true
	}
	_, err = taskRequest(ctx, w.client, protocol.MethodTasksUpdate, task.ID, append([]byte(`"inputResponses":`), answers...), w.each)
	return err
}

// abandon cancels a task that no call waits for any more, without waiting for
// the answer, unless the client is being closed.
func abandon(c *Client, id string, options []CallOption) {
	r, err := c.request(protocol.MethodTasksCancel+" "+id, protocol.MethodTasksCancel, id, named("taskId", id), options)
	if err != nil {
		return // the call had the same options
	}
	r.safe = true
	cancel := func(ctx context.Context) {
		if _, err := r.do(ctx); err != nil {
			safely.Log(c.opts.Logger.Debug().Err(visible.Error(err)).Str("task", visible.Line(id, visible.Name)), "a task was not cancelled")
		}
	}
	if !c.life.note(cancel) {
		ctx, stop := context.WithTimeout(c.life.ctx, notesTimeout)
		defer stop()
		cancel(ctx)
	}
}

// abandonUnread cancels the task in a result that cannot be used.
func abandonUnread(c *Client, result []byte, options []CallOption) {
	var id string
	if jsonx.Unmarshal(jsonx.Lookup(result, []string{"taskId"}), &id) == nil && id != "" {
		abandon(c, id, options)
	}
}

// taskClock bounds the waiting for a task. The zero value does not.
type taskClock struct {
	own  bool      // the task is that of the call that waits, and of nothing else
	end  time.Time // of the whole call; zero: none
	most time.Duration
}

// newTaskClock returns the clock of a call that began at a time and may take
// most in total; a negative value means no limit.
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
	client    *Client
	id        string
	stop      context.CancelFunc
	over      chan struct{}   // closed when the subscription is
	agreed    <-chan struct{} // closed once the server tells of the task; nil when that was noticed
	listening atomic.Bool     // the server tells of the task now
	listened  atomic.Bool     // it has agreed to
	told      chan *Task      // holds the newest
	born      time.Time       // of the task; zero once there are no early looks
	pause     time.Duration   // before the next early look
}

// watchTask subscribes to a task where the server offers that, without waiting
// for the server to agree. end must be called.
func watchTask(ctx context.Context, c *Client, task *Task) *taskWatch {
	ctx, stop := context.WithCancel(ctx)
	agreed := make(chan struct{})
	w := &taskWatch{client: c, id: task.ID, stop: stop, over: make(chan struct{}), agreed: agreed, told: make(chan *Task, 1), born: task.born, pause: firstPoll}
	if task.Status.Final() || !c.life.spawn(func() {
		defer close(w.over)
		s, err := c.Listen(ctx, protocol.SubscriptionFilter{TaskIDs: []string{task.ID}}, w.receive)
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
		_ = s.Close() // the subscription is no longer used, so its error is ignored
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

// receive takes a notification about the task. A newer one replaces one that has
// not been taken.
func (w *taskWatch) receive(n Notification) {
	if n.Method != protocol.MethodTaskStatus {
		return
	}
	task, err := parseTask(n.Params)
	if err != nil {
		w.client.logUnread(n.Method, err)
		return
	}
	if task.ID != w.id {
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
// early means that this is sooner than the server asked for.
func (w *taskWatch) wait(ctx context.Context, task *Task) (told *Task, early bool, err error) {
	wait := max(task.poll()-time.Since(task.seen), min(task.poll(), firstPoll))
	if w.early(w.pause) && w.pause < wait && !w.listening.Load() {
		wait, early = w.pause, true
		w.pause *= 2
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
			if w.early(0) {
				return nil, true, nil // what came before the agreement
			}
		case <-timer.C:
			return nil, early, nil
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// early reports whether the client may look, after a while, sooner than the
// server asks for.
func (w *taskWatch) early(after time.Duration) bool {
	return !w.born.IsZero() && time.Since(w.born)+after <= earlyPolls
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
