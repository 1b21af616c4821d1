package mcp

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

// queue holds what was read of a connection and cannot be served at once, in
// the order of its arrival. One goroutine at a time has the turn to serve it,
// which it has until the queue is empty.
type queue struct {
	serve func(*job)    // may wait
	all   *atomic.Int64 // bytes that wait in all queues of the server

	mu    sync.Mutex
	jobs  []*job
	size  int  // bytes that wait
	taken bool // somebody has the turn
}

// isFree tells whether nobody has the turn. For the goroutine that reads this
// stays true until it puts, because nobody else puts then.
func (q *queue) isFree() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.taken
}

// put takes j in, unless the queue is full. first says that the turn was free
// and is now the caller's to give.
func (q *queue) put(j *job) (first, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) > 0 && (q.size+cost(j) > maxWaiting || q.all.Load()+int64(cost(j)) > maxWaitingAll) {
		return false, false
	}
	q.jobs = append(q.jobs, j)
	q.count(cost(j))
	first, q.taken = !q.taken, true
	return first, true
}

// run serves until nothing waits. It has the turn, which another goroutine of
// staff takes over if a handler ends this one.
func (q *queue) run(staff *sync.WaitGroup) {
	j := q.next()
	defer func() {
		if j != nil {
			staff.Go(func() { q.run(staff) })
		}
	}()
	for ; j != nil; j = q.next() {
		q.serve(j)
	}
}

// next takes the oldest job out; where there is none it gives the turn back.
func (q *queue) next() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		q.jobs, q.taken = nil, false
		return nil
	}
	j := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	q.count(-cost(j))
	return j
}

// count adds to what waits. The caller holds q.mu.
func (q *queue) count(bytes int) {
	q.size += bytes
	q.all.Add(int64(bytes))
}

func cost(j *job) int { return j.size + waitingCost }

// remove takes the request of that id out; nil if it does not wait.
func (q *queue) remove(id protocol.ID) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, j := range q.jobs {
		if j.message.IsRequest() && j.message.ID == id {
			q.jobs = slices.Delete(q.jobs, i, i+1)
			q.count(-cost(j))
			return j
		}
	}
	return nil
}
