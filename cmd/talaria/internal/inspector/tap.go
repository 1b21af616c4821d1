package inspector

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
)

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
