package record

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// filled is a store that has read all of the entries.
func filled(t *testing.T, entries ...recording.Entry) *Store {
	t.Helper()
	s := NewStore(func() {})
	for _, e := range entries {
		s.take(e)
	}
	t.Cleanup(s.Close)
	return s
}

func TestStore(t *testing.T) {
	at := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	s := filled(t,
		recording.Entry{At: at, Dir: recording.Out, Conn: "1", Text: []byte("{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\u202enoisrev\"}}")},
		recording.Entry{At: after(1), Dir: recording.In, Conn: "1", Text: []byte(`{"id":1,"method":"elicitation/create","params":{"name":7}}`)},
		recording.Entry{At: after(2), Dir: recording.Err, Conn: "1", Text: []byte("rounding\x1b[2J 33.3")},
		recording.Entry{At: after(3), Dir: recording.Out, Conn: "1", Text: []byte(`{"id":1,"error":{"code":-1}}`)},
		recording.Entry{At: after(12), Dir: recording.In, Conn: "1", Text: []byte(`{"id":1,"result":{"isError":true,"content":[{"text":"NEEDLE"}]}}`)},
		recording.Entry{At: after(13), Dir: recording.In, Conn: "1", Text: []byte(`{"method":"notifications/message"}`)},
		recording.Entry{At: after(13), Dir: recording.In, Conn: "1", Text: []byte(`not JSON`)},
		recording.Entry{At: after(13), Dir: recording.In, Conn: "2", Text: []byte(`{"id":1,"result":{}}`)},
	)
	if p := s.Rows(Query{}); p.Total != 6 || p.Lines != 1 {
		t.Errorf("%d rows, %d of standard error", p.Total, p.Lines)
	}
	var got []string
	for _, r := range s.Rows(Query{Limit: 100}).Rows {
		got = append(got, fmt.Sprintf("%d %s %s %s %q %v %s", r.Seq, r.From, r.Kind, r.Method, r.Name, r.Took, r.Status))
	}
	want := []string{
		`6 server broken  "an answer to no request: {\"id\":1,\"result\":{}}" 0 `,
		`5 server broken  "not JSON" 0 `,
		`4 server log notifications/message "" 0 `,
		`3 server stderr  "rounding␛[2J 33.3" 0 `,
		`2 server request elicitation/create "" 2 error`,
		`1 client request tools/call "pay�noisrev" 12 failed`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Text: "needle"}, "[1]"}, {Query{Kinds: []string{"errors"}}, "[6 5 2 1]"}, {Query{Kinds: []string{"stderr", "log"}}, "[4 3]"},
		{Query{Before: 3}, "[2 1]"}, {Query{Limit: 2}, "[6 5]"}, {Query{From: 1, Limit: 2}, "[2 1]"}, {Query{From: 4, Limit: 2}, "[5 4]"},
		{Query{From: 2, Kinds: []string{"errors"}, Limit: 2}, "[5 2]"}, {Query{From: 7}, "[]"},
	} {
		if c.q.Limit == 0 {
			c.q.Limit = 100
		}
		seqs := []int64{}
		for _, r := range s.Rows(c.q).Rows {
			seqs = append(seqs, r.Seq)
		}
		if fmt.Sprint(seqs) != c.want {
			t.Errorf("%+v: got %v, want %s", c.q, seqs, c.want)
		}
	}
	if _, request, answer, ok := s.Texts(1); !ok || !strings.Contains(string(request), "tools/call") || !strings.Contains(string(answer), "NEEDLE") {
		t.Errorf("%s, %s, %v", request, answer, ok)
	}
	if _, _, _, ok := s.Texts(7); ok {
		t.Error("there is a row that never was")
	}
}

// An answer is that of the request whose id has the same value and type.
func TestAnswersByValue(t *testing.T) {
	for _, tt := range []struct {
		request, answer string
		status          string
	}{
		{`1`, `1`, "ok"}, {`1`, `1.0`, "ok"}, {`1.0`, `1`, "ok"}, {`10`, `1e1`, "ok"}, {`0`, `-0`, "ok"}, {`9007199254740993`, `9007199254740993.0`, "ok"},
		{`"a/b"`, `"a\/b"`, "ok"}, {`"\u0061"`, `"a"`, "ok"}, {`"1"`, `"1"`, "ok"}, {`1`, `"1"`, ""}, {`"1"`, `1`, ""}, {`1`, `1.5`, ""},
		{`9007199254740993`, `9007199254740992`, ""}, {`{"a":1}`, `{"a":1}`, "ok"},
	} {
		for _, mark := range []string{"", "\ufeff"} {
			s := filled(t,
				recording.Entry{Dir: recording.Out, Conn: "1", Text: []byte(mark + `{"id":` + tt.request + `,"method":"ping","params":null}`)},
				recording.Entry{Dir: recording.Note, Conn: "1", HTTP: 202, ID: []byte(tt.answer)},
				recording.Entry{Dir: recording.In, Conn: "1", Text: []byte(mark + `{"id":` + tt.answer + `,"result":{"isError":null},"error":null}`)},
			)
			rows := s.Rows(Query{Limit: 9}).Rows
			request := rows[len(rows)-1]
			if request.Status != tt.status || (request.HTTP == 202) != (tt.status == "ok") {
				t.Errorf("%s answered with %s: %+v", tt.request, tt.answer, rows)
			}
		}
	}
}

// TestStoreBounds: the oldest are dropped, whole.
func TestStoreBounds(t *testing.T) {
	testdep.NoRace(t, "one goroutine keeps 96 MiB")
	s := filled(t)
	text := []byte(`{"id":1,"method":"ping","params":{"name":"` + strings.Repeat("x", 8<<20) + `"}}`)
	for range 12 {
		s.take(recording.Entry{Dir: recording.Out, Text: text})
	}
	p := s.Rows(Query{Limit: 100})
	if p.Total != 12 || p.Kept != 7 || len(p.Rows) != 7 || s.kept > maxKept || len(s.open) > 1 {
		t.Errorf("%d of %d rows, %d bytes, %d open", p.Kept, p.Total, s.kept, len(s.open))
	}
	if _, _, _, ok := s.Texts(5); ok {
		t.Error("a row that was dropped is there")
	}
	if row, request, _, ok := s.Texts(6); !ok || row.Seq != 6 || len(request) != len(text) {
		t.Errorf("%d, %d bytes, %v", row.Seq, len(request), ok)
	}
}

// TestSearchAgain: what was looked for before is found in what came since, and an answer
// makes a row be looked through again.
func TestSearchAgain(t *testing.T) {
	s := filled(t, recording.Entry{Dir: recording.Out, Text: []byte(`{"id":1,"method":"needles"}`)}, recording.Entry{Dir: recording.Out, Text: []byte(`{"id":2,"method":"ping"}`)})
	for _, c := range []struct{ add, text, want string }{
		{"", "needle", "[1]"},
		{`{"method":"nothing"}`, "needle", "[1]"},
		{`{"id":2,"result":"Needle"}`, "needle", "[2 1]"},
		{`{"method":"needle"}`, "needle", "[4 2 1]"},
		{"", "", "[4 3 2 1]"},
		{"", "nothing", "[3]"},
		{"", "needle", "[4 2 1]"},
	} {
		if c.add != "" {
			s.take(recording.Entry{Dir: recording.In, Text: []byte(c.add)})
		}
		seqs := []int64{}
		for _, r := range s.Rows(Query{Text: c.text, Limit: 9}).Rows {
			seqs = append(seqs, r.Seq)
		}
		if fmt.Sprint(seqs) != c.want {
			t.Errorf("%q after %s: %v, want %s", c.text, c.add, seqs, c.want)
		}
	}
	missed := 0
	for _, row := range s.rows {
		if row.missed == s.n {
			missed++
		}
	}
	if missed != 1 {
		t.Errorf("%d rows are not looked through again", missed)
	}
}

// TestFullStore: a row that drops another one costs no more than one that does not.
func TestFullStore(t *testing.T) {
	s := filled(t)
	for range maxRows {
		s.add(&Row{}, "")
	}
	const more = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range more {
		s.add(&Row{}, "")
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / more; each > 100_000 {
		t.Errorf("each row takes %d bytes", each)
	}
	if p := s.Rows(Query{Limit: 1}); p.Kept > maxRows || p.Rows[0].Seq != maxRows+more {
		t.Errorf("%d rows are kept, the newest is %d", p.Kept, p.Rows[0].Seq)
	}
}

// heldStore is a store that reads nothing until release is called, behind one entry.
func heldStore(t *testing.T) (s *Store, release func()) {
	t.Helper()
	held, reads := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s = NewStore(func() {
		once.Do(func() { close(reads) })
		<-held
	})
	release = sync.OnceFunc(func() {
		close(held)
		s.Close()
	})
	t.Cleanup(release)
	s.Add(recording.Entry{Dir: recording.Err, Text: []byte("first")})
	<-reads
	return s, release
}

// TestInline: who is watched pays for one copy of what it says, and waits for nobody.
func TestInline(t *testing.T) {
	s, _ := heldStore(t)
	long := make([]byte, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Add(recording.Entry{Dir: recording.In, Conn: "1", Text: long})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+1<<14 {
		t.Errorf("a message of %d bytes takes %d", len(long), n)
	}
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
	if n := testing.AllocsPerRun(100, func() { s.Add(recording.Entry{Dir: recording.In, Conn: "1", Text: text}) }); n > 1 {
		t.Errorf("%v allocations for an entry", n)
	}
}

// TestDropped: what comes faster than it is read is dropped, and counted; what was there
// before stays.
func TestDropped(t *testing.T) {
	s, release := heldStore(t)
	const more = 7
	for n := range maxQueued + more {
		s.Add(recording.Entry{Dir: recording.Err, Text: strconv.AppendInt(nil, int64(n), 10)})
	}
	s.Exchange("1", nil, Exchange{Method: "GET"})
	if p := s.Rows(Query{Limit: 1}); p.Dropped != more+1 {
		t.Errorf("%d of %d are dropped", p.Dropped, more+1)
	}
	release()
	if p := s.Rows(Query{Limit: 1}); p.Total != 1+maxQueued || p.Rows[0].Name != strconv.Itoa(maxQueued-1) || p.Dropped != more+1 {
		t.Errorf("%d rows, the newest is %q; %d are dropped", p.Total, p.Rows[0].Name, p.Dropped)
	}
}
