package tasks

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// patience returns how long a client may take to read a task that has ended: its interval,
// and a second for the way.
func patience(r *Record) time.Duration {
	return min(cmp.Or(r.PollInterval, time.Second), mostPatience) + time.Second
}

// progressKey is where the _meta of a task's state has its Progress. The
// extension has none: it gives tasks only a message.
const progressKey = "io.github.talaria-go/progress"

// metaOf returns the _meta of a task; nil if its work has told no progress.
func metaOf(r *Record) map[string]any {
	if r.Progress == nil {
		return nil
	}
	return map[string]any{progressKey: r.Progress}
}

// size returns what the record counts in the memory of all tasks, in bytes:
// that of its parts whose length clients and handlers decide.
func size(r *Record) (n int) {
	for _, q := range r.Requests {
		n += len(q.Key) + len(q.Params)
	}
	for key, value := range r.Answers {
		n += len(key) + len(value)
	}
	for key, value := range r.Kept {
		n += len(key) + len(value)
	}
	for key := range r.Asked {
		n += len(key)
	}
	return n + len(r.StatusMessage) + len(r.Result) + len(r.Fault) + r.Call
}

// members returns the members of the record, without braces, as tasks/get and
// notifications/tasks have them; a handle has no outcome.
func members(r *Record, outcome bool) ([]byte, error) {
	fields := struct {
		ID            string                  `json:"taskId"`
		Status        protocol.TaskStatus     `json:"status"`
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
		if r.Status == protocol.TaskInputRequired {
			fields.Requests = make(map[string]inputRequest, len(r.Requests))
			for _, q := range r.Requests {
				fields.Requests[q.Key] = inputRequest{q.Method, q.Params}
			}
		}
	}
	return json.Marshal(fields)
}

// inputRequest is a question in the member inputRequests, whose key names it.
type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Handle is the result that gives the client a task instead of an answer. It
// has the state of the task but no outcome, even if the task has ended already:
// the client asks for that with tasks/get.
type Handle struct {
	protocol.Result
	Record Record
}

// Append implements wire.Result.
func (h Handle) Append(dst []byte, to wire.To) ([]byte, error) {
	text, err := members(&h.Record, false)
	if err != nil {
		return nil, err
	}
	return wire.AppendTyped(dst, "task", text, metaOf(&h.Record), to)
}

// Status implements wire.Unfinished.
func (Handle) Status() string { return "task" }

// State is the result of tasks/get, with the outcome of a task that has ended
// and the questions of one that waits for answers.
type State struct {
	protocol.Result
	Record Record
}

// Append implements wire.Result.
func (s State) Append(dst []byte, to wire.To) ([]byte, error) {
	text, err := members(&s.Record, true)
	if err != nil {
		return nil, err
	}
	return wire.AppendTyped(dst, "complete", text, metaOf(&s.Record), to)
}

// Change returns the notification notifications/tasks of the state, for those
// who have subscribed to the task. Its params have the members that tasks/get
// returns.
func (s State) Change() (*wire.Change, error) {
	text, err := members(&s.Record, true)
	if err != nil {
		return nil, err
	}
	var meta []byte
	if all := metaOf(&s.Record); all != nil {
		if meta, err = json.Marshal(all); err != nil {
			return nil, err
		}
		meta = meta[1 : len(meta)-1]
	}
	return wire.NewChangeMeta(protocol.MethodTaskStatus, text[1:len(text)-1], meta), nil
}
