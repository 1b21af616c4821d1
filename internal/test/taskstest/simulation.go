// Package taskstest runs the tasks of several replicas through failures, and checks
// what their store has seen of it: with the store of the process in the bubble of a
// test, thousands of times in a minute, and with engines.
package taskstest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Simulation is a fleet that runs tasks while replicas die and stop, and while calls
// of the store are lost, late, or never answered.
type Simulation struct {
	Seed     uint64
	Store    scale.Store
	Lease    time.Duration // of tasks; 0 means that of servers
	Replicas int           // at a time
	Tasks    int
	Kills    int // replicas, each of which another one follows
	// Faults is the share of calls of the store that fail in some way. With 0
	// replicas are only killed, with a lease between, and never stopped.
	Faults float64

	lease   time.Duration
	sealer  *seal.Sealer
	history history
	clients sync.WaitGroup
	runs    sync.WaitGroup // of handlers

	mu       sync.Mutex
	random   *rand.Rand
	replicas []*process
	faults   []string
	counter  int64
	acked    map[string]bool // "id kind key": acknowledged facts
	untold   []string        // tasks that no client knows: they may not exist

	Finals, Takeovers atomic.Int64
	slowest           atomic.Int64 // from the loss of a replica to the next run
}

// owner is whose all tasks are.
const owner = "ann"

// Run runs the simulation, and returns everything that must not be.
func (s *Simulation) Run(ctx context.Context) []string {
	s.random = rand.New(rand.NewPCG(s.Seed, 1))
	s.acked = make(map[string]bool)
	s.lease = s.Lease
	if s.lease == 0 {
		s.lease = tasks.DefaultLease
	}
	var err error
	if s.sealer, err = seal.New("task", []byte("a secret of 16 bytes or more")); err != nil {
		return []string{err.Error()}
	}
	s.history = history{Store: s.Store, sim: s, chains: make(map[string][]state)}
	for range s.Replicas {
		s.start()
	}
	time.Sleep(s.lease * 3 / 2) // no replica claims a task before it was in touch for a lease
	for i := range s.Tasks {
		s.clients.Go(func() { s.client(ctx, i) })
	}
	calm := s.Faults == 0
	for range s.Kills {
		time.Sleep(s.upTo(s.lease))
		if calm {
			time.Sleep(s.lease)
		}
		s.disturb()
	}
	s.mu.Lock()
	s.Faults = 0
	for _, r := range s.replicas {
		r.store.resume()
	}
	s.mu.Unlock()
	s.clients.Wait()
	s.mu.Lock()
	all, untold := s.replicas, s.untold
	s.mu.Unlock()
	s.history.late.Wait()       // by which there are more perhaps
	for _, id := range untold { // which may wait for an answer
		s.giveUp(ctx, id)
	}
	s.runs.Wait()
	for _, r := range all {
		r.end()
	}
	s.judge()
	return s.faults
}

// disturb kills a replica or stops it for a while.
func (s *Simulation) disturb() {
	r := s.any()
	if s.Faults == 0 || s.chance(0.5) {
		s.start()
		r.lost.Store(time.Now().UnixNano())
		r.kill()
		return
	}
	r.store.stop()
	time.Sleep(s.upTo(3 * s.lease))
	r.store.resume()
}

// tookOver notes that a run follows one of another replica.
func (s *Simulation) tookOver(id string) {
	chain := s.history.of(id)
	if len(chain) < 2 {
		return
	}
	before := chain[len(chain)-2].owner
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if at := r.lost.Load(); at != 0 && r.post.ReplicaID() == before {
			s.slowest.Store(max(s.slowest.Load(), time.Now().UnixNano()-at))
		}
	}
}

// Slowest returns the longest time from the loss of a replica to the next run of a
// task of it.
func (s *Simulation) Slowest() time.Duration { return time.Duration(s.slowest.Load()) }

// chance is true with a probability.
func (s *Simulation) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64() < p
}

// faulty is chance of Faults.
func (s *Simulation) faulty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64() < s.Faults
}

// upTo returns a time between 0 and d.
func (s *Simulation) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(d)))
}

// later runs a call of the store that has no caller any more. It drops the call
// once the faults have ended, when Run waits for these calls.
func (s *Simulation) later(call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Faults > 0 {
		s.history.late.Go(call)
	}
}

// fault notes what must not be.
func (s *Simulation) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < 20 {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// ack notes an acknowledged fact.
func (s *Simulation) ack(id, kind, key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[strings.Join([]string{id, kind, key, value}, " ")] = true
}

// next returns a value that there was not before.
func (s *Simulation) next() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	return json.RawMessage(fmt.Sprint(s.counter))
}

// any returns a replica that lives.
func (s *Simulation) any() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if r := s.replicas[s.random.IntN(len(s.replicas))]; r.ctx.Err() == nil {
			return r
		}
	}
}

// client has a task made, answers what it asks, may cancel it, and looks until it
// has ended.
func (s *Simulation) client(ctx context.Context, n int) {
	time.Sleep(s.upTo(4 * s.lease))
	id := ""
	for id == "" {
		id = s.any().create(n)
	}
	s.ack(id, "made", "", "")
	cancels := s.chance(0.1)
	for begin := time.Now(); ; time.Sleep(s.upTo(s.lease / 2)) {
		if time.Since(begin) > s.longest() {
			s.fault("task %s has not ended", id)
			return
		}
		r, err := s.any().Get(ctx, owner, id)
		switch {
		case err != nil && strings.Contains(err.Error(), "not found"):
			s.fault("task %s is gone", id)
			return
		case err != nil:
		case r.Status.Final():
			s.ack(id, "end", string(r.Status), string(r.Result))
			return
		case cancels && s.chance(0.1):
			if s.any().Cancel(ctx, owner, id) == nil {
				s.ack(id, "ended", "", "")
			}
		case len(r.Requests) > 0:
			key, value := r.Requests[0].Key, s.next()
			for range 1 + n%2 { // some send it twice
				if s.any().Update(ctx, owner, id, map[string]json.RawMessage{key: value}) == nil {
					s.ack(id, "answer", key, "")
					if !answered(s.history.of(id), key) { // at once, as it is not sent again
						s.fault("task %s: the answer to %s was taken, and is nowhere", id, key)
					}
				}
			}
		}
	}
}

// longest is how long a task may take: sixty leases, and on a busy machine, where a
// short lease often ends too early, a minute.
func (s *Simulation) longest() time.Duration { return max(60*s.lease, time.Minute) }

// process is one of the fleet.
type process struct {
	*tasks.Manager
	sim    *Simulation
	post   *bus.Bus
	store  *faultyStore
	ctx    context.Context // until it is killed
	stop   context.CancelFunc
	closed sync.Once
	lost   atomic.Int64 // when it was killed; 0 if it was not
}

// start starts a replica.
func (s *Simulation) start() {
	r := &process{sim: s, store: &faultyStore{Store: &s.history, sim: s}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	box, _ := seal.New("post", []byte("a secret of 16 bytes or more"))
	r.post = bus.New(bus.Config{Store: r.store, Seal: box})
	r.Manager = tasks.NewManager(tasks.Config{
		Store: &tasks.Shared{Store: r.store, Seal: s.sealer, Post: r.post, Lease: s.Lease}, MaxPerOwner: -1, Max: 1 << 20, MaxRunning: 1 << 20, MaxRunningPerOwner: -1,
		Replay: func(ctx context.Context, t *tasks.Task, call []byte) error {
			if r.sim.faulty() {
				return protocol.Errorf(protocol.CodeBusy, "not now")
			}
			s.Takeovers.Add(1)
			s.tookOver(t.Record().ID)
			s.runs.Go(func() { r.handle(ctx, t, string(call)) })
			return nil
		},
	}, nil)
	r.post.Start()
	r.Share()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = append(s.replicas, r)
}

// kill ends a replica at once: nothing that it does has an effect any more.
func (r *process) kill() {
	r.store.die()
	r.end()
}

// end ends a replica.
func (r *process) end() {
	r.closed.Do(func() {
		r.stop()
		r.store.resume()
		r.post.Close(context.Background())
		r.Close()
	})
}

// create makes a task, and returns its id once the client would know it.
func (r *process) create(n int) (id string) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t, err := r.Reserve(owner, 0, 0, cancel)
	if err != nil {
		r.sim.fault("Reserve: %v", err)
		return ""
	}
	call := fmt.Sprintf("steps %d", n)
	id = t.Record().ID // Keep gives it another one where it fails
	if err := t.Keep(&tasks.Call{Text: []byte(call)}); err != nil {
		r.sim.unknown(id)
		t.Drop()
		time.Sleep(time.Millisecond)
		return ""
	}
	r.sim.runs.Go(func() { r.handle(ctx, t, call) })
	if r.ctx.Err() != nil {
		r.sim.unknown(id)
		return ""
	}
	return id
}

// unknown notes a task that no client knows.
func (s *Simulation) unknown(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untold = append(s.untold, id)
}

// giveUp cancels a task of which no client knows, if there is one.
func (s *Simulation) giveUp(ctx context.Context, id string) {
	for begin := time.Now(); time.Since(begin) < s.longest(); time.Sleep(s.upTo(s.lease / 2)) {
		r, err := s.any().Get(ctx, owner, id)
		if err != nil && strings.Contains(err.Error(), "not found") || err == nil && r.Status.Final() {
			return
		}
		_ = s.any().Cancel(ctx, owner, id) // the next look tells
	}
	s.fault("task %s of which nobody knows has not ended", id)
}

// handle is the handler of all tasks. Its actions depend only on the call, so
// that a second run does what the first did.
func (r *process) handle(ctx context.Context, t *tasks.Task, call string) {
	var n int
	_, _ = fmt.Sscanf(call, "steps %d", &n)
	steps := rand.New(rand.NewPCG(r.sim.Seed, uint64(n)))
	id := t.Record().ID
	var result []string
	for i := range 2 + steps.IntN(5) {
		key := fmt.Sprintf("step%d", i)
		kind := steps.IntN(3)
		select {
		case <-r.ctx.Done():
			return // with its process
		case <-time.After(r.sim.upTo(r.sim.lease)):
		}
		if ctx.Err() != nil && i%2 == 0 { // every other one does not notice
			return
		}
		switch kind {
		case 0:
			value, ok := t.Recall(key)
			if !ok {
				value = r.sim.next()
				if t.Remember(ctx, key, value) != nil {
					return // it is over
				}
				r.sim.ack(id, "kept", key, string(value))
			}
			result = append(result, string(value))
		case 1:
			answers, err := t.Ask(ctx, []protocol.InputRequest{{Key: key, Method: "m", Params: json.RawMessage(`{}`)}})
			if err != nil {
				if ctx.Err() == nil && r.ctx.Err() == nil && !errors.Is(err, tasks.ErrCancelled) {
					r.sim.fault("Ask: %v", err)
				}
				return
			}
			result = append(result, string(answers[0]))
		default:
			run, token := t.Run()
			r.sim.history.effect(id, run, token)
		}
	}
	text, _ := json.Marshal(strings.Join(result, " "))
	_ = t.Finish(protocol.TaskCompleted, text, nil)
}

// faultyStore is the store as one replica reaches it.
type faultyStore struct {
	scale.Store
	sim *Simulation

	mu      sync.Mutex
	stopped chan struct{} // closed when it continues; nil if it does
	dead    bool
}

func (f *faultyStore) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped == nil {
		f.stopped = make(chan struct{})
	}
}

func (f *faultyStore) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped != nil {
		close(f.stopped)
		f.stopped = nil
	}
}

func (f *faultyStore) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
}

// call calls the store, or does not, or does so when no caller waits for it any
// more.
func (f *faultyStore) call(ctx context.Context, fn func(ctx context.Context) error) error {
	f.mu.Lock()
	stopped, dead := f.stopped, f.dead
	f.mu.Unlock()
	if dead {
		return scale.ErrUnavailable
	}
	if stopped != nil {
		select {
		case <-stopped:
		case <-ctx.Done():
			return scale.ErrUnavailable
		}
	}
	if !f.sim.faulty() {
		return fn(ctx)
	}
	switch wait := f.sim.upTo(2 * f.sim.lease); int(wait) % 4 {
	case 0: // lost on the way there
	case 1: // lost on the way back
		_ = fn(ctx)
	case 2: // made when no caller waits for it
		f.sim.later(func() {
			time.Sleep(wait)
			_ = fn(context.Background())
		})
	default: // slow
		select {
		case <-time.After(wait / 4):
			return fn(ctx)
		case <-ctx.Done():
		}
	}
	return scale.ErrUnavailable
}

// Get implements scale.Store.
func (f *faultyStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	var result []scale.Entry
	err := f.call(ctx, func(ctx context.Context) error {
		found, err := f.Store.Get(ctx, looks...)
		if ctx.Err() == nil {
			result = found
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Put implements scale.Store.
func (f *faultyStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	result := make(chan []scale.Entry, 1)
	err := f.call(ctx, func(ctx context.Context) error {
		written, err := f.Store.Put(ctx, writes...)
		result <- written
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-result, nil
}

// ClaimDue implements scale.Store.
func (f *faultyStore) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	result := make(chan []scale.Entry, 1)
	err := f.call(ctx, func(ctx context.Context) error {
		due, err := f.Store.ClaimDue(ctx, part, index, owner, max, lease)
		result <- due
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-result, nil
}

// history is the store below all replicas, with the states that tasks had.
type history struct {
	scale.Store
	sim  *Simulation
	late sync.WaitGroup // calls that no caller waits for

	mu      sync.Mutex
	chains  map[string][]state // by the name of the entry
	effects map[string][]effect
}

// state is one of a task's, as it was written.
type state struct {
	rev    scale.Rev
	owner  string
	record tasks.Record
}

// effect is what a run did elsewhere.
type effect struct {
	run   int
	token int64
}

// effect notes that a run did something elsewhere.
func (h *history) effect(id string, run int, token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.effects == nil {
		h.effects = make(map[string][]effect)
	}
	h.effects[id] = append(h.effects[id], effect{run, token})
}

// Put implements scale.Store.
func (h *history) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	written, err := h.Store.Put(ctx, writes...)
	if err != nil {
		return written, err
	}
	for i, w := range writes {
		if !strings.HasPrefix(w.Key.Partition, "task-") || strings.HasPrefix(w.Key.Partition, "task-call") || len(w.Value) == 0 || written[i].Err != nil {
			continue
		}
		text, _, err := h.sim.sealer.Open(w.Value, seal.Binding(w.Key.Name))
		st := state{rev: written[i].Rev, owner: w.Owner}
		if err == nil {
			err = json.Unmarshal(text, &st.record)
		}
		if err != nil {
			h.sim.fault("an entry: %v", err)
			continue
		}
		h.mu.Lock()
		h.chains[w.Key.Name] = append(h.chains[w.Key.Name], st)
		h.mu.Unlock()
	}
	return written, nil
}

// of returns the states of a task, in their order.
func (h *history) of(id string) []state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return inOrder(h.chains[replica.StoreKey("task", id, 4).Name])
}

// inOrder sorts states by when they were written.
func inOrder(chain []state) []state {
	slices.SortFunc(chain, func(a, b state) int { return cmp.Compare(a.rev, b.rev) })
	return chain
}
