package transport

import (
	"net"
	"time"
)

// DefaultWriteTimeout is how long a peer may take to accept what is written if
// options name no time.
const DefaultWriteTimeout = 30 * time.Second

// SocketOptions bound a socket; nil means the defaults.
type SocketOptions struct {
	MaxMessage   int           // bytes; 0 means DefaultMaxMessage
	WriteTimeout time.Duration // for each 64 KiB; 0 means DefaultWriteTimeout, negative none
}

// NewSocket returns a Stream over a connection of package net: TCP, Unix, TLS.
// A peer that does not read what is written to it for the time allowed loses
// the connection: Read and Write fail then.
func NewSocket(conn net.Conn, opts *SocketOptions) *Stream {
	s := &timedConn{Conn: conn, timeout: DefaultWriteTimeout}
	var max int
	if opts != nil {
		max = opts.MaxMessage
		if opts.WriteTimeout != 0 {
			s.timeout = opts.WriteTimeout
		}
	}
	return NewStream(s, s, &StreamOptions{MaxMessage: max})
}

// timedConn is a net.Conn whose writes have a deadline.
type timedConn struct {
	net.Conn
	timeout time.Duration // none unless positive
}

// chunk is how much is written under one deadline, so that a slow but steady
// reader of much is not taken for a stalled one.
const chunk = 64 << 10

// Write implements io.Writer. After an error the stream is of no more use,
// because part of a message may have left, so it closes the connection, which
// ends whoever waits in Read.
func (s *timedConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), chunk)]
		if s.timeout > 0 {
			err = s.SetWriteDeadline(time.Now().Add(s.timeout))
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
