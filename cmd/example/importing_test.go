package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// sampleDir returns a directory with the sample file.
func sampleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImportSample(t *testing.T) {
	c := connect(t, newBench(t, sampleDir(t)))
	r, progress := c.call("import_events", `{"path":"events.csv","pace":"0s"}`)
	if r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	if len(progress) < 2 {
		t.Fatalf("got %d notifications, want some", len(progress))
	}
	if last := progress[len(progress)-1].Params; last.Progress != last.Total || last.Total == 0 {
		t.Errorf("progress ended with %v", last)
	}
	imported := decoded[ImportOut](t, r.Structured)
	if imported.Rows != 11 || imported.Imported != 5 || imported.Rejected != 6 {
		t.Errorf("got %+v", imported)
	}
	for i, want := range []string{
		`4: conflict with event 1 "Planning"`, "5: /date: ", "6: /start: ", "8: /title: is required", "9: /duration: ", "10: wrong number of fields",
	} {
		if got := fmt.Sprintf("%d: %s", imported.Problems[i].Line, imported.Problems[i].Problem); !strings.HasPrefix(got, want) {
			t.Errorf("problem %d: got %s, want %s…", i, got, want)
		}
	}
	events := must[ListEventsOut](c, "list_events", `{"from":"2030-03-01"}`)
	if events.Total != 5 || events.Events[3].Title != `Talk: "Typed tools"` {
		t.Errorf("got %+v", events)
	}
	if again := must[ImportOut](c, "import_events", `{"path":"events.csv","pace":"0s"}`); again.Imported != 0 || again.Rejected != 11 {
		t.Errorf("a second import: got %+v, want conflicts alone", again)
	}
}

func TestImportForms(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, newBench(t, dir))
	const day = "2030-05-01"
	for i, test := range []struct {
		name, content string
		want          ImportOut
	}{
		{"header alone", "title,date,start\n", ImportOut{}},
		{"byte order mark, other order, CRLF", "\ufeffstart,date,title\r\n10:00, " + day + " ,A\r\n", ImportOut{Rows: 1, Imported: 1}},
		{"no newline at the end", "title,date,start,duration\nB," + day + ",12:00,30m", ImportOut{Rows: 1, Imported: 1}},
		{"a column that has no meaning", "title,date,start,note\nC," + day + ",14:00,x\nC," + day + ",14:00,\n",
			ImportOut{Rows: 2, Imported: 1, Rejected: 1, Problems: []Problem{{2, "/note: unknown property; allowed: title, date, start, duration"}}}},
		{"a quote that never ends", "title,date,start\n\"D," + day + ",15:00\nE," + day + ",16:00\n",
			ImportOut{Rows: 1, Rejected: 1, Problems: []Problem{{2, `extraneous or missing " in quoted-field`}}}},
		{"a stray quote", "title,date,start\nF\"," + day + ",15:00\nG," + day + ",16:00\n",
			ImportOut{Rows: 2, Imported: 1, Rejected: 1, Problems: []Problem{{2, `bare " in non-quoted-field`}}}},
		{"a row over two lines", "title,date,start\n\"H\nI\"," + day + ",19:00\nJ\n",
			ImportOut{Rows: 2, Imported: 1, Rejected: 1, Problems: []Problem{{4, "wrong number of fields"}}}},
	} {
		name := fmt.Sprintf("%d.csv", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if test.want.Problems == nil {
			test.want.Problems = []Problem{}
		}
		got := must[ImportOut](c, "import_events", fmt.Sprintf(`{"path":%q,"pace":"0s"}`, name))
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestImportRefused(t *testing.T) {
	dir := sampleDir(t)
	for name, content := range map[string]string{
		"empty.csv": "", "latin1.csv": "title,date,start\n\xff,2030-01-01,10:00\n", "quote.csv": "\"title,date,start\n",
		"long.csv": "title,date,start\n" + strings.Repeat("x,2030-01-01,10:00\n", maxRecords+1),
		"huge.csv": strings.Repeat("x", maxImportSize+1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(outside, []byte("title,date,start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.csv")); err != nil {
		t.Logf("no symbolic links here: %v", err)
	}
	c := connect(t, newBench(t, dir))
	for path, want := range map[string]string{
		"none.csv": "no such file", ".": "not a regular file", "../secret.csv": "escapes",
		outside: "escapes", "link.csv": "escapes", "empty.csv": "the first line must name the columns: EOF", "latin1.csv": "not UTF-8", "quote.csv": "the first line", "long.csv": "more than 5000 rows", "huge.csv": "not a regular file of at most",
	} {
		if got := c.fails("import_events", fmt.Sprintf(`{"path":%q,"pace":"0s"}`, path)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to contain %q", path, got, want)
		}
	}
}

func TestImportCancelled(t *testing.T) {
	dir := sampleDir(t)
	c := connect(t, newBench(t, dir))
	id := c.start("import_events", `{"path":"events.csv","pace":"500ms"}`)
	if m := c.receive(); m.Method != "notifications/progress" {
		t.Fatalf("got %+v, want progress", m)
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	c.close() // which waits for the call
	if _, err := os.Stat(filepath.Join(dir, "events.json")); !os.IsNotExist(err) {
		t.Errorf("a cancelled import kept something: %v", err)
	}
}
