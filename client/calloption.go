package client

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	timeout, maxTimeout time.Duration
	progress            func(Progress)
	header              http.Header
	meta                map[string]any
	level               protocol.Level
	noRetry, idempotent bool
	noCache             bool
	noRounds, detached  bool
	checkOutput         bool
	answers             map[string]any
	state               string
}

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

// MaxTimeout is how long the call waits in all, whatever progress comes, also for
// the task that it may become; 0 means Options.MaxTimeout, less than 0 no limit.
// A limit asks the server for progress, even without OnProgress.
func MaxTimeout(d time.Duration) CallOption { return func(o *callOptions) { o.maxTimeout = d } }

// OnProgress asks the server for progress and gives it to fn, one after the
// other and before the call returns. A panic of fn is logged.
//
// A call that became a task has no progress notifications any more (the
// extension io.modelcontextprotocol/tasks). While the client waits for it, in
// Call and WaitTask, fn hears the task's status message instead, each time that
// polling finds another one before the end: as Message, with Progress and Total
// 0. Of a Detached call fn hears nothing more once the task is there.
func OnProgress(fn func(Progress)) CallOption { return func(o *callOptions) { o.progress = fn } }

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

// LogLevel is the least severe level that the server may log while it serves
// this call. Revisions before 2026-07-28 have a level per session alone, which
// SetLevel sets; there this does nothing.
func LogLevel(level protocol.Level) CallOption { return func(o *callOptions) { o.level = level } }

// NoRetry never sends the call twice, even where that is safe.
func NoRetry() CallOption { return func(o *callOptions) { o.noRetry = true } }

// Idempotent says that sending the call twice is harmless, so that it is sent
// again when the connection or the session was lost. Reading methods, and tools
// whose hints say readOnly or idempotent, need no telling.
func Idempotent() CallOption { return func(o *callOptions) { o.idempotent = true } }

// NoCache asks the server even if an answer is in the cache.
func NoCache() CallOption { return func(o *callOptions) { o.noCache = true } }

// NoRounds returns an *InputRequiredError when the server wants more input,
// instead of asking the handlers; Answers goes on from there.
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

// CheckResult checks the structured content of the result against the tool's
// output schema, as the typed Call does.
func CheckResult() CallOption { return func(o *callOptions) { o.checkOutput = true } }

// Progress says how far a call has come.
type Progress struct {
	Progress float64
	Total    float64 // 0 means unknown
	Message  string
}

// Event is a notification of the server.
type Event struct {
	Server string // as the transport calls it
	Method string
	Params json.RawMessage // nil if there are none
}
