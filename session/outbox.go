package session

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/topics"
)

// outboxSize is how many messages wait for a client that reads slowly, or
// whose stream is not open yet, and outboxBytes how many bytes, before they are
// dropped.
const (
	outboxSize  = 64
	outboxBytes = 4 << 20
)

// maxStreams is how many streams of a session are open at a time.
const maxStreams = 8

// outbox has the messages of a session that belong to no request, and the open
// streams, of which the newest gets them. The mu of the session guards it.
//
// A message waits in one place: in the queue of the newest stream, or in
// waiting while none is open. Its bytes are reserved in the budget by
// Session.Send before it is put there, as the budget may take the locks of
// histories to make room; they are released when it is taken out.
type outbox struct {
	session *Session            // whose it is
	budget  *budget             // of all sessions; nil without a Manager
	dropped func(*Session, int) // see Config.Dropped; nil is nothing
	place   *list.Element       // in budget.unread, while bytes is not 0
	open    []*line             // streams, oldest first
	ending  []*line             // those that are over, and send what they have
	waiting [][]byte            // messages for the next stream
	bytes   int                 // of these, or of what the streams hold
	closed  bool                // the session has ended
	behind  bool                // Config.Dropped was called, and the client has read nothing since
}

// line is an open stream of a session. The session's mu guards it.
// Session.listen makes it; whoever carries it calls Session.next until it is
// over.
type line struct {
	wake   func()   // called when there is a message for it, or it is over
	number uint64   // in the ids of events; 0 until it has one. It is for who calls next.
	queue  [][]byte // what its client has not got yet, oldest first
	over   bool
	broken bool          // a message was lost on it
	retry  time.Duration // after which the client is to come back when it is over; 0 if nobody says
}

// listen opens a stream, which gets what waits, and ends the oldest if there are
// too many. That one is the most likely to have lost its client unnoticed.
func (b *outbox) listen(out *line) {
	queue := b.queue()
	out.queue, *queue = *queue, nil
	if len(b.open) == maxStreams {
		b.end(b.open[0])
		b.open = slices.Delete(b.open, 0, 1)
	}
	b.open = append(b.open, out)
}

// end tells whoever carries a stream that it is over. The caller takes it out of open.
func (b *outbox) end(out *line) {
	if len(out.queue) > 0 {
		b.ending = append(b.ending, out)
	}
	out.over = true
	out.wake()
}

// newest returns the stream that gets the messages, nil if none is open.
func (b *outbox) newest() *line {
	if len(b.open) == 0 {
		return nil
	}
	return b.open[len(b.open)-1]
}

// queue returns where messages wait: in the newest stream, or for the next one.
func (b *outbox) queue() *[][]byte {
	if out := b.newest(); out != nil {
		return &out.queue
	}
	return &b.waiting
}

// leave ends a stream. What its client has not got goes to the one before, which
// goes on, or waits for the next.
func (b *outbox) leave(out *line) {
	out.over = true
	for _, streams := range []*[]*line{&b.open, &b.ending} {
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
func (b *outbox) endStreams(retry time.Duration) {
	for _, out := range b.open {
		out.retry = retry
		b.end(out)
	}
	b.open = nil
}

// close ends the streams and drops what waits for one.
func (b *outbox) close() {
	b.closed = true
	b.budget.unqueue(b.bytes)
	b.waiting, b.bytes = nil, 0
	b.place = b.budget.reads(b.session, b.place, false)
	b.endStreams(0)
}

// put queues a message that the budget has room for, and tells whether the
// message needed that; see Session.Send.
func (b *outbox) put(message []byte) (sent, queued bool) {
	queue := b.queue()
	switch {
	case slices.ContainsFunc(*queue, func(m []byte) bool { return bytes.Equal(m, message) }):
		return true, false
	case b.closed:
		return false, false
	case cost(message) == 0: // it has a place of its own
	case len(*queue) >= outboxSize || // more, where those of two streams came together
		b.bytes+len(message) > outboxBytes:
		return false, false
	}
	*queue = append(*queue, message)
	b.hold(cost(message))
	if out := b.newest(); out != nil {
		out.wake()
	}
	return true, true
}

// empty tells whether no message waits.
func (b *outbox) empty() bool {
	return len(b.waiting) == 0 && !slices.ContainsFunc(slices.Concat(b.ending, b.open), func(out *line) bool { return len(out.queue) > 0 })
}

// take takes the next message from a stream; nil if none waits.
func (b *outbox) take(out *line) (message []byte) {
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
func (b *outbox) hold(n int) bool {
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
func (b *outbox) free(n int) {
	if b.behind = false; !b.closed {
		b.bytes -= n
		b.budget.unqueue(n)
		b.place = b.budget.reads(b.session, b.place, b.bytes > 0)
	}
}

// lose notes that n messages were dropped, and returns what says so: Config.Dropped, once
// until the client reads again. The caller calls it without any lock.
func (b *outbox) lose(n int) func() {
	if n == 0 || b.behind || b.dropped == nil || b.closed {
		return func() {}
	}
	b.behind = true
	return func() { b.dropped(b.session, n) }
}

// drop drops what waits, but not that a list has changed, and returns how many
// messages that were.
func (b *outbox) drop() (n int) {
	if b.closed {
		return 0
	}
	of := func(queue *[][]byte) bool {
		before := len(*queue)
		*queue = slices.DeleteFunc(*queue, func(m []byte) bool { return cost(m) > 0 })
		n += before - len(*queue)
		return len(*queue) < before
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
	rest, ok := bytes.CutPrefix(message, []byte(`{"jsonrpc":"2.0","method":"`))
	if method, whole := bytes.CutSuffix(rest, []byte(`"}`)); ok && whole && slices.Contains(topics.Lists[:], string(method)) {
		return 0
	}
	return len(message)
}
