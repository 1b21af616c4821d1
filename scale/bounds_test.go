package scale

import (
	"math"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Nothing is left of entries, indexes, limits and boxes whose time is over.
func TestLocalForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal()
		for i := range 1000 {
			name := strconv.Itoa(i)
			w := Write{Key: Key{"part", name}, Value: []byte("x"), TTL: time.Duration(1+i%7) * time.Minute, Limit: "l" + name[:1], Max: 1000}
			if i%2 == 0 {
				w.DueIn, w.Index = time.Duration(1+i%5)*time.Minute, "i"+name[:1]
			}
			if es, err := l.Put(t.Context(), w); err != nil || es[0].Err != nil {
				t.Fatal(es, err)
			}
			if _, _, err := l.Append(t.Context(), AppendOp{Box: name, Keep: 1000, TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		if len(l.entries) != 1000 || len(l.boxes) != 1000 || len(l.indexes) != 10 || len(l.limits) != 10 || len(l.ends) != 2000 {
			t.Errorf("%d entries, %d boxes, %d indexes, %d limits, %d ends", len(l.entries), len(l.boxes), len(l.indexes), len(l.limits), len(l.ends))
		}
		time.Sleep(7 * time.Minute)
		if _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(l.entries)+len(l.boxes)+len(l.indexes)+len(l.limits)+len(l.ends) != 0 {
			t.Errorf("%d entries, %d boxes, %d indexes, %d limits, %d ends are left", len(l.entries), len(l.boxes), len(l.indexes), len(l.limits), len(l.ends))
		}
	})
}

// A box that drops does not hold on to what it dropped.
func TestLocalBoxBytes(t *testing.T) {
	l := NewLocal()
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for range 2000 {
		if _, _, err := l.Append(t.Context(), AppendOp{Box: "box", Data: make([]byte, 10_000), Keep: 100_000, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if after := held(); after > before+1<<20 {
		t.Errorf("a box of 100 kB holds %d kB", (after-before)>>10)
	}
	runtime.KeepAlive(l)
}

// A Watcher whose fn is slow misses what there is no room for, hears of that
// once, and goes on.
func TestLocalGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal()
		wait := make(chan struct{})
		heard, gaps, bytes := 0, 0, 0
		w := l.Watch(func(_ string, m Message) {
			heard++
			bytes += len(m.Data)
			<-wait
		}, func() { gaps++ })
		defer w.Close()
		if err := w.Add(t.Context(), "box"); err != nil {
			t.Fatal(err)
		}
		post := func(n, size int) {
			for range n {
				if _, _, err := l.Append(t.Context(), AppendOp{Box: "box", Data: make([]byte, size)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		post(1, MaxValue)
		synctest.Wait()
		post(20, MaxValue)
		if heard != 1 || gaps != 0 {
			t.Errorf("at first, %d were heard, %d gaps", heard, gaps)
		}
		close(wait)
		synctest.Wait()
		if gaps != 1 || bytes > 1<<20+maxWaiting {
			t.Errorf("then %d were heard of %d bytes, %d gaps, want one", heard, bytes, gaps)
		}
		heard = 0
		post(3, 10)
		synctest.Wait()
		if heard != 3 || gaps != 1 {
			t.Errorf("at last, %d were heard, %d gaps", heard, gaps)
		}
	})
}

// A closed Watcher takes no subjects, and the Store forgets it.
func TestLocalClosedWatcher(t *testing.T) {
	l := newLocal()
	w := l.Watch(func(string, Message) {}, func() {})
	if err := w.Add(t.Context(), "a", "b", "b"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := w.Add(t.Context(), "c"); err == nil || len(l.watchers) != 0 {
		t.Errorf("after Close: %v, %d subjects", err, len(l.watchers))
	}
}

// Times beyond all clocks are the end of time.
func TestLocalLongTimes(t *testing.T) {
	l := NewLocal()
	es, err := l.Put(t.Context(), Write{Key: Key{"p", "n"}, Value: []byte("x"), TTL: math.MaxInt64, DueIn: math.MaxInt64, Index: "i"})
	if err != nil || es[0].Err != nil {
		t.Fatal(es, err)
	}
	if es, err := l.Get(t.Context(), GetOp{Key: Key{"p", "n"}}); err != nil || es[0].Rev == 0 {
		t.Error(es, err)
	}
	if es, err := l.ClaimDue(t.Context(), "p", "i", "me", 1, math.MaxInt64); err != nil || len(es) != 0 {
		t.Error(es, err)
	}
}

// TestLocalAllocs bounds what the calls allocate that servers make often.
func TestLocalAllocs(t *testing.T) {
	l, ctx := NewLocal(), t.Context()
	key := Key{"p", "n"}
	es, err := l.Put(ctx, Write{Key: key, Value: []byte("x"), TTL: time.Hour, DueIn: time.Hour, Index: "i"})
	if err != nil {
		t.Fatal(err)
	}
	rev := es[0].Rev
	value := []byte("value")
	for what, c := range map[string]struct {
		most float64
		call func() error
	}{
		"Get": {2, func() error { _, err := l.Get(ctx, GetOp{Key: key}); return err }},
		"Get known": {2, func() error {
			_, err := l.Get(ctx, GetOp{Key: key, Known: rev, TTL: time.Hour, In: time.Hour})
			return err
		}},
		"Put": {2, func() error {
			es, err := l.Put(ctx, Write{Key: key, Prev: rev, Value: value, TTL: time.Hour})
			rev = es[0].Rev
			return err
		}},
		"Append": {1, func() error {
			_, _, err := l.Append(ctx, AppendOp{Box: "box", Data: value, Keep: 5000, TTL: time.Hour})
			return err
		}},
		"Read nothing": {0, func() error { _, _, err := l.Read(ctx, "box", math.MaxInt64, ""); return err }},
	} {
		if got := testing.AllocsPerRun(1000, func() {
			if err := c.call(); err != nil {
				t.Fatal(err)
			}
		}); got > c.most {
			t.Errorf("%s allocates %v times, at most %v", what, got, c.most)
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	l, ctx := NewLocal(), b.Context()
	value := make([]byte, 450)
	revs := make([]Rev, 100_000)
	keys := make([]Key, len(revs))
	for i := range keys {
		keys[i] = Key{"p" + strconv.Itoa(i%64), strconv.Itoa(i)}
		es, err := l.Put(ctx, Write{Key: keys[i], Value: value, TTL: time.Hour, DueIn: time.Hour, Index: "idle"})
		if err != nil {
			b.Fatal(err)
		}
		revs[i] = es[0].Rev
	}
	n := 0
	each := func(name string, call func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n = (n + 7919) % len(keys)
				call(n)
			}
		})
	}
	each("Get", func(i int) { _, _ = l.Get(ctx, GetOp{Key: keys[i], Known: revs[i]}) })
	each("Touch", func(i int) { _, _ = l.Get(ctx, GetOp{Key: keys[i], Known: revs[i], TTL: time.Hour, In: time.Hour}) })
	each("Put", func(i int) {
		es, _ := l.Put(ctx, Write{Key: keys[i], Prev: revs[i], Value: value})
		revs[i] = es[0].Rev
	})
	each("Append", func(i int) {
		_, _, _ = l.Append(ctx, AppendOp{Box: "box", Data: value, Keep: 64 << 10, TTL: time.Hour})
	})
	each("Read", func(i int) { _, _, _ = l.Read(ctx, "box", 0, "") })
	each("Take", func(i int) { _, _ = l.Take(ctx, Take{Box: "box", Reader: "me", TTL: time.Hour}) })
}
