package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/protocol"
)

// call is one request in progress: an entry of the table, and the clock of its
// timeout. States: entered, after calls.enter; answered, when done is closed
// and result or err is set; left, when its caller has given it up. Exactly one
// of answered and left happens: the code that removes it from the table
// decides.
//
// The fields above mu are set before the call is entered, except result and
// err, which are set before done is closed. mu guards the rest.
//
// It is the context of its request, too, and the attend.Asker in that: the
// clock stops while a person is asked, as for a login.
type call struct {
	context.Context // ends with the call

	id     int64
	method string
	name   string
	start  time.Time
	conn   *connection
	batch  atomic.Int64  // id of the first call of its batch; 0 before it is sent, and if there is none
	size   atomic.Int64  // of its message, in bytes; 0 before it is sent
	done   chan struct{} // closed when result or err is set

	result json.RawMessage
	err    error

	abort   context.CancelCauseFunc
	timeout time.Duration
	timer   *time.Timer

	mu       sync.Mutex
	limit    time.Time // zero: none
	asked    int       // persons asked now
	fault    error     // of a message that came instead of the answer
	progress func(Progress)
	queue    []Progress
	queued   int           // length of the messages in the queue
	told     chan struct{} // closed and nil again when the callback has seen the queue
	wake     chan struct{} // tells the waiting caller of the queue; nil if the reader runs the callback
	sub      *Subscription // of subscriptions/listen
	events   *eventQueue   // of events/stream
}

// maxProgress bounds how many progress notifications wait for a callback, and
// maxMessages the length of their messages together. Beyond that the oldest are
// dropped.
const (
	maxProgress = 256
	maxMessages = 1 << 20
)

// begin starts the clock of a call: timeout until the answer or the next
// progress, most in total. A value of 0 or less means no limit. end must be
// called.
func (c *call) begin(parent context.Context, timeout, most time.Duration) (ctx context.Context, end func()) {
	c.Context, c.abort = context.WithCancelCause(parent)
	c.start, c.timeout = time.Now(), timeout
	c.done = make(chan struct{})
	if most > 0 {
		c.limit = c.start.Add(most)
	}
	if first := c.next(); first > 0 {
		c.timer = time.AfterFunc(first, c.expire)
	}
	return c, c.end
}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (attend.Key{}) {
		return c
	}
	return c.Context.Value(key)
}

// Ask implements attend.Asker. The time during which a person is asked counts
// neither for the timeout nor for the limit.
func (c *call) Ask() (done func(error), err error) {
	answered, err := attend.Ask(c.Context)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	return func(err error) {
		c.mu.Lock()
		if c.asked--; !c.limit.IsZero() {
			c.limit = c.limit.Add(time.Since(began))
		}
		if c.timer != nil && c.Err() == nil {
			c.timer.Reset(c.next())
		}
		c.mu.Unlock()
		answered(err)
	}, nil
}

// end stops the clock and releases the context. It may be called after the call
// has ended.
func (c *call) end() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.abort(nil)
}

// next returns how long to wait from now on; 0 means without limit. c.mu is
// held, unless nothing else has the call yet.
func (c *call) next() time.Duration {
	d := max(c.timeout, 0)
	if c.limit.IsZero() {
		return d
	}
	left := max(time.Until(c.limit), 1)
	if d == 0 || left < d {
		return left
	}
	return d
}

// expire gives the call up because its time is over, unless a question of the
// server is being answered: then the server waits for the client and not the
// other way round.
func (c *call) expire() {
	now := time.Now()
	c.mu.Lock()
	over := c.asked == 0 // otherwise the clock starts again when the person has answered
	if over && (c.limit.IsZero() || now.Before(c.limit)) && c.conn.askedLately(now, c.timeout) {
		c.timer.Reset(c.next())
		over = false
	}
	c.mu.Unlock()
	if over {
		c.abort(&Error{kind: ErrTimeout, Err: fmt.Errorf("no answer within %v", now.Sub(c.start).Round(time.Millisecond))})
	}
}

// advance takes a progress notification, which restarts the timeout. With
// inline the callback runs at once, on the goroutine that read the
// notification; otherwise the waiting caller runs it.
func (c *call) advance(p Progress, inline bool) {
	if c.timer != nil && c.timeout > 0 {
		select {
		case <-c.done:
		default:
			c.mu.Lock()
			c.timer.Reset(c.next())
			c.mu.Unlock()
		}
	}
	ok, dropped := c.enqueue(p)
	c.conn.client.notifications.lose(dropped)
	if !ok {
		return
	}
	if inline {
		c.tell()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// enqueue lets a notification wait for the callback, and returns how many older ones were
// dropped for it. ok is false if there is no callback, or none any more.
func (c *call) enqueue(p Progress) (ok bool, dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress == nil {
		return false, 0
	}
	c.queue = append(c.queue, p)
	c.queued += len(p.Message)
	for ; len(c.queue) > maxProgress || c.queued > maxMessages && len(c.queue) > 1; dropped++ {
		c.queued -= len(c.queue[0].Message)
		c.queue = append(c.queue[:0], c.queue[1:]...)
	}
	return true, dropped
}

// tell runs the callback for the progress that is queued. Where two goroutines
// read notifications of one call, as the answer of a POST and the GET stream
// of a session may carry them, one of them tells what both have queued, so that
// the callback never runs twice at once.
func (c *call) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told != nil || len(c.queue) == 0 {
		return
	}
	c.told = make(chan struct{})
	for len(c.queue) > 0 {
		queue, fn := c.queue, c.progress
		c.queue, c.queued = nil, 0
		c.mu.Unlock()
		for _, p := range queue {
			_ = c.conn.client.guard("OnProgress", func() { fn(p) })
		}
		c.mu.Lock()
	}
	close(c.told)
	c.told = nil
}

// wait returns when the call has been answered or ctx has ended.
func (c *call) wait(ctx context.Context) {
	for {
		select {
		case <-c.done:
			return
		case <-ctx.Done():
			return
		case <-c.wake:
			c.tell()
		}
	}
}

// close runs the callback for the remaining progress, and prevents further
// calls of it. It returns when no goroutine runs it any more.
func (c *call) close() {
	c.tell()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.told != nil {
		told := c.told
		c.mu.Unlock()
		<-told
		c.mu.Lock()
	}
	c.progress, c.queue = nil, nil
}

// pending describes the call for Client.Pending. The fields that it reads do
// not change once the call is in the table.
func (c *call) pending() Pending {
	return Pending{ID: protocol.NewID(c.id), Method: c.method, Name: c.name, Start: c.start}
}

// subscription returns the subscription that the call keeps open, or nil for
// any other call.
func (c *call) subscription() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sub
}

// agreed reports whether the call is a subscription that the server has agreed to.
func (c *call) agreed() bool {
	sub := c.subscription()
	if sub == nil {
		return false
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.isAcked
}

// settle returns the outcome of a call. err is what sending it returned. If the
// call has not been answered, settle removes it from the table and tells the
// server that it is cancelled, where the transport does not do so by itself.
func (c *call) settle(ctx context.Context, err error) (json.RawMessage, error) {
	calls := &c.conn.client.calls
	counter := &calls.stats.Failed
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
	case errors.Is(cause, ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		counter = &calls.stats.TimedOut
	default:
		counter = &calls.stats.Cancelled
	}
	if !calls.leave(c, counter) {
		<-c.done // what answered it is about to say so
		c.close()
		return c.result, c.err
	}
	c.close()
	switch {
	case cause != nil:
		failure := c.conn.explain(stopped(ctx), c.start)
		// A request that was never written is not cancelled, but that it was
		// not is known of none that ran into its timeout.
		if c.conn.cancels(c.method) {
			done := c.conn.sendSoon(ctx, protocol.MethodCancelled, cancelledBody(c.id, cancelReason(failure)))
			if c.sub != nil {
				<-done // so that no other subscription overtakes it
			}
		}
		return nil, failure
	case err != nil:
		return nil, c.conn.unanswered(err, c.start)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		return nil, c.fault
	}
	return nil, invalid(errors.New("the server ended its answer without a response to the request"))
}

// Pending is a request in progress since Start.
type Pending struct {
	ID     protocol.ID
	Method string
	Name   string // of the tool or prompt, or the resource's URI; "" if none
	Start  time.Time
}

// calls is the table of requests in progress, of all connections of a client.
// Ids continue over reconnections, so that a late answer meets no other
// request. mu guards everything.
type calls struct {
	sent, received traffic // messages of every kind

	mu    sync.Mutex
	last  int64
	table map[int64]*call
	given [32]int64 // ids of calls of tools that were given up lately, each at its remainder
	stats Stats
}

// traffic counts messages and their bytes.
type traffic struct{ messages, bytes atomic.Int64 }

// add counts one message.
func (t *traffic) add(bytes int) {
	t.messages.Add(1)
	t.bytes.Add(int64(bytes))
}

// issued reports whether there was a request with an id.
func (t *calls) issued(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return id > 0 && id <= t.last
}

// enter adds a call to the table and gives it its id.
func (t *calls) enter(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	c.id = t.last
	t.table[c.id] = c
	t.stats.Requests++
}

// find returns the call with an id, or nil.
func (t *calls) find(id int64) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.table[id]
}

// longMessage is the length from which on a message may be the one that a server
// rejects as too long, in bytes.
const longMessage = 1 << 20

// suspects returns the calls of the one message that an error without an id can be
// for: the only one of the connection that waits for an answer, or the only one that
// is long. It returns nil if there is none, or several. Several calls of one message
// are a batch.
func (t *calls) suspects(conn *connection) []*call {
	t.mu.Lock()
	all := slices.DeleteFunc(slices.Collect(maps.Values(t.table)), func(c *call) bool { return c.conn != conn })
	t.mu.Unlock()
	all = slices.DeleteFunc(all, (*call).agreed)
	if ofOne(all) {
		return all
	}
	long := slices.DeleteFunc(all, func(c *call) bool { return c.size.Load() < longMessage })
	if ofOne(long) {
		return long
	}
	return nil
}

// ofOne reports whether calls are those of one message.
func ofOne(calls []*call) bool {
	return len(calls) == 1 || len(calls) > 1 && calls[0].batch.Load() != 0 &&
		!slices.ContainsFunc(calls, func(c *call) bool { return c.batch.Load() != calls[0].batch.Load() })
}

// finish ends a call with its result or error. It returns false if the call is
// not in progress any more, or belongs to another connection; conn may be nil
// for any.
func (t *calls) finish(id int64, conn *connection, result json.RawMessage, err error) bool {
	t.mu.Lock()
	c := t.table[id]
	if c == nil || conn != nil && c.conn != conn {
		t.mu.Unlock()
		return false
	}
	delete(t.table, id)
	if err == nil {
		t.stats.Completed++
	} else {
		t.stats.Failed++
	}
	c.result, c.err = result, err
	close(c.done)
	t.mu.Unlock()
	return true
}

// leave removes a call from the table and adds one to count. It returns false
// if the call has been answered.
func (t *calls) leave(c *call, count *int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table[c.id] != c {
		return false
	}
	t.drop(c)
	*count++
	return true
}

// drop removes a call that is given up. t.mu is held.
func (t *calls) drop(c *call) {
	delete(t.table, c.id)
	if c.method == protocol.MethodToolsCall {
		t.given[c.id%int64(len(t.given))] = c.id
	}
}

// late reports whether an answer with this id is to a call of a tool that was
// given up, which it may have made a task. It is so once.
func (t *calls) late(id protocol.ID) bool {
	n, err := strconv.ParseInt(id.String(), 10, 64)
	if err != nil || n <= 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	given := &t.given[n%int64(len(t.given))]
	if *given != n {
		return false
	}
	*given = 0
	return true
}

// failAll ends the calls of a connection, or all calls if conn is nil, and
// returns them.
func (t *calls) failAll(conn *connection, err error) []*call {
	t.mu.Lock()
	var ended []*call
	for id, c := range t.table {
		if conn == nil || c.conn == conn {
			delete(t.table, id)
			t.stats.Failed++
			c.err = err
			close(c.done)
			ended = append(ended, c)
		}
	}
	t.mu.Unlock()
	for _, c := range ended {
		if c.abort != nil {
			c.abort(err)
		}
	}
	return ended
}

// count adds to a number of the statistics.
func (t *calls) count(field func(*Stats) *int64) {
	t.mu.Lock()
	*field(&t.stats)++
	t.mu.Unlock()
}

// cancel ends the requests for which which returns true with failure, and returns
// them, oldest first. which runs with the table locked.
func (t *calls) cancel(which func(*call) bool, failure error) (ended []*call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.table)) {
		if c := t.table[id]; which(c) {
			t.drop(c)
			t.stats.Cancelled++
			c.err = failure
			close(c.done)
			ended = append(ended, c)
		}
	}
	return ended
}

// pending lists the requests, oldest first.
func (t *calls) pending() []Pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Pending, 0, len(t.table))
	for _, id := range slices.Sorted(maps.Keys(t.table)) {
		list = append(list, t.table[id].pending())
	}
	return list
}

// statistics returns what became of all requests so far.
func (t *calls) statistics() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	stats := t.stats
	stats.Pending = len(t.table)
	stats.Sent, stats.BytesSent = t.sent.messages.Load(), t.sent.bytes.Load()
	stats.Received, stats.BytesReceived = t.received.messages.Load(), t.received.bytes.Load()
	return stats
}
