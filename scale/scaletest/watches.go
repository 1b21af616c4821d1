package scaletest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// watchChecks are about Watch.
var watchChecks = []check{
	{"Hear", checkHear},
	{"HearWrites", checkHearWrites},
	{"HearAll", checkHearAll},
	{"HearAfterwards", checkHearAfterwards},
	{"Told", checkTold},
	{"Subjects", checkSubjects},
	{"AddRemove", checkAddRemove},
	{"Close", checkClose},
	{"Gap", checkGap},
}

// heard is what a Watcher has called.
type heard struct {
	scale.Watcher
	k    *kit
	news chan struct{} // has an element after a call

	mu       sync.Mutex
	messages map[string][]scale.Message // by subject
	gaps     int
}

func (h *heard) poke() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// wait waits until ok holds for the calls, with h.mu held, and reports whether it does.
func (h *heard) wait(holds func() bool) bool {
	timer := time.NewTimer(timeLimit)
	defer timer.Stop()
	for {
		h.mu.Lock()
		ok := holds()
		h.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-h.news:
		case <-timer.C:
			return false
		}
	}
}

// count waits for n messages of a subject, and checks that there are not more.
func (h *heard) count(subject string, n int) []scale.Message {
	h.k.Helper()
	h.wait(func() bool { return len(h.messages[subject]) >= n })
	time.Sleep(slack)
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.messages[subject]; len(got) != n || h.gaps > 0 {
		h.k.Fatalf("%d messages of %s were heard, and %d gaps, want %d and none", len(got), subject, h.gaps, n)
	}
	return h.messages[subject]
}

// checkHear checks the calls for a box.
func checkHear(k *kit) {
	before, _ := k.post(k.a, scale.AppendOp{Data: []byte("before")})
	h := k.watch(k.b, "box", "none")
	var revs []scale.Rev
	data := []string{"", "one", "\x00\r\n\xff {}", string(text(scale.MaxValue))}
	for i, d := range data {
		rev, _ := k.post([]scale.Store{k.a, k.b}[i%2], scale.AppendOp{Data: []byte(d)})
		revs = append(revs, rev)
		k.post(k.a, scale.AppendOp{Box: "other"})
		h.count("box", i+1)
	}
	prev := before
	for i, m := range h.count("box", len(data)) {
		if string(m.Data) != data[i] || m.Rev != revs[i] || m.Prev != prev || m.Key != (scale.Key{}) {
			k.Errorf("message %d was heard as %d bytes, Rev %d, Prev %d, Key %v; want %d bytes, Rev %d, Prev %d", i, len(m.Data), m.Rev, m.Prev, m.Key, len(data[i]), revs[i], prev)
		}
		prev = m.Rev
	}
	if h.count("none", 0); len(h.messages) != 1 {
		k.Errorf("%d subjects were heard of", len(h.messages))
	}
}

// checkHearWrites checks the calls for writes.
func checkHearWrites(k *kit) {
	h := k.watch(k.b, "subject")
	made := k.make(k.a, scale.Write{Key: key("e"), Notify: "subject"})
	lost := k.put(k.b, scale.Write{Key: key("e"), Value: []byte("x"), TTL: long, Notify: "subject"})
	quiet := k.put(k.b, scale.Write{Key: key("e"), Prev: made.Rev, Value: []byte("x")})
	again := k.put(k.b, scale.Write{Key: key("e"), Prev: scale.Any, Value: []byte("x"), TTL: long, Notify: "subject"})
	h.count("subject", 2)
	k.put(k.a, scale.Write{Key: key("e"), Prev: again.Rev, Notify: "subject"})
	k.put(k.a, scale.Write{Key: key("e"), Prev: scale.Any, Notify: "subject"}) // nothing is there
	k.make(k.a, scale.Write{Key: key("f"), Notify: "other"})
	if lost.Err == nil || quiet.Err != nil || again.Err != nil {
		k.Fatalf("the writes returned %+v, %+v, %+v", lost, quiet, again)
	}
	want := []scale.Message{{Key: key("e"), Rev: made.Rev}, {Key: key("e"), Rev: again.Rev, Prev: quiet.Rev}, {Key: key("e"), Prev: again.Rev}}
	for i, m := range h.count("subject", len(want)) {
		if m.Key != want[i].Key || m.Rev != want[i].Rev || m.Prev != want[i].Prev || len(m.Data) != 0 {
			k.Errorf("write %d was heard as %+v, want %+v", i, m, want[i])
		}
	}
}

// checkHearAll checks that messages of many writers at once each cause one call.
func checkHearAll(k *kit) {
	const writers, each = 4, 50
	h, other := k.watch(k.b, "box"), k.watch(k.b, "box", "other")
	k.each(writers, func(i int, s scale.Store) error {
		for n := range each {
			if _, _, err := s.Append(k.Context(), fill(scale.AppendOp{Data: fmt.Append(nil, i, "/", n)})); err != nil {
				return err
			}
		}
		return nil
	})
	kept, _ := k.read(k.a, 0, "", 0)
	for _, h := range []*heard{h, other} {
		got := map[scale.Rev]scale.Message{}
		for _, m := range h.count("box", writers*each) {
			got[m.Rev] = m
		}
		for _, m := range kept {
			if g := got[m.Rev]; string(g.Data) != string(m.Data) || g.Prev != m.Prev {
				k.Errorf("%s with Rev %d, Prev %d was heard as %s with Prev %d", m.Data, m.Rev, m.Prev, g.Data, g.Prev)
			}
		}
	}
}

// checkHearAfterwards checks that a replica which is notified of a change finds it.
func checkHearAfterwards(k *kit) {
	found := make(chan error, 100)
	w := k.b.Watch(func(subject string, m scale.Message) {
		if subject == "box" {
			ms, _, err := k.b.Read(k.Context(), "box", m.Prev, "")
			if err != nil || len(ms) == 0 || ms[0].Rev != m.Rev {
				err = fmt.Errorf("message %d was heard of, and is not the first of %d, %w", m.Rev, len(ms), err)
			}
			found <- err
			return
		}
		e, err := one(k.b.Get(k.Context(), scale.GetOp{Key: m.Key}))
		if err != nil || e.Rev < m.Rev {
			err = fmt.Errorf("the entry %v is %+v after Rev %d was heard of, %w", m.Key, e, m.Rev, err)
		}
		found <- err
	}, func() {})
	defer w.Close()
	if err := w.Add(k.Context(), "box", "subject"); err != nil {
		k.Fatal(err)
	}
	for i := range 20 {
		k.make(k.a, scale.Write{Key: key(strconv.Itoa(i)), Notify: "subject"})
		k.post(k.a, scale.AppendOp{Data: []byte("x")})
		for range 2 {
			select {
			case err := <-found:
				if err != nil {
					k.Error(err)
				}
			case <-time.After(timeLimit):
				k.Fatal("nothing is heard")
			}
		}
	}
}

// checkTold checks that watchers receive a message that the box does not keep.
func checkTold(k *kit) {
	h := k.watch(k.b, "box")
	told := scale.AppendOp{Box: "box", Data: []byte("told")}
	first, reader, err := k.a.Append(k.Context(), told)
	if err != nil || first <= 0 || reader != "" {
		k.Fatalf("telling returned Rev %d, %q, %v", first, reader, err)
	}
	kept, _ := k.post(k.a, scale.AppendOp{Data: []byte("kept")})
	second, _, err := k.a.Append(k.Context(), told)
	if err != nil {
		k.Fatal(err)
	}
	third, _ := k.post(k.a, scale.AppendOp{Data: []byte("kept")})
	prevs := []scale.Rev{0, 0, kept, kept}
	for i, m := range h.count("box", 4) {
		if want := []scale.Rev{first, kept, second, third}[i]; m.Rev != want || m.Prev != prevs[i] {
			k.Errorf("message %d was heard with Rev %d, Prev %d, want %d, %d", i, m.Rev, m.Prev, want, prevs[i])
		}
	}
	if ms, _ := k.read(k.a, 0, "", 0); texts(ms) != "[kept kept]" {
		k.Errorf("%s are kept, want the kept ones", texts(ms))
	}
}

// checkSubjects checks that a subject is watched until it was removed as often
// as it was added.
func checkSubjects(k *kit) {
	h := k.watch(k.b, "box", "box", "other")
	h.Remove("none", "other", "other")
	h.Remove("box")
	k.post(k.a, scale.AppendOp{Data: []byte("1")})
	k.post(k.a, scale.AppendOp{Box: "other"})
	h.count("box", 1)
	h.count("other", 0)
	h.Remove("box")
	heard := -1
	for deadline := time.Now().Add(timeLimit); ; { // a message on its way may still come
		h.mu.Lock()
		before := heard
		heard = len(h.messages["box"])
		h.mu.Unlock()
		if heard == before {
			break
		}
		if time.Now().After(deadline) {
			k.Fatalf("%d messages of a subject were heard after it was removed", heard)
		}
		k.post(k.a, scale.AppendOp{Data: []byte("2")})
		k.post(k.a, scale.AppendOp{Box: "other"})
		time.Sleep(slack)
	}
	if err := h.Add(k.Context(), "box", "other"); err != nil {
		k.Fatal(err)
	}
	for subject, before := range map[string]int{"box": heard, "other": 0} {
		k.post(k.a, scale.AppendOp{Box: subject, Data: []byte("3")})
		last := 0 // number of calls
		h.wait(func() bool {
			last = 0
			for _, m := range h.messages[subject][before:] { // of the others, some may have been on their way for long
				if string(m.Data) == "3" {
					last++
				}
			}
			return last > 0
		})
		h.mu.Lock()
		if last != 1 || h.gaps > 0 {
			k.Errorf("a message of %s was heard %d times since it is watched again, with %d gaps", subject, last, h.gaps)
		}
		h.mu.Unlock()
	}
}

// checkAddRemove checks that a subject which some add and remove at the same time reaches
// each watcher that has added it. The last that removes it must not end the subscription of
// the next.
func checkAddRemove(k *kit) {
	var seen sync.Map
	var newest atomic.Int64
	w := k.b.Watch(func(_ string, m scale.Message) {
		seen.Store(string(m.Data), true)
		newest.Add(1)
	}, func() {})
	defer w.Close()
	k.each(6, func(i int, _ scale.Store) error {
		for n := range 30 {
			if err := w.Add(k.Context(), "box"); err != nil {
				return err
			}
			if n%3 == 0 {
				time.Sleep(time.Millisecond) // others remove it at the same time
			}
			data := fmt.Sprint(i, "/", n)
			if _, _, err := k.a.Append(k.Context(), scale.AppendOp{Box: "box", Data: []byte(data)}); err != nil {
				return err
			}
			for stop := time.Now().Add(timeLimit); ; time.Sleep(time.Millisecond) {
				if _, ok := seen.Load(data); ok {
					break
				}
				if time.Now().After(stop) {
					return fmt.Errorf("%s was not heard", data)
				}
			}
			w.Remove("box")
		}
		return nil
	})
}

// checkClose checks that nothing is called once Close has returned, and that it
// waits for what was.
func checkClose(k *kit) {
	var running, closed, late atomic.Bool
	begun, end := make(chan struct{}), make(chan struct{})
	begin, goOn := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(end) })
	w := k.b.Watch(func(string, scale.Message) {
		if closed.Load() {
			late.Store(true)
		}
		running.Store(true)
		begin()
		<-end
		running.Store(false)
	}, func() {})
	defer w.Close()
	defer goOn()
	if err := w.Add(k.Context(), "box"); err != nil {
		k.Fatal(err)
	}
	other := k.watch(k.b, "box")
	for range 10 {
		k.post(k.a, scale.AppendOp{})
	}
	select {
	case <-begun:
	case <-time.After(timeLimit):
		k.Fatal("nothing is heard")
	}
	done := make(chan bool, 1)
	go func() {
		w.Close()
		closed.Store(true)
		done <- running.Load()
	}()
	select {
	case <-done:
		k.Error("Close did not wait")
		return
	case <-time.After(slack):
	}
	goOn()
	if <-done {
		k.Error("Close returned before fn did")
	}
	w.Close()
	w.Remove("box")
	k.post(k.a, scale.AppendOp{})
	other.count("box", 11)
	if late.Load() {
		k.Error("fn was called after Close")
	}
}

// checkGap checks that a lost connection causes a gap, and that later messages arrive.
func checkGap(k *kit) {
	if k.lose == nil {
		k.Skip("the backend has no Lose")
	}
	h := k.watch(k.a, "box", "other")
	for i := range 3 {
		k.post(k.b, scale.AppendOp{Data: []byte("before")})
		k.lose()
		if !h.wait(func() bool { return h.gaps > i }) {
			k.Fatal("gap was not called")
		}
		data := strconv.Itoa(i)
		k.post(k.b, scale.AppendOp{Data: []byte(data)})
		if !h.wait(func() bool {
			ms := h.messages["box"]
			return len(ms) > 0 && string(ms[len(ms)-1].Data) == data
		}) {
			k.Fatal("nothing is heard after a gap")
		}
	}
}
