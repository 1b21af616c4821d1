package session

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/protocol"
)

// moving is a session that two processes serve. Each end is told with the name
// of its process.
type moving struct {
	store         unreliable
	first, second *Manager
	id            string
	ends          chan string
}

// unreliable is a Store whose Load can fail.
type unreliable struct {
	Memory
	fail atomic.Bool
}

func (u *unreliable) Load(ctx context.Context, id string) (*Snapshot, error) {
	if u.fail.Load() {
		return nil, errors.New("the store is away")
	}
	return u.Memory.Load(ctx, id)
}

const idle = time.Hour

func newMoving(t *testing.T) *moving {
	m := &moving{ends: make(chan string, 10)}
	m.first = NewManager(Config{Store: &m.store, Idle: idle})
	m.second = NewManager(Config{Store: &m.store, Idle: idle})
	for name, of := range map[string]*Manager{"first": m.first, "second": m.second} {
		t.Cleanup(func() { of.Close(ErrClosed) })
		of.OnRestore(func(*Session, error) { m.ends <- name })
	}
	s := mustOpen(t, m.first)
	s.OnEnd(func(error) { m.ends <- "first" })
	m.id = s.ID()
	m.use(t, m.first, 0)
	return m
}

// use has a process serve a request that takes so long.
func (m *moving) use(t *testing.T, by *Manager, takes time.Duration) {
	t.Helper()
	s, err := by.Get(m.id)
	if s == nil || err != nil {
		t.Fatal("the session is not found")
	}
	s.Use()
	time.Sleep(takes)
	s.Release()
}

// want waits until the session must be over everywhere, and wants it to have
// been ended by one process.
func (m *moving) want(t *testing.T, by string) {
	t.Helper()
	time.Sleep(4 * idle)
	synctest.Wait()
	if len(m.ends) != 1 {
		t.Fatalf("it has ended %d times", len(m.ends))
	}
	if got := <-m.ends; got != by {
		t.Errorf("the %s process has ended it, want the %s", got, by)
	}
	if snapshot, err := m.store.Load(t.Context(), m.id); snapshot != nil || err != nil {
		t.Errorf("the store has %v, %v", snapshot, err)
	}
}

// A session that moves while its old process lives ends once, where it was used
// last.
func TestMoveWhileAlive(t *testing.T) {
	for _, tt := range []struct {
		what string
		do   func(t *testing.T, m *moving)
		want string
	}{
		{"never moved", func(*testing.T, *moving) {}, "first"},
		{"many requests", func(t *testing.T, m *moving) {
			for range 8 {
				m.use(t, m.second, 0)
				time.Sleep(idle / 2)
			}
		}, "second"},
		{"one long request", func(t *testing.T, m *moving) {
			time.Sleep(50 * time.Minute)
			m.use(t, m.second, 3*idle)
		}, "second"},
		{"a stream alone", func(t *testing.T, m *moving) {
			s, err := m.second.Get(m.id)
			if s == nil || err != nil {
				t.Fatal("the session is not found")
			}
			release := s.hold()
			time.Sleep(3 * idle)
			release()
		}, "second"},
		{"only looked for", func(t *testing.T, m *moving) { m.second.Get(m.id) }, "first"},
		{"back and forth", func(t *testing.T, m *moving) {
			time.Sleep(time.Minute)
			m.use(t, m.second, 0)
			time.Sleep(20 * time.Minute)
			m.use(t, m.first, 0)
		}, "first"},
		{"back soon", func(t *testing.T, m *moving) {
			time.Sleep(time.Minute)
			m.use(t, m.second, 0)
			time.Sleep(10 * time.Minute)
			m.use(t, m.first, 0) // which does not save it
		}, "second"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMoving(t)
				tt.do(t, m)
				m.want(t, tt.want)
			})
		})
	}
}

// A process that cannot tell whose a session is ends none, also when it closes.
func TestStoreAwayAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(t)
		m.use(t, m.second, 0)
		m.store.fail.Store(true)
		time.Sleep(3 * idle)
		synctest.Wait()
		m.first.Close(ErrClosed)
		m.store.fail.Store(false)
		if snapshot, err := m.store.Load(t.Context(), m.id); snapshot == nil || err != nil || len(m.ends) != 0 {
			t.Errorf("the store has %v, %v; ended %d times", snapshot, err, len(m.ends))
		}
	})
}

// No two processes give events the same id, and none takes the id of another
// for its own.
func TestEventIDsAfterMove(t *testing.T) {
	first := kept(t, protocol.V20251125, 0)
	var to sink
	stream := first.OpenStream(&to)
	sendAll(t, stream, "a")
	to.want(t, "1-1= 1-2=a")

	m := NewManager(Config{})
	defer m.Close(ErrClosed)
	restored, err := restore(t.Context(), first.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.add(restored)
	if err != nil {
		t.Fatal(err)
	}
	stream = second.OpenStream(&to)
	stream.End([]byte("b"))
	life := second.history.idOf(ownStream, 0)[len("0-0"):]
	if len(life) < 2 {
		t.Fatalf("ids of the second process end with %q", life)
	}
	to.want(t, "1-1"+life+"= 1-2"+life+"=b")
	for id, want := range map[string]bool{"1-1": false, "1-1" + life: true, "1-1.1": false, "1-1" + life + ".1": false} {
		if _, _, err := second.history.resume(id, &to, nil); (err == nil) != want {
			t.Errorf("Resume(%q) = %v, want %v", id, err, want)
		}
	}
	to.want(t, "1-2"+life+"=b")
	if _, _, err := first.history.resume("1-1"+life, &to, nil); err == nil {
		t.Error("the first process takes an id of the second for its own")
	}

	out, leave := listen(second, "")
	defer leave()
	second.Send([]byte("c"))
	id, message, _ := second.Next(out)
	if string(message) != "c" || id != "0-1"+life || !unasked(id) || !unasked("0-1") {
		t.Errorf("own stream: id %q, %q", id, message)
	}
	if err := second.history.sendMissed("0-0", &to); err != nil {
		t.Error(err)
	}
	to.want(t, "")
	if err := second.history.sendMissed("0-0"+life, &to); err != nil {
		t.Error(err)
	}
	to.want(t, "0-1"+life+"=c")
}

// A Store is asked for what can be an id alone.
func TestStoreIsAskedForIDsAlone(t *testing.T) {
	store := &unreliable{}
	store.fail.Store(true)
	m := NewManager(Config{Store: store})
	defer m.Close(ErrClosed)
	for _, id := range []string{"", "x", strings.Repeat("A", 1<<20), "../../etc/passwd", "AAAAAAAAAAAAAAAAAAAAA\x00", "AAAAAAAAAAAAAAAAAAAA' --"} {
		if s, err := m.Get(id); s != nil || err != nil {
			t.Errorf("%.30q: %v, %v; want no session, without a word of the Store", id, s, err)
		}
	}
	if _, err := m.Get(opaque.NewID()); err == nil {
		t.Error("the Store is not asked for what can be one")
	}
}
