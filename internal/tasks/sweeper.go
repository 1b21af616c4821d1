package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	replicas "github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// sweeper is the part of a Manager that shares its tasks with other replicas: it
// renews those that run here, and takes those whose replica is gone, or that were
// left to others. It does nothing before Share.
type sweeper struct {
	m        *Manager
	ctx      context.Context
	stop     context.CancelFunc
	ended    sync.WaitGroup // goroutines of Share, handleMessage and of tasks that begin
	draining atomic.Bool
	contact  [slots]replicas.Health // with the parts of the store
	workers  atomic.Int32           // calls of Work
	lanes    lanes                  // for Work

	mu     sync.Mutex
	unmade []string       // tasks that no client knows, and that may be in the store
	unkept map[*Task]bool // whose end, or lapse, the store does not have yet
}

func newSweeper(m *Manager) *sweeper {
	s := &sweeper{m: m, lanes: lanes{wake: make(chan struct{}, 1)}, unkept: make(map[*Task]bool)}
	for i := range s.contact {
		if m.shared != nil {
			s.contact[i].Lease = m.shared.lease()
		}
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if m.shared != nil {
		for _, kind := range []string{letterQueued, letterAnswers, letterCancel} {
			m.shared.Post.Handle(kind, s.handleMessage)
		}
	}
	return s
}

// ErrElsewhere is wrapped by the errors of Config.Replay that say that this
// replica has not what the task needs, but another one may.
var ErrElsewhere = errors.New("tasks: not on this replica")

// handleMessage handles a message of another replica about tasks.
func (s *sweeper) handleMessage(message bus.Message) {
	switch message.Kind {
	case letterQueued:
		var l lane
		err := json.Unmarshal(message.Body, &l)
		if s.m.failed(err); err == nil && s.workers.Load() > 0 {
			s.lanes.knock(l)
		}
		return
	}
	var l letter
	if err := json.Unmarshal(message.Body, &l); err != nil {
		s.m.failed(err)
		return
	}
	t := s.m.task(l.ID)
	switch {
	case t == nil: // it has ended in the meantime
	case message.Kind == letterAnswers:
		// It waits for the store, which the receiver of messages must not do.
		s.ended.Go(func() { s.renew([]*Task{t}) })
	default:
		s.m.end(t, ErrCancelled)
		s.m.Told(l.ID)
	}
}

// Share begins to renew the tasks that run here, and to claim those that no replica
// runs, on goroutines that end with Close. It must be called once, and only with a
// *Shared.
//
// Renewing has a goroutine of its own: what the store takes long for elsewhere must
// not let the leases of tasks end.
func (s *sweeper) Share() {
	s.ended.Go(func() {
		s.each(func() {
			var touched sync.WaitGroup
			touched.Go(s.touch)
			s.renew(s.m.renewable())
			touched.Wait()
		})
	})
	s.ended.Go(func() {
		s.each(func() {
			s.saveAgain()
			s.takeDue()
		})
	})
}

// Close ends what Share has begun.
func (s *sweeper) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.ended.Wait()
}

// each calls do at every beat, until Close.
func (s *sweeper) each(do func()) {
	timer := time.NewTicker(s.m.shared.beat())
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-timer.C:
			do()
		}
	}
}

// takeDue claims the tasks that no replica runs.
func (s *sweeper) takeDue() {
	for part := range slots {
		// Before that, a due task may only have missed a renewal.
		for range 10 {
			if !s.contact[part].IsTrusted() || s.draining.Load() || s.sweep(partOf(part), running, 100) < 100 {
				break
			}
		}
	}
}

// Work runs tasks that were left to workers, as many as there is room for, until
// ctx ends, whose cause it returns, or the server drains, for which it returns
// drains.
func (s *sweeper) Work(ctx context.Context, drains error) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return drains
	}
	s.ended.Add(1) // Close waits for what this begins
	s.mu.Unlock()
	defer s.ended.Done()
	s.workers.Add(1)
	defer s.workers.Add(-1)
	timer := time.NewTicker(s.m.shared.beat() / 4)
	defer timer.Stop()
	for part := range slots {
		s.lanes.add(lanesOf(partOf(part))...)
	}
	for part := 0; !s.draining.Load(); {
		s.takeQueued(ctx)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return drains
		case <-s.lanes.wake:
		case <-timer.C: // for those without a response, or a response too soon
			s.lanes.again(lanesOf(partOf(part)))
			part++
		}
	}
	return drains
}

// takeQueued runs tasks that wait for a worker, a few of each lane in turn, while
// there is room. It stops after some: those that do not run here after all wait
// again, and must not be tried forever.
func (s *sweeper) takeQueued(ctx context.Context) {
	for range 4 * slots * lanesOfPart {
		room := s.m.config.MaxRunning - s.m.running.Used()
		if room <= 0 || ctx.Err() != nil || s.draining.Load() {
			return
		}
		l, of := s.lanes.next()
		if of == 0 {
			return
		}
		if few := max(1, min(room/of, 4)); s.sweep(l.Part, l.Index, few) == few {
			s.lanes.add(l)
		}
	}
}

// queue tells workers of a task.
func (s *sweeper) queue(l lane) {
	s.lanes.knock(l)
	body, err := json.Marshal(l)
	if err == nil {
		_ = s.m.useSoon(func(ctx context.Context) error { return s.m.shared.Post.Broadcast(ctx, letterQueued, body) }) // they look anyway
	}
}

// use is Manager.useSoon, unless the sweeper is closed, and until then. It returns
// the time before.
func (s *sweeper) use(fn func(ctx context.Context) error) (began time.Time, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, replicas.StoreTimeout)
	defer cancel()
	began = time.Now()
	if err = s.m.use(func() error { return fn(ctx) }); s.ctx.Err() == nil {
		s.m.failed(err)
	}
	return began, err
}

// touch notes which parts of the store can be written: a part that can only be
// read prevents renewals.
func (s *sweeper) touch() {
	writes := make([]scale.Write, slots)
	for part := range slots {
		writes[part] = scale.Write{Key: scale.Key{Partition: partOf(part), Name: "contact"}, Prev: scale.Any, Value: []byte{}, TTL: s.m.shared.lease()}
	}
	var written []scale.Entry
	_, err := s.use(func(ctx context.Context) (err error) { written, err = s.m.shared.Store.Put(ctx, writes...); return err })
	for part := range slots {
		s.contact[part].Record(len(written) == slots && written[part].Err == nil && (err == nil || written[part].Rev != 0))
	}
}

// lostTouch notes that a part could not be used.
func (s *sweeper) lostTouch(name string) {
	for part := range slots {
		if partOf(part) == name {
			s.contact[part].Record(false)
		}
	}
}

// renew lets tasks that run here continue, takes over what others have added to
// them, and ends those that have ended elsewhere. It asks for all of them at once:
// a lease is not long enough for one slow answer after another.
func (s *sweeper) renew(tasks []*Task) {
	var asked sync.WaitGroup
	for chunk := range slices.Chunk(tasks, batch) {
		asked.Go(func() { s.renewSome(chunk) })
	}
	asked.Wait()
}

// renewSome is renew for as many as one call of the store takes.
func (s *sweeper) renewSome(tasks []*Task) {
	looks := make([]scale.GetOp, len(tasks))
	for i, t := range tasks {
		r := t.Record()
		looks[i] = scale.GetOp{Key: keyOf(r.ID), Known: r.rev, In: s.m.shared.lease()}
		if r.Waiting { // it was left to others since it was on the list, who would wait for a lease
			looks[i].In = 0
		}
	}
	var found []scale.Entry
	began, err := s.use(func(ctx context.Context) (err error) { found, err = s.m.shared.Store.Get(ctx, looks...); return err })
	for i, look := range looks {
		if len(found) == len(looks) && found[i].Err == nil && (err == nil || found[i].Key == look.Key) {
			s.renewed(tasks[i], look.Known, found[i], began)
		} else {
			s.lostTouch(look.Key.Partition)
		}
	}
}

// renewed handles what a look at a task has found.
func (s *sweeper) renewed(t *Task, known scale.Rev, e scale.Entry, began time.Time) {
	if e.Rev == known {
		t.confirm(began)
		return
	}
	run, _ := t.Run()
	now, err := s.m.shared.own(e, run)
	if over, ok := errors.AsType[*overError](err); ok {
		if r := t.Record(); !r.Status.Final() { // by itself, just now
			s.m.end(t, over.cause)
			s.m.Told(r.ID)
		}
		return
	}
	if err != nil {
		s.m.failed(err)
		return
	}
	t.follow(&now, time.Time{}) // its time continues from the next look
	s.m.changed(State{Record: now})
}

// saveAgain saves ends and lapses that the store does not have, and deletes what
// should not be there.
func (s *sweeper) saveAgain() {
	s.mu.Lock()
	unmade := slices.Clone(s.unmade)
	tasks := slices.Collect(maps.Keys(s.unkept))
	s.mu.Unlock()
	for _, id := range unmade {
		if _, err := s.use(func(ctx context.Context) error { return s.m.shared.Delete(ctx, id) }); err != nil {
			return // use has reported it, and the next beat tries again
		}
		s.settled(func() { s.unmade = s.unmade[1:] })
	}
	for _, t := range tasks {
		if t.saveAgain() == nil { // else others may be kept: their parts of the store answer perhaps
			s.settled(func() { delete(s.unkept, t) })
		}
	}
}

// settled notes, by done, that the store has something that it was owed.
func (s *sweeper) settled(done func()) {
	s.mu.Lock()
	done()
	s.mu.Unlock()
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.turned()
}

// owes reports whether the store does not have everything yet.
func (s *sweeper) owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unmade)+len(s.unkept) > 0
}

// unmake replaces a task that could not be kept with a new one: the store may
// have the old one, and no replica may run it.
func (s *sweeper) unmake(t *Task) {
	if s.m.shared == nil {
		return
	}
	id := s.m.rename(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unmade) < DefaultMax {
		s.unmade = append(s.unmade, id)
	}
}

// keepTrying has the end of a task, or of a run that has expired, saved when the
// store answers again. No replica claims the task before: that takes a lease in
// which the store answers.
func (s *sweeper) keepTrying(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept[t] = true
}

// sweep takes tasks of a part that are due in an index, and returns how many were.
func (s *sweeper) sweep(part, index string, most int) int {
	var due []scale.Entry
	began, err := s.use(func(ctx context.Context) (err error) {
		due, err = s.m.shared.Store.ClaimDue(ctx, part, index, s.m.shared.Post.ReplicaID(), most, s.m.shared.lease())
		return err
	})
	if err != nil {
		s.lostTouch(part)
	}
	for _, e := range due {
		r, err := s.m.shared.read(e)
		if err != nil {
			s.m.failed(err) // the others are still handled
			continue
		}
		if t := s.m.task(r.ID); t != nil && t.adopt(&r, began) {
			continue // it runs here, and was not renewed for long
		}
		s.take(&r)
	}
	return len(due)
}

// take runs a task that no replica runs, leaves it to others, or ends it. Its
// Rev is new, so that the previous run can no longer change it.
func (s *sweeper) take(r *Record) {
	if !r.Waiting {
		r.Lost++
	}
	switch {
	case !r.Replay:
		s.fail(r, lost("the replica that ran the task is gone", "replica lost"))
	case r.Lost >= maxLost:
		s.fail(r, lost(fmt.Sprintf("the task was run %d times, and each time the replica that ran it was lost", r.Lost), "replica lost"))
	case r.Worker && s.workers.Load() == 0 || s.m.config.Replay == nil || s.draining.Load():
		s.pass(r)
	default:
		s.again(*r)
	}
}

// fail ends a task that no replica runs.
func (s *sweeper) fail(r *Record, fault json.RawMessage) {
	r.end(protocol.TaskFailed, nil, fault)
	done := false
	// use reports an error, and has the task checked again.
	_, _ = s.use(func(ctx context.Context) (err error) { done, err = s.m.shared.replace(ctx, r); return err })
	if done {
		s.m.changed(State{Record: *r})
	}
}

// pass leaves a task that no replica runs to others.
func (s *sweeper) pass(r *Record) {
	r.wait(s.m.shared.beat())
	_, _ = s.use(func(ctx context.Context) error { _, err := s.m.shared.replace(ctx, r); return err }) // it is due again anyway
}

// again runs a task from its beginning.
func (s *sweeper) again(r Record) {
	var text []byte
	var ok bool
	_, err := s.use(func(ctx context.Context) (err error) { text, ok, err = s.m.shared.call(ctx, r.ID); return err })
	switch {
	case err != nil:
		return // it is due again
	case !ok:
		s.fail(&r, lost("the call that the task was made for is not kept any more", "call lost"))
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background()) // of the task, which may outlive the sweeper
	t := s.m.newTask(r, cancel)
	if err := s.m.enter(t); err != nil {
		cancel(err)
		s.pass(&r)
		return
	}
	r.Run++
	r.Waiting, r.Progress = false, nil
	done := false
	began, err := s.use(func(ctx context.Context) (err error) { done, err = s.m.shared.replace(ctx, &r); return err })
	if err != nil || !done {
		t.Drop()
		cancel(err)
		return
	}
	t.claimed(&r, began)
	if s.draining.Load() { // since it was looked up: HandOver may not have found it
		t.Release()
		return
	}
	s.ended.Go(func() {
		err := safely.Try(func() error { return s.m.config.Replay(ctx, t, text) })
		if err != nil {
			s.refused(t, err)
			return
		}
		t.found()
	})
}

// refused handles a task that does not run here after all.
func (s *sweeper) refused(t *Task, err error) {
	fault, ok := errors.AsType[*protocol.Error](err)
	seeking := t.Record().Seeking
	switch {
	case errors.Is(err, ErrElsewhere) && (seeking.IsZero() || time.Since(seeking) < s.m.shared.seek()):
		t.release(func(r *Record) {
			r.wait(s.m.shared.beat())
			if r.Seeking.IsZero() {
				r.Seeking = time.Now()
			}
		})
	case ok && (fault.Code == protocol.CodeBusy || fault.Code == protocol.CodeUnavailable):
		t.release(func(r *Record) { r.wait(s.m.shared.beat()) })
	case ok:
		s.m.failed(t.Finish(protocol.TaskFailed, nil, wire.AppendError(nil, fault)))
	default:
		s.m.failed(t.Finish(protocol.TaskFailed, nil, lost("the task cannot be run again: "+err.Error(), "replica lost")))
	}
}
