package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
)

// SocketOptions bound a socket, WebSockets included; nil means the defaults.
type SocketOptions struct {
	MaxMessage   int           // bytes; 0 means 4 MiB
	ReadTimeout  time.Duration // for the rest of a message that has begun; 0 means 30 s, negative none
	WriteTimeout time.Duration // for each 64 KiB, or a message over WebSocket; 0 means 30 s, negative none
	// KeepAlive is the time between pings over WebSocket; other sockets have none.
	// 0 means 25 s, negative no pings. A peer may take as long to answer one, and
	// WriteTimeout at least.
	KeepAlive time.Duration
}

// NewSocket is NewStream for a connection of package net: TCP, Unix, TLS. A
// peer that does not read what is written to it for the time allowed loses the
// connection: Read and Write fail then. One that begins a message and does not
// end it makes Read fail. A peer that is quiet between messages may be so
// forever.
func NewSocket(conn net.Conn, opts *SocketOptions) Conn {
	s := &timedConn{Conn: conn, read: facts.ReadTimeout, write: facts.WriteTimeout}
	var max int
	if opts != nil {
		max = opts.MaxMessage
		if opts.ReadTimeout != 0 {
			s.read = opts.ReadTimeout
		}
		if opts.WriteTimeout != 0 {
			s.write = opts.WriteTimeout
		}
	}
	return NewStream(s, s, &StreamOptions{MaxMessage: max})
}

// timedConn is a net.Conn whose writes have a deadline, and whose reads have
// one once a line has begun. begun and spent are used by the one goroutine that
// reads.
type timedConn struct {
	net.Conn
	read, write time.Duration // none unless positive

	begun bool          // the line that is being read; only for Read
	spent time.Duration // waiting for it
}

// Read implements io.Reader. Only the time spent in Read counts, because the
// reader may be late itself.
func (s *timedConn) Read(p []byte) (n int, err error) {
	if s.read <= 0 {
		return s.Conn.Read(p)
	}
	begin := time.Now()
	if s.begun {
		err = s.SetReadDeadline(begin.Add(s.read - s.spent))
	}
	if err == nil {
		n, err = s.Conn.Read(p)
	}
	if s.begun && errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w, which is %v: a message is one line, and ends with a newline", facts.ErrHalfMessage, s.read)
	}
	if n == 0 {
		return n, err
	}
	end := bytes.LastIndexByte(p[:n], '\n') + 1
	if end == 0 && s.begun {
		s.spent += time.Since(begin)
		return n, err
	}
	if s.begun {
		err = errors.Join(err, s.SetReadDeadline(time.Time{}))
	}
	s.begun, s.spent = end < n, 0
	return n, err
}

// chunk is how much is written under one deadline, in bytes, so that a peer
// that reads slowly but steadily is not taken for one that has stopped.
const chunk = 64 << 10

// Write implements io.Writer. After an error it closes the connection, since a
// part of a message may have been sent; that also ends a Read that waits.
func (s *timedConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), chunk)]
		if s.write > 0 {
			err = s.SetWriteDeadline(time.Now().Add(s.write))
		}
		if err == nil {
			var sent int
			sent, err = s.Conn.Write(part)
			n += sent
			p = p[sent:]
		}
	}
	if err != nil {
		_ = s.Close() // the error of Write says more
	}
	return n, err
}
