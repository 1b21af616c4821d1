package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Task is one run of a task, which this process runs. It is reserved at first, and
// unknown to clients; Keep makes it one that clients can ask for. It ends with
// Finish, when its TTL is over, or when another replica has taken the task. Its
// methods are safe for concurrent use.
type Task struct {
	manager *Manager
	cancel  context.CancelCauseFunc
	kept    bool // clients can ask for it; held by manager.mu

	mu      sync.Mutex
	record  Record
	changes int           // number of changes so far
	token   int64         // see Run
	over    error         // why it is changed and saved no more; nil while it may be
	done    chan struct{} // closed when over is set
	lapse   *time.Timer   // gives it up
	expiry  *time.Timer
	notes   *time.Timer     // keeps notes; nil if there are none to keep
	noted   time.Time       // when notes were kept last
	asked   map[string]bool // keys of the questions of this run
	answers map[string]chan json.RawMessage

	saving  chan struct{} // has one element while the Store saves the record, or deletes it; mu is free then
	saved   int           // the last of changes that was to be saved; for the goroutine that saves
	saveErr error         // its outcome; for the goroutine that saves

	bytes     int  // what it keeps; the Manager's mu guards it
	forgotten bool // it counts no more; the same
}

// Record returns the task as it is now.
func (t *Task) Record() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copy()
}

// Run returns which run of the task this is, from 1, and a number that is greater
// than that of every run before: a system that has seen a greater one can refuse
// what an overtaken run wants of it.
func (t *Task) Run() (run int, token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record.Run, t.token
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

// insist is change for changes that the work depends on: while replicas share the
// task and their store is unavailable, it tries again until ctx or the run is
// over.
func (t *Task) insist(ctx context.Context, fn func(r *Record)) error {
	err := t.change(fn)
	for t.manager.shared != nil && (errors.Is(err, scale.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) {
		select {
		case <-time.After(time.Second):
			err = t.saveAgain()
		case <-ctx.Done():
			return err
		case <-t.done:
			return nil // as change of a run that is over
		}
	}
	return err
}

// save keeps what the record has become by that change, and tells of it, unless
// a later one came before: the last state is saved last, and told last.
func (t *Task) save(r Record, change int, tell func(State)) error {
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	if change <= t.saved {
		return t.saveErr
	}
	t.saved = change
	return t.put(r, tell)
}

// saveAgain is save for a state whose save has failed, and for that of a run that
// has expired.
func (t *Task) saveAgain() error {
	t.saving <- struct{}{}
	defer func() { <-t.saving }()
	t.mu.Lock()
	r, lapsed := t.copy(), t.over == ErrLost
	t.mu.Unlock()
	if lapsed { // the store has it only if no replica has claimed the task
		if !r.Status.Final() { // others wait as long as the lease would have left them at least
			r.wait(t.manager.shared.lease() - t.manager.shared.giveUp())
		}
		err := t.manager.keep(&r)
		if _, over := errors.AsType[*overError](err); over {
			return nil
		}
		return err
	}
	if t.saveErr == nil {
		return nil
	}
	return t.put(r, t.manager.changed)
}

// put is save for the goroutine that may save, whichever state r is.
func (t *Task) put(r Record, tell func(State)) error {
	if !t.refresh(&r) {
		t.saveErr = nil
		return nil
	}
	began := time.Now()
	t.saveErr = t.manager.keep(&r)
	if over, ok := errors.AsType[*overError](t.saveErr); ok {
		t.saveErr = nil // no client learns of its state here
		t.manager.end(t, over.cause)
		return nil
	}
	if t.saveErr == nil {
		t.follow(&r, began)
		tell(State{Record: r})
	}
	return t.saveErr
}

// refresh gives a copy that is to be saved what others have added since it was
// made. It tells false if the task is over.
func (t *Task) refresh(r *Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.merge(&t.record)
	return t.over == nil
}

// follow takes over what the Store has of this run, and gives the work the answers
// that have come. The task was this run's at that time, unless that is zero.
func (t *Task) follow(now *Record, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record.merge(now)
	for key, value := range now.Answers {
		if wait, ok := t.answers[key]; ok {
			wait <- value // which has room for it
			delete(t.answers, key)
		}
		if _, ok := t.record.Answers[key]; ok && !t.record.Replay { // it is not needed again
			t.record.Answers = maps.Clone(t.record.Answers)
			delete(t.record.Answers, key)
		}
	}
	if !at.IsZero() {
		t.holds(at)
	}
}

// confirm notes that the task was this run's at that time.
func (t *Task) confirm(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds(at)
}

// holds is confirm with t.mu held. A task that may be replayed is given up in
// time, so that there are not two runs of it where the first heeds its context.
// Others need not be: they are not repeated, and their outcome counts only if
// they still have the task.
func (t *Task) holds(at time.Time) {
	if t.manager.shared == nil || !t.record.Replay || t.over != nil || t.record.Status.Final() {
		return
	}
	left := time.Until(at.Add(t.manager.shared.giveUp()))
	if t.lapse == nil {
		t.lapse = time.AfterFunc(left, t.lapsed)
		return
	}
	t.lapse.Reset(left)
}

// expired gives up a run that could not be renewed for long. Its replica is
// there, so the store was unavailable: once it answers, the task is left to
// others, as by release, and the run does not count as one that lost its
// replica.
func (t *Task) lapsed() {
	if t.Record().Status.Final() { // its end is on its way to the Store
		return
	}
	if t.manager.end(t, ErrLost) {
		t.manager.keepTrying(t)
	}
}

// stopTimers stops what only a run needs that continues. t.mu is held.
func (t *Task) stopTimers() {
	for _, timer := range []*time.Timer{t.lapse, t.notes} {
		if timer != nil {
			timer.Stop()
		}
	}
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

// apply changes the record with fn, and returns what it has become and the
// number of the change; 0 if there was none. If there is no room for what the
// record would keep, the change fails and the record is as before; but a task
// that is to end does end, as one that failed and keeps no result.
func (t *Task) apply(fn func(r *Record)) (r Record, change int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil || t.record.Status.Final() {
		return r, 0, nil
	}
	before := t.record
	fn(&t.record)
	bytes := size(&t.record)
	if t.manager.shared != nil && bytes-t.record.Call > maxShared && !t.record.Status.Final() { // or it could not be saved any more
		t.record = before
		return r, 0, protocol.Errorf(protocol.CodeInvalidParams, "%d bytes of questions, answers and values of a task are more than replicas can share, which is %d", bytes, maxShared)
	}
	if !t.manager.resize(t, bytes) {
		tooLong := protocol.Errorf(protocol.CodeBusy, "%d bytes of a task are more than the server has room to keep", bytes)
		if !t.record.Status.Final() {
			t.record = before
			return r, 0, tooLong
		}
		t.record.Status, t.record.StatusMessage = protocol.TaskFailed, tooLong.Message
		t.record.Result, t.record.Fault = nil, wire.AppendError(nil, tooLong)
		t.manager.resize(t, 0)
	}
	if t.record.Status.Final() {
		t.stopTimers()
	}
	t.record.Updated = time.Now()
	t.changes++
	return t.copy(), t.changes, nil
}

// Keep makes a reserved task one that clients can ask for. From now on its TTL
// runs, and its record is in the Store. If the Store fails, the task stays
// reserved and Keep may be tried again.
//
// With a call, which is not nil, another replica may run the task again, if there
// are others: it then gets the call, and the questions and values of the work so
// far.
func (t *Task) Keep(call *Call) error {
	t.mu.Lock()
	t.record.Replay, t.record.Worker, t.record.Waiting, t.record.Call = false, false, false, 0
	t.record.Created = time.Now()
	t.record.Updated = t.record.Created
	t.record.Run, t.token = 1, t.record.Created.UnixMicro()
	var err error
	if call != nil && t.manager.shared != nil {
		err = t.manager.shared.describe(&t.record, call)
	}
	t.changes++
	r, change := t.copy(), t.changes
	t.mu.Unlock()
	if err != nil {
		return err
	}
	if bytes := size(&r); !t.manager.resize(t, bytes) {
		return protocol.Errorf(protocol.CodeBusy, "%d bytes of a call are more than the server has room to keep", bytes)
	}
	err = t.keepCall(&r, call)
	if err == nil {
		if err = t.save(r, change, func(State) {}); err != nil && r.Replay {
			err = fmt.Errorf("another replica may find the task and run it: %v", err) // not as one that may pass
		}
	}
	if err != nil {
		t.manager.unmake(t)
		return &protocol.Error{ // its call may have begun, and must not look as if it might be sent again
			Code: protocol.CodeInternal, Message: "the task could not be kept", Data: map[string]bool{"executed": true}, Err: err,
		}
	}
	t.begun()
	return nil
}

// keepCall keeps the call of a task, before the task can be found.
func (t *Task) keepCall(r *Record, call *Call) error {
	if r.Call == 0 {
		return nil
	}
	return t.manager.useSoon(func(ctx context.Context) error { return t.manager.shared.keepCall(ctx, r, call) })
}

// begun makes the task one that has its time, and that this process renews.
func (t *Task) begun() {
	t.mu.Lock()
	if t.record.rev != 0 {
		t.token = int64(t.record.rev)
	}
	left := time.Until(t.record.Created.Add(t.record.TTL))
	t.expiry = time.AfterFunc(left, func() { t.manager.expire(t) })
	t.mu.Unlock()
	t.manager.mu.Lock()
	t.kept = true
	t.manager.mu.Unlock()
}

// claimed makes a task that this replica has taken, as of that time, one that it
// runs.
func (t *Task) claimed(r *Record, at time.Time) {
	t.mu.Lock()
	t.record = *r
	t.holds(at)
	t.mu.Unlock()
	t.begun()
}

// adopt makes the run continue with what the store has, if that is its own. It
// tells false if the run is over.
func (t *Task) adopt(now *Record, at time.Time) bool {
	t.mu.Lock()
	goesOn := t.over == nil && t.record.Run == now.Run
	t.mu.Unlock()
	if goesOn {
		t.follow(now, at)
	}
	return goesOn
}

// found notes that this replica has what the task needs.
func (t *Task) found() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record.Seeking = time.Time{}
}

// Leave gives a task that was kept for a worker to the first worker that finds
// it.
func (t *Task) Leave() {
	t.manager.end(t, errLeft)
	t.manager.Told(t.record.ID)
	r := t.Record()
	t.manager.queue(laneOf(&r))
}

// errLeft is the cause of a task that was left to a worker.
var errLeft = errors.New("tasks: left to a worker")

// Drop gives back the place of a reserved task that was not kept.
func (t *Task) Drop() {
	t.manager.leave(t)
	t.manager.forget(t)
}

// Note sets how far a task has come, and the message of its state if p has one.
// Progress that was overtaken in the meantime is left out. With replicas it is
// saved at most once a second, and otherwise after that second, or with the
// next change.
func (t *Task) Note(p wire.Progress) error {
	r, change, err := t.apply(func(r *Record) {
		if r.Progress != nil && p.Progress < r.Progress.Progress {
			return
		}
		r.Progress = &Progress{Progress: p.Progress, Total: p.Total}
		if p.Message != "" {
			r.StatusMessage = p.Message
		}
	})
	if change == 0 || t.holdsBack() {
		return err
	}
	err = t.save(r, change, t.manager.changed)
	if t.manager.shared == nil || !errors.Is(err, scale.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notes == nil && t.over == nil { // an unavailable store is not a reason for the work to fail
		t.notes = time.AfterFunc(noteEvery, t.keepNotes)
	}
	return nil
}

// holdsBack reports whether a note comes too soon after one that was kept. It will
// be kept then.
func (t *Task) holdsBack() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := time.Until(t.noted.Add(noteEvery))
	if t.manager.shared == nil || left <= 0 {
		t.noted = time.Now()
		return false
	}
	if t.notes == nil {
		t.notes = time.AfterFunc(left, t.keepNotes)
	}
	return true
}

// keepNotes keeps what notes have come since one was kept.
func (t *Task) keepNotes() {
	t.mu.Lock()
	t.notes, t.noted = nil, time.Now()
	r, change := t.copy(), t.changes
	t.mu.Unlock()
	t.manager.failed(t.save(r, change, t.manager.changed))
}

// Finish ends the task: with a result, or an error, whose message becomes that
// of the state, or cancelled. Only the first end counts.
func (t *Task) Finish(status protocol.TaskStatus, result, fault json.RawMessage) error {
	defer t.manager.ends()()
	t.manager.leave(t) // first: who sees the end may start the next at once
	err := t.change(func(r *Record) { r.end(status, result, fault) })
	if err != nil && t.manager.shared != nil {
		t.manager.keepTrying(t)
	}
	return err
}

// Release leaves the task to another replica, which runs it again at once. It
// tells false, and does nothing, if none may, or if the task has finished.
func (t *Task) Release() bool {
	return t.Record().Replay && t.release(func(r *Record) { r.wait(atOnce) })
}

// release leaves the task to others, with what fn makes of it. It tells false if
// the task has finished: its end may still be on its way to the Store, and must get
// there.
func (t *Task) release(fn func(r *Record)) bool {
	r, change, err := t.apply(fn)
	if change == 0 && err == nil && t.Record().Status.Final() { // which never changes again
		return false
	}
	t.manager.leave(t)
	if change != 0 {
		err = t.save(r, change, t.manager.changed)
	}
	if err != nil {
		t.manager.failed(err) // others find it when its lease is over
	}
	t.manager.end(t, ErrLost)
	return true
}

// end keeps the task from being changed and saved again, and reports whether it
// was not so before. The cause is that of its context.
func (t *Task) end(cause error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return false
	}
	t.over = cause
	close(t.done)
	t.stopTimers()
	return true
}

// Ask puts questions to the client and waits for the answers, which tasks/update
// brings in any order. It returns them in the order of the questions. Questions
// of an earlier run are not asked again. When ctx ends first, the questions are
// withdrawn and the error is the cause of ctx. On a task that has ended it
// returns ErrCancelled at once.
func (t *Task) Ask(ctx context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error) {
	waits := make([]chan json.RawMessage, len(questions))
	err := t.insist(ctx, func(r *Record) {
		for i, q := range questions {
			waits[i] = make(chan json.RawMessage, 1)
			t.ask(r, q, waits[i])
		}
		r.settle()
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
			if t.goesOn() { // the client answers the next run
				return nil, context.Cause(ctx)
			}
			// What the work waits for no more, the client need not answer.
			if err := t.withdraw(waits); err != nil {
				return nil, errors.Join(context.Cause(ctx), err)
			}
			return nil, context.Cause(ctx)
		}
	}
	return answers, nil
}

// goesOn reports whether another replica is to run the task as soon as its
// work here has ended.
func (t *Task) goesOn() bool {
	return t.manager.shared != nil && t.manager.draining.Load() && t.Record().Replay
}

// Ended returns how the task, whose work has ended, is over for its client; "" if
// another replica decides that. One whose time was up has failed.
func (t *Task) Ended() protocol.TaskStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(t.over, ErrLost):
		return ""
	case errors.Is(t.over, ErrCancelled): // at another replica, whatever it came to here
		return protocol.TaskCancelled
	case t.record.Status.Final():
		return t.record.Status
	}
	return protocol.TaskFailed
}

// lost reports whether the task belongs to another run.
func (t *Task) lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Is(t.over, ErrLost)
}

// ask makes the answer to q come to wait. The key of a question stays that of
// this question for the life of the task: another one, of a run that went
// another way, or of the same run, gets another key, as an answer that is on its
// way must not reach it. t.mu is held.
func (t *Task) ask(r *Record, q protocol.InputRequest, wait chan json.RawMessage) {
	digest, key := wire.DigestOf(q), q.Key
	for n := 2; ; n++ {
		before, was := r.Asked[q.Key]
		if !t.asked[q.Key] && (!was || before == digest) {
			break
		}
		if !t.asked[q.Key] { // this one is not asked again
			r.drop(q.Key)
		}
		q.Key = fmt.Sprintf("%s-%d", key, n)
	}
	t.asked[q.Key], r.Asked = true, with(r.Asked, q.Key, digest)
	if value, ok := r.Answers[q.Key]; ok {
		wait <- value
		return
	}
	t.answers[q.Key] = wait
	if !slices.ContainsFunc(r.Requests, func(open protocol.InputRequest) bool { return open.Key == q.Key }) {
		r.Requests = append(r.Requests, q)
	}
}

// withdraw takes back the questions whose answers were to come to waits.
func (t *Task) withdraw(waits []chan json.RawMessage) error {
	return t.change(func(r *Record) {
		for key, wait := range t.answers {
			if slices.Contains(waits, wait) {
				delete(t.answers, key)
				r.drop(key)
			}
		}
		r.settle()
	})
}

// answer gives answers to the questions that wait for them. It returns when they
// are kept, so that the next run has them if this one is lost. Nothing is saved
// if none of the answers is to a question of the task.
func (t *Task) answer(answers map[string]json.RawMessage) error {
	if !t.waitsFor(answers) {
		return nil
	}
	return t.change(func(r *Record) { r.take(answers) })
}

// waitsFor reports whether any of the answers is to a question of the task, or
// to one whose answer is here and could not be kept yet.
func (t *Task) waitsFor(answers map[string]json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range answers {
		_, waits := t.answers[key]
		if waits || slices.ContainsFunc(t.record.Requests, func(open protocol.InputRequest) bool { return open.Key == key }) {
			return true
		}
	}
	return false
}

// Recall returns what an earlier run, or this one, has kept under a key.
func (t *Task) Recall(key string) (value json.RawMessage, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok = t.record.Kept[key]
	return value, ok
}

// Remember keeps a value for the runs after this one. It returns when the Store
// has it, or with the reason why not, which may be that the run has lost the
// task. While the Store is unavailable it waits, until ctx ends.
func (t *Task) Remember(ctx context.Context, key string, value json.RawMessage) error {
	if t.manager.shared == nil || !t.Record().Replay {
		return nil // there is none
	}
	if err := t.insist(ctx, func(r *Record) { r.Kept = with(r.Kept, key, value) }); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil && t.record.Status.Final() {
		return ErrCancelled
	}
	return t.over
}
