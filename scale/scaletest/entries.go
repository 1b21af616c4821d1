package scaletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// entryChecks are about Get and Put.
var entryChecks = []check{
	{"Missing", checkMissing},
	{"Values", checkValues},
	{"Known", checkKnown},
	{"Prev", checkPrev},
	{"Any", checkAny},
	{"Delete", checkDelete},
	{"Revs", checkRevs},
	{"Owner", checkOwner},
	{"Several", checkSeveral},
	{"Parts", checkParts},
	{"Writers", checkWriters},
	{"Limit", checkLimit},
	{"LimitAtOnce", checkLimitAtOnce},
	{"Context", checkContext},
	{"Misuse", checkMisuse},
}

// checkMissing checks what is said of what is not there.
func checkMissing(k *kit) {
	for _, known := range []scale.Rev{0, 7} {
		if e := k.get(k.a, scale.GetOp{Key: key("none"), Known: known, TTL: long, In: long}); e.Rev != 0 || e.Value != nil || e.Owner != "" {
			k.Errorf("an entry that is not there is %+v", e)
		}
	}
	if es, err := k.a.Get(k.Context()); err != nil || len(es) != 0 {
		k.Errorf("Get of nothing returned %v, %v", es, err)
	}
	if es, err := k.a.Put(k.Context()); err != nil || len(es) != 0 {
		k.Errorf("Put of nothing returned %v, %v", es, err)
	}
}

// checkValues checks that values come back as they are, whatever they are.
func checkValues(k *kit) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range [][]byte{{}, []byte("a"), all, []byte("äöü 😀\r\n\x00"), text(5000), text(scale.MaxValue)} {
		name := strconv.Itoa(i)
		made := k.make(k.a, scale.Write{Key: key(name), Value: value})
		e := k.get(k.b, scale.GetOp{Key: key(name)})
		if e.Rev != made.Rev || e.Value == nil || !bytes.Equal(e.Value, value) {
			k.Errorf("%d bytes came back as %d, Rev %d as %d, nil: %v", len(value), len(e.Value), made.Rev, e.Rev, e.Value == nil)
		}
	}
	if _, err := k.a.Put(k.Context(), scale.Write{Key: key("long"), Value: text(scale.MaxValue + 1), TTL: long}); err == nil || errors.Is(err, scale.ErrUnavailable) {
		k.Errorf("a value that is too long: %v", err)
	}
	k.is(key("long"), 0, "")
}

// checkKnown checks that a value is left out if it is known, and only then.
func checkKnown(k *kit) {
	first := k.make(k.a, scale.Write{Key: key("e"), Owner: "me"})
	if e := k.get(k.b, scale.GetOp{Key: key("e"), Known: first.Rev}); e.Rev != first.Rev || e.Value != nil || e.Owner != "me" {
		k.Errorf("the known entry is %+v", e)
	}
	second := k.put(k.a, scale.Write{Key: key("e"), Prev: first.Rev, Value: []byte("new")})
	for _, known := range []scale.Rev{0, first.Rev, first.Rev - 1, second.Rev + 1} {
		if e := k.get(k.b, scale.GetOp{Key: key("e"), Known: known}); e.Rev != second.Rev || string(e.Value) != "new" {
			k.Errorf("with Rev %d known, the entry is %+v", known, e)
		}
	}
}

// checkPrev checks that a write is made if Prev holds, and only then.
func checkPrev(k *kit) {
	const ttl = long
	one := k.make(k.a, scale.Write{Key: key("e"), Value: []byte("1"), Owner: "me"})
	two := k.put(k.b, scale.Write{Key: key("e"), Prev: one.Rev, Value: []byte("2"), Owner: "you"})
	if two.Err != nil || two.Rev <= one.Rev || two.Value != nil || two.Owner != "you" {
		k.Errorf("a write over Rev %d returned %+v", one.Rev, two)
	}
	for _, prev := range []scale.Rev{0, one.Rev, two.Rev - 1, two.Rev + 1} {
		e := k.put(k.a, scale.Write{Key: key("e"), Prev: prev, Value: []byte("3"), TTL: ttl, Owner: "me"})
		if e.Err != scale.ErrChanged || e.Rev != two.Rev || string(e.Value) != "2" || e.Owner != "you" {
			k.Errorf("a write over Rev %d, where there is %d, returned %+v", prev, two.Rev, e)
		}
	}
	k.is(key("e"), two.Rev, "2")
	if e := k.put(k.a, scale.Write{Key: key("none"), Prev: two.Rev, Value: []byte("3"), TTL: ttl}); e.Err != scale.ErrChanged || e.Rev != 0 || e.Value != nil {
		k.Errorf("a write over what is not there returned %+v", e)
	}
	k.is(key("none"), 0, "")
}

// checkAny checks that a write with Any is made whatever is there.
func checkAny(k *kit) {
	for i := range 3 {
		value := strconv.Itoa(i)
		e := k.put(k.a, scale.Write{Key: key("e"), Prev: scale.Any, Value: []byte(value), TTL: long})
		if e.Err != nil {
			k.Errorf("a write over anything returned %+v", e)
		}
		k.is(key("e"), e.Rev, value)
	}
}

// checkDelete checks that nil deletes, on the same conditions.
func checkDelete(k *kit) {
	made := k.make(k.a, scale.Write{Key: key("e"), Value: []byte("1")})
	if e := k.put(k.b, scale.Write{Key: key("e"), Prev: made.Rev - 1}); e.Err != scale.ErrChanged || string(e.Value) != "1" {
		k.Errorf("deleting another Rev returned %+v", e)
	}
	k.is(key("e"), made.Rev, "1")
	if e := k.put(k.b, scale.Write{Key: key("e"), Prev: made.Rev}); e.Err != nil || e.Rev != 0 {
		k.Errorf("deleting returned %+v", e)
	}
	k.is(key("e"), 0, "")
	if e := k.put(k.a, scale.Write{Key: key("e"), Prev: made.Rev}); e.Err != scale.ErrChanged || e.Rev != 0 {
		k.Errorf("deleting again returned %+v", e)
	}
	if e := k.put(k.a, scale.Write{Key: key("e"), Prev: scale.Any}); e.Err != nil || e.Rev != 0 {
		k.Errorf("deleting anything where there is nothing returned %+v", e)
	}
	k.make(k.a, scale.Write{Key: key("e")})
}

// checkRevs checks that Revs grow, from one write to the next, whether of one
// key or of another, and do not come back with a key that was deleted.
func checkRevs(k *kit) {
	var last scale.Rev
	grow := func(rev scale.Rev, what string) {
		if rev <= last {
			k.Errorf("%s has Rev %d after Rev %d", what, rev, last)
		}
		last = rev
	}
	for i := range 20 {
		s := []scale.Store{k.a, k.b}[i%2]
		grow(k.make(s, scale.Write{Key: key(strconv.Itoa(i)), DueIn: 1, Index: "due"}).Rev, "a new entry")
		grow(k.put(s, scale.Write{Key: key("again"), Prev: scale.Any, Value: []byte("x"), TTL: long}).Rev, "a write")
		if i%3 == 0 {
			k.put(s, scale.Write{Key: key("again"), Prev: scale.Any})
		}
		rev, _ := k.post(s, scale.AppendOp{Data: []byte("x")})
		grow(rev, "a message")
	}
	k.sleep(slack)
	for range 20 {
		for _, e := range k.due(k.a, "me", 1, long) {
			grow(e.Rev, "what was due")
		}
	}
	if now := scale.Rev(time.Now().UnixMicro()); last < now-scale.Rev(timeLimit.Microseconds()) || last > now+scale.Rev(timeLimit.Microseconds()) {
		k.Errorf("Rev %d is not the time in microseconds, %d", last, now)
	}
}

// checkOwner checks that the owner is the one that the last write names.
func checkOwner(k *kit) {
	e := k.make(k.a, scale.Write{Key: key("e"), Owner: "me"})
	for _, owner := range []string{"me", "you", ""} {
		e = k.put(k.a, scale.Write{Key: key("e"), Prev: e.Rev, Value: []byte("x"), Owner: owner})
		if got := k.get(k.b, scale.GetOp{Key: key("e")}).Owner; got != owner || e.Owner != owner {
			k.Errorf("the owner is %q, and %q by Put, want %q", got, e.Owner, owner)
		}
	}
}

// checkSeveral checks that each of several looks and writes has its own answer,
// in their order.
func checkSeveral(k *kit) {
	old := k.make(k.a, scale.Write{Key: key("old"), Value: []byte("o")})
	full := k.make(k.a, scale.Write{Key: key("full"), Limit: "l", Max: 1})
	var writes []scale.Write
	for i := range 30 {
		writes = append(writes, scale.Write{Key: scale.Key{Partition: fmt.Sprint("p", i%7), Name: fmt.Sprint(i)}, Value: []byte(fmt.Sprint(i)), TTL: long})
	}
	writes[3] = scale.Write{Key: key("old"), Value: []byte("x"), TTL: long}
	writes[5] = scale.Write{Key: key("old"), Prev: old.Rev, Value: []byte("y")}
	writes[8] = scale.Write{Key: key("other"), Value: []byte("z"), TTL: long, Limit: "l", Max: 1}
	writes[9] = scale.Write{Key: key("full"), Prev: full.Rev}
	es, err := k.a.Put(k.Context(), writes...)
	if err != nil || len(es) != len(writes) {
		k.Fatalf("Put of several returned %d, %v", len(es), err)
	}
	var looks []scale.GetOp
	for i, e := range es {
		want := error(nil)
		switch {
		case i == 3:
			want = scale.ErrChanged
		case i == 8 && e.Err != nil:
			want = scale.ErrFull // unless write 9 came first
		}
		if e.Key != writes[i].Key || e.Err != want || (e.Rev == 0) != (i == 9 || e.Err == scale.ErrFull) {
			k.Errorf("write %d of several returned %+v", i, e)
		}
		looks = append(looks, scale.GetOp{Key: e.Key})
	}
	looks[4].Known = es[4].Rev
	found, err := k.b.Get(k.Context(), looks...)
	if err != nil || len(found) != len(looks) {
		k.Fatalf("Get of several returned %d, %v", len(found), err)
	}
	for i, e := range found {
		want := string(writes[i].Value)
		switch {
		case i == 3:
			want = "y"
		case i == 4 || es[i].Err == scale.ErrFull:
			want = ""
		}
		if e.Key != looks[i].Key || string(e.Value) != want {
			k.Errorf("look %d of several returned %+v, want %q", i, e, want)
		}
	}
}

// checkParts checks that a name in one part is not that in another.
func checkParts(k *kit) {
	keys := []scale.Key{{Partition: "a", Name: "b"}, {Partition: "a:b", Name: "c"}, {Partition: "a", Name: "b:c"}, {Partition: "b", Name: "a"}, {Partition: "A", Name: "b"},
		{Partition: strings.Repeat("p", 128), Name: strings.Repeat("n", 128)}, {Partition: `"!#$%&'()*+,-./`, Name: `0:;<=>?@AZ[\]^_az|~`}}
	for i, key := range keys {
		k.make(k.a, scale.Write{Key: key, Value: []byte(strconv.Itoa(i))})
	}
	for i, key := range keys {
		if e := k.get(k.b, scale.GetOp{Key: key}); string(e.Value) != strconv.Itoa(i) {
			k.Errorf("%v has %q, want %d", key, e.Value, i)
		}
	}
}

// checkWriters checks that no write is lost among many writers: each adds one to
// a number as often as it says.
func checkWriters(k *kit) {
	const writers, times = 8, 20
	k.make(k.a, scale.Write{Key: key("n"), Value: []byte("0")})
	k.each(writers, func(_ int, s scale.Store) error {
		for range times {
			if err := increment(k, s, key("n")); err != nil {
				return err
			}
		}
		return nil
	})
	if e := k.get(k.a, scale.GetOp{Key: key("n")}); string(e.Value) != strconv.Itoa(writers*times) {
		k.Errorf("%d writers that add %d have made %s", writers, times, e.Value)
	}
}

// increment adds one to the number in an entry.
func increment(k *kit, s scale.Store, key scale.Key) error {
	e, err := one(s.Get(k.Context(), scale.GetOp{Key: key}))
	for {
		if err != nil {
			return err
		}
		n, failed := strconv.Atoi(string(e.Value))
		if failed != nil {
			return failed
		}
		e, err = one(s.Put(k.Context(), scale.Write{Key: key, Prev: e.Rev, Value: []byte(strconv.Itoa(n + 1))}))
		if err == nil && e.Err == nil {
			return nil
		}
	}
}

// checkLimit checks that a limit bounds what is made with it, and what counts.
func checkLimit(k *kit) {
	limited := func(name string) scale.Write {
		return scale.Write{Key: key(name), Value: []byte("x"), TTL: long, Limit: "l", Max: 2}
	}
	a := k.make(k.a, limited("a"))
	k.make(k.b, limited("b"))
	if e := k.put(k.a, limited("c")); e.Err != scale.ErrFull || e.Rev != 0 || e.Value != nil {
		k.Errorf("beyond a limit, Put returned %+v", e)
	}
	k.is(key("c"), 0, "")
	k.make(k.a, scale.Write{Key: key("d")})
	k.make(k.a, scale.Write{Key: key("e"), Limit: "other", Max: 1})
	k.make(k.a, scale.Write{Key: scale.Key{Partition: "part2", Name: "a"}, Limit: "l", Max: 1})
	w := limited("a")
	w.Prev = a.Rev
	if a = k.put(k.a, w); a.Err != nil {
		k.Errorf("at a limit, writing what is there returned %+v", a)
	}
	if e := k.put(k.a, limited("c")); e.Err != scale.ErrFull {
		k.Errorf("after that, Put returned %+v", e)
	}
	w = limited("d")
	if w.Prev = scale.Any; k.put(k.a, w).Err != nil {
		k.Error("a limit stands in the way of writing what is there")
	}
	k.put(k.b, scale.Write{Key: key("a"), Prev: a.Rev})
	k.make(k.a, limited("c"))
	if e := k.put(k.a, limited("a")); e.Err != scale.ErrFull {
		k.Errorf("when one has gone and one has come, Put returned %+v", e)
	}
}

// checkLimitAtOnce checks that a limit is exact when many make entries at once.
func checkLimitAtOnce(k *kit) {
	var made atomic.Int64
	k.each(40, func(i int, s scale.Store) error {
		e, err := one(s.Put(k.Context(), scale.Write{Key: key(strconv.Itoa(i)), Value: []byte("x"), TTL: long, Limit: "l", Max: 15}))
		if err == nil && e.Err == nil {
			made.Add(1)
		}
		return err
	})
	if made.Load() != 15 {
		k.Errorf("with a limit of 15, %d were made", made.Load())
	}
}

// checkContext checks that a call with an ended context does nothing.
func checkContext(k *kit) {
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	w := k.b.Watch(func(string, scale.Message) {}, func() {})
	defer w.Close()
	for what, do := range map[string]func() error{
		"Get": func() error { _, err := k.a.Get(ctx, scale.GetOp{Key: key("e")}); return err },
		"Put": func() error {
			_, err := k.a.Put(ctx, scale.Write{Key: key("e"), Value: []byte("x"), TTL: long})
			return err
		},
		"Due":    func() error { _, err := k.a.ClaimDue(ctx, "part", "due", "me", 1, long); return err },
		"Append": func() error { _, _, err := k.a.Append(ctx, fill(scale.AppendOp{})); return err },
		"Read":   func() error { _, _, err := k.a.Read(ctx, "box", 0, ""); return err },
		"Take":   func() error { _, err := k.a.Take(ctx, scale.Take{Box: "box", Reader: "me", TTL: long}); return err },
		"Add":    func() error { return w.Add(ctx, "box") },
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			k.Errorf("%s with a context that has ended: %v", what, err)
		}
	}
	for what, do := range map[string]func() ([]scale.Entry, error){
		"Get": func() ([]scale.Entry, error) {
			return k.a.Get(ctx, scale.GetOp{Key: key("e")}, scale.GetOp{Key: key("f")})
		},
		"Put": func() ([]scale.Entry, error) {
			return k.a.Put(ctx, scale.Write{Key: key("e"), Value: []byte("x"), TTL: long}, scale.Write{Key: key("f"), Value: []byte("x"), TTL: long})
		},
	} {
		es, err := do()
		if len(es) != 0 && (len(es) != 2 || es[0].Err == nil || es[1].Err == nil) {
			k.Errorf("%s of two that fails with %v returned %+v, want none, or the error of each", what, err, es)
		}
	}
}

// checkMisuse checks that what is forbidden is refused, and changes nothing.
func checkMisuse(k *kit) {
	made := k.make(k.a, scale.Write{Key: key("e"), Value: []byte("1")})
	value := []byte("x")
	for what, w := range map[string]scale.Write{
		"no TTL":              {Key: key("f"), Value: value},
		"no TTL, Any":         {Key: key("f"), Value: value, Prev: scale.Any},
		"a negative TTL":      {Key: key("e"), Value: value, Prev: made.Rev, TTL: -1},
		"nothing":             {Key: key("f"), TTL: long},
		"another Prev":        {Key: key("e"), Value: value, Prev: -2, TTL: long},
		"due in no Index":     {Key: key("e"), Value: value, Prev: made.Rev, DueIn: 1},
		"a limit without Max": {Key: key("f"), Value: value, TTL: long, Limit: "l"},
	} {
		k.refused(what, func() error {
			_, err := k.a.Put(k.Context(), scale.Write{Key: key("g"), Value: value, TTL: long}, w)
			return err
		})
	}
	for _, bad := range []string{" ", "a b", "a{", "}a", "ä", "a\x00", "a\n", strings.Repeat("a", 129), ""} {
		if bad != "" {
			k.refused("an owner", func() error {
				_, err := k.a.Put(k.Context(), scale.Write{Key: key("e"), Prev: made.Rev, Value: value, Owner: bad})
				return err
			})
			k.refused("a subject", func() error {
				_, err := k.a.Put(k.Context(), scale.Write{Key: key("e"), Prev: made.Rev, Value: value, Notify: bad})
				return err
			})
		}
		k.refused("a part", func() error {
			_, err := k.a.Get(k.Context(), scale.GetOp{Key: scale.Key{Partition: bad, Name: "e"}})
			return err
		})
		k.refused("a name", func() error {
			_, err := k.a.Get(k.Context(), scale.GetOp{Key: scale.Key{Partition: "p", Name: bad}})
			return err
		})
		k.refused("an index", func() error { _, err := k.a.ClaimDue(k.Context(), "part", bad, "me", 1, long); return err })
		k.refused("an owner of what is due", func() error { _, err := k.a.ClaimDue(k.Context(), "part", "due", bad, 1, long); return err })
		k.refused("a box", func() error {
			_, _, err := k.a.Append(k.Context(), scale.AppendOp{Box: bad, Keep: 100, TTL: long})
			return err
		})
		for what, t := range map[string]scale.Take{
			"a box to take": {Box: bad, Reader: "me", TTL: long}, "a reader who takes": {Box: "box", Reader: bad, TTL: long},
		} {
			k.refused(what, func() error { _, err := k.a.Take(k.Context(), t); return err })
		}
		if bad == "" {
			continue
		}
		k.refused("a reader", func() error { _, _, err := k.a.Read(k.Context(), "box", 0, bad); return err })
		k.refused("a reader before", func() error {
			_, err := k.a.Take(k.Context(), scale.Take{Box: "box", From: bad, Reader: "me", TTL: long})
			return err
		})
	}
	for what, t := range map[string]scale.Take{
		"a Take for less than no time": {Box: "box", Reader: "me", TTL: -1}, "a Take by nobody": {Box: "box", TTL: long},
		"a Take after nothing": {Box: "box", Reader: "me", After: scale.Unread - 1, TTL: long},
	} {
		k.refused(what, func() error { _, err := k.a.Take(k.Context(), t); return err })
	}
	k.refused("a Read after nothing", func() error { _, _, err := k.a.Read(k.Context(), "box", scale.Unread-1, ""); return err })
	k.refused("less than nothing of what was read", func() error {
		_, _, err := k.a.Append(k.Context(), scale.AppendOp{Box: "box", Keep: 100, Recent: -1, TTL: long})
		return err
	})
	k.refused("Due of none", func() error { _, err := k.a.ClaimDue(k.Context(), "part", "due", "me", 0, long); return err })
	k.refused("Due for no time", func() error { _, err := k.a.ClaimDue(k.Context(), "part", "due", "me", 1, 0); return err })
	k.refused("a message without TTL", func() error { _, _, err := k.a.Append(k.Context(), scale.AppendOp{Box: "box", Keep: 100}); return err })
	k.refused("a message that is too long", func() error {
		_, _, err := k.a.Append(k.Context(), scale.AppendOp{Box: "box", Keep: 2 * scale.MaxValue, TTL: long, Data: text(scale.MaxValue + 1)})
		return err
	})
	k.is(key("e"), made.Rev, "1")
	k.is(key("f"), 0, "")
	k.is(key("g"), 0, "")
	if ms, _ := k.read(k.a, 0, "", 0); len(ms) > 0 {
		k.Errorf("the box has %d messages", len(ms))
	}
}
