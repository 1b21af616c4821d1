package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// Times of the ownership of subscriptions, and indexes of the store. Subscriptions that a
// replica has given away are in an index of their own, from which any replica takes them
// at once. From the other index a replica takes those that were not renewed.
const (
	lease      = 60 * time.Second
	leaseRenew = 20 * time.Second
	renewAgain = 5 * time.Second  // after a renewal that has failed
	trusted    = 30 * time.Second // of answers of the store, in which its owners renew what they have
	ownerBeat  = 8 * time.Second
	claimMost  = 100         // subscriptions of one call
	renewMost  = 256         // of one call
	keepMost   = 200         // positions that are kept in one beat
	claimPause = time.Second // before a claim of what others have given away

	leased  = "leased"
	offered = "offered"
)

// errClosed is the error of a subscription after Close.
var errClosed = fmt.Errorf("events: the server shuts down: %w", scale.ErrUnavailable)

// Start begins to work for the subscriptions of this replica, and to take those that no
// replica works for. It does nothing the second time.
func (w *Webhooks) Start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	if w.started {
		return nil
	}
	w.started, w.unclaimed = true, true
	w.ended.Go(w.lookAfter)
	if w.config.Shared {
		w.ended.Go(w.renewAll)
	}
	return nil
}

// noticed is called with writes of subscriptions.
func (w *Webhooks) noticed(_ string, m scale.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own[m.Key] != nil {
		w.changed[m.Key] = m.Rev
	} else {
		w.unclaimed = true
	}
	w.look()
}

// missed is called when some messages may be missing.
func (w *Webhooks) missed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unclaimed = true // the next renewal finds what has changed
	w.look()
}

// look wakes lookAfter.
func (w *Webhooks) look() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
}

// lookAfter does what no event causes: it ends subscriptions, keeps positions, and takes
// subscriptions that no replica works for.
func (w *Webhooks) lookAfter() {
	beat := time.NewTicker(ownerBeat)
	defer beat.Stop()
	if w.config.Shared {
		watcher := w.store.Watch(w.noticed, w.missed)
		defer watcher.Close()
		if err := w.watchParts(watcher); err != nil {
			w.failed(err) // the beat finds what the store does not tell
		}
	}
	var soon <-chan time.Time // a claim, which answers all that was noticed until then
	for {
		w.mu.Lock()
		changed, claim := w.changed, w.config.Shared && w.unclaimed
		w.changed, w.unclaimed = map[scale.Key]scale.Rev{}, false
		w.mu.Unlock()
		for key, rev := range changed {
			w.readOwn(key, rev)
		}
		if claim && soon == nil {
			soon = time.After(claimPause)
		}
		select {
		case <-w.ctx.Done():
			return
		case <-w.left:
			return
		case <-w.wake:
		case <-soon:
			soon = nil
			w.claim(offered)
		case <-beat.C:
			w.beat()
		}
	}
}

// watchParts asks the store to tell of changes of subscriptions.
func (w *Webhooks) watchParts(watcher scale.Watcher) error {
	var parts []string
	for n := range webhookSlots {
		parts = append(parts, replica.Partition("webhook", n))
	}
	return watcher.Add(w.ctx, parts...)
}

// beat does what is due from time to time.
func (w *Webhooks) beat() {
	w.mu.Lock()
	now := time.Now()
	w.unclaimed = true
	var old []*subscriber
	for _, s := range w.own {
		switch {
		case s.busy:
		case s.feed.birth != "" && s.needs(now):
			w.begin(s, nil)
		case len(old) < keepMost && (s.passed > w.keepPassed() || now.Sub(s.kept) >= keepEvery && (s.since > 0 || s.state().At != s.sub.At)):
			old = append(old, s)
		}
	}
	w.mu.Unlock()
	for _, s := range old {
		if err := w.keep(w.ctx, s, nil); err != nil && !errors.Is(err, errLost) {
			w.failed(err)
			break // the next beat tries again
		}
	}
	if !w.config.Shared {
		return
	}
	writes := make([]scale.Write, webhookSlots)
	for n := range webhookSlots {
		writes[n] = scale.Write{Key: scale.Key{Partition: replica.Partition("webhook", n), Name: "contact"}, Prev: scale.Any, Value: []byte{}, TTL: lease}
	}
	written, err := w.store.Put(w.ctx, writes...)
	answered := err == nil && !slices.ContainsFunc(written, func(e scale.Entry) bool { return e.Err != nil })
	w.health.Record(answered)
	w.failed(err)
	if w.health.IsTrusted() { // else a due one may only have missed a renewal
		w.claim(leased)
	}
}

// claim takes subscriptions that are due in an index.
func (w *Webhooks) claim(index string) {
	for n := range webhookSlots {
		for {
			w.mu.Lock()
			leaving := w.leaves()
			w.mu.Unlock()
			if leaving {
				return
			}
			began := time.Now()
			due, err := w.store.ClaimDue(w.ctx, replica.Partition("webhook", n), index, w.config.Replica, claimMost, lease)
			if err != nil {
				w.health.Record(false)
				w.failed(err)
			}
			for _, e := range due {
				sub := w.read(e)
				if e.Err != nil || sub == nil {
					continue
				}
				s := w.enter(e.Key, sub, e.Rev, began)
				if s == nil || index == leased {
					continue
				}
				if err := w.keep(w.ctx, s, nil); err != nil && !errors.Is(err, errLost) { // into the other index
					w.failed(err)
				}
			}
			if err != nil || len(due) == 0 {
				break
			}
		}
	}
}

// renewAll renews what this replica owns, until it leaves.
func (w *Webhooks) renewAll() {
	timer := time.NewTimer(leaseRenew)
	defer timer.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.left:
			return
		case <-timer.C:
		}
		w.mu.Lock()
		own := slices.Collect(maps.Values(w.own))
		w.mu.Unlock()
		var asked sync.WaitGroup
		var failed atomic.Bool
		for chunk := range slices.Chunk(own, renewMost) {
			asked.Go(func() {
				if !w.renew(chunk) {
					failed.Store(true)
				}
			})
		}
		asked.Wait()
		if timer.Reset(leaseRenew); failed.Load() {
			timer.Reset(renewAgain)
		}
	}
}

// renew renews subscriptions with one call. It reports whether the store has answered.
func (w *Webhooks) renew(own []*subscriber) bool {
	w.mu.Lock()
	own = slices.DeleteFunc(own, func(s *subscriber) bool { return s.out })
	looks := make([]scale.GetOp, len(own))
	for i, s := range own {
		looks[i] = scale.GetOp{Key: s.key, Known: s.rev, In: lease}
	}
	w.mu.Unlock()
	if len(looks) == 0 {
		return true
	}
	began := time.Now()
	found, err := w.store.Get(w.ctx, looks...)
	w.failed(err)
	answered := len(found) == len(own)
	if !answered {
		found = nil
	}
	for i, e := range found {
		if e.Err != nil || err != nil && e.Key != looks[i].Key {
			answered = false
			continue
		}
		w.renewed(own[i], looks[i].Known, e, began)
	}
	w.health.Record(answered)
	return answered
}

// renewed handles what a renewal has found.
func (w *Webhooks) renewed(s *subscriber, known scale.Rev, e scale.Entry, began time.Time) {
	if e.Rev == known {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.until = maxTime(s.until, began.Add(lease))
		return
	}
	w.mu.Lock()
	own := s.rev != known // a write of this replica's came in between
	w.mu.Unlock()
	if !own {
		w.found(s, e) // the next renewal extends its lease
	}
}

// maxTime returns the later of two times.
func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// feedOf returns the feed of a type, whose goroutine begins with the first subscription.
// mu is held.
func (w *Webhooks) feedOf(name string) *feed {
	if f := w.feeds[name]; f != nil {
		return f
	}
	f := &feed{name: name, subscribers: map[*subscriber]bool{}, wake: make(chan struct{}, 1)}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(w.ctx)
	w.feeds[name] = f
	w.ended.Go(func() { w.follow(ctx, f) })
	return f
}

// follow asks the subscriptions of a feed about what is new in its log.
func (w *Webhooks) follow(ctx context.Context, f *feed) {
	defer w.config.Logs.Follow(f.name, f.look)()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.left:
			return
		case <-f.wake:
		}
		if birth, tail, ok := w.config.Logs.newest(f.name); ok {
			w.mu.Lock()
			f.birth, f.tail = birth, tail
			w.mu.Unlock()
			w.sweep(ctx, f)
		}
	}
}

// sweep asks the subscriptions of a feed that do nothing about what is new, and lets those
// work that get some of it.
func (w *Webhooks) sweep(ctx context.Context, f *feed) {
	w.mu.Lock()
	now := time.Now()
	var idle []*subscriber
	for s := range f.subscribers {
		switch {
		case s.busy:
		case s.needs(now):
			w.begin(s, nil)
		case s.at < f.tail.to:
			idle = append(idle, s)
		}
	}
	w.mu.Unlock()
	for slow := false; len(idle) > 0 && ctx.Err() == nil; {
		if idle, slow = w.sweepSome(ctx, f, idle); slow { // else each that hangs delays the others
			w.mu.Lock()
			for _, s := range idle {
				w.begin(s, nil)
			}
			w.mu.Unlock()
			return
		}
	}
}

// sweepSome is sweep for some subscriptions, and returns the others. slow reports that the
// questions have taken as long as one may, as when match has not returned for one.
func (w *Webhooks) sweepSome(ctx context.Context, f *feed, idle []*subscriber) (rest []*subscriber, slow bool) {
	var asks []*Ask
	type part struct {
		s      *subscriber
		events []Event
		from   int // in asks
	}
	var parts []part
	w.mu.Lock()
	n := 0
	for ; n < len(idle) && len(asks) < asksAtOnce; n++ {
		s := idle[n]
		events := f.tail.behind(s.at).events
		if s.busy || s.out || s.at < f.tail.from || w.leaves() {
			continue
		}
		if len(events) > asksAtOnce || s.slow { // it works by itself
			w.begin(s, nil)
			continue
		}
		p := part{s, events, len(asks)}
		for _, e := range events {
			if e.Text == nil {
				break
			}
			asks = append(asks, &Ask{Of: s.sub, Event: e.Text})
		}
		s.busy = true
		parts = append(parts, p)
	}
	w.mu.Unlock()
	began := time.Now()
	if len(asks) > 0 {
		w.config.Ask(ctx, asks)
	}
	slow = time.Since(began) >= AskTimeout
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range parts {
		to := len(asks)
		if i+1 < len(parts) {
			to = parts[i+1].from
		}
		p.s.busy = false
		mine := asks[p.from:to]
		passed := 0
		for passed < len(mine) && mine[passed].Verdict == No {
			p.s.at = p.events[passed].At
			p.s.passed += len(p.events[passed].Text)
			passed++
		}
		switch {
		case passed < len(mine) && mine[passed].Verdict != Unasked:
			p.s.slow = slow && mine[passed].Verdict == Later
			w.begin(p.s, &decided{p.events[passed].At, *mine[passed]})
		case passed < len(p.events):
			w.begin(p.s, nil)
		}
	}
	return idle[n:], slow
}

// Removed notes that an event type was removed, or that there is one again.
func (w *Webhooks) Removed(name string, removed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !removed {
		delete(w.gone, name)
		return
	}
	w.gone[name] = true
	if f := w.feeds[name]; f != nil {
		for s := range f.subscribers {
			s.removed = true
		}
		f.look()
	}
}

// Drain gives the subscriptions to other replicas, and takes no more.
func (w *Webhooks) Drain() {
	w.mu.Lock()
	if w.draining {
		w.mu.Unlock()
		return
	}
	w.draining = true
	if w.config.Shared {
		w.leave()
	}
	w.mu.Unlock()
	w.giveAway()
}

// giveAway releases the subscriptions without a running request, and the others when their
// requests have ended.
func (w *Webhooks) giveAway() {
	if !w.config.Shared {
		return
	}
	for {
		w.mu.Lock()
		var idle []*subscriber
		busy := 0
		for _, s := range w.own {
			if s.busy {
				busy++
			} else {
				idle = append(idle, s)
			}
		}
		w.mu.Unlock()
		if len(idle) == 0 && busy == 0 {
			return
		}
		work := make(chan *subscriber)
		var all sync.WaitGroup
		var failed sync.Once
		for range 16 {
			all.Go(func() {
				for s := range work {
					if err := w.release(w.ctx, s, time.Millisecond); err != nil && !errors.Is(err, errLost) {
						failed.Do(func() { w.failed(err) })
						w.forget(s) // others take it after its lease
					}
				}
			})
		}
		for _, s := range idle {
			work <- s
		}
		close(work)
		all.Wait()
		if busy > 0 && pause.For(w.ctx, retryStore/20) != nil {
			return
		}
	}
}

// Close ends all work: requests to endpoints may finish until ctx ends, but the store has
// at least a second. It returns how many subscriptions still had something to do.
func (w *Webhooks) Close(ctx context.Context) (waiting int) {
	if ctx.Err() != nil {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		ctx = short
	}
	defer context.AfterFunc(ctx, w.cancel)()
	w.Drain()
	w.mu.Lock()
	var busy []*subscriber
	for _, s := range w.own {
		if s.busy {
			busy = append(busy, s)
		}
	}
	w.leave()
	w.closed = true
	w.mu.Unlock()
	w.ended.Wait() // or w.ctx ends with ctx
	w.mu.Lock()
	for _, s := range busy {
		if !s.out && (s.gap || s.sub.Ended != "" || s.at < s.feed.tail.to) {
			waiting++
		}
	}
	w.mu.Unlock()
	w.giveAway() // those whose requests have ended after Drain
	w.cancel()
	w.sender.outbound.CloseIdleConnections()
	return waiting
}
