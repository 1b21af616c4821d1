package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Numbers of the work for a subscription.
const (
	asksAtOnce  = 64               // questions that are asked in a row
	keepAfter   = 16               // deliveries after which the position is kept
	keepEvery   = time.Hour        // time after which it is kept
	retryStore  = time.Second      // pause after an error of the store
	endedExpiry = 30 * time.Minute // how long the store keeps a subscription that has ended
)

// undecided are the pauses before it is asked again whether a subscription gets an event.
var undecided = [...]time.Duration{time.Second, 10 * time.Second, time.Minute}

// errLost is the error of a write for a subscription that this replica no longer owns.
var errLost = errors.New("events: another replica has the subscription")

// subscriber is a subscription that this replica owns. Webhooks.mu guards it. While busy,
// one goroutine does what there is to do, and only that moves the position.
type subscriber struct {
	key  scale.Key
	sub  *Subscription // what the store has; the position below is newer
	rev  scale.Rev
	user *user
	feed *feed

	birth     string // of the log that at is a position of
	at        scale.Rev
	odd       time.Time // since when the feed has another birth
	gap       bool      // a message about a gap is to be sent
	delivered time.Time
	lastError string

	kept    time.Time // when the position was kept
	since   int       // deliveries since then
	passed  int       // bytes of events since then
	until   time.Time // end of the lease
	removed bool      // its type was removed
	slow    bool      // match has not returned for it in time: it is asked about by itself
	late    time.Time // when the delivery began that the end of the subscription has stopped
	busy    bool
	out     bool               // it is not owned here any more
	stop    context.CancelFunc // of the goroutine; nil while it is not busy
}

// parse returns the parts of a cursor that this package has made.
func parse(cursor string) (birth string, at scale.Rev) {
	birth, _, _ = strings.Cut(strings.TrimPrefix(cursor, cursorForm), ".")
	at, _ = position(cursor, birth)
	return birth, at
}

// needs reports whether there is something to do that the tail of the feed does not show.
// mu is held.
func (s *subscriber) needs(now time.Time) bool {
	return s.gap || s.removed || s.sub.Ended != "" || s.birth != s.feed.birth || s.at < s.feed.tail.from || !now.Before(s.sub.Expires)
}

// state returns the subscription with the position as it is now. mu is held.
func (s *subscriber) state() Subscription {
	now := *s.sub
	now.At, now.Gap, now.Delivered, now.LastError = cursorAt(s.birth, s.at), s.gap, s.delivered, s.lastError
	return now
}

// enter begins to work for a subscription that this replica owns since began.
func (w *Webhooks) enter(key scale.Key, sub *Subscription, rev scale.Rev, began time.Time) *subscriber {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	s := w.own[key]
	if s == nil {
		s = &subscriber{key: key, feed: w.feedOf(sub.Name), gap: sub.Gap, delivered: sub.Delivered, lastError: sub.LastError, kept: time.Now()}
		s.birth, s.at = parse(sub.At)
		w.own[key] = s
		s.feed.subscribers[s] = true
	}
	w.adopt(s, sub, rev)
	s.until = began.Add(lease)
	s.feed.look()
	return s
}

// user is whose some subscriptions are: they share what is in memory of it.
type user struct {
	principal string
	identity  json.RawMessage
	prepared  any
	count     int // subscriptions
}

// adopt takes over what another write has changed; the position is that of here. mu is held.
func (w *Webhooks) adopt(s *subscriber, sub *Subscription, rev scale.Rev) {
	u := w.users[string(sub.Identity)]
	if u == nil || u.principal != sub.Principal {
		u = &user{sub.Principal, sub.Identity, w.config.Identity(sub.Identity), 0}
		w.users[string(sub.Identity)] = u
	}
	u.count++
	w.disown(s)
	sub.Principal, sub.Identity, sub.Prepared, sub.Name = u.principal, u.identity, u.prepared, s.feed.name
	s.sub, s.rev, s.user = sub, rev, u
}

// disown counts a subscription no more as one of its user. mu is held.
func (w *Webhooks) disown(s *subscriber) {
	if s.user == nil {
		return
	}
	if s.user.count--; s.user.count == 0 && w.users[string(s.user.identity)] == s.user {
		delete(w.users, string(s.user.identity))
	}
}

// keepPassed is how many bytes of events pass before the position is kept: a quarter of a log.
func (w *Webhooks) keepPassed() int { return w.config.Logs.config.Keep / 4 }

// forgetKey ends the work for the subscription of a key, if there is one.
func (w *Webhooks) forgetKey(key scale.Key) {
	w.mu.Lock()
	s := w.own[key]
	w.mu.Unlock()
	if s != nil {
		w.forget(s)
	}
}

// forget ends the work for a subscription.
func (w *Webhooks) forget(s *subscriber) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(s)
}

// drop is forget with mu held.
func (w *Webhooks) drop(s *subscriber) {
	if s.out {
		return
	}
	s.out = true
	if s.stop != nil {
		s.stop()
	}
	w.disown(s)
	delete(w.own, s.key)
	delete(s.feed.subscribers, s)
	if len(s.feed.subscribers) == 0 {
		s.feed.stop()
		delete(w.feeds, s.feed.name)
	}
}

// begin makes a goroutine work for a subscription, unless one does. first is a question
// that has been answered. mu is held.
func (w *Webhooks) begin(s *subscriber, first *decided) {
	if s.busy || s.out || w.closed {
		return
	}
	var ctx context.Context
	s.busy = true
	ctx, s.stop = context.WithCancel(w.ctx)
	w.ended.Go(func() {
		for w.step(ctx, s, first) {
			first = nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s.stop()
		s.busy, s.stop = false, nil
		if !s.out {
			s.feed.look() // for what came in between
		}
	})
}

// decided is an event of which is known whether a subscription gets it.
type decided struct {
	rev scale.Rev
	ask Ask
}

// step does the next thing for a subscription. It reports whether there may be more to do.
func (w *Webhooks) step(ctx context.Context, s *subscriber, first *decided) bool {
	w.mu.Lock()
	now, f := time.Now(), s.feed
	ended, expired, removed, over := s.sub.Ended, !now.Before(s.sub.Expires), s.removed, w.config.Shared && now.After(s.until)
	sub, rev, leaving, late := s.sub, s.rev, w.leaves(), s.late
	ready := f.birth != ""
	switch {
	case s.birth == f.birth:
		s.odd = time.Time{}
	case s.odd.IsZero():
		s.odd = now
		fallthrough
	case now.Sub(s.odd) < birthKnown || leaving: // the feed may be the older one
		ready = false
	case ready:
		s.birth, s.at, s.gap = f.birth, 0, true
	}
	gap, at, tail := s.gap, s.at, f.tail
	w.mu.Unlock()
	switch {
	case ctx.Err() != nil || leaving:
		return false
	case over: // renewed soon, or lost
		return w.wait(ctx, retryStore)
	case ended != "":
		w.terminate(ctx, s, sub, rev)
		return false
	case expired:
		if w.remove(ctx, s, rev) {
			if !late.IsZero() {
				w.tell("delivery.dropped", droppedExpired, sub, time.Since(late))
			}
			w.tell("webhook.ended", endedExpired, sub, 0)
		}
		return false
	case removed:
		return w.end(ctx, s, endedRemoved)
	case !ready:
		return w.wait(ctx, retryStore)
	case gap:
		return w.sendGap(ctx, s)
	case at < tail.from:
		return w.catchUp(ctx, s, at, tail.from)
	}
	events := tail.behind(at).events
	if len(events) == 0 {
		return w.rest(ctx, s)
	}
	return w.handle(ctx, s, events, first)
}

// leaves reports whether no further work is to begin. mu is held.
func (w *Webhooks) leaves() bool { return w.closed || w.draining && w.config.Shared }

// wait waits, until a subscription ends or this replica leaves. It reports whether the
// time is over.
func (w *Webhooks) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.left:
	case <-timer.C:
		return true
	}
	return false
}

// catchUp handles events behind a position that is before the tail of the feed, which
// begins at from.
func (w *Webhooks) catchUp(ctx context.Context, s *subscriber, at, from scale.Rev) bool {
	found, last, err := w.config.Logs.behind(ctx, s.feed.name, s.birth, at) // only this goroutine changes it
	if err != nil {
		if ctx.Err() == nil {
			w.failed(err)
		}
		return w.wait(ctx, retryStore)
	}
	if len(found.events) > 0 && found.from <= at {
		return w.handle(ctx, s, found.events, nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(found.events) == 0 {
		s.at = max(s.at, last, from)
	} else {
		s.at, s.gap = found.from, true
	}
	return true
}

// rest keeps the position when there is nothing to do.
func (w *Webhooks) rest(ctx context.Context, s *subscriber) bool {
	w.mu.Lock()
	since := s.since
	w.mu.Unlock()
	if since == 0 {
		return false
	}
	if err := w.keep(ctx, s, nil); err != nil && !errors.Is(err, errLost) {
		w.failed(err)
		return false // it is kept with the next delivery, or in time
	}
	return true
}

// handle decides about events and delivers them, in order. It reports whether there may be
// more to do.
func (w *Webhooks) handle(ctx context.Context, s *subscriber, events []Event, first *decided) bool {
	for _, e := range events {
		w.mu.Lock()
		sub, leaving := s.sub, w.leaves() || s.out
		w.mu.Unlock()
		if leaving || ctx.Err() != nil {
			return false
		}
		if e.Text == nil {
			w.config.Waits(sub.Name, errors.New("an event is not sealed with one of Options.StateKeys"))
			w.pass(s, e, true)
			return true
		}
		var known *Ask
		if first != nil && first.rev == e.At {
			known = &first.ask
		}
		verdict, ok := w.decide(ctx, s, e, known)
		if !ok {
			return false
		}
		switch verdict {
		case Forbidden:
			return w.end(ctx, s, endedForbidden)
		case Unknown:
			return w.unknown(ctx, s)
		case Yes:
			if !w.deliverEvent(ctx, s, e) {
				return true // it has ended, or this replica leaves
			}
		}
		w.pass(s, e, false)
		w.mu.Lock()
		full := s.since >= keepAfter || s.passed > w.keepPassed()
		w.mu.Unlock()
		if full {
			if err := w.keep(ctx, s, nil); errors.Is(err, errLost) {
				return false
			} else if err != nil {
				w.failed(err)
				return ctx.Err() == nil
			}
		}
	}
	return true
}

// pass moves the position behind an event.
func (w *Webhooks) pass(s *subscriber, e Event, gap bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.at, s.gap = e.At, s.gap || gap
	s.passed += len(e.Text)
}

// decide asks whether a subscription gets an event, until that is known or was asked often
// enough. known is the first answer, or nil. ok is false if the work for the subscription
// ends.
func (w *Webhooks) decide(ctx context.Context, s *subscriber, e Event, known *Ask) (verdict Verdict, ok bool) {
	for i := 0; ; i++ {
		w.mu.Lock()
		sub := s.sub
		w.mu.Unlock()
		if known == nil {
			known = &Ask{Of: sub, Event: e.Text}
			began := time.Now()
			w.config.Ask(ctx, []*Ask{known})
			w.mu.Lock()
			s.slow = time.Since(began) >= AskTimeout
			w.mu.Unlock()
		}
		if known.Verdict != Later && known.Verdict != Unasked {
			return known.Verdict, true
		}
		if i == len(undecided) {
			w.tell("delivery.dropped", droppedUndecided, sub, 0)
			return No, true
		}
		if !w.wait(ctx, undecided[i]) {
			return Later, false
		}
		known = nil
	}
}

// unknown handles a subscription of a type that this replica does not have.
func (w *Webhooks) unknown(ctx context.Context, s *subscriber) bool {
	w.mu.Lock()
	removed := w.gone[s.sub.Name]
	w.mu.Unlock()
	if removed || !w.config.Shared {
		return w.end(ctx, s, endedRemoved)
	}
	if err := w.release(ctx, s, lease); err != nil && !errors.Is(err, errLost) {
		w.failed(err)
		return w.wait(ctx, retryStore)
	}
	return false
}

// deliverEvent sends an event. It reports whether it is done or given up.
func (w *Webhooks) deliverEvent(ctx context.Context, s *subscriber, e Event) bool {
	var head struct {
		ID string `json:"eventId"`
	}
	if jsonx.Unmarshal(e.Text, &head) != nil || head.ID == "" {
		return true // it is not an event
	}
	began := time.Now()
	why, ok := w.deliver(ctx, s, head.ID, wire.WithCursor(nil, e.Text, e.Cursor))
	if !ok {
		return false
	}
	w.mu.Lock()
	sub := s.sub
	s.since++
	w.mu.Unlock()
	if why == "" {
		w.tell("delivery.done", "", sub, time.Since(began))
	} else {
		w.tell("delivery.dropped", why, sub, time.Since(began))
	}
	return true
}

// deliver sends a body until it is accepted, or given up for why. ok is false if the work
// for the subscription ends before.
func (w *Webhooks) deliver(ctx context.Context, s *subscriber, id string, body []byte) (why string, ok bool) {
	began := time.Now()
	for attempt := 1; ; attempt++ {
		out, ok := w.attempt(ctx, s, id, body, began)
		if !ok || out.accepted() {
			return "", ok
		}
		pause, why := out.pause(attempt, time.Since(began))
		if why != "" {
			return why, true
		}
		if !w.wait(ctx, pause) {
			return "", false
		}
	}
}

// attempt sends a body once, when the principal has a turn. ok is false if the work for the
// subscription ends, or this replica leaves, before.
func (w *Webhooks) attempt(ctx context.Context, s *subscriber, id string, body []byte, began time.Time) (out outcome, ok bool) {
	w.mu.Lock()
	who := s.sub.Principal
	w.mu.Unlock()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(w.going, cancel)
	err := w.sender.turns.take(waiting, who)
	stop()
	if err != nil {
		return out, false
	}
	defer w.sender.turns.give(who)
	w.mu.Lock()
	sub, over := s.sub, s.out || w.leaves() || w.config.Shared && time.Now().After(s.until)
	w.mu.Unlock()
	if over {
		return out, false
	}
	if sub.Ended == "" && !time.Now().Before(sub.Expires) {
		w.mu.Lock()
		s.late = began // it is dropped, unless a refresh elsewhere has extended it
		w.mu.Unlock()
		return out, false
	}
	if out, err = w.sender.post(ctx, sub, id, body, maxResponse); err != nil {
		return out, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.late = time.Time{}
	if s.lastError = out.reason; out.accepted() {
		s.delivered = time.Now().UTC()
	}
	return out, true
}

// sendGap tells the endpoint that events are missing.
func (w *Webhooks) sendGap(ctx context.Context, s *subscriber) bool {
	w.mu.Lock()
	cursor := cursorAt(s.birth, s.at)
	w.mu.Unlock()
	text, _ := json.Marshal(cursor) // a string
	if _, ok := w.deliver(ctx, s, controlID(wire.ControlGap), wire.AppendControl(nil, wire.ControlGap, "cursor", text)); !ok {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.gap = false
	s.since++
	return true
}

// end ends a subscription, and has its endpoint notified.
func (w *Webhooks) end(ctx context.Context, s *subscriber, why string) bool {
	err := w.keep(ctx, s, func(sub *Subscription) { sub.Ended, sub.Expires = why, time.Now().Add(endedExpiry) })
	switch {
	case errors.Is(err, errLost):
		return false
	case err != nil:
		w.failed(err)
		return w.wait(ctx, retryStore)
	}
	w.mu.Lock()
	sub := s.sub
	w.mu.Unlock()
	w.tell("webhook.ended", why, sub, 0)
	return true
}

// terminate sends the last message of a subscription that has ended, and forgets it.
func (w *Webhooks) terminate(ctx context.Context, s *subscriber, sub *Subscription, rev scale.Rev) {
	fault := &protocol.Error{Code: wire.EventCode(wire.CodeEventForbidden, sub.Declared), Message: fmt.Sprintf("events of %s are not for this user any more", sub.Name)}
	if sub.Ended == endedRemoved {
		fault = &protocol.Error{
			Code: wire.EventCode(wire.CodeEventNotFound, sub.Declared), Message: "Unknown event: " + sub.Name, Data: map[string]string{"kind": "event"},
		}
	}
	body := wire.AppendControl(nil, wire.ControlTerminated, "error", wire.AppendError(nil, fault))
	if _, ok := w.deliver(ctx, s, controlID(wire.ControlTerminated), body); ok {
		w.remove(ctx, s, rev)
	}
}

// remove deletes a subscription, unless another write has changed it since rev. It reports
// whether it has.
func (w *Webhooks) remove(ctx context.Context, s *subscriber, rev scale.Rev) bool {
	var written scale.Entry
	for {
		var err error
		if written, err = w.put(ctx, scale.Write{Key: s.key, Prev: rev, Notify: s.key.Partition}); err == nil {
			break
		}
		if w.failed(err); !w.wait(ctx, retryStore) {
			return false
		}
	}
	if written.Err != nil {
		w.found(s, written)
		return false
	}
	w.forget(s)
	return true
}

// keep writes the position of a subscription, and what change changes.
func (w *Webhooks) keep(ctx context.Context, s *subscriber, change func(*Subscription)) error {
	return w.write(ctx, s, change, func(write *scale.Write) {
		if w.config.Shared {
			write.Owner, write.DueIn, write.Index = w.config.Replica, lease, leased
		}
	})
}

// release gives a subscription to the replica that takes it first, after a while.
func (w *Webhooks) release(ctx context.Context, s *subscriber, after time.Duration) error {
	err := w.write(ctx, s, nil, func(write *scale.Write) {
		write.Owner, write.DueIn, write.Index, write.Notify = "", after, offered, s.key.Partition
	})
	if err == nil {
		w.forget(s)
	}
	return err
}

// write writes the state of a subscription. One without an owner is forgotten at once, since
// a renewal with the new Rev would keep others from taking it.
func (w *Webhooks) write(ctx context.Context, s *subscriber, change func(*Subscription), to func(*scale.Write)) error {
	for range subscribeTries {
		w.mu.Lock()
		if s.out {
			w.mu.Unlock()
			return errLost
		}
		next, rev := s.state(), s.rev
		w.mu.Unlock()
		if change != nil {
			change(&next)
		}
		write := scale.Write{Key: s.key, Prev: rev, Value: w.encode(&next, s.key), Owner: w.config.Replica, TTL: next.kept()}
		to(&write)
		began := time.Now()
		written, err := w.put(ctx, write)
		if err != nil {
			return err
		}
		if written.Err != nil {
			if !w.found(s, written) {
				return errLost
			}
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.rev != rev && s.rev > written.Rev { // a later write was taken over
			return nil
		}
		s.sub, s.rev, s.kept, s.since, s.passed, s.until = &next, written.Rev, began, 0, 0, began.Add(lease)
		if write.Owner == "" {
			w.drop(s)
		}
		return nil
	}
	return fmt.Errorf("events: other replicas change the subscription: %w", scale.ErrUnavailable)
}

// found takes over what the store has of a subscription. It reports whether it is still
// owned here.
func (w *Webhooks) found(s *subscriber, e scale.Entry) bool {
	var now *Subscription
	if e.Owner == w.config.Replica {
		now = w.read(e)
	}
	if now == nil {
		w.forget(s)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.out {
		w.adopt(s, now, e.Rev)
	}
	return !s.out
}

// readOwn gets the entry of a subscription that has changed.
func (w *Webhooks) readOwn(key scale.Key, rev scale.Rev) {
	w.mu.Lock()
	s := w.own[key]
	known := s != nil && s.rev == rev
	w.mu.Unlock()
	if s == nil || known {
		return
	}
	e, err := w.get(w.ctx, key)
	if err != nil {
		w.failed(err) // a renewal finds it
		return
	}
	w.found(s, e)
}
