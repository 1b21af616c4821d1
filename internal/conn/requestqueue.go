package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/protocol"
)

// What waits at most, in bytes: in each requestQueue of a connection, and in all of a
// server. A request beyond that is refused with CodeBusy. A message counts with
// waitingCost beside its own bytes, so 16 MiB are some 15,000 small calls.
const (
	maxWaiting    = 16 << 20
	maxWaitingAll = 256 << 20
	waitingCost   = 1 << 10
)

// requestQueue holds what was read of a connection and cannot be served at once, in
// the order of its arrival. One goroutine at a time has the turn to serve it,
// which it has until the requestQueue is empty.
type requestQueue struct {
	serve func(*request) // may wait
	all   *atomic.Int64  // bytes that wait in all queues of the server

	mu       sync.Mutex
	requests []*request
	size     int  // bytes that wait
	taken    bool // somebody has the turn
}

// isFree tells whether nobody has the turn. For the goroutine that reads this
// stays true until it puts, because nobody else puts then.
func (q *requestQueue) isFree() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.taken
}

// put takes r in, unless the requestQueue is full. first says that the turn was free
// and is now the caller's to give.
func (q *requestQueue) put(r *request) (first, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) > 0 && (q.size+cost(r) > maxWaiting || q.all.Load()+int64(cost(r)) > maxWaitingAll) {
		return false, false
	}
	q.requests = append(q.requests, r)
	q.count(cost(r))
	first, q.taken = !q.taken, true
	return first, true
}

// run serves until nothing waits. It has the turn, which another goroutine of
// staff takes over if a handler ends this one.
func (q *requestQueue) run(staff *sync.WaitGroup) {
	r := q.next()
	defer func() {
		if r != nil {
			staff.Go(func() { q.run(staff) })
		}
	}()
	for ; r != nil; r = q.next() {
		q.serve(r)
	}
}

// next takes the oldest job out; where there is none it gives the turn back.
func (q *requestQueue) next() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 {
		q.requests, q.taken = nil, false
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
