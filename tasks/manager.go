package tasks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// The limits that a zero Config stands for.
const (
	DefaultTTL     = time.Hour
	DefaultMax     = 10_000
	DefaultRunning = 64
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
	owned   map[string]int // kept, by principal
	running int
	live    map[string]*Task
}

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
	if changed == nil {
		changed = func(Record) {}
	}
	return &Manager{config: config, changed: changed, live: make(map[string]*Task), owned: make(map[string]int)}
}

// Create makes a task of owner that works. cancel ends its work. Task.Finish
// must be called when that has ended.
func (m *Manager) Create(owner string, ttl, poll time.Duration, cancel context.CancelCauseFunc) (*Task, error) {
	if ttl <= 0 {
		ttl = m.config.TTL
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	now := time.Now()
	t := &Task{manager: m, cancel: cancel, used: map[string]int{}, answers: map[string]chan json.RawMessage{}, record: Record{
		ID: base64.RawURLEncoding.EncodeToString(raw[:]), Owner: owner, Status: Working,
		Created: now, Updated: now, TTL: ttl, PollInterval: poll,
	}}
	if err := m.enter(t); err != nil {
		return nil, err
	}
	if err := m.config.Store.Save(context.Background(), t.record); err != nil {
		m.leave(t)
		m.forget(t)
		return nil, protocol.Errorf(protocol.CodeInternal, "the task could not be kept: %w", err)
	}
	time.AfterFunc(ttl, func() { m.expire(t) })
	return t, nil
}

func (m *Manager) enter(t *Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.running >= m.config.MaxRunning:
		return protocol.Errorf(protocol.CodeBusy, "%d tasks are running, which is the limit", m.running)
	case m.kept >= m.config.Max:
		return protocol.Errorf(protocol.CodeBusy, "%d tasks are kept, which is the limit", m.kept)
	case t.record.Owner != "" && m.config.MaxPerOwner > 0 && m.owned[t.record.Owner] >= m.config.MaxPerOwner:
		return protocol.Errorf(protocol.CodeBusy, "%d tasks of this user are kept, which is the limit", m.owned[t.record.Owner])
	}
	m.running++
	m.kept++
	m.owned[t.record.Owner]++
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
	}
}

// forget notes that a task is kept no more.
func (m *Manager) forget(t *Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept--
	if m.owned[t.record.Owner]--; m.owned[t.record.Owner] == 0 {
		delete(m.owned, t.record.Owner)
	}
}

// expire ends and forgets a task whose time is up.
func (m *Manager) expire(t *Task) {
	t.cancel(ErrExpired)
	t.gone()
	// A store that fails to delete keeps what it has; there is nobody to tell.
	_ = m.config.Store.Delete(context.Background(), t.record.ID)
	m.forget(t)
}

// Get returns the record of a task of owner. One that does not exist, or is
// another's, is a protocol error, -32602.
func (m *Manager) Get(ctx context.Context, owner, id string) (Record, error) {
	r, ok, err := m.config.Store.Load(ctx, id)
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

	mu      sync.Mutex
	record  Record
	deleted bool
	used    map[string]int // how often a key was asked
	answers map[string]chan json.RawMessage
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted || t.record.Status.Final() {
		return nil
	}
	fn(&t.record)
	t.record.Updated = time.Now()
	r := t.copy()
	if err := t.manager.config.Store.Save(context.Background(), r); err != nil {
		return err
	}
	t.manager.changed(r)
	return nil
}

// Note sets the message of a task's state.
func (t *Task) Note(message string) error {
	return t.change(func(r *Record) { r.StatusMessage = message })
}

// Finish ends the task: with a result, or an error, whose message becomes that
// of the state, or cancelled. What comes after the first end counts no more.
func (t *Task) Finish(status Status, result, fault json.RawMessage) error {
	err := t.change(func(r *Record) {
		r.Status, r.Result, r.Fault, r.Requests = status, result, fault, nil
		if status == Failed {
			var wire struct{ Message string }
			_ = json.Unmarshal(fault, &wire) // without one there is no message
			r.StatusMessage = wire.Message
		}
	})
	t.manager.leave(t)
	return err
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
