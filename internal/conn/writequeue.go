package conn

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// writeQueue keeps the goroutine that reads a connection from waiting for a
// write. Otherwise a client that sends much before it reads and a server that
// must write before it reads on would wait for each other forever.
//
// Messages of that goroutine wait in a bounded queue, which another goroutine
// empties; that goroutine is there only while something waits (busy). While it
// is there, other writers queue, too, so that the order of messages is kept;
// else they write directly, at no cost. At most one message is being written by
// the queue, while transport.Conn orders concurrent writes itself.
type writeQueue struct {
	to   transport.Conn
	busy atomic.Bool // something waits, or is being written

	begun, ended atomic.Int64 // writes to it

	mu    sync.Mutex
	queue [][]byte
	size  int           // bytes in queue
	moved chan struct{} // closed when something has left; nil if no caller waits
}

// maxWriteQueue limits the bytes of the queue, in addition to one message of any
// length. Beyond it, writers wait.
const maxWriteQueue = 1 << 20

// errUnread ends a connection whose client sends messages that are answered at
// once, such as pings, and does not read the answers.
var errUnread = errors.New("mcp: the client does not read what it is answered")

// writeSoon queues a message for the goroutine that reads. It does not wait
// unless the queue is full, and fails with errUnread if nothing leaves a full
// queue within facts.WriteTimeout.
func (q *writeQueue) writeSoon(message []byte) error {
	return q.add(message, facts.WriteTimeout)
}

// write sends a message and waits as long as the connection does, or queues it
// behind those that wait. It keeps no reference to message.
func (q *writeQueue) write(message []byte) error {
	if !q.busy.Load() {
		return q.send(message)
	}
	return q.add(message, 0)
}

// send writes a message to the connection, counted for isStuck.
func (q *writeQueue) send(message []byte) error {
	q.begun.Add(1)
	defer q.ended.Add(1)
	return q.to.Write(message)
}

// flush waits until the queue is empty and then flushes the connection, whose
// error tells whether everything was written.
func (q *writeQueue) flush() error {
	q.waitIdle()
	q.begun.Add(1)
	defer q.ended.Add(1)
	return q.to.Flush()
}

// isStuck reports whether writes are in progress, and none has ended since the
// previous call. before is the number that the previous call returned, -1 at
// first. It is called at intervals, because not every transport limits the time
// of a write.
func (q *writeQueue) isStuck(before int64) (ended int64, yes bool) {
	if ended = q.ended.Load(); ended == q.begun.Load() {
		return -1, false
	}
	return ended, ended == before
}

// add queues a copy of a message and starts the goroutine that writes, unless
// it runs. It waits while the queue is full, each time for the given time at
// most; 0 means no limit.
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

// wait waits until a message has left the queue, for the given time at most, and
// reports whether one has. The caller holds q.mu, which is free while wait
// waits.
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

// run writes until nothing waits. Errors are left to flush; a connection that
// is broken ends with its reader.
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

// signal wakes all who wait for room or for the end. The caller holds q.mu.
func (q *writeQueue) signal() {
	if q.moved != nil {
		close(q.moved)
		q.moved = nil
	}
}

// waitIdle waits until the queue is empty and its last message is written.
func (q *writeQueue) waitIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy.Load() {
		q.wait(0)
	}
}
