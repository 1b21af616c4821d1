//go:build unix

package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/scale"
)

// ear notes what a Watcher hears.
type ear struct {
	scale.Watcher
	mu    sync.Mutex
	heard []string
	gaps  int
}

func listen(t testing.TB, s scale.Store, subjects ...string) *ear {
	t.Helper()
	e := &ear{}
	e.Watcher = s.Watch(func(_ string, m scale.Message) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, string(m.Data))
	}, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.gaps++
	})
	t.Cleanup(e.Close)
	if err := e.Add(t.Context(), subjects...); err != nil {
		t.Fatal(err)
	}
	return e
}

// has reports whether something was heard, and how many gaps there were.
func (e *ear) has(text string) (bool, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.heard {
		if h == text {
			return true, e.gaps
		}
	}
	return false, e.gaps
}

// hears checks that what is appended is heard again.
func (e *ear) hears(t testing.TB, s scale.Store, box string) {
	t.Helper()
	text := fmt.Sprint("text ", prefixCount.Add(1))
	if _, _, err := s.Append(t.Context(), scale.AppendOp{Box: box, Data: []byte(text), Keep: 10_000, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "hearing "+text, func() bool { heard, _ := e.has(text); return heard })
}

var theKey = scale.Key{Partition: "part", Name: "name"}

// put puts a value, whatever is there.
func put(ctx context.Context, s scale.Store, value string) error {
	_, err := s.Put(ctx, scale.Write{Key: theKey, Prev: scale.Any, Value: []byte(value), TTL: time.Hour})
	return err
}

// unavailable checks that all calls say so in time, and at once after three.
func unavailable(t *testing.T, s scale.Store) {
	t.Helper()
	calls := map[string]func() error{
		"Get":    func() error { _, err := s.Get(t.Context(), scale.GetOp{Key: theKey}); return err },
		"Put":    func() error { return put(t.Context(), s, "x") },
		"Due":    func() error { _, err := s.ClaimDue(t.Context(), "part", "index", "me", 1, time.Second); return err },
		"Append": func() error { _, _, err := s.Append(t.Context(), scale.AppendOp{Box: "box"}); return err },
		"Take": func() error {
			_, err := s.Take(t.Context(), scale.Take{Box: "box", Reader: "me", TTL: time.Hour})
			return err
		},
		"Read": func() error { _, _, err := s.Read(t.Context(), "box", 0, ""); return err },
	}
	n := 0
	for range 3 {
		for what, call := range calls {
			begun := time.Now()
			err := call()
			took := time.Since(begun)
			if !errors.Is(err, scale.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) && t.Context().Err() != nil {
				t.Errorf("%s says %v, want ErrUnavailable", what, err)
			}
			if n++; took > 1300*time.Millisecond || n > maxFailures && took > 50*time.Millisecond {
				t.Errorf("call %d, %s, took %v to fail", n, what, took)
			}
		}
	}
	w := s.Watch(func(string, scale.Message) {}, func() {})
	defer w.Close()
	if err := w.Add(t.Context(), "box"); !errors.Is(err, scale.ErrUnavailable) {
		t.Errorf("Add says %v, want ErrUnavailable", err)
	}
}

// back checks that the engine is used again, soon.
func back(t *testing.T, s scale.Store) {
	t.Helper()
	begun := time.Now()
	eventually(t, "a call that succeeds", func() bool { return put(t.Context(), s, "back") == nil })
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("the engine was used again after %v", took)
	}
}

// An engine that dies makes calls fail at once, and when it is back with what it
// had, everything goes on.
func TestKill(t *testing.T) {
	engine := start(t, "--appendonly", "yes", "--appendfsync", "always")
	o := user(t, engine)
	var log lines
	logger := zerolog.New(&log)
	o.Logger = &logger
	s := open(t, o)
	if err := put(t.Context(), s, "kept"); err != nil {
		t.Fatal(err)
	}
	before, err := s.Get(t.Context(), scale.GetOp{Key: theKey})
	if err != nil {
		t.Fatal(err)
	}
	e := listen(t, s, "box", "other")
	e.hears(t, s, "box")
	engine.kill()
	unavailable(t, s)
	engine.run()
	engine.say(append([]string{"ACL", "SETUSER", o.Prefix, "reset", "on", ">secret-" + o.Prefix}, strings.Fields(ACL(o.Prefix))...)...)
	eventually(t, "the entry is there", func() bool {
		es, err := s.Get(t.Context(), scale.GetOp{Key: theKey})
		return err == nil && es[0].Rev == before[0].Rev && string(es[0].Value) == "kept"
	})
	back(t, s)
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	e.hears(t, s, "box")
	if ms, _, err := s.Read(t.Context(), "box", 0, ""); err != nil || len(ms) != 2 || ms[1].Prev != ms[0].Rev {
		t.Errorf("the box has %v, %v", ms, err)
	}
	for text, want := range map[string]bool{"does not answer": true, "answers again": true, "appendonly": false, "secret": false} {
		if strings.Contains(log.String(), text) != want {
			t.Errorf("the log has %q: %v, want %v", text, !want, want)
		}
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An engine that keeps nothing over a restart is told of, and one that comes back
// empty serves: who knew an entry hears that it is gone.
func TestEmptyAgain(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	var log lines
	logger := zerolog.New(&log)
	o.Logger = &logger
	s := open(t, o)
	if !strings.Contains(log.String(), "appendonly no") {
		t.Errorf("the log has %q", log.String())
	}
	es, err := s.Put(t.Context(), scale.Write{Key: theKey, Value: []byte("x"), TTL: time.Hour, DueIn: time.Hour, Index: "index", Limit: "limit", Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := listen(t, s, "box")
	if _, err := s.Take(t.Context(), scale.Take{Box: "box", Reader: "me", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	engine.kill()
	engine.run()
	engine.say(append([]string{"ACL", "SETUSER", o.Prefix, "reset", "on", ">secret-" + o.Prefix}, strings.Fields(ACL(o.Prefix))...)...)
	eventually(t, "the entry is gone", func() bool {
		found, err := s.Get(t.Context(), scale.GetOp{Key: theKey, Known: es[0].Rev, TTL: time.Hour})
		return err == nil && found[0].Rev == 0 && found[0].Value == nil
	})
	again, err := s.Put(t.Context(), scale.Write{Key: theKey, Value: []byte("y"), TTL: time.Hour, DueIn: time.Hour, Index: "index", Limit: "limit", Max: 1})
	if err != nil || again[0].Err != nil || again[0].Rev <= es[0].Rev {
		t.Errorf("%v, %v, want a Rev after %d", again, err, es[0].Rev)
	}
	if found, err := s.Take(t.Context(), scale.Take{Box: "box", Reader: "me", TTL: time.Hour}); err != nil || found.Reader != "" {
		t.Errorf("the box had %q, %v", found.Reader, err)
	}
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	e.hears(t, s, "box")
}

// An engine that stops costs each call a second at most, and all together three:
// then calls fail at once. What was sent meanwhile may happen when it goes on,
// and who sends it again finds out.
func TestStop(t *testing.T) {
	engine := start(t)
	s := open(t, user(t, engine))
	e := listen(t, s, "box")
	es, err := s.Put(t.Context(), scale.Write{Key: theKey, Value: []byte("1"), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	goOn := engine.stop()
	w := scale.Write{Key: theKey, Prev: es[0].Rev, Value: []byte("2")}
	if _, err := s.Put(t.Context(), w); !errors.Is(err, scale.ErrUnavailable) {
		t.Errorf("err = %v", err)
	}
	unavailable(t, s)
	goOn()
	eventually(t, "the write can be judged", func() bool {
		es, err = s.Put(t.Context(), w)
		return err == nil
	})
	if es[0].Err != nil && (es[0].Err != scale.ErrChanged || string(es[0].Value) != "2" && string(es[0].Value) != "x") {
		t.Errorf("the write that was sent again returned %+v", es[0])
	}
	back(t, s)
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	e.hears(t, s, "box")
}

// A connection that leads nowhere, which nobody closes, is noticed in time.
func TestHalfOpen(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	l := newLink(t, engine.address())
	s, other := open(t, through(o, engine, l)), open(t, o)
	e := listen(t, s, "box")
	e.hears(t, other, "box")
	l.freeze()
	begun := time.Now()
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the gap was noticed after %v", took)
	}
	e.hears(t, other, "box")
	eventually(t, "a call succeeds", func() bool { return put(t.Context(), s, "x") == nil })
}

// Who is gone does not wait for the engine, and does not count against it.
func TestCallerLeaves(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	l := newLink(t, engine.address())
	s := open(t, through(o, engine, l))
	if err := put(t.Context(), s, "x"); err != nil {
		t.Fatal(err)
	}
	goOn := engine.stop()
	for range 2 * maxFailures {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		begun := time.Now()
		err := put(ctx, s, "y")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, scale.ErrUnavailable) || time.Since(begun) > 500*time.Millisecond {
			t.Errorf("err = %v after %v", err, time.Since(begun))
		}
	}
	goOn()
	if err := put(t.Context(), s, "z"); err != nil {
		t.Errorf("err = %v: the callers that left count", err)
	}
}

// More calls than Options.MaxCalls wait for those that are at the engine.
func TestMaxCalls(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	o.MaxCalls, o.Timeout = 2, 10*time.Second
	s := open(t, o)
	goOn := engine.stop()
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if err := put(t.Context(), s, "x"); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "two calls", func() bool { return len(s.engine.calls) == 2 })
	goOn()
	calls.Wait()
}

// Calls whose callers have left while the engine is silent make no other call wait for
// longer than it would, and once the engine answers there is room again.
func TestCallsGivenUp(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	o.MaxCalls = 2
	s := open(t, o)
	goOn := engine.stop()
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		begun := time.Now()
		err := put(ctx, s, "x")
		cancel()
		if took := time.Since(begun); err == nil || took > o.Timeout+time.Second {
			t.Fatalf("call %d took %v: %v", i, took, err)
		}
	}
	goOn()
	eventually(t, "a call that is answered", func() bool { return put(t.Context(), s, "y") == nil })
	if n := s.engine.givenUp.Load(); n != 0 {
		t.Errorf("%d calls are still given up", n)
	}
}

// A call waits no longer than Options.Timeout for its turn, and than its context lasts.
func TestMaxCallsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := newEngine(Options{Prefix: "test", MaxCalls: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		e.calls <- struct{}{}
		c := &command{keys: []string{e.entry(theKey)}}
		short, cancel := context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		for _, tt := range []struct {
			ctx    context.Context
			want   error
			within time.Duration
		}{{short, context.DeadlineExceeded, time.Second / 4}, {t.Context(), scale.ErrUnavailable, time.Second}, {context.Background(), scale.ErrUnavailable, time.Second}} {
			begun := time.Now()
			r := e.one(tt.ctx, c)
			all := e.ask(tt.ctx, []command{*c, *c})
			if took := time.Since(begun); !errors.Is(r.err, tt.want) || !errors.Is(all[1].err, tt.want) || took > 2*tt.within {
				t.Errorf("%v and %v after %v, want %v", r.err, all[1].err, took, tt.want)
			}
		}
	})
}

// An engine that has forgotten the scripts gets them again.
func TestScriptsForgotten(t *testing.T) {
	engine := start(t)
	s := open(t, user(t, engine))
	for range 3 {
		engine.say("SCRIPT", "FLUSH")
		es, err := s.Put(t.Context(), scale.Write{Key: theKey, Prev: scale.Any, Value: []byte("x"), TTL: time.Hour},
			scale.Write{Key: scale.Key{Partition: "other", Name: "e"}, Prev: scale.Any, Value: []byte("x"), TTL: time.Hour})
		if err != nil || es[0].Err != nil || es[1].Err != nil {
			t.Errorf("%v, %v", es, err)
		}
		if _, err := s.Get(t.Context(), scale.GetOp{Key: theKey, Known: es[0].Rev, TTL: time.Hour}); err != nil {
			t.Error(err)
		}
	}
}

// A machine that has been made a replica is left for the one that is found now
// at its address.
func TestReadOnly(t *testing.T) {
	old, promoted := start(t), start(t)
	o := user(t, old, promoted)
	o.URL, _, _ = strings.Cut(o.URL, "?")
	l := newLink(t, old.address())
	s := open(t, through(o, old, l))
	e := listen(t, s, "box")
	old.say("REPLICAOF", "127.0.0.1", strconv.Itoa(promoted.port))
	to := promoted.address()
	l.to.Store(&to)
	if err := put(t.Context(), s, "x"); !errors.Is(err, scale.ErrUnavailable) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("err = %v", err)
	}
	back(t, s)
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	e.hears(t, s, "box")
}

// An engine without memory refuses what is new, goes on with the rest, and does
// not count as gone.
func TestMemoryFull(t *testing.T) {
	engine := start(t, "--maxmemory", "20mb", "--maxmemory-policy", "noeviction")
	s := open(t, user(t, engine))
	if err := put(t.Context(), s, "x"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 50 && err == nil; i++ {
		_, err = s.Put(t.Context(), scale.Write{Key: scale.Key{Partition: "part", Name: strconv.Itoa(i)}, Value: make([]byte, scale.MaxValue), TTL: time.Hour})
	}
	if !errors.Is(err, scale.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
		t.Fatalf("err = %v", err)
	}
	for range 2 * maxFailures {
		if _, err := s.Put(t.Context(), scale.Write{Key: scale.Key{Partition: "part", Name: "long"}, Value: make([]byte, scale.MaxValue), TTL: time.Hour}); err == nil {
			break // there was some left
		}
		if es, err := s.Get(t.Context(), scale.GetOp{Key: theKey}); err != nil || string(es[0].Value) != "x" {
			t.Errorf("%v, %v", es, err)
		}
	}
}

// In a cluster, a machine that dies or stops is replaced, and meanwhile calls for
// the others succeed.
func TestClusterFailover(t *testing.T) {
	for _, way := range []string{"dies", "stops"} {
		t.Run(way, func(t *testing.T) {
			if way == "stops" {
				testdep.NoRace(t, "the Store does the same when the machine dies")
			}
			cluster := startCluster(t, 1)
			s := open(t, user(t, cluster[:3]...))
			replica := cluster[3]
			o := s.engine.prefix
			prefix := strings.TrimSuffix(strings.TrimPrefix(o, "talaria:"), ":")
			replica.say(append([]string{"ACL", "SETUSER", prefix, "reset", "on", ">secret-" + prefix}, strings.Fields(ACL(prefix))...)...)
			e := listen(t, s, "box")
			var writes []scale.Write
			for i := range 64 {
				writes = append(writes, scale.Write{Key: scale.Key{Partition: strconv.Itoa(i), Name: "n"}, Prev: scale.Any, Value: []byte("x"), TTL: time.Hour})
			}
			if _, err := s.Put(t.Context(), writes...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // for the replica
			if way == "dies" {
				cluster[0].kill()
			} else {
				defer cluster[0].stop()()
			}
			es, err := s.Put(t.Context(), writes...)
			made := 0
			for _, e := range es {
				if e.Err == nil {
					made++
				} else if !errors.Is(e.Err, scale.ErrUnavailable) {
					t.Errorf("err = %v", e.Err)
				}
			}
			if err == nil || made < 20 || made > 60 {
				t.Errorf("%d of 64 writes were made without a machine, %v", made, err)
			}
			begun := time.Now()
			eventually(t, "all writes are made", func() bool {
				_, err := s.Put(t.Context(), writes...)
				return err == nil
			})
			t.Logf("all writes are made again after %v", time.Since(begun).Round(10*time.Millisecond))
			eventually(t, "what is appended is heard", func() bool {
				text := strconv.FormatInt(prefixCount.Add(1), 10)
				_, _, err := s.Append(t.Context(), scale.AppendOp{Box: "box", Data: []byte(text), Keep: 1000, TTL: time.Hour})
				time.Sleep(50 * time.Millisecond)
				heard, _ := e.has(text)
				return err == nil && heard
			})
		})
	}
}

// A machine that the others have left out keeps its connections, and hears
// nothing more: a Watcher that has one notices, and hears by another machine.
func TestClusterLeftOut(t *testing.T) {
	cluster := startCluster(t, 0)
	s := open(t, user(t, cluster...))
	e := listen(t, s, "box")
	e.hears(t, s, "box")
	deaf := -1
	for i, c := range cluster {
		client := c.client()
		counts, err := client.Do(t.Context(), client.B().Arbitrary("PUBSUB", "NUMSUB", s.engine.prefix+"box").Build()).AsIntMap()
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		if counts[s.engine.prefix+"box"] == 1 {
			deaf = i
		}
	}
	if deaf < 0 {
		t.Fatal("no machine has the subscription")
	}
	id := cluster[deaf].say("CLUSTER", "MYID")
	for i, c := range cluster {
		if i != deaf {
			other := c.say("CLUSTER", "MYID")
			c.say("CLUSTER", "FORGET", id)
			cluster[deaf].say("CLUSTER", "FORGET", other)
		}
	}
	begun := time.Now()
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	t.Logf("the gap was noticed after %v", time.Since(begun).Round(10*time.Millisecond))
	box := "box"
	for i := 0; slot("{"+s.engine.prefix+box+"}")*3/slots == deaf; i++ {
		box = strconv.Itoa(i)
	}
	eventually(t, "what another machine has is heard", func() bool {
		text := strconv.FormatInt(prefixCount.Add(1), 10)
		err := e.Add(t.Context(), box)
		if err == nil {
			_, _, err = s.Append(t.Context(), scale.AppendOp{Box: box, Data: []byte(text), Keep: 1000, TTL: time.Hour})
		}
		time.Sleep(50 * time.Millisecond)
		heard, _ := e.has(text)
		return err == nil && heard
	})
}

// An entry that a failover brings back in an older state gets a Rev that it has
// never had: who knows the newer one notices, and a token outside stays good.
func TestRevsOverFailover(t *testing.T) {
	old, promoted := start(t), start(t)
	o := user(t, old, promoted)
	o.URL, _, _ = strings.Cut(o.URL, "?")
	l := newLink(t, old.address())
	s := open(t, through(o, old, l))
	if err := put(t.Context(), s, "kept"); err != nil {
		t.Fatal(err)
	}
	promoted.say("REPLICAOF", "127.0.0.1", strconv.Itoa(old.port))
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(promoted.say("INFO", "replication"), "master_link_status:up")
	})
	promoted.say("REPLICAOF", "NO", "ONE")
	var last scale.Rev
	for range 3 {
		es, err := s.Put(t.Context(), scale.Write{Key: theKey, Prev: scale.Any, Value: []byte("lost"), TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		last = es[0].Rev
	}
	to := promoted.address()
	l.to.Store(&to)
	l.cut()
	var es []scale.Entry
	eventually(t, "the older state is there", func() (ok bool) {
		var err error
		es, err = s.Get(t.Context(), scale.GetOp{Key: theKey, Known: last, TTL: time.Hour})
		return err == nil && string(es[0].Value) == "kept"
	})
	for range 3 {
		made, err := s.Put(t.Context(), scale.Write{Key: theKey, Prev: es[0].Rev, Value: []byte("new"), TTL: time.Hour})
		if err != nil || made[0].Err != nil || made[0].Rev <= last {
			t.Fatalf("%v, %v, want a Rev after %d", made, err, last)
		}
		es = made
	}
	if es, err := s.Put(t.Context(), scale.Write{Key: theKey, Prev: last, Value: []byte("late")}); err != nil || es[0].Err != scale.ErrChanged {
		t.Errorf("who had the lost Rev could write: %v, %v", es, err)
	}
}

// While slots move from one machine to another, calls succeed or say that they
// did not, and nothing that was written is lost.
func TestClusterMigration(t *testing.T) {
	cluster := startCluster(t, 0)
	s := open(t, user(t, cluster...))
	e := listen(t, s, "box")
	part := "0"
	for i := 1; slot("{"+s.engine.prefix+part+"}")*3/slots != 0; i++ {
		part = strconv.Itoa(i)
	}
	moved := strconv.Itoa(slot("{" + s.engine.prefix + part + "}"))
	key := func(i int) scale.Key { return scale.Key{Partition: part, Name: strconv.Itoa(i)} }
	for i := range 50 {
		if _, err := s.Put(t.Context(), scale.Write{Key: key(i), Value: []byte("0"), TTL: time.Hour, DueIn: time.Hour, Index: "index", Limit: "limit", Max: 100}); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var made [50]int
	var failed atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i = (i + 1) % 50 {
			select {
			case <-stop:
				return
			default:
			}
			es, err := s.Get(t.Context(), scale.GetOp{Key: key(i)})
			if err == nil {
				n, _ := strconv.Atoi(string(es[0].Value))
				made[i] = max(made[i], n)
				es, err = s.Put(t.Context(), scale.Write{Key: key(i), Prev: es[0].Rev, Value: []byte(strconv.Itoa(n + 1)), TTL: time.Hour, DueIn: time.Hour, Index: "index"})
				if err == nil && es[0].Err == nil {
					made[i] = n + 1
				}
			}
			if err != nil {
				failed.Add(1)
			}
		}
	})
	from, to := cluster[0], cluster[1]
	ids := []string{from.say("CLUSTER", "MYID"), to.say("CLUSTER", "MYID")}
	to.say("CLUSTER", "SETSLOT", moved, "IMPORTING", ids[0])
	from.say("CLUSTER", "SETSLOT", moved, "MIGRATING", ids[1])
	migrate(t, from, to, moved)
	for _, c := range []*server{to, from, cluster[2]} {
		c.say("CLUSTER", "SETSLOT", moved, "NODE", ids[1])
	}
	time.Sleep(200 * time.Millisecond)
	close(stop)
	writer.Wait()
	t.Logf("%d calls failed while the slot moved", failed.Load())
	for i := range 50 {
		es, err := s.Get(t.Context(), scale.GetOp{Key: key(i)})
		if err != nil || string(es[0].Value) != strconv.Itoa(made[i]) && string(es[0].Value) != strconv.Itoa(made[i]+1) {
			t.Errorf("entry %d is %v, %v, and was written up to %d", i, es, err, made[i])
		}
	}
	es, err := s.Put(t.Context(), scale.Write{Key: key(99), Value: []byte("0"), TTL: time.Hour, Limit: "limit", Max: 50})
	if err != nil || es[0].Err != scale.ErrFull {
		t.Errorf("the limit has moved, too: %v, %v", es, err)
	}
	e.hears(t, s, "box")
}

// migrate moves the keys of a slot.
func migrate(t *testing.T, from, to *server, moved string) {
	t.Helper()
	for range 1000 {
		client := from.client()
		keys, err := client.Do(t.Context(), client.B().Arbitrary("CLUSTER", "GETKEYSINSLOT", moved, "5").Build()).AsStrSlice()
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			return
		}
		from.say(append([]string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), "", "0", "5000", "REPLACE", "KEYS"}, keys...)...)
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the slot is not empty")
}

// A Sentinel that names another machine is followed.
func TestSentinel(t *testing.T) {
	first, second := start(t), start(t)
	second.say("REPLICAOF", "127.0.0.1", strconv.Itoa(first.port))
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(second.say("INFO", "replication"), "master_link_status:up")
	})
	o := user(t, first, second)
	sentinel := startSentinel(t, first)
	o.URL = strings.Replace(o.URL, first.address(), sentinel.address(), 1)
	o.URL, _, _ = strings.Cut(o.URL, "?")
	o.URL += "?master_set=shop"
	s := open(t, o)
	e := listen(t, s, "box")
	if err := put(t.Context(), s, "x"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Sentinel knows the replica", func() bool {
		return strings.Contains(sentinel.say("INFO", "sentinel"), "slaves=1")
	})
	first.kill()
	begun := time.Now()
	eventually(t, "the other machine is used", func() bool { return put(t.Context(), s, "y") == nil })
	t.Logf("the other machine was used after %v", time.Since(begun).Round(10*time.Millisecond))
	eventually(t, "gap is called", func() bool { _, gaps := e.has(""); return gaps > 0 })
	e.hears(t, s, "box")
}
