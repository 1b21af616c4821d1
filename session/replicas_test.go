package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const idle = time.Hour

var errDown = fmt.Errorf("%w: connection refused", scale.ErrUnavailable)

// shaky is a Store that fails in many ways: calls and replies take random times on their way
// and are lost, hints are lost. It counts calls.
type shaky struct {
	scale.Store
	mu        sync.Mutex
	rand      *rand.Rand
	most      time.Duration              // on the way
	lost      float64                    // of calls, and of replies
	fails     atomic.Pointer[func() int] // 1: what is asked fails, 2: it is done and fails; nil is never
	down      atomic.Bool
	loseReply atomic.Bool                   // of Put, which is made
	loseTake  atomic.Bool                   // the reply to the next Take that is made
	accept    atomic.Pointer[chan struct{}] // the next Append waits for its end
	slowLooks atomic.Bool                   // a Read without a reader takes long
	nowhere   atomic.Bool                   // each Put fails
	full      atomic.Bool                   // all boxes are
	last      atomic.Bool                   // they are after the next message
	deaf      atomic.Bool                   // hints are lost, of which there is a gap every five seconds
	silent    atomic.Bool                   // there is no gap
	beforePut func()
	gaps      []func() // of the watchers

	gets, puts, appends, reads, takes atomic.Int64
	renews                            atomic.Int64 // looks that put off the end of a session
	keeps                             atomic.Int64 // looks that tell how long an entry is kept
	streams                           atomic.Int64 // reads of boxes of sessions
	answers                           atomic.Int64 // reads of boxes of answers
}

func newShaky() *shaky { return &shaky{Store: scale.NewLocal(), rand: rand.New(rand.NewPCG(1, 1))} }

// commands returns how many calls there were.
func (s *shaky) commands() int64 {
	return s.gets.Load() + s.puts.Load() + s.appends.Load() + s.reads.Load() + s.takes.Load()
}

// inboxLooks returns how many calls took or read an inbox.
func (s *shaky) inboxLooks() int64 { return s.takes.Load() + s.streams.Load() }

// within sets how long calls and replies take at most, and how many are lost.
func (s *shaky) within(most time.Duration, lost float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.lost = most, lost
}

// travel is the way of a call or of a reply.
func (s *shaky) travel(ctx context.Context) error {
	s.mu.Lock()
	d := time.Duration(0)
	if s.most > 0 {
		d = time.Duration(s.rand.Int64N(int64(s.most)))
	}
	lost := s.lost > 0 && s.rand.Float64() < s.lost
	s.mu.Unlock()
	if err := pause.For(ctx, d); err != nil {
		return fmt.Errorf("%w: %w", scale.ErrUnavailable, err)
	}
	if lost || s.down.Load() {
		return errDown
	}
	return nil
}

// do does what is asked, if that arrives. away means that there is no reply.
func (s *shaky) do(ctx context.Context, fn func() error) (away bool, err error) {
	how := 0
	if fails := s.fails.Load(); fails != nil {
		how = (*fails)()
	}
	if err := s.travel(ctx); err != nil {
		return true, err
	}
	if how == 1 {
		return true, errDown
	}
	err = fn()
	if lost := s.travel(ctx); lost != nil {
		return true, lost
	}
	if how == 2 {
		return true, errDown
	}
	return false, err
}

func (s *shaky) Get(ctx context.Context, looks ...scale.GetOp) (found []scale.Entry, err error) {
	s.gets.Add(1)
	for _, look := range looks {
		if look.In > 0 {
			s.renews.Add(1)
		}
		if look.TTL > 0 {
			s.keeps.Add(1)
		}
	}
	away, err := s.do(ctx, func() (err error) { found, err = s.Store.Get(ctx, looks...); return err })
	if away {
		return nil, err
	}
	return found, err
}

func (s *shaky) Put(ctx context.Context, writes ...scale.Write) (written []scale.Entry, err error) {
	s.puts.Add(1)
	if s.beforePut != nil {
		s.beforePut()
	}
	if s.nowhere.Load() {
		return nil, errDown
	}
	away, err := s.do(ctx, func() (err error) { written, err = s.Store.Put(ctx, writes...); return err })
	if away || s.loseReply.Load() {
		return nil, errDown
	}
	return written, err
}

func (s *shaky) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	if s.down.Load() {
		return nil, errDown
	}
	return s.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

func (s *shaky) Append(ctx context.Context, p scale.AppendOp) (rev scale.Rev, reader string, err error) {
	s.appends.Add(1)
	if accept := s.accept.Swap(nil); accept != nil {
		<-*accept
	}
	if s.full.Load() {
		return 0, "", scale.ErrFull
	}
	if s.last.Swap(false) {
		s.full.Store(true)
	}
	away, err := s.do(ctx, func() (err error) { rev, reader, err = s.Store.Append(ctx, p); return err })
	if away {
		return 0, "", err
	}
	return rev, reader, err
}

func (s *shaky) Read(ctx context.Context, box string, after scale.Rev, reader string) (list []scale.Message, now string, err error) {
	s.reads.Add(1)
	if reader == "" && s.slowLooks.Load() {
		time.Sleep(replica.StoreTimeout - time.Second)
	}
	switch {
	case strings.HasPrefix(box, "stream:"):
		s.streams.Add(1)
	case strings.HasPrefix(box, "answer:"):
		s.answers.Add(1)
	}
	away, err := s.do(ctx, func() (err error) { list, now, err = s.Store.Read(ctx, box, after, reader); return err })
	if away {
		return nil, "", err
	}
	return list, now, err
}

func (s *shaky) Take(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	s.takes.Add(1)
	away, err := s.do(ctx, func() (err error) { found, err = s.Store.Take(ctx, t); return err })
	if !away && err == nil && s.loseTake.CompareAndSwap(true, false) {
		away, err = true, errDown
	}
	if away {
		return scale.Box{}, err
	}
	return found, err
}

func (s *shaky) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	w := &gapWatcher{end: make(chan struct{})}
	hear := func() {
		if !s.silent.Load() {
			gap()
		}
	}
	w.Watcher = s.Store.Watch(func(subject string, m scale.Message) {
		if !s.deaf.Load() {
			fn(subject, m)
		}
	}, hear)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaps = append(s.gaps, gap)
	w.running.Go(func() {
		for {
			select {
			case <-w.end:
				return
			case <-time.After(5 * time.Second):
				if s.deaf.Load() {
					hear()
				}
			}
		}
	})
	return w
}

// reportGap says that hints may be lost.
func (s *shaky) reportGap() {
	s.mu.Lock()
	gaps := slices.Clone(s.gaps)
	s.mu.Unlock()
	for _, gap := range gaps {
		gap()
	}
}

// gapWatcher is the Watcher of a shaky store.
type gapWatcher struct {
	scale.Watcher
	end     chan struct{}
	running sync.WaitGroup
}

func (w *gapWatcher) Close() {
	close(w.end)
	w.running.Wait()
	w.Watcher.Close()
}

// replicas is several Managers that send each other messages.
type replicas struct {
	t      *testing.T
	store  *shaky
	all    []*Manager
	office []*bus.Bus
	gone   []bool // shut down, or killed
	mu     sync.Mutex
	failed []error
}

// withStream calls test, in a bubble, with n replicas, and a session whose stream is
// open at the first.
func withStream(t *testing.T, n int, test func(t *testing.T, r *replicas, id string, g *get)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, n, newShaky())
		defer r.close()
		id := r.open(0)
		g := r.get(0, id, "")
		synctest.Wait()
		test(t, r, id, g)
	})
}

// newReplicas makes replicas in a bubble; close must be called in it.
func newReplicas(t *testing.T, n int, store *shaky) *replicas {
	t.Helper()
	return newReplicasWith(t, n, store, func(int, *Config) {})
}

// newReplicasWith is newReplicas with what change makes of the Config of each.
func newReplicasWith(t *testing.T, n int, store *shaky, change func(i int, c *Config)) *replicas {
	t.Helper()
	key := []byte("a secret of 16 bytes or more")
	sessions, err := seal.New("session", key)
	if err != nil {
		t.Fatal(err)
	}
	posts, err := seal.New("post", key)
	if err != nil {
		t.Fatal(err)
	}
	r := &replicas{t: t, store: store, gone: make([]bool, n)}
	for i := range n {
		own := &shaky{Store: store}
		o := bus.New(bus.Config{Store: own, Seal: posts})
		config := Config{Store: own, Seal: sessions, ReplicaID: o.ReplicaID(), Bus: o, IdleTimeout: idle, OnStoreError: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed = append(r.failed, err)
		}}
		change(i, &config)
		m := NewManager(config)
		o.Handle("ended", func(message bus.Message) { m.HandleChange(string(message.Body), true) })
		o.Start()
		m.StartReplication(func(id string, _ bool) { _ = o.Broadcast(context.Background(), "ended", []byte(id)) })
		r.all, r.office = append(r.all, m), append(r.office, o)
	}
	time.Sleep(time.Second)
	return r
}

func (r *replicas) close() {
	for i := range r.all {
		r.shutdown(i)
	}
}

// shutdown ends one of them in order, as Server.Shutdown does.
func (r *replicas) shutdown(i int) {
	if !r.gone[i] {
		r.gone[i] = true
		r.all[i].EndStreams(context.Background())
		r.all[i].Close(context.Background(), core.ErrSessionClosed)
		r.office[i].Close(context.Background())
	}
}

// open opens a session at replica i and returns its id.
func (r *replicas) open(i int) string {
	r.t.Helper()
	s, err := r.all[i].Open(r.t.Context(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		r.t.Fatal(err)
	}
	s.Use()
	s.SetInitialized()
	if err := s.Release(); err != nil {
		r.t.Fatal(err)
	}
	return s.ID()
}

// at returns the session at replica i.
func (r *replicas) at(i int, id string) *Session {
	r.t.Helper()
	s, err := r.all[i].Find(r.t.Context(), id)
	if s == nil || err != nil {
		r.t.Fatalf("the session is not found at %d: %v", i, err)
	}
	return s
}

// post posts messages at replica i, each of which must be accepted.
func (r *replicas) post(i int, id string, messages ...string) {
	r.t.Helper()
	for _, m := range messages {
		if sent, err := r.at(i, id).Route(r.t.Context(), []byte(`"`+m+`"`)); !sent || err != nil {
			r.t.Errorf("post %s at %d: %v, %v", m, i, sent, err)
		}
	}
}

// holders returns the replicas that listen.
func (r *replicas) holders(id string) (list []int) {
	for i, m := range r.all {
		if s := m.Local(id); s != nil {
			if s.ownsStream() {
				list = append(list, i)
			}
		}
	}
	return list
}

// get is a stream that a client has opened.
type get struct {
	sink
	client
	opens  atomic.Int64
	opened chan struct{} // closed by the first of opens, unless nil
	done   chan struct{} // closed when Serve has returned
	err    error
	left   bool
	primed []string      // ids of events without a message
	full   chan struct{} // nil, or what a client that does not read holds up
	// abandoned is how many messages its client has, as it said when it came back elsewhere; -1
	// if it has not.
	abandoned int
}

// abandon notes that the client has come back elsewhere, after the event last.
func (g *get) abandon(last string) {
	g.abandoned = slices.Index(g.ids(), last) + 1
}

// client is what a stream waits for: to be woken, or that its client leaves.
type client struct {
	wakes chan struct{}
	gone  chan struct{} // closed when it leaves
}

func newClient() client { return client{make(chan struct{}, 1), make(chan struct{})} }

func (c client) Waker() func() {
	return func() {
		select {
		case c.wakes <- struct{}{}:
		default:
		}
	}
}

func (c client) Wait() bool {
	select {
	case <-c.wakes:
		return true
	case <-c.gone:
		return false
	}
}

func (g *get) Event(id string, message []byte) error {
	if g.full != nil && message != nil {
		<-g.full
	}
	if message != nil {
		return g.sink.Event(id, message)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.primed = append(g.primed, id)
	return nil
}

func (g *get) Open() error {
	if g.opens.Add(1) == 1 && g.opened != nil {
		close(g.opened)
	}
	return nil
}

// get opens a stream at replica i.
func (r *replicas) get(i int, id, last string) *get {
	r.t.Helper()
	return serve(r.at(i, id), last)
}

// serve opens a stream of a session.
func serve(s *Session, last string) *get {
	g := &get{client: newClient(), done: make(chan struct{}), opened: make(chan struct{}), abandoned: -1}
	go func() {
		defer close(g.done)
		g.err = s.ServeStream(last, g)
	}()
	return g
}

// over reports whether Serve has returned.
func (g *get) over() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// leave ends a stream from the side of its client.
func (g *get) leave() {
	if !g.left {
		g.left = true
		close(g.gone)
	}
	<-g.done
}

// breakOff makes the client unreachable, which nothing notices.
func (g *get) breakOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
}

// messages returns what a stream has brought, in its order, and ids are the ids.
func (g *get) messages() (messages, ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, event := range g.got {
		id, message, _ := strings.Cut(event, "=")
		messages, ids = append(messages, strings.Trim(message, `"`)), append(ids, id)
	}
	return messages, ids
}

// wantMessages wants a stream to have brought these.
func (g *get) wantMessages(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got, _ := g.messages(); !slices.Equal(got, want) {
		t.Errorf("the stream has brought %q, want %q", got, want)
	}
}

// team is replicas with one session, opened at 0. Each has a store of its own in front of that
// of all.
type team struct {
	*replicas
	stores []*shaky
	id     string
}

// together runs a test, in a bubble, with a team of three.
func together(t *testing.T, fn func(t *testing.T, f *team)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &team{}
		f.replicas = newReplicasWith(t, 3, newShaky(), func(_ int, c *Config) {
			f.stores = append(f.stores, c.Store.(*shaky))
		})
		f.id = f.open(0)
		defer f.close()
		fn(t, f)
	})
}

// kill makes one of them gone, which keeps nothing in the store.
func (f *team) kill(i int) {
	f.gone[i] = true
	f.office[i].Close(f.t.Context())
	f.stores[i].nowhere.Store(true)
	f.all[i].Close(context.Background(), core.ErrSessionClosed)
}

// here returns the session as one of them has it.
func (f *team) here(i int) *Session {
	f.t.Helper()
	return f.at(i, f.id)
}

// event returns the id of an event of the newest stream of 0, which answers request 7.
func (f *team) event(n int) string {
	h := &f.all[0].Local(f.id).history
	return h.idOf(h.numbers.answers.Load(), uint64(n), protocol.NewID(7))
}

// call begins the stream of an answer at 0. Its client has event 1, and leaves.
func (f *team) call() core.AnswerStream {
	f.t.Helper()
	return f.here(0).OpenStream(&sink{broken: true}, protocol.NewID(7))
}

// follow begins the stream of an answer at 0, whose client comes back at 1.
func (f *team) follow() (core.AnswerStream, *get) {
	f.t.Helper()
	return f.call(), f.back(1, f.event(1))
}

// back has the client come back at one of them.
func (f *team) back(i int, last string) *get {
	f.t.Helper()
	g := f.get(i, f.id, last)
	synctest.Wait()
	return g
}

// wants wants these events, by their numbers, and nothing else.
func (g *get) wants(t *testing.T, events ...string) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	var got []string
	for _, e := range g.got {
		id, message, _ := strings.Cut(e, "=")
		event, _ := parseEventID(id)
		got = append(got, fmt.Sprint(event.event, "=", message))
	}
	if !slices.Equal(got, events) {
		t.Errorf("%d events %.1000q, want %d %.1000q", len(got), got, len(events), events)
	}
	g.got = nil
}

// ended wants the stream to be over, or not.
func (g *get) ended(t *testing.T, want bool) {
	t.Helper()
	synctest.Wait()
	switch {
	case g.over() && !want:
		t.Errorf("the stream is over: %v", g.err)
	case !g.over() && want:
		t.Error("the stream is not over")
	}
}
