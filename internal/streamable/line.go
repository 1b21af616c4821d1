package streamable

import (
	"bufio"
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

// Line is the client's end of a stream that waits.
type Line interface {
	// Send sends a message.
	Send(message []byte) error
	// KeepAlive sends a sign of life, which clients ignore, once a message has
	// made the answer a stream.
	KeepAlive() error
	// Wait returns true when the Wake of the Call was called since it returned
	// last, and false when the client is gone.
	Wait() bool
}

// Waker returns the func that makes the Wait of the answer's Line return. The
// func does not block, and keeps nothing of the request in memory.
func (c *Call) Waker() func() {
	if c.out.line == nil {
		c.out.line = newLine(c.HTTP)
	}
	return c.out.line.Wake
}

func newLine(r *http.Request) *line {
	return &line{request: r, gone: r.Context().Done(), wake: make(chan struct{}, 1)}
}

// Wait implements Line.
func (e *exchange) Wait() bool {
	l := e.line
	if l.request != nil {
		e.takeOver(l.request)
		l.request = nil
	}
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

// takeOver takes the connection, unless something stands between that would
// change or count what is written, or the protocol has no connection of its own
// for the request.
func (e *exchange) takeOver(r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	header := e.w.Header()
	if e.keep || !e.started || r.ProtoMajor != 1 || r.ProtoMinor < 1 ||
		header["Content-Encoding"] != nil || header["Content-Length"] != nil || header["Transfer-Encoding"] != nil {
		return
	}
	conn, buffered, err := e.controller().Hijack()
	if err != nil {
		return // net/http keeps it
	}
	// The goroutine of net/http, which is ours now, holds on to this reader but does
	// not use it any more: without its buffer the stream costs a fifth less.
	if buffered != nil && buffered.Reader != nil {
		*buffered.Reader = bufio.Reader{}
	}
	l := e.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if len(l.wake) > 0 {
		l.due = true
	}
	l.wake = nil
}

// chunk writes text of the stream to a connection that was taken over, in the
// encoding that net/http has begun. e.mu is held.
func (e *exchange) chunk(text []byte) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	framed := strconv.AppendInt((*buffer)[:0], int64(len(text)), 16)
	framed = append(framed, "\r\n"...)
	framed = append(append(framed, text...), "\r\n"...)
	if cap(framed) <= maxPooled {
		*buffer = framed
	}
	return e.write(framed)
}

func (e *exchange) write(text []byte) error {
	conn := e.line.conn
	if e.timeout > 0 {
		if err := conn.SetWriteDeadline(time.Now().Add(e.timeout)); err != nil {
			return err
		}
	}
	_, err := conn.Write(text)
	e.line.lost = e.line.lost || err != nil
	return err
}

// hangUp ends a connection that was taken over.
func (e *exchange) hangUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.line == nil || e.line.conn == nil {
		return
	}
	if !e.line.lost { // what the client has not read would be waited for once more
		_ = e.write([]byte("0\r\n\r\n")) // the client may be gone
	}
	_ = e.line.conn.Close()
}
