package mcptest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// maxRecording is how much of a test is kept in memory, in bytes.
const maxRecording = 64 << 20

// Record writes all messages of the client into a file if the test fails, and
// says in the log of the test where that is: in the directory of its artifacts
// (go test -artifacts), else in that of temporary files. The file is one of those
// that talaria tap writes. With OverHTTP
// it has the status of each request as well. Up to 64 MiB are kept until the test ends. One Record
// may be the option of several clients.
func Record(t testing.TB) Option {
	r := &recorder{t: t}
	r.to = recording.NewMemoryWriter(r, maxRecording)
	t.Cleanup(r.end)
	return func(c *config) {
		conn := strconv.FormatInt(r.clients.Add(1), 10)
		c.traces = append(c.traces, func(fromServer bool, message []byte) {
			dir := recording.Out
			if fromServer {
				dir = recording.In
			}
			r.to.Add(recording.Entry{Dir: dir, Conn: conn, Text: message})
		})
		c.answered = append(c.answered, func(message []byte, status int) {
			var m struct{ ID json.RawMessage }
			if jsonx.Unmarshal(message, &m) == nil && len(m.ID) > 0 { // else nothing says which message it was
				r.to.Add(recording.Entry{Dir: recording.Note, Conn: conn, HTTP: status, ID: m.ID, Text: fmt.Appendf(nil, "HTTP %d", status)})
			}
		})
	}
}

// recorder is the recording of a test. mu guards the text.
type recorder struct {
	t       testing.TB
	to      *recording.Writer
	clients atomic.Int64
	mu      sync.Mutex
	text    bytes.Buffer
}

// Write is for the recording.Writer.
func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// end keeps the recording of a test that has failed.
func (r *recorder) end() {
	if err := r.to.Close(); err != nil {
		r.t.Logf("mcptest: the recording is not whole: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.t.Failed() || r.text.Len() == 0 {
		return
	}
	dir := "" // of temporary files: go test removes that of a test without -artifacts
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		dir = r.t.ArtifactDir()
	}
	name := strings.NewReplacer("/", "-", `\`, "-", "*", "-").Replace(r.t.Name())
	file, err := os.CreateTemp(dir, name+"-*.jsonl") // readable only by this user
	if err == nil {
		_, err = file.Write(r.text.Bytes())
		if closed := file.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		r.t.Errorf("mcptest: the recording is lost: %v", err)
		return
	}
	r.t.Logf("mcptest: what client and server said is in %s", file.Name())
}
