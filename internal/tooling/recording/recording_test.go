package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// all reads entries and errors, one text for each.
func all(t *testing.T, text string) []string {
	t.Helper()
	var list []string
	for e, err := range Read(strings.NewReader(text)) {
		if err != nil {
			list = append(list, "error: "+err.Error())
			continue
		}
		list = append(list, fmt.Sprintf("%s %s %q", e.Dir, e.Conn, e.Text))
	}
	return list
}

func TestRoundTrip(t *testing.T) {
	at := time.Date(2026, 7, 28, 12, 0, 0, 1000, time.UTC)
	var b bytes.Buffer
	w := NewWriter(&b, 1<<20)
	texts := []string{`{"a":9007199254740993}`, "", "ü <&> \u2028", "\xff\xfe", "a\tb\r", strings.Repeat("x", 70000)}
	for i, text := range texts {
		w.Add(Entry{At: at, Dir: []Dir{Out, In, Err, Note}[i%4], Conn: "7", Text: []byte(text)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(b.String(), "\n")
	if want := `{"at":"2026-07-28T12:00:00.000001Z","dir":"out","conn":"7","text":"{\"a\":9007199254740993}"}`; first != want {
		t.Errorf("the first line is %s, want %s", first, want)
	}
	n := 0
	for e, err := range Read(&b) {
		if err != nil || string(e.Text) != texts[n] || !e.At.Equal(at) {
			t.Errorf("entry %d: %.40q at %v, %v", n, e.Text, e.At, err)
		}
		n++
	}
	if n != len(texts) {
		t.Errorf("%d entries", n)
	}
}

func TestRead(t *testing.T) {
	good := `{"at":"2026-07-28T12:00:00Z","dir":"in","text":"x"}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a line that is still being written", good + `{"at":"2026-0`, `in  "x"`},
		{"a line that is none does not hide the next", "nonsense\n\n" + good, `error: line 1 is not an entry|in  "x"`},
		{"an unknown kind", `{"dir":"up"}` + "\n" + good, `error: line 1 is not an entry|in  "x"`},
		{"members of later days", `{"at":"2026-07-28T12:00:00Z","dir":"in","text":"x","new":1}` + "\n", `in  "x"`},
	} {
		got := all(t, c.text)
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "|")
		}
		if len(got) != len(want) {
			t.Errorf("%s: got %q", c.name, got)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: got %q, want %q", c.name, got[i], want[i])
			}
		}
	}
	failing := io.MultiReader(strings.NewReader(good), &failingReader{})
	var last error
	for _, err := range Read(failing) {
		last = err
	}
	if !errors.Is(last, errBroken) {
		t.Errorf("the error of the reader is %v", last)
	}
}

var errBroken = errors.New("broken")

type failingReader struct{}

func (failingReader) Read([]byte) (int, error)  { return 0, errBroken }
func (failingReader) Write([]byte) (int, error) { return 0, errBroken }

// TestBounds: a file has an end, and what is too long is named.
// Lines that other programs have written or joined are entries, too.
func TestForms(t *testing.T) {
	at := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	for name, line := range map[string]string{
		"as it is":         `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","http":200,"id":1}`,
		"a mark":           "\ufeff" + `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","http":200,"id":1}` + "\r",
		"N.0":              `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","http":200.0,"id":1.0}`,
		"an exponent":      `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","http":2e2,"id":"1"}`,
		"without a zone":   `{"at":"2026-07-28T12:00:00","dir":"note","conn":"1","text":"x","http":200}`,
		"null":             `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","bytes":null,"http":200,"id":null}`,
		"half a pair":      `{"at":"2026-07-28T12:00:00Z","dir":"note","conn":"1","text":"x","http":200,"note":"\ud83d"}`,
		"spaces around it": ` {"at" : "2026-07-28 12:00:00Z", "dir":"note","conn":"1","text":"x","http":200} `,
	} {
		n := 0
		for e, err := range Read(strings.NewReader(line + "\n\ufeff" + strings.TrimPrefix(line, "\ufeff") + "\n")) {
			n++
			if err != nil || !e.At.Equal(at) || e.Dir != Note || e.Conn != "1" || string(e.Text) != "x" || e.HTTP != 200 || string(e.ID) == "null" {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
		}
		if n != 2 {
			t.Errorf("%s: %d entries", name, n)
		}
	}
}

func TestBounds(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, 300)
	for range 50 {
		w.Add(Entry{Dir: In, Text: []byte(strings.Repeat("y", 40))})
	}
	err := w.Close()
	list := all(t, b.String())
	if n := len(list); n < 2 || n > 4 || !strings.Contains(list[n-1], "the recording is full") || err != nil {
		t.Errorf("%d entries: %q, %v", n, list, err)
	}
	b.Reset()
	w = NewWriter(&b, 1<<20)
	w.Add(Entry{Dir: In, Text: make([]byte, MaxEntry+1)})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(all(t, b.String()), "|"); got != `note  "a text of 67108865 bytes (in) is left out: it is too long"` {
		t.Errorf("got %s", got)
	}
	w = NewWriter(failingReader{}, 1<<20)
	w.Add(Entry{Dir: In})
	w.Add(Entry{Dir: In})
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
}

// TestTogether: entries of many goroutines do not mix.
func TestTogether(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, 1<<20)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				w.Add(Entry{Dir: In, Text: []byte("text")})
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if list := all(t, b.String()); len(list) != 400 {
		t.Errorf("%d entries", len(list))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at":"2026-07-28T12:00:00Z","dir":"in","text":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for e, err := range Read(bytes.NewReader(text)) {
			if err != nil {
				continue
			}
			again, err := e.Append(nil)
			if err != nil {
				continue // a time that has no text
			}
			for e2, err := range Read(bytes.NewReader(again)) {
				if err != nil || !bytes.Equal(e.Text, e2.Text) || e.Dir != e2.Dir {
					t.Errorf("%q became %q, %v", e.Text, e2.Text, err)
				}
			}
		}
	})
}
