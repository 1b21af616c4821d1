package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// A client that breaks off while it gets a saved answer comes back for that.
func TestSavedAnswersBrokenOff(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		last := f.event(1)
		st.End([]byte("answer"))
		f.all[0].Local(f.id).history.dropFinished() // only the store has it now
		l := &get{client: newClient()}
		l.broken = true
		if err := f.here(1).ServeStream(last, l); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // what was acknowledged is deleted
		again := f.back(2, last)
		again.wants(t, "2=answer")
		again.ended(t, true)
		time.Sleep(time.Minute)
		again = f.back(1, last)
		again.ended(t, true)
		if again.err == nil || !strings.Contains(again.err.Error(), "names no stream") {
			t.Errorf("after the client has it: %v", again.err)
		}
	})
}

// Streams that a client invents leave nothing: no entry at their replica, and no box.
func TestFollowerInventedStreams(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		h := &f.all[0].Local(f.id).history
		for n := range uint64(100) {
			l := f.back(1, h.idOf(1000+n, 1, protocol.ID{}))
			l.ended(t, true)
			if l.err == nil || !strings.Contains(l.err.Error(), "names no stream") {
				t.Fatalf("%v", l.err)
			}
			box := answerBoxName(f.id, h.node, 1000+n)
			if list, _, err := f.store.Read(t.Context(), box, 0, ""); len(list) > 0 || err != nil {
				t.Fatalf("the store has %d messages: %v", len(list), err)
			}
		}
		if n := len(f.all[0].resumer.answers.of[f.id]); n > 0 {
			t.Errorf("%d entries", n)
		}
		f.empty()
	})
}

// A newer answer takes no room from one that a client reads, until that has left.
func TestSavedAnswersWhileRead(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		answers, s := f.all[0].resumer.answers, f.here(0)
		save := func(stream uint64) {
			if err := answers.use(s, stream, 1, 2, func(*answerBox) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		over := func() (streams []uint64) {
			over := answers.overdue(f.id)
			for _, b := range over {
				streams = append(streams, b.stream)
			}
			answers.sweep(t.Context(), over)
			slices.Sort(streams)
			return streams
		}
		save(1)
		answers.lead(f.id, 1, "r")
		for n := range uint64(maxSavedAnswers) {
			save(2 + n)
		}
		if got := over(); len(got) > 0 {
			t.Errorf("%d is over while it is read", got)
		}
		answers.leave(f.id, "r", eventID{stream: 1, event: 1}) // without the answer
		save(100)
		if got := over(); !slices.Equal(got, []uint64{1, 2}) {
			t.Errorf("%d are over, want the oldest two of %d", got, maxSavedAnswers+2)
		}
	})
}

// Clients that come back for silent calls and leave again take no room from a saved answer.
func TestSavedAnswersBesideSilentCalls(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		f.answers(f.id, "answer")
		for range 2 * maxSavedAnswers {
			f.call()
			f.back(1, f.event(1)).leave()
		}
		f.call().End([]byte("another"))
		if n := f.stored(f.id); n != 2 {
			t.Errorf("the store has %d answers, want both", n)
		}
		answers := f.all[0].resumer.answers
		if boxes, bytes := len(answers.of[f.id]), answers.bytes.Used(); boxes != 2 || bytes != 2*savedAnswerOverhead+len("answeranother") {
			t.Errorf("%d boxes count %d bytes", boxes, bytes)
		}
		f.empty()
	})
}

// A follower without memory for what it has read ends: the client comes back for it.
func TestFollowerWithoutMemory(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		budget := f.here(1).history.budget
		room := budget.budget.limit
		if !budget.reserve(room) {
			t.Fatal("no room")
		}
		sendAll(t, st, "a")
		time.Sleep(noMemoryLimit / 2)
		l.ended(t, false)
		time.Sleep(noMemoryLimit)
		l.ended(t, true)
		l.wants(t)
		budget.release(room)
		l = f.back(1, f.event(1))
		l.wants(t, "2=a")
		st.End([]byte("answer"))
		l.wants(t, "3=answer")
		f.empty()
	})
}

// However many calls of a session end while its client is away, the store has the answers of
// the newest at once, and the replica keeps a list of these.
func TestSavedAnswersBound(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		answers := f.all[0].resumer.answers
		boxes := func() int {
			answers.mu.Lock()
			defer answers.mu.Unlock()
			return len(answers.of[f.id])
		}
		s := f.here(0)
		calls := func(n int) {
			for range n {
				s.OpenStream(&sink{broken: true}, protocol.NewID(7)).End([]byte("answer"))
			}
		}
		calls(500)
		n, last := 0, f.all[0].numbers.answers.Load()
		for stream := range last {
			if list, _, err := f.store.Read(t.Context(), answerBoxName(f.id, answers.node, stream+1), 0, ""); err != nil {
				t.Fatal(err)
			} else if n += len(list); len(list) > 0 && stream < last-maxSavedAnswers {
				t.Errorf("the store has answer %d of %d", stream+1, last)
			}
		}
		if n != maxSavedAnswers || boxes() != maxSavedAnswers {
			t.Errorf("the store has %d answers, the list %d", n, boxes())
		}
		// The store is away: what is to be deleted has a bound as well.
		f.store.down.Store(true)
		calls(500)
		if n := boxes(); n > maxAnswerBoxes {
			t.Errorf("%d boxes of a session", n)
		}
		f.store.down.Store(false)
		time.Sleep(time.Minute)
		calls(maxSavedAnswers)
		if n := f.stored(f.id); n != maxSavedAnswers || boxes() != maxSavedAnswers {
			t.Errorf("then the store has %d answers, the list %d", n, boxes())
		}
	})
}

// Only the follower that reads a box makes room in it.
func TestSavedAnswersAcknowledged(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		answers, s := f.all[0].resumer.answers, f.here(0)
		if err := answers.use(s, 1, 100, 0, func(*answerBox) error { return nil }); err != nil {
			t.Fatal(err)
		}
		answers.lead(f.id, 1, "newer")
		for _, tt := range []struct {
			reader string
			want   int
		}{{"overtaken", savedAnswerOverhead + 100}, {"newer", 0}} {
			answers.acknowledge(f.id, 1, tt.reader)
			if got := answers.bytes.Used(); got != tt.want {
				t.Errorf("%d bytes count after %s has read, want %d", got, tt.reader, tt.want)
			}
		}
	})
}

// A box from which the store has dropped what an earlier follower has read serves the next
// ones.
func TestFollowerAfterDrops(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		for range 20 { // more than the history of a session
			sendAll(t, st, strings.Repeat("x", defaultHistory/4))
			synctest.Wait()
		}
		l.leave()
		for n := 22; n < 25; n++ {
			l = f.back(1+n%2, f.event(n-1))
			sendAll(t, st, "m")
			l.wants(t, fmt.Sprint(n, "=m"))
			l.ended(t, false)
			l.leave()
		}
		l = f.back(2, f.event(24))
		st.End([]byte("answer"))
		l.wants(t, "25=answer")
		f.empty()
	})
}

// An answer that is saved while the store deletes its box stays.
func TestSavedAnswersDeleting(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		answers, s := f.all[0].resumer.answers, f.here(0)
		for stream := uint64(1); stream <= 30; stream++ {
			f.store.within(0, 0)
			var box string
			if err := answers.use(s, stream, 1, 0, func(b *answerBox) error { box = b.name; return nil }); err != nil {
				t.Error(err)
			}
			answers.update(f.id, stream, func(b *answerBox) { b.over = true })
			over := answers.overdue(f.id)
			f.store.within(time.Second, 0)
			go answers.sweep(t.Context(), over)
			synctest.Wait()
			answers.save(t.Context(), s, event{stream: stream, event: 2, message: []byte("answer"), answer: true})
			time.Sleep(5 * time.Second)
			if list, _, err := f.store.Read(t.Context(), box, 0, ""); len(list) != 1 || err != nil {
				t.Errorf("the store has %d messages of stream %d, %v", len(list), stream, err)
			}
		}
	})
}
