package inspector

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// inspect makes an Inspector of a server and waits until it is connected, or not.
func inspect(t *testing.T, to client.Transport, stderr string) *Inspector {
	t.Helper()
	i := New(Options{Target: "target", Version: "1",
		Transport: func(w io.Writer, _ func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			_, err := io.WriteString(w, stderr)
			return to, err
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "a hint" },
	})
	t.Cleanup(i.Close)
	i.Connect(0)
	until(t, i, func() bool { return snapshot(i).State != "connecting" })
	return i
}

func snapshot(i *Inspector) state { return pages{Inspector: i}.snapshot() }

// until waits for a change after which something is so.
func until(t *testing.T, i *Inspector, so func() bool) {
	t.Helper()
	for {
		_, changed := i.pulse.now()
		if so() {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("it did not come to be")
		}
	}
}

// ask asks the API and decodes its answer.
func ask(t *testing.T, i *Inspector, method, path, body string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	API(i).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if into != nil {
		reflect.ValueOf(into).Elem().SetZero() // elements of a list would keep what is not sent now
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	return w.Code
}

// listed waits for a list.
func listed(t *testing.T, i *Inspector, kind string) (o offer) {
	t.Helper()
	until(t, i, func() bool {
		var s map[string]json.RawMessage
		ask(t, i, "GET", "/api/state", "", &s)
		return s[kind] != nil && json.Unmarshal(s[kind], &o) == nil
	})
	return o
}

// finished waits for the end of a call of a tool.
func finished(t *testing.T, i *Inspector, tool, arguments string) call {
	t.Helper()
	return ended(t, i, "tool", tool, arguments)
}

// ended waits for the end of a call that is made of a form, whatever is wrong with it.
func ended(t *testing.T, i *Inspector, kind, name, arguments string) call {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": kind, "tool": name, "arguments": arguments, "anyway": true})
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ Call call }
	if code := ask(t, i, "POST", "/api/call", string(text), &started); code != http.StatusAccepted {
		t.Fatalf("%s: %d", name, code)
	}
	var c call
	until(t, i, func() bool {
		c = call{}
		ask(t, i, "GET", fmt.Sprintf("/api/calls/%d", started.Call.ID), "", &c)
		return c.State != "running"
	})
	return c
}

type sumIn struct {
	A json.Number `json:"a"`
	B int         `json:"b" jsonschema:"minimum=1"`
}

type confirm struct {
	Sure bool `json:"sure"`
}

// workbench has a tool for each way in which a call ends.
func workbench(t *testing.T) *mcp.Server {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "bench", Version: "1"}, nil)
	err := s.Add(
		mcp.Tool("sum", func(_ context.Context, in sumIn) (map[string]any, error) {
			return map[string]any{"a": in.A, "b": in.B}, nil
		}),
		mcp.Tool("fail", func(context.Context, struct{}) (string, error) { return "", errors.New("disk full") }),
		mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
			if err := f.Progress(1, 4, "begun"); err != nil {
				return "", err
			}
			<-f.Done()
			return "", f.Err()
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := mcp.Elicit[confirm](f, "sure", "Really?")
			if err != nil {
				return "", err
			}
			return fmt.Sprint(answer.Accepted(), answer.Value.Sure), nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func connected(t *testing.T) *Inspector {
	t.Helper()
	return inspect(t, client.Local(workbench(t).ServeConn), "listening\nready")
}

func TestCalls(t *testing.T) {
	i := connected(t)
	if s := snapshot(i); s.State != "ready" || s.Server.Name != "bench" || s.Revision != protocol.Latest.String() || len(s.Stderr) != 1 || s.Stderr[0] != "listening" {
		t.Fatalf("%+v", s)
	}
	if o := listed(t, i, "tool"); len(o.Entries) != 4 || o.Error != "" {
		t.Fatalf("%+v", o)
	}
	if c := finished(t, i, "sum", `{"a":9007199254740993,"b":2}`); c.State != "done" || !strings.Contains(c.Result, `"a": 9007199254740993`) || c.Error != nil {
		t.Errorf("%+v", c)
	}
	if c := finished(t, i, "sum", `{"a":1,"b":0}`); c.State != "failed" || !strings.Contains(c.Result, "/b") {
		t.Errorf("a call that was sent though it does not fit: %+v", c)
	}
	if c := finished(t, i, "fail", `{}`); c.State != "failed" {
		t.Errorf("%+v", c)
	}
	if c := finished(t, i, "no-such-tool", `{}`); c.State != "error" || c.Error == nil || c.Error.Code == 0 {
		t.Errorf("%+v", c)
	}
	var refused map[string]string
	if code := ask(t, i, "POST", "/api/call", `{"tool":"sum","arguments":"{","anyway":true}`, &refused); code != http.StatusConflict || refused["error"] == "" {
		t.Errorf("%d %v", code, refused)
	}
	if code := ask(t, i, "POST", "/api/call", `{"tool":"sum","command":"rm"}`, &refused); code != http.StatusBadRequest {
		t.Errorf("a member that there is not: %d", code)
	}
	if s := snapshot(i); len(s.Calls) != 4 || s.Calls[0].Tool != "no-such-tool" || s.Calls[3].Result != "" || s.Calls[0].Error != nil {
		t.Errorf("recent: %+v", s.Calls)
	}
}

// TestListChanged: a list is asked for again when the server says that it has changed,
// and each stream has it once.
func TestListChanged(t *testing.T) {
	for _, revision := range []protocol.Revision{protocol.Latest, protocol.V20251125} {
		s := workbench(t)
		i := inspect(t, client.Local(s.ServeConn), "")
		i.Connect(revision)
		until(t, i, func() bool { return snapshot(i).Revision == revision.String() })
		listed(t, i, "tool")
		if revision == protocol.Latest { // which is told of changes because it has asked
			until(t, i, func() bool {
				var page struct{ Rows []struct{ Method string } }
				ask(t, i, "GET", "/api/traffic", "", &page)
				agreed := false
				for _, row := range slices.Backward(page.Rows) { // the oldest first
					agreed = agreed || strings.HasSuffix(row.Method, "acknowledged")
					if row.Method == protocol.MethodToolsList {
						if !agreed {
							t.Error("tools were listed before the server had agreed to tell of changes")
						}
						return true
					}
				}
				return false
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		read, write := io.Pipe()
		over := make(chan struct{})
		go func() {
			defer close(over)
			w := &streamed{ResponseRecorder: httptest.NewRecorder(), to: write}
			API(i).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
		}()
		told := bufio.NewScanner(read)
		told.Buffer(nil, 1<<20)
		lists := 0
		for told.Scan() {
			text := told.Text()
			if lists == 0 && strings.Contains(text, `"tool":{"entries"`) {
				lists++
				if err := s.Add(mcp.Tool("later", func(context.Context, struct{}) (string, error) { return "", nil })); err != nil {
					t.Fatal(err)
				}
			} else if strings.Contains(text, `"tool":{"entries"`) {
				if lists++; !strings.Contains(text, `"later"`) || strings.Contains(text, `"revisions"`) {
					t.Errorf("%s: %s", revision, text)
				}
				break
			}
		}
		cancel()
		read.Close()
		<-over
		if lists != 2 {
			t.Errorf("%s: %d lists", revision, lists)
		}
	}
}

// streamed is an answer that is read while it is written.
type streamed struct {
	*httptest.ResponseRecorder
	to io.Writer
}

func (s *streamed) Write(p []byte) (int, error) { return s.to.Write(p) }

// TestAskers: of two calls that ask at the same time each question names its own where the
// protocol says whose it is, and both where it does not.
func TestAskers(t *testing.T) {
	i := connected(t)
	for _, c := range []struct{ revision, want string }{{"2026-07-28", "[[{1 ask}] [{2 ask}]]"}, {"2025-06-18", "[[{3 ask}] [{3 ask} {4 ask}]]"}} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+c.revision+`"}`, nil)
		until(t, i, func() bool { return snapshot(i).Revision == c.revision })
		var got [][]asker
		for n := range 2 {
			ask(t, i, "POST", "/api/call", `{"tool":"ask","arguments":"{}"}`, nil)
			until(t, i, func() bool { return len(snapshot(i).Questions) == n+1 })
			got = append(got, snapshot(i).Questions[n].Calls)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.revision, got, c.want)
		}
		for _, q := range snapshot(i).Questions {
			ask(t, i, "POST", "/api/questions", fmt.Sprintf(`{"id":%d,"action":"cancel"}`, q.ID), nil)
		}
		until(t, i, func() bool { return len(i.calls.running()) == 0 && len(snapshot(i).Questions) == 0 })
	}
}

// TestCancel: a call goes on when nobody looks, until it is cancelled.
func TestCancel(t *testing.T) {
	i := connected(t)
	var started struct{ Call call }
	ask(t, i, "POST", "/api/call", `{"tool":"wait","arguments":"{}"}`, &started)
	path := fmt.Sprintf("/api/calls/%d", started.Call.ID)
	var c call
	until(t, i, func() bool { ask(t, i, "GET", path, "", &c); return c.Progress != nil })
	if c.State != "running" || c.Progress.Progress != 1 || c.Progress.Message != "begun" {
		t.Errorf("%+v", c)
	}
	ask(t, i, "DELETE", path, "", nil)
	until(t, i, func() bool { ask(t, i, "GET", path, "", &c); return c.State != "running" })
	if c.State != "cancelled" {
		t.Errorf("%+v", c)
	}
	for range maxCalls {
		if code := ask(t, i, "POST", "/api/call", `{"tool":"wait","arguments":"{}"}`, nil); code != http.StatusAccepted {
			t.Fatal(code)
		}
	}
	if code := ask(t, i, "POST", "/api/call", `{"tool":"wait","arguments":"{}"}`, nil); code != http.StatusConflict {
		t.Errorf("one call too many: %d", code)
	}
}

func TestQuestions(t *testing.T) {
	i := connected(t)
	for _, revision := range []string{"2026-07-28", "2025-06-18"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { return snapshot(i).State == "ready" })
		for _, c := range []struct{ action, content, want string }{
			{"accept", `{\"sure\":true}`, "true true"}, {"decline", "", "false false"}, {"cancel", "", "false false"},
		} {
			var started struct{ Call call }
			ask(t, i, "POST", "/api/call", `{"tool":"ask","arguments":"{}"}`, &started)
			until(t, i, func() bool { return len(snapshot(i).Questions) == 1 })
			q := snapshot(i).Questions[0]
			if q.Message != "Really?" || q.Form == nil || q.Form.Fields[0].Kind != "bool" {
				t.Errorf("%+v", q)
			}
			if want := (asker{started.Call.ID, "ask"}); len(q.Calls) != 1 || q.Calls[0] != want {
				t.Errorf("%s: %v asks, and not %v", revision, q.Calls, want)
			}
			var checked struct{ Issues []struct{ Path string } }
			ask(t, i, "POST", "/api/check", fmt.Sprintf(`{"question":%d,"value":"{\"sure\":3}"}`, q.ID), &checked)
			if len(checked.Issues) != 1 || checked.Issues[0].Path != "/sure" {
				t.Errorf("%+v", checked)
			}
			if code := ask(t, i, "POST", "/api/questions", fmt.Sprintf(`{"id":%d,"action":%q,"content":"%s"}`, q.ID, c.action, c.content), nil); code != http.StatusOK {
				t.Fatal(code)
			}
			var end call
			until(t, i, func() bool {
				ask(t, i, "GET", fmt.Sprintf("/api/calls/%d", started.Call.ID), "", &end)
				return end.State != "running"
			})
			if !strings.Contains(end.Result, c.want) {
				t.Errorf("%s %s: %+v", revision, c.action, end)
			}
		}
	}
	if code := ask(t, i, "POST", "/api/questions", `{"id":99,"action":"accept"}`, nil); code != http.StatusNotFound {
		t.Errorf("an answer to nothing: %d", code)
	}
	if code := ask(t, i, "POST", "/api/questions", `{"id":99,"action":"run"}`, nil); code != http.StatusBadRequest {
		t.Errorf("an action that there is not: %d", code)
	}
}

func TestTraffic(t *testing.T) {
	i := connected(t)
	finished(t, i, "sum", `{"a":1.50,"b":2}`)
	until(t, i, func() bool {
		var page struct {
			Rows []struct {
				Seq                        int64
				Kind, Method, Name, Status string
			}
		}
		ask(t, i, "GET", "/api/traffic?text=1.50&kinds=request", "", &page)
		if len(page.Rows) != 1 || page.Rows[0].Status == "" {
			return false
		}
		if r := page.Rows[0]; r.Method != "tools/call" || r.Name != "sum" || r.Status != "ok" {
			t.Errorf("%+v", r)
		}
		var m struct{ Texts []string }
		ask(t, i, "GET", fmt.Sprintf("/api/traffic/%d", page.Rows[0].Seq), "", &m)
		if !strings.Contains(m.Texts[0], `"a":1.50`) || !strings.Contains(m.Texts[1], `"structuredContent"`) {
			t.Errorf("%q", m.Texts)
		}
		return true
	})
}

// TestHeard: a connection pays for one copy of what it says.
func TestHeard(t *testing.T) {
	held := make(chan struct{})
	began := sync.OnceFunc(func() { held <- struct{}{} })
	i := &Inspector{attempt: 1, store: record.NewStore(func() {
		began()
		<-held
	})}
	defer i.store.Close()
	defer close(held)
	one := &tap{i: i, attempt: 1}
	text := []byte(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	one.hear(true, text)
	<-held // the goroutine of the store waits, and allocates nothing
	if n := testing.AllocsPerRun(100, func() { one.hear(true, text) }); n > 1 {
		t.Errorf("%v allocations for a message", n)
	}
}

// TestFailure: why there is no connection, with what the server said last, and
// what was not a line yet.
func TestFailure(t *testing.T) {
	gone := client.Conn(func(context.Context) (transport.Conn, error) { return nil, errors.New("it is not there") })
	i := inspect(t, gone, "one\x1b[31m\ntwo\nthree")
	s := snapshot(i)
	if s.State != "failed" || s.Failure == nil || !strings.Contains(s.Failure.Cause, "it is not there") || s.Failure.Hint != "a hint" ||
		strings.Join(s.Failure.Stderr, "|") != "one␛[31m|two|three" {
		t.Errorf("%+v %+v", s.State, s.Failure)
	}
	if code := ask(t, i, "POST", "/api/connect", `{"revision":"1999-01-01"}`, nil); code != http.StatusBadRequest {
		t.Errorf("%d", code)
	}
	ask(t, i, "POST", "/api/connect", `{}`, nil)
	until(t, i, func() bool { s := snapshot(i); return s.State == "failed" && s.Connection == 2 })
}

// TestStderrOnce: a command that ends before it answers is started again, and says
// everything twice; what the last start said is shown.
func TestStderrOnce(t *testing.T) {
	testdep.LookPath(t, "sh")
	i := New(Options{Target: "target",
		Transport: func(stderr io.Writer, _ func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			to := client.Command("sh", "-c", "echo one >&2; echo two >&2; exit 1")
			to.Stderr = stderr
			return to, nil
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
	})
	defer i.Close()
	i.Connect(0)
	until(t, i, func() bool { return snapshot(i).State == "failed" })
	if got := strings.Join(snapshot(i).Failure.Stderr, "|"); got != "one|two" {
		t.Errorf("got %s", got)
	}
}

// odd is a server whose list and whose schemas are what no server should send.
func odd(tools string) client.Transport {
	return client.Local(func(_ context.Context, conn transport.Conn) error {
		return backendtest.Scripted(conn, func(m *protocol.Message, id string) string {
			switch m.Method {
			case "server/discover":
				return `"error":{"code":-32601,"message":"no"}`
			case "initialize":
				return `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
			}
			return `"result":{"tools":[` + strings.ReplaceAll(tools, "$id", id) + `]}`
		})
	})
}

// TestBroken: one entry that is none hides no other, and says what is wrong.
func TestBroken(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads a list of 100,000 values")
	var enum strings.Builder
	for n := range 100_000 {
		fmt.Fprintf(&enum, `,"value %d"`, n)
	}
	i := inspect(t, odd(`{"name":"good","inputSchema":{"type":"object"}},{"name":"bad","description":5,"inputSchema":{"type":"object","properties":{"a":{}}}},7,
		{"name":"pay\u202enoisrev","inputSchema":3},{"name":"many","inputSchema":{"type":"object","properties":{"e":{"enum":[`+enum.String()[1:]+`]}}}}`), "")
	o := listed(t, i, "tool")
	var got []string
	for _, e := range o.Entries {
		got = append(got, fmt.Sprintf("%s %v", e.Label, e.Wrong != ""))
	}
	if want := "good false|bad true|(number 3, without a name) true|pay\ufffdnoisrev true|many false"; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
	var f form
	ask(t, i, "GET", "/api/form?tool=bad", "", &f)
	if f.Wrong == "" || f.Form == nil || len(f.Form.Fields) != 1 || !strings.Contains(f.Sent, `"description": 5`) {
		t.Errorf("%+v", f)
	}
	f = form{}
	ask(t, i, "GET", "/api/form?tool=pay%E2%80%AEnoisrev", "", &f)
	if f.Form != nil || f.Wrong == "" {
		t.Errorf("a schema that is none: %+v", f)
	}
	f = form{}
	ask(t, i, "GET", "/api/form?tool=many", "", &f)
	if c := f.Form.Fields[0]; c.Count != 100_000 || len(c.Options) != shownOptions || c.List != 1 || len(f.Sent) > maxSent+10 {
		t.Errorf("%d options of %d, list %d", len(c.Options), c.Count, c.List)
	}
	var found []option
	ask(t, i, "GET", "/api/form?tool=many&list=1&text=VALUE+9999", "", &found)
	if len(found) != 19 || found[0].Value != `"value 9999"` {
		t.Errorf("%+v", found)
	}
	ask(t, i, "GET", "/api/form?tool=many&list=1&text=9999++VALUE", "", &found) // in any order
	if len(found) != 19 || found[0].Value != `"value 9999"` {
		t.Errorf("%+v", found)
	}
}

// TestLongLists: a list is read no further than its bounds, in one page or in many.
func TestLongLists(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads the lists")
	for text, most := range map[string]int{
		strings.Repeat("7,", maxEntries+9) + "7": maxEntries,
		`{"name":"long","description":"` + strings.Repeat("x", 3<<20) + `"}],"nextCursor":"after $id","more":[`: maxListed>>20/3 + 1,
	} {
		i := inspect(t, odd(text), "")
		if o := listed(t, i, "tool"); len(o.Entries) != most || o.Error == "" {
			t.Errorf("%d entries, not %d: %s", len(o.Entries), most, o.Error)
		}
	}
}

// TestIndented: what is nested deep is not made long.
func TestIndented(t *testing.T) {
	const depth = 9000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	if got := indented([]byte(deep)); got != deep {
		t.Errorf("%d bytes become %d", len(deep), len(got))
	}
	if got, want := indented([]byte(`{"a":["[\"[",1]}`)), "{\n  \"a\": [\n    \"[\\\"[\",\n    1\n  ]\n}"; got != want {
		t.Errorf("%s, and not %s", got, want)
	}
	if n := indentation([]byte(`"` + strings.Repeat(`[\\\"[,`, 9) + `"`)); n != 0 {
		t.Errorf("a text has %d bytes of indentation", n)
	}
}

// TestCallBounds: an error counts as a result does.
func TestCallBounds(t *testing.T) {
	i := connected(t)
	long := strings.Repeat("x", keptResult/2)
	for range 5 {
		one := &call{}
		if err := i.calls.begin(one); err != nil {
			t.Fatal(err)
		}
		i.calls.change(func() { one.State, one.Error = "error", &callError{Data: long} })
	}
	if n := len(i.calls.list); n > 3 {
		t.Errorf("%d calls are kept", n)
	}
}

// TestChecks: a schema is compiled once.
func TestChecks(t *testing.T) {
	i := connected(t)
	for range 5 {
		var r struct {
			Issues []struct{ Path, Message string }
		}
		ask(t, i, "POST", "/api/check", `{"tool":"sum","value":"{\"a\":1,\"b\":0}"}`, &r)
		if len(r.Issues) != 1 || r.Issues[0].Path != "/b" || r.Issues[0].Message == "" {
			t.Errorf("%+v", r)
		}
	}
	if i.schemas.n != 1 {
		t.Errorf("the schema was compiled %d times", i.schemas.n)
	}
	if code := ask(t, i, "POST", "/api/check", `{"tool":"none","value":"{}"}`, nil); code != http.StatusNotFound {
		t.Errorf("%d", code)
	}
}

// TestStreams: so many may listen, and one is told at once.
func TestStreams(t *testing.T) {
	i := connected(t)
	i.streams.Store(maxStreams)
	if code := ask(t, i, "GET", "/api/events", "", nil); code != http.StatusServiceUnavailable {
		t.Errorf("%d", code)
	}
	i.streams.Store(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	API(i).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
	if !strings.HasPrefix(w.Body.String(), "data: ") || i.streams.Load() != 0 {
		t.Errorf("%q, %d", w.Body, i.streams.Load())
	}
}
