// Package tasks runs tool calls that outlive their request: the client gets a
// task at once and asks for its state later. It follows the extension
// io.modelcontextprotocol/tasks.
//
//   - [Manager] has the tasks of a server. It bounds them, finds the record that
//     a client asks for, passes answers and cancellations on to the work, and
//     lets a shutdown wait for the tasks that run.
//   - [Task] is a task whose work runs in this process. Its methods change its
//     record: progress, questions, the end.
//   - [Handle] and [State] are the results that tell a client of a task.
//   - [Store] keeps the records: [Memory] for one process, [Shared] for all replicas
//     of a server, whose sweeper claims the tasks that no replica runs.
//
// Package mcp is the only user: it runs the handler, and calls Task.Finish with what
// that returned. With Shared, a task of another replica can be read, answered and
// cancelled here. If its replica is lost, the replica that finds it runs it again from
// its beginning, or it fails, if Keep was given no [Call].
//
// A record is saved after each change, and told to Manager's changed after
// that, both in the order of the changes. Once its status is final it does not
// change again. It is deleted when its TTL is over, and work that still runs is
// cancelled then. Each task that clients know of has a timer; there are no
// other goroutines but those that run the Store's code, and with Shared those of
// the sweeper.
//
// Locks: that of a Manager may be taken while that of a Task is held, never the
// other way round, and that of a sweeper while either is. None is held while the Store
// runs; a Task's channel saving keeps the uses of the Store for one task apart.
package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	replicas "github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The limits that a zero Config stands for.
const (
	DefaultMax     = 10_000
	DefaultRunning = 64
	DefaultMemory  = 256 << 20 // bytes
)

// Config bounds the tasks of a server.
type Config struct {
	Store      Store         // nil means a Memory; a *Shared is that of all replicas
	TTL        time.Duration // of tasks that name none; 0 means DefaultTTL
	Max        int           // tasks that are kept at a time, also those that have ended; 0 means DefaultMax
	MaxRunning int           // tasks that run at a time; 0 means DefaultRunning
	// MaxPerOwner is how many are kept of one principal; 0 means a tenth of Max,
	// at least one, negative no limit. Anonymous clients, who are one owner, have
	// none but Max.
	MaxPerOwner int
	// MaxRunningPerOwner is how many run of one principal; 0 means a quarter of
	// MaxRunning, at least one, negative no limit. Anonymous clients, who are one
	// owner, have none until the first client with a name has come.
	MaxRunningPerOwner int
	// Memory is how many bytes tasks keep of results, errors and questions. What
	// exceeds it is not kept: a task with such a result fails and says so, and no
	// task begins while three quarters are used, or by a principal who uses a tenth.
	// 0 means DefaultMemory.
	Memory int
	// StoreFailed is called with panics of Store, and with errors that no client
	// receives. nil means that the Server logs them.
	StoreFailed func(error)
	// Replay runs the handler of a task again, from the call that Keep was given,
	// with t as its task, and returns when it has begun. ctx ends with the task, with
	// the cause. The error is that of a task that does not run here: ErrElsewhere if
	// it may on another replica, or one with the code CodeBusy if it may later.
	Replay func(ctx context.Context, t *Task, call []byte) error
}

// ErrCancelled is the cause of the context of a task that its client
// cancelled, ErrExpired of one that outlived its TTL.
// ErrLost is that of a run whose task this replica has lost: it could not renew it
// in time, has given it away, or another has taken it.
var (
	ErrCancelled = errors.New("tasks: cancelled by the client")
	ErrExpired   = errors.New("tasks: the task outlived its time")
	ErrLost      = errors.New("tasks: this replica has lost the task")
)

// Manager runs tasks. It is safe for concurrent use. mu guards the fields below
// it, and bytes, forgotten and kept of every Task. The Shares have locks of
// their own, but are changed while mu is held so that a place is taken, or
// given back, together with the entry in live.
type Manager struct {
	config  Config
	changed func(State) // told of every change

	running *share.Shares // tasks
	kept    *share.Shares // tasks, also those that have ended
	bytes   *share.Shares // of what is kept; who has much of it begins no more tasks

	shared *Shared // Config.Store, if it is one; nil else
	*sweeper

	mu     sync.Mutex
	live   map[string]*Task
	owed   map[string]time.Time // tasks whose end no client has learned, and the time until which a shutdown waits for that
	ending int                  // ends on their way to the Store
	turn   chan struct{}        // closed when one of these, or the work of the sweeper, has changed; made by Drain
}

// NewManager returns a Manager without tasks. changed, if not nil, is called
// for every change of a task; it must return soon.
func NewManager(config Config, changed func(State)) *Manager {
	if config.Store == nil {
		config.Store = &Memory{}
	}
	config.TTL, config.Max = cmp.Or(max(config.TTL, 0), DefaultTTL), cmp.Or(max(config.Max, 0), DefaultMax)
	config.MaxRunning, config.Memory = cmp.Or(max(config.MaxRunning, 0), DefaultRunning), cmp.Or(max(config.Memory, 0), DefaultMemory)
	config.MaxPerOwner = cmp.Or(config.MaxPerOwner, max(1, config.Max/10))
	config.MaxRunningPerOwner = cmp.Or(config.MaxRunningPerOwner, max(1, config.MaxRunning/4))
	if changed == nil {
		changed = func(State) {}
	}
	m := &Manager{
		config: config, changed: changed, live: make(map[string]*Task), owed: make(map[string]time.Time),
		running: share.New("tasks that run", config.MaxRunning, config.MaxRunningPerOwner, share.Same),
		kept:    share.New("tasks that are kept", config.Max, config.MaxPerOwner, share.Always),
		bytes:   share.New("bytes of tasks", config.Memory, -1, share.Always),
	}
	m.shared, _ = config.Store.(*Shared)
	m.sweeper = newSweeper(m)
	return m
}

// Create makes a task of owner that works. cancel ends its work. Task.Finish
// must be called when that has ended.
func (m *Manager) Create(owner string, ttl, poll time.Duration, cancel context.CancelCauseFunc) (*Task, error) {
	t, err := m.Reserve(owner, ttl, poll, cancel)
	if err != nil {
		return nil, err
	}
	if err := t.Keep(nil); err != nil {
		t.Drop()
		return nil, err
	}
	return t, nil
}

// Reserve is Create for work that may end before its client learns of a task.
// It takes the place of one. Task.Keep makes it one that clients can ask for,
// from then on; without that, Task.Drop must be called when the work has ended.
func (m *Manager) Reserve(owner string, ttl, poll time.Duration, cancel context.CancelCauseFunc) (*Task, error) {
	if ttl <= 0 {
		ttl = m.config.TTL
	}
	t := m.newTask(Record{ID: replicas.NewID(), Owner: owner, Status: protocol.TaskWorking, TTL: ttl, PollInterval: poll}, cancel)
	if err := m.enter(t); err != nil {
		return nil, err
	}
	return t, nil
}

// newTask returns a task that has no place yet.
func (m *Manager) newTask(r Record, cancel context.CancelCauseFunc) *Task {
	return &Task{
		manager: m, cancel: cancel, record: r, saving: make(chan struct{}, 1), done: make(chan struct{}),
		asked: make(map[string]bool), answers: make(map[string]chan json.RawMessage),
	}
}

// enter takes the places of a task that is to run: one among those that run,
// and one among those that are kept. It takes both or none. A task takes no
// bytes before it has something to keep; that is why one is refused while there
// is still some room, which those that run need for their results.
func (m *Manager) enter(t *Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner := t.record.Owner
	if full := m.running.Take(owner, 1); full != nil {
		return busy(full, "running")
	}
	if full := m.kept.Take(owner, 1); full != nil {
		m.running.Give(owner, 1)
		return busy(full, "kept")
	}
	own := owner != "" && m.config.MaxPerOwner > 0 && m.bytes.Of(owner) >= max(1, m.config.Memory/10)
	if own || m.bytes.Used() >= max(1, m.config.Memory/4*3) {
		m.running.Give(owner, 1)
		m.kept.Give(owner, 1)
		return protocol.Errorf(protocol.CodeBusy, "the results of tasks that are kept leave no room for another")
	}
	m.live[t.record.ID] = t
	return nil
}

// busy is the error of a task for which there is no place.
func busy(full *share.FullError, state string) error {
	whose := ""
	if full.Own {
		whose = " of this user"
	}
	return protocol.Errorf(protocol.CodeBusy, "%d tasks%s are %s, the limit", full.Limit, whose, state)
}

// leave notes that a task no longer runs. It may be called more than once: a
// task can be cancelled, expire and return. Only the first call gives the place
// back.
func (m *Manager) leave(t *Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live[t.record.ID] == t {
		delete(m.live, t.record.ID)
		m.running.Give(t.record.Owner, 1)
		if t.kept {
			m.owed[t.record.ID] = time.Now().Add(patience(&t.record))
		}
		m.turned()
	}
}

// ends notes that the end of a task is on its way to the Store, until done is
// called.
func (m *Manager) ends() (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ending--
		m.turned()
	}
}

// turned tells Drain to look again. m.mu is held.
func (m *Manager) turned() {
	if m.turn != nil {
		close(m.turn)
		m.turn = nil
	}
}

// Told notes that the client of a task learns how it ended, so that Drain
// need not wait for it: it has asked, is subscribed, or has cancelled the
// task itself. An id that no caller waits for is ignored.
func (m *Manager) Told(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.owed[id]; ok {
		delete(m.owed, id)
		m.turned()
	}
}

// Running returns how many tasks run here.
func (m *Manager) Running() int { return m.running.Used() }

// HandOver leaves the tasks that another replica may run again to it, and takes none
// from now on. What begins in the meantime, or after it, runs here.
func (m *Manager) HandOver() {
	m.draining.Store(true)
	if m.shared == nil {
		return
	}
	var left sync.WaitGroup
	room := make(chan struct{}, batch) // the store is asked for a batch at a time
	for _, t := range m.renewable() {  // of others the store may not have the call yet
		room <- struct{}{}
		left.Go(func() {
			defer func() { <-room }()
			t.Release()
		})
	}
	left.Wait()
}

// Drain returns when no task runs, the Store has how each has ended, and the client
// of each was Told so, or has not asked for longer than its interval; or when ctx
// ends. From now on the server takes no task of another replica's.
func (m *Manager) Drain(ctx context.Context) {
	m.draining.Store(true)
	for {
		m.mu.Lock()
		var last time.Time
		for id, until := range m.owed {
			if !until.After(time.Now()) {
				delete(m.owed, id)
			} else if until.After(last) {
				last = until
			}
		}
		if len(m.live) == 0 && len(m.owed) == 0 && m.ending == 0 && !m.owes() {
			m.mu.Unlock()
			return
		}
		if m.turn == nil {
			m.turn = make(chan struct{})
		}
		turn, owed := m.turn, len(m.live) == 0 && len(m.owed) > 0
		m.mu.Unlock()
		var late <-chan time.Time
		if owed {
			late = time.After(time.Until(last))
		}
		select {
		case <-turn:
		case <-late:
		case <-ctx.Done():
			return
		}
	}
}

// forget notes that a task is kept no more. It is called once for each task
// that enter let in: by Drop if it was never kept, else by expire.
func (m *Manager) forget(t *Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.Give(t.record.Owner, 1)
	m.bytes.Give(t.record.Owner, t.bytes)
	t.bytes, t.forgotten = 0, true
	delete(m.owed, t.record.ID)
	m.turned()
}

// resize notes how many bytes a task keeps. It returns false if there is no room
// for them; the earlier number then stays. A task that was forgotten counts no
// bytes. t.mu is held.
func (m *Manager) resize(t *Task, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch more := bytes - t.bytes; {
	case t.forgotten:
		return true
	case more < 0:
		m.bytes.Give(t.record.Owner, -more)
	case m.bytes.Take(t.record.Owner, more) != nil:
		return false
	}
	t.bytes = bytes
	return true
}

// expire ends and forgets a task whose time is up. It runs on the goroutine of
// the timer that begun has started. The order matters: after end no change is
// saved any more, so that nothing brings back what discard deletes. The task
// of another replica must not be deleted here.
func (m *Manager) expire(t *Task) {
	if m.end(t, ErrExpired) {
		t.discard()
	}
	m.forget(t)
}

// end ends a run that is over for that reason, and reports whether it was not so
// before.
func (m *Manager) end(t *Task, cause error) bool {
	first := t.end(cause)
	m.leave(t)
	t.cancel(cause)
	t.mu.Lock()
	expiry := t.expiry
	t.mu.Unlock()
	if first && cause == ErrLost && expiry != nil && expiry.Stop() {
		m.forget(t) // others keep it now
	}
	return first
}

// renewable returns the tasks that run here and that clients know of.
func (m *Manager) renewable() (tasks []*Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.live {
		if t.kept {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// rename gives a task that is not kept another id, and returns the one it had.
func (m *Manager) rename(t *Task) (before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	before = t.record.ID
	if m.live[before] == t {
		delete(m.live, before)
		t.record.ID = replicas.NewID()
		m.live[t.record.ID] = t
	}
	return before
}

// use runs code of the Store, on a goroutine of its own: it may be at the end of
// a task, of which the record must be kept and the place given back. The text of
// a panic is not sent to a client.
func (m *Manager) use(fn func() error) error {
	err := safely.Try(fn)
	if failure, ok := errors.AsType[*safely.Failure](err); ok {
		m.failed(failure.Detail())
		return errStore
	}
	return err
}

// errStore is the error of a Store that did not return.
var errStore = errors.New("the store failed")

// failed tells Config.StoreFailed of an error. errStore is left out: use has
// told of the panic behind it already.
func (m *Manager) failed(err error) {
	if err != nil && err != errStore && m.config.StoreFailed != nil {
		_ = safely.Apart(func() { m.config.StoreFailed(err) }) // there is nothing else to tell
	}
}

// keep saves a record.
func (m *Manager) keep(r *Record) error {
	return m.useSoon(func(ctx context.Context) error { return m.config.Store.Save(ctx, r) })
}

// useSoon is use for what has to be done although its request may have gone, so
// that only the time ends it.
func (m *Manager) useSoon(fn func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(context.Background(), replicas.StoreTimeout)
	defer stop()
	return m.use(func() error { return fn(ctx) })
}

// Get returns the record of a task of owner. An unknown task, or that of another
// owner, is a protocol error, -32602.
func (m *Manager) Get(ctx context.Context, owner, id string) (Record, error) {
	if !replicas.IsID(id) { // whatever clients send, a Store is asked only for ids
		return Record{}, protocol.Errorf(protocol.CodeInvalidParams, "Task not found: what was sent has not the form of a taskId")
	}
	var r Record
	var ok bool
	err := m.use(func() (err error) { r, ok, err = m.config.Store.Load(ctx, id); return err })
	if err != nil {
		return Record{}, m.away("the task cannot be looked up", err)
	}
	if !ok || r.Owner != owner {
		return Record{}, protocol.Errorf(protocol.CodeInvalidParams, "Task not found: %s", id)
	}
	return r, nil
}

// Look returns the record of a task, of any owner; ok is false if there is
// none.
func (m *Manager) Look(ctx context.Context, id string) (r Record, ok bool, err error) {
	err = m.use(func() (err error) { r, ok, err = m.config.Store.Load(ctx, id); return err })
	return r, ok, err
}

// Update gives answers to a task. Those that it did not ask for are ignored. When
// it returns nil they are kept, so that the run of the task gets them.
func (m *Manager) Update(ctx context.Context, owner, id string, answers map[string]json.RawMessage) error {
	if _, err := m.Get(ctx, owner, id); err != nil {
		return err
	}
	if t := m.ours(id); t != nil {
		if err := t.answer(answers); err != nil || !t.lost() {
			return m.away("the answers cannot be kept", err)
		}
	}
	if m.shared == nil {
		return nil
	}
	return m.away("the answers cannot be kept", m.elsewhere(ctx, id, letterAnswers, func(r *Record) bool { return r.take(answers) }))
}

// Cancel asks a task to end. One that has ended is left as it is.
func (m *Manager) Cancel(ctx context.Context, owner, id string) error {
	if _, err := m.Get(ctx, owner, id); err != nil {
		return err
	}
	if t := m.ours(id); t != nil {
		// Its state first: the work may be quick to end, and to call that its result.
		err := t.Finish(protocol.TaskCancelled, nil, nil)
		m.Told(id) // by itself
		t.cancel(ErrCancelled)
		if err != nil || !t.lost() {
			return m.away("the task cannot be cancelled", err)
		}
	}
	if m.shared == nil {
		return nil
	}
	return m.away("the task cannot be cancelled", m.elsewhere(ctx, id, letterCancel, func(r *Record) bool {
		r.end(protocol.TaskCancelled, nil, nil)
		return true
	}))
}

// away returns the error for a client whose request could not be served because
// the store that replicas share did not answer; others as they are.
func (m *Manager) away(what string, err error) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok || err == nil || m.shared == nil {
		return err // it says more
	}
	return wire.Unavailable(what, err)
}

// elsewhere changes a task that another replica runs, or none, and notifies
// the replica.
func (m *Manager) elsewhere(ctx context.Context, id, kind string, fn func(r *Record) bool) error {
	var r Record
	var node string
	var done bool
	err := m.use(func() (err error) { r, node, done, err = m.shared.change(ctx, id, fn); return err })
	if done {
		m.changed(State{Record: r})
		_ = m.use(func() error { return m.shared.tell(ctx, node, kind, id) }) // it finds out anyway
	}
	return err
}

// task returns a task that runs in this process; nil if it has ended, or runs
// elsewhere. The caller has checked, with Get, whose it is.
func (m *Manager) task(id string) *Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[id]
}

// ours is task for clients: one that replicas share, and that is being taken
// here, is not this replica's yet.
func (m *Manager) ours(id string) *Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.live[id]; t != nil && (t.kept || m.shared == nil) {
		return t
	}
	return nil
}
