package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
)

// maxUnsent is how many bytes may wait in a stream for a peer that does not
// read before Write blocks.
const maxUnsent = 1 << 20

// StreamOptions are the limits of NewStream; nil means the defaults.
type StreamOptions struct {
	MaxMessage int // bytes; 0 means 4 MiB
}

// stream is what NewStream returns. mu guards out and the fields below it.
// writing is set while some goroutine carries unsent to the stream without
// holding mu; the others append to unsent and return. err is set once, by the
// first failure or by Close.
type stream struct {
	in         *bufio.Reader
	maxMessage int
	closer     func() error
	closed     atomic.Bool

	mu      sync.Mutex
	space   sync.Cond // signalled when unsent shrinks
	out     io.Writer
	unsent  []byte
	spare   []byte
	writing bool
	err     error // why nothing can be written any more
}

// NewStream returns a Conn of lines over a byte stream, such as standard input
// and output or a pipe, that reads from r and writes to w. One message is one
// line (basic/transports/stdio of every revision). Empty lines are skipped. A
// newline inside a message that is written becomes a space, which means the same
// in JSON. Up to 1 MiB may wait for a peer that does not read before Write waits
// too. Close closes r and w if they can be closed.
func NewStream(r io.Reader, w io.Writer, opts *StreamOptions) Conn {
	s := &stream{in: bufio.NewReaderSize(r, 64<<10), out: w, maxMessage: facts.MaxMessage}
	s.space.L = &s.mu
	if opts != nil && opts.MaxMessage > 0 {
		s.maxMessage = opts.MaxMessage
	}
	s.closer = func() error { return errors.Join(closeOne(w), closeOther(r, w)) }
	return s
}

// closeOne closes v if it can be closed.
func closeOne(v any) error {
	if c, ok := v.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// closeOther closes r unless it is the same as w, as with a socket.
func closeOther(r, w any) error {
	if r == w {
		return nil
	}
	return closeOne(r)
}

// Read implements Conn.
func (s *stream) Read() ([]byte, error) {
	for {
		var line []byte
		var err error
		if failed := safely.Call(func() { line, err = s.readLine() }); failed != nil {
			err = safely.Known(failed)
		}
		if s.closed.Load() {
			return nil, ErrClosed
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// readLine returns the next line in memory of its own. The last line may lack
// its newline.
func (s *stream) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if len(line)+len(part) > s.maxMessage+1 {
			return nil, s.skipLine(line, part, err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// skipLine skips the rest of a line that is too long, of which line and part
// have been read, and returns a *TooLongError. err is the state of reading so far.
func (s *stream) skipLine(line, part []byte, err error) error {
	long := &TooLongError{Limit: s.maxMessage}
	_, _ = long.Write(line)
	_, _ = long.Write(bytes.TrimRight(part, "\r\n"))
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = s.in.ReadSlice('\n')
		_, _ = long.Write(bytes.TrimRight(part, "\r\n"))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return long
}

// Write implements Conn. Of the goroutines that write, one at a time carries
// what has gathered to the stream, so that messages written at the same time
// leave together and no goroutine is needed for writing.
func (s *stream) Write(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.unsent) > maxUnsent && s.err == nil {
		s.space.Wait()
	}
	if s.err != nil {
		return s.err
	}
	start := len(s.unsent)
	s.unsent = append(s.unsent, message...)
	for i := bytes.IndexByte(s.unsent[start:], '\n'); i >= 0; i = bytes.IndexByte(s.unsent[start:], '\n') {
		start += i
		s.unsent[start] = ' '
	}
	s.unsent = append(s.unsent, '\n')
	if !s.writing {
		s.carry(true)
	}
	return s.err
}

// Flush implements Conn.
func (s *stream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && (s.writing || len(s.unsent) > 0) {
		if s.writing {
			s.space.Wait()
			continue
		}
		s.carry(false)
	}
	return s.err
}

// carry writes until nothing is left. With gather it first lets other
// goroutines add to the batch. s.mu is held when it is called and when it
// returns, but not while it writes.
func (s *stream) carry(gather bool) {
	s.writing = true
	for len(s.unsent) > 0 && s.err == nil {
		if gather {
			// Others that are about to write get to it first.
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
		}
		batch := s.unsent
		s.unsent = s.spare[:0]
		err := s.push(batch)
		if s.spare = batch; cap(batch) > maxUnsent {
			s.spare = nil
		}
		if err != nil && s.err == nil {
			s.err = err
		}
		s.space.Broadcast()
	}
	s.writing = false
	s.space.Broadcast()
}

// errWriter is the error of a stream whose writer ended the goroutine that
// wrote.
var errWriter = errors.New("transport: the writer of the stream failed")

// push writes one batch. s.mu is held when it is called and when it returns,
// but not while it writes. The writer may be users' code: if it does not
// return, the stream is broken and those that wait for it continue.
func (s *stream) push(batch []byte) (err error) {
	s.mu.Unlock()
	returned := false
	defer func() {
		s.mu.Lock()
		if !returned {
			s.err, s.writing = errWriter, false
			s.space.Broadcast()
		}
	}()
	if failed := safely.Call(func() { _, err = s.out.Write(batch) }); failed != nil {
		err = safely.Known(failed)
	}
	returned = true
	return err
}

// Close implements Conn.
func (s *stream) Close() error {
	s.closed.Store(true)
	s.mu.Lock()
	if s.err == nil {
		s.err = ErrClosed
	}
	s.space.Broadcast()
	s.mu.Unlock()
	return s.closer()
}
