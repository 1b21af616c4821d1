// Package inspector is a page in which a person sees what a server offers, and
// tries it. It has the servers that the command line has named: no request of the
// page starts another program, opens a file, or leads to another address.
package inspector

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
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
	changed := newChanges()
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
					signal(changed.of[name])
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
			changed.listen(ctx, c, func() { // first: changes before the server has agreed are not notified
				for name := range kinds {
					i.work.Go(func() { i.keepListed(ctx, attempt, name, changed) })
				}
			})
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

// keepListed lists what a connection offers of one kind, and again when it has changed,
// until ctx ends.
func (i *Inspector) keepListed(ctx context.Context, attempt int, kind string, changes *changes) {
	changed := changes.of[kind]
	for rest := listRest; ; {
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, listTime)
		o, err := i.list(within, kind)
		cancel()
		if err != nil {
			return // there is no connection any more
		}
		kept := max(rest, (listShare-1)*time.Since(began))
		if rest >= longRest {
			o.Note = fmt.Sprintf("The list changes constantly, so it is refreshed every %v.", kept.Round(100*time.Millisecond))
		} else if changes.rests.Load() {
			o.Note = fmt.Sprintf("The server ends each subscription to changes, so they appear after up to %v.", listenRest)
		}
		i.offers(attempt, kind, *o)
		if pause(ctx, kept, nil) != nil {
			return
		}
		if pause(ctx, (listCalm-1)*rest, changed) == nil { // it did not change
			rest = listRest
			if o.Note != "" && !changes.rests.Load() {
				o.Note = ""
				i.offers(attempt, kind, *o)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		} else if rest = min(2*rest, maxRest); ctx.Err() != nil {
			return
		}
	}
}

// offers takes a list of a connection, and tells the page.
func (i *Inspector) offers(attempt int, kind string, o offer) {
	o.text, _ = json.Marshal(o) // texts always encode
	i.mu.Lock()
	if attempt == i.attempt {
		i.offered[kind] = &o
	}
	i.mu.Unlock()
	i.pulse.beat()
}

// list asks for a list, entry by entry.
func (i *Inspector) list(ctx context.Context, name string) (*offer, error) {
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("there is no list of %q", visible.Line(name, visible.Name))
	}
	c := i.current()
	if c == nil {
		return nil, errNoConnection
	}
	o := &offer{Entries: []entry{}}
	if !k.offered(c) {
		return o, nil
	}
	plain, size, judge := !i.showsViews(), 0, newJudge(&i.schemas, name, c.Revision())
	for text, err := range c.List(ctx, k.list, k.member, client.NoCache()) {
		switch own, _ := errors.AsType[*client.Error](err); {
		case errors.Is(err, client.ErrUnsupported), own != nil && own.Code == protocol.CodeMethodNotFound && k.capability != "":
			return o, nil
		case err != nil:
			o.Error = visible.Text(err.Error(), visible.Sentence)
		case len(o.Entries) == maxEntries, size > maxListed:
			o.Error = fmt.Sprintf("the list is too long: these are the first %d entries", len(o.Entries))
		}
		if o.Error != "" {
			break
		}
		size += len(text)
		e := entryOf(k, text, len(o.Entries))
		if plain { // hosts without views do not look at them
			e.View = ""
		}
		judge.mark(&e)
		o.Entries = append(o.Entries, e)
	}
	if name == "tool" {
		o.found = hostrules.Server("", o.tools(), c.Server().Instructions)
	}
	o.count()
	return o, nil
}

// find returns an entry of a list by its name, listing again if it is not known.
// A resource may be one that is not listed.
func (i *Inspector) find(ctx context.Context, kind, name string) (entry, error) {
	i.mu.Lock()
	o := i.offered[kind]
	i.mu.Unlock()
	if o == nil {
		var err error
		if o, err = i.list(ctx, kind); err != nil {
			return entry{}, err
		}
	}
	for _, e := range o.Entries {
		if e.Name == name {
			if kind == "template" {
				e.readVariables()
			}
			return e, nil
		}
	}
	if kind == "resource" && name != "" {
		return entry{Name: name, Label: visible.Line(name, visible.Name), input: textsSchema(nil), raw: json.RawMessage("null")}, nil
	}
	return entry{}, fmt.Errorf("the server lists no %s %q", kind, visible.Line(name, visible.Name))
}

// inputOf returns the schema of what a listed tool or event type takes.
func (i *Inspector) inputOf(method, name string) (json.RawMessage, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	kind := "tool"
	if method == wire.MethodEventsStream {
		kind = "event"
	}
	if o := i.offered[kind]; o != nil {
		for _, e := range o.Entries {
			if e.Name == name {
				return e.input, true
			}
		}
	}
	return nil, false
}

// checkOutput checks a result against the tool's output schema. One of a tool that failed
// needs no structured content (server/tools).
func (i *Inspector) checkOutput(ctx context.Context, tool string, result *client.CallToolResult) (issues []schema.Issue, checked bool) {
	e, err := i.find(ctx, "tool", tool)
	switch {
	case err != nil || len(e.output) == 0 || string(e.output) == "null" || !i.revisionNow().Has(protocol.FeatureStructuredContent):
		return nil, false
	case result.Structured != nil:
		return i.schemas.check(e.output, result.Structured), true
	case result.IsError:
		return nil, false
	}
	return []schema.Issue{{Rule: "outputSchema", Message: "has no structuredContent, which a tool with an outputSchema must return"}}, true
}

// readView reads the result of resources/read, and notes what other hosts would not
// accept of it.
func (i *Inspector) readView(uri string, raw json.RawMessage) (*shownView, error) {
	var r struct {
		Contents []struct {
			URI, MIMEType string
			Text          *string
			Blob          *string
			Meta          json.RawMessage `json:"_meta"`
		}
	}
	if err := jsonx.Unmarshal(raw, &r); err != nil || len(r.Contents) == 0 {
		return nil, fmt.Errorf("the view %s has no contents", visible.Line(uri, visible.Name))
	}
	c := r.Contents[0]
	v := &shownView{URI: visible.Line(uri, visible.Sentence), Granted: map[string][]string{}}
	note := func(format string, args ...any) {
		if len(v.Problems) < maxOrigins {
			v.Problems = append(v.Problems, visible.Line(fmt.Sprintf(format, args...), visible.Sentence))
		}
	}
	switch {
	case c.Text != nil:
		v.HTML = *c.Text
	case c.Blob != nil:
		text, err := base64.StdEncoding.DecodeString(*c.Blob)
		if err != nil {
			return nil, fmt.Errorf("the blob of the view %s is not base64", v.URI)
		}
		v.HTML = string(text)
	default:
		return nil, fmt.Errorf("the view %s has neither a text nor a blob", v.URI)
	}
	if len(v.HTML) > maxView {
		return nil, fmt.Errorf("the view %s has %d bytes, which exceeds the limit of %d", v.URI, len(v.HTML), maxView)
	}
	if !strings.HasPrefix(uri, "ui://") {
		note("its URI must begin with ui://; got %s", uri)
	}
	if c.MIMEType != wire.ViewType {
		note("its mimeType must be %s; got %q", wire.ViewType, c.MIMEType)
	}
	if text := strings.TrimSpace(strings.TrimPrefix(v.HTML, "\ufeff")); !strings.HasPrefix(text, "<!--") && !strings.EqualFold(text[:min(len(text), 14)], "<!doctype html") {
		note("it must be a whole document, which begins with <!doctype html>")
	}
	meta := uiOf(c.Meta)
	if meta == nil {
		meta = i.listedUI(uri)
	}
	i.grant(v, meta, note)
	return v, nil
}

// listedUI is that of the entry of resources/list, which counts where the contents have
// none.
func (i *Inspector) listedUI(uri string) json.RawMessage {
	lists, _ := i.lists()
	if lists["resource"] != nil {
		for _, e := range lists["resource"].Entries {
			if e.Name == uri {
				var r struct {
					Meta json.RawMessage `json:"_meta"`
				}
				_ = jsonx.Unmarshal(e.raw, &r) // else there is none
				return uiOf(r.Meta)
			}
		}
	}
	return nil
}

// grant gives a view what it declares, as far as it is valid.
func (i *Inspector) grant(v *shownView, meta json.RawMessage, note func(format string, args ...any)) {
	var ui struct {
		CSP         map[string]json.RawMessage `json:"csp"`
		Permissions map[string]json.RawMessage `json:"permissions"`
		Border      *bool                      `json:"prefersBorder"`
	}
	if len(meta) > 0 {
		if err := jsonx.Unmarshal(meta, &ui); err != nil {
			note("its _meta.ui does not decode: %v", err)
		}
	}
	query := url.Values{}
	for _, name := range domains {
		var list []string
		if text := ui.CSP[name]; len(text) > 0 && jsonx.Unmarshal(text, &list) != nil {
			note("csp.%s must be a list of texts", name)
			continue
		}
		for _, origin := range list {
			err := wire.CheckViewOrigin(origin, name == domains[0])
			if err == nil && len(query[name]) == maxOrigins {
				err = fmt.Errorf("the limit of %d origins is exceeded", maxOrigins)
			}
			if err != nil {
				note("csp.%s: %q is not allowed: %v", name, origin, err)
				continue
			}
			query.Add(name, origin)
		}
		if query[name] != nil {
			v.Granted[name] = query[name]
		}
	}
	for name := range ui.Permissions {
		v.Asks = append(v.Asks, visible.Line(name, visible.Name))
	}
	slices.Sort(v.Asks)
	v.Query, v.Border = query.Encode(), ui.Border
}

// counted returns the counts of all lists. i.mu is held.
func (i *Inspector) counted() (all counts) {
	for _, o := range i.offered {
		all.Fails += o.counts.Fails
		all.Notes += o.counts.Notes
		all.Broken += o.counts.Broken
	}
	return all
}

// lists returns the lists of the connection, by kind, and the instructions.
func (i *Inspector) lists() (map[string]*offer, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := map[string]*offer{}
	for kind, o := range i.offered {
		all[kind] = o
	}
	if i.client == nil {
		return all, ""
	}
	return all, i.client.Server().Instructions
}

func (i *Inspector) verdict(as string) verdict {
	v := verdict{Findings: []place{}, Broken: []brokenEntry{}, Results: i.calls.invalid(), Tokens: []weight{}}
	lists, instructions := i.lists()
	for _, kind := range []string{"tool", "prompt", "resource", "template", "event"} {
		if lists[kind] == nil {
			continue
		}
		for _, e := range lists[kind].Entries {
			if e.Wrong != "" && len(v.Broken) < maxWeighed {
				v.Broken = append(v.Broken, brokenEntry{kind, e.Name, e.Label, e.Wrong})
			} else if e.Wrong != "" {
				v.More++
			}
		}
	}
	tools := lists["tool"]
	if tools == nil {
		return v
	}
	names := map[string]string{}
	for _, e := range tools.Entries {
		one := weight{e.Name, e.Label, weigh("tool", e)}
		v.Total += one.Tokens
		v.Tokens = append(v.Tokens, one)
		names[visible.Line(e.Name, visible.Name)] = e.Name
	}
	v.Tools = len(v.Tokens)
	slices.SortStableFunc(v.Tokens, func(a, b weight) int { return b.Tokens - a.Tokens })
	v.Tokens = v.Tokens[:min(len(v.Tokens), maxWeighed)]
	found := tools.found
	if as != "" {
		found = hostrules.Server(as, tools.tools(), instructions)
	}
	for _, f := range found[:min(len(found), maxFindings)] {
		v.Findings = append(v.Findings, place{Row: f.Row(), Name: names[f.Tool]})
	}
	v.More += max(len(found), tools.counts.Fails+tools.counts.Notes) - len(v.Findings)
	return v
}

// findings returns what hosts do not accept of one tool, with the lines of its
// definition as it is shown.
func (i *Inspector) findings(e entry, sent string) []place {
	lists, _ := i.lists()
	if lists["tool"] == nil {
		return nil
	}
	var all []place
	label := visible.Line(e.Name, visible.Name)
	for _, f := range lists["tool"].found {
		if f.Tool != label || label == "" {
			continue
		}
		p := place{Row: f.Row(), Name: e.Name}
		if len(all) < maxPlaces {
			p.Line = lineOf(sent, pointerOf(f))
		}
		all = append(all, p)
	}
	return all
}
