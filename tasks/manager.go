package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
)

// The limits that a zero Config stands for.
const (
	DefaultTTL     = time.Hour
	DefaultMax     = 10_000
	DefaultRunning = 64
	DefaultMemory  = 256 << 20 // bytes
)

// Config bounds the tasks of a server.
type Config struct {
	Store      Store         // nil means a Memory
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
	// StoreFailed is told of panics of Store, and of errors of which no client
	// hears. nil means that the Server logs them.
	StoreFailed func(error)
}

// ErrCancelled is the cause of the context of a task that its client
// cancelled, ErrExpired of one that outlived its TTL.
var (
	ErrCancelled = errors.New("tasks: cancelled by the client")
	ErrExpired   = errors.New("tasks: the task outlived its time")
)

// Manager runs tasks. It is safe for concurrent use.
type Manager struct {
	config  Config
	changed func(Record) // told of every change

	mu      sync.Mutex
	kept    int
	running int
	bytes   int               // of what is kept
	owned   map[string]*share // of those who have any
	named   bool              // whether a client with a name has come
	live    map[string]*Task
	owed    map[string]time.Time // tasks that ended and of which nobody has heard, and until when that may be waited for
	turn    chan struct{}        // closed when running or owed are others; made by Drain
}

// share is what one owner has of what the Manager bounds.
type share struct{ kept, running, bytes int }

// NewManager returns a Manager without tasks. changed, if not nil, is told of
// every change of a task; it must return soon.
func NewManager(config Config, changed func(Record)) *Manager {
	if config.Store == nil {
		config.Store = &Memory{}
	}
	if config.TTL <= 0 {
		config.TTL = DefaultTTL
	}
	if config.Max <= 0 {
		config.Max = DefaultMax
	}
	if config.MaxRunning <= 0 {
		config.MaxRunning = DefaultRunning
	}
	if config.MaxPerOwner == 0 {
		config.MaxPerOwner = max(1, config.Max/10)
	}
	if config.MaxRunningPerOwner == 0 {
		config.MaxRunningPerOwner = max(1, config.MaxRunning/4)
	}
	if config.Memory <= 0 {
		config.Memory = DefaultMemory
	}
	if changed == nil {
		changed = func(Record) {}
	}
	return &Manager{config: config, changed: changed, live: make(map[string]*Task), owned: make(map[string]*share), owed: make(map[string]time.Time)}
}

// Create makes a task of owner that works. cancel ends its work. Task.Finish
// must be called when that has ended.
func (m *Manager) Create(owner string, ttl, poll time.Duration, cancel context.CancelCauseFunc) (*Task, error) {
	t, err := m.Reserve(owner, ttl, poll, cancel)
	if err != nil {
		return nil, err
	}
	if err := t.Keep(); err != nil {
		t.Drop()
		return nil, err
	}
	return t, nil
}

// Reserve is Create for work that may end before anybody is told of a task. It
// takes the place of one. Task.Keep makes it one that clients can ask for, from
// then on; without that, Task.Drop must be called when the work has ended.
func (m *Manager) Reserve(owner string, ttl, poll time.Duration, cancel context.CancelCauseFunc) (*Task, error) {
	if ttl <= 0 {
		ttl = m.config.TTL
	}
	t := &Task{manager: m, cancel: cancel, used: map[string]int{}, answers: map[string]chan json.RawMessage{}, saving: make(chan struct{}, 1), record: Record{
		ID: opaque.NewID(), Owner: owner, Status: Working,
		TTL: ttl, PollInterval: poll,
	}}
	if err := m.enter(t); err != nil {
		return nil, err
	}
	return t, nil
}

func (m *Manager) enter(t *Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner := t.record.Owner
	named := owner != ""
	m.named = m.named || named
	own := m.owned[owner]
	if own == nil {
		own = &share{}
	}
	limit := func(n, limit int) bool { return limit > 0 && n >= limit }
	switch {
	case m.running >= m.config.MaxRunning:
		return protocol.Errorf(protocol.CodeBusy, "%d tasks are running, which is the limit", m.running)
	case m.named && limit(own.running, m.config.MaxRunningPerOwner):
		return protocol.Errorf(protocol.CodeBusy, "%d tasks of this user are running, which is the limit", own.running)
	case m.kept >= m.config.Max:
		return protocol.Errorf(protocol.CodeBusy, "%d tasks are kept, which is the limit", m.kept)
	case named && limit(own.kept, m.config.MaxPerOwner):
		return protocol.Errorf(protocol.CodeBusy, "%d tasks of this user are kept, which is the limit", own.kept)
	case m.bytes >= max(1, m.config.Memory/4*3) || named && m.config.MaxPerOwner > 0 && own.bytes >= max(1, m.config.Memory/10):
		return protocol.Errorf(protocol.CodeBusy, "the results of tasks that are kept leave no room for another")
	}
	m.running++
	m.kept++
	own.running++
	own.kept++
	m.owned[owner] = own
	m.live[t.record.ID] = t
	return nil
}

// leave notes that a task no longer runs.
func (m *Manager) leave(t *Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.live[t.record.ID]; ok {
		delete(m.live, t.record.ID)
		m.running--
		m.owned[t.record.Owner].running--
		if t.kept {
			m.owed[t.record.ID] = time.Now().Add(t.record.patience())
		}
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

// Told notes that the client of a task hears how it ended.
func (m *Manager) Told(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.owed[id]; ok {
		delete(m.owed, id)
		m.turned()
	}
}

// Drain returns when no task runs and the client of each that ended was Told
// so, or has not asked for longer than its interval; or when ctx ends.
func (m *Manager) Drain(ctx context.Context) {
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
		if m.running == 0 && len(m.owed) == 0 {
			m.mu.Unlock()
			return
		}
		if m.turn == nil {
			m.turn = make(chan struct{})
		}
		turn, running := m.turn, m.running > 0
		m.mu.Unlock()
		var late <-chan time.Time
		if !running {
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

// forget notes that a task is kept no more.
func (m *Manager) forget(t *Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.owned[t.record.Owner]
	m.kept--
	delete(m.owed, t.record.ID)
	m.turned()
	m.bytes -= t.bytes
	own.bytes -= t.bytes
	if own.kept--; own.kept == 0 {
		delete(m.owned, t.record.Owner)
	}
}

// resize notes that a task keeps so many bytes. It tells false if there is no
// room for them.
func (m *Manager) resize(t *Task, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, more := m.owned[t.record.Owner], bytes-t.bytes
	if own == nil { // it is kept no more
		return true
	}
	if more > 0 && m.bytes+more > m.config.Memory {
		return false
	}
	t.bytes = bytes
	m.bytes += more
	own.bytes += more
	return true
}

// expire ends and forgets a task whose time is up.
func (m *Manager) expire(t *Task) {
	t.cancel(ErrExpired)
	t.gone()
	t.discard()
	m.forget(t)
}

// use runs code of the Store, on a goroutine of its own: it may be at the end of
// a task, of which the record must be kept and the place given back. What it
// panics with is no client's to hear.
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

func (m *Manager) failed(err error) {
	if err != errStore && m.config.StoreFailed != nil {
		_ = safely.Apart(func() { m.config.StoreFailed(err) }) // there is nobody else to tell
	}
}

// keep saves a record.
func (m *Manager) keep(r Record) error {
	return m.useSoon(func(ctx context.Context) error { return m.config.Store.Save(ctx, r) })
}

// useSoon is use for what has to be done although its request may have gone, so
// that only the time ends it.
func (m *Manager) useSoon(fn func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	return m.use(func() error { return fn(ctx) })
}

// storeTimeout bounds each of these uses of the Store: what changes a task waits
// until that is kept.
const storeTimeout = 5 * time.Second

// Get returns the record of a task of owner. One that does not exist, or is
// another's, is a protocol error, -32602.
func (m *Manager) Get(ctx context.Context, owner, id string) (Record, error) {
	if !opaque.IsID(id) { // whatever clients send, a Store is asked for ids alone
		return Record{}, protocol.Errorf(protocol.CodeInvalidParams, "Task not found: what was sent has not the form of a taskId")
	}
	var r Record
	var ok bool
	err := m.use(func() (err error) { r, ok, err = m.config.Store.Load(ctx, id); return err })
	if err != nil {
		return Record{}, err
	}
	if !ok || r.Owner != owner {
		return Record{}, protocol.Errorf(protocol.CodeInvalidParams, "Task not found: %s", id)
	}
	return r, nil
}

// Update gives answers to a task. Those that it did not ask for are ignored.
func (m *Manager) Update(ctx context.Context, owner, id string, answers map[string]json.RawMessage) error {
	if _, err := m.Get(ctx, owner, id); err != nil {
		return err
	}
	if t := m.task(id); t != nil {
		return t.answer(answers)
	}
	return nil
}

// Cancel asks a task to end. One that has ended is left as it is.
func (m *Manager) Cancel(ctx context.Context, owner, id string) error {
	if _, err := m.Get(ctx, owner, id); err != nil {
		return err
	}
	if t := m.task(id); t != nil {
		// Its state first: the work may be quick to end, and to call that its result.
		err := t.Finish(Cancelled, nil, nil)
		m.Told(id) // by itself
		t.cancel(ErrCancelled)
		return err
	}
	return nil
}

func (m *Manager) task(id string) *Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[id]
}

// Task is a task that runs.
type Task struct {
	manager *Manager
	cancel  context.CancelCauseFunc
	kept    bool // clients can ask for it; held by manager.mu

	mu      sync.Mutex
	record  Record
	changes int // so many have made it what it is
	deleted bool
	used    map[string]int // how often a key was asked
	answers map[string]chan json.RawMessage

	saving  chan struct{} // has one element while the Store saves the record, or deletes it; mu is free then
	saved   int           // the last of changes that was to be saved; for who saves
	saveErr error         // what became of it; for who saves

	bytes int // what it keeps; the Manager's mu guards it
}

// Record returns the task as it is now.
func (t *Task) Record() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copy()
}

func (t *Task) copy() Record {
	r := t.record
	r.Requests = slices.Clone(r.Requests)
	return r
}

// change changes the record with fn, unless it is final, and keeps it.
func (t *Task) change(fn func(r *Record)) error {
	r, change, err := t.apply(fn)
	if change == 0 {
		return err
	}
	return t.save(r, change, t.manager.changed)
}

// save keeps what the record has become by that change, and tells of it, unless
// a later one came before: the last state is saved last, and told last.
func (t *Task) save(r Record, change int, tell func(Record)) error {
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	if change <= t.saved || t.isDeleted() {
		return t.saveErr
	}
	t.saved, t.saveErr = change, t.manager.keep(r)
	if t.saveErr == nil {
		tell(r)
	}
	return t.saveErr
}

// discard makes the Store forget the task, which is gone. A Store that fails to
// keeps what it has.
func (t *Task) discard() {
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	m := t.manager
	if err := m.useSoon(func(ctx context.Context) error { return m.config.Store.Delete(ctx, t.record.ID) }); err != nil {
		m.failed(err)
	}
}

func (t *Task) isDeleted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deleted
}

// apply changes the record with fn, and returns what it has become and the
// number of the change; 0 if there was none.
func (t *Task) apply(fn func(r *Record)) (r Record, change int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted || t.record.Status.Final() {
		return r, 0, nil
	}
	before := t.record
	fn(&t.record)
	if bytes := t.record.bytes(); !t.manager.resize(t, bytes) {
		tooLong := protocol.Errorf(protocol.CodeBusy, "%d bytes of a task are more than the server has room to keep", bytes)
		if !t.record.Status.Final() {
			t.record = before
			return r, 0, tooLong
		}
		t.record.Status, t.record.StatusMessage = Failed, tooLong.Message
		t.record.Result, t.record.Fault = nil, tooLong.Append(nil)
		t.manager.resize(t, 0)
	}
	t.record.Updated = time.Now()
	t.changes++
	return t.copy(), t.changes, nil
}

// Keep makes a reserved task one that clients can ask for.
func (t *Task) Keep() error {
	t.mu.Lock()
	t.record.Created = time.Now()
	t.record.Updated = t.record.Created
	t.changes++
	r, change := t.copy(), t.changes
	t.mu.Unlock()
	if err := t.save(r, change, func(Record) {}); err != nil {
		return protocol.Errorf(protocol.CodeInternal, "the task could not be kept: %w", err)
	}
	t.manager.mu.Lock()
	t.kept = true
	t.manager.mu.Unlock()
	time.AfterFunc(r.TTL, func() { t.manager.expire(t) })
	return nil
}

// Drop gives back the place of a reserved task that was not kept.
func (t *Task) Drop() {
	t.manager.leave(t)
	t.manager.forget(t)
}

// Note sets how far a task has come, and the message of its state if p has one.
// What was overtaken meanwhile is left out.
func (t *Task) Note(p protocol.Progress) error {
	return t.change(func(r *Record) {
		if r.Progress != nil && p.Progress < r.Progress.Progress {
			return
		}
		r.Progress = &Progress{Progress: p.Progress, Total: p.Total}
		if p.Message != "" {
			r.StatusMessage = p.Message
		}
	})
}

// Finish ends the task: with a result, or an error, whose message becomes that
// of the state, or cancelled. What comes after the first end counts no more.
func (t *Task) Finish(status Status, result, fault json.RawMessage) error {
	t.manager.leave(t) // first: who sees the end may start the next at once
	return t.change(func(r *Record) {
		r.Status, r.Result, r.Fault, r.Requests = status, result, fault, nil
		if status == Failed {
			var wire struct{ Message string }
			_ = json.Unmarshal(fault, &wire) // without one there is no message
			r.StatusMessage = wire.Message
		}
	})
}

// gone keeps the task from being saved again.
func (t *Task) gone() {
	t.mu.Lock()
	t.deleted = true
	t.mu.Unlock()
	t.manager.leave(t)
}

// Ask puts questions to the client and waits for the answers.
func (t *Task) Ask(ctx context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error) {
	waits := make([]chan json.RawMessage, len(questions))
	err := t.change(func(r *Record) {
		for i, q := range questions {
			// A key may be used once in the life of a task.
			if t.used[q.Key]++; t.used[q.Key] > 1 {
				q.Key = uniqueKey(t.used, q.Key)
			}
			waits[i] = make(chan json.RawMessage, 1)
			t.answers[q.Key] = waits[i]
			r.Requests = append(r.Requests, q)
		}
		r.Status = InputRequired
	})
	if err != nil {
		return nil, err
	}
	answers := make([]json.RawMessage, len(questions))
	for i, wait := range waits {
		if wait == nil { // the task has ended
			return nil, ErrCancelled
		}
		select {
		case answers[i] = <-wait:
		case <-ctx.Done():
			// What the work waits for no more, the client need not answer.
			if err := t.withdraw(waits); err != nil {
				return nil, errors.Join(context.Cause(ctx), err)
			}
			return nil, context.Cause(ctx)
		}
	}
	return answers, nil
}

// withdraw takes back the questions whose answers were to come to waits.
func (t *Task) withdraw(waits []chan json.RawMessage) error {
	return t.change(func(r *Record) {
		r.Requests = slices.DeleteFunc(slices.Clone(r.Requests), func(q protocol.InputRequest) bool {
			wait, ok := t.answers[q.Key]
			if ok = ok && slices.Contains(waits, wait); ok {
				delete(t.answers, q.Key)
			}
			return ok
		})
		if len(r.Requests) == 0 {
			r.Status = Working
		}
	})
}

// uniqueKey returns a key like key that was not used, and notes that it is.
func uniqueKey(used map[string]int, key string) string {
	for n := used[key]; ; n++ {
		if next := fmt.Sprintf("%s-%d", key, n); used[next] == 0 {
			used[next] = 1
			return next
		}
	}
}

// answer gives answers to the questions that wait for them.
func (t *Task) answer(answers map[string]json.RawMessage) error {
	if !t.waitsFor(answers) {
		return nil
	}
	return t.change(func(r *Record) {
		r.Requests = slices.DeleteFunc(slices.Clone(r.Requests), func(q protocol.InputRequest) bool {
			value, ok := answers[q.Key]
			if ok {
				t.answers[q.Key] <- value
				delete(t.answers, q.Key)
			}
			return ok
		})
		if len(r.Requests) == 0 {
			r.Status = Working
		}
	})
}

// waitsFor tells whether any of the answers is to a question of the task.
func (t *Task) waitsFor(answers map[string]json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range answers {
		if _, ok := t.answers[key]; ok {
			return true
		}
	}
	return false
}
