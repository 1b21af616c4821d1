package inspector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// TestSave: the traffic is saved without secrets, as a file that is followed, with the same
// rows; a call of it is made again at a server, and the results are compared.
func TestSave(t *testing.T) {
	const password = "hunter2-hunter2"
	live := remembering(t, "")
	finished(t, live, "login", `{"user":"Ann","password":"`+password+`"}`)
	finished(t, live, "sum", `{"a":1,"b":2}`)
	finished(t, live, "fail", `{}`)
	until(t, live, func() bool { // the traffic is taken aside
		page, calls := live.store.Rows(record.Query{Limit: 1000, Kinds: []string{"request"}}), 0
		for _, r := range page.Rows {
			if r.Method == "tools/call" && r.Status != "" {
				calls++
			}
		}
		return calls == 3
	})
	var saved struct{ Text, Name string }
	if code := ask(t, live, "GET", "/api/save", "", &saved); code != http.StatusOK || !strings.HasSuffix(saved.Name, ".jsonl") {
		t.Fatalf("%d %+v", code, saved)
	}
	if strings.Contains(saved.Text, password) || !strings.Contains(saved.Text, masked) {
		t.Errorf("the password is in it:\n%s", saved.Text)
	}
	name := filepath.Join(t.TempDir(), saved.Name)
	if err := os.WriteFile(name, []byte(saved.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := New(Options{Target: "file"})
	t.Cleanup(shown.Close)
	if err := shown.Follow(name); err != nil {
		t.Fatal(err)
	}
	rows := func(i *Inspector) (list []string) {
		for _, r := range i.store.Rows(record.Query{Limit: 1000, From: 1}).Rows {
			list = append(list, fmt.Sprint(r.Kind, r.From, r.Method, r.Name, r.Status, r.At.UTC(), r.Took))
		}
		return list
	}
	want := rows(live)
	until(t, shown, func() bool { return len(rows(shown)) == len(want) && snapshot(shown).Traffic == int64(len(want)) })
	until(t, shown, func() bool { return slices.Equal(rows(shown), want) })

	api := API(shown, live)
	post := func(path, body string, into any) int {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body)))
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %s", path, w.Body)
		}
		return w.Code
	}
	for _, r := range shown.store.Rows(record.Query{Limit: 1000, From: 1}).Rows {
		var made struct {
			Call  call
			Error string
		}
		code := post("/api/1/replay", fmt.Sprintf(`{"seq":%d}`, r.Seq), &made)
		if can := r.Method == "tools/call"; can != (code == http.StatusOK) {
			t.Errorf("%s: %d %s", r.Method, code, made.Error)
		}
		if code != http.StatusOK {
			continue
		}
		until(t, live, func() bool { c, _ := live.calls.get(made.Call.ID); return c.State != "running" })
		var diff struct{ Lines []string }
		if code := post(fmt.Sprintf("/api/1/calls/%d/against", made.Call.ID), fmt.Sprintf(`{"seq":%d}`, r.Seq), &diff); (code == http.StatusOK) != (r.Status != "error") {
			t.Errorf("%s: %d", r.Name, code)
		}
		if differs := r.Name == "login"; differs != (len(diff.Lines) > 0) { // it counts
			t.Errorf("%s: %q", r.Name, diff.Lines)
		}
	}
	var refused struct{ Error string }
	for _, path := range []string{"/api/replay", "/api/calls/1/against"} {
		if code := post(path, `{"seq":1}`, &refused); code == http.StatusOK {
			t.Errorf("%s of the recording itself is answered", path)
		}
	}
	w := httptest.NewRecorder()
	API(live).ServeHTTP(w, httptest.NewRequest("POST", "/api/replay", strings.NewReader(`{"seq":1}`)))
	if w.Code != http.StatusConflict {
		t.Errorf("without a recording: %d %s", w.Code, w.Body)
	}
}

// TestLogLevels: log notifications are found from a level on.
func TestLogLevels(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls.jsonl")
	var text strings.Builder
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "nonsense"}
	for n, level := range levels {
		message, _ := json.Marshal(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"logger":"db","data":{"n":%d}}}`, level, n))
		fmt.Fprintf(&text, `{"at":"2026-07-28T10:00:00Z","dir":"in","text":%s}`+"\n", message)
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	i := New(Options{Target: "file"})
	t.Cleanup(i.Close)
	if err := i.Follow(name); err != nil {
		t.Fatal(err)
	}
	until(t, i, func() bool { return snapshot(i).Traffic == int64(len(levels)) })
	for least, want := range map[string]int{"log": 9, "log:debug": 8, "log:warning": 5, "log:emergency": 1, "log:nonsense": 0} {
		var page record.Page
		ask(t, i, "GET", "/api/traffic?kinds="+least, "", &page)
		if len(page.Rows) != want {
			t.Errorf("%s: %d rows", least, len(page.Rows))
		}
		for _, r := range page.Rows {
			if r.Level == "" || !strings.HasPrefix(r.Name, "db: {") {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestSaveLong: a message that takes too long to be masked is saved without its content, and with what
// pairs it with its request; the others are saved.
func TestSaveLong(t *testing.T) {
	testdep.NoRace(t, "one goroutine compares long texts")
	i := New(Options{Target: "target"})
	defer i.Close()
	i.mask.add(strings.Repeat("a", 100<<10) + "b")
	for dir, text := range map[recording.Dir]string{
		recording.Out: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"short"}}`,
		recording.In:  `{"jsonrpc":"2.0","id":1,"result":{"content":[],"a":"` + strings.Repeat("a", 500<<10) + `"}}`,
	} {
		i.store.Add(recording.Entry{At: time.Now(), Dir: dir, Conn: "1", Text: []byte(text)})
	}
	until(t, i, func() bool { return len(i.store.Entries(maxSaved)) == 2 })
	var saved struct {
		Text string
		Bare int
	}
	code := ask(t, i, "GET", "/api/save", "", &saved)
	if code != http.StatusOK || saved.Bare != 1 || len(saved.Text) > 1000 || !strings.Contains(saved.Text, `\"name\":\"short\"`) || !strings.Contains(saved.Text, `{\"id\":1,\"jsonrpc\":\"2.0\",\"left\":\"512055 bytes`) {
		t.Errorf("%d, %d without content:\n%.2000s", code, saved.Bare, saved.Text)
	}
}

// TestWithoutContent: what remains of a message that is too long.
func TestWithoutContent(t *testing.T) {
	const note = " bytes, which take too long to be masked"
	for text, want := range map[string]string{
		`{"id":1,"method":"ping","params":{}}`:                     `{"id":1,"jsonrpc":"2.0","left":"36$","method":"ping"}`,
		`{"method":"notifications/message","params":{"data":"x"}}`: `{"jsonrpc":"2.0","left":"56$","method":"notifications/message"}`,
		`{"id":"a","result":{"x":1}}`:                              `{"id":"a","jsonrpc":"2.0","left":"27$","result":{}}`,
		`{"id":"a","error":{"code":-1,"message":"x"}}`:             `{"error":{"code":0,"message":"44$"},"id":"a","jsonrpc":"2.0","left":"44$"}`,
		`{"id":"` + strings.Repeat("x", 300) + `","result":{}}`:    `321$`,
		`{"result":{}}`: `13$`,
		`[]`:            `2$`,
		`a line`:        `6$`,
		``:              `0$`,
	} {
		if got := withoutContent([]byte(text)); got != strings.ReplaceAll(want, "$", note) {
			t.Errorf("%.100s: %s", text, got)
		}
	}
}
