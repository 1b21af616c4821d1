package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// deaf is a Store whose hints are lost.
type deaf struct{ scale.Store }

func (d deaf) Watch(func(string, scale.Message), func()) scale.Watcher {
	return d.Store.Watch(func(string, scale.Message) {}, func() {})
}

// office is a Bus, and what it has got.
type office struct {
	*Bus
	mu   sync.Mutex
	got  []string
	errs []error
}

// open starts an office in a bubble.
func open(t *testing.T, store scale.Store, key string) *office {
	t.Helper()
	return openWaiting(t, store, key, 0)
}

// openWaiting is open with a Wait.
func openWaiting(t *testing.T, store scale.Store, key string, wait time.Duration) *office {
	t.Helper()
	keys, err := seal.New("post", []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	o := &office{}
	o.Bus = New(Config{Store: store, Seal: keys, MaxWait: wait, OnError: func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.errs = append(o.errs, err)
	}})
	for _, kind := range []string{"again", "alone", "answer", "both", "cancel", "empty", "ended", "evil", "m", "mail", "moved", "one", "own", "three", "two", "x"} {
		o.Handle(kind, func(m Message) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.got = append(o.got, m.Kind+"="+string(m.Body))
		})
	}
	o.Start()
	synctest.Wait()
	return o
}

// want wants these messages to have come since the last call.
func (o *office) want(t *testing.T, messages ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.got, messages) {
		t.Errorf("%s got %q, want %q", o.ReplicaID(), o.got, messages)
	}
	o.got = nil
}

const key = "a secret of 16 bytes or more"

func send(t *testing.T, from, to *office, kind, body string) {
	t.Helper()
	if err := from.Send(t.Context(), to.ReplicaID(), kind, []byte(body)); err != nil {
		t.Errorf("Send: %v", err)
	}
}

func tell(t *testing.T, from *office, kind, body string) {
	t.Helper()
	if err := from.Broadcast(t.Context(), kind, []byte(body)); err != nil {
		t.Errorf("Tell: %v", err)
	}
}

// Messages reach the replica that they are for, once and in their order.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		a, b, c := open(t, store, key), open(t, store, key), open(t, store, key)
		defer func() { a.Close(t.Context()); b.Close(t.Context()); c.Close(t.Context()) }()
		var all []string
		for i := range 300 {
			send(t, a, b, "answer", fmt.Sprint(i))
			all = append(all, fmt.Sprint("answer=", i))
		}
		send(t, a, a, "own", "a\nb")
		send(t, c, a, "empty", "")
		b.want(t, all...)
		a.want(t, "own=a\nb", "empty=")
		c.want(t)
		time.Sleep(20 * time.Second) // it looks, and finds nothing new
		b.want(t)

		tell(t, a, "ended", "x")
		a.want(t) // not to itself
		b.want(t, "ended=x")
		c.want(t, "ended=x")
	})
}

// late is a Store that makes the next message wait, if there is a hold, until that is
// closed, and calls at before and after a box is closed, if it is not nil.
type late struct {
	scale.Store
	hold chan struct{}
	at   func(closed bool)
}

func (l *late) Take(ctx context.Context, t scale.Take) (scale.Box, error) {
	at := l.at
	if at == nil || t.Reader != closedReader {
		return l.Store.Take(ctx, t)
	}
	l.at = nil
	at(false)
	defer at(true)
	return l.Store.Take(ctx, t)
}

func (l *late) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if l.hold != nil {
		<-l.hold
	}
	return l.Store.Append(ctx, p)
}

// A message that comes when its replica has just left is not lost unnoticed: who has
// seen that live hears that nobody gets it.
func TestSendToOneThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		slow := &late{Store: store}
		a, b := open(t, slow, key), open(t, store, key)
		defer a.Close(t.Context())
		send(t, a, b, "mail", "1")
		b.want(t, "mail=1")
		slow.hold = make(chan struct{})
		sent := make(chan error)
		go func() { sent <- a.Send(t.Context(), b.ReplicaID(), "mail", []byte("2")) }()
		synctest.Wait() // it has looked, and is about to send
		b.Close(t.Context())
		close(slow.hold)
		if err := <-sent; !errors.Is(err, ErrNoReplica) {
			t.Errorf("Send: %v, want ErrNobody", err)
		}
		if err := a.SendUnchecked(t.Context(), b.ReplicaID(), "mail", []byte("3")); !errors.Is(err, ErrNoReplica) {
			t.Errorf("Reply: %v, want ErrNobody", err)
		}
		b.want(t)
	})
}

// What comes until a box is closed is handled, and what comes later is not.
func TestSendWhileOneLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		slow := &late{Store: store}
		a, b := open(t, store, key), open(t, slow, key)
		defer a.Close(t.Context())
		slow.at = func(isClosed bool) {
			if err := a.SendUnchecked(t.Context(), b.ReplicaID(), "mail", nil); errors.Is(err, ErrNoReplica) != isClosed {
				t.Errorf("Reply, closed %t: %v", isClosed, err)
			}
		}
		b.Close(t.Context())
		b.want(t, "mail=")
	})
}

// A hint that is lost costs five seconds, not the message.
func TestSendWithoutHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := deaf{scale.NewLocal()}
		a, b := open(t, store, key), open(t, store, key)
		defer func() { a.Close(t.Context()) }()
		send(t, a, b, "one", "1")
		tell(t, a, "two", "2")
		time.Sleep(replica.PollInterval)
		b.want(t, "one=1", "two=2")
		send(t, a, b, "three", "3")
		b.Close(t.Context()) // handles what has arrived
		b.want(t, "three=3")
	})
}

// A replica that begins hears nothing of what was told before.
func TestNothingOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		a := open(t, store, key)
		for i := range 10 {
			tell(t, a, "cancel", fmt.Sprint(i))
		}
		b := open(t, store, key)
		defer func() { a.Close(t.Context()); b.Close(t.Context()) }()
		time.Sleep(time.Minute)
		b.want(t)
		tell(t, a, "cancel", "new")
		b.want(t, "cancel=new")
	})
}

// The names of replicas are never the same, and one that was closed is gone.
func TestLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		a, b := open(t, store, key), open(t, store, key)
		defer a.Close(t.Context())
		lives := func(node string, want bool) {
			t.Helper()
			if is, err := a.IsAlive(t.Context(), node); is != want || err != nil {
				t.Errorf("%s lives: %v, %v", node, is, err)
			}
		}
		time.Sleep(10 * replica.DeadAfter)
		lives(a.ReplicaID(), true)
		lives(b.ReplicaID(), true)
		b.Close(t.Context())
		lives(b.ReplicaID(), false)
		if err := a.Send(t.Context(), b.ReplicaID(), "x", nil); !errors.Is(err, ErrNoReplica) {
			t.Errorf("to a replica that is gone: %v", err)
		}
		if err := a.Send(t.Context(), "nobody", "x", nil); !errors.Is(err, ErrNoReplica) {
			t.Errorf("to a replica that never was: %v", err)
		}
		// Nor has a box come of it, which nobody would read.
		if messages, _, err := store.Read(t.Context(), "node:nobody", 0, ""); err != nil || len(messages) > 0 {
			t.Errorf("its box has %d messages, %v", len(messages), err)
		}
		if a.ReplicaID() == b.ReplicaID() || strings.ContainsAny(a.ReplicaID(), "-. ") {
			t.Errorf("names %q, %q", a.ReplicaID(), b.ReplicaID())
		}
	})
}

// lossy is a Store that loses some of the next heartbeats.
type lossy struct {
	scale.Store
	lose atomic.Int64
}

func (l *lossy) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if writes[0].Key.Partition == "node" && l.lose.Add(-1) >= 0 {
		return nil, scale.ErrUnavailable
	}
	return l.Store.Put(ctx, writes...)
}

// A replica whose heartbeats are lost a few times counts as alive.
func TestLivesWithLostHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lossy{Store: scale.NewLocal()}
		a, b := open(t, store, key), open(t, store.Store, key)
		defer func() { a.Close(t.Context()); b.Close(t.Context()) }()
		time.Sleep(time.Minute)
		store.lose.Store(5)
		for second := range 60 {
			time.Sleep(time.Second)
			if lives, err := b.IsAlive(t.Context(), a.ReplicaID()); !lives || err != nil {
				t.Fatalf("after %d s: %v, %v", second, lives, err)
			}
		}
	})
}

// The store may be away for longer than a replica is remembered, and from one of
// them alone. What is sent to who lives arrives, or is known not to.
func TestAway(t *testing.T) {
	for _, tt := range []struct {
		what          string
		away          time.Duration
		both          bool
		silent, again bool // what Send says right afterwards
	}{
		{"for a moment", time.Second, true, false, false},
		{"for long", 2 * replica.DeadAfter, true, false, false},
		{"for so long that records are gone", 2 * minRetention, true, false, true},
		{"from one alone", 2 * replica.DeadAfter, false, true, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := scale.NewLocal()
				mine, other := &away{Store: store}, &away{Store: store}
				a, b := open(t, mine, key), open(t, other, key)
				defer a.Close(t.Context())
				defer b.Close(t.Context())
				time.Sleep(10 * replica.DeadAfter)
				other.away.Store(true)
				mine.away.Store(tt.both)
				time.Sleep(tt.away)
				// b has not been heard of, a has.
				mine.away.Store(false)
				time.Sleep(tt.away % replica.PollInterval)
				err := a.Send(t.Context(), b.ReplicaID(), "x", []byte("1"))
				if errors.Is(err, ErrReplicaLost) != tt.silent || errors.Is(err, scale.ErrUnavailable) != tt.again || err != nil && !tt.silent && !tt.again {
					t.Errorf("%v", err)
				}
				other.away.Store(false)
				time.Sleep(2 * replica.PollInterval)
				if tt.again {
					send(t, a, b, "x", "1")
				}
				b.want(t, "x=1")
				time.Sleep(2 * replica.DeadAfter)
				if err := a.Send(t.Context(), "nobody", "x", nil); err != ErrNoReplica {
					t.Errorf("to nobody: %v", err)
				}
			})
		})
	}
}

// What is sent to a replica while somebody may wait there arrives, though the
// store was away from it, or from everybody, for nearly so long.
func TestWait(t *testing.T) {
	const wait = 3 * minRetention
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		mine, other := &away{Store: store}, &away{Store: deaf{store}}
		a, b := openWaiting(t, mine, key, wait), openWaiting(t, other, key, wait)
		defer a.Close(t.Context())
		time.Sleep(10 * replica.DeadAfter)
		other.away.Store(true) // a moment before
		send(t, a, b, "both", "1")
		mine.away.Store(true)
		time.Sleep(wait - time.Second)
		mine.away.Store(false)
		other.away.Store(false)
		time.Sleep(2 * replica.PollInterval)
		b.want(t, "both=1")

		time.Sleep(10 * replica.DeadAfter)
		other.away.Store(true)
		time.Sleep(wait - time.Second)
		if err := a.Send(t.Context(), b.ReplicaID(), "alone", []byte("2")); err != ErrReplicaLost {
			t.Errorf("Send: %v", err)
		}
		other.away.Store(false)
		time.Sleep(2 * replica.PollInterval)
		b.want(t, "alone=2")

		other.away.Store(true)
		b.Close(t.Context())
		time.Sleep(wait + 2*replica.DeadAfter)
		if err := a.Send(t.Context(), b.ReplicaID(), "x", nil); err != ErrNoReplica {
			t.Errorf("to who is gone: %v", err)
		}
	})
}

// Who does not take what is sent to him is no reason to drop any of it: the
// sender is told.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := deaf{scale.NewLocal()}
		a, b := open(t, store, key), open(t, store, key)
		defer func() { a.Close(t.Context()); b.Close(t.Context()) }()
		body := strings.Repeat("x", 512<<10)
		var sent []string
		for {
			err := a.Send(t.Context(), b.ReplicaID(), "m", []byte(body))
			if errors.Is(err, scale.ErrFull) {
				break
			}
			if err != nil || len(sent) > 100 {
				t.Fatalf("after %d messages: %v", len(sent), err)
			}
			sent = append(sent, "m="+body)
		}
		if len(sent) < 10 {
			t.Errorf("full after %d messages", len(sent))
		}
		time.Sleep(replica.PollInterval)
		b.mu.Lock()
		n := len(b.got)
		b.got = nil
		b.mu.Unlock()
		if n != len(sent) {
			t.Errorf("got %d of %d", n, len(sent))
		}
		send(t, a, b, "again", "1") // there is room again
	})
}

// What was not sealed with the keys of the replicas, or for another box, is
// nobody's message.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		a, stranger := open(t, store, key), open(t, store, "another secret of 16 bytes")
		defer func() { a.Close(t.Context()); stranger.Close(t.Context()) }()
		send(t, stranger, a, "evil", "1")
		tell(t, stranger, "evil", "2")
		if _, _, err := store.Append(t.Context(), scale.AppendOp{Box: broadcastBox, Data: a.sealMessage(a.inbox, "moved", nil), Keep: 1000, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		a.want(t)
		if len(a.errs) != 3 {
			t.Errorf("told of %v", a.errs)
		}
	})
}

// A store that is away at first is no reason to give up.
func TestStoreComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: scale.NewLocal()}
		store.away.Store(true)
		a := open(t, store, key)
		defer a.Close(t.Context())
		time.Sleep(10 * time.Second)
		store.away.Store(false)
		time.Sleep(2 * time.Second)
		send(t, a, a, "x", "1")
		a.want(t, "x=1")
	})
}

// away is a Store that does not answer while away.
type away struct {
	scale.Store
	away atomic.Bool
}

func (s *away) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.away.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Put(ctx, writes...)
}

func (s *away) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if s.away.Load() {
		return nil, "", scale.ErrUnavailable
	}
	return s.Store.Read(ctx, box, after, reader)
}

func (s *away) Take(ctx context.Context, t scale.Take) (scale.Box, error) {
	if s.away.Load() {
		return scale.Box{}, scale.ErrUnavailable
	}
	return s.Store.Take(ctx, t)
}

// What a killed replica leaves in the store has an end, although questions have none.
func TestKeepHasAnEnd(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: minRetention, -1: minRetention, time.Hour: time.Hour + replica.DeadAfter, maxRetention: maxRetention, math.MaxInt64: maxRetention,
	} {
		if o := New(Config{MaxWait: wait}); o.retention != want {
			t.Errorf("who waits for %v: it is kept for %v, want %v", wait, o.retention, want)
		}
	}
}

// A message without a handler, of another version of the server, is an error and holds up no
// other. A kind has one handler.
func TestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		a := open(t, store, key)
		defer a.Close(t.Context())
		send(t, a, a, "unknown", "1")
		send(t, a, a, "unknown", "1")
		send(t, a, a, "x", "2")
		a.want(t, "x=2")
		if len(a.errs) != 1 || !strings.Contains(a.errs[0].Error(), `unknown kind "unknown"`) {
			t.Errorf("errors %v", a.errs)
		}
		defer func() {
			if recover() == nil {
				t.Error("two handlers of one kind")
			}
		}()
		a.Handle("x", func(Message) {})
	})
}

// slowTake is a Store that needs a second for Take, and counts.
type slowTake struct {
	scale.Store
	taken atomic.Int32
}

func (s *slowTake) Take(ctx context.Context, op scale.Take) (scale.Box, error) {
	s.taken.Add(1)
	time.Sleep(time.Second)
	return s.Store.Take(ctx, op)
}

// Several calls of Close at once end the Bus once, and all wait for that.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowTake{Store: scale.NewLocal()}
		a := open(t, store, key)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		store.taken.Store(0)
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				a.Close(t.Context())
				if took := time.Since(began); took < time.Second {
					t.Errorf("Close has returned after %v", took)
				}
			})
		}
		all.Wait()
		if n := store.taken.Load(); n != 1 || len(a.errs) > 0 {
			t.Errorf("the inbox was closed %d times: %v", n, a.errs)
		}
	})
}
