package session

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/scale"
)

// Defaults of Config.
const (
	defaultHistory = 16 << 10        // bytes
	noLimit        = math.MaxInt / 4 // leaves room for arithmetic
)

// Config limits the sessions of a Manager. The options of the server have the
// defaults.
type Config struct {
	IdleTimeout time.Duration // unused for so long, a session ends; 0 means 30 minutes, negative never
	MaxSessions int           // sessions at a time; 0 means no limit
	// MaxPerPrincipal bounds the sessions of one principal; 0 means a tenth of MaxSessions,
	// at least one, and negative means no limit. Anonymous clients are one principal
	// without this limit. They make room for others while they have more than half. If
	// there is no room, sessions without a request after initialize end first, the oldest
	// first.
	MaxPerPrincipal int
	// History is how many bytes of events each session keeps for a client that
	// comes back to a broken stream; the last event is kept beyond that, if it
	// has no more than MaxEvent. A session that is not used drops them between
	// half of Idle and the whole. 0 means 16 KiB; negative turns coming back off.
	History int
	// MaxEvent is how many bytes an event may have to be kept. A client that
	// comes back for a longer one is refused, and told why. 0 means no limit.
	MaxEvent int
	// Memory bounds the messages of all sessions, in bytes: those in histories and those
	// that wait for streams. If it is full, sessions drop their histories, the least
	// recently added to first. Then unsolicited messages are dropped, first those of the
	// client that has read nothing for longest. Waiting messages have three quarters of
	// Memory. List changes are never dropped.
	//
	// A named principal has a tenth, at least leastShare, unless MaxPerPrincipal is
	// negative; anonymous clients have half once there is one. 0 means no limit.
	Memory int
	// URIMemory bounds the URIs of the subscriptions of all sessions, in bytes, a tenth
	// for each principal; beyond it no session subscribes. 0 means no limit.
	URIMemory int
	// ClientMemory bounds the client information above 2 KiB per session, in bytes, a
	// tenth for each principal. If it is full, sessions without a request after
	// initialize make room. 0 means no limit.
	ClientMemory int
	// AnswerMemory bounds the answers of disconnected clients in the Store, in bytes, a
	// tenth for each principal; beyond it none is stored. 0 means no limit.
	AnswerMemory int
	// Store keeps the state of sessions for all replicas. nil means that they
	// are this process's, and end with it. With a Store, Max is about how many
	// there are at all replicas together, MaxPerPrincipal and Memory hold for
	// the copies at each; what was never used after initialize ends after a
	// minute; and sessions that live when the server shuts down live on.
	Store     scale.Store
	Seal      *seal.Sealer // of what Store gets
	ReplicaID string       // the name of this replica, a number above 0 in base 36; no other one ever has it
	// Bus carries messages to the other replicas, so that a client that comes back
	// at another one gets what follows. nil means that it does not.
	Bus *bus.Bus
	// Topics publishes changes of other replicas; nil if there are none. It belongs to the
	// Server, which sends the notifications of a Session.
	Topics *topics.Hub
	// Dropped is called when n messages for a client were dropped: because too many wait for
	// it, or to make room for those of clients that read. It is called once until the
	// client reads again. It may be called by any goroutine; nil is nothing.
	Dropped func(s *Session, n int)
	// OnStoreError receives errors of Store. nil drops them.
	OnStoreError func(error)
	// OnRestoredEnd is called, with the reason, at the end of each session that was
	// restored from the Store, as what Session.OnEnd was given of the others; nil
	// is nothing.
	OnRestoredEnd func(s *Session, reason error)
}

// streamEndRate is how many streams end in a second when a replica shuts down.
const streamEndRate = 2000

// maxBackground is how many sessions use the Store at once for work without a waiting
// client. Requests then find room in it if all clients disconnect or resume at once; by
// default it accepts 60 calls. It also limits how many renewals run at once.
const maxBackground = 32

// Manager holds the HTTP sessions of a server. It is safe for concurrent use.
type Manager struct {
	// mu guards the fields below it but tell, which is set before the Manager is
	// used, and answers. A session in the table has a place in places, and its cost
	// in clients; makeRoom takes both and remove gives them back. Sessions are taken
	// out of the table while mu is held and are closed after that: their end may run
	// the Store's code.

	config  Config
	budget  memoryBudget  // of all sessions
	numbers counters      // if there is a Store
	bounded bool          // the Store bounds its calls by itself
	clock   storeClock    // of the Store
	resumer *resumer      // nil without a Store
	inboxes sync.Map      // hinted, a *Session or *follower that reads a box here, by the box
	places  *share.Shares // sessions
	uris    *share.Shares // bytes of what they subscribed to
	clients *share.Shares // bytes of what clients say of themselves
	ctx     context.Context
	stop    context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*Session
	ending   map[*Session]bool        // those that this replica ends, and that the Store still has
	fresh    list.List                // of *Session, the oldest first: all that were never used, and others
	attached map[*Session]func(error) // sessions of connections, and what ends them
	besides  chan struct{}            // has an element for each that uses the Store in the background
	sweep    *time.Timer              // runs while there are sessions; nil else
	sweeping sync.WaitGroup
	tell     func(id string, ended bool)
	contact  replica.Health // with the Store

	retries  sync.Mutex // guards retrying; the last in the order
	retrying int        // goroutines of retry
	retried  *sync.Cond // retrying is 0
}

// NewManager returns a Manager without sessions.
func NewManager(config Config) *Manager {
	if config.IdleTimeout == 0 {
		config.IdleTimeout = defaultIdle
	}
	config.MaxSessions, config.MaxEvent, config.Memory = cmp.Or(config.MaxSessions, noLimit), cmp.Or(config.MaxEvent, noLimit), cmp.Or(config.Memory, noLimit)
	config.URIMemory, config.ClientMemory, config.AnswerMemory = cmp.Or(config.URIMemory, noLimit), cmp.Or(config.ClientMemory, noLimit), cmp.Or(config.AnswerMemory, noLimit)
	if config.MaxPerPrincipal == 0 {
		config.MaxPerPrincipal = max(1, config.MaxSessions/10)
	}
	if config.History == 0 {
		config.History = defaultHistory
	}
	m := &Manager{config: config, sessions: make(map[string]*Session), ending: make(map[*Session]bool), attached: make(map[*Session]func(error))}
	m.clock.zero, m.retried = time.Now(), sync.NewCond(&m.retries)
	m.contact.Lease, m.besides = endLeaseTTL, make(chan struct{}, maxBackground)
	m.budget.setLimit(config.Memory, config.MaxPerPrincipal)
	m.places = share.New("sessions", config.MaxSessions, config.MaxPerPrincipal, share.Always)
	m.uris = share.New("bytes of URIs that clients subscribed to", config.URIMemory, min(config.MaxPerPrincipal, 0), share.Half)
	m.clients = share.New("bytes of what clients say of themselves", config.ClientMemory, min(config.MaxPerPrincipal, 0), share.Half)
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	if config.Store != nil {
		m.resumer, m.bounded = newResumer(m), bus.HasTimeout(config.Store)
		if config.Bus != nil {
			config.Bus.Handle(msgFollow, m.resumer.handleMessage)
		}
	}
	return m
}

// StartReplication renews the sessions in the Store and ends idle ones, on goroutines that
// end with Close. It calls tell when a session has ended here or has other subscriptions,
// so that the caller notifies the other replicas. It must be called once, and needs a
// Store.
func (m *Manager) StartReplication(tell func(id string, ended bool)) {
	m.tell = tell
	m.sweeping.Go(func() { m.everyTick(m.renew) })
	m.sweeping.Go(m.persistLoop)
	m.sweeping.Go(m.watchInboxes)
}

// Open makes a session with a new id of 128 random bits. The error is
// core.ErrTooManySessions, or that of the Store.
func (m *Manager) Open(ctx context.Context, c core.ClientInfo) (*Session, error) {
	s := New(m.ctx, replica.NewID(), c)
	if m.config.Store != nil {
		if err := m.insertNew(ctx, s); err != nil {
			return nil, err
		}
	}
	there, err := m.add(s)
	if err != nil && m.config.Store != nil {
		// If this fails it ends by itself, as one that was never used.
		_, _ = m.putEntry(context.WithoutCancel(ctx), scale.Write{Key: s.key, Prev: scale.Rev(s.rev.Load())})
	}
	return there, err
}

// add takes a session in; if there is one of that id, it returns that. When
// there is no room, another one may have to end, or, if the Store has it, the
// copy of another one.
func (m *Manager) add(s *Session) (*Session, error) {
	there, crowded, err := m.insert(s)
	for _, s := range crowded {
		if m.config.Store != nil {
			m.evictCopy(s, errEndedForRoom)
		} else {
			s.Close(errEndedForRoom)
		}
	}
	return there, err
}

// insert is what add does while m.mu is held. crowded
// are those that were taken out of the table and that the caller has to end,
// also if there is an error.
func (m *Manager) insert(s *Session) (there *Session, crowded []*Session, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, core.ErrSessionClosed
	}
	if there, ok := m.sessions[s.id]; ok {
		return there, nil, nil
	}
	if crowded, err = m.evict(s); err != nil {
		return nil, crowded, err
	}
	s.countIn(m)
	if m.config.Store != nil {
		s.save = func(s *Session) error { return m.save(context.WithoutCancel(m.ctx), s) }
		s.assigns.OnUpdate(func(key any, fn func(old any, ok bool) any) (any, error) { return m.updateValue(s, key, fn) })
		s.assignIDs(m.config.ReplicaID, &m.numbers)
		s.resumer = m.resumer
		s.history.saved, s.history.save = m.resumer.answers, func(answer event) { m.resumer.answers.save(context.WithoutCancel(m.ctx), s, answer) }
		s.inbox = newInbox(m, s)
	}
	m.sessions[s.id], s.fresh = s, m.fresh.PushBack(s)
	m.armIdleTimer()
	return s, crowded, nil
}

// evict takes sessions out of the table until there is room for s and its client
// information. The caller ends these sessions, also after an error. With an error s has no
// room. m.mu is held.
func (m *Manager) evict(s *Session) (crowded []*Session, err error) {
	own := func(other *Session) bool { return other.principal == s.principal }
	out := func(first *Session, format string, args ...any) error {
		if first == nil {
			return fmt.Errorf("%w"+format, append([]any{core.ErrTooManySessions}, args...)...)
		}
		m.remove(first)
		crowded = append(crowded, first)
		return nil
	}
	for most := m.config.MaxPerPrincipal; m.places.Take(s.principal, 1) != nil; {
		if s.principal != "" && most > 0 && m.places.Of(s.principal) >= most { // then no other principal loses a session
			err = out(m.oldestUnused(own), " of this user: %d, which is the limit", most)
		} else {
			err = out(m.evictionCandidate(s.principal), ": %d, which is the limit", m.config.MaxSessions)
		}
		if err != nil {
			return crowded, err
		}
	}
	for {
		full := m.clients.Take(s.principal, s.cost)
		if full == nil {
			return crowded, nil
		}
		if err = out(m.oldestUnused(func(other *Session) bool { return other.cost > 0 && (!full.Own || own(other)) }), ": %w", full); err != nil {
			m.places.Give(s.principal, 1)
			return crowded, err
		}
	}
}

// oldestUnused returns the oldest such session that was never used; nil if there is
// none. m.mu is held.
func (m *Manager) oldestUnused(such func(s *Session) bool) *Session {
	var next *list.Element
	for e := m.fresh.Front(); e != nil; e = next {
		next = e.Next()
		switch s := e.Value.(*Session); {
		case s.wasUsed():
			m.fresh.Remove(e)
		case s.neverUsed() && such(s):
			return s
		}
	}
	return nil
}

// evictionCandidate returns the session that ends first to make room for one of principal,
// or nil. The oldest without a request after initialize comes first. For a named principal,
// the longest idle anonymous session is next, while anonymous clients have more than half
// of the room. m.mu is held.
func (m *Manager) evictionCandidate(principal string) (first *Session) {
	if first = m.oldestUnused(func(*Session) bool { return true }); first != nil {
		return first
	}
	if principal == "" || m.places.Of("") <= m.config.MaxSessions/2 {
		return nil
	}
	var oldest time.Time
	for _, s := range m.sessions {
		if s.principal != "" {
			continue
		}
		if used, idle := s.idleSince(); idle && (first == nil || used.Before(oldest)) {
			first, oldest = s, used
		}
	}
	return first
}

// remove takes a session out of the table. m.mu is held.
func (m *Manager) remove(s *Session) {
	delete(m.sessions, s.id)
	if len(m.sessions) == 0 {
		m.sessions = make(map[string]*Session) // a map keeps the room of all that it had
	}
	m.fresh.Remove(s.fresh)
	m.clients.Give(s.principal, s.cost)
	m.places.Give(s.principal, 1)
}

// Get returns a session of a principal; nil if it has none with that id. A session of
// another principal is not changed and takes the same time as an unknown id. With a Store,
// the result has the state of the Store. The error is that of the Store, or
// core.ErrTooManySessions if a session of the Store has no room here.
func (m *Manager) Get(ctx context.Context, principal, id string) (*Session, error) {
	return m.find(ctx, id, func(owner string) bool { return owner == principal })
}

// Find is Get for the server's own code, which may use any session.
func (m *Manager) Find(ctx context.Context, id string) (*Session, error) {
	return m.find(ctx, id, anyOwner)
}

// anyOwner accepts every principal, for the server's own code.
func anyOwner(string) bool { return true }

// find finds a session of those owners. Nothing of any other is used, or kept here.
func (m *Manager) find(ctx context.Context, id string, whose func(owner string) bool) (*Session, error) {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	foreign := s != nil && !whose(s.principal)
	switch {
	case m.config.Store == nil && foreign:
		return nil, nil
	case m.config.Store == nil, s == nil && !replica.IsID(id): // the Store receives only valid ids
		return s, nil
	case foreign: // while the Store is unavailable, the response must not reveal that the session is here
		_, err := m.existsInStore(ctx, id, s)
		return nil, err
	case s != nil:
		s.touch() // so that it stays while the Store is asked
	}
	found, err := m.load(ctx, id, s, whose)
	if found != nil && found.Ended() { // it has not stayed: there was no room, or the session has ended
		return m.load(ctx, id, nil, whose)
	}
	return found, err
}

// reportError tells of an error of the Store. The Store, OnStoreError, and what a
// session keeps are users' code, which runs on goroutines of its own: sessions
// are saved, and end, on goroutines that have more to do.
func (m *Manager) reportError(err error) {
	if err != nil && m.config.OnStoreError != nil {
		_ = safely.Apart(func() { m.config.OnStoreError(safely.Known(err)) }) // there is no caller to return it to
	}
}

// end closes a session, for all replicas, and tells whether there was one. The
// error is that of the Store; the session lives on then.
func (m *Manager) end(ctx context.Context, id string, reason error) (ok bool, err error) {
	m.mu.Lock()
	s, ok := m.sessions[id]
	m.mu.Unlock()
	if !ok {
		return false, nil
	}
	if m.config.Store != nil {
		if !s.claimed.CompareAndSwap(false, true) {
			return true, nil // another goroutine here is about to end it
		}
		mine, err := m.acquireEnd(ctx, s, reason)
		if err != nil {
			s.claimed.Store(false)
			return false, err
		}
		if !mine {
			m.evictCopy(s, reason)
			return true, nil
		}
	}
	m.mu.Lock()
	ok = m.sessions[id] == s
	if ok {
		m.remove(s)
	}
	m.mu.Unlock()
	if ok {
		m.finishHere(s, reason)
	}
	return ok, nil
}

// finishHere ends a session that is out of the table already, and, when its last
// request and OnEnd are over, deletes what the Store has of it.
func (m *Manager) finishHere(s *Session, reason error) {
	if m.config.Store != nil {
		m.mu.Lock()
		m.ending[s] = true
		m.mu.Unlock()
		s.mu.Lock()
		s.afterEnd = func() { m.deleteEnded(s) }
		s.mu.Unlock()
	}
	s.Close(reason)
	if m.tell != nil && reason != core.ErrSessionIdle { // then no replica uses it
		m.tell(s.id, true)
	}
}

// AttachConn makes Each find a session that lives with a connection, until detach
// is called. It has no id that Get and Find know, and none of the limits hold.
// Stop calls stop, which ends the connection and with it the session.
func (m *Manager) AttachConn(s *Session, stop func(reason error)) (detach func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attached[s] = stop
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions.topics = m.config.Topics; s.reason == nil {
		s.subscriptions.subscribeAll(s, 0)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.attached, s)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.subscriptions.unsubscribeAll(s, false)
	}
}

// Stop ends a session that the Manager has, be it its own or that of a
// connection. The error is that of the Store.
func (m *Manager) Stop(s *Session, reason error) error {
	m.mu.Lock()
	stop, attached := m.attached[s]
	m.mu.Unlock()
	if attached {
		stop(reason)
		return nil
	}
	_, err := m.end(context.WithoutCancel(m.ctx), s.id, reason)
	return err
}

// Each calls fn for every session that there is now. Of those that replicas
// share, these are the ones that have a stream open here.
func (m *Manager) Each(fn func(*Session)) {
	m.mu.Lock()
	list := make([]*Session, 0, len(m.sessions)+len(m.attached))
	for _, s := range m.sessions {
		list = append(list, s)
	}
	for s := range m.attached {
		list = append(list, s)
	}
	m.mu.Unlock()
	for _, s := range list {
		if s.receivesChanges() {
			fn(s)
		}
	}
}

// Count returns how many sessions there are here, of which replicas may have
// others, and of connections, too.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions) + len(m.attached)
}

// EndStreams ends the open streams of the sessions; the sessions stay. It leaves out those
// of connections, where no other stream can take the waiting messages.
//
// With a Store, the clients resume at other replicas, not all at once: 2,000 streams end in
// a second, or more if half of the time of ctx is too short. Each client receives a random
// time within five seconds to reconnect, longer if there are many.
func (m *Manager) EndStreams(ctx context.Context) {
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.sessions))
	m.mu.Unlock()
	if m.config.Store == nil {
		for _, s := range list {
			s.EndStreams(0)
		}
		return
	}
	for _, f := range m.resumer.followers() { // their clients come back, at another replica
		f.stop(reasonDone)
	}
	list = slices.DeleteFunc(list, func(s *Session) bool { return !s.hasStream() })
	took := time.Duration(len(list)) * time.Second / streamEndRate
	spread := max(took, 5*time.Second)
	if deadline, ok := ctx.Deadline(); ok {
		took = min(took, time.Until(deadline)/2)
	}
	const some = streamEndRate / 100
	for i, s := range list {
		s.EndStreams(time.Millisecond + rand.N(spread))
		if i%some == some-1 {
			_ = pause.For(ctx, took*some/time.Duration(len(list))) // the rest ends at once
		}
	}
}

// Close closes every session for that reason and opens no more. Sessions that
// a Store has are only let go. A request that has not returned does not hold up the
// end of its session.
//
// What ends with a session is users' code, and so is the Store: Close returns when ctx has
// ended, whether or not these have returned, and reports whether they have.
func (m *Manager) Close(ctx context.Context, reason error) bool {
	return inflight.Within(ctx, inflight.Grace, func() { m.close(reason) })
}

// close is Close without an end of its own.
func (m *Manager) close(reason error) {
	if m.resumer != nil {
		m.resumer.close()
		m.renew() // else what was used since the last tick would end too soon
	}
	m.mu.Lock()
	m.closed = true
	sessions, attached := m.sessions, slices.Collect(maps.Keys(m.attached))
	m.sessions = make(map[string]*Session)
	m.fresh.Init()
	if m.sweep != nil && m.sweep.Stop() {
		m.sweeping.Done()
	}
	m.sweep = nil
	m.mu.Unlock()
	if m.resumer != nil {
		m.resumer.answers.saveAll(sessions)
	}
	if m.config.Store != nil {
		m.handOffAll(sessions)
	}
	var ends sync.WaitGroup
	for _, s := range attached {
		ends.Go(s.end(reason, true))
	}
	for _, s := range sessions {
		if m.config.Store != nil {
			s.OnEnd(nil)
		}
		ends.Go(s.end(reason, true)) // one that does not return holds up no other
	}
	ends.Wait()
	m.stop(reason)
	m.sweeping.Wait()
	m.waitRetries()
}

// runInBackground does, by the Store, what no client waits for, when it has its turn. Once the
// Manager is closed nothing is left to do: that has left all sessions.
func (m *Manager) runInBackground(do func()) {
	select {
	case m.besides <- struct{}{}:
		defer func() { <-m.besides }()
		do()
	case <-m.ctx.Done():
	}
}

// handOffAll leaves sessions to other replicas while the Store answers. It saves changes of
// requests that the Store could not take before.
func (m *Manager) handOffAll(sessions map[string]*Session) {
	ctx := context.WithoutCancel(m.ctx)
	var away atomic.Bool // the Store
	ask := func(do func() error) {
		if away.Load() {
			return
		}
		err := do()
		if errors.Is(err, scale.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			away.Store(true)
			err = nil
		}
		m.reportError(err)
	}
	var left sync.WaitGroup
	for _, s := range sessions {
		m.besides <- struct{}{}
		left.Go(func() {
			defer func() { <-m.besides }()
			ask(func() error { return m.save(ctx, s) })
			ask(func() error { return s.inbox.leave(ctx, true) })
		})
	}
	left.Wait()
}

// armIdleTimer arms the one timer that ends idle sessions. persistLoop does with a
// Store. m.mu is held.
func (m *Manager) armIdleTimer() {
	if m.sweep == nil && m.config.IdleTimeout > 0 && m.config.Store == nil && len(m.sessions) > 0 {
		m.sweeping.Add(1)
		m.sweep = time.AfterFunc(m.config.IdleTimeout/2, m.endIdle)
	}
}

// endIdle ends the sessions that were not used for the idle time.
func (m *Manager) endIdle() {
	defer m.sweeping.Done()
	var expired, quiet []*Session
	now := time.Now()
	m.mu.Lock()
	for _, s := range m.sessions {
		used, idle := s.idleSince()
		switch since := now.Sub(used); {
		case idle && since >= m.config.IdleTimeout:
			m.remove(s)
			expired = append(expired, s)
		case idle && since >= m.config.IdleTimeout/2:
			quiet = append(quiet, s)
		}
	}
	m.sweep = nil
	if !m.closed {
		m.armIdleTimer()
	}
	m.mu.Unlock()
	for _, s := range expired {
		s.Close(core.ErrSessionIdle)
	}
	for _, s := range quiet {
		s.history.dropFinished()
	}
}

// retry does what this replica owes to another, again and again for a minute while the
// store does not answer, on a goroutine of its own. When the Manager is closed, retry tries
// once. The mu of a session may be held: who calls retry after Close waits with waitRetries
// when it is not.
func (m *Manager) retry(do func(ctx context.Context) error) {
	ctx := context.WithoutCancel(m.ctx)
	m.countRetry(1)
	go func() {
		defer m.countRetry(-1)
		for begun := time.Now(); ; {
			m.besides <- struct{}{}
			err := do(ctx)
			<-m.besides
			if err == nil || m.ctx.Err() != nil || time.Since(begun) > retryFor {
				m.reportError(err)
				return
			}
			pause.For(m.ctx, retryInterval)
		}
	}()
}

// countRetry counts n goroutines of retry more.
func (m *Manager) countRetry(n int) {
	m.retries.Lock()
	defer m.retries.Unlock()
	if m.retrying += n; m.retrying == 0 {
		m.retried.Broadcast()
	}
}

// waitRetries waits for the goroutines of retry, if the Manager is closed.
func (m *Manager) waitRetries() {
	m.retries.Lock()
	defer m.retries.Unlock()
	for m.ctx.Err() != nil && m.retrying > 0 {
		m.retried.Wait()
	}
}

// lives reports whether a replica is there.
func (m *Manager) lives(ctx context.Context, node string) (there bool, err error) {
	if m.config.Bus != nil {
		there, err = m.config.Bus.IsAlive(ctx, node)
	}
	return there, m.noteUse(err)
}

// watchInboxes makes the streams that read here look when the store notifies of messages,
// until the Manager is closed.
func (m *Manager) watchInboxes() {
	w := m.config.Store.Watch(func(_ string, message scale.Message) {
		if s, ok := m.inboxes.Load(message.Key.Name); ok {
			s.(hinted).hint(message.Rev)
		}
	}, m.hintAll)
	defer w.Close()
	for w.Add(m.ctx, readerSubject(m.config.ReplicaID)) != nil {
		if pause.For(m.ctx, retryInterval) != nil {
			return
		}
	}
	m.hintAll()
	<-m.ctx.Done()
}

// hintAll makes all streams that read here look.
func (m *Manager) hintAll() {
	m.inboxes.Range(func(_, s any) bool { s.(hinted).hint(0); return true })
}

// takeBox changes the reader of a box, or deletes it; see scale.Store.Take.
func (m *Manager) takeBox(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	found, err = m.config.Store.Take(ctx, t)
	return found, m.noteUse(err)
}

// readBox reads a box; see scale.Store.Read.
func (m *Manager) readBox(ctx context.Context, box string, after scale.Rev, reader string) (list []scale.Message, now string, err error) {
	list, now, err = m.config.Store.Read(ctx, box, after, reader)
	return list, now, m.noteUse(err)
}

// appendBox adds to a box; see scale.Store.Append.
func (m *Manager) appendBox(ctx context.Context, p scale.AppendOp) (rev scale.Rev, reader string, err error) {
	rev, reader, err = m.config.Store.Append(ctx, p)
	return rev, reader, m.noteUse(err)
}
