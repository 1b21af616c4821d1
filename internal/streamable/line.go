package streamable

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// line is the connection of a stream that waits, for hours maybe, for something
// to send. To wait it takes the connection over from net/http, where that is
// possible, which would keep buffers and a second goroutine for it: then the
// goroutine that waits reads, to learn that the client goes, and a deadline in
// the past makes it look up and send.
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

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Wake makes Wait return, now or when it is called next. It does not block.
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

func newLine(r *http.Request) *line {
	return &line{request: r, gone: r.Context().Done(), wake: make(chan struct{}, 1)}
}

// wait returns true when Wake was called since it returned last, and false when
// the client is gone.
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
			// The end, or another request on the same connection, which nobody
			// can answer before this one is.
			return false
		}
	}
}

// look tells whether Wake was called, and makes the connection ready to wait if
// not.
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

// take takes over the connection that net/http had.
func (l *line) take(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if len(l.wake) > 0 {
		l.due = true
	}
	l.wake = nil
}

// chunk writes text of the stream to a connection that was taken over, in the
// encoding that net/http has begun. The mu of the exchange is held.
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

// close ends a connection that was taken over. The mu of the exchange is held.
func (l *line) close(timeout time.Duration) {
	if !l.lost { // what the client has not read would be waited for once more
		_ = l.write([]byte("0\r\n\r\n"), timeout) // the client may be gone
	}
	_ = l.conn.Close()
}
