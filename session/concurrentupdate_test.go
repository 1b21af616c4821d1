package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/scale"
)

var ticketKey = core.NewKey[int]("ticket", true)

// add is what a counter does with its value.
func add(old any, _ bool) any {
	n, _ := old.(int)
	return n + 1
}

// Calls at all replicas that count at the same time each get a number of their
// own, and what they change besides is kept.
func TestChangeAtReplicas(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.store.beforePut = runtime.Gosched // others come between
		var mu sync.Mutex
		var numbers []int
		var all sync.WaitGroup
		for i := range f.all {
			for j := range 5 {
				all.Go(func() {
					for k := range 5 {
						f.use(t, i, id, func(s *Session) {
							n, err := s.Assigns().Change(ticketKey, add)
							if err != nil {
								t.Error(err)
								return
							}
							s.Assigns().Set(fmt.Sprintf("%d-%d-%d", i, j, k), n)
							mu.Lock()
							defer mu.Unlock()
							numbers = append(numbers, n.(int))
						})
					}
				})
			}
		}
		all.Wait()
		slices.Sort(numbers)
		for i, n := range numbers {
			if n != i+1 {
				t.Fatalf("the numbers are %v", numbers)
			}
		}
		for i := range f.all {
			f.use(t, i, id, func(s *Session) {
				if n, _ := s.Assigns().Get(ticketKey); n != 100 {
					t.Errorf("replica %d: the value is %v", i, n)
				}
				if saved, _ := s.Assigns().Save(); len(saved) != 101 {
					t.Errorf("replica %d: there are %d values, want 101", i, len(saved))
				}
			})
		}
	})
}

// A change costs one use of the store, and two if another replica came first.
func TestChangeUses(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.use(t, 1, id, func(*Session) {})
		count := func(serve func(s *Session)) (gets, puts int64) {
			gets, puts = f.store.gets.Load(), f.store.puts.Load()
			f.use(t, 0, id, serve)
			return f.store.gets.Load() - gets, f.store.puts.Load() - puts
		}
		if gets, puts := count(func(s *Session) { _, _ = s.Assigns().Change(ticketKey, add) }); gets != 1 || puts != 1 {
			t.Errorf("a change: %d looks, %d writes", gets, puts)
		}
		runs := 0
		gets, puts := count(func(s *Session) {
			f.use(t, 1, id, func(s *Session) { _, _ = s.Assigns().Change(ticketKey, add) })
			n, err := s.Assigns().Change(ticketKey, func(old any, ok bool) any { runs++; return add(old, ok) })
			if n != 3 || err != nil {
				t.Errorf("%v, %v", n, err)
			}
		})
		if gets != 2 || puts != 3 || runs != 2 { // with those of the other replica
			t.Errorf("a change after another: %d looks, %d writes, %d runs", gets, puts, runs)
		}
		if gets, puts := count(func(s *Session) {
			_, _ = s.Assigns().Change(ticketKey, func(old any, _ bool) any { return old })
			_, _ = s.Assigns().Change("plain", add)
			_, _ = s.Assigns().Change(core.NewKey[int]("not stored", false), add)
		}); gets != 1 || puts != 1 { // that of the plain name, at the end
			t.Errorf("changes of nothing: %d looks, %d writes", gets, puts)
		}
	})
}

// What is not kept is not there afterwards, unless the store has it after all.
func TestChangeFails(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		change := func(i int, wantErr string, fn func(old any, ok bool) any) (value any) {
			t.Helper()
			f.use(t, i, id, func(s *Session) {
				var err error
				if value, err = s.Assigns().Change(ticketKey, fn); (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
					t.Errorf("error %v, want %q", err, wantErr)
				}
				f.store.down.Store(false)
			})
			return value
		}
		change(0, "", add)
		if n := change(0, "connection refused", func(old any, ok bool) any { f.store.down.Store(true); return add(old, ok) }); n != 2 {
			t.Errorf("while the store is away: %v", n)
		}
		if n := change(1, "", add); n != 2 {
			t.Errorf("afterwards: %v", n)
		}
		change(0, "cannot be shared", func(any, bool) any { return make(chan int) })
		change(0, "at most 524288", func(any, bool) any { return strings.Repeat("x", maxState) })
		// The reply is lost: the value is there.
		f.use(t, 0, id, func(s *Session) {
			f.store.loseReply.Store(true)
			if _, err := s.Assigns().Change(ticketKey, add); !errors.Is(err, scale.ErrUnavailable) {
				t.Errorf("error %v", err)
			}
			f.store.loseReply.Store(false)
		})
		for i := range f.all {
			if n := change(i, "", add); n != 4+i {
				t.Errorf("after a lost reply: %v at %d", n, i)
			}
		}
	})
}

// A handler that sets the value while another one changes it comes later.
func TestChangeAndSet(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.use(t, 0, id, func(s *Session) {
			f.store.beforePut = func() { f.store.beforePut = nil; s.Assigns().Set(ticketKey, 100) }
			if n, err := s.Assigns().Change(ticketKey, add); n != 1 || err != nil {
				t.Errorf("%v, %v", n, err)
			}
			if n, _ := s.Assigns().Get(ticketKey); n != 100 {
				t.Errorf("here it is %v", n)
			}
		})
		f.use(t, 1, id, func(s *Session) {
			if n, _ := s.Assigns().Get(ticketKey); n != 100 {
				t.Errorf("there it is %v", n)
			}
		})
	})
}

// A session that has ended elsewhere, or that ends, keeps nothing for others.
func TestChangeAtTheEnd(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		s := f.at(t, 1, id)
		s.Use()
		e, err := f.store.Store.Get(t.Context(), scale.GetOp{Key: sessionKey(id)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Store.Put(context.Background(), scale.Write{Key: sessionKey(id), Prev: e[0].Rev}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Assigns().Change(ticketKey, add); !errors.Is(err, core.ErrSessionDeleted) {
			t.Errorf("of a session that is gone: %v", err)
		}
		if n, err := s.Assigns().Change(ticketKey, add); n != 1 || err != nil {
			t.Errorf("of a session that has ended: %v, %v", n, err)
		}
		_ = s.Release()
	})
}

// A func that panics leaves nothing locked.
func TestChangePanics(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.use(t, 0, id, func(s *Session) {
			func() {
				defer func() { _ = recover() }()
				_, _ = s.Assigns().Change(ticketKey, func(any, bool) any { panic("no") })
			}()
			if n, err := s.Assigns().Change(ticketKey, add); n != 1 || err != nil {
				t.Errorf("%v, %v", n, err)
			}
		})
	})
}
