package limits_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

var boundsBehaviours = []harness.Behavior{
	{What: "a long id is refused without being repeated", Run: longIDs},
	{What: "a long progress token is refused by its place", Run: longTokens},
}

// maxID is how long an id or a progress token may be, in bytes: docs/limits.md
// says 1 KiB.
const maxID = 1 << 10

func TestBounds(t *testing.T) { harness.RunBehaviors(t, boundsBehaviours) }

// longIDs: an id is kept for as long as its request, and repeated in answers,
// tasks and subscriptions.
func longIDs(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
	greet := `"name":"greet","arguments":{"name":"Ada"}`
	fits := `"` + strings.Repeat("x", maxID-2) + `"`
	p.Want(p.AskAs(fits, "tools/call", greet), `"id":`+fits, "Hello, Ada!")
	for name, id := range map[string]string{
		"text":    `"` + strings.Repeat("x", maxID-1) + `"`,
		"escapes": `"` + strings.Repeat(`\u0041`, 1000) + `"`,
		"number":  strings.Repeat("1", maxID+1),
		"huge":    `"` + strings.Repeat("x", 100_000) + `"`,
	} {
		answer := p.AskAs(id, "tools/call", greet)
		p.Want(answer, `-32600`, "id is longer than 1024 bytes")
		if len(answer) > 1000 {
			t.Errorf("%s: the answer has %d bytes", name, len(answer))
		}
	}
	p.Alive()
}

// longTokens: a progress token is repeated in every notification.
func longTokens(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
	p := harness.Join(t, tr, rev, harness.Fixture(t, nil))
	call := `"name":"greet","arguments":{"name":"Ada"},"_meta":{"progressToken":%s}`
	if rev.Modern() {
		call = strings.Replace(call, `"_meta":{`, `"_meta":{`+harness.ModernMeta(rev)+`,`, 1)
	}
	ask := func(token string) string {
		t.Helper()
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+call+`}}`, token)
		heard := p.C.Say(line)
		return heard[len(heard)-1]
	}
	p.Want(ask(`"`+strings.Repeat("x", maxID-2)+`"`), "Hello, Ada!")
	for _, token := range []string{`"` + strings.Repeat("x", 100_000) + `"`, strings.Repeat("7", maxID+1)} {
		answer := ask(token)
		p.Want(answer, `"id":1`, `-32602`, "params._meta.progressToken is longer than 1024 bytes")
		if len(answer) > 1000 {
			t.Errorf("the answer has %d bytes", len(answer))
		}
	}
	p.Alive()
}

// Defaults of Limits, as docs/limits.md has them.
const (
	defaultSessions  = 10_000
	defaultEvent     = 1 << 20
	defaultBudget    = 64 << 20
	defaultResources = 1_000
)

var fullSize = flag.Bool("full", false, "run tests of memory with as many clients as the limits allow")

// TestLongAnswersAreNotKept opens sessions that each get an answer of 5 MB on a
// stream that they could come back for. What the server keeps of them stays
// within the stated total: Limits.MessageMemory for messages, and 8 KiB for each
// session beside them. It says so to who comes back. With -full there are 10,000.
func TestLongAnswersAreNotKept(t *testing.T) {
	testdep.NoRace(t, "it measures memory")
	sessions := 100
	if *fullSize {
		sessions = defaultSessions
	}
	quiet := zerolog.Nop()
	for name, size := range map[string]int{"too long to keep": 5_000_000, "just short enough": defaultEvent - 1000} {
		t.Run(name, func(t *testing.T) {
			memory := 16 << 20
			if *fullSize {
				memory = defaultBudget
			}
			s := mcp.NewServer(mcp.Info{Name: "long", Version: "1"}, &mcp.Options{Logger: &quiet, Limits: mcp.Limits{MessageMemory: memory}})
			text := strings.Repeat("x", size)
			s.MustAdd(mcp.Tool("long", func(f *mcp.Frame, _ struct{}) (string, error) {
				return text, f.Log(protocol.LevelWarning, "a stream begins")
			}))
			defer s.Shutdown(context.Background()) //nolint:errcheck // nothing is under way
			serve := func(method, body string, headers ...string) *shortRecorder {
				r := httptest.NewRequest(method, "http://127.0.0.1/mcp", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				w := &shortRecorder{header: http.Header{}}
				s.Handler().ServeHTTP(w, r)
				return w
			}
			before := heapInUse()
			var last string
			for range sessions {
				w := serve("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+harness.Hello("2025-11-25")+`}}`)
				last = w.header.Get("Mcp-Session-Id")
				w = serve("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long"}}`, "Mcp-Session-Id", last)
				if w.size < size || w.status != http.StatusOK {
					t.Fatalf("%d bytes with status %d: %s", w.size, w.status, w.start)
				}
			}
			got, limit := heapInUse()-before, memory+memory/4+sessions*8<<10
			t.Logf("%d sessions keep %.1f MB after an answer of %.1f MB each; the limit is %.1f MB", sessions, mb(got), mb(size), mb(limit))
			if got > limit {
				t.Errorf("%d bytes, more than %d", got, limit)
			}
			w := serve("GET", "", "Mcp-Session-Id", last, "Last-Event-ID", "1-2")
			if size > defaultEvent {
				if want := `what followed Last-Event-ID \"1-2\" was too long to be kept`; w.status != http.StatusBadRequest || !strings.Contains(w.start, want) {
					t.Errorf("status %d, %s; want 400, %s", w.status, w.start, want)
				}
			} else if w.status != http.StatusOK || w.size < size {
				t.Errorf("status %d with %d bytes; want the answer again", w.status, w.size)
			}
		})
	}
}

func mb(bytes int) float64 { return float64(bytes) / 1e6 }

// heapInUse returns what is reachable now, in bytes.
func heapInUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// shortRecorder is an http.ResponseWriter that keeps the start of a body alone.
type shortRecorder struct {
	header       http.Header
	status, size int
	start        string
}

func (w *shortRecorder) Header() http.Header    { return w.header }
func (w *shortRecorder) WriteHeader(status int) { w.status = status }
func (w *shortRecorder) Flush()                 {}

func (w *shortRecorder) Write(p []byte) (int, error) {
	w.size += len(p)
	if rest := 500 - len(w.start); rest > 0 {
		w.start += string(p[:min(rest, len(p))])
	}
	return len(p), nil
}
