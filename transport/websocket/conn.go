package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/transport"
)

// closeTime is how long Close waits for the peer's close frame, and lastWrite
// how long it waits before that for a Write to end.
const (
	closeTime = time.Second
	lastWrite = 100 * time.Millisecond
)

// conn is a transport.Conn over a WebSocket. Each message is a text message.
//
// It is open until closeWith is called, by Close, by a fault of the peer, or by
// a limit of time; closed is set then, and fault says why if this side found a
// fault. writing is a lock that Close can wait for with a limit.
type conn struct {
	ws         *websocket.Conn
	below      net.Conn // what ws goes over; nil if that is not known
	maxMessage int
	rest       time.Duration // for a message that has begun; none unless positive
	timeout    time.Duration // for a write; none unless positive

	ctx    context.Context // ends when the connection is closed by force
	cancel context.CancelFunc
	pings  sync.WaitGroup

	reading atomic.Bool   // Read waits for a message
	reads   atomic.Uint64 // times that Read has returned

	writing chan struct{} // holds one item while a Write is in progress
	closing sync.Once
	closed  atomic.Bool
	fault   atomic.Pointer[error] // why the connection was closed from this side
}

var _ transport.Conn = (*conn)(nil)

// newConn returns a conn over a WebSocket and starts its pings. below is the
// network connection, or nil if it is not known.
func newConn(ws *websocket.Conn, below net.Conn, opts transport.SocketOptions) *conn {
	ws.SetReadLimit(-1) // Read has its own, which spares the connection
	c := &conn{ws: ws, below: below, maxMessage: opts.MaxMessage, rest: opts.ReadTimeout, timeout: opts.WriteTimeout, writing: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if opts.KeepAlive > 0 {
		c.pings.Go(func() { c.keepAlive(opts.KeepAlive) })
	}
	return c
}

// Read implements transport.Conn. A binary message, and text that is no UTF-8,
// end the connection, as RFC 6455 demands of the latter.
func (c *conn) Read() ([]byte, error) {
	c.reading.Store(true)
	defer func() {
		c.reads.Add(1)
		c.reading.Store(false)
	}()
	kind, r, err := c.ws.Reader(c.ctx)
	if err != nil {
		return nil, c.readError(err)
	}
	if kind != websocket.MessageText {
		return nil, c.fail(websocket.StatusUnsupportedData, "messages must be text")
	}
	if c.rest > 0 {
		defer time.AfterFunc(c.rest, c.giveUp).Stop()
	}
	message, err := io.ReadAll(io.LimitReader(r, int64(c.maxMessage)+1))
	if err != nil {
		return nil, c.readError(err)
	}
	if len(message) > c.maxMessage {
		long := &transport.TooLongError{Limit: c.maxMessage}
		_, _ = long.Write(message)
		if _, err := io.Copy(long, r); err != nil {
			return nil, c.readError(err)
		}
		return nil, long
	}
	if !utf8.Valid(message) {
		return nil, c.fail(websocket.StatusInvalidFramePayloadData, "messages must be UTF-8")
	}
	return message, nil
}

// giveUp closes the connection to a peer that does not end its message.
func (c *conn) giveUp() {
	err := fmt.Errorf("websocket: %w, which is %v", facts.ErrHalfMessage, c.rest)
	if c.fault.CompareAndSwap(nil, &err) {
		_ = c.closeWith(websocket.StatusPolicyViolation, fmt.Sprintf("a message must end within %v", c.rest)) // the fault says more
	}
}

// readError returns the error of Read for the end of reading.
func (c *conn) readError(err error) error {
	if errors.Is(err, net.ErrClosed) {
		// This side has closed it. If that was a write which ran out of time,
		// it is about to say so.
		c.writing <- struct{}{}
		<-c.writing
	}
	if fault := c.fault.Load(); fault != nil {
		return *fault
	}
	if c.closed.Load() {
		return transport.ErrClosed
	}
	switch websocket.CloseStatus(err) {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		return transport.ErrPeerGone
	}
	if errors.Is(err, io.EOF) { // which would be an end in order
		return fmt.Errorf("websocket: the peer left without a close frame: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("websocket: %w", err)
}

// fail closes the connection because of a fault of the peer, and returns that
// as an error.
func (c *conn) fail(code websocket.StatusCode, reason string) error {
	err := fmt.Errorf("websocket: closed with code %d: %s", int(code), reason)
	c.fault.CompareAndSwap(nil, &err)
	_ = c.closeWith(code, reason) // the fault says more
	return err
}

// Write implements transport.Conn. A peer that does not take a message in the
// time allowed loses the connection.
func (c *conn) Write(message []byte) error {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	if c.closed.Load() {
		return transport.ErrClosed
	}
	ctx := c.ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	err := c.ws.Write(ctx, websocket.MessageText, message)
	switch {
	case err == nil:
		return nil
	case c.closed.Load():
		return transport.ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("websocket: the peer has not read for %v: %w", c.timeout, err)
		c.fault.CompareAndSwap(nil, &err)
	default:
		err = fmt.Errorf("websocket: %w", err)
	}
	c.cancel() // part of the message may have left; a waiting Read gets the error
	return err
}

// Flush implements transport.Conn: what is written has left.
func (*conn) Flush() error { return nil }

// Close implements transport.Conn.
func (c *conn) Close() error { return c.closeWith(websocket.StatusNormalClosure, "") }

// GoAway is Close for a server that ends the connection by itself, with code 1001.
// The peer receives the reason, in at most 120 bytes.
func (c *conn) GoAway(reason string) error { return c.closeWith(websocket.StatusGoingAway, reason) }

// closeWith tells the peer why the connection ends, in at most 120 bytes, and
// ends it. It waits a second for the peer to agree, and not for a Write that the
// peer does not take.
func (c *conn) closeWith(code websocket.StatusCode, reason string) (err error) {
	c.closing.Do(func() {
		c.closed.Store(true)
		err = c.close(code, reason)
		c.cancel()
		c.pings.Wait()
	})
	return err
}

// close sends the close frame and waits for that of the peer, both with a limit
// of time. It is called once.
func (c *conn) close(code websocket.StatusCode, reason string) error {
	select {
	case c.writing <- struct{}{}:
	case <-time.After(lastWrite):
		// Nothing can be said to a peer that does not read.
		c.cancel()
		c.writing <- struct{}{}
	}
	defer func() { <-c.writing }()
	timer := time.AfterFunc(closeTime, func() {
		c.cancel()
		if c.below != nil { // ws.Close itself waits for longer
			_ = c.below.SetDeadline(time.Now())
		}
	})
	defer timer.Stop()
	// The peer may have left, with or without a word: either way it is over.
	_ = c.ws.Close(code, reason[:min(len(reason), 120)])
	return nil
}

// keepAlive pings a quiet peer and closes the connection if the peer does not
// answer. It is a goroutine of its own.
func (c *conn) keepAlive(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
		if err := c.ping(max(every, c.timeout)); err != nil {
			c.fault.CompareAndSwap(nil, &err)
			c.cancel()
			return
		}
	}
}

// ping returns an error if the peer is gone or does not answer in time. Only a
// waiting Read can receive the answer, so while the reader of this side is busy
// nothing can be said.
func (c *conn) ping(patience time.Duration) error {
	reads := c.reads.Load()
	if !c.reading.Load() || c.isWriting() {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	err := c.ws.Ping(ctx)
	if err == nil || c.ctx.Err() != nil || c.reads.Load() != reads || c.isWriting() {
		return nil
	}
	return fmt.Errorf("websocket: the peer does not answer pings: %w", err)
}

// isWriting reports whether a Write is in progress. Writes have a time limit
// of their own, and delay pings.
func (c *conn) isWriting() bool {
	return len(c.writing) > 0
}
