package events

import (
	"sync"
	"time"
)

// Questions are put to users' code, one after the other, on a goroutine of their own. A
// question that has used up AskTimeout is the last, and left to its goroutine.
type Questions[Q, A any] struct {
	Next  func() (q Q, ok bool)  // the next question; ok is false if there is none
	Ask   func(Q) A              // users' code: it may end its goroutine, or not return
	Take  func(a A, exited bool) // takes the answer; exited reports that there is none
	Go    func(func())           // starts a goroutine that the server counts
	Left  func(q Q, n int)       // counts questions that are left
	Until <-chan struct{}        // ends the wait, as AskTimeout does; may be nil

	mu     sync.Mutex // guards Next, Take and the fields below
	at     Q          // the last question
	since  time.Time  // when it was put
	asking bool       // it has no answer
	over   bool       // Run has returned
	left   bool       // with a question
}

// Run puts all questions. It returns false if the last one has no answer in time. Then no
// further question is put, and that one keeps nothing but itself.
func (q *Questions[Q, A]) Run() bool {
	done := make(chan struct{})
	q.Go(func() { q.run(done) })
	q.wait(done)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over, q.Next, q.Take = true, nil, nil
	if q.left = q.asking; q.left {
		q.Left(q.at, 1)
	}
	return !q.left
}

// wait returns when done is closed, or a question has used up its time.
func (q *Questions[Q, A]) wait(done <-chan struct{}) {
	timer := time.NewTimer(AskTimeout)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-q.Until:
			return
		case <-timer.C:
		}
		q.mu.Lock()
		rest := AskTimeout // the goroutine has not begun
		if q.asking {
			rest = time.Until(q.since.Add(AskTimeout))
		}
		q.mu.Unlock()
		if rest <= 0 {
			return
		}
		timer.Reset(rest)
	}
}

// run puts questions until none is left, and closes done. If one ends the goroutine, another
// goroutine continues.
func (q *Questions[Q, A]) run(done chan struct{}) {
	finished := false
	defer func() {
		if finished {
			close(done)
			return
		}
		var none A
		q.take(none, true)
		q.Go(func() { q.run(done) })
	}()
	for question, ok := q.next(); ok; question, ok = q.next() {
		q.take(q.Ask(question), false)
	}
	finished = true
}

// next returns the next question.
func (q *Questions[Q, A]) next() (question Q, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return question, false
	}
	if q.at, ok = q.Next(); ok {
		q.since, q.asking = time.Now(), true
	}
	return q.at, ok
}

// take takes an answer, unless it is late.
func (q *Questions[Q, A]) take(a A, exited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking = false
	switch {
	case q.left:
		q.left = false
		q.Left(q.at, -1)
	case !q.over:
		q.Take(a, exited)
	}
}
