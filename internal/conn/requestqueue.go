package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/protocol"
)

// What waits at most, in bytes: in each queue of a connection, and in all of a
// server. A request beyond that is refused with CodeBusy. A message counts with
// waitingCost beside its own bytes, so 16 MiB are some 15,000 small calls.
const (
	maxWaiting    = 16 << 20
	maxWaitingAll = 256 << 20
	waitingCost   = 1 << 10
)

// requestQueue holds what was read of a connection and cannot be served at once,
// in the order of its arrival. One goroutine at a time serves it, which is there
// only as long as something waits.
type requestQueue struct {
	serve func(*request) // one request at a time; it may wait
	all   *atomic.Int64  // bytes that wait in all queues of the server

	mu       sync.Mutex
	requests []*request
	size     int  // bytes that wait
	serving  bool // a goroutine serves the queue
}

// isIdle reports whether nobody serves the queue. For the goroutine that reads
// this stays true until it puts, because nobody else puts then.
func (q *requestQueue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.serving
}

// put takes r in, unless the queue is full. first says that nobody serves it: the
// caller has to start run.
func (q *requestQueue) put(r *request) (first, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) > 0 && (q.size+cost(r) > maxWaiting || q.all.Load()+int64(cost(r)) > maxWaitingAll) {
		return false, false
	}
	q.requests = append(q.requests, r)
	q.count(cost(r))
	first, q.serving = !q.serving, true
	return first, true
}

// run serves until nothing waits. Another goroutine of workers goes on with it if a
// handler ends this one.
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

// next takes the oldest request out; where there is none, nobody serves the queue
// from then on.
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

// count adds to what waits. The caller holds q.mu.
func (q *requestQueue) count(bytes int) {
	q.size += bytes
	q.all.Add(int64(bytes))
}

func cost(r *request) int { return r.size + waitingCost }

// remove takes the request of that id out; nil if it does not wait.
func (q *requestQueue) remove(id protocol.ID) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, r := range q.requests {
		if r.message.IsRequest() && r.message.ID == id {
			q.requests = slices.Delete(q.requests, i, i+1)
			q.count(-cost(r))
			return r
		}
	}
	return nil
}
