package sselink

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/talaria-go/mcp/transport"
)

// MediaType is the content type of a stream of events.
const MediaType = "text/event-stream"

// Event is one event. Data is valid until the next one is read.
type Event struct {
	Type string // "message" unless the stream says otherwise
	Data []byte // lines are joined by newlines; may be empty
}

// Reader reads the events of one stream. It is not safe for concurrent use.
type Reader struct {
	in    io.Reader
	max   int
	buf   []byte // read ahead
	pos   int    // where in buf the next line begins
	err   error  // of in
	begun bool   // a byte order mark may no longer come
	fed   bool   // the last line ended with CR, whose LF may still come

	cutting bool // the rest of a line is skipped
	skip    bool // the rest of an event is skipped

	data     []byte // of the event that is being read
	hasData  bool
	kind     string
	nextID   string
	id       string
	retry    time.Duration
	hasRetry bool
}

// Limits of what is remembered next to the data of an event. A line may be
// maxExtra longer than the data of an event, which leaves room for the name of
// every field and for the longest id.
const (
	maxID    = 4 << 10
	maxKind  = 256
	maxExtra = maxID + 64
)

// NewReader returns a Reader of in. max is the greatest length of an event's
// data in bytes.
func NewReader(in io.Reader, max int) *Reader {
	return &Reader{in: in, max: max}
}

// maxKept is how large a buffer may be to be kept for another stream.
const maxKept = 64 << 10

// Reset makes r read another stream, with the memory that it has.
func (r *Reader) Reset(in io.Reader) {
	buf, data := r.buf, r.data
	if cap(buf) > maxKept {
		buf = nil
	}
	if cap(data) > maxKept {
		data = nil
	}
	*r = Reader{in: in, max: r.max, buf: buf[:0], data: data[:0]}
}

// LastID returns the id of the last event that was read, "" if there was none.
func (r *Reader) LastID() string { return r.id }

// SetLastID sets the id of the last event, for a stream that continues one that
// has ended.
func (r *Reader) SetLastID(id string) { r.id, r.nextID = id, id }

// Retry returns how long to wait before connecting again, if the stream has
// said so.
func (r *Reader) Retry() (time.Duration, bool) { return r.retry, r.hasRetry }

// Next returns the next event, also one without data if it has an id: such
// events tell a client where to resume. At the end of the stream it returns
// io.EOF; an event that was not complete is lost. A *transport.TooLongError
// costs one event, whose end is not waited for. Every other error ends the
// stream.
func (r *Reader) Next() (Event, error) {
	r.data, r.hasData, r.kind = r.data[:0], false, ""
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 && !r.field(line) {
			if r.skip {
				continue
			}
			r.skip = true
			return Event{}, r.tooLong(line)
		}
		if len(line) > 0 {
			continue
		}
		moved := r.nextID != r.id
		r.id = r.nextID
		if skipped := r.skip; skipped || !r.hasData && !moved {
			r.data, r.hasData, r.kind, r.skip = r.data[:0], false, "", false
			continue
		}
		return r.event(), nil
	}
}

// tooLong returns the error of an event that is too long because of a line.
func (r *Reader) tooLong(line []byte) error {
	long := &transport.TooLongError{Limit: r.max}
	_, _ = long.Write(r.data)
	if len(r.data) <= r.max { // otherwise it has the line
		_, value, _ := bytes.Cut(line, []byte(":"))
		_, _ = long.Write(value)
	}
	long.Size = 0 // the end is not waited for
	return long
}

// event returns the event whose fields have been read.
func (r *Reader) event() Event {
	e := Event{Type: r.kind, Data: r.data}
	if e.Type == "" {
		e.Type = "message"
	}
	return e
}

// field handles one line that is not empty. It returns false if the event
// exceeds its limit.
func (r *Reader) field(line []byte) bool {
	name, value := line, []byte(nil)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		if name, value = line[:i], line[i+1:]; len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		if r.skip || len(r.data)+1+len(value) > r.max+1 {
			return false
		}
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		r.hasData = true
		r.data = append(r.data, value...)
		return len(r.data) <= r.max
	case "event":
		switch {
		case string(value) == "message":
			r.kind = "message"
		case len(value) <= maxKind:
			r.kind = string(value)
		default:
			r.kind = string(value[:maxKind])
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 && len(value) <= maxID {
			r.nextID = string(value)
		}
	case "retry":
		r.setRetry(value)
	}
	return true
}

// maxRetry keeps waits from overflowing the arithmetic on them.
const maxRetry = 24 * time.Hour

// setRetry handles the field retry, a number of milliseconds. Anything else is
// ignored.
func (r *Reader) setRetry(value []byte) {
	if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
		return
	}
	r.retry, r.hasRetry = maxRetry, true
	if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms < maxRetry.Milliseconds() {
		r.retry = time.Duration(ms) * time.Millisecond
	}
}

// line returns the next line without its end; it is valid until the next call.
// Of a line that is too long only the beginning is returned, always the same
// number of bytes however the stream is split, which is enough for field to
// notice; the rest is skipped and not waited for. A last line without an end is
// dropped, as the standard demands.
func (r *Reader) line() ([]byte, error) {
	scanned, limit := r.pos, r.max+maxExtra
	for {
		if r.fed && r.pos < len(r.buf) {
			r.fed = false
			if r.buf[r.pos] == '\n' {
				r.pos++
			}
			scanned = max(scanned, r.pos)
		}
		if r.mark() {
			scanned = max(scanned, r.pos)
			i := indexEnd(r.buf[scanned:])
			if i >= 0 {
				scanned += i
			} else {
				scanned = len(r.buf)
			}
			if !r.cutting && scanned-r.pos > limit {
				line := r.buf[r.pos : r.pos+limit+1]
				r.pos, r.cutting = scanned, true
				return line, nil
			}
			switch cut := r.cutting; {
			case i >= 0:
				line := r.buf[r.pos:scanned]
				r.fed, r.cutting = r.buf[scanned] == '\r', false
				r.pos = scanned + 1
				if !cut {
					return line, nil
				}
				scanned = r.pos
				continue
			case cut:
				r.pos = scanned
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		scanned -= r.fill()
	}
}

// mark skips a byte order mark at the beginning. It returns false while it
// cannot tell whether there is one.
func (r *Reader) mark() bool {
	const bom = "\xef\xbb\xbf"
	if r.begun {
		return true
	}
	switch have := r.buf[:min(len(r.buf), len(bom))]; {
	case string(have) == bom:
		r.pos += len(bom)
	case len(have) < len(bom) && string(have) == bom[:len(have)] && r.err == nil:
		return false
	}
	r.begun = true
	return true
}

// indexEnd returns the index of the first line end in b, or -1.
func indexEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		b = b[:i]
	}
	if j := bytes.IndexByte(b, '\r'); j >= 0 {
		return j
	}
	return i
}

// firstBuffer is the size in bytes that a buffer begins with. noProgress bounds
// the calls of a broken io.Reader that returns neither bytes nor an error.
const (
	firstBuffer = 4 << 10
	noProgress  = 100 // reads that return nothing at all
)

// fill reads more. It returns by how much the bytes in the buffer have moved
// towards its beginning.
func (r *Reader) fill() (moved int) {
	if r.pos > 0 {
		moved = r.pos
		r.buf = r.buf[:copy(r.buf, r.buf[r.pos:])]
		r.pos = 0
	}
	if len(r.buf) == cap(r.buf) {
		bigger := make([]byte, len(r.buf), max(firstBuffer, 2*cap(r.buf)))
		copy(bigger, r.buf)
		r.buf = bigger
	}
	for range noProgress {
		n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if err != nil {
			r.err = err
			return moved
		}
		if n > 0 {
			return moved
		}
	}
	r.err = io.ErrNoProgress
	return moved
}
