package tasks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Store keeps records of tasks. Its methods are called from many goroutines;
// a Record that it is given or gives is not shared.
type Store interface {
	// The ctx of Save and Delete ends after five seconds, which a Store has to
	// heed: what changes the task waits in the meantime. They are called for one
	// state of a task after the other; a state that was overtaken is left out.

	// Save keeps r, over what was kept under its ID before. Additions of others
	// than the run of r are in r afterwards. An *overError means that the run
	// has lost the task.
	Save(ctx context.Context, r *Record) error
	// Load returns the record of a task; ok is false if there is none.
	Load(ctx context.Context, id string) (r Record, ok bool, err error)
	// Delete forgets a task, if there is one.
	Delete(ctx context.Context, id string) error
}

// Record is what a Store keeps of a task. All that is exported can be encoded as
// JSON. Maps in it are replaced and never changed, so that a copy needs none of
// its own.
type Record struct {
	ID            string
	Owner         string // the principal, "" for an anonymous client
	Status        protocol.TaskStatus
	StatusMessage string
	Created       time.Time
	Updated       time.Time
	TTL           time.Duration // from Created; the task may be discarded then
	PollInterval  time.Duration // how often a client should ask; 0 leaves it to the client
	Progress      *Progress     // the newest that its work has told; nil if it told none
	Requests      []protocol.InputRequest
	Result        json.RawMessage `json:",omitempty"` // of a completed task
	Fault         json.RawMessage `json:",omitempty"` // of a failed one: a JSON-RPC error

	Asked   map[string]wire.Digest     `json:",omitempty"` // every question so far, by its key
	Answers map[string]json.RawMessage `json:",omitempty"` // by key; of a task that is not replayed, those that its work has not taken
	Kept    map[string]json.RawMessage `json:",omitempty"` // what Once kept

	Run     int       `json:",omitempty"` // which run of the handler this is, from 1; 0 before the first
	Replay  bool      `json:",omitempty"` // another replica may run the handler again, from the call that Shared keeps
	Call    int       `json:",omitempty"` // bytes of that
	Worker  bool      `json:",omitempty"` // only for replicas in Manager.Work
	Waiting bool      `json:",omitempty"` // no replica runs it
	Seeking time.Time `json:",omitzero"`  // since when a replica is sought that has its tool
	Lost    int       `json:",omitempty"` // runs of which the replica was lost

	rev scale.Rev     // that this is, or comes from, in a Shared
	in  time.Duration // after which it is due, if it waits
}

// Progress is how far the work of a task has come.
type Progress struct {
	Progress float64 `json:"progress"`        // grows
	Total    float64 `json:"total,omitempty"` // 0 means unknown
}

// Rev orders the states of a task that replicas share, whose clocks differ; 0 where
// they do not share it.
func (r *Record) Rev() scale.Rev { return r.rev }

// with returns a copy of m that has value under key.
func with[V any](m map[string]V, key string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]V)
	}
	m[key] = value
	return m
}

// take moves the questions to which there are answers to those that have been
// answered, and reports whether there are any. An answer to anything else is
// ignored, and so is a second one.
func (r *Record) take(answers map[string]json.RawMessage) (taken bool) {
	r.Requests = slices.DeleteFunc(slices.Clone(r.Requests), func(q protocol.InputRequest) bool {
		value, ok := answers[q.Key]
		if ok {
			r.Answers, taken = with(r.Answers, q.Key, value), true
		}
		return ok
	})
	r.settle()
	return taken
}

// drop takes a question back.
func (r *Record) drop(key string) {
	r.Requests = slices.DeleteFunc(slices.Clone(r.Requests), func(q protocol.InputRequest) bool { return q.Key == key })
}

// end ends the task. It keeps nothing that only another run would need.
func (r *Record) end(status protocol.TaskStatus, result, fault json.RawMessage) {
	r.Status, r.Result, r.Fault = status, result, fault
	r.Requests, r.Asked, r.Answers, r.Kept, r.Call, r.Waiting = nil, nil, nil, nil, 0, false
	if status == protocol.TaskFailed {
		var wire struct{ Message string }
		_ = json.Unmarshal(fault, &wire) // without one there is no message
		r.StatusMessage = wire.Message
	}
}

// settle makes the status say whether the task waits for answers.
func (r *Record) settle() {
	r.Status = protocol.TaskWorking
	if len(r.Requests) > 0 {
		r.Status = protocol.TaskInputRequired
	}
}

// merge takes over additions of others to the task: now is the same run of it, at
// the same time or later. Only the runner of a task changes it, except for
// answers, which come from anywhere, and for its end. Of two answers to a
// question that of now counts, because it may have been acknowledged.
func (r *Record) merge(now *Record) {
	r.rev = now.rev // which may be less, after the engine has lost its newest writes
	if r.Status.Final() {
		return
	}
	r.take(now.Answers)
	for key, value := range now.Answers {
		if _, ok := r.Answers[key]; ok {
			r.Answers = with(r.Answers, key, value)
		}
	}
}

// wait notes that no replica runs the task, and the time after which one may.
func (r *Record) wait(in time.Duration) { r.Waiting, r.in = true, in }

// Memory is a Store that lasts as long as the process. The zero value is empty
// and ready. It drops nothing by itself: the server deletes each task in time.
// It is safe for concurrent use, and ignores contexts, as it never waits.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
}

var _ Store = (*Memory)(nil)

// Save implements Store.
func (m *Memory) Save(_ context.Context, r *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = make(map[string]Record)
	}
	m.records[r.ID] = *r
	return nil
}

// Load implements Store.
func (m *Memory) Load(_ context.Context, id string) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[id]
	return r, ok, nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, id)
	return nil
}
