package mcp

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// replies keeps the goroutine that reads a connection from writing to it: a
// client may send much before it reads, and must not wait for a server that
// waits for it. What that goroutine has to say waits in a bounded queue, which
// a goroutine of its own empties and which is there only as long as something
// waits.
type replies struct {
	conn transport.Conn
	busy atomic.Bool // something waits, or is being written

	begun, ended atomic.Int64 // writes to conn

	mu    sync.Mutex
	queue [][]byte
	size  int           // bytes in queue
	moved chan struct{} // closed when something has left; nil if nobody waits
}

// maxReplies is how many bytes wait at most, beside the last message.
const maxReplies = 1 << 20

// errUnread ends a connection whose client sends messages that are answered at
// once, and takes no answer.
var errUnread = errors.New("mcp: the client does not read what it is answered")

// say sends a message without waiting for the client, as long as the queue has
// room. It fails when a full queue does not move for DefaultWriteTimeout.
func (r *replies) say(message []byte) error { return r.put(message, transport.DefaultWriteTimeout) }

// write sends a message as conn does, but not before what waits.
func (r *replies) write(message []byte) error {
	if !r.busy.Load() {
		return r.send(message)
	}
	return r.put(message, 0)
}

// send hands a message to conn.
func (r *replies) send(message []byte) error {
	r.begun.Add(1)
	defer r.ended.Add(1)
	return r.conn.Write(message)
}

// flush waits until everything has left.
func (r *replies) flush() error {
	r.idle()
	r.begun.Add(1)
	defer r.ended.Add(1)
	return r.conn.Flush()
}

// stuck tells whether a write is under way, and none has ended since the last
// time that it was asked and said so. ended is what it returned then, -1 before.
func (r *replies) stuck(before int64) (ended int64, yes bool) {
	if ended = r.ended.Load(); ended == r.begun.Load() {
		return -1, false
	}
	return ended, ended == before
}

// put puts a copy of a message into the queue. It waits for room, which must
// come within patience, if that is not 0.
func (r *replies) put(message []byte, patience time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.size >= maxReplies {
		if !r.wait(patience) {
			return errUnread
		}
	}
	r.queue = append(r.queue, append([]byte(nil), message...))
	r.size += len(message)
	if !r.busy.Load() {
		r.busy.Store(true)
		go r.carry()
	}
	return nil
}

// wait waits until something has left. r.mu is held, but not while waiting.
func (r *replies) wait(patience time.Duration) (moved bool) {
	if r.moved == nil {
		r.moved = make(chan struct{})
	}
	left := r.moved
	r.mu.Unlock()
	defer r.mu.Lock()
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

// carry writes until nothing waits. The error of a broken connection shows
// when the connection is flushed.
func (r *replies) carry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		message := r.queue[0]
		r.queue[0] = nil
		r.queue = r.queue[1:]
		r.mu.Unlock()
		// It may end its goroutine; a failed connection ends with its reader.
		_ = safely.Try(func() error { return r.send(message) })
		r.mu.Lock()
		r.size -= len(message)
		r.tell()
	}
	r.queue = nil
	r.busy.Store(false)
	r.tell()
}

// tell wakes who waits. r.mu is held.
func (r *replies) tell() {
	if r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
}

// idle waits until nothing waits to be written.
func (r *replies) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.busy.Load() {
		r.wait(0)
	}
}
