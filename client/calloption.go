package client

import (
	"maps"
	"net/http"
	"time"
)

// CallOption changes one call.
type CallOption func(*callOptions)

// callOptions is the sum of the options of one call. The zero value of each
// field is what a call without options has.
type callOptions struct {
	timeout, maxTimeout time.Duration
	progress            func(Progress)
	onTask              func(*Task)
	header              http.Header
	meta                map[string]any
	attempts            int // 0 means that Retry was not given
	idempotent          bool
	noCache             bool
	noRounds, detached  bool
	asTask              bool
	checkOutput         bool
	answers             map[string]any
	state               string
}

// newCallOptions applies options in their order, so that a later one wins. nil
// among them is ignored, for programs that set an option only at times.
func newCallOptions(options []CallOption) *callOptions {
	o := &callOptions{}
	for _, option := range options {
		if option != nil {
			option(o)
		}
	}
	return o
}

// Timeout is how long the call waits for its answer, or for the next progress;
// 0 means Options.Timeout, less than 0 no limit.
func Timeout(d time.Duration) CallOption { return func(o *callOptions) { o.timeout = d } }

// OnProgress asks the server for progress and gives it to fn, one after the
// other and before the call returns. A panic of fn is logged.
//
// A call that became a task has no progress notifications any more (the
// extension io.modelcontextprotocol/tasks). While the client waits for it, in
// Call and WaitTask, fn receives each new status message of the task until its
// end: as Message, with the numbers of Task.Progress if the server sends them,
// and 0 otherwise. For a Detached call fn receives nothing more after the task
// was created.
func OnProgress(fn func(Progress)) CallOption { return func(o *callOptions) { o.progress = fn } }

// OnTask gives fn the state of the task that a call has become, in Call and
// WaitTask, as often as the client learns it, whether it has changed or not: the
// first is the one that answers the call. It is called one after the other and
// before the call returns; a panic of it is logged.
func OnTask(fn func(*Task)) CallOption { return func(o *callOptions) { o.onTask = fn } }

// Header adds an HTTP header to the call's requests. Other transports ignore
// it. A call that has one, or Meta, neither reads nor fills the cache.
func Header(key, value string) CallOption {
	return func(o *callOptions) {
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Add(key, value)
	}
}

// Meta adds a member to the call's _meta. value encodes to JSON. What the
// protocol itself puts there cannot be replaced.
func Meta(key string, value any) CallOption {
	return func(o *callOptions) {
		if o.meta == nil {
			o.meta = map[string]any{}
		}
		o.meta[key] = value
	}
}

// Retry sends the call up to n times where its error is Retriable and sending it
// again is safe, as Error.Safe says: after a timeout, a lost connection, or when
// the server is busy. Between two attempts it waits as Options.Reconnect says, or
// as long as the server asks for if that is more, but not longer than
// Options.MaxTimeout in total. Retry(1) never sends the call twice. Without Retry,
// or with 0 or less, a call is sent again at once where its connection or session
// was lost and that is safe, up to 3 times.
func Retry(n int) CallOption { return func(o *callOptions) { o.attempts = max(n, 0) } }

// Idempotent says that sending the call twice is harmless, so that it is sent
// again when the connection or the session was lost, and where Retry asks for it.
// Reading methods, and tools whose hints say readOnly or idempotent, need no telling.
func Idempotent() CallOption { return func(o *callOptions) { o.idempotent = true } }

// NoCache asks the server even if an answer is in the cache.
func NoCache() CallOption { return func(o *callOptions) { o.noCache = true } }

// NoRounds returns an *InputRequiredError when the server wants more input,
// instead of asking the handlers; Answers continues from there.
func NoRounds() CallOption { return func(o *callOptions) { o.noRounds = true } }

// Answers gives the answers to the questions of an InputRequiredError, by their
// keys, and its State, when the same call is made again.
func Answers(answers map[string]any, state string) CallOption {
	return func(o *callOptions) { o.answers, o.state = maps.Clone(answers), state }
}

// Detached returns a call that became a task at once: the result has its Task
// and nothing else, and the caller drives it with Task, UpdateTask, CancelTask
// and WaitTask.
func Detached() CallOption { return func(o *callOptions) { o.detached = true } }

// AsTask requests a task of a server of 2025-11-25 for this call, as a tool with
// [protocol.TaskOptional] allows; tools with [protocol.TaskRequired] need no telling. Servers of other revisions,
// and those without tasks, ignore it.
func AsTask() CallOption { return func(o *callOptions) { o.asTask = true } }

// checkResult checks the structured content of the result against the tool's
// output schema.
func checkResult() CallOption { return func(o *callOptions) { o.checkOutput = true } }

// Progress says how far a call has come.
type Progress struct {
	Progress float64
	Total    float64 // 0 means unknown
	Message  string
}
