// Package tasks runs tool calls that outlive their request: the client gets a
// task at once and asks for its state later. It follows the extension
// io.modelcontextprotocol/tasks.
package tasks

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Extension is the identifier of the extension in capabilities.
const Extension = protocol.TasksExtension

// Status is the state of a task.
type Status string

// The states; the last three are final.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Final tells whether a task in that state changes no more.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Record is what a Store keeps of a task. All of it can be encoded as JSON.
type Record struct {
	ID            string
	Owner         string // the principal, "" for an anonymous client
	Status        Status
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

// patience returns how long a client may take to look at a task that has ended:
// its interval, and a second for the way.
func (r *Record) patience() time.Duration {
	return min(cmp.Or(r.PollInterval, time.Second), mostPatience) + time.Second
}

const mostPatience = 10 * time.Second

// Progress is how far the work of a task has come.
type Progress struct {
	Progress float64 `json:"progress"`        // grows
	Total    float64 `json:"total,omitempty"` // 0 means unknown
}

// ProgressKey is where the _meta of a task's state has its Progress. The
// extension has none: it gives tasks a message alone.
const ProgressKey = "io.github.talaria-go/progress"

func (r *Record) meta() protocol.MetaMap {
	if r.Progress == nil {
		return nil
	}
	return protocol.MetaMap{ProgressKey: r.Progress}
}

// bytes returns what the record counts in the memory of all tasks.
func (r *Record) bytes() (n int) {
	for _, q := range r.Requests {
		n += len(q.Key) + len(q.Params)
	}
	return n + len(r.StatusMessage) + len(r.Result) + len(r.Fault)
}

// Append appends the members of the record, without braces, as tasks/get and
// notifications/tasks have them; a handle has no outcome.
func (r *Record) members(outcome bool) ([]byte, error) {
	fields := struct {
		ID            string                  `json:"taskId"`
		Status        Status                  `json:"status"`
		StatusMessage string                  `json:"statusMessage,omitempty"`
		Created       string                  `json:"createdAt"`
		Updated       string                  `json:"lastUpdatedAt"`
		TTL           int64                   `json:"ttlMs"`
		PollInterval  int64                   `json:"pollIntervalMs,omitempty"`
		Requests      map[string]inputRequest `json:"inputRequests,omitempty"`
		Result        json.RawMessage         `json:"result,omitempty"`
		Fault         json.RawMessage         `json:"error,omitempty"`
	}{
		ID: r.ID, Status: r.Status, StatusMessage: r.StatusMessage,
		Created: r.Created.UTC().Format(time.RFC3339Nano), Updated: r.Updated.UTC().Format(time.RFC3339Nano),
		TTL: r.TTL.Milliseconds(), PollInterval: r.PollInterval.Milliseconds(),
	}
	if outcome {
		fields.Result, fields.Fault = r.Result, r.Fault
		if r.Status == InputRequired {
			fields.Requests = make(map[string]inputRequest, len(r.Requests))
			for _, q := range r.Requests {
				fields.Requests[q.Key] = inputRequest{q.Method, q.Params}
			}
		}
	}
	return json.Marshal(fields)
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Handle is the result that gives the client a task instead of an answer.
type Handle struct{ Record Record }

// Append implements protocol.Result.
func (h Handle) Append(dst []byte, to protocol.Wire) ([]byte, error) {
	text, err := h.Record.members(false)
	if err != nil {
		return nil, err
	}
	return protocol.AppendTyped(dst, "task", text, h.Record.meta(), to)
}

// State is the result of tasks/get.
type State struct{ Record Record }

// Append implements protocol.Result.
func (s State) Append(dst []byte, to protocol.Wire) ([]byte, error) {
	text, err := s.Record.members(true)
	if err != nil {
		return nil, err
	}
	return protocol.AppendTyped(dst, "complete", text, s.Record.meta(), to)
}

// MethodStatus is the notification of a task's state.
const MethodStatus = "notifications/tasks"

// Change returns the notification notifications/tasks for a record.
func (r *Record) Change() (*protocol.Change, error) {
	members, err := r.members(true)
	if err != nil {
		return nil, err
	}
	var meta []byte
	if all := r.meta(); all != nil {
		if meta, err = json.Marshal(all); err != nil {
			return nil, err
		}
		meta = meta[1 : len(meta)-1]
	}
	return protocol.NewChangeMeta(MethodStatus, members[1:len(members)-1], meta), nil
}
