package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// heapGrowth runs fn and returns by how many bytes the heap has grown after it,
// and the most it grew meanwhile as far as the end of fn shows.
func heapGrowth(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fn()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// totalAllocated runs fn and returns how many bytes were allocated during it.
func totalAllocated(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// zeros is an endless body that costs nothing to make.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestHugeBody(t *testing.T) {
	server := harness.ServeHTTP(t, nil)
	const size = 64 << 20
	for _, tt := range []struct {
		name   string
		length int64
	}{{"declared", size}, {"chunked", -1}} {
		t.Run(tt.name, func(t *testing.T) {
			allocated := totalAllocated(func() {
				req, err := http.NewRequest(http.MethodPost, server.URL, io.LimitReader(zeros{}, size))
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = tt.length
				req.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return // the server may close before the client is done writing
				}
				defer res.Body.Close()
				text, _ := io.ReadAll(res.Body)
				if res.StatusCode != http.StatusRequestEntityTooLarge || !bytes.Contains(text, []byte("longer than the limit of 4194304 bytes")) {
					t.Errorf("status %d: %s", res.StatusCode, text)
				}
			})
			if allocated > 24<<20 {
				t.Errorf("%d bytes allocated to refuse a body", allocated)
			}
		})
	}
}

func TestHugeBodyIsAnswered(t *testing.T) {
	server := harness.ServeHTTP(t, &mcp.Options{Limits: mcp.Limits{Message: 1000}})
	for _, length := range []int64{2000, -1} {
		status, answer := harness.PostJSON(t, server.URL, bytes.NewReader(make([]byte, 2000)), length)
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, `"code":-32600`) {
			t.Errorf("length %d: status %d: %s", length, status, answer)
		}
	}
}

func TestDeepBody(t *testing.T) {
	server := harness.ServeHTTP(t, nil)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":` + strings.Repeat("[", 100_000)
	var status int
	var answer string
	if grown := totalAllocated(func() { status, answer = harness.PostJSON(t, server.URL, strings.NewReader(body), int64(len(body))) }); grown > 8<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: nested deeper than 64 levels at byte 143"}}`; status != 400 || answer != want {
		t.Errorf("status %d: %s\nwant %s", status, answer, want)
	}
}

func TestTricklingBody(t *testing.T) {
	server := harness.ServeHTTP(t, &mcp.Options{Timeouts: mcp.Timeouts{Read: 30 * time.Millisecond}})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	answer, err := io.ReadAll(conn) // until the server closes, which it does at its limit
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 408")) {
		t.Errorf("%s, %v", answer, err)
	}
}

func TestUnknownMethods(t *testing.T) {
	testdep.NoRace(t, "it measures memory")
	s := harness.Fixture(t, nil)
	conversation := harness.OpenStream(t, s, protocol.Latest)
	ask := func(i int) {
		answer := conversation.Say(harness.Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"made/up%d","params":{$META}}`, i, i), protocol.Latest))
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"Method not found: made/up%d"}}`, i, i); len(answer) != 1 || answer[0] != want {
			t.Fatalf("got %s\nwant %s", answer, want)
		}
	}
	ask(0)
	if grown := heapGrowth(func() {
		for i := range 10_000 {
			ask(i + 1)
		}
	}); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over 10,000 unknown methods", grown)
	}
}

func TestStreamSurvivesBadLines(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	s := harness.Fixture(t, nil)
	go func() {
		served <- s.ServeConn(context.Background(), transport.NewStream(inR, outW, &transport.StreamOptions{MaxMessage: 1000}))
	}()
	client := &harness.Stream{T: t, In: inW, Out: harness.NewLineReader(outR), Spec: harness.SpecWatch{T: t}}
	for _, tt := range []struct{ line, want string }{
		{`garbage`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: unexpected 'g', want a value at byte 0"}}`},
		{`{"jsonrpc":"2.0","id":"x"`, `{"jsonrpc":"2.0","id":"x","error":{"code":-32700,"message":"Parse error: unexpected end of JSON, want ',' or '}' at byte 25"}}`},
		{`[]`, ``},
		{strings.Repeat("x", 5000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message of 5000 bytes is longer than the limit of 1000 bytes"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `not initialized`},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`},
	} {
		answer := client.Say(tt.line)
		if len(answer) != 1 || !strings.Contains(answer[0], tt.want) {
			t.Errorf("%.80s\ngot  %s\nwant %s", tt.line, answer, tt.want)
		}
	}
	inW.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A client that sends requests and reads no answers must not keep the server
// from ending.
func TestStalledClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		_, outW := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		s := harness.Fixture(t, nil)
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(ctx, transport.NewStream(inR, outW, nil)) }()
		for i := range 10 {
			fmt.Fprintln(inW, harness.Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{$META}}`, i), protocol.Latest))
		}
		synctest.Wait()
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusedWhileShuttingDown(t *testing.T) {
	s := harness.Fixture(t, nil)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if status, answer := harness.PostJSON(t, server.URL, strings.NewReader(body), int64(len(body))); status != http.StatusServiceUnavailable || !strings.Contains(answer, "shuts down") {
		t.Errorf("status %d: %s", status, answer)
	}
	if err := s.ServeConn(t.Context(), transport.NewStream(strings.NewReader(""), io.Discard, nil)); err == nil {
		t.Error("ServeConn after Shutdown")
	}
}

// A notification of a revision that the server does not speak, or that says
// another one in its header, reaches nobody.
func TestNotificationRevision(t *testing.T) {
	const modern, legacy = "2026-07-28", "2025-11-25"
	for _, tt := range []struct {
		speaks       protocol.Revision // 0 means all
		header, meta string
		status       int
	}{
		{0, modern, "", http.StatusAccepted},
		{0, modern, modern, http.StatusAccepted},
		{0, "", modern, http.StatusAccepted},
		{0, legacy, modern, http.StatusBadRequest},
		{0, modern, legacy, http.StatusBadRequest},
		{0, "", legacy, http.StatusBadRequest},
		{0, "", "2099-01-01", http.StatusBadRequest},
		{protocol.V20251125, modern, "", http.StatusBadRequest},
		{protocol.V20251125, "", modern, http.StatusBadRequest},
	} {
		opts := &mcp.Options{}
		if tt.speaks != 0 {
			opts.Revisions = []protocol.Revision{tt.speaks}
		}
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, opts)
		heard := 0
		if err := s.OnNotification("acme/told", func(*mcp.Frame) error { heard++; return nil }); err != nil {
			t.Fatal(err)
		}
		params := ""
		if tt.meta != "" {
			params = `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + tt.meta + `"}}`
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"jsonrpc":"2.0","method":"acme/told"`+params+`}`))
		r.Header.Set("Content-Type", "application/json")
		if tt.header != "" {
			r.Header.Set("MCP-Protocol-Version", tt.header)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if want := map[bool]int{true: 1}[tt.status == http.StatusAccepted]; w.Code != tt.status || heard != want {
			t.Errorf("header %q, _meta %q: status %d, %d heard it, want %d and %d: %s", tt.header, tt.meta, w.Code, heard, tt.status, want, w.Body)
		}
	}
}
