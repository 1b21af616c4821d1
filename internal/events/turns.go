package events

import (
	"context"
	"slices"
	"sync"
)

// turns are the places for requests to endpoints. Principals that wait take turns, so
// that one with many slow endpoints delays another by one request. It is safe for
// concurrent use.
type turns struct {
	most int // places of one principal

	mu      sync.Mutex
	free    int
	used    map[string]int
	waiting map[string][]chan struct{} // by principal, the first come first; none is empty
	order   []string                   // principals that wait, the next one first
}

// newTurns returns turns with places for all, of which a principal has at most most.
func newTurns(places, most int) *turns {
	return &turns{most: most, free: places, used: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// take waits for a place, which give returns.
func (t *turns) take(ctx context.Context, who string) error {
	t.mu.Lock()
	mine := make(chan struct{})
	if len(t.waiting[who]) == 0 {
		t.order = append(t.order, who)
	}
	t.waiting[who] = append(t.waiting[who], mine)
	t.next()
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting[who], mine); at >= 0 {
		t.remove(who, at)
	} else { // it came at the same time
		t.back(who)
	}
	return context.Cause(ctx)
}

// give returns a place.
func (t *turns) give(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back(who)
}

// back is give with mu held.
func (t *turns) back(who string) {
	t.free++
	if t.used[who]--; t.used[who] == 0 {
		delete(t.used, who)
	}
	t.next()
}

// next gives the free places to those that wait. mu is held.
func (t *turns) next() {
	for t.free > 0 {
		at := slices.IndexFunc(t.order, func(who string) bool { return t.used[who] < t.most })
		if at < 0 {
			return
		}
		who := t.order[at]
		mine := t.waiting[who][0]
		t.remove(who, 0)
		if len(t.waiting[who]) > 0 { // behind the others
			t.order = append(slices.DeleteFunc(t.order, func(other string) bool { return other == who }), who)
		}
		t.free--
		t.used[who]++
		close(mine)
	}
}

// remove takes out one that waits. mu is held.
func (t *turns) remove(who string, at int) {
	t.waiting[who] = slices.Delete(t.waiting[who], at, at+1)
	if len(t.waiting[who]) == 0 {
		delete(t.waiting, who)
		t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == who })
	}
}
