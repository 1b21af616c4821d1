// Package inspector is a page in which a person sees what a server offers, and
// tries it. It has the servers that the command line has named: no request of the
// page starts another program, opens a file, or leads to another address.
package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Options are the settings of an Inspector.
type Options struct {
	Target  string // how the user named the server
	Version string // of this program
	// Transport makes the way to the server, again for each connection. The standard
	// error of a command goes to stderr; around wraps the HTTP round tripper. Follow
	// needs none.
	Transport func(stderr io.Writer, around func(http.RoundTripper) http.RoundTripper) (client.Transport, error)
	// Client are the options of the client; the inspector sets those that tell it
	// of messages, questions and the connection.
	Client client.Options
	// Words are the flags and the target, last, with which another command of this
	// program reaches the server.
	Words []string
	// History is the file that keeps calls and drafts from one start to the next, ""
	// for none; Unkept says why, which the page shows.
	History, Unkept string
	// Explain says why a connection could not be made, and what to do; without t, why
	// one was lost.
	Explain func(t client.Transport, err error) (cause, hint string)
}

// Inspector is the session with a server, and what is known of it. All methods
// are safe for concurrent use.
type Inspector struct {
	options      Options
	store        *record.Store
	asked        questions
	calls        calls
	schemas      schemas
	mask         mask
	closed       sync.Once
	history      history
	reach        reach
	pulse        pulse
	streams      atomic.Int32 // of events
	completions  atomic.Int32
	viewRequests atomic.Int32 // in progress
	ctx          context.Context
	ending       context.CancelFunc
	work         sync.WaitGroup // calls and connections

	mu           sync.Mutex
	client       *client.Client // nil while there is none
	state        string         // connecting, ready, failed, recording
	revision     protocol.Revision
	plain        bool // the client declares no views
	failure      *failure
	capabilities json.RawMessage   // of the server, as the page gets them
	offered      map[string]*offer // by kind, of those that were listed
	stderr       []string          // the last lines
	partial      []byte            // of a line that has no end yet
	unbuilt      string            // why the server does not build, with --watch
	noise        string            // the first line that is not a message
	opened       bool              // by the page
	attempt      int               // counts connections: what comes late of an older one is dropped
	cancel       context.CancelFunc
}

// failure is why there is no connection.
type failure struct {
	Cause  string   `json:"cause"`
	Hint   string   `json:"hint,omitempty"`
	Stderr []string `json:"stderr,omitempty"`
	Exit   string   `json:"exit,omitempty"` // how a command ended
}

// The bounds of what is kept of standard error for the first look.
const (
	maxStderrLines = 20
	maxStderrLine  = 64 << 10
)

// New returns an Inspector, which Connect connects and Close ends.
func New(o Options) *Inspector {
	i := &Inspector{options: o, state: "connecting"}
	i.ctx, i.ending = context.WithCancel(context.Background())
	i.pulse.init()
	i.store = record.NewStore(i.pulse.beat)
	i.asked.beat, i.calls.beat, i.asked.running = i.pulse.beat, i.pulse.beat, i.calls.running
	i.history.problem = o.Unkept
	i.history.path, i.history.calls, i.history.beat, i.reach.mask = o.History, &i.calls, i.pulse.beat, &i.mask
	i.mask.addFlags(o.Words)
	i.history.read()
	i.work.Go(func() { i.history.run(i.ctx.Done()) })
	return i
}

// Close ends everything that is in progress, and the connection. It may be
// called again.
func (i *Inspector) Close() { i.closed.Do(i.close) }

func (i *Inspector) close() {
	i.ending()
	i.mu.Lock()
	c := i.client
	i.client = nil
	if i.cancel != nil {
		i.cancel()
	}
	i.mu.Unlock()
	if c != nil {
		_ = c.Close() // a server that does not end in order ends nevertheless
	}
	i.work.Wait()
	i.history.save()
	i.store.Close()
}

// open connects, if nothing ever did.
func (i *Inspector) open() {
	if i.options.Transport == nil {
		return // a recording
	}
	i.mu.Lock()
	first := i.attempt == 0 && !i.opened
	i.opened = true
	i.mu.Unlock()
	if first {
		i.Connect(0)
	}
}

// Connect begins to connect, after it has ended the connection that there is.
// revision 0 is what both speak best.
func (i *Inspector) Connect(revision protocol.Revision) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx.Err() != nil {
		return
	}
	old := i.client
	if i.cancel != nil {
		i.cancel()
	}
	i.attempt++
	var ctx context.Context
	ctx, i.cancel = context.WithCancel(i.ctx)
	i.client, i.state, i.revision, i.failure, i.offered, i.stderr, i.partial, i.noise = nil, "connecting", revision, nil, map[string]*offer{}, nil, nil, ""
	attempt := i.attempt
	i.work.Go(func() {
		if old != nil {
			_ = old.Close()
		}
		i.connect(ctx, attempt, revision)
	})
	i.pulse.beat()
}

// withViews returns what a client declares, with the extension of views.
func withViews(caps protocol.ClientCapabilities) protocol.ClientCapabilities {
	all := map[string]json.RawMessage{wire.AppsExtension: json.RawMessage(`{"mimeTypes":["` + wire.ViewType + `"]}`)}
	maps.Copy(all, caps.Extensions)
	caps.Extensions = all
	return caps
}

func (i *Inspector) connect(ctx context.Context, attempt int, revision protocol.Revision) {
	tap := &tap{i: i, attempt: attempt}
	t, err := i.options.Transport(tap, tap.around)
	i.mask.learn(t)
	var c *client.Client
	changed := map[string]chan struct{}{} // has one if a list has
	for name := range kinds {
		changed[name] = make(chan struct{}, 1)
	}
	if err == nil {
		o := i.options.Client
		if i.showsViews() {
			o.Capabilities = withViews(o.Capabilities)
		}
		if revision != 0 {
			o.Revisions = []protocol.Revision{revision}
		}
		o.NoReconnect, o.NoCache, o.LaxCapabilities, o.SampleTools = true, true, true, true
		o.Trace = tap.hear
		o.Elicit, o.ElicitURL, o.Sample = i.asked.elicit, i.asked.elicit, i.asked.sample
		o.OnLog, o.OnNotification = func(client.LogEntry) {}, func(n client.Notification) {
			for name, kind := range kinds {
				if n.Method == kind.changed {
					signal(changed[name])
				}
			}
		}
		o.OnState = func(s client.State, err error) {
			if s == client.StateDisconnected && err != nil && i.current() != nil {
				i.lost(attempt, nil, err) // else it could not be made, which Connect says
			}
		}
		c, err = client.Connect(ctx, t, &o)
	}
	var capabilities json.RawMessage
	if err == nil {
		capabilities, _ = json.Marshal(c.Server().Capabilities) // which were decoded before
	}
	i.mu.Lock()
	late := attempt != i.attempt || ctx.Err() != nil
	if !late && err == nil {
		i.client, i.state, i.capabilities = c, "ready", capabilities
	}
	i.mu.Unlock()
	if !late && err == nil {
		i.work.Go(func() {
			listen(ctx, c, func() { // first: changes before the server has agreed are not notified
				for name := range kinds {
					i.work.Go(func() { i.keepListed(ctx, attempt, name, changed[name]) })
				}
			}, changed)
		})
	}
	switch {
	case late && c != nil:
		_ = c.Close()
	case err != nil && !late:
		i.lost(attempt, t, err)
	case err == nil && c.State() == client.StateDisconnected: // before a listener existed
		i.lost(attempt, nil, errors.New("the server ended the connection"))
	}
	i.pulse.beat()
}

// showsViews reports whether the client declares views.
func (i *Inspector) showsViews() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.plain
}

// The times of the subscription to changes of lists: how long lists wait for a server to agree to it, the first
// and the greatest pause after it has ended, and how long one lasts that has settled.
const (
	agreeTime   = 2 * time.Second
	listenPause = time.Second
	listenRest  = 30 * time.Second
)

// filterOf returns the subscription to all lists that a server announces changes of.
func filterOf(c *client.Client) (f client.Filter, some bool) {
	known := c.Server().Capabilities
	f.ToolsListChanged = known.Tools != nil && known.Tools.ListChanged
	f.PromptsListChanged = known.Prompts != nil && known.Prompts.ListChanged
	f.ResourcesListChanged = known.Resources != nil && known.Resources.ListChanged
	f.EventsListChanged = kinds["event"].offered(c)
	return f, f.ToolsListChanged || f.PromptsListChanged || f.ResourcesListChanged || f.EventsListChanged
}

// listen subscribes to changes of lists, and calls ready when the server has answered. It subscribes again when
// a subscription has ended while the connection lives on, and signals all lists then. A server without such
// notifications is not a failure.
func listen(ctx context.Context, c *client.Client, ready func(), changed map[string]chan struct{}) {
	f, some := filterOf(c)
	once := false
	for wait := listenPause; some; wait = min(2*wait, listenRest) {
		agreed, cancel := context.WithTimeout(ctx, agreeTime)
		s, err := c.Listen(agreed, f, nil) // OnNotification receives it
		cancel()
		if err != nil && !once {
			break
		}
		if !once {
			once = true
			ready()
		} else if err == nil {
			for _, list := range changed {
				signal(list)
			}
		}
		if began := time.Now(); err == nil {
			select {
			case <-s.Done():
			case <-ctx.Done():
				return
			}
			if time.Since(began) > listenRest {
				wait = listenPause
			}
		}
		if c.State() == client.StateDisconnected || pause(ctx, wait, nil) != nil {
			return
		}
	}
	if !once {
		ready()
	}
}

// signal says that there is something to do; what is said twice is one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// lost notes why there is no connection.
func (i *Inspector) lost(attempt int, t client.Transport, err error) {
	f := &failure{}
	f.Cause, f.Hint = i.options.Explain(t, err)
	exit, _ := errors.AsType[*transport.ExitError](err)
	if exit != nil && exit.State != nil && !strings.Contains(f.Cause, exit.State.String()) {
		f.Exit = exit.State.String()
	}
	// What the error has of standard error is shown apart.
	if cut := strings.Index(f.Cause, "standard error"); cut > 0 {
		if line := strings.LastIndexAny(f.Cause[:cut], ";\n"); line > 0 {
			f.Cause = strings.TrimSpace(f.Cause[:line])
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if attempt != i.attempt {
		return
	}
	f.Stderr = append(f.Stderr, i.stderr...)
	if len(i.partial) > 0 {
		f.Stderr = append(f.Stderr, visible.Output(string(i.partial), visible.Sentence))
	}
	if exit != nil && exit.Stderr != "" { // of the last start, if there was more than one
		f.Stderr = nil
		for line := range strings.Lines(exit.Stderr) {
			f.Stderr = append(f.Stderr, visible.Output(line, visible.Sentence))
		}
		f.Stderr = f.Stderr[max(0, len(f.Stderr)-maxStderrLines):]
	}
	i.state, i.failure = "failed", f
	i.pulse.beat()
}

// Follow shows the recording in a file instead of a server, and what is appended to
// it until Close. The error is that of opening it, or says that it is not a
// recording.
func (i *Inspector) Follow(name string) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	if err := record.Check(file); err != nil {
		return errors.Join(err, file.Close())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state = "recording"
	i.work.Go(func() {
		defer file.Close()
		odd := 0
		for e, err := range recording.Read(&growing{i.ctx, file}) {
			if err != nil {
				e = recording.Entry{At: time.Now(), Dir: recording.Note, Text: []byte(err.Error())}
				odd++
			}
			if i.ctx.Err() != nil || odd > maxOdd {
				return
			}
			i.store.Load(e)
		}
	})
	return nil
}

// current returns the client, nil if there is none.
func (i *Inspector) current() *client.Client {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != "ready" {
		return nil
	}
	return i.client
}

// revisionNow returns the revision that is spoken, the latest if there is no connection.
func (i *Inspector) revisionNow() protocol.Revision {
	if c := i.current(); c != nil {
		return c.Revision()
	}
	return protocol.Latest
}

// tap receives the messages of one connection.
type tap struct {
	i       *Inspector
	attempt int
}

func (t *tap) conn() string { return strconv.Itoa(t.attempt) }

func (t *tap) hear(fromServer bool, message []byte) {
	dir := recording.Out
	if fromServer {
		dir = recording.In
		t.note(message)
	}
	t.i.store.Add(recording.Entry{At: time.Now(), Dir: dir, Conn: t.conn(), Text: message})
}

// note keeps the first line that is not a message: most often a server logs to
// standard output.
func (t *tap) note(message []byte) {
	text := bytes.TrimSpace(jsonx.Document(message))
	if len(text) == 0 || text[0] == '{' || text[0] == '[' {
		return
	}
	t.i.mu.Lock()
	defer t.i.mu.Unlock()
	if t.attempt == t.i.attempt && t.i.noise == "" {
		t.i.noise = visible.Line(string(text), visible.Name)
	}
}

// around receives the HTTP requests.
func (t *tap) around(next http.RoundTripper) http.RoundTripper {
	return record.Exchanging(noting{next, &t.i.reach}, func(body []byte, x record.Exchange) { t.i.store.Exchange(t.conn(), body, x) })
}

// Write takes what a command writes to standard error.
func (t *tap) Write(p []byte) (int, error) {
	i := t.i
	var lines [][]byte
	i.mu.Lock()
	if t.attempt == i.attempt {
		for rest := p; len(rest) > 0; {
			part, after, ended := bytes.Cut(rest, []byte{'\n'})
			i.partial = append(i.partial, part[:min(len(part), maxStderrLine-min(maxStderrLine, len(i.partial)))]...)
			rest = after
			if ended || len(i.partial) >= maxStderrLine {
				lines = append(lines, i.partial)
				i.stderr = append(i.stderr, visible.Output(string(i.partial), visible.Sentence))
				i.stderr = i.stderr[max(0, len(i.stderr)-maxStderrLines):]
				i.partial = nil
			}
		}
	}
	i.mu.Unlock()
	for _, line := range lines {
		i.store.Add(recording.Entry{At: time.Now(), Dir: recording.Err, Conn: t.conn(), Text: line})
	}
	return len(p), nil
}

// Building says that the server has not been built yet, or with a text why it does not build:
// the program before continues then, if there is one.
func (i *Inspector) Building(wrong string) {
	i.mu.Lock()
	i.unbuilt = visible.Text(wrong, 64<<10)
	if i.attempt == 0 && wrong != "" {
		i.state, i.failure = "failed", &failure{Cause: "The server does not build.", Hint: "Correct its sources: each change builds it again."}
	}
	i.mu.Unlock()
	i.pulse.beat()
}

// Rebuilt connects to the server that was built, with the revision that is chosen, and makes
// the last call again, unless its tool may be destructive.
func (i *Inspector) Rebuilt() {
	i.mu.Lock()
	i.unbuilt = ""
	revision, attempt := i.revision, i.attempt
	i.mu.Unlock()
	if last, ok := i.calls.last(); ok {
		i.work.Go(func() { i.repeat(last, attempt) })
	}
	i.Connect(revision)
}

// repeat makes a call again once the connection after an attempt is there.
func (i *Inspector) repeat(last call, attempt int) {
	for {
		_, changed := i.pulse.now()
		i.mu.Lock()
		now, state, listed := i.attempt, i.state, i.offered["tool"] != nil
		i.mu.Unlock()
		switch {
		case now > attempt+1 || now > attempt && state == "failed":
			return
		case now > attempt && state == "ready" && (listed || last.Method != protocol.MethodToolsCall):
			if asTask, ok := i.repeatable(i.ctx, last); ok {
				_, _ = i.calls.startAgain(i, last.Method, last.Tool, last.Arguments, asTask, last.ID) // it is shown as not made again
			}
			return
		}
		select {
		case <-changed:
		case <-i.ctx.Done():
			return
		}
	}
}

// repeatable reports whether a call may be made again without a person, and whether as a task.
func (i *Inspector) repeatable(ctx context.Context, last call) (asTask, ok bool) {
	if last.Method != protocol.MethodToolsCall {
		return false, true
	}
	e, err := i.find(ctx, "tool", last.Tool)
	return e.task, err == nil && e.Harmless
}
