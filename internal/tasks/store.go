package tasks

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Store keeps records of tasks. Its methods are called from many goroutines;
// a Record that it is given or gives is not shared.
type Store interface {
	// The ctx of Save and Delete ends after five seconds, which a Store has to
	// heed: what changes the task waits meanwhile. They are called for one state
	// of a task after the other; a state that was overtaken is left out.

	// Save keeps r, over what was kept under its ID before.
	Save(ctx context.Context, r Record) error
	// Load returns the record of a task; ok is false if there is none.
	Load(ctx context.Context, id string) (r Record, ok bool, err error)
	// Delete forgets a task, if there is one.
	Delete(ctx context.Context, id string) error
}

// Record is what a Store keeps of a task. All of it can be encoded as JSON.
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
	Result        json.RawMessage // of a completed task
	Fault         json.RawMessage // of a failed one: a JSON-RPC error
}

// Progress is how far the work of a task has come.
type Progress struct {
	Progress float64 `json:"progress"`        // grows
	Total    float64 `json:"total,omitempty"` // 0 means unknown
}

// Memory is a Store that lasts as long as the process. The zero value is empty
// and ready. It drops nothing by itself: the server deletes each task in time.
// It is safe for concurrent use, and ignores contexts, as it never waits.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
}

var _ Store = (*Memory)(nil)

// Save implements Store.
func (m *Memory) Save(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = make(map[string]Record)
	}
	m.records[r.ID] = r
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
