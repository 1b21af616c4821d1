package sselink_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/transport"
)

// all reads a stream to its end and writes each event as type|data|id.
func all(r *sselink.Reader) (events []string, err error) {
	for {
		e, err := r.Next()
		if _, long := errors.AsType[*transport.TooLongError](err); long {
			events = append(events, "(too long)")
			continue
		}
		if err != nil {
			return events, err
		}
		events = append(events, fmt.Sprintf("%s|%s|%s", e.Type, e.Data, r.LastID()))
	}
}

func TestReader(t *testing.T) {
	x10 := strings.Repeat("x", 10)
	tests := []struct {
		name, stream string
		want         []string
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []string{"message|a|"}},
		{"no space", "data:a\n\n", []string{"message|a|"}},
		{"two spaces", "data:  a\n\n", []string{"message| a|"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"message|a|", "message|b|"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"message|a|", "message|b|"}},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []string{"message|a\nb\nc|"}},
		{"lines", "data: a\ndata\ndata: b\n\n", []string{"message|a\n\nb|"}},
		{"type", "event: endpoint\ndata: /x\n\n", []string{"endpoint|/x|"}},
		{"type only", "event: ping\n\ndata: a\n\n", []string{"message|a|"}},
		{"comments", ": hello\n\n:\ndata: a\n: b\n\n", []string{"message|a|"}},
		{"ids stay", "id: 1\ndata: a\n\ndata: b\n\n", []string{"message|a|1", "message|b|1"}},
		{"priming", "id: 7\nretry: 5\ndata:\n\n", []string{"message||7"}},
		{"priming without data", "id: 7\n\n", []string{"message||7"}},
		{"empty id", "id: 1\ndata: a\n\nid\ndata: b\n\n", []string{"message|a|1", "message|b|"}},
		{"NUL in the id", "id: a\x00b\ndata: a\n\n", []string{"message|a|"}},
		{"unknown field", "colour: red\ndata: a\n\n", []string{"message|a|"}},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"message|a|"}},
		{"half an event", "data: a\n\ndata: b\n", []string{"message|a|"}},
		{"half a line", "data: a\n\ndata: b", []string{"message|a|"}},
		{"id of half an event", "id: 1\ndata: a\n\nid: 2\ndata: b", []string{"message|a|1"}},
		{"empty lines", "\n\n\r\n\rdata: a\n\n\n", []string{"message|a|"}},
		{"as long as allowed", "data: " + x10 + "\n\n", []string{"message|" + x10 + "|"}},
		{"too long", "data: " + x10 + "y\nid: 4\n\ndata: a\n\n", []string{"(too long)", "message|a|4"}},
		{"too long in lines", "data: " + x10 + "\ndata: " + x10 + "\n\ndata: a\n\n", []string{"(too long)", "message|a|"}},
		{"a comment of any length", "data: b\n:" + strings.Repeat("x", 20_000) + "\n\n", []string{"message|b|"}},
		{"a comment a little over the line's limit", "data: b\n:" + strings.Repeat("x", 4_301) + "\n\n", []string{"message|b|"}},
		{"an unknown field of any length", strings.Repeat("x", 20_000) + ":y\ndata: b\n\n", []string{"message|b|"}},
		{"an id of any length", "id: 1\nid:" + strings.Repeat("x", 20_000) + "\ndata: b\n\n", []string{"message|b|1"}},
		{"a line over its limit, with text that looks like a line", "x" + strings.Repeat("data: c", 4_000) + "\rdata: b\r\n\n", []string{"message|b|"}},
		{"a little too long for a line", "data: " + strings.Repeat("x", 4_301) + "\n\ndata: a\n\n", []string{"(too long)", "message|a|"}},
		{"far too long", "data: " + strings.Repeat("x", 20_000) + "\ndata: b\n\ndata: a\n\n", []string{"(too long)", "message|a|"}},
	}
	ways := map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"half":          iotest.HalfReader,
		"byte for byte": iotest.OneByteReader,
		"EOF with data": iotest.DataErrReader,
	}
	for _, tt := range tests {
		for how, wrap := range ways {
			r := sselink.NewReader(wrap(strings.NewReader(tt.stream)), 10)
			got, err := all(r)
			if !slices.Equal(got, tt.want) || err != io.EOF {
				t.Errorf("%s, read %s: %.80q, %v; want %q, EOF", tt.name, how, got, err, tt.want)
			}
			r.Reset(strings.NewReader("data: again\n\n"))
			if got, _ := all(r); !slices.Equal(got, []string{"message|again|"}) && !slices.Equal(got, []string{"(too long)"}) {
				t.Errorf("%s: after Reset %q", tt.name, got)
			}
		}
	}
}

func TestReaderRetry(t *testing.T) {
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"retry: 500", 500 * time.Millisecond, true},
		{"retry: 0", 0, true},
		{"retry:", 0, false},
		{"retry: -5", 0, false},
		{"retry: 5s", 0, false},
		{"retry: 1.5", 0, false},
		{"retry: 99999999999999999999999", 24 * time.Hour, true},
	}
	for _, tt := range tests {
		r := sselink.NewReader(strings.NewReader(tt.value+"\n\n"), 10)
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%q: %v, want no event", tt.value, err)
		}
		if got, ok := r.Retry(); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %v, %v; want %v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

// An error of the stream is not taken for its end.
func TestReaderBroken(t *testing.T) {
	broken := errors.New("broken")
	r := sselink.NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 10)
	if got, err := all(r); !slices.Equal(got, []string{"message|a|"}) || err != broken {
		t.Errorf("%q, %v", got, err)
	}
}

// A line or an event without end costs no memory.
func TestReaderEndless(t *testing.T) {
	for name, text := range map[string]string{"line": "x", "event": "data: x\n", "comment": ":\n", "id": "id: 1\n"} {
		r := sselink.NewReader(io.LimitReader(&repeat{text: text}, 8<<20), 1<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := all(r)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err != io.EOF || used > 1<<20 {
			t.Errorf("endless %s: %v with %d bytes of memory", name, err, used)
		}
	}
}

// repeat is text over and over.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at%len(r.text)]
		r.at++
	}
	return len(p), nil
}

// chunks reads in pieces of size bytes.
type chunks struct {
	in   io.Reader
	size int
}

func (c chunks) Read(p []byte) (int, error) { return c.in.Read(p[:min(len(p), c.size)]) }

// FuzzReader reads any stream whole, byte for byte and in pieces, with the long
// runs that limits are about, and finds the same events each time.
func FuzzReader(f *testing.F) {
	f.Add("id: 1\r\ndata: a\r\n\r\nevent: x\ndata: b\n\n", uint16(3), uint16(0))
	f.Add("\ufeffdata: a\r\rretry: 5\n\n:\n\n", uint16(7), uint16(0))
	f.Add("data: ~\n\ndata\n\n", uint16(64), uint16(200))
	f.Add("data: a\n:~\r\n\nid:~\rdata: ~~\n\n", uint16(4095), uint16(4301))
	f.Fuzz(func(t *testing.T, stream string, size, run uint16) {
		const limit = 100
		if strings.Count(stream, "~") > 20 {
			t.Skip("long enough")
		}
		stream = strings.ReplaceAll(stream, "~", strings.Repeat("x", int(run%9000)))
		whole, err := all(sselink.NewReader(strings.NewReader(stream), limit))
		if err != io.EOF {
			t.Fatalf("ended with %v", err)
		}
		for _, size := range []int{1, int(size) + 1} {
			got, err := all(sselink.NewReader(chunks{strings.NewReader(stream), size}, limit))
			if err != io.EOF || !slices.Equal(whole, got) {
				t.Fatalf("whole %q\nin pieces of %d %q, %v", whole, size, got, err)
			}
		}
		for _, event := range whole {
			if len(event) > limit+256+4<<10+2 {
				t.Fatalf("an event of %d bytes", len(event))
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	text := "event: message\nid: 17\ndata: " + strings.Repeat("x", 500) + "\n\n"
	r := sselink.NewReader(io.LimitReader(&repeat{text: text}, int64(b.N*len(text))), 1<<20)
	b.ReportAllocs()
	for range b.N {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
