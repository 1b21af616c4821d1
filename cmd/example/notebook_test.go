package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSearchNotes(t *testing.T) {
	w := newBench(t, t.TempDir())
	c := connect(t, w)
	for i, arguments := range []string{
		`{"text":"Buy milk","tags":["home","shop"]}`,
		`{"text":"call Ada","tags":["work"]}`,
		`{"text":"Buy paint","tags":["shop"]}`,
	} {
		w.notes.now = func() time.Time { return noon.AddDate(0, 0, i) }
		if got := must[Note](c, "add_note", arguments); got.ID != i+1 {
			t.Fatalf("got note %+v, want number %d", got, i+1)
		}
	}
	for _, test := range []struct{ arguments, want string }{
		{`{}`, "3 of 3: 3 2 1"},
		{`{"sort":"oldest"}`, "3 of 3: 1 2 3"},
		{`{"sort":"text"}`, "3 of 3: 1 3 2"},
		{`{"limit":1}`, "1 of 3: 3"},
		{`{"text":"BUY"}`, "2 of 2: 3 1"},
		{`{"tags":["SHOP","home"]}`, "1 of 1: 1"},
		{`{"since":"2030-03-02"}`, "2 of 2: 3 2"},
		{`{"since":"2030-03-04"}`, "0 of 0:"},
		{`{"text":"ada","tags":["shop"]}`, "0 of 0:"},
		{`{"text":null,"since":"","limit":"2"}`, "2 of 3: 3 2"}, // models send such things for "not set"
	} {
		out := must[SearchNotesOut](c, "search_notes", test.arguments)
		got := fmt.Sprintf("%d of %d:", len(out.Notes), out.Total)
		for _, note := range out.Notes {
			got += fmt.Sprint(" ", note.ID)
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.arguments, got, test.want)
		}
	}
}

func TestNotesSurviveRestart(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, newBench(t, dir))
	must[Note](c, "add_note", `{"text":"first"}`)
	must[Note](c, "add_note", `{"text":"second","tags":["kept"]}`)
	must[Note](c, "delete_note", `{"id":2}`)
	must[Note](c, "add_note", `{"text":"third"}`)
	c.close()

	c = connect(t, newBench(t, dir))
	out := must[SearchNotesOut](c, "search_notes", `{"sort":"oldest"}`)
	if out.Total != 2 || out.Notes[0].Text != "first" || out.Notes[1].ID != 3 {
		t.Errorf("got %+v, want notes 1 and 3", out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want notes.json and nothing else", entries, err)
	}
}

// Two servers on one file must not lose each other's notes.
func TestNotesShared(t *testing.T) {
	dir := t.TempDir()
	const each = 20
	var group sync.WaitGroup
	for range 2 {
		w := newBench(t, dir)
		for range 4 {
			group.Go(func() {
				for range each {
					if err := w.notes.file.Update(t.Context(), func(doc *document[Note]) error {
						doc.add(func(id int) Note { return Note{ID: id, Text: "x"} })
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if notes, err := newBench(t, dir).notes.file.Read(t.Context()); err != nil || len(notes) != 8*each {
		t.Errorf("got %d notes, want %d: %v", len(notes), 8*each, err)
	}
}

func TestFileLimits(t *testing.T) {
	f, err := openFile[Note]("notes", filepath.Join(t.TempDir(), "notes.json"), 2)
	if err != nil {
		t.Fatal(err)
	}
	add := func(text string) error {
		return f.Update(t.Context(), func(doc *document[Note]) error {
			doc.add(func(id int) Note { return Note{ID: id, Text: text} })
			return nil
		})
	}
	if err := add(strings.Repeat("x", maxFileSize)); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("a huge note: got %v", err)
	}
	if err := errors.Join(add("a"), add("b")); err != nil {
		t.Fatal(err)
	}
	if err := add("c"); err == nil || !strings.Contains(err.Error(), "no room for more than 2 notes") {
		t.Errorf("a third note: got %v", err)
	}
	if notes, err := f.Read(t.Context()); err != nil || len(notes) != 2 {
		t.Errorf("got %d notes, want 2: %v", len(notes), err)
	}
}

func TestFileWaitsForItsTurn(t *testing.T) {
	f, err := openFile[Note]("notes", filepath.Join(t.TempDir(), "notes.json"), 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = f.Update(t.Context(), func(*document[Note]) error {
		cancel()
		_, err := f.Read(ctx)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled wait", err)
	}
}

func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.json")
	for _, test := range []struct{ content, want string }{
		{"", "damaged: line 1: EOF"},
		{"{\"version\":1,\n\"records\":[}", "damaged: line 2"},
		{`{"version":1,"records":"none"}`, "damaged: line 1"},
		{`{"version":1,"lastId":1,"records":[]} tail`, "something follows"},
		{`{"version":2,"lastId":1,"records":[]}`, "its version is 2"},
		{`{"version":1,"notes":[]}`, `unknown field "notes"`},
		{`{"version":1,"records":[{"id":1},{"id":1}]}`, "id 1 is there twice"},
		{`{"version":1,"records":[{"id":0}]}`, "id 0"},
	} {
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openFile[Note]("notes", path, maxNotes)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", test.content, err, test.want)
		}
	}
	for _, test := range []struct{ path, want string }{
		{dir, "not a regular file"},
		{filepath.Join(dir, "none", "notes.json"), "its directory: no such file"},
		{filepath.Join(path, "notes.json"), "its directory is a file"},
	} {
		if _, err := openFile[Note]("notes", test.path, maxNotes); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.path, err, test.want)
		}
	}
}

// A file that is damaged while the server runs costs calls, and is left alone.
func TestFileDamagedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, newBench(t, dir))
	must[Note](c, "add_note", `{"text":"first"}`)
	path := filepath.Join(dir, "notes.json")
	if err := os.WriteFile(path, []byte("oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, call := range [][2]string{{"add_note", `{"text":"second"}`}, {"search_notes", `{}`}} {
		if got := c.fails(call[0], call[1]); !strings.Contains(got, "it is damaged: line 1") {
			t.Errorf("%s: got %q", call[0], got)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "oops" {
		t.Errorf("the file is %q, %v now", data, err)
	}
}
