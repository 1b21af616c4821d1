package inspector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// exported is a call in a form for another person, or for a machine.
type exported struct {
	*Inspector
	call      call
	arguments string // with the secrets, or with marks in their place
	checked   bool   // the arguments fit their schema
	revision  protocol.Revision
	pinned    bool  // the user has chosen the revision
	share     bool  // without secrets
	err       error // why they cannot be masked; the first
	url       string
	header    http.Header
}

// exporter answers the page with calls to be copied.
type exporter struct{ *Inspector }

// export writes a call as a command, curl, a Go test or a report. Of the two kinds
// `share` has no secret in it, and thus cannot be replayed where there were some; `raw`
// has them.
func (i exporter) export(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	id, _ := strconv.ParseInt(q.Get("call"), 10, 64) // what is not a number is not a call
	one, ok := i.calls.get(id)
	if !ok {
		refuse(w, http.StatusNotFound, errors.New("this call is no longer kept"))
		return
	}
	text, err := i.exported(one, q.Get("as"), q.Get("kind"))
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, map[string]string{"text": text})
}

func (i exporter) exported(one call, as, kind string) (string, error) {
	e := &exported{Inspector: i.Inspector, call: one, share: kind == "share", arguments: one.Arguments, checked: true, revision: protocol.Latest}
	e.url, e.header = i.reach.get()
	if c := i.current(); c != nil {
		e.revision = c.Revision()
	}
	i.mu.Lock()
	e.pinned = i.Inspector.revision != 0
	i.mu.Unlock()
	if input, ok := i.inputOf(one.Method, one.Tool); ok && one.Method == protocol.MethodToolsCall {
		e.checked = len(i.schemas.check(input, []byte(one.Arguments))) == 0
	}
	switch {
	case kind != "share" && kind != "raw":
		return "", errors.New("the kind is share or raw")
	case one.Method == wire.MethodEventsStream && (as == "curl" || as == "go"):
		return "", errors.New("a watch is copied as result, command or report")
	case kind == "raw" && one.Partial:
		return "", errors.New("the secrets of this call were not kept")
	case kind == "share":
		marked, ok := unveiled(i.Inspector, one.Method, one.Tool, one.Arguments, strconv.Quote(masked))
		if !ok {
			return "", errors.New("the tool's schema is not known, and so it is not known what is secret: connect first")
		}
		e.arguments = marked
	}
	var text string
	var err error
	switch as {
	case "result":
		text = e.hidden(one.Result)
	case "command":
		text = e.command()
	case "curl":
		text, err = e.curl()
	case "go":
		text = e.goTest()
	case "report":
		text = e.report()
	default:
		err = errors.New("it is written as result, command, curl, go or report")
	}
	if err == nil {
		err = e.err
	}
	if err == nil && (as == "command" || as == "curl") && strings.ContainsFunc(text, pressed) {
		err = errors.New("there are control characters in it, which a terminal would take for keys that are pressed")
	}
	return text, err
}

// hidden is a part of what is shared, without secrets. It is masked before it is quoted
// or fenced: a server chooses some of the secrets, and could else have quotes masked.
func (e *exported) hidden(text string) string {
	if !e.share {
		return text
	}
	out, err := e.mask.hide(text)
	if err != nil && e.err == nil {
		e.err = err
	}
	return inPlace(out) // after it, as a secret may have such a query in it
}

// pressed reports whether a terminal takes what is pasted into it for a key, which
// may end a command within its quotes.
func pressed(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }

// command is the call as a command line for sh.
func (e *exported) command() string {
	verb := map[string]string{protocol.MethodToolsCall: "call", protocol.MethodPromptsGet: "prompt", protocol.MethodResourcesRead: "read", wire.MethodEventsStream: "events"}[e.call.Method]
	words := append([]string{"talaria", verb}, e.options.Words...)
	target := words[len(words)-1]
	words = words[:len(words)-1]
	if !e.checked {
		words = append(words, "--no-check")
	}
	if e.pinned {
		words = append(words, "--revision", e.revision.String())
	}
	words = append(words, "--", target, e.call.Tool)
	if verb != "read" {
		words = append(words, compact(e.arguments))
	}
	if e.share {
		inWords(words)
	}
	for i, word := range words {
		words[i] = quoteShell(e.hidden(word))
	}
	return strings.Join(words, " ")
}

// params are those of the request.
func (e *exported) params() map[string]any {
	switch e.call.Method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
		return map[string]any{"name": e.call.Tool, "arguments": json.RawMessage(e.arguments)}
	}
	return map[string]any{"uri": e.call.Tool}
}

// curl is the call as a script for sh: one request of a modern revision, and with a
// legacy one those that open a session, too.
func (e *exported) curl() (string, error) {
	if e.url == "" {
		return "", errors.New("curl is for servers over HTTP, to which there was a request")
	}
	request := func(headers []string, body map[string]any) string {
		text, _ := json.Marshal(body) // texts and JSON that was read before
		list := append([]string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}, headers...)
		for _, name := range slices.Sorted(maps.Keys(e.header)) {
			for _, value := range e.header[name] {
				if e.share && record.SecretName(name) {
					value = masked
				}
				list = append(list, name+": "+value)
			}
		}
		var b strings.Builder
		b.WriteString(quoteShell(e.hidden(e.url)))
		for _, line := range list {
			if line == sessionLine {
				b.WriteString(" \\\n  -H \"" + line + `"`)
				continue
			}
			b.WriteString(" \\\n  -H " + quoteShell(e.hidden(line)))
		}
		b.WriteString(" \\\n  -d " + quoteShell(e.hidden(string(text))))
		return b.String()
	}
	info := map[string]any{"name": "curl", "version": "1"}
	params := e.params()
	call := map[string]any{"jsonrpc": "2.0", "id": 2, "method": e.call.Method, "params": params}
	version := "MCP-Protocol-Version: " + e.revision.String()
	if e.revision.Has(protocol.FeaturePerRequestMeta) {
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": e.revision.String(),
			"io.modelcontextprotocol/clientInfo": info, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
		return "curl -sS " + request(append([]string{version, "Mcp-Method: " + e.call.Method, "Mcp-Name: " + wire.EncodeHeaderValue(e.hidden(e.call.Tool))}, e.mirrored()...), call) + "\n", nil
	}
	own := []string{sessionLine}
	if e.revision.Has(protocol.FeatureVersionHeader) {
		own = append(own, version)
	}
	begin := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize",
		"params": map[string]any{"protocolVersion": e.revision.String(), "capabilities": map[string]any{}, "clientInfo": info}}
	return "session=$(curl -sS -D - -o /dev/null " + request(nil, begin) + " |\n  tr -d '\\r' | awk 'tolower($1) == \"mcp-session-id:\" { print $2 }')\n" +
		"curl -sS " + request(own, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n" +
		"curl -sS " + request(own, call) + "\n", nil
}

// sessionLine is the header of a session, which the shell fills in; curl leaves it out
// if there is none.
const sessionLine = "Mcp-Session-Id: $session"

// mirrored are the headers that repeat arguments, as the schema wants it. They are masked
// before they are encoded: in base64 no secret is found.
func (e *exported) mirrored() (list []string) {
	var s struct {
		Properties map[string]struct {
			Header string `json:"x-mcp-header"`
		} `json:"properties"`
	}
	var given map[string]json.RawMessage
	input, _ := e.inputOf(e.call.Method, e.call.Tool)
	_, _ = json.Unmarshal(input, &s), json.Unmarshal([]byte(e.arguments), &given) // without them nothing is repeated
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if header := s.Properties[name].Header; header != "" {
			text := string(given[name])
			_ = json.Unmarshal(given[name], &text) // what is not a text is as it is written
			list = append(list, "Mcp-Param-"+header+": "+wire.EncodeHeaderValue(e.hidden(text)))
		}
	}
	return list
}

// goTest is the call as a test of the server's own package.
func (e *exported) goTest() string {
	var b strings.Builder
	literal := func(text string) string {
		if text = indented([]byte(text)); strconv.CanBackquote(strings.ReplaceAll(text, "\n", "")) && visible.Text(text, 0) == text {
			return "`" + strings.ReplaceAll(text, "\n", "\n\t") + "`"
		}
		return strconv.Quote(text)
	}
	imports := []string{`"testing"`, "", `"github.com/talaria-go/mcp/mcptest"`}
	if e.call.Method == protocol.MethodToolsCall {
		imports = append([]string{`"encoding/json"`}, imports...)
	}
	tool, arguments := e.hidden(e.call.Tool), e.hidden(e.arguments)
	b.WriteString("package server // that of yours\n\nimport (\n\t" + strings.ReplaceAll(strings.Join(imports, "\n\t"), "\t\n", "\n") + "\n)\n\n")
	fmt.Fprintf(&b, "// newServer is your function that makes the *mcp.Server.\nfunc Test%s(t *testing.T) {\n\tc := mcptest.New(t, newServer())\n", goName(tool))
	switch e.call.Method {
	case protocol.MethodToolsCall:
		fmt.Fprintf(&b, "\tresult := c.Call(%q, json.RawMessage(%s))\n", tool, literal(arguments))
		if e.call.State == "failed" {
			b.WriteString("\tif !result.IsError {\n\t\tt.Errorf(\"it did not fail: %s\", result.Text())\n\t}\n")
		} else {
			b.WriteString("\tif result.IsError {\n\t\tt.Fatal(result.Text())\n\t}\n")
		}
		if text, ok := textOf(e.hidden(e.call.Result)); ok {
			fmt.Fprintf(&b, "\tif got, want := result.Text(), %q; got != want {\n\t\tt.Errorf(\"got %%s, want %%s\", got, want)\n\t}\n", text)
		}
	case protocol.MethodPromptsGet:
		var given map[string]string
		_ = json.Unmarshal([]byte(arguments), &given) // what has other values is not a prompt's
		fmt.Fprintf(&b, "\tfor _, message := range c.GetPrompt(%q, %#v).Messages {\n\t\tt.Log(message.Role, message.Content)\n\t}\n", tool, given)
	default:
		fmt.Fprintf(&b, "\tfor _, item := range c.Read(%q) {\n\t\tt.Log(item.URI, item.Text)\n\t}\n", tool)
	}
	b.WriteString("}\n")
	return b.String()
}

// maxWanted is how long a text is at most that a test compares, in bytes.
const maxWanted = 2 << 10

// textOf is the text of a result that has no other content.
func textOf(result string) (string, bool) {
	var r struct{ Content []struct{ Type, Text string } }
	if jsonx.Unmarshal([]byte(result), &r) != nil || len(r.Content) == 0 {
		return "", false
	}
	text := ""
	for _, item := range r.Content {
		if item.Type != "text" {
			return "", false
		}
		text += item.Text
	}
	return text, len(text) <= maxWanted
}

// goName makes a part of the name of a Go function.
func goName(text string) string {
	var b strings.Builder
	up := true
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return "_"[:min(1, max(0, 1-b.Len()))] + b.String()
}

func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

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

// report is the call as one page of Markdown.
func (e *exported) report() string {
	unmarked := func(text string) string { return markup.Replace(e.hidden(text)) }
	var b strings.Builder
	s := pages{Inspector: e.Inspector}.snapshot()
	c := e.call
	rows := e.during()
	for _, r := range rows { // before anything is masked
		_, request, answer, _ := e.store.Texts(r.Seq)
		e.learn(string(request))
		e.learn(string(answer))
	}
	fmt.Fprintf(&b, "# %s: %s\n\n", unmarked(c.Label), map[string]string{"done": "done", "failed": "the tool failed", "invalid": "invalid result", "error": "error", "cancelled": "cancelled", "running": "running"}[c.State])
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", name, value)
		}
	}
	if s.Server != nil {
		row("server", unmarked(s.Server.Name+" "+s.Server.Version))
	}
	row("target", "`"+strings.ReplaceAll(e.hidden(s.Target), "`", "'")+"`")
	row("revision", s.Revision)
	row("method", "`"+c.Method+"`")
	row("at", c.At.UTC().Format(time.RFC3339))
	if c.Took > 0 {
		row("took", fmt.Sprintf("%.1f ms", c.Took))
	}
	row("inspector", "talaria "+s.Program)
	if e.share {
		row("secrets", "masked as "+masked+"; where there were some, this cannot be replayed as it is")
	}
	part := func(title, lang, text string) {
		if text = e.cut(text); text == "" {
			return
		}
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "\n%s\n\n%s%s\n%s\n%s\n", title, fence, lang, text, fence)
	}
	part("## Arguments", "json", indented([]byte(e.arguments)))
	if c.Error != nil {
		text := c.Error.Message
		if c.Error.Code != 0 {
			text = fmt.Sprintf("%d: %s", c.Error.Code, text)
		}
		part("## Error", "", text+"\n"+c.Error.Data)
	}
	part("## Result", "json", c.Result)
	for _, issue := range c.Issues {
		text := visible.Line(issue.Path+" "+issue.Message, visible.Sentence)
		fmt.Fprintf(&b, "\n- does not match its output schema: %s\n", unmarked(text))
	}
	b.WriteString("\n## Messages\n")
	var stderr []string
	said := 0 // bytes of it
	for i := len(rows) - 1; i >= 0; i-- {
		r := rows[i]
		_, request, answer, ok := e.store.Texts(r.Seq)
		switch {
		case !ok:
		case r.Kind == "stderr":
			stderr = append(stderr, string(request))
			for said += len(request); said > reportRead; stderr = stderr[1:] {
				said -= len(stderr[0])
			}
		default:
			title := unmarked(strings.TrimSpace(r.Method + " " + r.Name))
			part(fmt.Sprintf("### %s %s, from the %s", r.At.UTC().Format("15:04:05.000"), title, r.From), "json", string(request))
			part("answer, "+r.Status, "json", string(answer))
		}
	}
	if len(rows) == 0 {
		b.WriteString("\nThey are no longer kept.\n")
	}
	if len(stderr) == 0 {
		stderr = s.Stderr
	}
	stderr = strings.Split(e.hidden(strings.Join(stderr, "\n")), "\n") // before lines are cut
	for n, line := range stderr {
		stderr[n] = visible.Output(line, reportLine)
	}
	part("## Standard error", "", strings.Join(stderr, "\n"))
	return b.String()
}

// during are the rows of the traffic while the call was in progress, the newest
// first.
func (e *exported) during() (list []record.Row) {
	if e.call.Earlier {
		return nil
	}
	end := e.call.At.Add(time.Duration(e.call.Took*float64(time.Millisecond)) + 20*time.Millisecond)
	for _, r := range e.store.Rows(record.Query{Limit: 2000}).Rows {
		if r.At.Before(e.call.At.Add(-time.Millisecond)) {
			break
		}
		if !r.At.After(end) || e.call.State == "running" {
			list = append(list, r)
		}
	}
	return list[max(0, len(list)-reportRows):]
}

// learn takes the secrets of a message.
func (e *exported) learn(text string) {
	if len(text) > reportRead {
		return // which the report has none of
	}
	for _, found := range requestStates.FindAllStringSubmatch(text, -1) {
		var state string
		if json.Unmarshal([]byte(found[1]), &state) == nil {
			e.mask.into(&e.mask.received, state)
		}
	}
}

// cut is a text as far as a report has it. Text is masked before it is cut: a secret
// that is cut could not be found any more.
func (e *exported) cut(text string) string {
	text = strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n") // the first line may be indented
	if len(text) > reportRead {
		return fmt.Sprintf("… %d bytes", len(text))
	}
	return visible.Text(e.hidden(text), reportText)
}

// The bounds of a report: rows of the traffic, and how much of each text, in bytes.
const (
	reportRows = 100
	reportText = 32 << 10
	reportRead = 512 << 10 // longer ones are left out
	reportLine = 500       // of standard error
)

// requestStates finds the request states of a server, which may be secrets.
var requestStates = regexp.MustCompile(`"requestState"\s*:\s*("(?:[^"\\]|\\.)*")`)

// markup takes the meaning from what is markup in Markdown, in what a server says.
var markup = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "[", "\\[", "]", "\\]", "<", "\\<", ">", "\\>")
