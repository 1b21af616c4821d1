package inspector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// maxStreams is how many pages may listen at a time.
const maxStreams = 8

// streamPatience is how long a listening page may take to read an event.
const streamPatience = 10 * time.Second

// soon is how long the answer to a call waits for what comes of the call.
const soon = 100 * time.Millisecond

// pages answer the page.
type pages struct {
	*Inspector
	all []*Inspector // of which it is one
}

// state is all that the page shows but lists, capabilities, forms, results and messages.
type state struct {
	Target       string                   `json:"target"`
	Program      string                   `json:"program"`
	State        string                   `json:"state"`
	Pinned       string                   `json:"pinned,omitempty"`
	Revision     string                   `json:"revision,omitempty"`
	Revisions    []string                 `json:"revisions"`
	Server       *protocol.Implementation `json:"server,omitempty"`
	Instructions string                   `json:"instructions,omitempty"`
	Failure      *failure                 `json:"failure,omitempty"`
	Stderr       []string                 `json:"stderr,omitempty"`
	Unbuilt      string                   `json:"unbuilt,omitempty"` // why the server does not build
	Noise        string                   `json:"noise,omitempty"`
	Connection   int                      `json:"connection"` // counts them
	Questions    []*question              `json:"questions"`
	Calls        []call                   `json:"calls"`
	Traffic      int64                    `json:"traffic"`
	Lines        int64                    `json:"lines,omitempty"`   // of standard error, in the traffic
	Open         opened                   `json:"open"`              // the form that was, last
	Problem      string                   `json:"problem,omitempty"` // why calls are not kept
	HTTP         bool                     `json:"http,omitempty"`    // curl can make the calls
	Logs         bool                     `json:"logs,omitempty"`    // the server has a level of logs
	Check        counts                   `json:"check"`             // how much the verdict has
	Tasks        bool                     `json:"tasks,omitempty"`   // the server lists its tasks
	Plain        bool                     `json:"plain,omitempty"`   // this client declares no views
}

func (i pages) snapshot() state {
	rows := i.store.Rows(record.Query{})
	s := state{Target: visible.Line(i.options.Target, visible.Name), Program: i.options.Version, Questions: i.asked.waiting(), Calls: i.calls.recent(),
		Traffic: rows.Total, Lines: rows.Lines}
	s.Open, s.Problem = i.history.last()
	reached, _ := i.reach.get()
	s.HTTP = reached != ""
	wrong := len(i.calls.invalid())
	for _, rev := range protocol.Revisions() {
		s.Revisions = append(s.Revisions, rev.String())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	s.State, s.Failure, s.Connection, s.Noise = i.state, i.failure, i.attempt, i.noise
	s.Unbuilt = i.unbuilt
	s.Stderr = append(s.Stderr, i.stderr...)
	s.Plain = i.plain
	if i.revision != 0 {
		s.Pinned = i.revision.String()
	}
	s.Check = i.counted()
	s.Check.Results = wrong
	if i.client != nil {
		known := i.client.Server()
		info := protocol.Implementation{Name: visible.Line(known.Info.Name, visible.Name), Title: visible.Line(known.Info.Title, visible.Name),
			Version: visible.Line(known.Info.Version, visible.Name)}
		s.Server, s.Revision, s.Logs = &info, i.client.Revision().String(), i.client.Supports("logging")
		s.Tasks = listsTasks(i.client)
		s.Instructions = visible.Text(known.Instructions, 64<<10)
	}
	return s
}

// members are those of the state, already encoded, with the servers if there are
// several, and each list by its kind as soon as it is there. Long values of a server
// were encoded when they came.
func (i pages) members() map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	s := i.snapshot()
	s.Questions = nil
	text, _ := json.Marshal(s) // which always encodes, and thus decodes
	_ = json.Unmarshal(text, &m)
	m["questions"] = i.asked.encoded()
	i.mu.Lock()
	if i.client != nil {
		m["capabilities"] = i.capabilities
	}
	for kind, o := range i.offered {
		m[kind] = o.text
	}
	i.mu.Unlock()
	if len(i.all) > 1 {
		m["servers"], _ = json.Marshal(servers(i.all)) // the same
	}
	return m
}

// events tells the page the state, and then what of it has changed, as often as it can
// show. A member that is gone is null.
func (i pages) events(w http.ResponseWriter, r *http.Request) {
	if n := i.streams.Add(1); n > maxStreams {
		i.streams.Add(-1)
		refuse(w, http.StatusServiceUnavailable, errors.New("too many open pages (limit 8)"))
		return
	}
	defer i.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	quiet := time.NewTicker(50 * time.Millisecond) // 20 a second at most
	defer quiet.Stop()
	again := 20 * time.Second
	if len(i.all) > 1 {
		again = time.Second // there is no notification when another server asks something
	}
	var told map[string]json.RawMessage
	for {
		_, changed := i.pulse.now()
		now := i.members()
		news := map[string]json.RawMessage{}
		for name, value := range now {
			if !bytes.Equal(value, told[name]) {
				news[name] = value
			}
		}
		for name := range told {
			if now[name] == nil {
				news[name] = json.RawMessage("null")
			}
		}
		told = now
		text, _ := json.Marshal(news)                            // as above
		_ = out.SetWriteDeadline(time.Now().Add(streamPatience)) // of what can have one
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-quiet.C:
		case <-r.Context().Done():
			return
		}
		select {
		case <-changed:
		case <-time.After(again):
		case <-r.Context().Done():
			return
		case <-i.ctx.Done():
			return
		}
	}
}

func (i pages) reconnect(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Revision string
		Plain    *bool // changes whether this client declares views
	}
	if !body(w, r, &q) {
		return
	}
	rev, ok := protocol.ParseRevision(q.Revision)
	if q.Revision != "" && !ok {
		refuse(w, http.StatusBadRequest, fmt.Errorf("there is no revision %q", q.Revision))
		return
	}
	if i.options.Transport == nil {
		refuse(w, http.StatusConflict, errRecorded)
		return
	}
	if q.Plain != nil {
		i.mu.Lock()
		i.plain = *q.Plain
		i.mu.Unlock()
	}
	i.Connect(rev)
	reply(w, struct{}{}) // the stream tells
}

// kindOfQuery is what a request is about: a tool, unless it says otherwise.
func kindOfQuery(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("kind"), "tool")
}

// form is what a tool or the like takes, as the page draws it.
type form struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Marks       []string `json:"marks,omitempty"`
	Wrong       string   `json:"wrong,omitempty"`
	Form        *control `json:"form,omitempty"`
	Sent        string   `json:"sent"`               // the definition as the server has sent it, indented
	Tokens      int      `json:"tokens"`             // about
	Draft       string   `json:"draft"`              // what was typed into it before
	Findings    []place  `json:"findings,omitempty"` // of a tool
	View        string   `json:"view,omitempty"`     // of a tool, its URI
}

// maxSent is how much of a definition is shown, in bytes.
const maxSent = 256 << 10

// showForm answers with the form of a tool or the like, which is open from now on.
func (i pages) showForm(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind := kindOfQuery(r)
	var e entry
	var err error
	if q.Has("question") { // for its lists
		id, _ := strconv.ParseInt(q.Get("question"), 10, 64) // what is not a number is not a question
		waits := false
		if e.input, waits = i.asked.schema(id); !waits {
			refuse(w, http.StatusNotFound, errNobody)
			return
		}
	} else if e, err = i.find(r.Context(), kind, q.Get("tool")); err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	drawn, lists, err := draw(e.input)
	newJudge(&i.schemas, kind, i.revisionNow()).mark(&e) // of a list that is too long to be checked
	if q.Has("list") || q.Has("question") {              // a question has no draft that could be opened
		var list []arguments.Option // of one that there is not any more, nothing
		if n, bad := strconv.Atoi(q.Get("list")); bad == nil && n > 0 && n <= len(lists) {
			list = lists[n-1]
		}
		reply(w, search(list, q.Get("text")))
		return
	}
	if kind == "prompt" || kind == "template" {
		known := completes(i.current())
		for n := range drawn.Fields {
			drawn.Fields[n].Complete = known
		}
	}
	f := form{Name: visible.Line(e.Name, visible.Name), Title: visible.Line(cmp.Or(e.title, e.Label), visible.Name), Description: visible.Text(e.about, 64<<10),
		Marks: e.Marks, Wrong: e.Wrong, Form: &drawn, Sent: indented(e.raw), Tokens: weigh(kind, e), Draft: i.history.open(kind, e.Name)}
	if kind == "tool" {
		f.Findings, f.View = i.findings(e, f.Sent), e.View
	}
	if f.Title == f.Name {
		f.Title = ""
	}
	if err != nil {
		f.Form = nil
		f.Wrong = strings.TrimPrefix(f.Wrong+"; "+visible.Line(err.Error(), visible.Sentence), "; ")
	}
	if len(f.Sent) > maxSent {
		f.Sent = f.Sent[:maxSent] + "\n…"
	}
	reply(w, f)
}

// check holds a value against the schema of a tool or the like, or of a question.
// Of a template it says what URI comes of it.
func (i pages) check(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Kind, Tool string
		Question   int64
		Value      string
		Chosen     map[string]int // variants of unions, by their places
	}
	if !body(w, r, &q) {
		return
	}
	var schema json.RawMessage
	uri := ""
	if q.Question != 0 {
		schema, _ = i.asked.schema(q.Question)
	} else {
		e, err := i.find(r.Context(), cmp.Or(q.Kind, "tool"), q.Tool)
		if err != nil {
			refuse(w, http.StatusNotFound, err)
			return
		}
		if schema = e.input; q.Kind == "template" {
			uri = expanded(e.Name, []byte(q.Value))
		}
	}
	issues := i.schemas.narrowed(schema, json.RawMessage(q.Value), i.schemas.check(schema, []byte(q.Value)), q.Chosen)
	reply(w, map[string]any{"issues": issues, "uri": uri, "shown": visible.Line(uri, visible.Sentence)})
}

// startCall calls a tool, gets a prompt or reads a resource, with the values of its
// form. Invalid values are sent if that is intended; otherwise the errors are
// returned.
func (i pages) startCall(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Kind, Tool, Arguments string
		Anyway                bool
		Chosen                map[string]int
	}
	if !body(w, r, &q) {
		return
	}
	q.Kind = cmp.Or(q.Kind, "tool")
	e, err := i.find(r.Context(), q.Kind, q.Tool) // what is not listed has no schema; the server knows more
	issues := i.schemas.check(e.input, []byte(q.Arguments))
	if issues = i.schemas.narrowed(e.input, json.RawMessage(q.Arguments), issues, q.Chosen); len(issues) > 0 && !q.Anyway {
		reply(w, map[string]any{"issues": issues})
		return
	}
	method := protocol.MethodResourcesRead
	switch q.Kind {
	case "tool":
		method, err = protocol.MethodToolsCall, nil
	case "prompt":
		method, err = protocol.MethodPromptsGet, nil
	case "event":
		method, err = wire.MethodEventsStream, nil
	case "template":
		if q.Tool = expanded(q.Tool, []byte(q.Arguments)); q.Tool == "" && err == nil {
			err = errors.New("the values do not expand to a URI")
		}
		q.Arguments = "{}"
	}
	var id int64
	if err == nil {
		id, err = i.calls.start(i.Inspector, method, q.Tool, q.Arguments, e.task)
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted) // the call continues without a listener
	_ = json.NewEncoder(w).Encode(map[string]any{"issues": issues, "call": i.early(r.Context(), id)})
}

// early returns a call as it is when there are news of it, or soon.
func (i pages) early(ctx context.Context, id int64) call {
	late := time.After(soon)
	for {
		_, changed := i.pulse.now()
		one, _ := i.shown(id)
		if one.State != "running" || one.Progress != nil {
			return one
		}
		select {
		case <-changed:
		case <-late:
			return one
		case <-ctx.Done():
			return one
		}
	}
}

// shown returns a call with the one before, if their results can be compared.
func (i pages) shown(id int64) (call, bool) {
	one, ok := i.calls.get(id)
	if one.Result != "" {
		one.Before = i.calls.before(one).ID
	}
	return one, ok
}

// found returns the call of a request; false means that it was refused.
func (i pages) found(w http.ResponseWriter, r *http.Request) (call, bool) {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64) // what is not a number is not a call
	one, ok := i.shown(id)
	if !ok {
		refuse(w, http.StatusNotFound, errors.New("this call is no longer kept"))
	}
	return one, ok
}

func (i pages) showCall(w http.ResponseWriter, r *http.Request) {
	if one, ok := i.found(w, r); ok {
		reply(w, one)
	}
}

func (i pages) cancelCall(w http.ResponseWriter, r *http.Request) {
	if one, ok := i.found(w, r); ok {
		one.cancel()
		reply(w, struct{}{})
	}
}

// pageRows is how many rows of the traffic the page gets at a time.
const pageRows = 60

func (i pages) traffic(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	before, _ := strconv.ParseInt(q.Get("before"), 10, 64) // 0 is the newest
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)     // the same
	query := record.Query{Before: before, From: from, Text: q.Get("text"), Limit: pageRows}
	if kinds := q.Get("kinds"); kinds != "" {
		query.Kinds = strings.Split(kinds, ",")
	}
	page := i.store.Rows(query)
	for n := range page.Rows {
		if r := &page.Rows[n]; r.Kind == "http" {
			i.mask.cover(&r.Name)
		}
	}
	reply(w, page)
}

// maxShown is how much of a message the page shows, in bytes.
const maxShown = 1 << 20

func (i pages) message(w http.ResponseWriter, r *http.Request) {
	seq, _ := strconv.ParseInt(r.PathValue("seq"), 10, 64) // what is not a number is not a row
	row, request, answer, ok := i.store.Texts(seq)
	if !ok {
		refuse(w, http.StatusNotFound, errors.New("this message is no longer kept"))
		return
	}
	shown := r.URL.Query().Get("secrets") == "shown"
	exchanges := i.store.Exchanges(seq, shown)
	for n := range exchanges {
		if !shown {
			i.mask.exchange(&exchanges[n])
		}
	}
	reply(w, map[string]any{"row": row, "texts": []string{clip(request), clip(answer)}, "exchanges": exchanges})
}

func clip(text []byte) string {
	if len(text) > maxShown {
		return string(text[:maxShown]) + "…"
	}
	return string(text)
}

func (i pages) answerQuestion(w http.ResponseWriter, r *http.Request) {
	var a answer
	if !body(w, r, &a) {
		return
	}
	switch a.Action {
	case "accept", "decline", "cancel":
	default:
		refuse(w, http.StatusBadRequest, errors.New("the action is accept, decline or cancel"))
		return
	}
	for _, one := range i.asked.waiting() { // what a person has answered is nothing else's business
		if one.ID == a.ID && one.Kind == "form" && a.Action == "accept" {
			i.mask.add(formSecrets(one.schema, json.RawMessage(a.Content))...)
		}
	}
	if err := i.asked.reply(a); err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, errNobody) {
			status = http.StatusNotFound
		}
		refuse(w, status, err)
		return
	}
	reply(w, struct{}{})
}

// formSecrets are the secrets of an answer to a form: its texts, and its numbers except
// short ones, which occur in unrelated texts. Short ones count as well if a name or the
// schema marks them as secret.
func formSecrets(schema, content json.RawMessage) []string {
	_, list := unveil(schema, content, "")
	var read any
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if d.Decode(&read) != nil {
		return leaves(list, content)
	}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			list = append(list, v)
		case json.Number:
			if !isShortNumber(v.String()) {
				list = append(list, v.String())
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case map[string]any:
			for name, inner := range v {
				if record.SecretName(name) {
					list = walked(list, inner)
				} else {
					walk(inner)
				}
			}
		}
	}
	walk(read)
	return list
}

// showVerdict answers with the verdict. as is the name that the server has in the
// configuration of a host.
func (i pages) showVerdict(w http.ResponseWriter, r *http.Request) {
	reply(w, i.verdict(r.URL.Query().Get("as")))
}

// showView reads the view of a tool.
func (i pages) showView(w http.ResponseWriter, r *http.Request) {
	e, err := i.find(r.Context(), "tool", r.URL.Query().Get("tool"))
	uri := readUI(e.raw).View
	to := i.current()
	switch {
	case err == nil && uri == "":
		err = errNoView
	case err == nil && to == nil:
		err = errNoConnection
	}
	var v *shownView
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), viewTime)
		defer cancel()
		var raw json.RawMessage
		if err = to.Request(ctx, protocol.MethodResourcesRead, map[string]any{"uri": uri}, &raw); err == nil {
			v, err = i.readView(uri, raw)
		}
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	v.Tool = e.raw
	reply(w, v)
}

// viewRequest makes a request of a view. It ends with the view.
func (i pages) viewRequest(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params struct {
			Name      string          `json:"name"`
			URI       string          `json:"uri"`
			Arguments json.RawMessage `json:"arguments"`
		}
	}
	if !body(w, r, &q) {
		return
	}
	to := i.current()
	if to == nil {
		refuse(w, http.StatusConflict, errNoConnection)
		return
	}
	defer i.viewRequests.Add(-1)
	if i.viewRequests.Add(1) > maxViewRequests {
		reply(w, viewAnswer{Error: &viewError{Code: codeDenied, Message: "too many requests of views at once (limit 8)"}})
		return
	}
	var raw json.RawMessage
	var err error
	switch q.Method {
	case protocol.MethodToolsCall:
		e, missing := i.find(r.Context(), "tool", q.Params.Name)
		if may := readUI(e.raw).Visibility; missing == nil && may != nil && !slices.Contains(may, "app") {
			reply(w, viewAnswer{Error: &viewError{Code: codeDenied, Message: fmt.Sprintf("the tool %s is not for views: its visibility does not have app", e.Label)}})
			return
		}
		if len(q.Params.Arguments) == 0 {
			q.Params.Arguments = json.RawMessage("{}")
		}
		var result *client.CallToolResult
		ctx := context.WithValue(r.Context(), askerKey{}, asker{0, visible.Line(q.Params.Name, visible.Name) + " of the view"})
		if result, err = to.Call(ctx, q.Params.Name, q.Params.Arguments); err == nil {
			raw = result.Raw
		}
	case protocol.MethodResourcesRead:
		err = to.Request(r.Context(), q.Method, map[string]any{"uri": q.Params.URI}, &raw)
	default:
		refuse(w, http.StatusBadRequest, fmt.Errorf("a view makes no request %q", visible.Line(q.Method, visible.Name)))
		return
	}
	own, _ := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		reply(w, viewAnswer{Result: raw})
	case own != nil && own.Result != nil: // what is wrong with it is the view's business
		reply(w, viewAnswer{Result: own.Result})
	default:
		failed := &viewError{Code: codeDenied, Message: visible.Text(err.Error(), visible.Sentence)}
		if own != nil && own.Code != 0 {
			failed.Code, failed.Data = own.Code, own.Data
		}
		reply(w, viewAnswer{Error: failed})
	}
}

// viewMessages takes what a view and the page have said to each other, for the traffic.
func (i pages) viewMessages(w http.ResponseWriter, r *http.Request) {
	var q struct {
		View int64
		List []struct {
			At   int64 // milliseconds since 1970
			From string
			Text string
		}
	}
	if !body(w, r, &q) {
		return
	}
	i.mu.Lock() // Close ends the store after it had it
	defer i.mu.Unlock()
	for _, m := range q.List[:min(len(q.List), maxReported)] {
		dir := recording.In
		if m.From == "view" {
			dir = recording.Out
		}
		if i.ctx.Err() == nil {
			i.store.Add(recording.Entry{At: time.UnixMilli(m.At), Dir: dir, Conn: record.ViewConn + strconv.FormatInt(q.View, 10), Text: []byte(m.Text)})
		}
	}
	reply(w, struct{}{})
}

// replay makes a call of the recording, which is the first of all inspectors, again.
func (i pages) replay(w http.ResponseWriter, r *http.Request) {
	var q struct{ Seq int64 }
	if !body(w, r, &q) {
		return
	}
	method, about, arguments, _, err := i.recorded(q.Seq)
	var id int64
	if err == nil {
		e, _ := i.find(r.Context(), "tool", about) // what is not listed is called nevertheless
		id, err = i.calls.start(i.Inspector, method, about, arguments, e.task && method == protocol.MethodToolsCall)
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, map[string]any{"call": i.early(r.Context(), id)})
}

// recorded is a call of the recording with its result.
func (i pages) recorded(seq int64) (method, about, arguments, result string, err error) {
	if len(i.all) < 2 || i.all[0] == i.Inspector || i.all[0].options.Transport != nil {
		return "", "", "", "", errors.New("there is no recording")
	}
	row, request, answer, ok := i.all[0].store.Texts(seq)
	if !ok || row.From != "client" || row.Kind != "request" {
		return "", "", "", "", errNoReplay
	}
	name := "name"
	switch row.Method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
	case protocol.MethodResourcesRead:
		name = "uri"
	default:
		return "", "", "", "", errNoReplay
	}
	if err := jsonx.Unmarshal(jsonx.Lookup(request, []string{"params", name}), &about); err != nil {
		return "", "", "", "", fmt.Errorf("the recorded request has no %s", name)
	}
	if arguments = string(jsonx.Lookup(request, []string{"params", "arguments"})); arguments == "" {
		arguments = "{}"
	}
	return row.Method, about, arguments, indented(jsonx.Lookup(answer, []string{"result"})), nil
}

// against compares the result of a call with that of a recorded one.
func (i pages) against(w http.ResponseWriter, r *http.Request) {
	one, ok := i.found(w, r)
	if !ok {
		return
	}
	var q struct{ Seq int64 }
	if !body(w, r, &q) {
		return
	}
	_, _, _, result, err := i.recorded(q.Seq)
	if err == nil && (result == "" || one.Result == "") {
		err = errors.New("there are no two results to compare")
	}
	var lines []string
	if err == nil {
		lines, err = compared(result, one.Result)
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, map[string]any{"lines": lines})
}

// request makes one of the requests of the page other than calls.
func (i pages) request(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params struct {
			Level    string
			TaskID   string
			Ref      struct{ Type, Name, URI string }
			Argument struct{ Name, Value string }
			Context  struct{ Arguments map[string]string }
		}
	}
	if !body(w, r, &q) {
		return
	}
	p := q.Params
	to := i.current()
	if to == nil {
		refuse(w, http.StatusConflict, errNoConnection)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), completionTime)
	defer cancel()
	var result any = struct{}{}
	var err error
	switch q.Method {
	case protocol.MethodPing:
		err = to.Ping(ctx)
	case protocol.MethodSetLevel:
		var level protocol.Level
		if err = level.UnmarshalText([]byte(p.Level)); err == nil {
			err = to.SetLevel(ctx, level)
		}
	case protocol.MethodComplete:
		c := client.Completion{Prompt: p.Ref.Name, Template: p.Ref.URI, Argument: p.Argument.Name, Value: p.Argument.Value, Context: p.Context.Arguments}
		result, err = i.complete(ctx, to, c)
	case protocol.MethodTasksList:
		result, err = taskList(ctx, to)
	case protocol.MethodTasksCancel:
		err = to.CancelTask(ctx, p.TaskID)
	default:
		refuse(w, http.StatusBadRequest, fmt.Errorf("the page makes no request %q", visible.Line(q.Method, visible.Name)))
		return
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, result)
}

// complete asks what an argument can be. A value that is too long to be shown is
// left out.
func (i pages) complete(ctx context.Context, to *client.Client, c client.Completion) (*suggestions, error) {
	if i.completions.Add(1) > maxCompletions {
		i.completions.Add(-1)
		return nil, errors.New("too many completions at once (limit 8)")
	}
	defer i.completions.Add(-1)
	result, err := to.Complete(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &suggestions{Values: []option{}, More: result.HasMore || result.Total > len(result.Values)}
	for _, value := range result.Values {
		if len(value) > maxValue || len(s.Values) == maxValues {
			s.More = true
			continue
		}
		s.Values = append(s.Values, option{value, visible.Line(value, visible.Name)})
	}
	return s, nil
}
