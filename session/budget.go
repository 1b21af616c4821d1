package session

import (
	"container/list"
	"sync"
)

// budget bounds the messages of all sessions of a Manager: the events of their histories,
// and the messages that wait for their streams.
//
// If it is full, histories make room first, the least recently added to first. Then the
// session whose client has read nothing for longest drops its waiting messages. These have
// at most three quarters of the limit.
//
// A nil budget has no limit. Its lock comes after those of a Session and of a history.
type memoryBudget struct {
	limit int // bytes

	mu        sync.Mutex
	used      int
	queued    int       // of used, by what waits
	histories list.List // of the *history that keep events, the newest last
	unread    list.List // of the *Session that something waits for, the one that has read last at the end
}

// reserve takes n bytes, and drops the histories of others for them. It tells
// false if that is not enough. No history's lock may be held.
func (b *memoryBudget) reserve(n int) bool {
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
func (b *memoryBudget) take(n int) (oldest *history, ok bool) {
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

// queue takes n bytes for a message that waits for the client of s. It drops the
// histories of others for them, and then what waits for clients that are further
// behind. It tells false if that is not enough. No lock of a session or a history may
// be held.
func (b *memoryBudget) queue(n int, s *Session) bool {
	if b == nil || n == 0 {
		return true
	}
	for {
		h, behind, ok := b.takeQueued(n, s)
		switch {
		case h != nil:
			h.mu.Lock()
			h.drop()
			h.mu.Unlock()
		case behind != nil:
			behind.dropUnread()
		default:
			return ok
		}
	}
}

// takeQueued takes n bytes, or returns what is to make room for them, which is out of
// its list then: a history or a session. s makes no room for itself, and none can be
// made for it while no other is further behind.
func (b *memoryBudget) takeQueued(n int, s *Session) (h *history, behind *Session, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.queued+n > b.limit-b.limit/4
	if !full && b.used+n <= b.limit {
		b.used, b.queued = b.used+n, b.queued+n
		return nil, nil, true
	}
	if oldest := b.histories.Front(); oldest != nil && !full {
		return b.histories.Remove(oldest).(*history), nil, false
	}
	if last := b.unread.Front(); last != nil && last.Value != s {
		return nil, b.unread.Remove(last).(*Session), false
	}
	return nil, nil, false
}

// unqueue gives n bytes back that queue or bring has taken. Any other lock may be held.
func (b *memoryBudget) unqueue(n int) {
	if b != nil {
		b.mu.Lock()
		b.used, b.queued = b.used-n, b.queued-n
		b.mu.Unlock()
	}
}

// reads notes that the client of s has read, or that something begins to wait for it,
// and returns its place; waits tells whether something still does.
func (b *memoryBudget) reads(s *Session, place *list.Element, waits bool) *list.Element {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !waits && place != nil:
		b.unread.Remove(place)
		return nil
	case !waits:
		return nil
	case place == nil:
		return b.unread.PushBack(s)
	}
	b.unread.MoveToBack(place)
	return place
}

// release gives n bytes back that reserve has taken. Any other lock may be
// held.
func (b *memoryBudget) release(n int) {
	if b != nil {
		b.mu.Lock()
		b.used -= n
		b.mu.Unlock()
	}
}

// newest notes that h was added to, and returns its place. One that is about to
// be dropped gets no other.
func (b *memoryBudget) newest(h *history, place *list.Element) *list.Element {
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
func (b *memoryBudget) drop(place *list.Element, cost int) {
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
