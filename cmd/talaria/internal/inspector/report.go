package inspector

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/visible"
)

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
