// Package recording is the format in which messages between a client and a server are kept in a
// file: one JSON object on each line,
//
//	{"at":"2026-07-28T12:00:00.000001Z","dir":"out","conn":"1","text":"{\"jsonrpc\":\"2.0\",…}"}
//
// in the order in which things happened. Text is what was there, to the byte; where
// that is no UTF-8, it is in "bytes" instead, as base64. A file may be appended to by
// several processes, as each entry is written at once, and may break off in the
// middle of an entry.
//
// A recording has all messages, including secrets: only its owner may read a file.
package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Dir says what an entry is.
type Dir string

// The kinds of entries.
const (
	Out  Dir = "out"  // a message to the server
	In   Dir = "in"   // a message of the server
	Err  Dir = "err"  // a line that the server has written to standard error
	Note Dir = "note" // what the recorder itself says: a start, an end, an HTTP status
)

// Entry is one thing that happened.
type Entry struct {
	At   time.Time
	Dir  Dir
	Conn string // tells connections, or processes, apart
	Text []byte

	// HTTP is, of a note, the status with which a message to the server was answered:
	// the request with this ID, or without one the last message of the connection.
	HTTP int
	ID   json.RawMessage
}

// line is an Entry as it is written.
type line struct {
	At    time.Time `json:"at"`
	Dir   Dir       `json:"dir"`
	Conn  string    `json:"conn,omitempty"`
	Text  *string   `json:"text,omitempty"`
	Bytes []byte    `json:"bytes,omitempty"`

	HTTP int             `json:"http,omitempty"`
	ID   json.RawMessage `json:"id,omitempty"`
}

// MaxEntry is how long the text of an entry may be, in bytes. A longer text is
// left out, and a note says so.
const MaxEntry = 64 << 20

// Append adds an entry to dst, with its newline.
func (e *Entry) Append(dst []byte) ([]byte, error) {
	l := line{At: e.At.UTC(), Dir: e.Dir, Conn: e.Conn, HTTP: e.HTTP, ID: e.ID}
	if utf8.Valid(e.Text) {
		text := string(e.Text)
		l.Text = &text
	} else {
		l.Bytes = e.Text
	}
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return b.Bytes(), err
}

// Read reads entries. An invalid line is an error, after which the next follows; a last
// line without its end is still being written, and is left out. An error of r, or a line
// that no Writer has written, as it is too long, ends the sequence.
func Read(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(nil, 6*MaxEntry+1<<10) // each byte of a text may take six
		s.Split(whole)
		for n := 1; s.Scan(); n++ {
			if len(bytes.TrimSpace(s.Bytes())) == 0 {
				continue
			}
			e, err := parse(s.Bytes())
			if err != nil {
				err = fmt.Errorf("line %d is not an entry of a recording: %w", n, err)
			}
			if !yield(e, err) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(Entry{}, err)
		}
	}
}

// whole splits off lines that have an end.
func whole(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

func parse(text []byte) (Entry, error) {
	var l line
	if err := jsonx.Unmarshal(text, &l); err != nil {
		return Entry{}, err
	}
	e := Entry{At: l.At, Dir: l.Dir, Conn: l.Conn, HTTP: l.HTTP, ID: l.ID, Text: l.Bytes}
	if l.Text != nil {
		e.Text = []byte(*l.Text)
	}
	switch e.Dir {
	case Out, In, Err, Note:
		return e, nil
	}
	return Entry{}, fmt.Errorf("dir is %.40q", e.Dir)
}
