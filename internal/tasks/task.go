package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Task is a task that runs. It is reserved at first, and known to nobody; Keep
// makes it one that clients can ask for; it ends with Finish, or when its TTL
// is over. Its methods are safe for concurrent use.
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

	bytes     int  // what it keeps; the Manager's mu guards it
	forgotten bool // it counts no more; likewise
}

// Record returns the task as it is now.
func (t *Task) Record() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copy()
}

// copy returns the record with a list of requests of its own, as the Store and
// other goroutines get it. t.mu is held.
func (t *Task) copy() Record {
	r := t.record
	r.Requests = slices.Clone(r.Requests)
	return r
}

// change changes the record with fn, unless it is final, and keeps it. fn runs
// while t.mu is held. It returns when the Store has the change, or a later one.
// The error is that of the Store, or of a record that there is no room for; a
// record that cannot be saved stays changed here.
func (t *Task) change(fn func(r *Record)) error {
	r, change, err := t.apply(fn)
	if change == 0 {
		return err
	}
	return t.save(r, change, t.manager.changed)
}

// save keeps what the record has become by that change, and tells of it, unless
// a later one came before: the last state is saved last, and told last.
func (t *Task) save(r Record, change int, tell func(State)) error {
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	if change <= t.saved || t.isDeleted() {
		return t.saveErr
	}
	t.saved, t.saveErr = change, t.manager.keep(r)
	if errors.Is(t.saveErr, errOver) {
		t.saveErr = nil // what it has become here, nobody hears of
		t.end()
		t.manager.leave(t)
		t.cancel(ErrCancelled)
		return nil
	}
	if t.saveErr == nil {
		tell(State{Record: r})
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

// isDeleted tells whether the time of the task is up; see gone.
func (t *Task) isDeleted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deleted
}

// apply changes the record with fn, and returns what it has become and the
// number of the change; 0 if there was none. If there is no room for what the
// record would keep, the change fails and the record is as before; but a task
// that is to end does end, as one that failed and keeps no result.
func (t *Task) apply(fn func(r *Record)) (r Record, change int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted || t.record.Status.Final() {
		return r, 0, nil
	}
	before := t.record
	fn(&t.record)
	if bytes := size(&t.record); !t.manager.resize(t, bytes) {
		tooLong := protocol.Errorf(protocol.CodeBusy, "%d bytes of a task are more than the server has room to keep", bytes)
		if !t.record.Status.Final() {
			t.record = before
			return r, 0, tooLong
		}
		t.record.Status, t.record.StatusMessage = protocol.TaskFailed, tooLong.Message
		t.record.Result, t.record.Fault = nil, wire.AppendError(nil, tooLong)
		t.manager.resize(t, 0)
	}
	t.record.Updated = time.Now()
	t.changes++
	return t.copy(), t.changes, nil
}

// Keep makes a reserved task one that clients can ask for. From now on its TTL
// runs, and its record is in the Store. If the Store fails, the task stays
// reserved and Keep may be tried again.
func (t *Task) Keep() error {
	t.mu.Lock()
	t.record.Created = time.Now()
	t.record.Updated = t.record.Created
	t.changes++
	r, change := t.copy(), t.changes
	t.mu.Unlock()
	if err := t.save(r, change, func(State) {}); err != nil {
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
func (t *Task) Note(p wire.Progress) error {
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
func (t *Task) Finish(status protocol.TaskStatus, result, fault json.RawMessage) error {
	t.manager.leave(t) // first: who sees the end may start the next at once
	return t.change(func(r *Record) {
		r.Status, r.Result, r.Fault, r.Requests = status, result, fault, nil
		if status == protocol.TaskFailed {
			var wire struct{ Message string }
			_ = json.Unmarshal(fault, &wire) // without one there is no message
			r.StatusMessage = wire.Message
		}
	})
}

// gone keeps the task from being saved again.
func (t *Task) gone() {
	t.end()
	t.manager.leave(t)
}

// end keeps the task from being changed and saved again.
func (t *Task) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted = true
}

// Ask puts questions to the client and waits for the answers, which
// tasks/update brings in any order. It returns them in the order of the
// questions. When ctx ends first, the questions are withdrawn and the error is
// the cause of ctx. On a task that has ended it returns ErrCancelled at once.
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
		r.Status = protocol.TaskInputRequired
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

// withdraw takes back the questions whose answers were to come to waits. Their
// keys stay used: an answer that is under way must not reach a later question.
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
			r.Status = protocol.TaskWorking
		}
	})
}

// answer gives answers to the questions that wait for them. The channels have
// room for one, and a question leaves the table with its answer, so that
// nothing here blocks. Nothing is saved if none of the answers is to a question
// of the task.
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
			r.Status = protocol.TaskWorking
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

// uniqueKey returns a key like key that was not used, and notes that it is.
func uniqueKey(used map[string]int, key string) string {
	for n := used[key]; ; n++ {
		if next := fmt.Sprintf("%s-%d", key, n); used[next] == 0 {
			used[next] = 1
			return next
		}
	}
}
