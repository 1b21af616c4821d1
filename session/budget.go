package session

import (
	"container/list"
	"sync"
)

// budget is what the sessions of a Manager may keep of messages, all together:
// the events of their histories, and what waits for their streams. Histories
// make room, the ones first that were not added to for the longest time. A nil
// budget has no limit. Its lock may be taken while those of a Session and of a
// history are held, and never the other way round.
type budget struct {
	limit int // bytes

	mu        sync.Mutex
	used      int
	histories list.List // of the *history that keep events, the newest last
}

// reserve takes n bytes, and drops the histories of others for them. It tells
// false if that is not enough. No history's lock may be held.
func (b *budget) reserve(n int) bool {
	if b == nil {
		return true
	}
	if n > b.limit {
		return false
	}
	for {
		oldest, ok := b.take(n)
		if oldest == nil {
			return ok
		}
		oldest.mu.Lock()
		oldest.drop()
		oldest.mu.Unlock()
	}
}

// take takes n bytes, or returns the history that is to make room for them,
// which is out of the list then. ok is false, and oldest nil, if there is none
// left.
func (b *budget) take(n int) (oldest *history, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n <= b.limit {
		b.used += n
		return nil, true
	}
	if first := b.histories.Front(); first != nil {
		return b.histories.Remove(first).(*history), false
	}
	return nil, false
}

// release gives n bytes back that reserve has taken. Any other lock may be
// held.
func (b *budget) release(n int) {
	if b != nil {
		b.mu.Lock()
		b.used -= n
		b.mu.Unlock()
	}
}

// newest notes that h was added to, and returns its place. One that is about to
// be dropped gets no other.
func (b *budget) newest(h *history, place *list.Element) *list.Element {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if place == nil {
		return b.histories.PushBack(h)
	}
	b.histories.MoveToBack(place)
	return place
}

// drop gives back what the history at place had: cost bytes, and its place in
// the list, if it has one. The history's lock is held.
func (b *budget) drop(place *list.Element, cost int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if place != nil {
		b.histories.Remove(place)
	}
	b.used -= cost
}
