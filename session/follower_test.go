package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// goneError is what the client of a call gets whose replica is gone.
const goneError = `0={"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the replica that served this call is gone","data":{"executed":"unknown"}}}`

// A client that comes back at another replica gets what followed, then the rest
// as it comes, each event once and under its id.
func TestFollower(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		sendAll(t, st, "a b")
		l := f.back(1, f.event(2))
		l.wants(t, "3=b")
		sendAll(t, st, "c")
		l.wants(t, "4=c")
		time.Sleep(time.Minute) // a quiet call
		l.ended(t, false)
		sendAll(t, st, `{"jsonrpc":"2.0","id":"q","method":"roots/list"} e`)
		l.wants(t, `5={"jsonrpc":"2.0","id":"q","method":"roots/list"}`, "6=e")
		st.End([]byte("answer"))
		l.wants(t, "7=answer")
		l.ended(t, true)
		if f.event(7) != f.all[0].Local(f.id).history.idOf(1, 7, protocol.NewID(7)) {
			t.Error("the id is another one")
		}

		// After the end it can be had again, anywhere.
		for i := range 3 {
			again := f.back(i, f.event(5))
			again.wants(t, "6=e", "7=answer")
			again.ended(t, true)
			nothing := f.back(i, f.event(7))
			nothing.wants(t)
			nothing.ended(t, true)
			if nothing.err != nil || nothing.opens.Load() != 1 {
				t.Errorf("at %d: %v, opened %d times", i, nothing.err, nothing.opens.Load())
			}
		}
		f.empty()
	})
}

// empty wants no follower and no leader to be left.
func (f *team) empty() {
	f.t.Helper()
	synctest.Wait()
	for i, m := range f.all {
		r := m.resumer
		r.mu.Lock()
		if n := r.following.Used(); n+len(r.begun)+len(r.leaders)+r.leading.Used() > 0 {
			f.t.Errorf("%d has %d followers and %d leaders", i, n, len(r.leaders))
		}
		r.mu.Unlock()
	}
}

// The connection before may not know yet that it has lost its client; of two that
// come back at once one gets the stream, and each event is on one of them.
func TestFollowerTakesOver(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		var old sink
		st := f.here(0).OpenStream(&old, protocol.NewID(7))
		sendAll(t, st, "a")
		first := f.back(1, f.event(2))
		sendAll(t, st, "b")
		first.wants(t, "3=b")
		second := f.back(2, f.event(3))
		first.ended(t, true)
		sendAll(t, st, "c")
		second.wants(t, "4=c")
		time.Sleep(10 * time.Second) // what the first asked for late changes nothing
		second.ended(t, false)
		again := f.back(2, f.event(4)) // at the same replica
		second.ended(t, true)
		third := f.back(0, f.event(4))
		again.ended(t, true)
		again.wants(t)
		st.End([]byte("d"))
		third.wants(t, "5=d")
		first.wants(t)
		second.wants(t)
		old.mu.Lock()
		if len(old.got) != 2 {
			t.Errorf("the first connection got %q", old.got)
		}
		old.mu.Unlock()
		f.empty()
	})
	for range 20 {
		together(t, func(t *testing.T, f *team) {
			st := f.call()
			sendAll(t, st, "a")
			var both [2]*get
			for i := range both {
				s := f.here(i + 1)
				both[i] = serve(s, f.event(1))
			}
			time.Sleep(5 * time.Second)
			st.End([]byte("answer"))
			time.Sleep(time.Second)
			answers := 0
			for _, l := range both {
				l.ended(t, true)
				for _, e := range l.got {
					if strings.HasSuffix(e, "=answer") {
						answers++
					}
				}
			}
			if answers != 1 {
				t.Errorf("%d answers", answers)
			}
		})
	}
}

// When the replica is gone, its client hears at once that its call is lost, and
// not with silence.
func TestFollowerOfNobody(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		sendAll(t, st, "a")
		last := f.event(2)
		tailed := f.back(1, last)
		f.kill(0)
		time.Sleep(10 * time.Second)
		tailed.wants(t, goneError)
		tailed.ended(t, true)
		l := f.back(2, last)
		l.wants(t, goneError)
		l.ended(t, true)

		id, _ := parseEventID(last)
		id.request = protocol.ID{}
		for range 2 { // its id was too long for those of events
			l = f.back(2, id.String())
			l.wants(t)
			l.ended(t, true)
			if !errors.Is(l.err, errReplicaGone) || l.opens.Load() > 0 {
				t.Errorf("%v, opened %d times", l.err, l.opens.Load())
			}
			id.stream = 999 // anything
		}
		f.empty()
	})
}

// What the replica had sent before it was killed reaches a client that did not get it.
func TestFollowerOfKilledHasMore(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		sendAll(t, st, "a")
		l.wants(t, "2=a")
		l.mu.Lock()
		l.broken = true
		l.mu.Unlock()
		f.stores[0].nowhere.Store(true)
		f.office[0].Close(t.Context()) // so that it does not hear that the client has left
		sendAll(t, st, "b c")
		l.ended(t, true)
		last := f.event(2)
		f.gone[0] = true
		f.all[0].Close(context.Background(), core.ErrSessionClosed)
		for range 2 {
			l = f.back(2, last)
			l.wants(t, "3=b", "4=c", goneError)
			l.ended(t, true)
		}
	})
}

// A replica that was killed is known to be gone when it was not heard of for a
// while.
func TestFollowerOfKilled(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		f.call()
		l := f.back(1, f.event(1))
		time.Sleep(time.Minute)
		l.ended(t, false)
		f.stores[0].nowhere.Store(true) // it renews nothing any more
		time.Sleep(time.Minute)
		l.wants(t, goneError)
		l.ended(t, true)
	})
}

// An answer whose client is away is in the store, for when the replica is gone.
func TestFollowerLate(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		sendAll(t, st, "a")
		st.End([]byte("answer"))
		last, all := f.event(2), f.event(3)
		f.kill(0)
		for i := range 3 {
			if i == 0 {
				continue
			}
			l := f.back(i, last)
			l.wants(t, "3=answer")
			l.ended(t, true)
			l = f.back(i, all)
			l.wants(t)
			l.ended(t, true)
		}
		time.Sleep(answerTTL)
		l := f.back(1, last)
		l.wants(t, goneError)
	})
}

// answers has a session's calls answered at 0 whose clients are away, and returns
// the ids of the events that these have.
func (f *team) answers(id string, texts ...string) (last []string) {
	f.t.Helper()
	f.id = id
	for _, text := range texts {
		st := f.call()
		last = append(last, f.event(1))
		st.End([]byte(text))
	}
	return last
}

// stored returns how many late answers the store has of a session, from 0.
func (f *team) stored(id string) (n int) {
	f.t.Helper()
	time.Sleep(11 * time.Second) // what is over is deleted
	for stream := range f.all[0].numbers.answers.Load() {
		m, _, err := f.store.Read(f.t.Context(), answerBoxName(id, f.all[0].resumer.answers.node, stream+1), 0, "")
		if err != nil {
			f.t.Fatal(err)
		}
		n += len(m)
	}
	return n
}

// The newest answers of a session are in the store, and no other's are in their
// way.
func TestSavedAnswersNewest(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		id, other := f.id, f.open(0)
		var texts []string
		for i := range 3 * maxSavedAnswers {
			texts = append(texts, fmt.Sprint("answer", i))
		}
		var last []string
		for _, text := range texts {
			last = append(last, f.answers(id, text)...)
			f.answers(other, text)
		}
		f.id = id
		if n := f.stored(id); n != maxSavedAnswers {
			t.Errorf("the store has %d answers", n)
		}
		f.kill(0)
		for i, from := range last {
			l := f.back(1, from)
			if i < len(last)-maxSavedAnswers {
				l.wants(t, goneError)
			} else {
				l.wants(t, "2="+texts[i])
			}
			l.ended(t, true)
		}
	})
}

// The end of a session takes its answers out of the store.
func TestSavedAnswersEnds(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		id, other := f.id, f.open(0)
		f.answers(other, "x")
		f.answers(id, "a", "b", "c")
		if n := f.stored(id); n != 3 {
			t.Errorf("the store has %d answers", n)
		}
		if err := f.all[2].Stop(f.here(2), core.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		f.all[0].HandleChange(id, true)
		time.Sleep(time.Minute)
		if n, others := f.stored(id), f.stored(other); n != 0 || others != 1 {
			t.Errorf("the store has %d answers, and %d of another session", n, others)
		}
		l := f.all[0].resumer.answers
		counts := func(sessions, bytes int) {
			t.Helper()
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.of) != sessions || l.bytes.Used() != bytes {
				t.Errorf("%d sessions have %d bytes", len(l.of), l.bytes.Used())
			}
		}
		counts(1, 1+savedAnswerOverhead)
		time.Sleep(answerTTL)
		counts(0, 0)
	})
	// One that ends where its calls were.
	together(t, func(t *testing.T, f *team) {
		f.answers(f.id, "a", "b")
		if err := f.all[0].Stop(f.here(0), core.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := f.stored(f.id); n != 0 {
			t.Errorf("the store has %d answers", n)
		}
	})
}

// What the answers count has a limit, however many sessions there are.
func TestSavedAnswersBytes(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		l := f.all[0].resumer.answers
		l.mu.Lock()
		l.bytes = share.New("bytes", 10*(1000+savedAnswerOverhead), 0, share.Half)
		l.mu.Unlock()
		sum := 0
		var ids []string
		for range 30 {
			id := f.open(0)
			ids = append(ids, id)
			f.answers(id, strings.Repeat("x", 1000))
			sum += f.stored(id)
		}
		if sum != 10 {
			t.Errorf("the store has %d answers", sum)
		}
		f.answers(ids[0], strings.Repeat("y", 500)) // no room beside the one before
		if n := f.stored(ids[0]); n != 1 {
			t.Errorf("the store has %d answers", n)
		}
		time.Sleep(answerTTL + time.Minute)
		f.id = f.open(0)
		f.answers(f.id, "z")
		if n := f.stored(f.id); n != 1 {
			t.Errorf("then the store has %d answers", n)
		}
	})
}

// An answer that comes while the server shuts down is kept before that is over: on
// its way to its stream, and on its way into the store.
func TestSavedAnswersShutdown(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		other := f.call()
		last := f.event(1)
		go func() {
			time.Sleep(2 * time.Second) // its session is saved
			other.End([]byte("answer"))
		}()
		l := f.back(2, last)
		st.End([]byte("first"))
		f.shutdown(0)
		l.wants(t, "2=answer")
		l = f.back(1, last)
		l.wants(t, "2=answer")
		l.ended(t, true)
	})
	// No history has it.
	together(t, func(t *testing.T, f *team) {
		f.all[0].Local(f.id).history.maxEvent = 1
		st := f.call()
		last := f.event(1)
		f.store.beforePut = func() { time.Sleep(2 * time.Second) }
		go st.End([]byte("answer"))
		synctest.Wait()
		f.shutdown(0)
		f.store.beforePut = nil
		l := f.back(1, last)
		l.wants(t, "2=answer")
	})
	// A client that does not read holds nothing up.
	together(t, func(t *testing.T, f *team) {
		stuck := &stuckSink{until: make(chan struct{})}
		st := f.here(0).OpenStream(stuck, protocol.NewID(7))
		last := f.event(1)
		stuck.stuck.Store(true)
		go st.End([]byte("answer"))
		synctest.Wait()
		before := time.Now()
		f.shutdown(0)
		if took := time.Since(before); took >= replica.StoreTimeout {
			t.Errorf("it took %v", took)
		}
		l := f.back(1, last)
		l.wants(t, "2=answer")
		close(stuck.until)
	})
}

// stuckSink is a connection whose client does not read.
type stuckSink struct {
	sink
	stuck atomic.Bool
	until chan struct{}
}

func (s *stuckSink) Event(id string, message []byte) error {
	if s.stuck.Load() {
		<-s.until
		return errors.New("not read")
	}
	return s.sink.Event(id, message)
}

// A client that leaves before it heard a word leaves nothing behind.
func TestFollowerLeavesUnheard(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		f.call()
		f.stores[0].full.Store(true)
		l := f.back(1, f.event(1))
		time.Sleep(3 * time.Second)
		l.leave()
		f.empty()
	})
}

// Who has the answer hears nothing of it that its replica is gone then.
func TestFollowerAnsweredOnce(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		l := &leader{resumer: f.all[0].resumer, news: make(chan struct{}, 1)}
		if err := f.all[0].Local(f.id).history.send(l, event{stream: 8, event: 2, message: []byte("answer"), answer: true}); err != nil {
			t.Fatal(err)
		}
		if batch := l.next(); len(batch.Events) != 1 || batch.End != reasonDone {
			t.Errorf("%+v is sent, and the end with another message", batch)
		}
	})
	for range 10 {
		together(t, func(t *testing.T, f *team) {
			st, l := f.follow()
			f.stores[0].last.Store(true)
			st.End([]byte("answer"))
			synctest.Wait()
			f.kill(0)
			time.Sleep(time.Minute)
			l.wants(t, "2=answer")
			l.ended(t, true)
		})
	}
}

// The connection before may wait for a client that is gone: the one that has come
// back at another replica is open, and gets the stream then.
func TestFollowerHeld(t *testing.T) {
	keys, err := seal.New("post", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	store := scale.NewLocal()
	var all [2]*Manager
	var offices [2]*bus.Bus
	for i := range all {
		offices[i] = bus.New(bus.Config{Store: store, Seal: keys})
		all[i] = NewManager(Config{Store: store, Seal: keys, ReplicaID: offices[i].ReplicaID(), Bus: offices[i], IdleTimeout: idle})
		all[i].StartReplication(func(string, bool) {})
		offices[i].Start()
	}
	s, err := all[0].Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		t.Fatal(err)
	}
	stuck := &stuckSink{until: make(chan struct{})}
	st := s.OpenStream(stuck, protocol.NewID(7))
	last := s.history.idOf(st.(*answerStream).number, 1, protocol.NewID(7))
	stuck.stuck.Store(true)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = st.Send([]byte("a"))
	}()
	for st.(*answerStream).mu.TryLock() {
		st.(*answerStream).mu.Unlock()
	}
	there, err := all[1].Find(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	back := func() *get {
		l := serve(there, last)
		select {
		case <-l.opened:
		case <-l.done:
			t.Fatalf("the stream ended before it was open: %v", l.err)
		}
		return l
	}
	gone, stays := back(), back()
	<-gone.done
	close(stuck.until)
	<-sent
	st.End([]byte("answer"))
	<-stays.done
	if want := []string{s.history.idOf(1, 2, protocol.NewID(7)) + "=a", s.history.idOf(1, 3, protocol.NewID(7)) + "=answer"}; !slices.Equal(stays.got, want) || len(gone.got) > 0 {
		t.Errorf("got %q and %q", gone.got, stays.got)
	}
	for i := range all {
		all[i].Close(context.Background(), core.ErrSessionClosed)
		offices[i].Close(t.Context())
	}
}

// A client that disconnects from a follower before the answer receives it later, also if its
// session has no room for it.
func TestFollowerLeaves(t *testing.T) {
	for _, most := range []int{noLimit, 1} {
		together(t, func(t *testing.T, f *team) {
			f.all[0].Local(f.id).history.maxEvent = most
			st, l := f.follow()
			sendAll(t, st, "a")
			l.wants(t, "2=a")
			l.breakOff() // the client disconnects without notice
			st.End([]byte("answer"))
			l.ended(t, true)
			last := f.event(2)
			f.kill(0)
			l = f.back(2, last)
			l.wants(t, "3=answer")
			f.empty()
		})
	}
	// A replica that shuts down ends a follower that still asks the store.
	together(t, func(t *testing.T, f *team) {
		f.call()
		s, last := f.here(1), f.event(1)
		f.store.within(time.Second, 0)
		l := serve(s, last)
		synctest.Wait()
		f.all[1].EndStreams(t.Context())
		f.store.within(0, 0)
		time.Sleep(10 * time.Second)
		l.ended(t, true)
		f.empty()
	})
	// A client that closes its connection gets the answer at another replica, too.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		l.leave()
		f.empty()
		st.End([]byte("answer"))
		last := f.event(1)
		f.kill(0)
		l = f.back(2, last)
		l.wants(t, "2=answer")
	})
}

// A replica that shuts down keeps the newest answers in the store, as a
// connection may be broken without a sign, and tells the clients of others.
func TestFollowerShutdown(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		var lost sink
		st := f.here(0).OpenStream(&lost, protocol.NewID(7))
		st.End([]byte("answer"))
		last := f.event(1)
		f.call()
		running := f.event(1)
		l := f.back(1, running)
		done := f.back(2, last)
		done.wants(t, "2=answer")
		f.shutdown(0)
		l.wants(t, goneError)
		l.ended(t, true)
		for i := 1; i < 3; i++ {
			l = f.back(i, last)
			l.wants(t, "2=answer")
			l = f.back(i, running)
			l.wants(t, goneError)
		}
	})
	// The replica where the client has come back shuts down: it comes back once more.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		f.shutdown(1)
		l.ended(t, true)
		st.End([]byte("answer"))
		l = f.back(2, f.event(1))
		l.wants(t, "2=answer")
	})
}

// Hints that are lost cost time and no event.
func TestFollowerWithoutHints(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		f.store.deaf.Store(true)
		l := f.back(1, f.event(1))
		var want []string
		for i := range 20 {
			sendAll(t, st, fmt.Sprint("m", i))
			want = append(want, fmt.Sprint(i+2, "=m", i))
			time.Sleep(300 * time.Millisecond)
			if i == 10 {
				f.store.deaf.Store(false)
			}
		}
		st.End([]byte("answer"))
		time.Sleep(6 * time.Second)
		l.wants(t, append(want, "22=answer")...)
		l.ended(t, true)
		f.empty()
	})
	// A store that does not report that hints are lost breaks its contract.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		f.store.deaf.Store(true)
		f.stores[1].silent.Store(true)
		st.End([]byte("answer"))
		time.Sleep(2 * replica.PollInterval)
		l.wants(t, "2=answer")
		l.ended(t, true)
	})
}

// A stream that was quiet for long receives a message at once whose hint is lost, if the store
// reports the gap, as it must. If it does not, the message comes within replica.StreamCheck.
func TestLostHintOfQuietStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(f *team) (l *get, send func())
		most time.Duration // without a report
	}{
		{"of a session", func(f *team) (*get, func()) {
			return f.back(1, ""), func() { f.post(0, f.id, "m") }
		}, replica.StreamCheck + endLeaseTTL/3}, // a pass comes so often
		{"of an answer", func(f *team) (*get, func()) {
			st := f.call()
			return f.back(1, f.event(1)), func() { sendAll(f.t, st, "m") }
		}, replica.StreamCheck},
	} {
		for _, reported := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.name, ", reported ", reported), func(t *testing.T) {
				together(t, func(t *testing.T, f *team) {
					l, send := tt.open(f)
					time.Sleep(idle / 2)
					f.stores[1].silent.Store(true)
					f.stores[1].deaf.Store(true)
					begun := time.Now()
					send()
					synctest.Wait()
					l.wantMessages(t)
					if reported {
						f.stores[1].reportGap()
					}
					arrived := func() bool { synctest.Wait(); got, _ := l.messages(); return len(got) > 0 }
					for !arrived() && time.Since(begun) < time.Hour {
						time.Sleep(time.Second)
					}
					most := tt.most
					if reported {
						most = 0
					}
					if took := time.Since(begun); took > most {
						t.Errorf("the message came after %v, want %v at most", took, most)
					}
					l.wantMessages(t, "m")
				})
			})
		}
	}
}

// While the store is away, coming back is refused for now; a stream that has gone
// on waits for the store, and goes on.
func TestFollowerStoreAway(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		other := f.here(2)
		f.store.down.Store(true)
		refused := &get{client: newClient()}
		fault, _ := errors.AsType[*protocol.Error](other.ServeStream(f.event(1), refused))
		if fault == nil || fault.Code != protocol.CodeUnavailable || fault.RetryAfter == 0 || refused.opens.Load() != 0 {
			t.Errorf("refused with %+v", fault)
		}
		sendAll(t, st, "a b")
		time.Sleep(10 * time.Second)
		l.ended(t, false)
		f.store.down.Store(false)
		sendAll(t, st, "c")
		time.Sleep(10 * time.Second)
		l.wants(t, "2=a", "3=b", "4=c")
		st.End([]byte("answer"))
		l.wants(t, "5=answer")
		l.ended(t, true)
	})
}

// However long the store is away, no call is said to be lost that runs: its client
// comes back.
func TestFollowerStoreAwayLong(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		sendAll(t, st, "a")
		l.wants(t, "2=a")
		f.store.down.Store(true)
		time.Sleep(5 * time.Minute)
		l.wants(t)
		sendAll(t, st, "b")
		f.store.down.Store(false)
		time.Sleep(20 * time.Second)
		l.wants(t, "3=b")
		l.ended(t, false)
		st.End([]byte("answer"))
		l.wants(t, "4=answer")
		f.empty()
	})
	// Nor while it has no time to come back: its box is gone.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		never := func() int { return 1 }
		f.store.fails.Store(&never)
		time.Sleep(answerTTL + time.Minute)
		sendAll(t, st, "a")
		f.store.fails.Store(nil)
		time.Sleep(20 * time.Second)
		l.wants(t)
		l.ended(t, true)
		l = f.back(1, f.event(1))
		l.wants(t, "2=a")
		l.leave()
		f.empty()
	})
	// Nor however long the box is full.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		f.stores[0].full.Store(true)
		sendAll(t, st, "a")
		time.Sleep(time.Minute)
		f.stores[0].full.Store(false)
		time.Sleep(20 * time.Second)
		l.wants(t)
		l.ended(t, true)
		l = f.back(1, f.event(1))
		l.wants(t, "2=a")
	})
}

// A replica that has too many leaders lets who asks wait, and come back later.
func TestFollowerCrowded(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		r := f.all[0].resumer
		if full := r.leading.Take(f.id, maxFollowers); full != nil {
			t.Fatal(full)
		}
		l := f.back(2, f.event(1))
		l.ended(t, false)
		time.Sleep(firstReplyLimit + 5*time.Second)
		l.ended(t, true)
		l.wants(t)
		l = f.back(2, f.event(1))
		time.Sleep(10 * time.Second)
		r.leading.Give(f.id, maxFollowers)
		st.End([]byte("answer"))
		time.Sleep(10 * time.Second)
		l.wants(t, "2=answer")
		f.empty()
	})
}

// A replica that ends refuses for now.
func TestFollowerEnds(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		f.call()
		s := f.here(1)
		f.all[1].resumer.close()
		l := &get{client: newClient()}
		fault, _ := errors.AsType[*protocol.Error](s.ServeStream(f.event(1), l))
		if fault == nil || fault.Code != protocol.CodeUnavailable || fault.RetryAfter == 0 || l.opens.Load() > 0 {
			t.Errorf("refused with %+v", fault)
		}
	})
}

// A session that is deleted takes its followers with it.
func TestFollowerOfDeleted(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		if err := f.all[2].Stop(f.here(2), core.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		for _, m := range f.all {
			m.HandleChange(f.id, true)
		}
		l.ended(t, true)
		l.wants(t)
		st.End([]byte("answer"))
		f.empty()
	})
	// The replica of the call hears of it first.
	together(t, func(t *testing.T, f *team) {
		f.call()
		l := f.back(1, f.event(1))
		f.all[0].HandleChange(f.id, true)
		time.Sleep(11 * time.Second)
		l.ended(t, true)
		l.wants(t)
	})
}

// What is known of no stream, or too long, is said as it is where the call runs.
func TestFollowerRefused(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		f.call()
		h := &f.all[0].Local(f.id).history
		refused := func(last, want string) {
			t.Helper()
			l := f.back(1, last)
			l.ended(t, true)
			if l.err == nil || !strings.Contains(l.err.Error(), want) || l.opens.Load() > 0 {
				t.Errorf("%s: %v, want %s", last, l.err, want)
			}
		}
		refused(h.idOf(99, 1, protocol.ID{}), "names no stream of this session")
		st := f.call()
		st.End([]byte(strings.Repeat("x", maxAnswerBytes+1)))
		refused(f.event(1), "was too long to be kept")
		for range maxFollowers {
			f.call()
			f.back(1, f.event(1))
		}
		refused(h.idOf(1, 1, protocol.ID{}), "has 16 streams of other replicas open")
		refused(h.idOf(1, 1, protocol.ID{}), "which is the limit")
	})
}

// A message that is too long to be handed on ends the call for its client, who
// is told.
func TestFollowerTooLong(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		sendAll(t, st, strings.Repeat("y", maxAnswerBytes))
		l.wants(t, "2="+strings.Repeat("y", maxAnswerBytes))
		st.End([]byte(strings.Repeat("x", maxAnswerBytes+1)))
		l.wants(t, strings.Replace(goneError, "the replica that served this call is gone", errTooLong.Message, 1))
		l.ended(t, true)
	})
}

// A flood comes whole, in order and in time; what waits is bounded.
func TestFollowerFlood(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		var want []string
		for i := range 3000 {
			m := fmt.Sprint(i, strings.Repeat("z", 1000))
			sendAll(t, st, m)
			want = append(want, fmt.Sprint(i+2, "=", m))
			if i%100 == 99 {
				time.Sleep(time.Second)
			}
		}
		st.End(nil)
		time.Sleep(10 * time.Second)
		l.wants(t, want...)
		l.ended(t, true)
		f.empty()
		for i, m := range f.all {
			if i > 0 && m.budget.used != 0 {
				t.Errorf("%d has %d bytes left", i, m.budget.used)
			}
		}
	})
	// Slow, but never silent.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		var want []string
		for i := range 300 {
			sendAll(t, st, "m")
			want = append(want, fmt.Sprint(i+2, "=m"))
			time.Sleep(500 * time.Millisecond)
		}
		l.wants(t, want...)
		l.ended(t, false)
	})
	// Many that are short.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		var want []string
		for i := range 5000 {
			sendAll(t, st, "m")
			want = append(want, fmt.Sprint(i+2, "=m"))
			if i%500 == 0 {
				synctest.Wait()
			}
		}
		l.wants(t, want...)
		l.ended(t, false)
	})
	// Faster than the store: the client comes back for the rest.
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		f.store.deaf.Store(true)
		for i := range 20000 {
			sendAll(t, st, fmt.Sprint(i, strings.Repeat("x", 500)))
		}
		time.Sleep(20 * time.Second)
		l.ended(t, true)
		l.mu.Lock()
		got := len(l.got)
		l.mu.Unlock()
		if got < 100 {
			t.Errorf("got %d events", got)
		}
	})
}

// A handler may let the connection of its call go while that is elsewhere.
func TestFollowerPause(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st, l := f.follow()
		sendAll(t, st, "a")
		if !st.Pause(time.Second) || st.Pause(time.Second) {
			t.Error("paused not once")
		}
		l.wants(t, "2=a", "0=1s")
		l.ended(t, true)
		st.End([]byte("b"))
		l = f.back(2, f.event(2))
		l.wants(t, "3=b")
	})
}

// No message between replicas, whatever it says, does harm.
func FuzzFollowerMessages(f *testing.F) {
	ask, _ := json.Marshal(followRequest{Session: "s", After: "1-1.a.Nw", Reader: "r"})
	events, _ := json.Marshal(followBatch{For: "r", Events: []followEvent{{ID: "1-2.a", Size: 2}, {Size: -1}}, End: reasonDone})
	f.Add(string(ask), string(events)+"\n{}")
	f.Add(`{"reader":"r","after":"x"}`, `{"for":"r","events":[{"id":"1-3.a","size":-9},{"id":"1-4.a","size":9223372036854775807}]}`)
	keys, err := seal.New("session", []byte("a secret of 16 bytes or more"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ask, events string) {
		store := scale.NewLocal()
		m := NewManager(Config{Store: store, ReplicaID: "a", Seal: keys, Bus: bus.New(bus.Config{Store: store, Seal: keys})})
		s := New(t.Context(), "s", core.ClientInfo{Revision: protocol.V20251125})
		to := &get{client: newClient()}
		fl := &follower{resumer: m.resumer, session: s, reader: "r", box: "b", from: eventID{node: 10, stream: 1, event: 1}, to: to, timer: time.NewTimer(time.Hour)}
		_, _ = fl.sendAll([]scale.Message{{Rev: 1, Data: keys.Seal(nil, []byte(events), seal.Binding("b"))}})
		m.resumer.handleMessage(bus.Message{From: "a", Kind: msgFollow, Body: []byte(ask)})
		total := 0
		for _, e := range to.got {
			_, message, _ := strings.Cut(e, "=")
			total += len(message)
		}
		if total > len(events)+200 {
			t.Errorf("%d bytes of %d", total, len(events))
		}
		m.Close(context.Background(), core.ErrSessionClosed)
	})
}
