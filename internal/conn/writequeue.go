package conn

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// writeQueue keeps the goroutine that reads a connection from writing to it: a
// client may send much before it reads, and must not wait for a server that
// waits for it. What that goroutine sends waits in a bounded queue, which a
// goroutine of its own writes out that is there only as long as something waits.
// Others write to the connection themselves while nothing waits, and behind what
// waits else. It is safe for concurrent use.
type writeQueue struct {
	to   transport.Conn
	busy atomic.Bool // something waits, or is being written

	begun, ended atomic.Int64 // writes to it

	mu    sync.Mutex
	queue [][]byte
	size  int           // bytes in queue
	moved chan struct{} // closed when something has left; nil if nobody waits
}

// maxWriteQueue is how many bytes wait at most, beside the last message.
const maxWriteQueue = 1 << 20

// errUnread ends a connection whose client sends messages that are answered at
// once, and takes no answer.
var errUnread = errors.New("mcp: the client does not read what it is answered")

// writeSoon sends a message without waiting for the client, as long as the queue has
// room. It fails when a full queue does not move for DefaultWriteTimeout.
func (q *writeQueue) writeSoon(message []byte) error {
	return q.add(message, transport.DefaultWriteTimeout)
}

// write sends a message as the connection does, but not before what waits.
func (q *writeQueue) write(message []byte) error {
	if !q.busy.Load() {
		return q.send(message)
	}
	return q.add(message, 0)
}

// send hands a message over.
func (q *writeQueue) send(message []byte) error {
	q.begun.Add(1)
	defer q.ended.Add(1)
	return q.to.Write(message)
}

// flush waits until everything has left.
func (q *writeQueue) flush() error {
	q.waitIdle()
	q.begun.Add(1)
	defer q.ended.Add(1)
	return q.to.Flush()
}

// isStuck reports whether a write is under way, and none has ended since the last
// time that it was asked and said so. ended is what it returned then, -1 before.
func (q *writeQueue) isStuck(before int64) (ended int64, yes bool) {
	if ended = q.ended.Load(); ended == q.begun.Load() {
		return -1, false
	}
	return ended, ended == before
}

// add puts a copy of a message into the queue. It waits for room, which must
// come within patience, if that is not 0.
func (q *writeQueue) add(message []byte, patience time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size >= maxWriteQueue {
		if !q.wait(patience) {
			return errUnread
		}
	}
	q.queue = append(q.queue, append([]byte(nil), message...))
	q.size += len(message)
	if !q.busy.Load() {
		q.busy.Store(true)
		go q.run()
	}
	return nil
}

// wait waits until something has left. q.mu is held, but not while waiting.
func (q *writeQueue) wait(patience time.Duration) (moved bool) {
	if q.moved == nil {
		q.moved = make(chan struct{})
	}
	left := q.moved
	q.mu.Unlock()
	defer q.mu.Lock()
	if patience == 0 {
		<-left
		return true
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-left:
		return true
	case <-timer.C:
		return false
	}
}

// run writes until nothing waits. The error of a broken connection shows
// when the connection is flushed.
func (q *writeQueue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		message := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.mu.Unlock()
		// It may end its goroutine; a failed connection ends with its reader.
		_ = safely.Try(func() error { return q.send(message) })
		q.mu.Lock()
		q.size -= len(message)
		q.signal()
	}
	q.queue = nil
	q.busy.Store(false)
	q.signal()
}

// signal wakes who waits. q.mu is held.
func (q *writeQueue) signal() {
	if q.moved != nil {
		close(q.moved)
		q.moved = nil
	}
}

// waitIdle waits until nothing waits to be written.
func (q *writeQueue) waitIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy.Load() {
		q.wait(0)
	}
}
