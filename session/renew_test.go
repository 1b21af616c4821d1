package session

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// manage makes a Manager of a bubble that has a store. ended counts the ends of
// sessions that it runs.
func manage(t *testing.T, store scale.Store, idle time.Duration) (m *Manager, ended *atomic.Int32) {
	t.Helper()
	keys, err := seal.New("session", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	ended = new(atomic.Int32)
	return NewManager(Config{Store: store, Seal: keys, ReplicaID: "n", IdleTimeout: idle, OnRestoredEnd: func(*Session, error) { ended.Add(1) }}), ended
}

// opened opens a session and uses it.
func opened(t *testing.T, m *Manager) *Session {
	t.Helper()
	s, err := m.Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		t.Fatal(err)
	}
	s.Use()
	s.SetInitialized()
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	return s
}

// However long a session may be idle, the store has its state when it becomes due:
// else it would end before, and nobody would be told.
func TestStateOutlivesSession(t *testing.T) {
	for _, idle := range []time.Duration{time.Minute, 30 * time.Minute, 24 * time.Hour, 14 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			m, ended := manage(t, scale.NewLocal(), idle)
			defer m.Close(context.Background(), core.ErrSessionClosed)
			s := opened(t, m)
			m.evictCopy(s, core.ErrSessionIdle) // its replica is gone
			time.Sleep(m.dueAfter(idle) - time.Second)
			if ok, err := m.existsInStore(t.Context(), s.ID(), nil); !ok || err != nil {
				t.Errorf("Idle %v: before it is due: %v, %v", idle, ok, err)
			}
			time.Sleep(stateRetention - retentionRefresh)
			m.endDue(s.key.Partition)
			synctest.Wait()
			if ended.Load() != 1 {
				t.Errorf("Idle %v: it ended %d times", idle, ended.Load())
			}
		})
	}
}

// What a session was used for right before its replica stops lets it live as long as
// any other use.
func TestLastUseBeforeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		first, _ := manage(t, store, idle)
		second, ended := manage(t, store, idle)
		defer second.Close(context.Background(), core.ErrSessionClosed)
		first.StartReplication(nil)
		second.StartReplication(nil)
		s := opened(t, first)
		time.Sleep(idle*9/10 + time.Second) // not when it renews
		use := func(m *Manager) {
			s, err := m.Find(t.Context(), s.ID())
			if s == nil || err != nil {
				t.Fatalf("got %v, %v; %d ends", s, err, ended.Load())
			}
			s.Use()
			if err := s.Release(); err != nil {
				t.Error(err)
			}
		}
		use(first)
		first.Close(context.Background(), core.ErrSessionClosed)
		time.Sleep(idle - time.Second)
		use(second)
	})
}

// A session that is opened while others are renewed, and then never used, costs a
// minute, too; and however long it takes to open it, it is there.
func TestFreshWhileRenewing(t *testing.T) {
	for _, takes := range []time.Duration{15 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			m, ended := manage(t, scale.NewLocal(), idle)
			defer m.Close(context.Background(), core.ErrSessionClosed)
			m.StartReplication(nil)
			time.Sleep(idle / 4) // a round: from then on it ends what is due
			s, err := m.Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
			if err != nil {
				t.Fatal(err)
			}
			s.Use() // initialize
			time.Sleep(takes)
			if err := s.Release(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(unusedTTL - time.Second)
			if ok, err := m.existsInStore(t.Context(), s.ID(), s); !ok || err != nil {
				t.Errorf("after %v and a minute: %v, %v", takes, ok, err)
			}
			time.Sleep(idle/4 + unusedTTL)
			if ok, err := m.existsInStore(t.Context(), s.ID(), nil); ok || err != nil {
				t.Errorf("opened in %v and never used, it lives: %v, %v; %d ends", takes, ok, err, ended.Load())
			}
		})
	}
}

// A session that is used lives on at a replica that was suspended.
func TestRenewsAfterSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		suspended, _ := manage(t, store, idle)
		defer suspended.Close(context.Background(), core.ErrSessionClosed)
		other, ended := manage(t, store, idle)
		defer other.Close(context.Background(), core.ErrSessionClosed)
		other.StartReplication(nil) // which ends what is due
		s := opened(t, suspended)
		defer s.retain()()
		suspended.clock.ahead.Add(-(2 * idle).Microseconds()) // its steady clock has stood still for so long
		for begun := time.Now(); time.Since(begun) < 3*idle; time.Sleep(suspended.renewInterval()) {
			suspended.renew()
		}
		if ok, err := suspended.existsInStore(t.Context(), s.ID(), s); !ok || err != nil || ended.Load() != 0 {
			t.Errorf("%v, %v; %d ends", ok, err, ended.Load())
		}
	})
}

// apart is a Store of two machines, of which the one with a part is ahead of the other.
type apart struct {
	scale.Store
	part string
}

func (a *apart) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	found, err := a.Store.Get(ctx, looks...)
	return a.ahead(found), err
}

func (a *apart) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	written, err := a.Store.Put(ctx, writes...)
	return a.ahead(written), err
}

func (a *apart) ahead(entries []scale.Entry) []scale.Entry {
	for i, e := range entries {
		if e.Key.Partition == a.part && e.Due > 0 {
			entries[i].Due += scale.Rev(replica.ClockSkew.Microseconds())
		}
	}
	return entries
}

// However long a session may be idle, it is there for so long after each use, also if
// the clocks of the machines of an engine are apart.
func TestClocksApart(t *testing.T) {
	for _, idle := range []time.Duration{time.Minute, 30 * time.Minute, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store := &apart{Store: scale.NewLocal()}
			m, ended := manage(t, store, idle)
			defer m.Close(context.Background(), core.ErrSessionClosed)
			s := opened(t, m)
			for store.part = s.key.Partition; opened(t, m).key.Partition == s.key.Partition; {
			}
			if s, _ = m.load(t.Context(), s.ID(), s, anyOwner); s == nil {
				t.Fatal("it is not there")
			}
			for time.Sleep(idle / 4); !m.needsRenewal(s, time.Now()); time.Sleep(100 * time.Millisecond) {
				s.Use()
				if err := s.Release(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(idle - time.Second) // after the last use that nobody had to hear of
			m.endDue(s.key.Partition)
			synctest.Wait()
			if ended.Load() != 0 {
				t.Errorf("it may be idle for %v, and has ended before", idle)
			}
		})
	}
}

// partly is a Store of several machines, of which the one with a key does not answer.
type partly struct {
	scale.Store
	away   atomic.Pointer[scale.Key]
	renews atomic.Int64 // looks at others that put off their end
}

func (p *partly) Get(ctx context.Context, looks ...scale.GetOp) (found []scale.Entry, err error) {
	away := p.away.Load()
	for _, look := range looks {
		if away != nil && look.Key == *away {
			found, err = append(found, scale.Entry{Key: look.Key, Err: errDown}), errDown
			continue
		}
		if look.In > 0 {
			p.renews.Add(1)
		}
		one, _ := p.Store.Get(ctx, look)
		found = append(found, one...)
	}
	return found, err
}

// While a machine of the engine is away, sessions that others have are renewed as
// often as before, and not at every tick.
func TestRenewsWhileMachineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &partly{Store: scale.NewLocal()}
		m, _ := manage(t, store, idle)
		defer m.Close(context.Background(), core.ErrSessionClosed)
		m.StartReplication(nil)
		lost, other := opened(t, m), opened(t, m)
		defer lost.retain()()
		defer other.retain()()
		store.away.Store(&lost.key)
		time.Sleep(3 * idle)
		if n := store.renews.Load(); n < 4 || n > 8 {
			t.Errorf("it was renewed %d times, want once in three eighths of the idle time", n)
		}
		store.away.Store(nil)
	})
}

// overtaken is a Store of two machines, of which the second takes over from the first,
// and lacks what was written while it lagged.
type overtaken struct {
	scale.Store
	second     scale.Store
	lags, over atomic.Bool
}

func (o *overtaken) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if !o.over.Load() {
		if found, err := o.Store.Get(ctx, looks...); err != nil || o.lags.Load() {
			return found, err
		}
	}
	return o.second.Get(ctx, looks...)
}

func (o *overtaken) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if !o.over.Load() {
		if written, err := o.Store.Put(ctx, writes...); err != nil || o.lags.Load() {
			return written, err
		}
	}
	return o.second.Put(ctx, writes...)
}

func (o *overtaken) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	if o.over.Load() {
		return o.second.ClaimDue(ctx, part, index, owner, max, lease)
	}
	return nil, errors.New("too early")
}

// A session whose last change the engine has lost lives as long as it is used.
func TestUsedAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &overtaken{Store: scale.NewLocal(), second: scale.NewLocal()}
		m, ended := manage(t, store, idle)
		defer m.Close(context.Background(), core.ErrSessionClosed)
		m.StartReplication(nil)
		s := opened(t, m)
		use := func(change bool) {
			s, err := m.Find(t.Context(), s.ID())
			if s == nil || err != nil {
				t.Fatalf("got %v, %v; %d ends", s, err, ended.Load())
			}
			s.Use()
			if change {
				s.SetLogLevel(protocol.LevelError)
			}
			if err := s.Release(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		store.lags.Store(true)
		use(true)
		store.over.Store(true)
		for range 20 {
			time.Sleep(idle / 4)
			use(false)
		}
	})
}

// meanwhile is a Store that does something while it is asked, once.
type meanwhile struct {
	scale.Store
	do func()
}

func (m *meanwhile) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	found, err := m.Store.Get(ctx, looks...)
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return found, err
}

// Whoever asks for a session that lives gets it, also if its copy makes room for
// another one meanwhile.
func TestCopyLeavesMeanwhile(t *testing.T) {
	for _, ends := range []bool{false, true} {
		store := &meanwhile{Store: scale.NewLocal()}
		m, _ := manage(t, store, idle)
		defer m.Close(context.Background(), core.ErrSessionClosed)
		s := opened(t, m)
		store.do = func() { m.evictCopy(s, errEndedForRoom) }
		if ends {
			store.do = func() { _ = m.Stop(s, core.ErrSessionDeleted) }
		}
		found, err := m.Find(t.Context(), s.ID())
		if err != nil || (found == nil) != ends || found != nil && found.Ended() {
			t.Errorf("ends %v: it gets one: %v, %v", ends, found != nil, err)
		}
	}
}
