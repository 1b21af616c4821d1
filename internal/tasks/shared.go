package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const (
	slots   = 4         // parts of the store, over which tasks are spread
	running = "running" // the index of tasks whose replica has to renew them
	queued  = "queued"  // begins the indexes of those that wait for a worker
	batch   = 256       // tasks that are renewed at once
	maxLost = 3         // runs of a task that may lose their replica
)

// lease is Lease or its default.
func (s *Shared) lease() time.Duration { return cmp.Or(s.Lease, DefaultLease) }

// beat is the time between two rounds of the sweeper, and the time after which a
// task that one replica cannot run goes to another.
func (s *Shared) beat() time.Duration { return s.lease() * 2 / 15 }

// giveUp is after how long a replica runs a task no more that it could not renew, if
// another may.
func (s *Shared) giveUp() time.Duration { return s.lease() * 8 / 10 }

// seek is for how long a task may wait for a replica that has its tool.
func (s *Shared) seek() time.Duration { return 4 * s.lease() }

// The kinds of messages between replicas, whose bodies are letters except for
// one.
const (
	letterAnswers = "task answers" // to the runner: there are some in the store
	letterCancel  = "task cancel"  // to the runner: it has been ended
	letterQueued  = "task queued"  // to all: a worker is wanted; the body is a lane
)

// letter is what a replica tells the one that runs a task.
type letter struct {
	ID string `json:"id"`
}

// overError is the error of a run that has lost its task.
type overError struct{ cause error }

// Error implements error.
func (e *overError) Error() string { return "tasks: the run is over: " + e.cause.Error() }

// Call is what a replica needs to run a task from its beginning: the call as it
// came, in a form that package mcp makes and reads.
type Call struct {
	Text   []byte
	Known  core.Recorded // what it has learned since
	Worker bool          // leaves it to a replica in Manager.Work
}

// Shared is a Store for all replicas of a server. A task is run by one of them at
// a time, which owns its entry, renews it, and is the only one to change it,
// except for answers, which any replica adds, and for its end: any replica cancels
// one.
//
// A write names the state that it was made from, and a final state does not
// change: the writes of a task form one chain, with one end. A replica that takes
// over an expired task first writes a new version of it. Later writes by the old
// run then fail. A run knows its own writes, whose answer was lost, by the owner
// and the number of the run.
//
// Its methods are safe for concurrent use. It has no state of its own.
type Shared struct {
	Store scale.Store
	Seal  *seal.Sealer
	Post  *bus.Bus
	Lease time.Duration // 0 means DefaultLease; the same for all replicas
}

var _ Store = (*Shared)(nil)

// keyOf returns where a task is, and callOf where its call is.
func keyOf(id string) scale.Key  { return replica.StoreKey("task", id, slots) }
func callOf(id string) scale.Key { return replica.StoreKey("task-call", id, slots) }

// EntryOf returns the key of a task's entry. Its Part is the subject for
// notifications of its changes.
func EntryOf(id string) scale.Key { return keyOf(id) }

// partOf returns the name of a part, counting around.
func partOf(n int) string { return replica.Partition("task", n%slots) }

// errLong is the error of what has no place in an entry.
func errLong(what string, bytes int) *protocol.Error {
	return protocol.Errorf(protocol.CodeInternal, "%d bytes of %s are more than replicas can share, which is %d", bytes, what, scale.MaxValue)
}

// maxShared is how many bytes a task may have that replicas share and that has not
// ended: the rest of its entry, and additions of other replicas, fit as well.
const maxShared = scale.MaxValue * 3 / 4

// lifetime is how long entries of a task are kept from now on.
func lifetime(r *Record) time.Duration {
	return max(time.Until(r.Created.Add(r.TTL)), time.Second)
}

// describe notes in a new record who may run the task. A call that is too long to
// be shared runs only here.
func (s *Shared) describe(r *Record, call *Call) error {
	if len(call.Text)+64 > scale.MaxValue {
		if call.Worker {
			return errLong("a call", len(call.Text))
		}
		return nil
	}
	r.Replay, r.Call = true, len(call.Text)
	r.Asked, r.Answers, r.Kept = call.Known.Asked, call.Known.Answers, call.Known.Kept
	if call.Worker {
		r.Worker, r.Run = true, 0
		r.wait(atOnce)
	}
	return nil
}

// keepCall keeps a call for as long as its task.
func (s *Shared) keepCall(ctx context.Context, r *Record, call *Call) error {
	key := callOf(r.ID)
	_, err := s.Store.Put(ctx, scale.Write{Key: key, Prev: scale.Any, Value: s.Seal.Seal(nil, call.Text, seal.Binding("call", key.Name)), TTL: lifetime(r)})
	return err
}

// call returns what keepCall has kept; ok is false if that is nothing.
func (s *Shared) call(ctx context.Context, id string) (text []byte, ok bool, err error) {
	key := callOf(id)
	found, err := s.Store.Get(ctx, scale.GetOp{Key: key})
	if err != nil || found[0].Rev == 0 {
		return nil, false, err
	}
	text, _, err = s.Seal.Open(found[0].Value, seal.Binding("call", key.Name))
	return text, err == nil, err
}

// write returns the write that makes r what the store has, in place of prev. A
// task that has ended has no owner, nor has one that waits.
func (s *Shared) write(r *Record, prev scale.Rev) (scale.Write, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return scale.Write{}, err
	}
	key := keyOf(r.ID)
	value := s.Seal.Seal(nil, text, seal.Binding(key.Name))
	if len(value) > scale.MaxValue {
		tooLong := errLong("a task", len(text))
		if !r.Status.Final() {
			return scale.Write{}, tooLong
		}
		short := *r
		short.end(protocol.TaskFailed, nil, wire.AppendError(nil, tooLong))
		return s.write(&short, prev)
	}
	w := scale.Write{Key: key, Prev: prev, Value: value, TTL: lifetime(r), DueIn: -1, Notify: key.Partition}
	switch {
	case r.Status.Final():
	case !r.Waiting:
		w.Owner, w.DueIn, w.Index = s.Post.ReplicaID(), s.lease(), running
	default:
		w.DueIn, w.Index = max(r.in, atOnce), running
		if r.Worker {
			w.Index = laneOf(r).Index
		}
	}
	return w, nil
}

// read returns the record of an entry.
func (s *Shared) read(e scale.Entry) (r Record, err error) {
	text, _, err := s.Seal.Open(e.Value, seal.Binding(e.Key.Name))
	if err != nil {
		return r, fmt.Errorf("tasks: what the store has does not open: %w", err)
	}
	if err = json.Unmarshal(text, &r); err == nil && keyOf(r.ID) != e.Key {
		err = errors.New("tasks: the store has another task")
	}
	r.rev = e.Rev
	return r, err
}

// own returns the record of an entry, if it is that of this replica's run with
// that number, and else an *overError.
func (s *Shared) own(e scale.Entry, run int) (r Record, err error) {
	if e.Rev == 0 {
		return r, &overError{ErrExpired}
	}
	if r, err = s.read(e); err != nil {
		return r, err
	}
	switch {
	case r.Status == protocol.TaskCancelled:
		return r, &overError{ErrCancelled}
	case r.Status.Final() || r.Run != run || e.Owner != s.Post.ReplicaID():
		return r, &overError{ErrLost}
	}
	return r, nil
}

// Save implements Store, for a run of this replica's.
func (s *Shared) Save(ctx context.Context, r *Record) error {
	for {
		w, err := s.write(r, r.rev)
		if err != nil {
			return err
		}
		written, err := s.Store.Put(ctx, w)
		if err != nil {
			return err
		}
		switch e := written[0]; {
		case e.Err == nil:
			r.rev = e.Rev
			return nil
		case !errors.Is(e.Err, scale.ErrChanged):
			return e.Err
		default: // answers have come, or a write of this run's was made and not answered
			now, err := s.own(e, r.Run)
			if err != nil {
				return s.saved(e, r, err)
			}
			r.merge(&now)
		}
	}
}

// saved returns err, unless what the store has is r itself: its write was made, and
// its answer lost.
func (s *Shared) saved(e scale.Entry, r *Record, err error) error {
	if e.Rev == 0 || !r.Status.Final() && !r.Waiting {
		return err
	}
	if now, fault := s.read(e); fault == nil && now.Run == r.Run && now.Status == r.Status && now.Waiting == r.Waiting && now.Updated.Equal(r.Updated) {
		r.rev = e.Rev
		return nil
	}
	return err
}

// Load implements Store.
func (s *Shared) Load(ctx context.Context, id string) (r Record, ok bool, err error) {
	found, err := s.Store.Get(ctx, scale.GetOp{Key: keyOf(id)})
	if err != nil || found[0].Rev == 0 {
		return r, false, err
	}
	r, err = s.read(found[0])
	return r, err == nil, err
}

// Delete implements Store. With a task goes its call.
func (s *Shared) Delete(ctx context.Context, id string) error {
	_, err := s.Store.Put(ctx, scale.Write{Key: keyOf(id), Prev: scale.Any}, scale.Write{Key: callOf(id), Prev: scale.Any})
	return err
}

// change applies fn to a task of any replica, unless it has ended, and returns the
// new record. done is false if there is no such task, it has ended, or fn says that
// there is nothing to change. node is the replica that runs it, "" if none does.
//
// Its lease stays as it was: only its runner renews it.
func (s *Shared) change(ctx context.Context, id string, fn func(r *Record) bool) (r Record, node string, done bool, err error) {
	for {
		found, err := s.Store.Get(ctx, scale.GetOp{Key: keyOf(id)})
		if err != nil || found[0].Rev == 0 {
			return r, "", false, err
		}
		e := found[0]
		if r, err = s.read(e); err != nil || r.Status.Final() || !fn(&r) {
			return r, e.Owner, false, err
		}
		r.Updated = time.Now()
		w, err := s.write(&r, e.Rev)
		if err != nil {
			return r, "", false, err
		}
		if !r.Status.Final() {
			w.Owner, w.DueIn, w.Index = e.Owner, 0, ""
		}
		written, err := s.Store.Put(ctx, w)
		if err != nil {
			return r, "", false, err
		}
		if err := written[0].Err; !errors.Is(err, scale.ErrChanged) {
			r.rev = written[0].Rev
			return r, e.Owner, err == nil, err
		}
	}
}

// replace writes r, which was read from the store, in its place, unless another
// has changed it since. done tells whether it was written.
func (s *Shared) replace(ctx context.Context, r *Record) (done bool, err error) {
	r.Updated = time.Now()
	w, err := s.write(r, r.rev)
	if err != nil {
		return false, err
	}
	written, err := s.Store.Put(ctx, w)
	if err != nil || errors.Is(written[0].Err, scale.ErrChanged) {
		return false, err
	}
	r.rev = written[0].Rev
	return written[0].Err == nil, written[0].Err
}

// tell sends a letter about a task to the replica that runs it, which finds out by
// its next renewal if it is not told.
func (s *Shared) tell(ctx context.Context, node, kind, id string) error {
	if node == "" {
		return nil
	}
	body, err := json.Marshal(letter{id})
	if err != nil {
		return err
	}
	return s.Post.Send(ctx, node, kind, body)
}

// lost returns the error of a task that was lost, as clients receive it.
func lost(why, reason string) json.RawMessage {
	return wire.AppendError(nil, &protocol.Error{
		Code: protocol.CodeInternal, Message: why, Data: map[string]any{"reason": reason, "executed": "unknown"},
	})
}
