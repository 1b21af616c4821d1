package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/protocol"
)

// The limits of waiting messages, in bytes: of the requestQueue of a connection, and of all
// queues of a server. A queue also has no more than is free, so that full queues leave room
// for others. A request beyond the limits is refused with CodeBusy. Each message counts
// waitingCost more for its memory: 16 MiB are about 15,000 small calls.
const (
	maxWaiting  = 16 << 20
	MaxWaiting  = 256 << 20
	waitingCost = 1 << 10
)

// requestQueue holds messages of one connection that cannot be served at once,
// in the order of their arrival.
//
// It is idle, or exactly one goroutine serves it: one message after another,
// until none is left. The code that puts the first message into an idle queue
// must start that goroutine. An idle queue thus costs no goroutine, and the
// order is kept.
type requestQueue struct {
	serve func(*request) // one request at a time; it may wait
	all   *atomic.Int64  // bytes that wait, of all queues of the server

	mu       sync.Mutex
	requests []*request
	size     int  // bytes that wait
	serving  bool // a goroutine serves the queue
}

// isIdle reports whether no goroutine serves the queue, which means that
// everything before has been served or handed to a worker. Only the goroutine
// that reads puts messages, so that for it the answer true stays true until
// it puts one.
func (q *requestQueue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.serving
}

// put adds r, unless there is no room; ok is false then. A queue without
// waiting messages takes one of any size. If first is true, the queue was idle
// and the caller must see to it that run is called.
func (q *requestQueue) put(r *request) (first, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) > 0 && int64(q.size+cost(r)) > min(maxWaiting, MaxWaiting-q.all.Load()) {
		return false, false
	}
	q.requests = append(q.requests, r)
	q.count(cost(r))
	first, q.serving = !q.serving, true
	return first, true
}

// run serves messages until none waits. It must be called when put has returned
// first, and by nothing else. If a handler ends this goroutine, another one,
// counted by workers, continues.
func (q *requestQueue) run(workers *sync.WaitGroup) {
	r := q.next()
	defer func() {
		if r != nil {
			workers.Go(func() { q.run(workers) })
		}
	}()
	for ; r != nil; r = q.next() {
		q.serve(r)
	}
}

// next removes the oldest message and returns it. If there is none, it returns
// nil, and the queue is idle.
func (q *requestQueue) next() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 {
		q.requests, q.serving = nil, false
		return nil
	}
	r := q.requests[0]
	q.requests[0] = nil
	q.requests = q.requests[1:]
	q.count(-cost(r))
	return r
}

// count adds to the bytes that wait, here and in the whole server. The caller
// holds q.mu.
func (q *requestQueue) count(bytes int) {
	q.size += bytes
	q.all.Add(int64(bytes))
}

// cost is what r counts for against the limits while it waits.
func cost(r *request) int { return r.size + waitingCost }

// remove takes the waiting request with that id out of the queue, for a
// cancellation; nil if it does not wait. The caller must answer it.
func (q *requestQueue) remove(id protocol.ID) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	id = id.Canonical()
	for i, r := range q.requests {
		if r.message.Kind() == protocol.KindRequest && r.message.ID.Canonical() == id {
			q.requests = slices.Delete(q.requests, i, i+1)
			q.count(-cost(r))
			return r
		}
	}
	return nil
}
