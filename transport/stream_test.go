package transport

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/talaria-go/mcp/internal/facts"
)

// tooLong stands for a TooLongError among the messages that readAll returns.
const tooLong = "(too long)"

// readAll reads until an error that ends the link.
func readAll(s Conn) (messages []string, err error) {
	for {
		message, err := s.Read()
		long, ok := errors.AsType[*TooLongError](err)
		switch {
		case ok && long.Limit == s.(*stream).maxMessage:
			messages = append(messages, tooLong)
		case err != nil:
			return messages, err
		default:
			messages = append(messages, string(message))
		}
	}
}

func TestStreamRead(t *testing.T) {
	const limit = 10
	big := strings.Repeat("x", 200<<10) // larger than the buffer
	tests := []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", nil},
		{"one", "{}\n", []string{"{}"}},
		{"two", "1\n2\n", []string{"1", "2"}},
		{"CRLF", "1\r\n2\r\n", []string{"1", "2"}},
		{"empty lines", "\n\n1\n\r\n \t\n2\n\n", []string{"1", "2"}},
		{"spaces around", "  {} \n", []string{"{}"}},
		{"last without newline", "1\n2", []string{"1", "2"}},
		{"last is spaces", "1\n  ", []string{"1"}},
		{"as long as allowed", "0123456789\n1\n", []string{"0123456789", "1"}},
		{"one too long", "0123456789a\n1\n", []string{tooLong, "1"}},
		{"much too long", big + "\n1\n", []string{tooLong, "1"}},
		{"too long twice", big + "\n" + big + "\n1\n", []string{tooLong, tooLong, "1"}},
		{"too long at the end", "1\n" + big, []string{"1", tooLong}},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"whole":         func(r io.Reader) io.Reader { return r },
		"half":          iotest.HalfReader,
		"byte for byte": iotest.OneByteReader,
		"EOF with data": iotest.DataErrReader,
	}
	for _, tt := range tests {
		for how, wrap := range readers {
			s := NewStream(wrap(strings.NewReader(tt.input)), io.Discard, &StreamOptions{MaxMessage: limit})
			got, err := readAll(s)
			if !slices.Equal(got, tt.want) || err != io.EOF {
				t.Errorf("%s, read %s: %.60q, %v; want %.60q, EOF", tt.name, how, got, err, tt.want)
			}
			if _, err := s.Read(); err != io.EOF {
				t.Errorf("%s: after the end %v, want EOF again", tt.name, err)
			}
		}
	}
}

// A message longer than the buffer, but within the limit, is whole.
func TestStreamReadLong(t *testing.T) {
	want := []string{strings.Repeat("a", facts.MaxMessage), "b"}
	got, err := readAll(NewStream(strings.NewReader(strings.Join(want, "\n")), io.Discard, nil))
	if !slices.Equal(got, want) || err != io.EOF {
		t.Errorf("got %d messages, %v; want both whole", len(got), err)
	}
	got, _ = readAll(NewStream(strings.NewReader(want[0]+"aa\nb"), io.Discard, nil))
	if !slices.Equal(got, []string{tooLong, "b"}) {
		t.Errorf("got %d messages, want a refusal and b", len(got))
	}
}

// An error of the stream ends it, also in the middle of a long line; half a
// message is not handed out.
func TestStreamReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, input := range []string{"", "1\n", "1\nhalf", "1\n" + strings.Repeat("x", 200<<10)} {
		s := NewStream(io.MultiReader(strings.NewReader(input), iotest.ErrReader(broken)), io.Discard, &StreamOptions{MaxMessage: 10})
		got, err := readAll(s)
		if err != broken || len(got) > 1 || slices.Contains(got, tooLong) {
			t.Errorf("%.10q: %.20q, %v; want the error", input, got, err)
		}
	}
}

// What Read returns is the caller's: the next Read leaves it alone.
func TestStreamReadOwned(t *testing.T) {
	s := NewStream(strings.NewReader("first\nother\n"), io.Discard, nil)
	first, _ := s.Read()
	if other, _ := s.Read(); string(first) != "first" || string(other) != "other" {
		t.Errorf("got %q and %q", first, other)
	}
}

// TestStreamReadOutline checks that the id of a line that is too long is read wherever
// it stands, and that the size is that of the line.
func TestStreamReadOutline(t *testing.T) {
	for _, size := range []int{0, 500, 600, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200 << 10} {
		long := `{"id":8,"text":"\"id\":9` + strings.Repeat("x", size) + `"}`
		for line, want := range map[string]string{
			`{"jsonrpc":"2.0","id":7,"method":"m","params":` + long + `}`:     `"id":7,`,
			`{"jsonrpc":"2.0","method":"m","params":` + long + `,"id":"a b"}`: `"id":"a b"}`,
			`{"result":` + long + `,"id":7,"other":` + long + `}`:             `"id":7}`,
			`{"error":` + long + `,"id":null}`:                                `"id":null}`,
			`{"params":` + long + `}`:                                         `}`,
			`[{"id":7,"params":` + long + `}]`:                                ``,
			`x` + long:                                                        ``,
		} {
			s := NewStream(strings.NewReader(line+"\r\n1\n"), io.Discard, &StreamOptions{MaxMessage: 10})
			_, err := s.Read()
			got, ok := errors.AsType[*TooLongError](err)
			if !ok || got.Size != int64(len(line)) {
				t.Fatalf("%.40s: %v, want the size %d", line, err, len(line))
			}
			if text, whole := got.Message(); whole != (want != "") || !strings.Contains(string(text), want) || strings.Count(string(text), `"id"`) != strings.Count(want, `"id"`) && size > 0 {
				t.Errorf("%.40s: message %s, %v, want %s", line, text, whole, want)
			}
			if next, _ := s.Read(); string(next) != "1" {
				t.Errorf("%.40s: then %q", line, next)
			}
		}
	}
}

// A line without end costs no memory.
func TestStreamReadEndless(t *testing.T) {
	s := NewStream(io.LimitReader(zeros{}, 64<<20), io.Discard, &StreamOptions{MaxMessage: 1 << 10})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _ := readAll(s)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !slices.Equal(got, []string{tooLong}) || used > 1<<20 {
		t.Errorf("read %q with %d bytes of memory", got, used)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// lines splits what was written, and fails if the last line is not whole.
func lines(t *testing.T, text string) []string {
	t.Helper()
	if text == "" {
		return nil
	}
	text, whole := strings.CutSuffix(text, "\n")
	if !whole {
		t.Errorf("the last line is not whole: %.60q", text)
	}
	return strings.Split(text, "\n")
}

// However the bytes arrive, the messages are the lines.
func FuzzStreamRead(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n0123456789abcdef\nc"), uint8(3))
	f.Add([]byte("\n \n"), uint8(1))
	f.Fuzz(func(t *testing.T, input []byte, step uint8) {
		const limit = 12
		var want []string
		rest := input
		for len(rest) > 0 {
			line, after, _ := bytes.Cut(rest, []byte{'\n'})
			ended := len(line) < len(rest)
			rest = after
			switch trimmed := bytes.TrimSpace(line); {
			case len(line) > limit+1 || ended && len(line) > limit:
				want = append(want, tooLong)
			case len(trimmed) > 0:
				want = append(want, string(trimmed))
			}
		}
		s := NewStream(&stepReader{input, int(step)%7 + 1}, io.Discard, &StreamOptions{MaxMessage: limit})
		got, err := readAll(s)
		if !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("%q: %q, %v; want %q", input, got, err, want)
		}
	})
}

// stepReader gives a few bytes at a time.
type stepReader struct {
	rest []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest[:min(r.step, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}
