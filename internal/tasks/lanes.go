package tasks

import (
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
)

// lanesOfPart is how many lanes a part of the store has.
const lanesOfPart = 8

// lane is one queue of tasks that wait for a worker: an index of a part of the
// store. Those of one owner wait in one lane of each part, so that an owner of
// many is in the way of few others.
type lane struct {
	Part  string `json:"part"`
	Index string `json:"index"`
}

// laneOf returns where a task waits.
func laneOf(r *Record) lane {
	owner := fnv.New32a()
	_, _ = owner.Write([]byte(r.Owner))
	number := owner.Sum32() % lanesOfPart
	return lane{keyOf(r.ID).Partition, queued + strconv.Itoa(int(number))}
}

// lanesOf returns all lanes of a part.
func lanesOf(part string) (all []lane) {
	for n := range lanesOfPart {
		all = append(all, lane{part, queued + strconv.Itoa(n)})
	}
	return all
}

// lanes are those in which tasks may wait, in the order in which they have their
// turns. It is safe for concurrent use.
type lanes struct {
	wake chan struct{} // tells of some that were added; has room for one

	mu    sync.Mutex
	some  []lane
	heard []lane // that add has put there; there may be nothing that is due so soon
}

// add puts lanes behind the others, unless they are among them.
func (l *lanes) add(some ...lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range some {
		if !slices.Contains(l.some, one) {
			l.some = append(l.some, one)
		}
	}
}

// knock is add of one, and wakes who waits for that.
func (l *lanes) knock(one lane) {
	l.add(one)
	l.mu.Lock()
	if !slices.Contains(l.heard, one) {
		l.heard = append(l.heard, one)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // the receiver is awake already
	}
}

// again adds lanes, and once more those that knock has added since it was called
// last.
func (l *lanes) again(some []lane) {
	l.mu.Lock()
	heard := l.heard
	l.heard = nil
	l.mu.Unlock()
	l.add(append(heard, some...)...)
}

// next takes out the first lane, and tells how many there are with it, 0 if none.
func (l *lanes) next() (first lane, of int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of = len(l.some); of > 0 {
		first = l.some[0]
		l.some = slices.Delete(l.some, 0, 1)
	}
	return first, of
}
