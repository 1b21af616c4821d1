package events

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// Times of followers.
const (
	lookInterval = 5 * time.Second // between two looks at the log of a type that is followed
	beatEvery    = 5               // looks after which followers are called in any case
)

// followed is a type whose new events come into memory as they are appended.
type followed struct {
	name  string
	looks map[*func()]bool // of the followers
	seen  scale.Rev        // the newest event that they were called for
	due   bool             // there may be more
	fresh bool             // there is a new follower
	// The messages that the store has sent since, and their bytes. If some are missing, the
	// log has to be read.
	hints  []scale.Message
	waits  int
	missed bool
}

// Follow makes look be called when the log of a type has new events, which are in memory
// then, and every 25 s. look must not block. stop ends it, without waiting for a call. The
// first Follow starts a goroutine, which ends with the last.
func (l *Logs) Follow(name string, look func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	box := boxOf(name)
	if l.followed == nil {
		l.followed = make(map[string]*followed)
	}
	f := l.followed[box]
	if f == nil {
		f = &followed{name: name, looks: make(map[*func()]bool)}
		l.followed[box] = f
	}
	f.looks[&look], f.fresh, f.due, f.missed = true, true, true, true
	if !l.following && !l.closed {
		l.following = true
		l.ended.Go(l.follow)
	}
	l.signal()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(f.looks, &look); len(f.looks) == 0 && l.followed[box] == f {
			delete(l.followed, box)
		}
		l.signal()
	}
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

// onAppend notes a message of a box. It runs on the goroutine of the Watcher.
func (l *Logs) onAppend(box string, m scale.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.followed[box]
	if f == nil {
		return
	}
	if f.waits += len(m.Data); m.Data == nil || f.waits > maxTail {
		f.hints, f.waits, f.missed = nil, 0, true
	} else {
		f.hints = append(f.hints, m)
	}
	f.due = true
	l.signal()
}

// onGap notes that messages may have been missed. It runs on the goroutine of the Watcher.
func (l *Logs) onGap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.followed {
		f.due, f.missed = true, true
	}
	l.signal()
}

// follow brings the new events of the logs that are followed into memory: when the store
// says that there are some, and every 5 s.
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
				l.mu.Lock()
				looks := slices.Collect(maps.Keys(f.looks))
				l.mu.Unlock()
				for _, look := range looks {
					(*look)()
				}
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

// take returns the types that are due, or all, of which the logs are then read.
func (l *Logs) take(all bool) (due []*followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, box := range slices.Sorted(maps.Keys(l.followed)) {
		if f := l.followed[box]; f.due || all {
			f.due, f.missed = false, f.missed || all
			due = append(due, f)
		}
	}
	return due
}

// refresh brings the end of a log into memory. moved reports that it has events that the
// followers were not called for.
func (l *Logs) refresh(f *followed) (moved bool, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, replica.StoreTimeout)
	defer cancel()
	birth, err := l.born(ctx)
	box := boxOf(f.name)
	l.mu.Lock()
	hints, missed, fresh := f.hints, f.missed, f.fresh
	f.hints, f.waits, f.missed, f.fresh = nil, 0, false, false
	l.mu.Unlock()
	var last scale.Rev
	if err == nil {
		var known bool
		if last, known = l.learn(box, birth, hints); missed || !known {
			last, err = l.readOn(ctx, box, birth, last)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // the next look tries again
		f.missed, f.fresh = true, f.fresh || fresh
		return false, err
	}
	moved = fresh || last > f.seen
	f.seen = max(f.seen, last)
	return moved, nil
}

// learn adds messages that the store has sent to the tail of a log. It returns up to where
// the tail has everything; known is false if the log has to be read, as some are missing.
func (l *Logs) learn(box, birth string, hints []scale.Message) (last scale.Rev, known bool) {
	l.mu.Lock()
	m := l.memoryOf(box, birth)
	last, known = m.tail.to, m.known
	l.mu.Unlock()
	for len(hints) > 0 && hints[0].Rev <= last {
		hints = hints[1:]
	}
	if !known || len(hints) == 0 {
		return last, known
	}
	n := 1
	for n < len(hints) && hints[n].Prev == hints[n-1].Rev {
		n++
	}
	if hints[0].Prev > last {
		return last, false
	}
	read, _ := l.open(box, birth, last, hints[:n])
	l.mu.Lock()
	defer l.mu.Unlock()
	if m = l.memoryOf(box, birth); !m.known || m.tail.to < read.from {
		return m.tail.to, false
	}
	all := m.tail
	all.join(read)
	m.tail = all.newest()
	m.now = max(m.now, m.tail.to)
	return m.tail.to, n == len(hints)
}

// readOn reads what follows a position of a log, 0 for its end, into memory.
func (l *Logs) readOn(ctx context.Context, box, birth string, after scale.Rev) (last scale.Rev, err error) {
	now, err := l.now(ctx)
	if err != nil {
		return 0, err
	}
	if after == 0 {
		after = now - micros(clockSkew)
	}
	for more := true; more; {
		found, err := l.load(ctx, box, birth, after, after, now)
		if err != nil {
			return 0, err
		}
		after, more = found.to, found.more
	}
	return after, nil
}

// newest returns the newest events of a type that is followed, and the birth of their log.
// ok is false if none were read yet.
func (l *Logs) newest(name string) (birth string, tail part, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memory[boxOf(name)]
	if m == nil || !m.known {
		return "", part{}, false
	}
	return l.birth, m.tail, true
}

// Recall is Read from memory. ok is false if the memory does not reach back to the cursor,
// or is behind it: Read has to ask the store. It is for types that are followed, of which
// the memory has all events that the followers were called for.
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
