package transport

import (
	"io"
	"sync"
)

// pipeSize is how many messages may wait in each direction of a Pipe.
const pipeSize = 64

// Pipe returns the two ends of a link within the process. One end reads what
// the other writes; Write waits while 64 messages are unread. After Close of
// one end, the other reads what was written before and then gets ErrPeerGone.
// Messages have no limit in length.
func Pipe() (a, b Conn) {
	ab, ba := make(chan []byte, pipeSize), make(chan []byte, pipeSize)
	aGone, bGone := make(chan struct{}), make(chan struct{})
	return &pipeEnd{in: ba, out: ab, closed: aGone, peerGone: bGone},
		&pipeEnd{in: ab, out: ba, closed: bGone, peerGone: aGone}
}

// pipeEnd is one end of a Pipe. Each direction is a channel; closed is closed
// by this end and peerGone by the other.
type pipeEnd struct {
	in       <-chan []byte
	out      chan<- []byte
	closed   chan struct{}
	peerGone <-chan struct{}
	once     sync.Once
}

// Read implements Conn.
func (p *pipeEnd) Read() ([]byte, error) {
	select {
	case <-p.closed:
		return nil, ErrClosed
	default:
	}
	select {
	case message := <-p.in:
		return message, nil
	case <-p.closed:
		return nil, ErrClosed
	case <-p.peerGone:
	}
	select {
	case message := <-p.in: // written before the peer went
		return message, nil
	default:
		return nil, ErrPeerGone
	}
}

// Write implements Conn.
func (p *pipeEnd) Write(message []byte) error {
	select {
	case <-p.closed:
		return ErrClosed
	case <-p.peerGone:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.out <- append([]byte{}, message...):
		return nil
	case <-p.closed:
		return ErrClosed
	case <-p.peerGone:
		return io.ErrClosedPipe
	}
}

// Flush implements Conn: what is written has left.
func (*pipeEnd) Flush() error { return nil }

// Close implements Conn.
func (p *pipeEnd) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}
