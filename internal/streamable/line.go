package streamable

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// line is the connection of a stream that waits for something to send, possibly
// for hours.
//
// It has two states. At first net/http has the connection, and wait waits on
// channels. With take it takes the connection over, where that is possible,
// because net/http would keep buffers and a second goroutine for each. From
// then on the goroutine that waits reads from the connection, to notice that
// the client goes, and Wake sets a read deadline in the past to interrupt it.
// It does not go back.
type line struct {
	request *http.Request // nil once it was tried to take the connection over
	gone    <-chan struct{}
	one     [1]byte

	mu   sync.Mutex
	wake chan struct{} // while net/http has the connection; holds one
	conn net.Conn      // nil while net/http has it
	lost bool          // a write to conn failed; the mu of the exchange guards it
	due  bool          // Wake was called, since conn is there
}

// past is a deadline that has expired, which interrupts a read.
var past = time.Unix(1, 0)

// Wake makes wait return, now or when it is called next. It does not block and
// may be called by any goroutine.
func (l *line) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		select {
		case l.wake <- struct{}{}:
		default: // it will return anyway
		}
		return
	}
	if !l.due {
		l.due = true
		_ = l.conn.SetReadDeadline(past) // fails when it is closed, which ends the read too
	}
}

// newLine returns the line of a request, whose connection net/http still has.
func newLine(r *http.Request) *line {
	return &line{request: r, gone: r.Context().Done(), wake: make(chan struct{}, 1)}
}

// wait waits until Wake is called, or returns true at once if it was called
// since wait has last returned. It returns false when the client is gone. One
// goroutine may call it at a time.
func (l *line) wait() bool {
	if l.conn == nil {
		select {
		case <-l.wake:
			return true
		case <-l.gone:
			return false
		}
	}
	for {
		if l.look() {
			return true
		}
		_, err := l.conn.Read(l.one[:])
		if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
			// The end, or the next request on the same connection, which cannot be answered
			// before this one.
			return false
		}
	}
}

// look reports whether Wake was called; if so, it clears the deadline, so that
// the next read waits.
func (l *line) look() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due {
		l.due = false
		_ = l.conn.SetReadDeadline(time.Time{}) // the next read tells
		return true
	}
	return false
}

// take takes over the connection that net/http had. A Wake that has not been
// seen yet is kept.
func (l *line) take(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if len(l.wake) > 0 {
		l.due = true
	}
	l.wake = nil
}

// chunk writes text to a connection that was taken over, as one chunk of the
// chunked encoding that net/http has begun. The caller holds the mu of the
// exchange.
func (l *line) chunk(text []byte, timeout time.Duration) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	framed := strconv.AppendInt((*buffer)[:0], int64(len(text)), 16)
	framed = append(framed, "\r\n"...)
	framed = append(append(framed, text...), "\r\n"...)
	if cap(framed) <= maxPooled {
		*buffer = framed
	}
	return l.write(framed, timeout)
}

// write writes text within timeout; 0 means no limit. The caller holds the mu
// of the exchange.
func (l *line) write(text []byte, timeout time.Duration) error {
	if timeout > 0 {
		if err := l.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(text)
	l.lost = l.lost || err != nil
	return err
}

// close ends the response with the last chunk and closes a connection that was
// taken over. The caller holds the mu of the exchange.
func (l *line) close(timeout time.Duration) {
	if !l.lost { // otherwise the unread data would delay the close again
		_ = l.write([]byte("0\r\n\r\n"), timeout) // the client may be gone
	}
	_ = l.conn.Close()
}
