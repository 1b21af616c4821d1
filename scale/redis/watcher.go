package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/talaria-go/mcp/scale"
)

// watcher is a scale.Watcher with a connection of its own, from the first Add on.
// One goroutine keeps the connection and sends all that changes what it is
// subscribed to, one command at a time for each subject: so the order of commands
// is that of what is wanted, and who has just added a subject is not made deaf by
// the one who removed it. Another goroutine calls fn and gap.
type watcher struct {
	engine *engine
	fn     func(subject string, m scale.Message)
	gap    func()
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  sync.WaitGroup
	todo   chan struct{} // has an element if subjects may have changed
	wake   chan struct{} // has one if there may be something to call

	avoided  string    // address of the last machine that sent nothing; only connect uses it
	deafened time.Time // when that was noticed
	machines []string  // addresses of the last topology with several machines
	echo     *echo     // nil without a cluster
	mu       sync.Mutex
	subjects map[string]*subject
	changed  []string // subjects to subscribe or unsubscribe at the engine
	open     int      // subjects that are subscribed and not confirmed yet
	lost     bool     // something may be missing, and gap is to be called when all is subscribed
	deaf     bool     // the connection is to be given up
	waiting  []hint
	size     int  // of waiting
	missed   bool // gap is to be called
}

// subject is one that is watched, or was.
type subject struct {
	count int // how often it was added
	state subscription
	ready chan struct{} // is closed while it is subscribed
}

// subscription is the last command for a subject on the present connection.
type subscription uint8

const (
	absent        subscription = iota // nothing, or that it is not wanted any more
	subscribing                       // that it is wanted, which it has not confirmed
	subscribed                        // that it is wanted
	unsubscribing                     // that it is not wanted, which it has not confirmed
)

// hint is a message for fn.
type hint struct {
	subject string
	message scale.Message
}

const (
	maxWaiting = 4 << 20 // bytes of hints that wait for fn
	overhead   = 64      // what a hint counts for besides its length
	batch      = 500     // subjects in one command
)

// poke makes who receives from a channel look again.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Add implements scale.Watcher.
func (w *watcher) Add(ctx context.Context, subjects ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	bounded, cancel := w.engine.deadline(ctx)
	defer cancel()
	var wait []*subject
	w.mu.Lock()
	for _, name := range subjects {
		s := w.subjects[name]
		if s == nil {
			s = &subject{ready: make(chan struct{})}
			w.subjects[name] = s
		}
		s.count++
		wait = append(wait, s)
		w.changed = append(w.changed, name)
	}
	w.mu.Unlock()
	poke(w.todo)
	for _, s := range wait {
		if err := w.await(bounded, s); err != nil {
			w.Remove(subjects...)
			if ctx.Err() != nil {
				return fmt.Errorf("redis: %w", ctx.Err())
			}
			return err
		}
	}
	return nil
}

// await waits until a subject is subscribed. If the connection is lost later on,
// gap tells.
func (w *watcher) await(ctx context.Context, s *subject) error {
	w.mu.Lock()
	ready := s.ready
	w.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-w.ctx.Done():
		return errors.New("redis: the Watcher is closed")
	case <-ctx.Done():
		return fmt.Errorf("%w: it has not confirmed a subscription", scale.ErrUnavailable)
	}
}

// Remove implements scale.Watcher.
func (w *watcher) Remove(subjects ...string) {
	w.mu.Lock()
	for _, name := range subjects {
		if s := w.subjects[name]; s != nil && s.count > 0 {
			s.count--
			w.changed = append(w.changed, name)
		}
	}
	w.mu.Unlock()
	poke(w.todo)
}

// Close implements scale.Watcher.
func (w *watcher) Close() {
	w.engine.mu.Lock()
	delete(w.engine.watchers, w)
	w.engine.mu.Unlock()
	w.cancel()
	w.ended.Wait()
}

// connect keeps a connection while there are subjects.
func (w *watcher) connect() {
	for pause := time.Duration(0); ; {
		select {
		case <-w.ctx.Done():
			return
		case <-w.todo:
		}
		if !w.wanted() {
			continue
		}
		begun := time.Now()
		w.serve()
		poke(w.todo) // to connect again
		if pause = min(2*pause+10*time.Millisecond, time.Second); time.Since(begun) > 2*time.Second {
			pause = 0
		}
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// wanted reports whether there is anything to watch, besides the echo.
func (w *watcher) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.subjects) > 1 || w.echo == nil && len(w.subjects) > 0
}

// isDeaf reports whether the connection is to be given up.
func (w *watcher) isDeaf() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deaf
}

// suspect has gap called: at once, or over another connection.
func (w *watcher) suspect(deaf bool) {
	w.mu.Lock()
	w.lost, w.deaf = true, w.deaf || deaf
	w.mu.Unlock()
	poke(w.todo)
}

// serve serves one connection until it is lost, or the watcher is closed.
func (w *watcher) serve() {
	client, machine, hangUp := w.dedicate()
	if client == nil {
		return
	}
	defer hangUp()
	lost := client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: w.receive, OnSubscription: w.confirm})
	defer w.disconnected()
	for {
		add, remove := w.plan()
		err := w.tell(client, add, remove)
		if w.isDeaf() {
			w.avoided, w.deafened = machine, time.Now()
		}
		if err != nil || w.isDeaf() {
			return
		}
		w.resumed()
		select {
		case <-w.ctx.Done():
			return
		case <-lost:
			return
		case <-w.todo:
		}
	}
}

// dedicate returns a connection for subscriptions, the address of its machine, and what
// ends it. In a cluster it is any machine except the last that sent nothing. If the
// topology has no other machine, it may be the machine's own: then it is one of the
// topology before. There is no connection if none of those can be reached.
func (w *watcher) dedicate() (client rueidis.DedicatedClient, address string, hangUp func()) {
	if !w.engine.cluster {
		client, _ = w.engine.client.Dedicate()
		return client, "", client.Close
	}
	nodes := w.engine.client.Nodes()
	if len(nodes) > 1 {
		w.machines = slices.Collect(maps.Keys(nodes))
	}
	for address = range nodes {
		if address != w.avoided {
			break
		}
	}
	if address != "" && (address != w.avoided || time.Since(w.deafened) > 4*topologyEvery) {
		client, _ = nodes[address].Dedicate()
		return client, address, client.Close
	}
	for _, other := range w.machines {
		if other == w.avoided || w.ctx.Err() != nil {
			continue
		}
		opt := w.engine.opt
		opt.InitAddress, opt.ForceSingleClient = []string{other}, true
		alone, err := rueidis.NewClient(opt)
		if err == nil {
			client, _ := alone.Dedicate()
			return client, other, func() { client.Close(); alone.Close() }
		}
		if alone != nil {
			alone.Close()
		}
	}
	return nil, "", nil
}

// plan returns the commands that the engine needs, and notes them as sent.
func (w *watcher) plan() (add, remove []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.changed {
		s := w.subjects[name]
		switch {
		case s == nil:
		case s.count > 0 && s.state == absent:
			s.state = subscribing
			w.open++
			add = append(add, name)
		case s.count == 0 && s.state == subscribed:
			s.state, s.ready = unsubscribing, make(chan struct{})
			remove = append(remove, name)
		case s.count == 0 && s.state == absent:
			delete(w.subjects, name)
		}
	}
	w.changed = nil
	return add, remove
}

// tell tells the engine.
func (w *watcher) tell(client rueidis.DedicatedClient, add, remove []string) error {
	for ; len(add) > 0; add = add[min(batch, len(add)):] {
		err := w.do(client, client.B().Subscribe().Channel(w.channels(add)...).Build())
		if err != nil {
			return err
		}
	}
	for ; len(remove) > 0; remove = remove[min(batch, len(remove)):] {
		err := w.do(client, client.B().Unsubscribe().Channel(w.channels(remove)...).Build())
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) do(client rueidis.DedicatedClient, command rueidis.Completed) error {
	ctx, cancel := w.engine.deadline(w.ctx)
	defer cancel()
	return client.Do(ctx, command).Error()
}

// channels returns the channels of the first subjects.
func (w *watcher) channels(subjects []string) []string {
	channels := make([]string, min(batch, len(subjects)))
	for i := range channels {
		channels[i] = w.engine.prefix + subjects[i]
	}
	return channels
}

// confirm notes that the engine has executed a command. It must not wait, as the connection
// would wait too.
func (w *watcher) confirm(c rueidis.PubSubSubscription) {
	name := strings.TrimPrefix(c.Channel, w.engine.prefix)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.subjects[name]
	switch {
	case s == nil:
		return
	case c.Kind == "subscribe" && s.state == subscribing:
		s.state = subscribed
		close(s.ready)
		w.open--
	case c.Kind == "unsubscribe" && s.state == unsubscribing:
		s.state = absent
	}
	w.changed = append(w.changed, name)
	poke(w.todo)
}

// disconnected notes that the connection is gone, and with it all subscriptions.
func (w *watcher) disconnected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.changed, w.deaf = 0, nil, false
	for name, s := range w.subjects {
		if s.state == subscribed {
			s.ready = make(chan struct{})
			w.lost = true
		}
		s.state = absent
		w.changed = append(w.changed, name)
	}
}

// resumed has gap called, if a connection was lost and all is subscribed again.
func (w *watcher) resumed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost && w.open == 0 && len(w.changed) == 0 {
		w.lost, w.missed = false, true
		poke(w.wake)
	}
}

// receive notes a message. It must not wait, as the connection would wait too.
func (w *watcher) receive(m rueidis.PubSubMessage) {
	name := strings.TrimPrefix(m.Channel, w.engine.prefix)
	message, ok := parseHint(m.Message)
	if !ok {
		return // of another prefix
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.subjects[name]; s == nil || s.count == 0 {
		return
	}
	if w.echo != nil && name == w.echo.subject {
		w.echo.receive(message)
		return
	}
	if cost := len(message.Data) + overhead; w.size+cost > maxWaiting {
		w.waiting, w.size, w.missed = nil, 0, true
	} else {
		w.waiting = append(w.waiting, hint{name, message})
		w.size += cost
	}
	poke(w.wake)
}

// parseHint reads what scripts publish: "m" with Rev, Prev and data of a message,
// "k" with Rev, Prev, part and name of an entry, or no part and the name of a box.
func parseHint(text string) (m scale.Message, ok bool) {
	if text == "" {
		return m, false
	}
	kind := text[0]
	rev, rest, _ := strings.Cut(text[1:], " ")
	prev, rest, found := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(rev, 10, 64)
	p, failed := strconv.ParseInt(prev, 10, 64)
	if !found || err != nil || failed != nil {
		return m, false
	}
	m.Rev, m.Prev = scale.Rev(n), scale.Rev(p)
	switch kind {
	case 'm':
		m.Data = []byte(rest)
		return m, true
	case 'k':
		m.Key.Partition, m.Key.Name, found = strings.Cut(rest, " ")
		return m, found
	}
	return m, false
}

// call calls fn and gap until the watcher is closed.
func (w *watcher) call() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.wake:
		}
		for next := w.next(); next != nil; next = w.next() {
			next()
		}
	}
}

// next returns what is to be called next, nil if there is nothing now.
func (w *watcher) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
		return nil
	case w.missed:
		w.missed = false
		return w.gap
	case len(w.waiting) == 0:
		w.waiting = nil
		return nil
	}
	h := w.waiting[0]
	w.waiting[0] = hint{}
	w.waiting = w.waiting[1:]
	w.size -= len(h.message.Data) + overhead
	return func() { w.fn(h.subject, h.message) }
}
