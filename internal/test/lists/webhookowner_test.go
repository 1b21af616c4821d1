package lists_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// A refresh brings the newest identity: match and rules have its claims from then on.
func TestWebhookIdentity(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
		s.MustAdd(mcp.EventType("comment.created", func(f *mcp.Frame, _ watchIn, c comment) (bool, error) {
			return strings.HasPrefix(c.Text, f.Identity().Scopes[0]), nil
		}))
		as := func(tenant string) pipe {
			return pipe{mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: "ann", Scopes: []string{tenant}}))}
		}
		subscribe(t, as("north"), subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "north-1")
		time.Sleep(time.Second)
		subscribe(t, as("south"), subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "north-2")
		emit(t, s, "a", "south-1")
		time.Sleep(time.Second)
		if got := r.texts(); got != "verification north-1 south-1" {
			t.Errorf("received %s", got)
		}
	})
}

// A subscription that is made while the last message of the one before waits for its
// endpoint is a new one.
func TestWebhookAgain(t *testing.T) {
	for _, name := range []string{"hidden", "removed"} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, opts *mcp.Options) {
				var hidden, away atomic.Bool
				r := newReceiver(t)
				r.answer = func(_ *delivery, w http.ResponseWriter) {
					if away.Load() {
						w.WriteHeader(503)
					}
				}
				s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
				kind := mcp.EventType("comment.created", func(*mcp.Frame, watchIn, comment) (bool, error) { return true, nil },
					mcp.VisibleTo(func(*mcp.Frame) bool { return !hidden.Load() }))
				s.MustAdd(kind)
				client := pipe{mcptest.New(t, s, ann)}
				subscribe(t, client, subscribeTo("a", hookURL, ""))
				away.Store(true)
				if name == "removed" {
					s.Remove(mcp.KindEvent, "comment.created")
				} else {
					hidden.Store(true)
					emit(t, s, "a", "unseen")
				}
				time.Sleep(5 * time.Second)
				hidden.Store(false)
				if name == "removed" {
					s.MustAdd(kind)
				}
				if again := subscribe(t, client, subscribeTo("a", hookURL, "")); again.DeliveryStatus != nil {
					t.Errorf("granted %+v", again)
				}
				away.Store(false)
				time.Sleep(10 * time.Minute)
				emit(t, s, "a", "seen")
				time.Sleep(time.Second)
				if got := r.texts(); got != "verification terminated terminated seen" {
					t.Errorf("received %s", got)
				}
			})
		})
	}
}

// replicas returns a function that adds a replica with a store.
func replicas(t *testing.T, r *receiver, limits mcp.Limits) func(scale.Store) (*mcp.Server, pipe) {
	return func(store scale.Store) (*mcp.Server, pipe) {
		s := ended(t, eventServer(hooked(&mcp.Options{Store: store, Logger: &quiet, Limits: limits, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}, r)))
		client := pipe{mcptest.New(t, s, ann)}
		client.Ask("events/list", "{}") // it serves
		return s, client
	}
}

// Drain and Shutdown give a subscription away whose request has ended after Drain.
func TestWebhookDrainBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		r.answer = func(d *delivery, _ http.ResponseWriter) {
			if d.Data.Text == "1" {
				time.Sleep(8 * time.Second)
			}
		}
		add, store := replicas(t, r, mcp.Limits{}), scale.NewLocal()
		one, c1 := add(store)
		two, _ := add(store)
		subscribe(t, c1, subscribeTo("a", hookURL, ""))
		emit(t, two, "a", "1")
		emit(t, two, "a", "2")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_ = one.Drain(ctx)
		cancel()
		if err := one.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if got := r.texts(); got != "verification 1 2" {
			t.Errorf("received %s", got)
		}
	})
}

// A server that shuts down begins no further request, however many wait for a turn.
func TestWebhookShutdownFull(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		r.answer = func(*delivery, http.ResponseWriter) { time.Sleep(9 * time.Second) }
		s := eventServer(hooked(opts, r))
		client := pipe{mcptest.New(t, s, ann)}
		for i := range 60 {
			subscribe(t, client, subscribeTo("a", fmt.Sprint(hookURL, "?", i), ""))
		}
		emit(t, s, "a", "1")
		synctest.Wait()
		before, began := len(r.all()), time.Now()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if n, took := len(r.all()), time.Since(began); n != before || took > 10*time.Second {
			t.Errorf("%d requests have begun, Shutdown took %v", n-before, took)
		}
	})
}

// The position of a subscriber is kept while a busy type passes by: a replica that takes
// it over misses nothing.
func TestWebhookPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		store := scale.NewLocal()
		cut, add := &cutStore{Store: store}, replicas(t, r, mcp.Limits{EventLog: 256 << 10})
		_, c1 := add(cut)
		two, _ := add(store)
		subscribe(t, c1, subscribeTo("a", hookURL, `,"ttlMs":36000000`))
		time.Sleep(2 * time.Minute)
		for i := range 400 {
			if err := two.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{"b", fmt.Sprint(i, strings.Repeat("x", 1000))}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		cut.cut.Store(true)
		time.Sleep(3 * time.Minute)
		emit(t, two, "a", "1")
		time.Sleep(time.Minute)
		if got := r.texts(); got != "verification 1" {
			t.Errorf("received %s", got)
		}
	})
}

// A server without subscriptions that has shut down works for none, also if an event type is
// added afterwards.
func TestWebhookAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		add, store := replicas(t, r, mcp.Limits{}), scale.NewLocal()
		one, c := add(store)
		subscribe(t, c, subscribeTo("a", hookURL, ""))
		late := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(&mcp.Options{Store: store, Logger: &quiet, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}, r))
		late.MustAdd(mcp.Tool("x", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
		mcptest.New(t, late).Call("x", nil)
		if err := late.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := one.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		late.MustAdd(mcp.EventType("comment.created", func(*mcp.Frame, watchIn, comment) (bool, error) { return true, nil }))
		emit(t, late, "a", "1")
		time.Sleep(5 * time.Minute)
		if got := r.texts(); got != "verification" {
			t.Errorf("received %s", got)
		}
	})
}

// A refresh elsewhere that the owner has not noticed yet keeps the event that waits: it is
// delivered, and not counted as dropped.
func TestWebhookRefreshedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		r.answer = func(d *delivery, w http.ResponseWriter) {
			if len(r.all()) == 2 {
				w.Header().Set("Retry-After", "290")
				w.WriteHeader(503)
			}
		}
		store := scale.NewLocal()
		deaf, add := &deafStore{Store: store}, replicas(t, r, mcp.Limits{})
		one := ended(t, eventServer(hooked(&mcp.Options{Store: deaf, Logger: &quiet, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}, r)))
		o := observe(one)
		subscribe(t, pipe{mcptest.New(t, one, ann)}, subscribeTo("a", hookURL, `,"ttlMs":300000`))
		_, c2 := add(store)
		time.Sleep(20 * time.Second)
		emit(t, one, "a", "1")
		time.Sleep(270 * time.Second)
		deaf.deaf.Store(true)
		subscribe(t, c2, subscribeTo("a", hookURL, `,"ttlMs":600000`))
		time.Sleep(time.Minute)
		if got := r.texts(); got != "verification 1 1" {
			t.Errorf("received %s", got)
		}
		o.has(t, "webhook.opened", "delivery.done")
	})
}

// deafStore is a store of which a replica gets no messages, and no renewals, at times.
type deafStore struct {
	scale.Store
	deaf atomic.Bool
}

func (s *deafStore) Watch(message func(string, scale.Message), missed func()) scale.Watcher {
	return s.Store.Watch(func(subject string, m scale.Message) {
		if !s.deaf.Load() {
			message(subject, m)
		}
	}, missed)
}

func (s *deafStore) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if s.deaf.Load() && len(ops) > 0 && ops[0].In > 0 {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, ops...)
}

// A subscription that was made after the store has lost its logs goes to a replica that has
// not noticed that yet: it has no gap, and no event from before.
func TestWebhookOfAnotherBirth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t)
		add, store := replicas(t, r, mcp.Limits{}), scale.NewLocal()
		one, c1 := add(store)
		subscribe(t, c1, subscribeTo("b", hookURL+"/other", ""))
		time.Sleep(11 * time.Second)
		if _, err := store.Put(t.Context(), scale.Write{Key: scale.Key{Partition: "events", Name: "birth"}, Prev: scale.Any}); err != nil {
			t.Fatal(err)
		}
		two, c2 := add(store)
		emit(t, two, "a", "before")
		time.Sleep(10 * time.Millisecond)
		subscribe(t, c2, subscribeTo("a", hookURL, ""))
		if err := two.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		emit(t, one, "a", "after")
		time.Sleep(time.Minute)
		var got []string
		for _, d := range r.all() {
			if d.Type != "verification" && d.path == "/hook" {
				got = append(got, d.Type+d.Data.Text)
			}
		}
		if strings.Join(got, " ") != "after" {
			t.Errorf("received %v", got)
		}
	})
}
