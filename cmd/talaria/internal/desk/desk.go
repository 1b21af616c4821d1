// Package desk is where a person, or a script in their place, works with one
// server: it runs operations that Ctrl-C ends, shows progress, and puts the
// questions of the server to the person.
package desk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/protocol"
)

// ErrInterrupted is the error of an operation that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted")

// Options shape a Desk.
type Options struct {
	Console *console.Console
	Editor  *editor.Editor // asks the person
	// Limit is how long an operation may go on without a sign of life; 0 or less
	// is no limit.
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

// Desk runs operations, one at a time.
type Desk struct {
	opts      Options
	questions chan *question

	mu    sync.Mutex
	bar   *console.Progress // of the operation that runs, nil without one
	wait  *patience         // likewise
	level protocol.Level    // from which log messages are shown
	forms int               // which Answers were to answer
	fit   map[string]bool   // names of Answers that one of them had
}

// question is what a server asks, and who waits for the answer.
type question struct {
	ctx  context.Context
	ask  func(asker form.Asker) error
	done chan error // has room for one
}

// New returns a Desk.
func New(opts Options) *Desk {
	levels := []protocol.Level{protocol.LevelError, protocol.LevelWarning, protocol.LevelInfo, protocol.LevelDebug}
	return &Desk{opts: opts, questions: make(chan *question), fit: map[string]bool{}, level: levels[min(max(opts.Verbose, 0), 3)]}
}

// Configure puts the desk's handlers into the options of a client.
func (d *Desk) Configure(o *client.Options) {
	o.Elicit, o.ElicitURL = d.elicit, d.elicit
	if d.opts.Sample != "" {
		o.Sample = d.sample
	}
	o.OnLog = d.log
	if d.opts.Verbose > 0 {
		o.LogLevel = d.level
	}
	// The desk has patience of its own, which rests while a person is asked.
	o.Timeout, o.MaxTimeout = -1, -1
}

// Operation is something to do with a server. call are options for requests
// that may take a while: with them, the server is asked for progress.
type Operation func(ctx context.Context, call ...client.CallOption) error

// Run does something until it is done, Ctrl-C is pressed or patience ends.
func (d *Desk) Run(ctx context.Context, op Operation) error {
	interrupt, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	d.opts.Editor.Until(interrupt.Done())
	defer d.opts.Editor.Until(nil)
	limited, p := newPatience(interrupt, d.Limit())
	defer p.end()
	bar := d.opts.Console.Progress()
	d.show(bar, p)
	defer func() {
		bar.End()
		d.show(nil, nil)
	}()
	told := client.OnProgress(func(now client.Progress) {
		p.heard()
		bar.Tell(now.Progress, now.Total, now.Message)
	})
	done := make(chan error, 1)
	go func() { done <- op(limited, told) }()
	for {
		select {
		case q := <-d.questions:
			p.pause()
			bar.Hide()
			d.answer(q)
			p.resume()
		case err := <-done:
			switch {
			case err == nil:
				return nil
			case interrupt.Err() != nil && ctx.Err() == nil:
				return ErrInterrupted
			case errors.Is(context.Cause(limited), errPatience) && client.Garbage(err) != "":
				return fmt.Errorf("no answer for %v: %w; it sent what is no message, lastly %q", d.Limit(), client.ErrTimeout, client.Garbage(err))
			case errors.Is(context.Cause(limited), errPatience):
				return fmt.Errorf("no answer for %v: %w", d.Limit(), client.ErrTimeout)
			}
			return err
		}
	}
}

// Serve answers the questions that came while nothing ran.
func (d *Desk) Serve() {
	for {
		select {
		case q := <-d.questions:
			d.answer(q)
		default:
			return
		}
	}
}

func (d *Desk) show(bar *console.Progress, wait *patience) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bar, d.wait = bar, wait
}

// Notice shows a line that nobody waits for: above the prompt, or where the bar
// was.
func (d *Desk) Notice(format string, args ...any) {
	d.mu.Lock()
	bar := d.bar
	d.mu.Unlock()
	if bar != nil {
		bar.Hide()
	}
	d.opts.Editor.Notice(fmt.Sprintf(format, args...))
}

// Limit returns how long operations may go on without a sign of life.
func (d *Desk) Limit() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opts.Limit
}

// SetLimit changes it for the operations to come.
func (d *Desk) SetLimit(limit time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opts.Limit = limit
}

// ShowLogs shows log messages from that level on.
func (d *Desk) ShowLogs(level protocol.Level) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.level = level
}

func (d *Desk) log(entry client.LogEntry) {
	d.mu.Lock()
	level := d.level
	d.mu.Unlock()
	if entry.Level < level {
		return
	}
	from := "server"
	if entry.Logger != "" {
		from = console.Line(entry.Logger)
	}
	d.Notice("[%s] %s: %s", entry.Level, from, console.Visible(entry.Text()))
}

// put gives a question to whoever runs the terminal, and waits.
func (d *Desk) put(ctx context.Context, ask func(form.Asker) error) error {
	q := &question{ctx: ctx, ask: ask, done: make(chan error, 1)}
	d.mu.Lock()
	idle := d.bar == nil
	d.mu.Unlock()
	if idle {
		d.Notice("the server asks something; press Enter to see it")
	}
	select {
	case d.questions <- q:
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

func (d *Desk) answer(q *question) {
	if q.ctx.Err() != nil {
		q.done <- context.Cause(q.ctx)
		return
	}
	err := q.ask(d.opts.Editor)
	if q.ctx.Err() != nil {
		d.Notice("the server does not wait for that answer any more")
	}
	q.done <- err
}

// elicit answers a question to the user.
func (d *Desk) elicit(ctx context.Context, params *protocol.ElicitParams) (result *protocol.ElicitResult, err error) {
	if len(d.opts.Answers) > 0 || !d.opts.Console.Interactive() {
		reply := d.opts.Answers.Elicit(params)
		d.keep(reply)
		d.Notice("%s", reply.Note)
		return reply.Result, nil
	}
	err = d.put(ctx, func(asker form.Asker) error {
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
func (d *Desk) keep(r form.Reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Form {
		d.forms++
	}
	for _, name := range r.Fit {
		d.fit[name] = true
	}
}

// Unfit lists the names of Answers that no form had which the server asked;
// none if it asked no form.
func (d *Desk) Unfit() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forms == 0 {
		return nil
	}
	return slices.DeleteFunc(d.opts.Answers.Names(), func(name string) bool { return d.fit[name] })
}

// sample answers in the place of a model.
func (d *Desk) sample(ctx context.Context, params *protocol.SampleParams) (*protocol.SampleResult, error) {
	text := d.opts.Sample
	if text == "ask" {
		err := d.put(ctx, func(asker form.Asker) (err error) {
			text, err = askModel(asker, params)
			return err
		})
		if err != nil {
			return nil, err
		}
	} else {
		d.Notice("the server asked a model; answered with --sample")
	}
	return &protocol.SampleResult{Role: protocol.RoleAssistant, Content: []protocol.Content{protocol.TextContent{Text: text}},
		Model: "talaria/person", StopReason: "endTurn"}, nil
}

// errNoSample is what a server gets whose request to a model is declined.
var errNoSample = &protocol.Error{Code: -1, Message: "the user rejected the sampling request"}

func askModel(asker form.Asker, params *protocol.SampleParams) (string, error) {
	asker.Say("the server asks a model (Ctrl-C refuses):")
	if params.SystemPrompt != "" {
		asker.Say("  system: " + console.Visible(params.SystemPrompt))
	}
	for _, m := range params.Messages {
		for _, item := range m.Content {
			text := fmt.Sprintf("(%T)", item)
			if t, ok := item.(protocol.TextContent); ok {
				text = console.Visible(t.Text)
			}
			asker.Say("  " + console.Line(string(m.Role)) + ": " + text)
		}
	}
	answer, err := asker.Ask("assistant: ", nil)
	if errors.Is(err, form.ErrCancel) || errors.Is(err, form.ErrDecline) {
		return "", errNoSample
	}
	return answer, err
}
