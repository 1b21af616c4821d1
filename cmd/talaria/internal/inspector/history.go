package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/statedir"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of what is kept from one start to the next, in bytes except for
// counts.
const (
	maxKeptCalls  = 100
	maxKeptDrafts = 100
	maxKeptText   = 64 << 10 // of arguments, and of a draft
	maxKeptResult = 128 << 10
	maxKeptAll    = 1 << 20 // of all calls, and of all drafts
	maxKeptFile   = 8 << 20 // that is read
)

// saveEvery is how often the file is written at most.
const saveEvery = 200 * time.Millisecond

// kept is the file of a history. It has no secrets: what a schema calls one was taken
// out, and what else is known as one is masked.
type kept struct {
	Kind   string         `json:"kind,omitempty"` // of Tool: tool, prompt, resource or template
	Tool   string         `json:"tool,omitempty"` // that was chosen
	Drafts []draft        `json:"drafts,omitempty"`
	Panes  map[string]int `json:"panes,omitempty"`
	Calls  []call         `json:"calls,omitempty"` // the oldest first
}

// draft is what was typed into a form, the last one of its tool.
type draft struct {
	Kind      string `json:"kind"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// history is what outlives the inspector: the drafts, the chosen tool, and through
// calls those. mu guards all but the first four.
type history struct {
	path  string // "" keeps nothing
	calls *calls
	beat  func()        // when what the page shows of it has changed
	dirty chan struct{} // has one if there is something to write

	mu      sync.Mutex
	kind    string
	tool    string
	panes   map[string]int
	drafts  []draft // the oldest first
	problem string  // why it is not kept
}

// read reads the saved history. Unreadable parts are ignored, and will be
// overwritten.
func (h *history) read() {
	h.dirty = make(chan struct{}, 1)
	if h.path == "" {
		return
	}
	k, err := readKept(h.path)
	if err != nil {
		h.problem = "earlier calls were not restored: " + visible.Line(err.Error(), visible.Sentence)
		return
	}
	h.kind, h.tool, h.drafts = k.Kind, k.Tool, k.Drafts
	h.resize(k.Panes)
	h.calls.restore(k.Calls)
}

func readKept(path string) (k kept, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxKeptFile))
	if err != nil {
		return k, err
	}
	if err := jsonx.Unmarshal(text, &k); err != nil {
		return kept{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// note says that there is something to write.
func (h *history) note() {
	signal(h.dirty)
}

// run writes what there is to write, at once but not too often, until done.
func (h *history) run(done <-chan struct{}) {
	for {
		select {
		case <-h.dirty:
			h.save()
		case <-done:
			return
		}
		select {
		case <-time.After(saveEvery):
		case <-done:
			return
		}
	}
}

// save writes the file.
func (h *history) save() {
	if h.path == "" {
		return
	}
	k := kept{Calls: h.calls.kept()}
	h.mu.Lock()
	k.Kind, k.Tool, k.Drafts, k.Panes = h.kind, h.tool, slices.Clone(h.drafts), maps.Clone(h.panes)
	h.mu.Unlock()
	text, err := jsonx.Plain(k)
	if err == nil {
		err = statedir.Replace(h.path, text)
	}
	problem := ""
	if err != nil {
		problem = "calls are not kept: " + visible.Line(err.Error(), visible.Sentence)
	}
	h.mu.Lock()
	same := h.problem == problem
	h.problem = problem
	h.mu.Unlock()
	if !same {
		h.beat()
	}
}

// opened is a form that is open.
type opened struct {
	Kind  string         `json:"kind,omitempty"`
	Tool  string         `json:"tool,omitempty"`
	Panes map[string]int `json:"panes,omitempty"` // their sizes, as the user has set them
}

// resize takes the sizes of panes. Those of others are left out.
func (h *history) resize(panes map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range []string{"nav", "form", "traffic"} {
		if size := panes[name]; size > 0 && size < 10_000 {
			if h.panes == nil {
				h.panes = map[string]int{}
			}
			h.panes[name] = size
		}
	}
}

// last returns the form that was open last, and why nothing is kept, "" if it is.
func (h *history) last() (opened, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return opened{h.kind, h.tool, maps.Clone(h.panes)}, h.problem
}

// open keeps that a form is open, and returns what was typed into it.
func (h *history) open(kind, tool string) (typed string) {
	h.set(kind, tool, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.drafts {
		if d.Kind == kind && d.Tool == tool {
			typed = d.Arguments
		}
	}
	return typed
}

// set keeps the chosen tool and, unless it is nil, what was typed into its form.
func (h *history) set(kind, tool string, typed *string) {
	h.mu.Lock()
	h.kind, h.tool = kind, tool
	if typed != nil {
		h.drafts = slices.DeleteFunc(h.drafts, func(d draft) bool { return d.Kind == kind && d.Tool == tool })
		if *typed != "" && len(*typed) <= maxKeptText {
			h.drafts = append(h.drafts, draft{kind, tool, *typed})
		}
		size := 0
		for _, d := range h.drafts {
			size += len(d.Arguments)
		}
		for len(h.drafts) > maxKeptDrafts || size > maxKeptAll {
			size -= len(h.drafts[0].Arguments)
			h.drafts = h.drafts[1:]
		}
	}
	h.mu.Unlock()
	h.note()
}

// safe returns the storable form of a call that begins: without values that the tool's
// schema marks as secret, and with all other known secrets masked. Values that are too
// long are left out, and so are the arguments of a tool whose schema is not known.
func safe(i *Inspector, one *call) *call {
	out := &call{Method: one.Method, Tool: one.Tool, Label: one.Label, State: "running", At: time.Now()}
	arguments, _ := unveiled(i, one.Method, one.Tool, one.Arguments, "")
	if len(arguments) <= maxKeptText {
		out.Arguments, _ = i.mask.hide(arguments) // nothing, if it cannot be masked
	}
	out.Partial = out.Arguments != one.Arguments
	return out
}

// safely is what may be kept of a call that has ended, and began as safe says.
func safely(i *Inspector, one call) *call {
	out := *one.safe
	out.State, out.Took, out.Checked = one.State, one.Took, one.Checked
	hidden := func(text string) string {
		if len(text) > maxKeptResult || out.Arguments == "" { // as it may have unknown secrets
			out.Cut = true
			return ""
		}
		text, err := i.mask.hide(text)
		out.Cut = out.Cut || err != nil
		return text
	}
	out.Result = hidden(one.Result)
	if one.Error != nil {
		out.Error = &callError{Code: one.Error.Code, Message: hidden(one.Error.Message), Data: hidden(one.Error.Data)}
	}
	return &out
}

// unveiled returns the arguments of a call without the secrets that the schema of its
// tool names, and adds those to the mask; false means that they are unknown.
func unveiled(i *Inspector, method, tool, arguments, mark string) (string, bool) {
	if method != protocol.MethodToolsCall && method != wire.MethodEventsStream {
		return arguments, json.Valid([]byte(arguments))
	}
	input, ok := i.inputOf(method, tool)
	if !ok {
		return "", false
	}
	text, found := unveil(input, json.RawMessage(arguments), mark)
	i.mask.add(found...)
	return string(text), true
}

// past answers the page about what was.
type past struct{ *Inspector }

// keepDraft keeps the chosen tool and what is typed into its form. Text that is not
// JSON is not kept, nor the form of an unknown tool: a secret in it could not be
// found.
func (i past) keepDraft(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Kind, Tool string
		Arguments  *string
		Panes      map[string]int
	}
	if !body(w, r, &q) {
		return
	}
	if q.Panes != nil {
		i.history.resize(q.Panes)
		i.history.note()
		reply(w, struct{}{})
		return
	}
	if q.Arguments != nil {
		text, method := *q.Arguments, ""
		switch q.Kind {
		case "tool":
			method = protocol.MethodToolsCall
		case "event":
			method = wire.MethodEventsStream
		}
		text, _ = unveiled(i.Inspector, method, q.Tool, text, "")
		text, _ = i.mask.hide(text) // nothing, if it cannot be masked
		q.Arguments = &text
	}
	i.history.set(q.Kind, q.Tool, q.Arguments)
	reply(w, struct{}{})
}

// showDiff compares the result of a call with that of the call of the tool before, line
// by line: the first character of each says whether it went (-), came (+) or stayed.
func (i past) showDiff(w http.ResponseWriter, r *http.Request) {
	one, ok := pages{Inspector: i.Inspector}.found(w, r)
	if !ok {
		return
	}
	old := i.calls.before(one)
	if old.ID == 0 || one.Result == "" {
		refuse(w, http.StatusNotFound, errors.New("there is no earlier result to compare with"))
		return
	}
	lines, err := compared(old.Result, one.Result)
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, map[string]any{"before": old.ID, "lines": lines, "arguments": old.Arguments != one.Arguments})
}
