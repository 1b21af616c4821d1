// Package terminal is where a person, or a script in their place, works with one
// server: it runs operations that Ctrl-C ends, shows progress, and puts the
// questions of the server to the person.
package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
)

// ErrInterrupted is the error of an operation that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted")

// Options shape a Terminal.
type Options struct {
	Console *console.Console
	Editor  *editor.Editor // asks the person
	// Limit is how long an operation may continue without a sign of life; 0 or
	// less means no limit.
	Limit time.Duration
	// Answers answer forms without asking, if there are any.
	Answers form.Answers
	// Sample is what to answer when the server wants to use a model: "" refuses,
	// "ask" asks the person, anything else is the answer.
	Sample string
	// Verbose is how much is shown of what servers log: 0 errors, 1 warnings, 2
	// information, 3 everything.
	Verbose int
}

// Terminal runs operations, one at a time.
type Terminal struct {
	opts      Options
	questions chan *question
	caught    chan os.Signal // what Catch has noted

	mu    sync.Mutex
	bar   *console.Progress // of the operation that runs, nil without one
	wait  *idleTimer        // the same
	level protocol.Level    // from which log messages are shown
	forms int               // which Answers were to answer
	fit   map[string]bool   // names of Answers that one of them had
}

// New returns a Terminal.
func New(opts Options) *Terminal {
	levels := []protocol.Level{protocol.LevelError, protocol.LevelWarning, protocol.LevelInfo, protocol.LevelDebug}
	return &Terminal{opts: opts, questions: make(chan *question), fit: map[string]bool{}, caught: make(chan os.Signal, 1), level: levels[min(max(opts.Verbose, 0), 3)]}
}

// Configure puts the terminal's handlers into the options of a client.
func (t *Terminal) Configure(o *client.Options) {
	o.Elicit, o.ElicitURL = t.elicit, t.elicit
	if t.opts.Sample != "" {
		o.Sample = t.sample
	}
	o.OnLog = t.log
	o.OnResumed = t.resumed
	if t.opts.Verbose > 0 {
		o.LogLevel = t.level
	}
	// The terminal has its own time limit, which stops while a person is asked.
	o.Timeout, o.MaxTimeout = -1, -1
}

// Catch notes a signal that comes between two operations, or as one ends: it ends the next.
// release must be called.
func (t *Terminal) Catch() (release func()) {
	signal.Notify(t.caught, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(t.caught) }
}

// Operation is something to do with a server. call are options for requests
// that may take a while: with them, the server is asked for progress.
type Operation func(ctx context.Context, call ...client.CallOption) error

// Run does something until it is done, Ctrl-C is pressed or the time is over.
// At a question Ctrl-C cancels only the question; pressed at several in a row
// it ends the operation too, since a server may ask forever.
func (t *Terminal) Run(ctx context.Context, op Operation) error {
	interrupt, stop := untilSignal(ctx, t.caught, os.Interrupt, syscall.SIGTERM) // Ctrl-C once more ends the program, whatever holds it
	defer stop()
	interrupt, leave := context.WithCancel(interrupt)
	defer leave()
	select {
	case <-t.caught:
		leave()
	default:
	}
	t.opts.Editor.Until(interrupt.Done())
	defer t.opts.Editor.Until(nil)
	if t.opts.Editor.Interrupted() {
		leave()
	}
	limited, p := newIdleTimer(interrupt, t.Limit())
	defer p.end()
	bar := console.NewProgress(t.opts.Console)
	t.show(bar, p)
	defer func() {
		bar.End()
		t.show(nil, nil)
	}()
	told := client.OnProgress(func(now client.Progress) {
		p.heard()
		bar.Tell(now.Progress, now.Total, now.Message)
	})
	looked := client.OnTask(func(task *client.Task) { p.heardBefore(cmp.Or(task.PollInterval, time.Second)) })
	done := make(chan error, 1)
	go func() { done <- safely.Known(safely.Try(func() error { return op(limited, told, looked) })) }()
	var refused refusals
	for {
		select {
		case q := <-t.questions:
			if interrupt.Err() != nil {
				q.done <- ErrInterrupted
				continue
			}
			p.pause()
			bar.Hide()
			t.answer(q, &refused)
			p.resume()
			if refused.enough() || t.opts.Editor.Interrupted() {
				leave()
			}
		case err := <-done:
			switch {
			case err == nil:
				return nil
			case interrupt.Err() != nil && ctx.Err() == nil:
				return ErrInterrupted
			case errors.Is(context.Cause(limited), ErrIdle) && client.LastInvalidMessage(err) != "":
				return fmt.Errorf("no answer for %v: %w; it sent text that is not a message, lastly %q", t.Limit(), client.ErrTimeout, client.LastInvalidMessage(err))
			case errors.Is(context.Cause(limited), ErrIdle):
				silent, _ := errors.AsType[*client.SilentError](err)
				return &noAnswer{t.Limit(), silent}
			}
			return err
		}
	}
}

// Get runs an operation that has a result.
func Get[T any](ctx context.Context, t *Terminal, op func(ctx context.Context, call ...client.CallOption) (T, error)) (result T, err error) {
	err = t.Run(ctx, func(ctx context.Context, call ...client.CallOption) (err error) {
		result, err = op(ctx, call...)
		return err
	})
	return result, err
}

// All returns the items of a list that comes page by page, with an error those
// that came; none is an empty list, which JSON shows as such.
func All[T any](list iter.Seq2[T, error]) ([]T, error) {
	items := []T{}
	for item, err := range list {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// noAnswer is the error of an operation whose time is over: a timeout, with the
// known reasons.
type noAnswer struct {
	limit  time.Duration
	silent *client.SilentError // nil unless it was a command that did not start to answer
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("no answer for %v: %v", e.limit, client.ErrTimeout)
}
func (e *noAnswer) Unwrap() []error {
	if e.silent == nil {
		return []error{client.ErrTimeout}
	}
	return []error{client.ErrTimeout, e.silent}
}

// Serve answers the questions that came while nothing ran.
func (t *Terminal) Serve() {
	var refused refusals
	for {
		select {
		case q := <-t.questions:
			if refused.enough() {
				q.done <- ErrInterrupted
				continue
			}
			t.answer(q, &refused)
		default:
			return
		}
	}
}

func (t *Terminal) show(bar *console.Progress, wait *idleTimer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bar, t.wait = bar, wait
}

// Notice shows a line that no caller waits for: above the prompt, or where the
// bar was.
func (t *Terminal) Notice(format string, args ...any) {
	t.mu.Lock()
	bar := t.bar
	t.mu.Unlock()
	if bar != nil {
		bar.Hide()
	}
	t.opts.Editor.Notice(string(console.Sprintf(format, args...)))
}

// resumed says that changes may have been missed. It is client.Options.OnResumed.
func (t *Terminal) resumed(s *client.Subscription) {
	if a := s.Accepted(); a.ToolsListChanged || a.PromptsListChanged || a.ResourcesListChanged || a.EventsListChanged || len(a.ResourceSubscriptions) > 0 {
		t.Notice("the subscription was interrupted and is open again: changes in between were not notified")
	}
}

// Limit returns how long operations may continue without a sign of life.
func (t *Terminal) Limit() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opts.Limit
}

// SetLimit changes it for the operations to come.
func (t *Terminal) SetLimit(limit time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opts.Limit = limit
}

// ShowLogs shows log messages from that level on.
func (t *Terminal) ShowLogs(level protocol.Level) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.level = level
}

func (t *Terminal) log(entry client.LogEntry) {
	t.mu.Lock()
	level := t.level
	t.mu.Unlock()
	if entry.Level < level {
		return
	}
	from := "server"
	if entry.Logger != "" {
		from = console.Line(entry.Logger)
	}
	t.Notice("[%s] %s: %s", entry.Level, from, entry.Text())
}

// put gives a question to the goroutine that runs the terminal, and waits.
func (t *Terminal) put(ctx context.Context, ask func(form.Asker) error) error {
	q := &question{ctx: ctx, ask: ask, done: make(chan error, 1)}
	t.mu.Lock()
	idle := t.bar == nil
	t.mu.Unlock()
	if idle {
		t.Notice("the server asks something; press Enter to see it")
	}
	select {
	case t.questions <- q:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *Terminal) answer(q *question, refused *refusals) {
	if q.ctx.Err() != nil {
		q.done <- context.Cause(q.ctx)
		return
	}
	asker := &heedful{Asker: t.opts.Editor}
	err := q.ask(asker)
	if *refused++; !asker.cancelled {
		*refused = 0
	}
	if q.ctx.Err() != nil && !asker.cancelled {
		t.Notice("the server does not wait for that answer any more")
	}
	q.done <- err
}

// elicit answers a question to the user.
func (t *Terminal) elicit(ctx context.Context, params *protocol.ElicitParams) (result *protocol.ElicitResult, err error) {
	if len(t.opts.Answers) > 0 || !t.opts.Console.Interactive() {
		reply := t.opts.Answers.Elicit(params)
		t.keep(reply)
		t.Notice("%s", reply.Note)
		return reply.Result, nil
	}
	err = t.put(ctx, func(asker form.Asker) error {
		answer, err := form.Elicit(asker, params)
		result = answer
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// keep remembers which answers were of use.
func (t *Terminal) keep(r form.Reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Form {
		t.forms++
	}
	for _, name := range r.Fit {
		t.fit[name] = true
	}
}

// Unfit warns of Answers whose names no form had which the server asked, if it
// asked any.
func (t *Terminal) Unfit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.opts.Answers.Names() {
		if t.forms > 0 && !t.fit[name] {
			t.opts.Console.Warnf("--answer %s: no form that the server asked has such a field", name)
		}
	}
}

// sample answers in the place of a model.
func (t *Terminal) sample(ctx context.Context, params *protocol.SampleParams) (*protocol.SampleResult, error) {
	text := t.opts.Sample
	if text == "ask" {
		err := t.put(ctx, func(asker form.Asker) (err error) {
			text, err = askModel(asker, params)
			return err
		})
		if err != nil {
			return nil, err
		}
	} else {
		t.Notice("the server asked a model; answered with --sample")
	}
	return &protocol.SampleResult{Role: protocol.RoleAssistant, Content: []protocol.Content{protocol.TextContent{Text: text}},
		Model: "talaria/person", StopReason: "endTurn"}, nil
}

// Hold says something to the person and gives them time: until release is
// called, the operation that runs need not show a sign of life. ok is false if
// there is no person, or no operation that they wait for.
func (t *Terminal) Hold(text string) (release func(), ok bool) {
	t.mu.Lock()
	bar, wait := t.bar, t.wait
	t.mu.Unlock()
	if bar == nil || !t.Attended() {
		return nil, false
	}
	wait.pause()
	t.Notice("%s", text)
	return wait.resume, true
}

// Attended reports whether there is a person to turn to.
func (t *Terminal) Attended() bool { return t.opts.Console.Interactive() }
