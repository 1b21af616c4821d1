package lists_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// This file holds what scenarios say that are proposed for the official suite and
// not in the release that e2e/conformance/run runs. What the tables of behaviours hold
// already is not repeated.

// TestVersionHeader: a header that is no revision, or one that nobody has, is 400,
// before a session and in one, however it sorts among the real ones.
func TestVersionHeader(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20251125} {
		d := harness.OpenBare(t, rev, nil)
		session := d.Session
		for _, version := range []string{"invalid-protocol-version", "2000-01-01", "2099-01-01"} {
			for _, d.Session = range []string{"", session} {
				d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Mcp-Protocol-Version", version), http.StatusBadRequest, `"error":{"code":`)
			}
		}
	}
}

// TestBatchRefused: from 2025-06-18 on a body is one message. A list of them is
// refused as a whole, with an error that is one, and nothing of it runs.
func TestBatchRefused(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		d := harness.OpenBare(t, rev, nil)
		for _, batch := range []string{
			`[{"jsonrpc":"2.0","id":901,"method":"ping","params":{$META}},{"jsonrpc":"2.0","id":902,"method":"ping","params":{$META}}]`,
			`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{},$META}}]`,
		} {
			d.Want(d.Do(http.MethodPost, harness.Expand(batch, rev), "Mcp-Method", "ping"), http.StatusBadRequest, `"error":{"code":-32600,`)
		}
		if rev.Modern() {
			continue // a count is of a session
		}
		d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{}}}`), http.StatusOK, `"text":"1"`)
	}
}

// crowd returns a server on which all of so many calls run at once, each of which
// tells its own name as progress and as its result.
func crowd(t *testing.T, calls int) *mcp.Server {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "crowd", Version: "1"}, nil)
	var all sync.WaitGroup
	all.Add(calls)
	s.MustAdd(mcp.Tool("meet", func(f *mcp.Frame, in struct {
		Name string `json:"name"`
	}) (string, error) {
		if err := f.Progress(1, 2, in.Name); err != nil {
			return "", err
		}
		all.Done()
		all.Wait()
		return in.Name, f.Progress(2, 2, in.Name)
	}))
	return s
}

// TestIsolation: clients whose ids and progress tokens are the same, or their own,
// and whose calls run at the same time get what is theirs and nothing else.
func TestIsolation(t *testing.T) {
	const clients = 10
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		for _, token := range []string{`"same"`, ""} {
			h := crowd(t, clients).Handler()
			answers := make([]*httptest.ResponseRecorder, clients)
			var wg sync.WaitGroup
			for i := range clients {
				d := &harness.BareClient{T: t, H: h, Rev: rev}
				d.Initialize()
				own := token
				if own == "" {
					own = fmt.Sprintf(`"token-%d"`, i)
				}
				wg.Go(func() {
					call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"meet","arguments":{"name":"client-%d"},$META+,"progressToken":%s}}}`, i, own)
					if !rev.Modern() {
						call = strings.Replace(call, "$META+,", `"_meta":{`, 1)
					}
					answers[i] = d.Do(http.MethodPost, harness.Expand(call, rev), "Mcp-Method", "tools/call", "Mcp-Name", "meet")
				})
			}
			wg.Wait()
			for i, res := range answers {
				text := res.Body.String()
				if got, want := strings.Count(text, `"client-`), strings.Count(text, fmt.Sprintf(`"client-%d"`, i)); got != want || want != 3 {
					t.Errorf("%s: client %d got %s", rev, i, text)
				}
				if token == "" && (strings.Count(text, `"token-`) != 2 || strings.Count(text, fmt.Sprintf(`"token-%d"`, i)) != 2) {
					t.Errorf("%s: client %d got %s", rev, i, text)
				}
			}
		}
	}
}

// TestCancelled: a cancellation of what is unknown, once or many times, changes
// nothing; that of a call ends it, and the session goes on.
func TestCancelled(t *testing.T) {
	for _, rev := range harness.Legacy {
		synctest.Test(t, func(t *testing.T) {
			s := harness.Fixture(t, nil)
			d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
			d.Initialize()
			cancel := func(id string) {
				d.Want(d.Do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"a test"}}`, id)), http.StatusAccepted, "")
			}
			fine := func() {
				d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`), http.StatusOK, `"id":77,"result"`)
			}
			cancel(`"nonexistent-request-99999"`)
			fine()
			for i := range 50 {
				cancel(fmt.Sprintf(`"burst-cancel-%d"`, i))
			}
			fine()
			done := make(chan struct{})
			go func() {
				defer close(done)
				d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
			}()
			synctest.Wait()
			cancel("5")
			<-done // long before the tool's own minute is over, which the clock of the test shows
			fine()
			cancel("5")
			fine()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStreamClosed: in a modern revision the end of the client's stream is its
// cancellation. The handler is told, and the server goes on, also after many of
// them.
func TestStreamClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 100)
		s := mcp.NewServer(mcp.Info{Name: "streams", Version: "1"}, nil)
		s.MustAdd(
			mcp.Tool("stream", func(f *mcp.Frame, _ struct{}) (string, error) {
				err := f.Progress(1, 2, "begun")
				<-f.Done()
				ended <- context.Cause(f)
				return "too late", err
			}),
			mcp.Tool("fine", func(*mcp.Frame, struct{}) (string, error) { return "fine", nil }),
		)
		rev := protocol.V20260728
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
		call := func(ctx context.Context, tool string) *httptest.ResponseRecorder {
			body := harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{},$META+,"progressToken":"p"}}}`, rev)
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
			req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Mcp-Protocol-Version": {rev.String()}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
			res := httptest.NewRecorder()
			d.H.ServeHTTP(res, req)
			return res
		}
		const streams = 20
		var wg sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		answers := make([]*httptest.ResponseRecorder, streams)
		for i := range streams {
			wg.Go(func() { answers[i] = call(ctx, "stream") })
		}
		synctest.Wait() // all of them run
		leave()
		wg.Wait()
		for i, res := range answers {
			if err := <-ended; err == nil {
				t.Error("the handler was not told why")
			}
			// What is written after that goes into a connection that nobody has any more.
			if text := res.Body.String(); !strings.Contains(text, "begun") {
				t.Errorf("stream %d: got %s", i, text)
			}
		}
		d.Want(call(t.Context(), "fine"), http.StatusOK, `"fine"`)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLogLevelOfRequest: in a modern revision a request says which messages it
// wants. It gets those of that level and above, another at the same time gets none,
// and a level that is none is -32602.
func TestLogLevelOfRequest(t *testing.T) {
	rev := protocol.V20260728
	d := harness.OpenBare(t, rev, nil)
	for level, want := range map[string]string{"debug": "debug warning", "info": "warning", "warning": "warning", "error": "", "emergency": "", "": ""} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{},$META+,"io.modelcontextprotocol/logLevel":"` + level + `"}}}`
		if level == "" {
			body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{},$META}}`
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			quiet := d.Do(http.MethodPost, harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{},$META}}`, rev), "Mcp-Method", "tools/call", "Mcp-Name", "log")
			if strings.Contains(quiet.Body.String(), "notifications/message") {
				t.Errorf("a request without a level got %s", quiet.Body)
			}
		})
		res := d.Do(http.MethodPost, harness.Expand(body, rev), "Mcp-Method", "tools/call", "Mcp-Name", "log")
		wg.Wait()
		var got []string
		for line := range strings.Lines(res.Body.String()) {
			var m struct {
				Method string
				Params struct{ Level string }
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &m) == nil && m.Method == "notifications/message" {
				got = append(got, m.Params.Level)
			}
		}
		if strings.Join(got, " ") != want || !strings.Contains(res.Body.String(), "logged") {
			t.Errorf("%s: got %q, want %q: %s", level, got, want, res.Body)
		}
	}
	for _, level := range []string{`"banana"`, `"ERROR"`, `""`, `3`} {
		body := harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{},$META+,"io.modelcontextprotocol/logLevel":`+level+`}}}`, rev)
		if res := d.Do(http.MethodPost, body, "Mcp-Method", "tools/call", "Mcp-Name", "log"); !strings.Contains(res.Body.String(), `"code":-32602`) {
			t.Errorf("%s: got %d %s", level, res.Code, res.Body)
		}
	}
}

// TestSessionless: in a modern revision a session id is ignored, and none is made
// or sent back; a Last-Event-ID is ignored; lists are the same for all, whatever was
// asked between.
func TestSessionless(t *testing.T) {
	rev := protocol.V20260728
	s := harness.Fixture(t, nil)
	d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
	ask := func(method string, headers ...string) string {
		t.Helper()
		res := d.Do(http.MethodPost, harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{$META}}`, rev), append([]string{"Mcp-Method", method}, headers...)...)
		d.Want(res, http.StatusOK, `"result"`)
		if id, sent := res.Header()["Mcp-Session-Id"]; sent {
			t.Errorf("%s: got the session id %q", method, id)
		}
		return res.Body.String()
	}
	lists := []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
	for _, method := range lists {
		first := ask(method)
		for _, other := range append(lists, "server/discover") {
			ask(other)
		}
		if second := ask(method, "Mcp-Session-Id", "conformance-stale-session-id", "Last-Event-ID", "42"); second != first {
			t.Errorf("%s: got %s, then %s", method, first, second)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if res := d.Do(method, ""); res.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %d %s", method, res.Code, res.Body)
		}
	}
}
