package scaletest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// timeChecks are about times, and who gets what is due.
var timeChecks = []check{
	{"TTL", checkTTL},
	{"TTLOfWrites", checkTTLOfWrites},
	{"Touch", checkTouch},
	{"TouchOfOthers", checkTouchOfOthers},
	{"LimitEnds", checkLimitEnds},
	{"Due", checkDue},
	{"DueMoves", checkDueMoves},
	{"DuePutOff", checkDuePutOff},
	{"DueSays", checkDueSays},
	{"DueOnce", checkDueOnce},
	{"DueBytes", checkDueBytes},
	{"Lease", checkLease},
	{"Fence", checkFence},
}

// checkTTL checks that an entry is there as long as it is to be, and no longer.
func checkTTL(k *kit) {
	start := time.Now()
	k.make(k.a, scale.Write{Key: key("brief"), TTL: brief})
	k.make(k.a, scale.Write{Key: key("briefer"), TTL: 1})
	k.make(k.a, scale.Write{Key: key("long")})
	time.Sleep(brief / 2)
	k.lives("brief", start, brief)
	k.sleep(brief / 2)
	k.is(key("brief"), 0, "")
	k.is(key("briefer"), 0, "")
	k.lives("long", start, long)
	k.make(k.a, scale.Write{Key: key("brief")})
}

// checkTTLOfWrites checks that a write moves the end of an entry, or leaves it.
func checkTTLOfWrites(k *kit) {
	ttls := map[string]time.Duration{"left": 0, "longer": long, "briefer": brief}
	first := map[string]time.Duration{"left": 2 * brief, "longer": brief, "briefer": long}
	start := time.Now()
	for name := range ttls {
		k.make(k.a, scale.Write{Key: key(name), TTL: first[name]})
	}
	again := time.Now()
	for name, ttl := range ttls {
		e := k.get(k.b, scale.GetOp{Key: key(name)})
		if e = k.put(k.b, scale.Write{Key: key(name), Prev: e.Rev, Value: []byte("x"), TTL: ttl}); e.Err != nil && time.Since(start) < brief {
			k.Errorf("writing %s returned %+v", name, e)
		}
	}
	k.lives("left", start, 2*brief)
	k.lives("briefer", again, brief)
	k.sleep(brief)
	k.is(key("briefer"), 0, "")
	k.lives("left", start, 2*brief)
	k.lives("longer", again, long)
	k.sleep(brief)
	k.is(key("left"), 0, "")
	k.lives("longer", again, long)
}

// checkTouch checks that a look lets an entry live on that is known, and does
// not change it.
func checkTouch(k *kit) {
	for {
		start := time.Now()
		ttl := k.make(k.a, scale.Write{Key: key("ttl"), TTL: brief, DueIn: brief, Index: "due"})
		both := k.make(k.a, scale.Write{Key: key("both"), TTL: brief, DueIn: brief, Index: "due"})
		in := k.make(k.a, scale.Write{Key: key("in"), DueIn: brief, Index: "due"})
		none := k.make(k.a, scale.Write{Key: key("none"), TTL: brief})
		for _, look := range []scale.GetOp{
			{Key: key("ttl"), Known: ttl.Rev, TTL: long}, {Key: key("both"), Known: both.Rev, TTL: long, In: long},
			{Key: key("in"), Known: in.Rev, In: long}, {Key: key("none"), Known: none.Rev, In: long},
		} {
			if e := k.get(k.b, look); e.Rev != look.Known && time.Since(start) < brief || e.Value != nil {
				k.Errorf("Get of the known %s returned %+v", look.Key.Name, e)
			}
		}
		if time.Since(start) < brief {
			k.sleep(brief)
			k.is(key("both"), both.Rev, "value of both")
			k.is(key("in"), in.Rev, "value of in")
			k.is(key("none"), 0, "")
			if es := k.due(k.a, "me", 10, long); names(es) != "[ttl]" {
				k.Errorf("%s are due, want ttl, of which TTL alone was changed", names(es))
			}
			return
		}
		k.again("ttl", "both", "in", "none") // the machine was too slow
	}
}

// checkTouchOfOthers checks that who does not know an entry cannot let it live
// on.
func checkTouchOfOthers(k *kit) {
	made := k.make(k.a, scale.Write{Key: key("e"), TTL: brief})
	late := k.make(k.a, scale.Write{Key: key("late"), DueIn: brief, Index: "due"})
	for _, known := range []scale.Rev{0, made.Rev - 1, made.Rev + 1} {
		k.get(k.b, scale.GetOp{Key: key("e"), Known: known, TTL: long, In: long})
	}
	for _, known := range []scale.Rev{0, late.Rev - 1, late.Rev + 1} {
		k.get(k.b, scale.GetOp{Key: key("late"), Known: known, TTL: long, In: long})
	}
	k.sleep(brief)
	k.is(key("e"), 0, "")
	if es := k.due(k.a, "me", 10, long); names(es) != "[late]" {
		k.Errorf("%s are due, want late", names(es))
	}
}

// checkLimitEnds checks that what is over does not count, and what lives on does.
func checkLimitEnds(k *kit) {
	limited := scale.Write{Value: []byte("x"), TTL: brief, Limit: "l", Max: 3}
	for i := range 3 {
		limited.Key = key(strconv.Itoa(i))
		k.make(k.a, limited)
	}
	one := k.get(k.a, scale.GetOp{Key: key("1")})
	touched := k.get(k.b, scale.GetOp{Key: key("1"), Known: one.Rev, TTL: long})
	two := k.get(k.a, scale.GetOp{Key: key("2")})
	written := k.put(k.b, scale.Write{Key: key("2"), Prev: two.Rev, Value: []byte("y"), TTL: long})
	k.sleep(brief)
	want := 3
	if touched.Rev != 0 {
		want--
	}
	if written.Err == nil {
		want--
	}
	made := 0
	for i := range 4 {
		limited.Key, limited.TTL = key(fmt.Sprint("new", i)), long
		if k.put(k.a, limited).Err == nil {
			made++
		}
	}
	if made != want {
		k.Errorf("of 3 that a limit allows %d live on, and %d more were made", 3-want, made)
	}
}

// checkDue checks which entries ClaimDue returns.
func checkDue(k *kit) {
	for i, in := range []time.Duration{brief, brief / 2, brief / 4, long} {
		k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), DueIn: in, Index: "due", Owner: "me"})
	}
	k.make(k.a, scale.Write{Key: key("otherwise"), DueIn: 1, Index: "other"})
	k.make(k.a, scale.Write{Key: scale.Key{Partition: "part2", Name: "elsewhere"}, DueIn: 1, Index: "due"})
	k.make(k.a, scale.Write{Key: key("gone"), DueIn: 1, Index: "due", TTL: brief})
	deleted := k.make(k.a, scale.Write{Key: key("deleted"), DueIn: 1, Index: "due"})
	k.put(k.a, scale.Write{Key: key("deleted"), Prev: deleted.Rev})
	k.make(k.a, scale.Write{Key: key("never")})
	before := k.get(k.a, scale.GetOp{Key: key("2")})
	k.sleep(brief)
	var all []scale.Entry
	for es := k.due(k.b, "you", 2, long); len(es) > 0; es = k.due(k.b, "you", 2, long) {
		all = append(all, es...)
	}
	if names(all) != "[2 1 0]" {
		k.Fatalf("%s are due, want 2, 1 and 0", names(all))
	}
	if e := all[0]; e.Rev <= before.Rev || e.Owner != "you" || string(e.Value) != "value of 2" || e.Err != nil {
		k.Errorf("what is due is %+v", e)
	}
	k.is(key("2"), all[0].Rev, "value of 2")
	if e := k.get(k.a, scale.GetOp{Key: key("2")}); e.Owner != "you" {
		k.Errorf("the owner is %q", e.Owner)
	}
	if e := k.put(k.a, scale.Write{Key: key("2"), Prev: before.Rev, Value: []byte("late")}); e.Err != scale.ErrChanged {
		k.Errorf("who had it before could write: %+v", e)
	}
	if es, err := k.a.ClaimDue(k.Context(), "part", "none", "me", 1, long); err != nil || len(es) != 0 {
		k.Errorf("Due of an index that is not there returned %v, %v", es, err)
	}
}

// checkDueMoves checks that a write moves what is due, leaves it, or takes it out
// of its index.
func checkDueMoves(k *kit) {
	writes := map[string]scale.Write{
		"left": {}, "later": {DueIn: long, Index: "due"}, "out": {DueIn: -1}, "moved": {DueIn: brief, Index: "other"}, "sooner": {DueIn: brief, Index: "due"},
	}
	for name := range writes {
		in := brief
		if name == "sooner" {
			in = long
		}
		e := k.make(k.a, scale.Write{Key: key(name), DueIn: in, Index: "due"})
		w := writes[name]
		w.Key, w.Prev, w.Value = key(name), e.Rev, []byte("x")
		if e = k.put(k.b, w); e.Err != nil {
			k.Fatalf("writing %s returned %+v", name, e)
		}
	}
	k.sleep(brief)
	due := map[string]bool{}
	for _, e := range k.due(k.a, "me", 10, long) {
		due[e.Key.Name] = true
	}
	if len(due) != 2 || !due["left"] || !due["sooner"] {
		k.Errorf("%v are due, want left and sooner", due)
	}
	if es, err := k.a.ClaimDue(k.Context(), "part", "other", "me", 10, long); err != nil || names(es) != "[moved]" {
		k.Errorf("%s are due in the other index, %v, want moved", names(es), err)
	}
}

// checkDuePutOff checks that what looks have put off is due then, and not before,
// whatever was said of it first, and hides nothing else that is due.
func checkDuePutOff(k *kit) {
	var off []scale.Entry
	for i := range 10 {
		off = append(off, k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), DueIn: 1, Index: "due"}))
	}
	put := func(e scale.Entry, in time.Duration) {
		if e = k.get(k.b, scale.GetOp{Key: e.Key, Known: e.Rev, In: in}); e.Value != nil {
			k.Errorf("Get of a known one returned %+v", e)
		}
	}
	for _, e := range off {
		put(e, long)
	}
	put(off[1], brief) // sooner again
	written := scale.Write{Key: off[2].Key, Prev: off[2].Rev, Value: []byte("x"), DueIn: brief, Index: "due"}
	if e := k.put(k.a, written); e.Err != nil {
		k.Errorf("writing what was put off returned %+v", e)
	}
	k.make(k.a, scale.Write{Key: key("else"), DueIn: 1, Index: "due"})
	k.sleep(brief)
	due := map[string]bool{}
	for es := k.due(k.b, "me", 1, long); len(es) > 0; es = k.due(k.b, "me", 1, long) {
		due[es[0].Key.Name] = true
	}
	if len(due) != 3 || !due["1"] || !due["2"] || !due["else"] {
		k.Errorf("%v are due, want 1, 2 and else", due)
	}
}

// checkDueSays checks what is said of when an entry is due.
func checkDueSays(k *kit) {
	want := func(what string, e scale.Entry, from scale.Rev, in time.Duration) {
		k.Helper()
		if wait := time.Duration(e.Due-from) * time.Microsecond; wait < in-slack || wait > in+timeLimit {
			k.Errorf("%s: due %v after it was written, want %v", what, wait, in)
		}
		for _, known := range []scale.Rev{0, e.Rev} {
			if there := k.get(k.b, scale.GetOp{Key: e.Key, Known: known}); there.Rev == e.Rev && there.Due != e.Due {
				k.Errorf("%s: due at %d, and then at %d", what, e.Due, there.Due)
			}
		}
	}
	e := k.make(k.a, scale.Write{Key: key("e"), DueIn: long, Index: "due"})
	made := e.Rev
	want("made", e, made, long)
	want("put off", k.get(k.b, scale.GetOp{Key: e.Key, Known: made, In: 3 * long}), made, 3*long)
	want("sooner again", k.get(k.b, scale.GetOp{Key: e.Key, Known: made, In: 2 * long}), made, 2*long)
	want("kept for longer", k.get(k.b, scale.GetOp{Key: e.Key, Known: made, TTL: 2 * long}), made, 2*long)
	want("changed", k.put(k.b, scale.Write{Key: e.Key, Prev: made - 1, Value: []byte("x")}), made, 2*long)
	e = k.put(k.a, scale.Write{Key: e.Key, Prev: made, Value: []byte("x")})
	want("written", e, made, 2*long)
	e = k.put(k.a, scale.Write{Key: e.Key, Prev: e.Rev, Value: []byte("x"), DueIn: time.Millisecond, Index: "due"})
	want("written, due at once", e, e.Rev, time.Millisecond)
	k.sleep(0)
	if es := k.due(k.a, "me", 1, long); len(es) == 1 {
		e = es[0]
		want("given", e, e.Rev, long)
	} else {
		k.Errorf("%d are due, want one", len(es))
	}
	for what, e := range map[string]scale.Entry{
		"taken out": k.put(k.a, scale.Write{Key: e.Key, Prev: e.Rev, Value: []byte("x"), DueIn: -1}),
		"never in":  k.make(k.a, scale.Write{Key: key("never")}),
		"missing":   k.get(k.a, scale.GetOp{Key: key("none")}),
	} {
		if there := k.get(k.b, scale.GetOp{Key: e.Key, Known: e.Rev, In: long}); e.Due != 0 || there.Due != 0 {
			k.Errorf("%s: due at %d and %d, want never", what, e.Due, there.Due)
		}
	}
}

// checkDueOnce checks that of many who ask, one gets an entry.
func checkDueOnce(k *kit) {
	const entries = 60
	for i := range entries {
		k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), DueIn: 1, Index: "due"})
	}
	k.sleep(0)
	var mu sync.Mutex
	got := map[string]int{}
	k.each(6, func(i int, s scale.Store) error {
		for {
			es, err := s.ClaimDue(k.Context(), "part", "due", fmt.Sprint("owner", i), 1+i, long)
			if err != nil || len(es) == 0 {
				return err
			}
			mu.Lock()
			for _, e := range es {
				got[e.Key.Name]++
			}
			mu.Unlock()
		}
	})
	for name, n := range got {
		if n != 1 {
			k.Errorf("%s was given %d times", name, n)
		}
	}
	if len(got) != entries {
		k.Errorf("%d of %d were given", len(got), entries)
	}
}

// checkDueBytes checks that one call does not return too much, and all calls
// everything.
func checkDueBytes(k *kit) {
	sizes := []int{scale.MaxValue, 600 << 10, 500 << 10, 400 << 10, 10}
	for i, n := range sizes {
		k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), Value: text(n), DueIn: time.Duration(i+1) * time.Millisecond, Index: "due"})
	}
	k.sleep(0)
	found, calls := 0, 0
	for ; calls < 20; calls++ {
		es := k.due(k.a, "me", 10, long)
		sum := 0
		for _, e := range es {
			sum += len(e.Value)
		}
		if found += len(es); sum > 2*scale.MaxValue {
			k.Errorf("%d entries of %d bytes were given at once", len(es), sum)
		}
		if len(es) == 0 {
			break
		}
	}
	if found != len(sizes) || calls < 2 {
		k.Errorf("%d of %d were given in %d calls", found, len(sizes), calls)
	}
}

// checkLease checks that what was given is due again when the lease is over,
// unless it was renewed.
func checkLease(k *kit) {
	start := time.Now()
	for _, name := range []string{"left", "renewed", "written"} {
		k.make(k.a, scale.Write{Key: key(name), DueIn: 1, Index: "due"})
	}
	k.sleep(0)
	for _, e := range k.due(k.a, "me", 10, brief) {
		switch e.Key.Name {
		case "renewed":
			k.get(k.a, scale.GetOp{Key: e.Key, Known: e.Rev, In: long})
		case "written":
			k.put(k.a, scale.Write{Key: e.Key, Prev: e.Rev, Value: []byte("x"), DueIn: long, Index: "due", Owner: "me"})
		}
	}
	renewed := time.Now()
	time.Sleep(brief / 2)
	if es := k.due(k.b, "you", 10, brief); len(es) > 0 && time.Since(start) < brief {
		k.Errorf("%s were given to another within the lease", names(es))
	}
	k.sleep(2 * brief)
	es := k.due(k.b, "you", 10, long)
	if renewed.Sub(start) < brief && names(es) != "[left]" {
		k.Errorf("%s were given when the lease was over, want left", names(es))
	}
}

// checkFence checks that work is done to its end once, by owners that die, pause
// longer than their lease, and take over from each other: each job is to be
// counted to ten, and who has lost it cannot count.
func checkFence(k *kit) {
	const jobs = 12
	for i := range jobs {
		k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), Value: []byte("0"), DueIn: 1, Index: "due"})
	}
	var counts [jobs]atomic.Int64
	var left atomic.Int64
	left.Store(jobs)
	k.each(4, func(i int, s scale.Store) error {
		o := owner{kit: k, s: s, name: fmt.Sprint("owner", i), random: rand.New(rand.NewPCG(uint64(i), 1)), counts: counts[:], left: &left}
		return o.work()
	})
	for i := range counts {
		if n := counts[i].Load(); n != steps {
			k.Errorf("job %d was counted %d times", i, n)
		}
	}
	k.sleep(lease)
	if es := k.due(k.a, "me", 10, long); len(es) != 0 {
		k.Errorf("%s are due, which were done", names(es))
	}
}

// lease is how long an owner has a job without renewing it, and steps is how
// often a job is counted.
const (
	lease = 20 * time.Millisecond
	steps = 10
)

// owner is one of those who work in checkFence.
type owner struct {
	*kit
	s      scale.Store
	name   string
	random *rand.Rand
	counts []atomic.Int64 // of each job
	left   *atomic.Int64  // jobs that are not done
}

// work works until all is done.
func (o *owner) work() error {
	for stop := time.Now().Add(timeLimit); o.left.Load() > 0; time.Sleep(lease / 4) {
		es, err := o.s.ClaimDue(o.Context(), "part", "due", o.name, 2, lease)
		if err != nil {
			return err
		}
		for _, e := range es {
			if err := o.job(e); err != nil {
				return err
			}
		}
		if time.Now().After(stop) {
			return fmt.Errorf("%d jobs are not done", o.left.Load())
		}
	}
	return nil
}

// job counts until it is done, the owner has lost the job, or leaves it.
func (o *owner) job(e scale.Entry) error {
	for o.random.IntN(8) != 0 {
		job, err := strconv.Atoi(e.Key.Name)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(e.Value))
		if err != nil {
			return err
		}
		w := scale.Write{Key: e.Key, Prev: e.Rev, Value: []byte(strconv.Itoa(n + 1)), Owner: o.name, DueIn: lease, Index: "due"}
		if n+1 == steps {
			w.DueIn, w.Index = -1, ""
		}
		if o.random.IntN(4) == 0 {
			time.Sleep(lease + slack)
		}
		made, err := one(o.s.Put(o.Context(), w))
		if err != nil || made.Err != nil {
			return err
		}
		o.counts[job].Add(1)
		if n+1 == steps {
			o.left.Add(-1)
			return nil
		}
		e.Rev, e.Value = made.Rev, w.Value
	}
	return nil
}
