package tasks

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
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const lease = DefaultLease

// process is a Manager that shares its tasks with others.
type process struct {
	*Manager
	post *bus.Bus
}

// newReplica starts a replica in a bubble.
func newReplica(t *testing.T, store scale.Store) *process {
	t.Helper()
	return newRunner(t, store, nil)
}

// newRunner is newReplica of one that runs tasks again.
func newRunner(t *testing.T, store scale.Store, replay func(context.Context, *Task, []byte) error) *process {
	t.Helper()
	sealer := func(use string) *seal.Sealer {
		s, err := seal.New(use, []byte("a secret of 16 bytes or more"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := &process{post: bus.New(bus.Config{Store: store, Seal: sealer("post")})}
	r.Manager = NewManager(Config{Store: &Shared{Store: store, Seal: sealer("task"), Post: r.post}, Replay: replay}, nil)
	r.post.Start()
	r.Share()
	synctest.Wait()
	return r
}

// stop ends a replica, as Shutdown does; without it, it is as if killed.
func (r *process) stop() {
	r.post.Close(context.Background())
	r.Close()
}

// want wants a state of a task, at every replica.
func want(t *testing.T, id string, status protocol.TaskStatus, all ...*process) {
	t.Helper()
	synctest.Wait()
	for i, r := range all {
		if got, err := r.Get(t.Context(), "ann", id); err != nil || got.Status != status {
			t.Errorf("replica %d: %q, %v; want %q", i, got.Status, err, status)
		}
	}
}

// shared runs test with three replicas, and a task of the first. cause gets why
// its work is to end.
func shared(t *testing.T, test func(t *testing.T, store *leaky, a, b, c *process, task *Task, cause func() error)) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaky{Store: scale.NewLocal()}
		a, b, c := newReplica(t, store), newReplica(t, store), newReplica(t, store)
		var why atomic.Pointer[error]
		task, err := a.Create("ann", 0, 0, func(err error) { why.CompareAndSwap(nil, &err) })
		if err != nil {
			t.Fatal(err)
		}
		test(t, store, a, b, c, task, func() error {
			synctest.Wait()
			if err := why.Load(); err != nil {
				return *err
			}
			return nil
		})
		for _, r := range []*process{a, b, c} {
			r.stop()
		}
	})
}

// leaky is a Store that can be away.
type leaky struct {
	scale.Store
	away, lose atomic.Bool // lose: what it writes it does not say
	readOnly   atomic.Bool
	loseTasks  atomic.Bool // lose is for these alone, and not for their calls
	puts       atomic.Int64
}

func (s *leaky) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	renews := func(l scale.GetOp) bool { return l.In > 0 || l.TTL > 0 }
	if s.away.Load() || s.readOnly.Load() && slices.ContainsFunc(looks, renews) {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *leaky) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.away.Load() || s.readOnly.Load() {
		return nil, scale.ErrUnavailable
	}
	if writes[0].Key.Partition != "node" && writes[0].Key.Name != "contact" {
		s.puts.Add(1)
	}
	written, err := s.Store.Put(ctx, writes...)
	call := strings.HasPrefix(writes[0].Key.Partition, "task-call-")
	if s.lose.Load() && writes[0].Key.Partition != "node" && !(call && s.loseTasks.Load()) {
		return nil, scale.ErrUnavailable
	}
	return written, err
}

func (s *leaky) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	if s.away.Load() || s.readOnly.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

// A task is looked at, and ends, for everybody.
func TestSharedTask(t *testing.T) {
	shared(t, func(t *testing.T, _ *leaky, a, b, c *process, task *Task, _ func() error) {
		id := task.Record().ID
		want(t, id, protocol.TaskWorking, a, b, c)
		if _, err := b.Get(t.Context(), "bob", id); err == nil {
			t.Error("another owner finds it")
		}
		if err := task.Note(wire.Progress{Progress: 1, Message: "half"}); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Get(t.Context(), "ann", id); err != nil || r.StatusMessage != "half" {
			t.Errorf("%+v, %v", r, err)
		}
		time.Sleep(10 * lease) // it is renewed
		want(t, id, protocol.TaskWorking, a, b, c)
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{"x":1}`), nil); err != nil {
			t.Fatal(err)
		}
		want(t, id, protocol.TaskCompleted, a, b, c)
		if err := b.Cancel(t.Context(), "ann", id); err != nil {
			t.Errorf("Cancel at the end: %v", err)
		}
		want(t, id, protocol.TaskCompleted, a, b, c)
		time.Sleep(DefaultTTL)
		for _, r := range []*process{a, b} {
			if _, err := r.Get(t.Context(), "ann", id); err == nil {
				t.Error("it outlives its time")
			}
		}
	})
}

// Whoever cancels a task ends it at once, and its work soon; what the work says
// afterwards counts no more.
func TestSharedCancel(t *testing.T) {
	shared(t, func(t *testing.T, _ *leaky, a, b, c *process, task *Task, cause func() error) {
		id := task.Record().ID
		if err := b.Cancel(t.Context(), "ann", id); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Get(t.Context(), "ann", id); err != nil || r.Status != protocol.TaskCancelled {
			t.Errorf("right after: %q, %v", r.Status, err)
		}
		if err := cause(); !errors.Is(err, ErrCancelled) {
			t.Errorf("the work was told %v", err)
		}
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err != nil {
			t.Errorf("Finish: %v", err)
		}
		want(t, id, protocol.TaskCancelled, a, b, c)
		if a.running.Used() != 0 {
			t.Errorf("%d run", a.running.Used())
		}
	})
}

// The answers to a task's questions may come to any replica.
func TestSharedAnswers(t *testing.T) {
	shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, _ func() error) {
		id := task.Record().ID
		answered := make(chan string, 1)
		go func() {
			answers, err := task.Ask(t.Context(), []protocol.InputRequest{{Key: "x", Method: "m"}, {Key: "y", Method: "m"}})
			answered <- fmt.Sprintf("%s %v", answers, err)
		}()
		want(t, id, protocol.TaskInputRequired, a, b, c)
		update := func(r *process, owner, key, value string) error {
			return r.Update(t.Context(), owner, id, map[string]json.RawMessage{key: json.RawMessage(value)})
		}
		if err := update(b, "bob", "x", `0`); err == nil {
			t.Error("another owner answers")
		}
		store.away.Store(true)
		if err := update(b, "ann", "x", `0`); err == nil {
			t.Error("an answer is taken that the store does not get")
		}
		store.away.Store(false)
		if err := update(b, "ann", "x", `1`); err != nil {
			t.Error(err)
		}
		want(t, id, protocol.TaskInputRequired, a, b, c)
		if err := update(c, "ann", "y", `2`); err != nil {
			t.Error(err)
		}
		if got := <-answered; got != "[1 2] <nil>" {
			t.Errorf("the work got %s", got)
		}
		want(t, id, protocol.TaskWorking, a, b, c)
	})
}

// A task whose replica is gone fails, with the reason, soon after its lease.
func TestSharedReplicaLost(t *testing.T) {
	shared(t, func(t *testing.T, _ *leaky, a, b, c *process, task *Task, _ func() error) {
		id := task.Record().ID
		time.Sleep(3 * lease) // the others have been in touch with the store for long
		a.Close()             // renews nothing any more
		want(t, id, protocol.TaskWorking, b, c)
		time.Sleep(lease + 2500*time.Millisecond)
		r, err := b.Get(t.Context(), "ann", id)
		if err != nil || r.Status != protocol.TaskFailed || !strings.Contains(string(r.Fault), "replica lost") {
			t.Errorf("%q %s, %v", r.Status, r.Fault, err)
		}
		// Its work, which was only out of touch, ends nothing any more.
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err != nil {
			t.Errorf("Finish: %v", err)
		}
		want(t, id, protocol.TaskFailed, a, b, c)
	})
}

// A save whose answer is lost ends nothing: the next one follows it.
func TestSharedAnswerLost(t *testing.T) {
	shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, cause func() error) {
		id := task.Record().ID
		store.lose.Store(true)
		if err := task.Note(wire.Progress{Progress: 1}); err != nil { // is kept later
			t.Error(err)
		}
		store.lose.Store(false)
		time.Sleep(4 * lease)
		want(t, id, protocol.TaskWorking, a, b, c)
		if err := cause(); err != nil {
			t.Errorf("the work was told %v", err)
		}
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err != nil {
			t.Errorf("Finish: %v", err)
		}
		want(t, id, protocol.TaskCompleted, a, b, c)
	})
}

// A result that is too long fails its task. An end that could not be kept is kept
// when the store answers again, however long it was away: a task of a replica that
// lives is not lost.
func TestSharedEndNotKept(t *testing.T) {
	shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, _ func() error) {
		long, err := a.Create("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := long.Finish(protocol.TaskCompleted, json.RawMessage(`"`+strings.Repeat("x", 2<<20)+`"`), nil); err != nil {
			t.Error(err)
		}
		want(t, long.Record().ID, protocol.TaskFailed, a, b, c)

		time.Sleep(3 * lease)
		store.away.Store(true)
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err == nil {
			t.Error("kept while the store is away")
		}
		time.Sleep(4 * lease)
		store.away.Store(false)
		time.Sleep(4 * lease)
		want(t, task.Record().ID, protocol.TaskCompleted, a, b, c)
	})
}

// A store that is away for longer than a lease ends no task of a replica that
// lives.
func TestSharedStoreAway(t *testing.T) {
	shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, cause func() error) {
		time.Sleep(3 * lease)
		store.away.Store(true)
		time.Sleep(4 * lease)
		store.away.Store(false)
		time.Sleep(4 * lease)
		want(t, task.Record().ID, protocol.TaskWorking, a, b, c)
		if err := cause(); err != nil {
			t.Errorf("the work was told %v", err)
		}
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{}`), nil); err != nil {
			t.Errorf("Finish: %v", err)
		}
		want(t, task.Record().ID, protocol.TaskCompleted, a, b, c)
	})
}

// A run that ends as the store is away is not one that lost its replica, however
// often that happens; one whose replica is gone still is.
func TestSharedOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &leaky{Store: scale.NewLocal()}
		replay := func(context.Context, *Task, []byte) error { return nil } // it goes on
		a, b := newRunner(t, store, replay), newRunner(t, store, replay)
		defer func() { b.stop() }()
		task, err := a.Reserve("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Keep(&Call{Text: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		id := task.Record().ID
		for n := range 2 * maxLost {
			time.Sleep(3 * lease)
			store.away.Store(true)
			time.Sleep(lease + time.Duration(n)*time.Second)
			store.lose.Store(n%2 == 1) // its first answers do not come
			store.away.Store(false)
			time.Sleep(lease / 5)
			store.lose.Store(false)
			time.Sleep(3 * lease)
			want(t, id, protocol.TaskWorking, a, b)
			if r, _, _ := b.Look(t.Context(), id); r.Lost != 0 || r.Run != n+2 {
				t.Errorf("after %d outages: run %d, %d replicas lost", n+1, r.Run, r.Lost)
			}
		}
		if a.task(id) == nil {
			a, b = b, a
		}
		a.stop() // without HandOver, as if killed
		time.Sleep(3 * lease)
		if r, _, _ := b.Look(t.Context(), id); r.Status != protocol.TaskWorking || r.Lost != 1 {
			t.Errorf("its replica is gone: %q, %d replicas lost", r.Status, r.Lost)
		}
	})
}

// Progress costs a write a second, however often it is told, and the last is kept.
func TestSharedNotes(t *testing.T) {
	shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, _ func() error) {
		before := store.puts.Load()
		for i := range 1000 {
			if err := task.Note(wire.Progress{Progress: float64(i + 1)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(noteEvery)
		if n := store.puts.Load() - before; n < 10 || n > 12 {
			t.Errorf("%d writes in 10 s", n)
		}
		if r, err := b.Get(t.Context(), "ann", task.Record().ID); err != nil || r.Progress.Progress != 1000 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A question that is open when a replica hands its task over stays open: what its
// client answers meanwhile, the next run gets.
func TestHandOverKeepsQuestion(t *testing.T) {
	shared(t, func(t *testing.T, _ *leaky, a, b, _ *process, _ *Task, _ func() error) {
		task, err := a.Create("ann", 0, 0, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Keep(&Call{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() {
			_, err := task.Ask(ctx, []protocol.InputRequest{{Key: "x", Method: protocol.MethodRoots}})
			asked <- err
		}()
		synctest.Wait()
		a.draining.Store(true)
		cancel()
		if err := <-asked; !errors.Is(err, context.Canceled) {
			t.Errorf("Ask: %v", err)
		}
		id := task.Record().ID
		if err := b.Update(t.Context(), "ann", id, map[string]json.RawMessage{"x": json.RawMessage(`{"roots":[]}`)}); err != nil {
			t.Error(err)
		}
		r, ok, err := b.Look(t.Context(), id)
		if err != nil || !ok || string(r.Answers["x"]) != `{"roots":[]}` {
			t.Errorf("the answer is not kept: %+v, %v", r, err)
		}
	})
}

// While the store can be read and not written, nobody can renew a task: whoever
// could look at it all the time knows no more of who runs it than others.
func TestSharedReadOnly(t *testing.T) {
	for n := range 40 { // when whose turn comes afterwards differs
		shared(t, func(t *testing.T, store *leaky, a, b, c *process, task *Task, cause func() error) {
			time.Sleep(3 * lease)
			store.readOnly.Store(true)
			time.Sleep(lease + time.Duration(n)*250*time.Millisecond)
			store.readOnly.Store(false)
			time.Sleep(4 * lease)
			want(t, task.Record().ID, protocol.TaskWorking, a, b, c)
			if err := cause(); err != nil {
				t.Errorf("the work was told %v", err)
			}
		})
	}
}

// A task that others may run cannot begin, as one that may be tried again, if it is
// certain that nobody finds it.
func TestSharedKeepFails(t *testing.T) {
	for _, replay := range []bool{true, false} {
		shared(t, func(t *testing.T, store *leaky, a, _, _ *process, _ *Task, _ func() error) {
			keep := func(fails *atomic.Bool) error {
				task, err := a.Reserve("ann", 0, 0, func(error) {})
				if err != nil {
					t.Fatal(err)
				}
				defer task.Drop()
				var call *Call
				if replay {
					call = &Call{Text: []byte("call")}
				}
				fails.Store(true)
				defer fails.Store(false)
				return task.Keep(call)
			}
			if err := keep(&store.away); !errors.Is(err, scale.ErrUnavailable) {
				t.Errorf("the store is away: %v", err)
			}
			store.loseTasks.Store(true)
			if err := keep(&store.lose); err == nil || errors.Is(err, scale.ErrUnavailable) == replay {
				t.Errorf("the reply is lost, and others may run the task: %v, %v", replay, err)
			}
		})
	}
}

// An answer that is too long for an entry is refused, wherever it comes, and the
// task waits for a shorter one.
func TestSharedAnswerTooLong(t *testing.T) {
	shared(t, func(t *testing.T, _ *leaky, a, b, _ *process, task *Task, _ func() error) {
		answered := make(chan string, 1)
		go func() {
			got, err := task.Ask(t.Context(), []protocol.InputRequest{{Key: "x", Method: protocol.MethodRoots}})
			answered <- fmt.Sprintf("%s %v", got, err)
		}()
		synctest.Wait()
		id := task.Record().ID
		long := json.RawMessage(`"` + strings.Repeat("x", scale.MaxValue+1) + `"`)
		for _, r := range []*process{a, b} {
			err := r.Update(t.Context(), "ann", id, map[string]json.RawMessage{"x": long})
			if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code == protocol.CodeUnavailable {
				t.Errorf("a long answer: %v", err)
			}
		}
		if err := a.Update(t.Context(), "ann", id, map[string]json.RawMessage{"x": json.RawMessage(`1`)}); err != nil {
			t.Errorf("a short one: %v", err)
		}
		if got := <-answered; got != "[1] <nil>" {
			t.Errorf("the work got %s", got)
		}
	})
}
