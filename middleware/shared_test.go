package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/scale"
)

var rateSecret = []byte("a secret of 16 bytes or more")

// rateStore is a scale.Store that counts what is put and keeps the newest of it,
// and whose Put does what broken says, if that is not nil.
type rateStore struct {
	scale.Store
	broken func(ctx context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error)

	mu   sync.Mutex
	puts int
	last scale.Write
}

func (s *rateStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	s.mu.Lock()
	s.puts += len(writes)
	s.last = writes[0]
	broken := s.broken
	s.mu.Unlock()
	put := func() ([]scale.Entry, error) { return s.Store.Put(ctx, writes...) }
	if broken != nil {
		return broken(ctx, put)
	}
	return put()
}

// take returns how many Puts there were since it was called last, and breaks the
// store from now on.
func (s *rateStore) take(broken func(ctx context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error)) (puts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	puts, s.puts, s.broken = s.puts, 0, broken
	return puts
}

var errAway = fmt.Errorf("%w: connection refused", scale.ErrUnavailable)

func away(context.Context, func() ([]scale.Entry, error)) ([]scale.Entry, error) { return nil, errAway }

// rateReplicas returns n replicas that share limits.
func rateReplicas(t *testing.T, n int, limits middleware.RateLimitOptions) (list []*limiter) {
	limits.Secret = rateSecret
	for range n {
		list = append(list, newLimiter(t, limits))
	}
	return list
}

// However the calls are spread over replicas, there are as many as one process
// would let pass.
func TestSharedRate(t *testing.T) {
	tests := []struct {
		rate       rate.Limit
		burst      int
		callers    int           // of each replica
		every      time.Duration // one of them calls
		latency    time.Duration // of the store
		least, max int           // in a minute
	}{
		{10, 20, 1, 20 * time.Millisecond, 0, 558, 620},
		{10, 20, 5, 70 * time.Millisecond, time.Millisecond, 558, 620},
		{10, 20, 1, 390 * time.Millisecond, time.Millisecond, 558, 620}, // hardly more than the limit
		{200, 400, 10, 20 * time.Millisecond, time.Millisecond, 11_160, 12_400},
		{0.5, 1, 2, 100 * time.Millisecond, 5 * time.Millisecond, 30, 31},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.rate, tt.callers, tt.every), func(t *testing.T) {
			if tt.rate > 100 {
				testdep.NoRace(t, "it is the same as with a lower rate")
			}
			synctest.Test(t, func(t *testing.T) {
				store := &rateStore{Store: scale.NewLocal()}
				store.take(func(_ context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error) {
					time.Sleep(tt.latency)
					return put()
				})
				var passed, calls atomic.Int64
				var all sync.WaitGroup
				end := time.Now().Add(time.Minute)
				for i, replica := range rateReplicas(t, 4, middleware.RateLimitOptions{Rate: tt.rate, Burst: tt.burst, Store: store}) {
					for j := range tt.callers {
						all.Go(func() {
							time.Sleep(time.Duration(i*7+j*3) * time.Millisecond)
							for time.Now().Before(end) {
								calls.Add(1)
								if replica.call("ada", "one") == 0 {
									passed.Add(1)
								}
								time.Sleep(tt.every)
							}
						})
					}
				}
				all.Wait()
				puts := store.take(nil)
				if n := passed.Load(); n < int64(tt.least) || n > int64(tt.max) {
					t.Errorf("%d of %d calls passed, want %d to %d", n, calls.Load(), tt.least, tt.max)
				}
				t.Logf("%d of %d calls passed, %d writes", passed.Load(), calls.Load(), puts)
				if int64(puts) > 4*passed.Load() {
					t.Errorf("%d writes for %d calls that passed", puts, passed.Load())
				}
			})
		})
	}
}

// A caller who calls much takes ahead, one who calls seldom does not; what was
// taken and not used in time is lost.
func TestSharedRateAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rateStore{Store: scale.NewLocal()}
		l := rateReplicas(t, 1, middleware.RateLimitOptions{Rate: 1000, Burst: 2000, Store: store})[0]
		for range 1000 {
			if wait := l.call("ada", "one"); wait != 0 {
				t.Fatalf("it has to wait %v", wait)
			}
		}
		// 1, 2, 4 … 64, then 100 at a time.
		if puts := store.take(nil); puts < 12 || puts > 20 {
			t.Errorf("1,000 calls in a row took %d writes", puts)
		}
		for range 10 {
			time.Sleep(2 * time.Second)
			l.call("ada", "one")
		}
		if puts := store.take(nil); puts != 10 {
			t.Errorf("10 calls now and then took %d writes", puts)
		}
		time.Sleep(time.Minute)
		passed := 0
		for l.call("ada", "one") == 0 {
			passed++
		}
		if passed != 2000 {
			t.Errorf("a burst of %d, want 2000", passed)
		}
		store.take(nil)
		for range 100 {
			if l.call("ada", "one") == 0 {
				t.Error("a call passed")
			}
		}
		if puts := store.take(nil); puts != 0 {
			t.Errorf("refusals took %d writes", puts)
		}
	})
}

// Many who call at once ask the store once, and not one after the other.
func TestSharedRateAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rateStore{Store: scale.NewLocal()}
		store.take(func(_ context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			time.Sleep(200 * time.Millisecond)
			return put()
		})
		l := rateReplicas(t, 1, middleware.RateLimitOptions{Rate: 10, Burst: 50, Store: store})[0]
		var passed atomic.Int64
		var all sync.WaitGroup
		begin := time.Now()
		for range 100 {
			all.Go(func() {
				if l.call("ada", "one") == 0 {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		if n := passed.Load(); n < 50 || n > 54 {
			t.Errorf("%d passed", n)
		}
		if took, puts := time.Since(begin), store.take(nil); took > time.Second || puts > 4 {
			t.Errorf("it took %v and %d writes", took, puts)
		}
	})
}

// While the store is away each replica has the limits for itself, and no call
// waits for it but one a second.
func TestSharedRateWithoutItsStore(t *testing.T) {
	breaks := map[string]func(ctx context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error){
		"away": away,
		"entry": func(context.Context, func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			return []scale.Entry{{Err: errAway}}, nil
		},
		"silent": func(ctx context.Context, _ func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			<-ctx.Done()
			return nil, errAway
		},
		"lost replies": func(_ context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			_, _ = put()
			return nil, errAway
		},
		"panics": func(context.Context, func() ([]scale.Entry, error)) ([]scale.Entry, error) { panic("secret") },
		"exits": func(context.Context, func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			runtime.Goexit()
			return nil, nil
		},
	}
	for name, broken := range breaks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &rateStore{Store: scale.NewLocal()}
				replicas := rateReplicas(t, 2, middleware.RateLimitOptions{Rate: 10, Burst: 20, Store: store})
				for range 20 {
					for _, l := range replicas {
						l.call("ada", "one")
					}
				}
				time.Sleep(time.Minute)
				store.take(broken)
				for i, l := range replicas {
					begin, passed := time.Now(), 0
					for range 100 {
						if l.call("ada", "one") == 0 {
							passed++
						}
					}
					if passed < 20 || passed > 23 {
						t.Errorf("replica %d: %d passed", i, passed)
					}
					if took := time.Since(begin); took > 300*time.Millisecond {
						t.Errorf("replica %d: it took %v", i, took)
					}
				}
				if puts := store.take(nil); puts != 2 {
					t.Errorf("it was asked %d times", puts)
				}
				time.Sleep(10 * time.Second)
				passed := 0
				for range 100 {
					for _, l := range replicas {
						if l.call("ada", "one") == 0 {
							passed++
						}
					}
				}
				if passed != 20 {
					t.Errorf("afterwards %d passed, want 20", passed)
				}
			})
		})
	}
}

// A store that ignores its time costs those who wait for it half a second.
func TestSharedRateHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rateStore{Store: scale.NewLocal()}
		store.take(func(_ context.Context, put func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			time.Sleep(time.Hour)
			return put()
		})
		l := rateReplicas(t, 1, middleware.RateLimitOptions{Rate: 10, Burst: 20, Store: store})[0]
		var all sync.WaitGroup
		all.Go(func() { l.call("ada", "one") })
		synctest.Wait()
		begin := time.Now()
		for range 3 {
			if wait := l.call("ada", "one"); wait != 0 {
				t.Errorf("it has to wait %v", wait)
			}
		}
		if took := time.Since(begin); took != 500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		all.Wait()
	})
}

// Nothing in the store tells who calls what; limits that differ have entries of
// their own, and entries go.
func TestSharedRateEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rateStore{Store: scale.NewLocal()}
		keys := map[scale.Key]bool{}
		call := func(limits middleware.RateLimitOptions, user, tool string) {
			limits.Store = store
			newLimiter(t, limits).call(user, tool)
			keys[store.last.Key] = true
			for _, text := range []string{store.last.Key.Name, string(store.last.Value), store.last.Key.Partition} {
				if strings.Contains(text, "ada@example.com") || strings.Contains(text, "export") || bytes.Contains([]byte(text), rateSecret) {
					t.Errorf("%q tells too much", text)
				}
			}
		}
		limits := middleware.RateLimitOptions{Rate: 10, Burst: 20, Secret: rateSecret}
		call(limits, "ada@example.com", "export")
		call(limits, "ada@example.com", "export")
		if len(keys) != 1 {
			t.Errorf("one bucket has %d entries", len(keys))
		}
		call(limits, "export", "ada@example.com")
		call(limits, "ada@example.com", strings.Repeat("export", 100)) // beyond the names that are told apart
		call(limits, "", "")
		limits.Burst = 21
		call(limits, "ada@example.com", "export")
		limits.Secret = []byte("another secret of 16 bytes or more")
		call(limits, "ada@example.com", "export")
		if len(keys) != 6 {
			t.Errorf("6 buckets have %d entries", len(keys))
		}
		time.Sleep(4 * time.Second)
		for key := range keys {
			if es, err := store.Get(t.Context(), scale.GetOp{Key: key}); err != nil || es[0].Rev != 0 {
				t.Errorf("an entry is left: %v, %v", es, err)
			}
		}
	})
}

// An entry that somebody else has made is no limit.
func TestSharedRateForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rateStore{Store: scale.NewLocal()}
		replicas := rateReplicas(t, 2, middleware.RateLimitOptions{Rate: 10, Burst: 20, Store: store})
		replicas[0].call("ada", "one")
		w := store.last
		w.Prev, w.Value, w.TTL = scale.Any, []byte("12345678"), time.Hour
		if _, err := store.Store.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		for i, l := range replicas {
			passed := 0
			for range 100 {
				if l.call("ada", "one") == 0 {
					passed++
				}
			}
			if passed < 19 || passed > 20 {
				t.Errorf("replica %d: %d passed", i, passed)
			}
		}
	})
}

func TestSharedRateNeedsASecret(t *testing.T) {
	for _, secret := range [][]byte{nil, []byte("short")} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "RateLimitOptions.Secret") || !strings.Contains(said, "at least 16") {
					t.Errorf("a secret of %d bytes: %s", len(secret), said)
				}
			}()
			middleware.RateLimit(&middleware.RateLimitOptions{Store: scale.NewLocal(), Secret: secret})
		}()
	}
}
