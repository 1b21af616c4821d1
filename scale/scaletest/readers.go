package scaletest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// checkHandover checks that a box that goes from reader to reader gives each message
// once, to the reader of its time or a later one.
func checkHandover(k *kit) {
	const messages, readers = 200, 10
	var done atomic.Bool
	var told [messages]string
	got := map[string][]string{} // the readers, by message
	var takers sync.WaitGroup
	takers.Go(func() {
		for i := 0; ; i++ {
			last := i >= readers && done.Load()
			name, s := strconv.Itoa(i), []scale.Store{k.a, k.b}[i%2]
			found, err := s.Take(k.Context(), scale.Take{Box: "box", Reader: name, After: scale.Unread, TTL: long})
			after := found.Given
			for n := 0; n < messages && err == nil; n++ {
				var ms []scale.Message
				if ms, _, err = s.Read(k.Context(), "box", after, name); len(ms) == 0 {
					break
				}
				for _, m := range ms {
					after = m.Rev
					got[string(m.Data)] = append(got[string(m.Data)], name)
				}
			}
			if err != nil {
				k.Errorf("reading as %s: %v", name, err)
			}
			if err != nil || last {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	k.each(4, func(i int, s scale.Store) (err error) {
		for n := i * messages / 4; n < (i+1)*messages/4 && err == nil; n++ {
			_, told[n], err = s.Append(k.Context(), fill(scale.AppendOp{Data: []byte(strconv.Itoa(n))}))
			if n%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		return err
	})
	done.Store(true)
	takers.Wait()
	for n, reader := range told {
		by := got[strconv.Itoa(n)]
		first, _ := strconv.Atoi(reader)
		if len(by) != 1 {
			k.Errorf("message %d was given to %v", n, by)
		} else if reads, _ := strconv.Atoi(by[0]); reads < first {
			k.Errorf("message %d, appended when %q had the box, was given to %v", n, reader, by)
		}
	}
}

// checkGiven checks that messages which the store returns to the reader count as given, and
// those that it returns to others do not.
func checkGiven(k *kit) {
	var revs []scale.Rev
	add := func(data string) {
		rev, _ := k.post(k.a, scale.AppendOp{Data: []byte(data)})
		revs = append(revs, rev)
	}
	takes := func(reader string, want scale.Box) {
		k.Helper()
		if found := k.take(k.b, scale.Take{Reader: reader, After: scale.Unread, TTL: long}); found != want {
			k.Errorf("taking by %s returns %+v, want %+v", reader, found, want)
		}
	}
	reads := func(reader string, after scale.Rev, want string) {
		k.Helper()
		if ms, _, err := k.a.Read(k.Context(), "box", after, reader); err != nil || texts(ms) != want {
			k.Errorf("%q reads %s after %d, %v, want %s", reader, texts(ms), after, err, want)
		}
	}
	add("1")
	takes("a", scale.Box{Last: revs[0]})
	reads("", 0, "[1]")
	takes("b", scale.Box{Reader: "a", Last: revs[0]})
	reads("b", scale.Unread, "[1]")
	add("2")
	takes("c", scale.Box{Reader: "b", Given: revs[0], Last: revs[1]})
	reads("c", scale.Unread, "[2]")
	reads("c", 0, "[1 2]") // again
	reads("", scale.Unread, "[]")
	takes("d", scale.Box{Reader: "c", Given: revs[1], Last: revs[1]})
	reads("d", scale.Unread, "[]")
	if found := k.take(k.a, scale.Take{Reader: "e", After: revs[0], TTL: long}); found.Given != revs[1] || found.Last != revs[1] {
		k.Errorf("taking returns %+v, want %d given", found, revs[1])
	}
	takes("f", scale.Box{Reader: "e", Given: revs[1], Last: revs[1]}) // only who leaves returns what was given
	add("3")
	reads("f", scale.Unread, "[3]")
}

// checkLeave checks that a Take from a reader counts only while that reads, and gives
// back what the reader did not pass on.
func checkLeave(k *kit) {
	first, _ := k.post(k.a, scale.AppendOp{Data: []byte("1")})
	second, _ := k.post(k.a, scale.AppendOp{Data: []byte("2")})
	k.read(k.a, 0, "s/a", long)
	leave := scale.Take{Box: "box", From: "s/a", Reader: "left", After: first, TTL: long}
	for _, from := range []string{"s/", "s/b", "left"} {
		other := leave
		other.From = from
		if found, err := k.b.Take(k.Context(), other); !errors.Is(err, scale.ErrNotReader) || found.Reader != "s/a" {
			k.Errorf("leaving for %q returns %+v, %v", from, found, err)
		}
	}
	if _, err := k.b.Take(k.Context(), scale.Take{Box: "none", From: "s/a", Reader: "left", TTL: long}); !errors.Is(err, scale.ErrNotReader) {
		k.Errorf("leaving a box that is not there returns %v", err)
	}
	if found := k.take(k.b, leave); found.Reader != "s/a" || found.Given != second {
		k.Errorf("leaving returns %+v", found)
	}
	if _, _, err := k.a.Read(k.Context(), "box", 0, "s/a"); !errors.Is(err, scale.ErrNotReader) {
		k.Errorf("who has left reads: %v", err)
	}
	if found, err := k.b.Take(k.Context(), leave); !errors.Is(err, scale.ErrNotReader) || found.Reader != "left" {
		k.Errorf("leaving twice returns %+v, %v", found, err)
	}
	if found := k.take(k.a, scale.Take{Reader: "next", After: scale.Unread, TTL: long}); found.Given != first || found.Last != second {
		k.Errorf("what was returned does not wait: %+v", found)
	}
	if ms, _ := k.read(k.a, first, "next", 0); texts(ms) != "[2]" {
		k.Errorf("the next reader gets %s", texts(ms))
	}
}

// checkDeleteBox checks that a box can be deleted, with what is in it and its reader.
func checkDeleteBox(k *kit) {
	k.post(k.a, scale.AppendOp{Data: []byte("1")})
	k.read(k.b, 0, "me", long)
	if _, err := k.b.Take(k.Context(), scale.Take{Box: "box", From: "other"}); !errors.Is(err, scale.ErrNotReader) {
		k.Errorf("deleting for another reader returns %v", err)
	}
	if found := k.take(k.b, scale.Take{}); found.Reader != "me" || found.Given == 0 {
		k.Errorf("deleting returns %+v", found)
	}
	if ms, before := k.read(k.a, 0, "", 0); len(ms) != 0 || before != "" {
		k.Errorf("what is deleted has %s and the reader %q", texts(ms), before)
	}
	if found := k.take(k.b, scale.Take{}); found != (scale.Box{}) {
		k.Errorf("deleting again returns %+v", found)
	}
	if rev, reader := k.post(k.a, scale.AppendOp{}); reader != "" || rev == 0 {
		k.Errorf("a box that was made again has the reader %q", reader)
	}
}

// checkRecent checks how much is kept of what was read, and that nothing else is dropped
// for that.
func checkRecent(k *kit) {
	const some = 3 * (10 + 64)
	var revs []scale.Rev
	add := func(recent int) {
		rev, _ := k.post(k.a, scale.AppendOp{Data: fmt.Appendf(nil, "%10d", len(revs)), Recent: recent, Refuse: true})
		revs = append(revs, rev)
	}
	holds := func(when string, want int) {
		k.Helper()
		if ms, _ := k.read(k.b, 0, "", 0); len(ms) != want {
			k.Errorf("%s, %d messages are kept, want %d", when, len(ms), want)
		}
	}
	for range 6 {
		add(some)
	}
	holds("when there is no reader", 6)
	k.read(k.a, 0, "me", long)
	add(some)
	holds("when they were given", 7)
	k.read(k.a, revs[1], "me", 0)
	add(some)
	holds("when two were read", 6)
	k.read(k.a, revs[7], "me", 0)
	add(0)
	holds("without a bound", 7)
	add(some)
	holds("when all but two were read", 4+1-1)
	add(1)
	holds("when there is no room for what was read", 3)
}

// checkReaderLives checks that reading keeps a box as long as its Take did, and looking
// does not.
func checkReaderLives(k *kit) {
	start := time.Now()
	for _, box := range []string{"read", "looked"} {
		k.take(k.a, scale.Take{Box: box, Reader: "me", TTL: brief})
	}
	for range 4 {
		k.sleep(brief / 4)
		for box, reader := range map[string]string{"read": "me", "looked": ""} {
			if _, _, err := k.b.Read(k.Context(), box, 0, reader); err != nil && time.Since(start) < brief {
				k.Errorf("reading %s: %v", box, err)
			}
		}
	}
	intime := time.Since(start) < 2*brief*5/8
	k.sleep(brief / 8)
	if _, now, err := k.a.Read(k.Context(), "looked", 0, ""); now != "" || err != nil {
		k.Errorf("what was looked at has the reader %q, %v", now, err)
	}
	if _, now, err := k.a.Read(k.Context(), "read", 0, ""); now != "me" && intime || err != nil {
		k.Errorf("what was read has the reader %q, %v", now, err)
	}
}

// checkTellReader checks that only the subject of a reader is notified of messages and of
// the next reader.
func checkTellReader(k *kit) {
	h := k.watch(k.b, "readers", "box", "others")
	k.take(k.a, scale.Take{Reader: "readers/1", TTL: long})
	first, reader := k.post(k.a, scale.AppendOp{Data: []byte("1")})
	if reader != "readers/1" {
		k.Errorf("the reader is %q", reader)
	}
	second, _ := k.post(k.b, scale.AppendOp{Data: []byte("2")})
	k.take(k.a, scale.Take{Reader: "readers/1", TTL: long}) // the same: nothing new for it
	k.take(k.a, scale.Take{Reader: "others/1/a", TTL: long})
	third, _ := k.post(k.b, scale.AppendOp{Data: []byte("3")})
	k.take(k.a, scale.Take{From: "others/1/a", Reader: "left", After: scale.Unread, TTL: long})
	fourth, _ := k.post(k.b, scale.AppendOp{Data: []byte("4")})
	k.take(k.a, scale.Take{Reader: "readers/2", TTL: long})
	k.take(k.a, scale.Take{}) // deletes it
	for subject, want := range map[string][]scale.Rev{"readers": {first, second, 0, 0}, "others": {third, 0}, "box": {fourth}} {
		ms := slices.Clone(h.count(subject, len(want)))
		for i, m := range ms {
			about := subject != "box"
			if want[i] != 0 && m.Rev != want[i] || m.Rev <= 0 || about && (m.Key.Name != "box" || len(m.Data) > 0) || !about && (m.Key.Name != "" || len(m.Data) == 0) {
				k.Errorf("%s is notified of %+v, want the Rev %d", subject, m, want[i])
			}
		}
	}
	k.sleep(slack)
	for subject, want := range map[string]int{"readers": 4, "others": 2, "box": 1} {
		if n := len(h.count(subject, want)); n != want {
			k.Errorf("%s is notified %d times, want %d", subject, n, want)
		}
	}
}

// checkResume checks which name reads a box after a Take that may resume a stream, and
// where it begins.
func checkResume(k *kit) {
	var revs []scale.Rev
	for n := range 3 {
		rev, _ := k.post(k.a, scale.AppendOp{Data: []byte(strconv.Itoa(n + 1))})
		revs = append(revs, rev)
	}
	step := func(resume string, after scale.Rev, want scale.Box, reads, texted string) {
		k.Helper()
		if found := k.take(k.b, scale.Take{Reader: "fresh+new", Resume: resume, After: after, TTL: long}); found != want {
			k.Errorf("%q returns %+v, want %+v", resume, found, want)
		}
		for _, reader := range []string{"fresh+new", resume} {
			ms, _, err := k.a.Read(k.Context(), "box", scale.Unread, reader)
			if (err == nil) != (reader == reads) || reader == reads && texts(ms) != texted {
				k.Errorf("after %q, %q reads %s, %v, want %s for %q", resume, reader, texts(ms), err, texted, reads)
			}
		}
	}
	step("b/1+x", revs[0], scale.Box{Last: revs[2]}, "fresh+new", "[1 2 3]") // there was no stream
	k.take(k.a, scale.Take{Reader: "a/1+x", After: scale.Unread, TTL: long})
	step("b/2+x", revs[0], scale.Box{Reader: "a/1+x", Given: revs[2], Last: revs[2]}, "b/2+x", "[2 3]")
	step("c/3+y", revs[0], scale.Box{Reader: "b/2+x", Given: revs[2], Last: revs[2], Resumed: "b/2+x"}, "fresh+new", "[]")
	step("c/4+new", 1<<52, scale.Box{Reader: "fresh+new", Given: revs[2], Last: revs[2], Resumed: "b/2+x"}, "c/4+new", "[]")
	rev, _ := k.post(k.a, scale.AppendOp{Data: []byte("4")}) // 1<<52 stood for the newest until now
	if ms, _, err := k.a.Read(k.Context(), "box", scale.Unread, "c/4+new"); err != nil || texts(ms) != "[4]" {
		k.Errorf("after what is too far, the reader gets %s, %v", texts(ms), err)
	}
	found := k.take(k.b, scale.Take{From: "c/4+new", Reader: "+new", After: revs[1], TTL: long})
	if want := (scale.Box{Reader: "c/4+new", Given: rev, Last: rev, Resumed: "b/2+x c/4+new"}); found != want {
		k.Errorf("leaving returns %+v, want %+v", found, want)
	}
	step("d/5+new", revs[2], scale.Box{Reader: "+new", Given: revs[1], Last: rev, Resumed: "b/2+x c/4+new"}, "d/5+new", "[4]")
	var want []string
	for n := range 8 {
		name := strconv.Itoa(n)
		k.take(k.a, scale.Take{Reader: "e/1+" + name, TTL: long})
		k.take(k.b, scale.Take{Reader: "none", Resume: "f/1+" + name, TTL: long})
		want = append(want, "f/1+"+name)
	}
	if found := k.take(k.a, scale.Take{}); found.Resumed != strings.Join(want, " ") {
		k.Errorf("%q have resumed, want %q", found.Resumed, want)
	}
}

// checkPostFrom checks that a message counts as given to the reader that appends it, if that
// has everything before, and is not appended if not.
func checkPostFrom(k *kit) {
	h := k.watch(k.b, "readers", "box")
	from := func(reader string, after scale.Rev, data string) (scale.Rev, error) {
		rev, _, err := k.a.Append(k.Context(), fill(scale.AppendOp{Data: []byte(data), From: reader, After: after, Recent: 1, Refuse: true}))
		return rev, err
	}
	refused := func(what, reader string, after scale.Rev) {
		k.Helper()
		if _, err := from(reader, after, "no"); !errors.Is(err, scale.ErrNotReader) {
			k.Errorf("%s is appended: %v", what, err)
		}
	}
	refused("a message of one that does not read", "readers/1", 0)
	first, _ := k.post(k.a, scale.AppendOp{Data: []byte("1")})
	k.take(k.b, scale.Take{Reader: "readers/1", TTL: long})
	refused("a message after one that was not read", "readers/1", 0)
	refused("a message of another", "readers/2", first)
	second, err := from("readers/1", first, "2")
	if err != nil {
		k.Fatalf("appending as the reader: %v", err)
	}
	refused("a second message after the same", "readers/1", first)
	third, err := from("readers/1", second, "3")
	if err != nil {
		k.Fatalf("appending again: %v", err)
	}
	if ms, _ := k.read(k.a, 0, "", 0); texts(ms) != "[3]" { // what was read is dropped
		k.Errorf("the box keeps %s", texts(ms))
	}
	if found := k.take(k.b, scale.Take{Reader: "next", After: scale.Unread, TTL: long}); found.Given != third || found.Last != third {
		k.Errorf("taking returns %+v, want %d given", found, third)
	}
	k.sleep(slack)
	if n := len(h.count("readers", 1)); n != 1 || len(h.count("box", 1)) != 1 {
		k.Errorf("the reader is notified %d times, want once, of the next one", n)
	}
}
