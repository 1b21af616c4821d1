// Package scaletest checks that a scale.Store does what its interface demands, as
// testing/slogtest does for log handlers.
//
// [Run] checks every sentence of the interface that can be checked from outside, with two
// Stores that share one engine, as two replicas do: writes are conditional and none is
// lost, one replica claims what is due and the others are fenced, limits are exact, a box
// loses nothing between two readers, and watchers receive everything. It cannot detect what
// an engine loses when one of its machines takes over from another.
//
// scale.NewLocal passes the same checks.
package scaletest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// Backend is what is checked.
type Backend struct {
	// Open returns two Stores on one engine, in which there is nothing yet. They
	// may be the same. It is called once for each check, and should fail t if it
	// cannot open them, and close them with t.Cleanup.
	Open func(t *testing.T) (a, b scale.Store)
	// Lose, if not nil, breaks the connections that a Store has, as a fault of
	// the network does. Its Watchers must call gap then.
	Lose func(t *testing.T, s scale.Store)
	// Bubble has each check run in a bubble of testing/synctest, so that waiting
	// takes no time. It is for Stores within the process.
	Bubble bool
}

// Run runs all checks. Without Bubble they take half a minute, for they wait for
// times to be over.
func Run(t *testing.T, b Backend) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			run := func(t *testing.T) {
				k := &kit{TB: t}
				k.a, k.b = b.Open(t)
				if b.Lose != nil {
					k.lose = func() { b.Lose(t, k.a) }
				}
				c.check(k)
			}
			if b.Bubble {
				synctest.Test(t, run)
			} else {
				run(t)
			}
		})
	}
}

// check is one of the suite.
type check struct {
	name  string
	check func(k *kit)
}

// checks are all of them.
var checks = slices.Concat(entryChecks, timeChecks, boxChecks, watchChecks)

// kit is what a check works with.
type kit struct {
	testing.TB
	a, b   scale.Store
	lose   func()
	posted scale.Rev // the last that post has appended
}

const (
	// brief is a time that checks wait for, long is one that does not end while
	// they run, and slack is what a clock may be coarse by.
	brief = 200 * time.Millisecond
	long  = time.Hour
	slack = 20 * time.Millisecond
	// timeLimit is the longest wait of a test.
	timeLimit = 10 * time.Second
)

// key returns the key of a name in the part that most checks use.
func key(name string) scale.Key { return scale.Key{Partition: "part", Name: name} }

// text returns n bytes.
func text(n int) []byte { return slices.Repeat([]byte{'x'}, n) }

// one returns the only entry that a Store has answered with.
func one(es []scale.Entry, err error) (scale.Entry, error) {
	switch {
	case err != nil:
		return scale.Entry{}, err
	case len(es) != 1:
		return scale.Entry{}, fmt.Errorf("%d entries, want one", len(es))
	}
	return es[0], nil
}

// put makes one write, and the check ends if that cannot be done.
func (k *kit) put(s scale.Store, w scale.Write) scale.Entry {
	k.Helper()
	es, err := s.Put(k.Context(), w)
	if err != nil || len(es) != 1 || es[0].Key != w.Key {
		k.Fatalf("Put of %v returned %v, %v", w.Key, es, err)
	}
	return es[0]
}

// make puts a new entry that lives long, unless w says otherwise.
func (k *kit) make(s scale.Store, w scale.Write) scale.Entry {
	k.Helper()
	if w.Value == nil {
		w.Value = []byte("value of " + w.Key.Name)
	}
	if w.TTL == 0 {
		w.TTL = long
	}
	e := k.put(s, w)
	if e.Err != nil || e.Rev <= 0 || e.Value != nil || e.Owner != w.Owner {
		k.Fatalf("Put of the new entry %v returned %+v", w.Key, e)
	}
	return e
}

// get looks at one entry, and the check ends if that cannot be done.
func (k *kit) get(s scale.Store, look scale.GetOp) scale.Entry {
	k.Helper()
	es, err := s.Get(k.Context(), look)
	if err != nil || len(es) != 1 || es[0].Key != look.Key || es[0].Err != nil {
		k.Fatalf("Get of %v returned %v, %v", look.Key, es, err)
	}
	return es[0]
}

// is checks that an entry has a Rev and a value, or is missing with Rev 0.
func (k *kit) is(key scale.Key, rev scale.Rev, value string) {
	k.Helper()
	for _, s := range []scale.Store{k.a, k.b} {
		e := k.get(s, scale.GetOp{Key: key})
		if e.Rev != rev || string(e.Value) != value || (rev == 0) != (e.Value == nil) {
			k.Errorf("%v is %q, Rev %d, want %q, Rev %d", key, e.Value, e.Rev, value, rev)
		}
	}
}

// due asks for what is due in the index "due" of the part of key.
func (k *kit) due(s scale.Store, owner string, max int, lease time.Duration) []scale.Entry {
	k.Helper()
	es, err := s.ClaimDue(k.Context(), "part", "due", owner, max, lease)
	if err != nil || len(es) > max {
		k.Fatalf("Due returned %v, %v", es, err)
	}
	return es
}

// names returns the names of entries.
func names(es []scale.Entry) string {
	var list []string
	for _, e := range es {
		list = append(list, e.Key.Name)
	}
	return fmt.Sprint(list)
}

// post appends to the box "box" what is kept long and has room, unless p says
// otherwise, and the check ends if that cannot be done.
func (k *kit) post(s scale.Store, p scale.AppendOp) (rev scale.Rev, reader string) {
	k.Helper()
	rev, reader, err := s.Append(k.Context(), fill(p))
	if err != nil || rev <= 0 {
		k.Fatalf("Append returned Rev %d, %v", rev, err)
	}
	k.posted = rev
	return rev, reader
}

// fill fills in what a Post says nothing of.
func fill(p scale.AppendOp) scale.AppendOp {
	if p.Box == "" {
		p.Box = "box"
	}
	if p.Keep == 0 {
		p.Keep = 2 * scale.MaxValue
	}
	if p.TTL == 0 {
		p.TTL = long
	}
	return p
}

// take makes reader the reader of the box "box", and the check ends if that cannot be done.
func (k *kit) take(s scale.Store, t scale.Take) scale.Box {
	k.Helper()
	if t.Box == "" {
		t.Box = "box"
	}
	found, err := s.Take(k.Context(), t)
	if err != nil {
		k.Fatalf("Take by %q from %q after %d for %v: %v", t.Reader, t.From, t.After, t.TTL, err)
	}
	return found
}

// read reads the box "box", which it takes first if take is not 0, and the check ends if
// that cannot be done. before is the reader until then.
func (k *kit) read(s scale.Store, after scale.Rev, reader string, take time.Duration) (messages []scale.Message, before string) {
	k.Helper()
	taken := scale.Box{}
	if take > 0 {
		taken = k.take(s, scale.Take{Reader: reader, After: after, TTL: take})
	}
	messages, before, err := s.Read(k.Context(), "box", after, reader)
	if take > 0 {
		before = taken.Reader
	}
	if err != nil {
		k.Fatalf("Read after %d by %q for %v: %v", after, reader, take, err)
	}
	prev := after
	for _, m := range messages {
		if m.Rev <= prev || m.Prev >= m.Rev || prev != after && m.Prev != prev {
			k.Fatalf("Read after %d returned Rev %d with Prev %d behind Rev %d", after, m.Rev, m.Prev, prev)
		}
		prev = m.Rev
	}
	return messages, before
}

// texts returns what messages say.
func texts(messages []scale.Message) string {
	var list []string
	for _, m := range messages {
		list = append(list, string(m.Data))
	}
	return fmt.Sprint(list)
}

// each calls fn n times at once, with the Stores in turn, and fails the check
// with the errors.
func (k *kit) each(n int, fn func(i int, s scale.Store) error) {
	k.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i, []scale.Store{k.a, k.b}[i%2]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		k.Fatal(err)
	}
}

// sleep waits until a time that began before now is over for the Store, too.
func (k *kit) sleep(d time.Duration) { time.Sleep(d + slack) }

// lives checks that an entry is there, unless its time may be over since start.
func (k *kit) lives(name string, start time.Time, ttl time.Duration) {
	k.Helper()
	e := k.get(k.b, scale.GetOp{Key: key(name)})
	if e.Rev == 0 && time.Since(start) < ttl {
		k.Errorf("%s is gone after %v of %v", name, time.Since(start), ttl)
	}
}

// again deletes entries, for a check to begin again.
func (k *kit) again(names ...string) {
	for _, name := range names {
		k.put(k.a, scale.Write{Key: key(name), Prev: scale.Any})
	}
}

// refused checks that something is the fault of the caller.
func (k *kit) refused(what string, do func() error) {
	k.Helper()
	if err := do(); err == nil || errors.Is(err, scale.ErrUnavailable) {
		k.Errorf("%s: %v, want an error of the caller", what, err)
	}
}

// watch watches subjects until the check ends.
func (k *kit) watch(s scale.Store, subjects ...string) *heard {
	k.Helper()
	before := k.posted
	h := &heard{k: k, messages: map[string][]scale.Message{}, news: make(chan struct{}, 1)}
	h.Watcher = s.Watch(func(subject string, m scale.Message) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if m.Key == (scale.Key{}) && m.Rev <= before {
			return // it was on its way when the subject was added
		}
		h.messages[subject] = append(h.messages[subject], m)
		h.poke()
	}, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.gaps++
		h.poke()
	})
	k.Cleanup(h.Close)
	if err := h.Add(k.Context(), subjects...); err != nil {
		k.Fatalf("adding %q: %v", subjects, err)
	}
	return h
}
