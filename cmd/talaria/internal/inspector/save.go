package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of a saved recording: its size in bytes, of which the newest messages remain, and the
// time to mask them. Messages after that time are saved without their content.
const (
	maxSaved = 8 << 20
	saveTime = 10 * time.Second
)

// save answers with the traffic as a recording, masked as a report is. A message that takes too
// long to be masked is saved without its content.
func (i exporter) save(w http.ResponseWriter, _ *http.Request) {
	e := &exported{Inspector: i.Inspector, share: true}
	entries := i.store.Entries(maxSaved)
	if len(entries) == 0 {
		refuse(w, http.StatusConflict, errors.New("there are no messages to save"))
		return
	}
	for _, entry := range entries { // before anything is masked
		e.learn(string(entry.Text))
	}
	var text []byte
	began, bare := time.Now(), 0
	for _, entry := range entries {
		if len(entry.Text) > 0 {
			hidden, err := "", errTooLong
			if time.Since(began) < saveTime {
				hidden, err = i.mask.hide(string(entry.Text))
			}
			if errors.Is(err, errTooLong) {
				bare++
				hidden, err = i.mask.hide(withoutContent(entry.Text))
			}
			entry.Text, e.err = []byte(inPlace(hidden)), err
		}
		if e.err == nil {
			text, e.err = entry.Append(text)
		}
		if e.err != nil {
			refuse(w, http.StatusConflict, e.err)
			return
		}
	}
	reply(w, map[string]any{"text": string(text), "name": "talaria-" + time.Now().Format("20060102-150405") + ".jsonl", "bare": bare})
}

// maxName is the length of an ID or a method that is saved without the content of its message.
const maxName = 256

// withoutContent returns the members of a message that identify it, and its length; for other text only the length.
func withoutContent(text []byte) string {
	note := fmt.Sprintf("%d bytes, which take too long to be masked", len(text))
	member := func(name string) json.RawMessage {
		if v := jsonx.Lookup(text, []string{name}); len(v) <= maxName {
			return v
		}
		return nil
	}
	m := map[string]any{"jsonrpc": "2.0", "left": note}
	id, method := member("id"), member("method")
	switch {
	case id == nil && method == nil:
		return note
	case method != nil:
		m["method"] = method
	case jsonx.Lookup(text, []string{"error"}) != nil:
		m["error"] = map[string]any{"code": 0, "message": note}
	default:
		m["result"] = struct{}{}
	}
	if id != nil {
		m["id"] = id
	}
	out, err := json.Marshal(m)
	if err != nil { // it is not JSON
		return note
	}
	return string(out)
}

// errNoReplay refuses every other row.
var errNoReplay = errors.New("only calls of tools, prompts and resources can be replayed")

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
