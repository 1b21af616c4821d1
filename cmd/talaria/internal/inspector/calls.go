package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// The bounds of calls: how many may be in progress, and what is kept of those
// that have ended.
const (
	maxCalls   = 32
	keptCalls  = 200
	keptResult = 64 << 20
)

// call is one that the page has made. The mutex of calls guards it.
type call struct {
	ID        int64            `json:"id"`
	Method    string           `json:"method"`
	Tool      string           `json:"tool"`  // or the name of a prompt, or the URI of a resource
	Label     string           `json:"label"` // the same, as it is shown
	Arguments string           `json:"arguments"`
	State     string           `json:"state"` // running, done, failed (isError), invalid (its result), error, cancelled
	At        time.Time        `json:"at"`
	Took      float64          `json:"took,omitempty"` // milliseconds
	Progress  *client.Progress `json:"progress,omitempty"`
	Task      *runningTask     `json:"task,omitempty"`   // that it has become
	Result    string           `json:"result,omitempty"` // as it came, indented
	Error     *callError       `json:"error,omitempty"`
	Issues    []schema.Issue   `json:"issues,omitempty"` // of structured content against the tool's output schema
	Checked   bool             `json:"checked,omitempty"`
	Earlier   bool             `json:"earlier,omitempty"` // of an earlier start
	Partial   bool             `json:"partial,omitempty"` // its arguments are not all kept: it cannot be made again
	Cut       bool             `json:"cut,omitempty"`     // its result was not kept
	Again     int64            `json:"again,omitempty"`   // the call that this one repeats after a change of the server
	Events    int              `json:"events,omitempty"`  // that were received, of a call that watches
	Before    int64            `json:"before,omitempty"`  // the call whose result can be compared; filled in when it is shown
	safe      *call            // what outlives the inspector; nil while that is not known
	asTask    bool
	watched   *watched // nil unless it watches
	cancel    context.CancelFunc
}

type callError struct {
	Code    protocol.Code `json:"code,omitempty"`
	Message string        `json:"message"`
	Data    string        `json:"data,omitempty"`
}

// size is how long the texts of a call are, in bytes.
func (c *call) size() int {
	n := len(c.Arguments) + len(c.Result)
	if c.watched != nil {
		n += c.watched.size
	}
	if c.Error != nil {
		n += len(c.Error.Message) + len(c.Error.Data)
	}
	return n
}

// calls are those in progress and the last ones before. mu guards all but beat.
type calls struct {
	mu   sync.Mutex
	next int64
	list []*call // the oldest first
	beat func()
}

// errTooMany is the error of a call beyond the bound.
var errTooMany = errors.New("too many calls at once (limit 32): wait for one or cancel it")

// begin adds a call.
func (c *calls) begin(one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	running, size, n := 0, 0, len(c.list)
	for _, other := range c.list {
		size += other.size()
		if other.State == "running" {
			running++
		}
	}
	if running >= maxCalls {
		return errTooMany
	}
	c.list = slices.DeleteFunc(c.list, func(other *call) bool { // the oldest first
		drop := other.State != "running" && (n >= keptCalls || size > keptResult)
		if drop {
			size -= other.size()
			n--
		}
		return drop
	})
	c.next++
	one.ID, one.State, one.At = c.next, "running", time.Now()
	c.list = append(c.list, one)
	return nil
}

// running returns the calls in progress, the oldest first.
func (c *calls) running() (list []asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.list {
		if one.State == "running" {
			list = append(list, asker{one.ID, one.Label})
		}
	}
	return list
}

// change changes a call under the lock.
func (c *calls) change(fn func()) {
	c.mu.Lock()
	fn()
	c.mu.Unlock()
	c.beat()
}

// get returns a copy of a call.
func (c *calls) get(id int64) (call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.list {
		if one.ID == id {
			found := *one
			if one.watched != nil && one.State == "running" {
				found.Result = one.watched.result()
			}
			return found, true
		}
	}
	return call{}, false
}

// before returns the last call of the same tool that has a result, 0 if there is none.
func (c *calls) before(one call) (found call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range slices.Backward(c.list) {
		if other.ID < one.ID && other.Tool == one.Tool && other.Method == one.Method && other.Result != "" {
			return *other
		}
	}
	return call{}
}

// invalid returns the tools whose last call that ended with a result had an invalid one.
func (c *calls) invalid() []wrongResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []wrongResult{}
	seen := map[string]bool{}
	for _, one := range slices.Backward(c.list) {
		if one.Method != protocol.MethodToolsCall || one.Result == "" || seen[one.Tool] {
			continue
		}
		if seen[one.Tool] = true; one.State == "invalid" {
			list = append(list, wrongResult{one.Tool, one.Label, one.ID, one.Issues})
		}
	}
	return list
}

// recent returns the calls without what they have come to, the newest first.
func (c *calls) recent() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]call, 0, len(c.list))
	for _, one := range slices.Backward(c.list) {
		short := *one
		short.Result, short.Issues, short.Error = "", nil, nil
		if len(short.Arguments) > 4<<10 {
			short.Arguments = ""
		}
		list = append(list, short)
	}
	return list[:min(len(list), 50)]
}

// last returns the last call of this start that can be made again.
func (c *calls) last() (call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.list); n > 0 && !c.list[n-1].Earlier && !c.list[n-1].Partial {
		return *c.list[n-1], true
	}
	return call{}, false
}

// start calls a tool, gets a prompt or reads a resource, and returns the number of
// the call.
func (c *calls) start(i *Inspector, method, tool, arguments string, asTask bool) (int64, error) {
	return c.startAgain(i, method, tool, arguments, asTask, 0)
}

// startAgain is start of a call that repeats another one, 0 for none.
func (c *calls) startAgain(i *Inspector, method, tool, arguments string, asTask bool, again int64) (int64, error) {
	to := i.current()
	if to == nil {
		return 0, errNoConnection
	}
	if !json.Valid([]byte(arguments)) {
		return 0, errors.New("invalid arguments: not JSON")
	}
	ctx, cancel := context.WithCancel(i.ctx)
	one := &call{Method: method, Tool: tool, Label: visible.Line(tool, visible.Name), Arguments: arguments, asTask: asTask, Again: again, cancel: cancel}
	one.safe = safe(i, one)
	if err := c.begin(one); err != nil {
		cancel()
		return 0, err
	}
	i.history.note()
	i.work.Go(func() {
		defer cancel()
		c.run(context.WithValue(ctx, askerKey{}, asker{one.ID, one.Label}), i, to, one)
	})
	c.beat()
	return one.ID, nil
}

// run makes the request and notes how it ended.
func (c *calls) run(ctx context.Context, i *Inspector, to *client.Client, one *call) {
	progress := client.OnProgress(func(p client.Progress) {
		p.Message = visible.Line(p.Message, visible.Sentence)
		c.change(func() { one.Progress = &p })
	})
	var raw json.RawMessage
	var result *client.CallToolResult
	var err error
	switch one.Method {
	case protocol.MethodToolsCall:
		options := []client.CallOption{progress, client.OnTask(func(t *client.Task) {
			c.change(func() { one.Task = taskOf(t) })
		})}
		if one.asTask {
			options = append(options, client.AsTask())
		}
		if result, err = to.Call(ctx, one.Tool, json.RawMessage(one.Arguments), options...); err == nil {
			raw = result.Raw
		}
	case protocol.MethodPromptsGet:
		err = to.Request(ctx, one.Method, map[string]any{"name": one.Tool, "arguments": json.RawMessage(one.Arguments)}, &raw, progress)
	case wire.MethodEventsStream:
		raw, err = c.watch(ctx, to, one)
	default:
		err = to.Request(ctx, one.Method, map[string]any{"uri": one.Tool}, &raw, progress)
	}
	took := float64(time.Since(one.At).Microseconds()) / 1000
	var issues []schema.Issue
	checked := false
	if own, ok := errors.AsType[*client.Error](err); ok && own.Result != nil {
		raw, result, err = own.Result, readable(own.Result), nil
		if issues = contentIssues(one.Method, raw); len(issues) == 0 {
			issues = []schema.Issue{{Rule: "result", Message: visible.Line(own.Err.Error(), visible.Sentence)}}
		}
	} else if err == nil && one.Method != wire.MethodEventsStream && (result == nil || slices.ContainsFunc(result.Content, bare)) {
		issues = contentIssues(one.Method, raw)
	}
	if result != nil && result.Task == nil {
		var against []schema.Issue
		against, checked = i.checkOutput(ctx, one.Tool, result)
		issues = append(issues, against...)
	}
	text := indented(raw) // which takes a while, if it is long
	c.change(func() {
		one.Took, one.Result, one.Issues, one.Checked, one.watched = took, text, append(one.Issues, issues...), checked, nil
		switch {
		case err != nil && ctx.Err() != nil:
			one.State = "cancelled"
		case err != nil:
			one.State, one.Error = "error", errorOf(err)
		case len(issues) > 0 && (!checked || result == nil || !result.IsError):
			one.State = "invalid"
		case result != nil && result.IsError:
			one.State = "failed"
		default:
			one.State = "done"
		}
	})
	c.mu.Lock()
	ended := *one
	c.mu.Unlock()
	kept := safely(i, ended)
	c.change(func() { one.safe = kept })
	i.history.note()
}

// errorOf says an error, as far as it can be shown.
func errorOf(err error) *callError {
	out := &callError{Message: visible.Text(err.Error(), visible.Sentence)}
	if own, ok := errors.AsType[*client.Error](err); ok {
		out.Code, out.Data = own.Code, string(own.Data)
	}
	return out
}

// restore puts calls of an earlier start before those of this one, of which there are
// none yet.
func (c *calls) restore(list []call) {
	for _, one := range list[max(0, len(list)-maxKeptCalls):] {
		c.next++
		one.ID, one.Earlier, one.cancel = c.next, true, func() {}
		if one.State == "running" {
			one.State, one.Error = "error", &callError{Message: "the inspector ended before the answer came"}
		}
		same := one
		one.safe = &same
		c.list = append(c.list, &one)
	}
}

// kept returns what may be kept of the newest calls, the oldest first.
func (c *calls) kept() (list []call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 0
	for _, one := range slices.Backward(c.list) {
		if one.safe == nil {
			continue
		}
		size += one.safe.size()
		if len(list) == maxKeptCalls || size > maxKeptAll {
			break
		}
		list = append(list, *one.safe)
	}
	slices.Reverse(list)
	return list
}

// watch receives the events of a type until ctx ends, which is not an error.
func (c *calls) watch(ctx context.Context, to *client.Client, one *call) (json.RawMessage, error) {
	w := &watched{}
	c.change(func() { one.watched = w })
	from := client.WatchOptions{Moved: func(_ string, missed bool) {
		if missed {
			c.change(func() { one.Issues = []schema.Issue{missedIssue} })
		}
	}}
	var failed error
	for event, err := range to.Watch(ctx, one.Tool, json.RawMessage(one.Arguments), &from) {
		if err != nil {
			failed = err
			break
		}
		text, err := json.Marshal(shownEvent{event.Time, event.Data, event.ID, event.Name, event.Cursor})
		if err != nil {
			failed = err
			break
		}
		c.change(func() { w.add(text); one.Events++ })
	}
	if ctx.Err() != nil {
		failed = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed != nil && one.Events == 0 {
		return nil, failed
	}
	return w.json(), failed
}
