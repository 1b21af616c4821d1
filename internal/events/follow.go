package events

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// Times of a follower.
const (
	lookInterval = 5 * time.Second // between two looks at the log of a type that is followed
	beatEvery    = 5               // looks after which Config.Look is called in any case
)

// followed is a type with streams at this replica.
type followed struct {
	name string
	seen scale.Rev // the newest event that Config.Look was called for
	due  bool      // the log may have more
}

// Follow makes Config.Look be called for a type, when its log has new events, and every
// 25 s, until Unfollow. It does not wait. The first one starts a goroutine, which ends with
// the last.
func (l *Logs) Follow(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.followed == nil {
		l.followed = make(map[string]*followed)
	}
	l.followed[boxOf(name)] = &followed{name: name, due: true}
	if !l.following {
		l.following = true
		l.ended.Go(l.follow)
	}
	l.signal()
}

// Unfollow takes a Follow back. It does not wait.
func (l *Logs) Unfollow(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followed, boxOf(name))
	l.signal()
}

// Close ends the goroutine, and waits for it until ctx ends. It may be called again.
func (l *Logs) Close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	ended := make(chan struct{})
	go func() {
		l.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// signal wakes the goroutine.
func (l *Logs) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it is about to look
	}
}

// onAppend notes that a box has a message. It runs on the goroutine of the Watcher.
func (l *Logs) onAppend(box string, _ scale.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.followed[box]; f != nil {
		f.due = true
		l.signal()
	}
}

// onGap notes that messages may have been missed. It runs on the goroutine of the Watcher.
func (l *Logs) onGap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.followed {
		f.due = true
	}
	l.signal()
}

// follow reads the logs that are followed, so that their streams find new events in memory:
// when the store says that there are some, and every 5 s.
func (l *Logs) follow() {
	watcher := l.config.Store.Watch(l.onAppend, l.onGap)
	defer watcher.Close()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	watched, beat := make(map[string]bool), 0
	for {
		all := false
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		case <-ticker.C:
			all = true
			beat = (beat + 1) % beatEvery
		}
		if !l.sync(watcher, watched) {
			return
		}
		for _, f := range l.take(all) {
			moved, err := l.refresh(f)
			if err != nil && l.ctx.Err() == nil && l.config.OnError != nil {
				l.config.OnError(err)
			}
			if moved || all && beat == 0 {
				l.config.Look(f.name)
			}
		}
	}
}

// sync makes the Watcher watch what is followed, and no more. It returns false if that is
// nothing: the goroutine ends. It runs before the logs are read, so that nothing is missed.
func (l *Logs) sync(watcher scale.Watcher, watched map[string]bool) bool {
	l.mu.Lock()
	if l.following = len(l.followed) > 0; !l.following {
		l.mu.Unlock()
		return false
	}
	var more, less []string
	for box := range l.followed {
		if !watched[box] {
			more = append(more, box)
		}
	}
	for box := range watched {
		if l.followed[box] == nil {
			less = append(less, box)
		}
	}
	l.mu.Unlock()
	watcher.Remove(less...)
	for _, box := range less {
		delete(watched, box)
	}
	if len(more) > 0 {
		ctx, cancel := context.WithTimeout(l.ctx, replica.StoreTimeout)
		defer cancel()
		if watcher.Add(ctx, more...) == nil { // the reads tell what is wrong; it is tried again in 5 s
			for _, box := range more {
				watched[box] = true
			}
		}
	}
	return true
}

// take returns the types that are due, or all.
func (l *Logs) take(all bool) (due []*followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, box := range slices.Sorted(maps.Keys(l.followed)) {
		if f := l.followed[box]; f.due || all {
			f.due = false
			due = append(due, f)
		}
	}
	return due
}

// refresh reads the end of a log into memory. moved reports that it has events that
// Config.Look was not called for.
func (l *Logs) refresh(f *followed) (moved bool, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, replica.StoreTimeout)
	defer cancel()
	birth, err := l.born(ctx)
	if err != nil {
		return false, err
	}
	now, err := l.now(ctx)
	if err != nil {
		return false, err
	}
	box := boxOf(f.name)
	l.mu.Lock()
	after := now - micros(clockSkew)
	if m := l.memoryOf(box, birth); m.known {
		after = m.tail.to
	}
	l.mu.Unlock()
	for more := true; more; {
		found, err := l.load(ctx, box, birth, after, now)
		if err != nil {
			return false, err
		}
		after, more = found.to, found.more
	}
	moved = after > f.seen
	f.seen = after
	return moved, nil
}

// Recall is Read from memory. ok is false if the memory does not reach back to the cursor,
// or is behind it: Read has to ask the store. It is for types that are followed, of which
// the memory has all events that Config.Look was called for.
func (l *Logs) Recall(name, cursor string) (page Page, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memory[boxOf(name)]
	if m == nil || !m.known {
		return Page{}, false
	}
	at, valid := position(cursor, l.birth)
	if !valid || at < m.tail.from || at > m.now+micros(clockAhead) {
		return Page{}, false
	}
	after, truncated, fresh := place(cursor, l.birth, m.now, -1)
	found := m.tail.behind(after)
	return found.page(l.birth, after, m.now, truncated, fresh), true
}
