package session

import (
	"bytes"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/scale"
)

// outboxSize is how many messages wait for a client that reads slowly, or
// whose stream is not open yet, and outboxBytes how many bytes, before they are
// dropped.
const (
	maxQueued      = 64
	maxQueuedBytes = 4 << 20
)

// maxStreams is how many streams of a session are open at a time.
const maxStreams = 8

// streamQueue has the messages of a session that belong to no request, and the open
// streams, of which the newest gets them. The mu of the session guards it.
//
// A message waits in one place: in the queue of the newest stream, or in
// waiting while none is open. Its bytes are reserved in the budget by
// Session.Send before it is put there, as the budget may take the locks of
// histories to make room; they are released when it is taken out.
type streamQueue struct {
	session *Session            // whose it is
	budget  *account            // of the principal; nil without a Manager
	dropped func(*Session, int) // see Config.Dropped; nil is nothing
	place   *place              // in memoryBudget.unread, while bytes is not 0
	open    []*outStream        // streams, oldest first
	ending  []*outStream        // those that are over, and send what they have
	waiting [][]byte            // messages for the next stream
	bytes   int                 // of these, or of what the streams hold
	closed  bool                // the session has ended
	behind  bool                // Config.Dropped was called, and the client has read nothing since
}

// outStream is an open stream of a session. The session's mu guards it. Session.listen
// makes it; its goroutine calls Session.next until it is over.
type outStream struct {
	wake   func()   // called when there is a message for it, or it is over
	number uint64   // in the ids of events; 0 until it has one. Only next uses it.
	queue  [][]byte // what its client has not got yet, oldest first
	over   bool
	broken bool          // a message was lost on it
	retry  time.Duration // time until the client reconnects after the end; 0 if not set
	stream string        // for the inbox, as which it has read last; "" if it never has
	sent   scale.Rev     // the newest message of the inbox that it took
	before scale.Rev     // the inbox.sent before that
	reader string        // under which name it took the message that it sends; "" if that is not of the inbox
}

// openStream opens a stream, which gets what waits, and ends the oldest if there are
// too many. That one is the most likely to have lost its client unnoticed.
func (b *streamQueue) openStream(out *outStream) {
	queue := b.queue()
	out.queue, *queue = *queue, nil
	if len(b.open) == maxStreams {
		b.endStream(b.open[0])
		b.open = slices.Delete(b.open, 0, 1)
	}
	b.open = append(b.open, out)
}

// endStream marks a stream as over and wakes its goroutine. The caller takes it out of
// open.
func (b *streamQueue) endStream(out *outStream) {
	if len(out.queue) > 0 {
		b.ending = append(b.ending, out)
	}
	out.over = true
	out.wake()
}

// newest returns the stream that gets the messages, nil if none is open.
func (b *streamQueue) newest() *outStream {
	if len(b.open) == 0 {
		return nil
	}
	return b.open[len(b.open)-1]
}

// queue returns where messages wait: in the newest stream, or for the next one.
func (b *streamQueue) queue() *[][]byte {
	if out := b.newest(); out != nil {
		return &out.queue
	}
	return &b.waiting
}

// closeStream ends a stream. Its queue goes to the stream before, or waits for the next.
func (b *streamQueue) closeStream(out *outStream) {
	out.over = true
	for _, streams := range []*[]*outStream{&b.open, &b.ending} {
		if i := slices.Index(*streams, out); i >= 0 {
			*streams = slices.Delete(*streams, i, i+1)
		}
	}
	if len(out.queue) == 0 || b.closed {
		return
	}
	queue := b.queue()
	*queue, out.queue = append(out.queue, *queue...), nil
	if next := b.newest(); next != nil {
		next.wake()
	}
}

// endStreams ends the streams that are open, once they have sent what they have;
// see Session.EndStreams.
func (b *streamQueue) endStreams(retry time.Duration) {
	for _, out := range b.open {
		out.retry = retry
		b.endStream(out)
	}
	b.open = nil
}

// close ends the streams and drops what waits for one.
func (b *streamQueue) close() {
	b.closed = true
	b.budget.unqueue(b.bytes)
	b.waiting, b.bytes = nil, 0
	b.place = b.budget.reads(b.session, b.place, false)
	b.endStreams(0)
}

// enqueue queues a message that the budget has room for, and tells whether the
// message needed that; see Session.Send.
func (b *streamQueue) enqueue(message []byte) (sent, queued bool) {
	queue := b.queue()
	switch {
	case slices.ContainsFunc(*queue, func(m []byte) bool { return bytes.Equal(m, message) }):
		return true, false
	case b.closed:
		return false, false
	case cost(message) == 0: // it has a place of its own
	case len(*queue) >= maxQueued || // more, where those of two streams came together
		b.bytes+len(message) > maxQueuedBytes:
		return false, false
	}
	*queue = append(*queue, message)
	b.hold(cost(message))
	if out := b.newest(); out != nil {
		out.wake()
	}
	return true, true
}

// empty reports whether no message waits.
func (b *streamQueue) empty() bool {
	return len(b.waiting) == 0 && !slices.ContainsFunc(slices.Concat(b.ending, b.open), func(out *outStream) bool { return len(out.queue) > 0 })
}

// dequeue takes the next message from a stream; nil if none waits.
func (b *streamQueue) dequeue(out *outStream) (message []byte) {
	if len(out.queue) == 0 {
		out.queue = nil // what it had room for
		return nil
	}
	message = out.queue[0]
	out.queue[0] = nil
	out.queue = out.queue[1:]
	b.free(cost(message))
	return message
}

// hold counts n bytes, which the budget has room for, of what the inbox has read for a
// stream. It gives them back, and returns false, if the session has ended.
func (b *streamQueue) hold(n int) bool {
	if b.closed {
		b.budget.unqueue(n)
		return false
	}
	if b.bytes += n; b.bytes > 0 && b.place == nil {
		b.place = b.budget.reads(b.session, nil, true)
	}
	return true
}

// free gives back n bytes of what a stream took.
func (b *streamQueue) free(n int) {
	if b.behind = false; !b.closed {
		b.bytes -= n
		b.budget.unqueue(n)
		b.place = b.budget.reads(b.session, b.place, b.bytes > 0)
	}
}

// lose notes that n messages were dropped, and returns what says so: Config.Dropped, once
// until the client reads again. The caller calls it without any lock.
func (b *streamQueue) lose(n int) func() {
	if n == 0 || b.behind || b.dropped == nil || b.closed {
		return func() {}
	}
	b.behind = true
	return func() { b.dropped(b.session, n) }
}

// drop drops what waits, but not that a list has changed, and returns how many
// messages that were.
func (b *streamQueue) drop() (n int) {
	if b.closed {
		return 0
	}
	of := func(queue *[][]byte) bool {
		before, kept := len(*queue), (*queue)[:0]
		for _, m := range *queue {
			change := bareChange(m)
			switch {
			case change == nil:
				n++
			case !slices.ContainsFunc(kept, func(m []byte) bool { return bytes.Equal(m, change) }):
				kept = append(kept, change)
			}
		}
		clear((*queue)[len(kept):])
		*queue = kept
		return len(kept) < before
	}
	of(&b.waiting)
	for _, out := range slices.Concat(b.open, b.ending) {
		out.broken = of(&out.queue) || out.broken
	}
	if b.session.inbox != nil {
		b.session.inbox.makeRoom()
	}
	b.budget.unqueue(b.bytes)
	b.bytes, b.place = 0, nil
	return n
}

// cost is how many bytes of the budget a message takes while it waits: none if it
// says that a list has changed. There is one such message for each list, which waits
// at most once, and its text is the same for all sessions.
func cost(message []byte) int {
	if len(bareChange(message)) == len(message) {
		return 0
	}
	return len(message)
}

// bareChange returns the notification that a list has changed without its params, and nil
// for any other message. Where there is no room for the params, it goes out in place of
// the message: clients read the list after either.
func bareChange(message []byte) []byte {
	const start, end = `{"jsonrpc":"2.0","method":"`, `"}`
	rest, ok := bytes.CutPrefix(message, []byte(start))
	method, params, whole := bytes.Cut(rest, []byte(`"`))
	switch {
	case !ok || !whole || !slices.Contains(topics.SessionTopics[:], string(method)):
		return nil
	case string(params) == "}":
		return message
	}
	return slices.Concat(message[:len(start)+len(method)], []byte(end))
}
