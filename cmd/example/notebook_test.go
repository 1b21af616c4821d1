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
	out := must[SearchNotesOut](c, "search_notes", `{}`)
	if out.Total != 2 || out.Notes[1].Text != "first" || out.Notes[0].ID != 3 {
		t.Errorf("got %+v, want notes 1 and 3", out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // notes.json with its lock, and that of the events
		t.Errorf("got %v, %v, want nothing half written", entries, err)
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
						doc.add(func(id int) Note { return Note{ID: id, Text: "x", Tags: []string{}, Created: noon} })
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if doc, err := newBench(t, dir).notes.file.Read(t.Context()); err != nil || len(doc.Records) != 8*each {
		t.Errorf("got %d notes, want %d: %v", len(doc.Records), 8*each, err)
	}
}

// A file that could not be read again is not written.
func TestFileLimits(t *testing.T) {
	f, err := openFile[Note](filepath.Join(t.TempDir(), "notes.json"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(count int) error {
		return f.Update(t.Context(), func(doc *document[Note]) error {
			for range count {
				doc.add(func(id int) Note { return Note{ID: id, Text: "x", Tags: []string{}, Created: noon} })
			}
			return nil
		})
	}
	if err := add(maxRecords); err != nil {
		t.Fatal(err)
	}
	if err := add(1); err == nil || !strings.Contains(err.Error(), "no room for more than 5000 records") {
		t.Errorf("one more: got %v", err)
	}
	if doc, err := f.Read(t.Context()); err != nil || len(doc.Records) != maxRecords || doc.LastID != maxRecords {
		t.Errorf("got %d notes, want %d: %v", len(doc.Records), maxRecords, err)
	}
}

func TestFileWaitsForItsTurn(t *testing.T) {
	f, err := openFile[Note](filepath.Join(t.TempDir(), "notes.json"))
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
		{"", "/lastId: is required"},
		{"{\"lastId\":1,\n\"records\":[}", "not valid JSON: unexpected '}', want a value at byte 24"},
		{`{"lastId":1,"records":"none"}`, "/records: must be an array"},
		{`{"lastId":1,"records":[]} tail`, "after the value"},
		{`{"lastId":1,"notes":[]}`, "/notes: unknown property"},
		{`{"lastId":1,"records":[{"id":1,"text":"x","tags":[],"created":"2030-01-01T00:00:00Z"},{"id":1,"text":"y","tags":[],"created":"2030-01-01T00:00:00Z"}]}`, "all differ in id"},
		{`{"lastId":1,"records":[{"id":0,"text":"x","tags":[],"created":"yesterday"}]}`, "/records/0/id: must be at least 1; got 0; /records/0/created"},
	} {
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openFile[Note](path)
		if err == nil || !strings.Contains(err.Error(), "notes.json cannot be read: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want one line with %q", test.content, err, test.want)
		}
	}
	for _, test := range []struct{ path, want string }{
		{dir, "is a directory"},
		{filepath.Join(path, "notes.json"), "not a directory"},
	} {
		if _, err := openFile[Note](test.path); err == nil || !strings.Contains(err.Error(), test.want) {
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
		if got := c.fails(call[0], call[1]); !strings.Contains(got, "notes.json cannot be read: (root): is not valid JSON") {
			t.Errorf("%s: got %q", call[0], got)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "oops" {
		t.Errorf("the file is %q, %v now", data, err)
	}
}
