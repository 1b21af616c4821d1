package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// small is a server that asks a model, and knows who called.
func small() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "small", Version: "1"}, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	s.MustAdd(
		mcp.Tool("key", func(f *mcp.Frame, _ struct{}) (string, error) { return "key " + f.Header("X-Key"), nil }),
		mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			r, err := frame.Sample(f, "think", protocol.SampleParams{MaxTokens: 10, Messages: []protocol.SampleMessage{
				{Role: mcp.RoleUser, Content: []mcp.Content{mcp.TextContent{Text: "What is it?"}}}}})
			if err != nil {
				return "", err
			}
			return "it is " + r.Text(), nil
		}),
		mcp.Tool("where", func(f *mcp.Frame, _ struct{}) (string, error) {
			roots, err := frame.Roots(f, "where")
			if err != nil || len(roots) == 0 {
				return "nowhere", err
			}
			return roots[0].URI, nil
		}),
		mcp.Resource("note://1", func(*mcp.Frame) ([]byte, error) { return []byte{0, 1, 255}, nil }, mcp.MIME("application/x-note")),
	)
	return s
}

// Every kind of target.
func TestTransports(t *testing.T) {
	t.Parallel()
	s := small()
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", websocket.Handler(s))
	web := httptest.NewServer(mux)
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serve := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(ctx, l) }()
		return l.Addr().String()
	}
	dir := t.TempDir()
	socket, tcp := serve("unix", filepath.Join(dir, "s")), serve("tcp", "127.0.0.1:0")
	file := filepath.Join(dir, "mcp.json")
	config := `{"mcpServers": {"web": {"url": "` + web.URL + `/mcp", "headers": {"X-Key": "from the file"}}}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{web.URL + "/mcp", "-H", "X-Key: a"}, "key a"},
		{[]string{"sse+" + web.URL + "/mcp", "-H", "X-Key=b", "--revision", "2024-11-05"}, "key "},
		{[]string{strings.Replace(web.URL, "http", "ws", 1) + "/ws", "-H", "X-Key=c"}, "key c"},
		{[]string{"tcp://" + tcp}, "key "},
		{[]string{"unix:" + socket}, "key "},
		{[]string{"web", "--config", file}, "key from the file"},
		{[]string{"web", "--config", file, "-H", "X-Key=mine"}, "key mine"},
	} {
		got := talaria(t, "", append([]string{"call", test.args[0], "key"}, test.args[1:]...)...)
		if got.code != 0 || !strings.HasPrefix(got.stdout, test.want) {
			t.Errorf("%q: got %+v, want %q", test.args, got, test.want)
		}
	}
	for _, args := range [][]string{
		{"http", web.URL + "/mcp"}, {"http", "--base-url", web.URL}, {"http", "--base-url", web.URL, "--mcp-path", "mcp"},
		{"ws", "--base-url", web.URL}, {"ws", strings.Replace(web.URL, "http", "ws", 1) + "/ws"},
		{"sse", "--base-url", web.URL, "--sse-path", "/mcp", "--revision", "2024-11-05"},
	} {
		if got := talaria(t, "ping\n", args...); got.code != 0 || !strings.Contains(got.stdout, "pong") {
			t.Errorf("%q: got %+v", args, got)
		}
	}
	if got := talaria(t, "", "ping", "other", "--config", file); got.code != exitUsage || !strings.Contains(got.stderr, "it has: web") {
		t.Errorf("got %+v", got)
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(small().Handler())
	defer web.Close()
	dir := t.TempDir()
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		ask := func(args ...string) result {
			return talaria(t, "", append([]string{"call", web.URL, "--revision", rev.String()}, args...)...)
		}
		if got := ask("think", "--sample", "a bird"); got.code != 0 || got.stdout != "it is a bird\n" || !strings.Contains(got.stderr, "--sample") {
			t.Errorf("%s: got %+v", rev, got)
		}
		if got := ask("think"); got.code == 0 {
			t.Errorf("%s: a model answered without --sample: %+v", rev, got)
		}
		if got := ask("where", "--root", dir); got.stdout != "file://"+dir+"\n" {
			t.Errorf("%s: got %+v", rev, got)
		}
		if got := ask("where"); got.stdout != "nowhere\n" {
			t.Errorf("%s: got %+v", rev, got)
		}
	}
}

func TestReadBytes(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(small().Handler())
	defer web.Close()
	if got := talaria(t, "", "read", web.URL, "note://1", "-o", "-"); got.code != 0 || got.stdout != "\x00\x01\xff" {
		t.Errorf("got %+v", got)
	}
	file := filepath.Join(t.TempDir(), "out")
	if got := talaria(t, "", "read", web.URL, "note://1", "-o", file); got.code != 0 || got.stdout != "" {
		t.Errorf("got %+v", got)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "\x00\x01\xff" {
		t.Errorf("got %q, %v", data, err)
	}
}

// Watch prints what changes, in legacy and modern revisions, until it is interrupted.
func TestWatch(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		s := small()
		event := func(name string) {
			s.MustAdd(mcp.EventType(name, func(*mcp.Frame, struct{}, map[string]any) (bool, error) { return true, nil }))
		}
		event("note.saved")
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var stdout, stderr syncBuffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"watch", web.URL, "note://1", "--json", "--revision", revision},
				&console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
		}()
		stderr.wait(t, "watching")
		s.ResourceUpdated("note://1")
		stdout.wait(t, "note://1.*\n")
		if event("note.lost"); revision == "2026-07-28" { // a session of this server is not notified of it
			stdout.wait(t, "notifications/events/list_changed.*\n")
		}
		cancel()
		<-code
		line, _, _ := strings.Cut(stdout.String(), "\n")
		if !strings.Contains(line, `{"method":"notifications/resources/updated","params":{`) || !strings.Contains(line, `"uri":"note://1"`) {
			t.Errorf("%s: got %q, %q", revision, stdout.String(), stderr.String())
		}
	}
}

// Events lists event types, and prints what is emitted, until it is interrupted.
func TestEventsCommand(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		s := small()
		s.MustAdd(mcp.EventType("note.saved", func(_ *mcp.Frame, in struct {
			Note int `json:"note"`
		}, d map[string]any) (bool, error) {
			return d["note"] == float64(in.Note), nil
		}, mcp.Doc("A note was saved")))
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		if got := talaria(t, "", "events", web.URL, "--revision", revision); got.code != 0 || !strings.Contains(got.stdout, "note.saved") || !strings.Contains(got.stdout, "A note was saved") {
			t.Errorf("list: %+v", got)
		}
		if got := talaria(t, "", "events", web.URL, "note.saved", "--revision", revision); got.code != exitUsage || !strings.Contains(got.stderr, "note") {
			t.Errorf("without an argument: %+v", got)
		}
		if got := talaria(t, "", "events", web.URL, "note.lost", "--revision", revision); got.code != exitProtocol || !strings.Contains(got.stderr, "Unknown event: note.lost") {
			t.Errorf("unknown: %+v", got)
		}
		first := mcptest.New(t, s)
		var page struct{ Cursor string }
		if err := json.Unmarshal(first.Request("events/poll", map[string]any{"name": "note.saved", "arguments": map[string]int{"note": 1}}), &page); err != nil {
			t.Fatal(err)
		}
		for _, note := range []int{2, 1} {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "note.saved", Data: map[string]any{"note": note, "text": "a\x1b[2J"}, ID: fmt.Sprint("id", note)}); err != nil {
				t.Fatal(err)
			}
		}
		for asJSON, want := range map[string]string{"--json": `"eventId":"id1","name":"note.saved"`, "--json=false": ` id1 {"note":1,`} {
			ctx, cancel := context.WithCancel(t.Context())
			var stdout, stderr syncBuffer
			code := make(chan int, 1)
			go func() {
				code <- run(ctx, []string{"events", web.URL, "note.saved", "note=1", asJSON, "--cursor", page.Cursor, "--revision", revision},
					&console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
			}()
			stdout.wait(t, "id1.*\n")
			cancel()
			if got := <-code; got != exitOK {
				t.Errorf("exit %d", got)
			}
			if got := stdout.String(); !strings.Contains(got, want) || strings.Contains(got, "id2") || strings.Contains(got, "\x1b") {
				t.Errorf("%s: got %q, %q", revision, got, stderr.String())
			}
		}
	}
}

// TestReadMissing checks what read says of a resource that does not exist, and of values
// that a template does not take.
func TestReadMissing(t *testing.T) {
	t.Parallel()
	s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, nil)
	s.MustAdd(mcp.Template("item://{n}", func(_ *mcp.Frame, in struct {
		N int `json:"n"`
	}) (string, error) {
		return "", mcp.ErrNotFound
	}))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	for _, rev := range protocol.Revisions() {
		for uri, want := range map[string]string{
			"item://1": "read item://1: not found: ", "none:x": "read none:x: not found: ",
			"item://x": "read item://x: Invalid params: Invalid arguments for resource \"item://x\" (1 problem)",
		} {
			got := talaria(t, "", "read", web.URL, uri, "--revision", rev.String())
			if got.code != exitProtocol || !strings.Contains(got.stderr, want) {
				t.Errorf("%s: got %+v, want %q", rev, got, want)
			}
		}
	}
}

// TestMaxMessage checks that an answer over the limit names the flag that raises it, over
// every transport, and that the flag does.
func TestMaxMessage(t *testing.T) {
	t.Parallel()
	s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	s.MustAdd(mcp.Tool("long", func(*mcp.Frame, struct{}) (string, error) { return strings.Repeat("x", 100_000), nil }))
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", websocket.Handler(s))
	web := httptest.NewServer(mux)
	defer web.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(served)
		_ = s.Serve(ctx, listener) // it ends with the test
	}()
	defer func() { stop(); <-served }()
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"web": {"url": "`+web.URL+`/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rev := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		for _, target := range [][]string{
			{web.URL + "/mcp"}, {"sse+" + web.URL + "/mcp"}, {strings.Replace(web.URL, "http", "ws", 1) + "/ws"},
			{"tcp://" + listener.Addr().String()}, {"web", "--config", file},
		} {
			if strings.HasPrefix(target[0], "sse") && rev != "2024-11-05" {
				continue
			}
			args := append([]string{"call", target[0], "long", "--revision", rev}, target[1:]...)
			got := talaria(t, "", append(args, "--max-message", "50000")...)
			if got.code != exitProtocol || !strings.Contains(got.stderr, "longer than the limit of 50000 bytes (--max-message raises it)") {
				t.Errorf("%q: got %d %s", args, got.code, got.stderr)
			}
			if got = talaria(t, "", append(args, "--max-message", "1000000")...); got.code != exitOK || !strings.Contains(got.stdout, "xxx") {
				t.Errorf("%q: got %d %s", args, got.code, got.stderr)
			}
		}
	}
	if got := talaria(t, "", "ping", web.URL, "--max-message", "0"); got.code != exitUsage || !strings.Contains(got.stderr, "--max-message 0: must be greater than 0") {
		t.Errorf("got %+v", got)
	}
}
