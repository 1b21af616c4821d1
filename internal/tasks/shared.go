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
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const (
	slots = 4                // parts of the store, over which tasks are spread
	index = "running"        // of tasks whose replica has to renew them
	lease = 15 * time.Second // a task that was not renewed for so long has lost its replica
	beat  = 2 * time.Second  // between two rounds of Shared.keep
	batch = 256              // tasks that are renewed at once
)

// The kinds of messages between replicas, whose bodies are letters.
const (
	letterAnswers = "task answers"
	letterCancel  = "task cancel"
)

// letter is what a replica tells the one that runs a task.
type letter struct {
	ID      string                     `json:"id"`
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
}

// errOver is the error of saving a task that another replica has ended.
var errOver = errors.New("tasks: the task has ended elsewhere")

// Shared is a Store for all replicas of a server. A task is run by one of them,
// which owns its entry, renews it, and alone changes it; but any replica cancels
// one, and ends one whose replica does not renew it. Whoever writes names the
// state that the change was made from, so that a task has one end.
//
// Saves of one task come one after the other. Its methods are safe for
// concurrent use.
type Shared struct {
	Store scale.Store
	Seal  *seal.Sealer
	Post  *post.Office

	mu      sync.Mutex
	running map[string]scale.Rev // of the tasks that run here, by id
}

var _ Store = (*Shared)(nil)

// keyOf returns where a task is.
func keyOf(id string) scale.Key { return opaque.Key("task", id, slots) }

// partOf returns the name of a part, counting around.
func partOf(n int) string { return opaque.Part("task", n%slots) }

// rev returns the state of a task that runs here; 0 if it is new.
func (s *Shared) rev(id string) scale.Rev {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[id]
}

// note keeps the state of a task that runs here; 0 if it does so no more.
func (s *Shared) note(id string, rev scale.Rev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = make(map[string]scale.Rev)
	}
	if rev == 0 {
		delete(s.running, id)
		return
	}
	s.running[id] = rev
}

// follow is note unless the state is another than before meanwhile.
func (s *Shared) follow(id string, before, rev scale.Rev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == before {
		s.running[id] = rev
	}
}

// write returns the write that makes r what the store has, in place of prev. A
// task that has ended has no owner.
func (s *Shared) write(r *Record, prev scale.Rev) (scale.Write, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return scale.Write{}, err
	}
	key := keyOf(r.ID)
	value := s.Seal.Seal(nil, text, seal.Binding(key.Name))
	if len(value) > scale.MaxValue {
		tooLong := protocol.Errorf(protocol.CodeInternal, "%d bytes of a task are more than replicas can share, which is %d", len(text), scale.MaxValue)
		if r.Status != protocol.TaskCompleted {
			return scale.Write{}, tooLong
		}
		short := *r
		short.Status, short.StatusMessage, short.Result, short.Fault = protocol.TaskFailed, tooLong.Message, nil, wire.AppendError(nil, tooLong)
		return s.write(&short, prev)
	}
	w := scale.Write{
		Key: key, Prev: prev, Value: value,
		TTL: max(time.Until(r.Created.Add(r.TTL)), time.Second), In: -1,
	}
	if !r.Status.Final() {
		w.Owner, w.In, w.Index = s.Post.Node(), lease, index
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
	return r, err
}

// Save implements Store, for a task that runs here. The error is errOver if it
// has been ended.
func (s *Shared) Save(ctx context.Context, r Record) error {
	err := s.save(ctx, &r)
	if err != nil && r.Status.Final() {
		s.note(r.ID, 0) // nobody renews it, so that it fails soon
	}
	return err
}

// save is Save but for what becomes of a task whose end could not be saved.
func (s *Shared) save(ctx context.Context, r *Record) error {
	for prev := s.rev(r.ID); ; {
		w, err := s.write(r, prev)
		if err != nil {
			return err
		}
		written, err := s.Store.Put(ctx, w)
		switch {
		case err != nil:
			return err
		case errors.Is(written[0].Err, scale.ErrChanged) && written[0].Rev != 0 && written[0].Owner == s.Post.Node():
			// A write of this replica whose answer was lost, or its own Due.
			prev = written[0].Rev
			continue
		case errors.Is(written[0].Err, scale.ErrChanged):
			s.note(r.ID, 0)
			return errOver
		case written[0].Err != nil:
			return written[0].Err
		case r.Status.Final():
			s.note(r.ID, 0)
		default:
			s.note(r.ID, written[0].Rev)
		}
		return nil
	}
}

// Load implements Store.
func (s *Shared) Load(ctx context.Context, id string) (r Record, ok bool, err error) {
	found, err := s.Store.Get(ctx, scale.Look{Key: keyOf(id)})
	if err != nil || found[0].Rev == 0 {
		return r, false, err
	}
	r, err = s.read(found[0])
	return r, err == nil, err
}

// Delete implements Store.
func (s *Shared) Delete(ctx context.Context, id string) error {
	s.note(id, 0)
	_, err := s.Store.Put(ctx, scale.Write{Key: keyOf(id), Prev: scale.Any})
	return err
}

// end makes end of a task that runs elsewhere, unless it has ended, and returns
// what it is then. node is who ran it, "" if nobody did.
func (s *Shared) end(ctx context.Context, id string, end func(r *Record)) (r Record, node string, err error) {
	for {
		found, err := s.Store.Get(ctx, scale.Look{Key: keyOf(id)})
		if err != nil {
			return r, "", err
		}
		if found[0].Rev == 0 {
			return r, "", nil // its time is over
		}
		if r, err = s.read(found[0]); err != nil || r.Status.Final() {
			return r, "", err
		}
		done, err := s.replace(ctx, &r, found[0], end)
		if done || err != nil {
			return r, found[0].Owner, err
		}
	}
}

// replace writes what end makes of r, unless another has changed it since e.
func (s *Shared) replace(ctx context.Context, r *Record, e scale.Entry, end func(r *Record)) (done bool, err error) {
	end(r)
	r.Requests, r.Updated = nil, time.Now()
	w, err := s.write(r, e.Rev)
	if err != nil {
		return false, err
	}
	written, err := s.Store.Put(ctx, w)
	if err != nil || errors.Is(written[0].Err, scale.ErrChanged) {
		return false, err
	}
	return true, written[0].Err
}

// answer hands answers to the replica that runs a task.
func (s *Shared) answer(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	found, err := s.Store.Get(ctx, scale.Look{Key: keyOf(id)})
	if err != nil || found[0].Owner == "" {
		return err
	}
	body, err := json.Marshal(letter{id, answers})
	if err != nil {
		return err
	}
	return s.Post.Send(ctx, found[0].Owner, letterAnswers, body)
}

// renew lets the tasks that run here go on. It returns those that have ended
// elsewhere.
func (s *Shared) renew(ctx context.Context) (over []string, err error) {
	s.mu.Lock()
	ids := make([]string, 0, len(s.running))
	looks := make([]scale.Look, 0, len(s.running))
	for id, rev := range s.running {
		ids = append(ids, id)
		looks = append(looks, scale.Look{Key: keyOf(id), Known: rev, In: lease})
	}
	s.mu.Unlock()
	for chunk := range slices.Chunk(looks, batch) {
		found, err := s.Store.Get(ctx, chunk...)
		if err != nil {
			return over, err
		}
		for i, e := range found {
			switch {
			case e.Rev == chunk[i].Known || s.rev(ids[i]) != chunk[i].Known: // or a save was faster
			case e.Rev != 0 && e.Owner == s.Post.Node():
				// A save whose answer has not come, or never will.
				s.follow(ids[i], chunk[i].Known, e.Rev)
			default:
				over = append(over, ids[i])
			}
		}
		ids = ids[len(chunk):]
	}
	return over, nil
}

// lost is the error of a task whose replica has gone.
var lost = &protocol.Error{
	Code: protocol.CodeInternal, Message: "the replica that ran the task is gone",
	Data: map[string]any{"reason": "replica lost", "executed": "unknown"},
}

// endLost ends the tasks of a part whose replicas did not renew them. unread is
// why one could not be read, which keeps nobody from the others.
func (s *Shared) endLost(ctx context.Context, part string) (ended []Record, unread, err error) {
	due, err := s.Store.Due(ctx, part, index, s.Post.Node(), 100, lease)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range due {
		r, err := s.read(e)
		if err != nil {
			unread = err
			continue
		}
		if s.rev(r.ID) != 0 { // it runs here, and was not renewed for long
			s.note(r.ID, e.Rev)
			continue
		}
		done, err := s.replace(ctx, &r, e, func(r *Record) {
			r.Status, r.StatusMessage, r.Fault = protocol.TaskFailed, lost.Message, wire.AppendError(nil, lost)
		})
		if err != nil {
			return ended, unread, err
		}
		if done {
			ended = append(ended, r)
		}
	}
	return ended, unread, nil
}
