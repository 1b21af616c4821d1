package record

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// entries reads what was recorded, by kind; each text with its newline.
func entries(t *testing.T, text []byte) map[recording.Dir]string {
	t.Helper()
	all := map[recording.Dir]string{}
	for e, err := range recording.Read(bytes.NewReader(text)) {
		if err != nil {
			t.Error(err)
		}
		all[e.Dir] += string(e.Text) + "\n"
	}
	return all
}

// TestCommand: not a byte of what passes is changed, in either direction.
func TestCommand(t *testing.T) {
	sh := testdep.LookPath(t, "sh")
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	noise = append(noise, "\n{\"id\":9007199254740993}\r\n\nno end"...)
	var out, errs, kept bytes.Buffer
	w := recording.NewWriter(&kept, MaxFile)
	code, err := Command(t.Context(), w, []string{sh, "-c", "cat; printf 'warning\\n' >&2; exit 7"}, Streams{In: bytes.NewReader(noise), Out: &out, Err: &errs})
	if code != 7 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(out.Bytes(), noise) || errs.String() != "warning\n" {
		t.Errorf("%d bytes came back of %d, and %q", out.Len(), len(noise), errs.String())
	}
	all := entries(t, kept.Bytes())
	want := strings.Join(strings.FieldsFunc(string(noise), func(r rune) bool { return r == '\n' }), "\n") + "\n"
	if all[recording.Out] != want || all[recording.In] != want || all[recording.Err] != "warning\n" {
		t.Errorf("recorded %d and %d bytes of %d, and %q", len(all[recording.Out]), len(all[recording.In]), len(want), all[recording.Err])
	}
	if notes := all[recording.Note]; !strings.HasPrefix(notes, "started sh\nended: exit status 7") {
		t.Errorf("notes: %s", notes)
	}
}

// waiting is an input that never ends, as that of a host.
type waiting struct{ until chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	<-w.until
	return 0, io.EOF
}

func TestCommandEnds(t *testing.T) {
	sh := testdep.LookPath(t, "sh")
	in := waiting{make(chan struct{})}
	defer close(in.until)
	run := func(s Streams, words ...string) (int, error) {
		s.In, s.Out, s.Err = in, io.Discard, io.Discard
		return Command(t.Context(), recording.NewWriter(io.Discard, MaxFile), words, s)
	}
	if code, err := run(Streams{}, sh, "-c", "exit 3"); code != 3 || err != nil {
		t.Errorf("a command that ends at once: %d, %v", code, err)
	}
	if _, err := run(Streams{}, filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a command that is not there: no error")
	}
	signals := make(chan os.Signal, 1)
	signals <- os.Kill
	if code, err := run(Streams{Signals: signals}, sh, "-c", "while :; do :; done"); code != 128+9 || err != nil {
		t.Errorf("a command that is killed: %d, %v", code, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, err := Command(ctx, recording.NewWriter(io.Discard, MaxFile), []string{sh, "-c", "read line"}, Streams{In: in, Out: io.Discard, Err: io.Discard}); code == 0 && err == nil {
		t.Error("a context that has ended: exit code 0")
	}
	full := recording.NewWriter(failing{}, MaxFile)
	if code, err := Command(t.Context(), full, []string{sh, "-c", "exit 0"}, Streams{In: in, Out: io.Discard, Err: io.Discard}); code != 0 || err != nil || full.Close() == nil {
		t.Errorf("a full disk: %d, %v", code, err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fmt.Errorf("no space") }

// TestProxy: bodies pass and are recorded, events by their data, headers are not
// recorded, and a foreign name does not lead through it.
func TestProxy(t *testing.T) {
	const stream = "id: 1\nevent: message\ndata: {\"a\":1}\n\n: still here\n\ndata: {\"b\":\ndata: 2}\r\n\r\ndata: last"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/mcp" {
			t.Errorf("the server got %s %v", r.URL, r.Header)
		}
		if string(body) == "stream" {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			io.WriteString(w, stream)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s\n", body)
	}))
	defer server.Close()
	to, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	var kept bytes.Buffer
	w := recording.NewWriter(&kept, MaxFile)
	front := httptest.NewUnstartedServer(nil)
	front.Config.Handler = Proxy(w, to, front.Listener.Addr().String())
	front.Start()
	post := func(body, host string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/mcp?key=secret", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Host = host
		q.Header.Set("Authorization", "Bearer secret")
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, body := post(`{"id":1}`, ""); status != http.StatusAccepted || body != "{\"id\":1}\n" {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := post("stream", ""); status != http.StatusOK || body != stream {
		t.Errorf("got %d %q", status, body)
	}
	if status, _ := post("{}", "evil.example"); status != http.StatusForbidden {
		t.Errorf("a foreign Host: %d", status)
	}
	server.Close()
	if status, _ := post("{}", ""); status != http.StatusBadGateway {
		t.Errorf("a server that is gone: %d", status)
	}
	front.Close() // so that nothing is recorded any more
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(kept.String(), "secret") {
		t.Errorf("there is a secret in %s", kept.String())
	}
	all := entries(t, kept.Bytes())
	if got, want := all[recording.In], "{\"id\":1}\n{\"a\":1}\n{\"b\":\n2}\nlast\n"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if got := all[recording.Out]; !strings.HasPrefix(got, "{\"id\":1}\nstream\n") {
		t.Errorf("recorded %q", got)
	}
	for e, err := range recording.Read(bytes.NewReader(kept.Bytes())) {
		if err != nil || e.HTTP != 0 != strings.Contains(string(e.Text), " HTTP ") || e.HTTP != 0 && !strings.Contains(string(e.Text), fmt.Sprintf(" HTTP %d ", e.HTTP)) {
			t.Errorf("%+v %v", e, err)
		}
	}
	for _, want := range []string{"POST /mcp HTTP 202 application/json after ", "POST /mcp HTTP 200 text/event-stream after ", "POST /mcp failed: "} {
		if !strings.Contains(all[recording.Note], want) {
			t.Errorf("no %q in the notes: %s", want, all[recording.Note])
		}
	}
}

func TestFile(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	name, err := Fresh("/opt/my server:1", time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC))
	if err != nil || !strings.HasSuffix(name, fmt.Sprintf("/talaria/recordings/20260728-120000-my-server-1-%d.jsonl", os.Getpid())) {
		t.Errorf("%s, %v", name, err)
	}
	const before, after = `{"at":"2026-07-28T12:00:00Z","dir":"note","text":"one"}` + "\n", `{"at":"2026-07-28T12:00:01Z","dir":"note","text":"two"}` + "\n"
	if err := os.WriteFile(name, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(after); err != nil {
		t.Fatal(err)
	}
	f.Close()
	text, err := os.ReadFile(name)
	if err != nil || string(text) != before+after {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder is taken for a file")
	}
	long := `{"at":"2026-07-28T12:00:00Z","dir":"out","text":"` + strings.Repeat("x", 2*maxHead)
	for text, want := range map[string]bool{
		"": true, "\n": true, before + "{": true, `{"at":"2026-07-`: true, long: true,
		"package main\n": false, "package main": false, "{}\n": false, "{}": false, strings.Repeat("\x00", 2*maxHead): false,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name)
		if (err == nil) != want {
			t.Errorf("%.40q: got %v", text, err)
		}
		if err == nil {
			f.Close()
			continue
		}
		if left, err := os.ReadFile(name); err != nil || string(left) != text {
			t.Errorf("%.40q: left %.40q, %v", text, left, err)
		}
	}
}
