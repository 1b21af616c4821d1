package session

import (
	"container/list"
	"sync"
)

// leastShare is the memory of one principal, in bytes, where a tenth of the budget is less:
// what one session may keep.
const leastShare = 6 << 20

// memoryBudget bounds the messages of all sessions of a Manager: the events of their
// histories, and the messages that wait for their streams. Each principal has an account
// with a share of it.
//
// If the budget is full, histories make room first, the least recently added to first.
// Then the session whose client has read nothing for longest drops its waiting messages.
// If a share is full, only the sessions of its principal make room. Waiting messages
// have at most three quarters of the limit, and of a share.
//
// Its lock comes after those of a Session and of a history.
type memoryBudget struct {
	limit int // bytes
	own   int // of a named principal, bytes; anonymous clients have half once there is one

	mu        sync.Mutex
	used      int
	queued    int // of used, by what waits
	named     bool
	accounts  map[string]*account // by principal, of those with sessions or bytes
	histories list.List           // of the *place of each history that keeps events, the newest last
	unread    list.List           // of the *place of each Session that something waits for, the one that has read last at the end
}

// account is what the sessions of one principal have of a budget, whose mu guards it. A nil
// account has no limit.
type account struct {
	budget    *memoryBudget
	principal string
	sessions  int
	used      int
	queued    int
	histories list.List // as in the budget
	unread    list.List // as in the budget
}

// place is where a history or a Session is in a list of the budget, and in that of its
// account. It keeps its value after it has left them. The mu of the budget guards it.
type place struct {
	what  any
	lists [2]*list.List
	at    [2]*list.Element
}

func newPlace(what any, all, own *list.List) *place {
	p := &place{what: what, lists: [2]*list.List{all, own}}
	p.at = [2]*list.Element{all.PushBack(p), own.PushBack(p)}
	return p
}

func (p *place) toBack() {
	for i, l := range p.lists {
		l.MoveToBack(p.at[i])
	}
}

func (p *place) leave() {
	for i, l := range p.lists {
		l.Remove(p.at[i])
	}
}

// setLimit sets the limit before the budget is used. most is Config.MaxPerPrincipal: if it
// is negative, principals have no share.
func (b *memoryBudget) setLimit(limit, most int) {
	b.limit, b.own = limit, limit
	if most >= 0 {
		b.own = min(limit, max(limit/10, leastShare))
	}
}

// open returns the account of a principal for one more session, until close.
func (b *memoryBudget) open(principal string) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.named = b.named || principal != ""
	a := b.accounts[principal]
	if a == nil {
		if b.accounts == nil {
			b.accounts = make(map[string]*account)
		}
		a = &account{budget: b, principal: principal}
		b.accounts[principal] = a
	}
	a.sessions++
	return a
}

// close ends the use of the account by a session. Calls of release and unqueue may follow.
func (a *account) close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.sessions--
	a.forget()
}

// forget drops an account that no session uses and that has no bytes. The mu of the budget
// is held.
func (a *account) forget() {
	if a.sessions == 0 && a.used == 0 && a.budget.accounts[a.principal] == a {
		delete(a.budget.accounts, a.principal)
	}
}

// share returns what the account may have. The mu of the budget is held.
func (a *account) share() int {
	b := a.budget
	switch {
	case a.principal != "":
		return b.own
	case b.named && b.own < b.limit:
		return max(b.limit/2, b.own)
	}
	return b.limit
}

// first returns what is first in the list of the account, if it is to make room by itself,
// or of all; nil if there is nothing. The mu of the budget is held.
func first(own bool, mine, all *list.List) *place {
	if own {
		all = mine
	}
	if front := all.Front(); front != nil {
		return front.Value.(*place)
	}
	return nil
}

// reserve takes n bytes, and drops the histories of others for them. It tells
// false if that is not enough. No history's lock may be held.
func (a *account) reserve(n int) bool { return a.obtain(n, 0, nil) }

// queue takes n bytes for a message that waits for the client of s. It drops the
// histories of others for them, and then what waits for clients that are further
// behind. It tells false if that is not enough. No lock of a session or a history may
// be held.
func (a *account) queue(n int, s *Session) bool { return n == 0 || a.obtain(n, n, s) }

// obtain takes n bytes, queued of them for s.
func (a *account) obtain(n, queued int, s *Session) bool {
	if a == nil {
		return true
	}
	for {
		h, behind, ok := a.take(n, queued, s)
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

// take takes n bytes, or returns what is to make room for them, which is out of its list
// then: a history, or for queued bytes a session. s makes no room for itself, and none can
// be made for it while no other is further behind.
func (a *account) take(n, queued int, s *Session) (h *history, behind *Session, ok bool) {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	share := a.share()
	ownFull, full := queued > 0 && a.queued+queued > share-share/4, queued > 0 && b.queued+queued > b.limit-b.limit/4
	own := ownFull || a.used+n > share
	switch {
	case n > share:
		return nil, nil, false
	case !own && !full && b.used+n <= b.limit:
		a.add(n, queued)
		return nil, nil, true
	}
	if p := first(own, &a.histories, &b.histories); p != nil && !ownFull && (own || !full) {
		p.leave()
		return p.what.(*history), nil, false
	}
	if p := first(own, &a.unread, &b.unread); queued > 0 && p != nil && p.what != s {
		p.leave()
		return nil, p.what.(*Session), false
	}
	return nil, nil, false
}

// add counts n bytes, and queued bytes of what waits. The mu of the budget is held.
func (a *account) add(n, queued int) {
	a.used, a.queued = a.used+n, a.queued+queued
	a.budget.used, a.budget.queued = a.budget.used+n, a.budget.queued+queued
	a.forget()
}

// unqueue gives n bytes back that queue has taken. Any other lock may be held.
func (a *account) unqueue(n int) {
	if a != nil {
		a.budget.mu.Lock()
		a.add(-n, -n)
		a.budget.mu.Unlock()
	}
}

// reads notes that the client of s has read, or that something begins to wait for it,
// and returns its place; waits tells whether something still does.
func (a *account) reads(s *Session, at *place, waits bool) *place {
	if a == nil {
		return nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	switch {
	case !waits && at != nil:
		at.leave()
		return nil
	case !waits:
		return nil
	case at == nil:
		return newPlace(s, &a.budget.unread, &a.unread)
	}
	at.toBack()
	return at
}

// release gives n bytes back that reserve has taken. Any other lock may be
// held.
func (a *account) release(n int) {
	if a != nil {
		a.budget.mu.Lock()
		a.add(-n, 0)
		a.budget.mu.Unlock()
	}
}

// newest notes that h was added to, and returns its place. One that is about to
// be dropped gets no other.
func (a *account) newest(h *history, at *place) *place {
	if a == nil {
		return nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if at == nil {
		return newPlace(h, &a.budget.histories, &a.histories)
	}
	at.toBack()
	return at
}

// drop gives back what the history at a place had: cost bytes, and the place, if it has
// one. The history's lock is held.
func (a *account) drop(at *place, cost int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if at != nil {
		at.leave()
	}
	a.add(-cost, 0)
}
