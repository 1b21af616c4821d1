package record

import (
	"bytes"
	"fmt"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// maxErrLine is how long a line of standard error may be, in bytes, before it is
// split: there may never be a newline.
const maxErrLine = 64 << 10

// lines makes entries of the lines of a stream of bytes that is written to it. It
// is used by one goroutine.
type lines struct {
	to   *recording.Writer
	dir  recording.Dir
	conn string
	rest []byte // of the line that has no end yet
	lost int    // how many bytes of it are left out, as it is too long
}

// newLines returns lines of one direction of a connection.
func newLines(to *recording.Writer, dir recording.Dir, conn string) *lines {
	return &lines{to: to, dir: dir, conn: conn}
}

// Write takes the next bytes of the stream. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part, after, ended := bytes.Cut(p, []byte{'\n'})
		l.take(part)
		if ended {
			l.flush()
		}
		p = after
	}
	return n, nil
}

func (l *lines) take(part []byte) {
	for l.dir == recording.Err && len(l.rest)+len(part) > maxErrLine {
		room := maxErrLine - len(l.rest)
		l.rest, part = append(l.rest, part[:room]...), part[room:]
		l.add()
	}
	if l.lost > 0 || len(l.rest)+len(part) > recording.MaxEntry {
		l.lost += len(l.rest) + len(part)
		l.rest = nil
		return
	}
	l.rest = append(l.rest, part...)
}

// flush ends the line, as the end of the stream does.
func (l *lines) flush() {
	if l.lost > 0 {
		l.to.Add(recording.Entry{Dir: recording.Note, Conn: l.conn, Text: tooLong(l.lost, l.dir)})
		l.lost = 0
		return
	}
	if len(l.rest) > 0 {
		l.add()
	}
}

func (l *lines) add() {
	l.to.Add(recording.Entry{Dir: l.dir, Conn: l.conn, Text: l.rest})
	l.rest = l.rest[:0]
	if cap(l.rest) > 1<<20 {
		l.rest = nil // one long line is not a reason to keep so much
	}
}

func tooLong(length int, dir recording.Dir) []byte {
	return fmt.Appendf(nil, "a text of %d bytes (%s) is left out: it is too long", length, dir)
}
