package streamable

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// bodyReader reads the bodies of requests and limits how long they may take.
// Setting a deadline on the connection for every request would cost more than
// most requests do, although most bodies have arrived already. So each body is
// put into a list while it is being read, and a single timer, which runs only
// while the list is not empty, sets a deadline for those that take too long.
type bodyReader struct {
	max   int64         // bytes
	limit time.Duration // 0 means none

	mu    sync.Mutex
	first *reading // the oldest
	last  *reading
	armed bool
}

// reading is the place of one body in the list, which is ordered by since. It
// is part of the exchange, so that it costs no allocation. All but w is guarded
// by bodyReader.mu.
type reading struct {
	w          http.ResponseWriter
	since      time.Time
	prev, next *reading
}

// read reads the body of r within the time limit. A fault comes with its HTTP
// status; long is what is known of a message over the limit, nil for other faults.
func (b *bodyReader) read(out *exchange, r *http.Request) (body []byte, long *transport.TooLongError, status int, fault *protocol.Error) {
	b.enter(&out.reading)
	body, long, status, fault = b.readAll(out.w, r)
	if late := b.leave(&out.reading); late && fault == nil {
		// The last byte came as the time ran out: the deadline may have ended
		// the request's context already.
		body, status, fault = nil, http.StatusRequestTimeout, unreadable()
	}
	if long != nil {
		b.limitRest(out.w)
	}
	return body, long, status, fault
}

// readAll reads the body up to the limit of its length. Its results are those of read.
func (b *bodyReader) readAll(w http.ResponseWriter, r *http.Request) (body []byte, long *transport.TooLongError, status int, fault *protocol.Error) {
	if 0 <= r.ContentLength && r.ContentLength <= min(promised, b.max) {
		body = make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, nil, unreadableStatus(err), unreadable()
		}
		return body, nil, 0, nil
	}
	if r.ContentLength <= b.max {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, b.max+1)); err != nil {
			return nil, nil, unreadableStatus(err), unreadable()
		}
		if int64(len(body)) <= b.max {
			return body, nil, 0, nil
		}
	}
	long = b.skip(w, r, body)
	return nil, long, http.StatusRequestEntityTooLarge, wire.Refused("too_long", protocol.CodeInvalidRequest, "%v", long)
}

// restOfBody is how much of a body beyond the limit is read for the id of the request,
// in bytes. It is what net/http reads to keep the connection.
const restOfBody = 256 << 10

// skip reads on in a body that is too long, of which begin has been read. It returns
// what is known of the message.
func (b *bodyReader) skip(w http.ResponseWriter, r *http.Request, begin []byte) *transport.TooLongError {
	long := &transport.TooLongError{Limit: int(b.max)}
	_, _ = long.Write(begin)
	if r.Header.Get("Expect") == "" || begin != nil { // otherwise the client waits before it sends the body
		_, err := io.Copy(long, http.MaxBytesReader(w, r.Body, b.max+restOfBody-int64(len(begin))))
		if err != nil {
			long.Size = 0 // unknown
		}
	}
	long.Size = max(long.Size, r.ContentLength)
	return long
}

// promised is the length in bytes up to which Content-Length is believed and
// memory taken at once. The memory for a longer body grows as it arrives, so
// that a client cannot claim memory without sending.
const promised = 64 << 10

// unreadableStatus returns 408 for a body that took too long and 400 for one
// that broke off.
func unreadableStatus(err error) int {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// unreadable is the error for a body that did not arrive as a whole.
func unreadable() *protocol.Error {
	return wire.Refused("incomplete", protocol.CodeParseError, "the body could not be read")
}

// enter puts r at the end of the list and starts the timer, unless it runs.
func (b *bodyReader) enter(r *reading) {
	if b.limit == 0 {
		return
	}
	r.since = time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.prev = b.last; r.prev != nil {
		r.prev.next = r
	} else {
		b.first = r
	}
	b.last = r
	if !b.armed {
		b.armed = true
		time.AfterFunc(b.limit, b.check)
	}
}

// leave takes r out of the list and reports whether the timer had done so
// before, because the time was up.
func (b *bodyReader) leave(r *reading) (late bool) {
	if b.limit == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.prev == nil && b.first != r {
		return true
	}
	b.remove(r)
	return false
}

// remove takes r out of the list. The caller holds b.mu.
func (b *bodyReader) remove(r *reading) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		b.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		b.last = r.prev
	}
	r.prev, r.next = nil, nil
}

// check ends the bodies whose time is up and comes back for the next.
func (b *bodyReader) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for b.first != nil {
		left := b.first.since.Add(b.limit).Sub(now)
		if left > 0 {
			time.AfterFunc(left, b.check)
			return
		}
		// The reader is inside Read; this makes it return. Writers without
		// deadlines are left to the server's own timeouts.
		_ = http.NewResponseController(b.first.w).SetReadDeadline(now)
		b.remove(b.first)
	}
	b.armed = false
}

// limitRest puts a deadline on what is left of a refused request's body, which
// net/http reads before it answers.
func (b *bodyReader) limitRest(w http.ResponseWriter) {
	if b.limit > 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.limit))
	}
}
