// Package topics notifies the replicas of a server of each other's changes.
//
// A topic is the name of something that changes, such as a list of tools or a resource. Its
// entry in the store has no value; the Rev is the time of the last change. Publish writes
// the entry. Subscribers at all replicas are notified by a hint of the write, or by a poll
// of the entry about every five seconds. Two changes may cause one notification. A repeated
// notification costs a client one read.
//
// # Memory of a replica
//
// A [Hub] uses about 250 bytes and the name for each subscribed topic, and watches the
// subjects of their groups. The entries of one group lie together. A thousand streams of
// one topic cost as much as one. Topics to publish wait while the store is unavailable, up
// to maxPending.
//
// # Checkpoints
//
// A subscriber that leaves takes a checkpoint: a time of the store's clock; see
// [Hub.Checkpoint]. At its next replica it is notified of all changes since. A checkpoint
// is not the time of leaving, because hints may have been lost until then. It is the time
// of the last poll whose changes were all delivered, less the skew of the engine's clocks.
//
// # Nothing is lost
//
//   - A change during Subscribe: the group is watched before the entry is read, so one
//     of both shows it.
//   - A change here during Subscribe here: existing subscribers are notified before the
//     entry is written. A new subscriber with a checkpoint is notified at once. One
//     without has not read anything yet.
//   - A change elsewhere during a change here: hints wait until the store has answered,
//     since its answer identifies the own one.
//   - A write whose reply was lost is repeated, and subscribers here are notified
//     again.
//   - After a gap, and after an outage of the store, everything is read.
//
// # Locks and goroutines
//
// Three goroutines write, read and notify. So a slow store does not delay notifications,
// and a slow rule of visibility, which is users' code, does not delay Publish.
//
// Hub.mu is held for short steps without waiting. Subscribe and Unsubscribe may be called
// with locks held for which [Config.OnChange] waits: the hub calls that on its own
// goroutine, without a lock.
package topics

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const (
	partitions       = 64                     // parts of the store, over which topics are spread
	batchDelay       = 5 * time.Millisecond   // time after a change in which others join its write
	maxPolled        = 1024                   // topics of one look: where there are more, they take turns
	batchSize        = 256                    // entries that are read, or written, at once
	retryInterval    = 250 * time.Millisecond // time between attempts while the store is unavailable
	topicTTL         = 24 * time.Hour         // a topic is forgotten that was not raised for so long
	maxPending       = 1 << 16                // topics that wait to be raised
	maxBufferedHints = 8                      // hints of a topic while it is being raised here
)

// Config is what a Hub needs.
type Config struct {
	Store     scale.Store
	Seal      *seal.Sealer
	ReplicaID string // the name of this replica; no other one ever has it
	// IsAlive reports whether the replica of a name is there. See bus.Bus.
	IsAlive func(ctx context.Context, node string) (bool, error)
	// ListDigests returns a digest of each list that this replica offers, by its topic; nil
	// until it serves.
	ListDigests func() map[string]string
	// StoreTime returns the time of the store's clock, or a little less; 0 if that is
	// not known.
	StoreTime func() scale.Rev
	// OnChange is called with a subscribed topic that another replica has published. If it
	// returns false, it is called again soon.
	OnChange func(topic string) (ok bool)
	// OnMissed is called with a subscriber that joined after a change of the topic that it
	// has not seen.
	OnMissed func(who any, topic string)
	// OnError is called when the store does not answer, once until it does. It may be nil.
	OnError func(err error)
}

// Hub is the topics of one replica. It is safe for concurrent use.
type Hub struct {
	config  Config
	fleet   inventory
	contact replica.Health // with the store
	watcher scale.Watcher
	ctx     context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup
	last    chan context.Context // the writer's last round

	write, read, notify chan struct{} // wake the three goroutines; have room for one

	mu          sync.Mutex
	topics      map[scale.Key]*topic
	groups      map[string]int         // topics by their part
	unread      map[scale.Key]struct{} // of those, not read since they were joined
	publishing  map[string]struct{}
	updated     map[string]struct{}        // topics that others have raised
	notices     map[pendingNotice]struct{} // notices of changes before a subscriber joined
	noticeCount map[any]int                // number of these of each subscriber, with those in delivery
	gap         bool                       // hints may be missing
	polledAt    scale.Rev                  // time up to which changes are delivered, or in updated
	notifiedAt  scale.Rev                  // time up to which changes are delivered
	storeDown   bool                       // the store does not answer, or has not yet
	probed      bool                       // it has been asked
	starting    bool                       // this replica begins to serve

	// Only the goroutine that reads uses these.
	watched    map[string]bool
	round      []scale.Key // topics whose turn in this look is still to come
	roundStart scale.Rev   // when the round began
}

// topic is one with a subscriber here.
type topic struct {
	name  string
	joins int
	from  scale.Rev // the first read notifies of changes since
	known scale.Rev // when it was raised last, as far as is known here

	// Subscribers here are notified before a change here is written, but other replicas may
	// publish it at the same time.
	flying bool            // it is being raised here
	held   []scale.Message // hints that came during the write
	own    scale.Rev       // of the last raise here
	before scale.Rev       // time up to which others' changes before own are delivered
}

// New makes a Hub.
func New(c Config) *Hub {
	h := &Hub{
		config: c, last: make(chan context.Context, 1),
		write: make(chan struct{}, 1), read: make(chan struct{}, 1), notify: make(chan struct{}, 1),
		topics: make(map[scale.Key]*topic), groups: make(map[string]int), unread: make(map[scale.Key]struct{}),
		publishing: make(map[string]struct{}), updated: make(map[string]struct{}), notices: make(map[pendingNotice]struct{}), noticeCount: make(map[any]int), watched: make(map[string]bool),
	}
	h.fleet.hub, h.storeDown, h.contact.Lease = h, true, replica.DeadAfter
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// MarkServing notes that this replica begins to serve: ListDigests returns digests from now on.
func (h *Hub) MarkServing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting = true
	signal(h.read)
}

// publishEverywhere publishes a topic whose subscribers here have not been notified either.
func (h *Hub) publishEverywhere(name string) {
	_ = h.Publish(name) // there is room for the few lists, or else the log has it of others
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updated[name] = struct{}{}
	signal(h.notify)
}

// Start starts the goroutines of the Hub. It is called once.
func (h *Hub) Start() {
	h.watcher = h.config.Store.Watch(h.onHint, h.onGap)
	h.ended.Go(h.publishLoop)
	h.ended.Go(h.pollLoop)
	h.ended.Go(h.notifyAll)
}

// Close raises what waits to be raised, and ends the Hub, which must have been
// started. ctx bounds how long that takes. It may be called again.
func (h *Hub) Close(ctx context.Context) {
	_ = h.fleet.withdraw(ctx) // or others find out
	select {
	case h.last <- ctx:
	default: // it was closed before
	}
	h.stop()
	ended := make(chan struct{})
	go func() {
		h.ended.Wait()
		h.watcher.Close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // OnChange does not return
	}
}

// ListTopics are the topics of lists: the methods of their notifications.
var ListTopics = append(slices.Clone(SessionTopics[:]), wire.MethodEventsChanged)

// SessionTopics are those of ListTopics that clients of sessions are notified of.
var SessionTopics = [...]string{protocol.MethodToolsChanged, protocol.MethodResourcesChanged, protocol.MethodPromptsChanged}

// ResourceTopic returns the topic of the resource at uri.
func ResourceTopic(uri string) string { return resourcePrefix + uri }

// ResourceURI returns the URI if a topic is that of a resource.
func ResourceURI(topic string) (uri string, ok bool) { return strings.CutPrefix(topic, resourcePrefix) }

// resourcePrefix is the beginning of the topics of resources.
const resourcePrefix = protocol.MethodResourceUpdated + " "

// topicKey returns where a topic is.
func topicKey(name string) scale.Key { return replica.StoreKey("topic", name, partitions) }

// signal wakes a goroutine.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it is about to look
	}
}

// Publish notifies the subscribers of the topic at other replicas. It does not wait; the
// topic is kept while the store is unavailable. The error is ErrFull if there is no room.
func (h *Hub) Publish(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, waits := h.publishing[name]; !waits && len(h.publishing) >= maxPending {
		return ErrFull
	}
	h.publishing[name] = struct{}{}
	signal(h.write)
	return nil
}

// ErrFull is the error of raising a topic while there is no room for it.
var ErrFull = errors.New("topics: as many changes wait for the store as there may, and other replicas do not hear of this one")

// Subscribe makes OnChange be called for the topic, until Unsubscribe was called as often.
// since is the time up to which the subscriber has all changes; 0 is now. For a later
// change OnMissed is called, or OnChange if the Hub detects it later.
func (h *Hub) Subscribe(who any, name string, since scale.Rev) {
	h.subscribe(who, name, topicKey(name), since)
}

// Watch is Subscribe, from now on, for a topic whose entry another package writes. Its writes
// notify the subject that is the Partition. Publish is not for such a topic.
func (h *Hub) Watch(name string, key scale.Key) { h.subscribe(nil, name, key, 0) }

func (h *Hub) subscribe(who any, name string, key scale.Key, since scale.Rev) {
	now := h.safeTime()
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil {
		t = &topic{name: name, from: now}
		h.topics[key] = t
		h.groups[key.Partition]++
		h.unread[key] = struct{}{}
		signal(h.read)
	}
	t.joins++
	_, unread := h.unread[key]
	_, waits := h.publishing[name] // or flying: subscribers here have been notified, and the store has not
	switch {
	case since == 0 && unread:
		t.from = min(t.from, now)
	case since == 0: // the subscriber has read nothing yet
	case t.known > since || waits || t.flying || since <= now-scale.Rev(topicTTL.Microseconds()):
		l := pendingNotice{who, name}
		if _, there := h.notices[l]; !there { // a subscriber that joins twice is notified once
			h.notices[l] = struct{}{}
			h.noticeCount[who]++
		}
		signal(h.notify)
	case unread:
		t.from = min(t.from, since)
	}
}

// safeTime returns a time of the store's clock before which everything that was
// raised can be seen; 0 if it is not known.
func (h *Hub) safeTime() scale.Rev {
	return max(h.config.StoreTime()-scale.Rev(replica.ClockSkew.Microseconds()), 0)
}

// pendingNotice is a change that a subscriber has not seen yet.
type pendingNotice struct {
	who   any
	topic string
}

// Unsubscribe takes back one Subscribe.
func (h *Hub) Unsubscribe(name string) { h.Unwatch(topicKey(name)) }

// Unwatch takes back one Watch.
func (h *Hub) Unwatch(key scale.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil {
		return
	}
	if t.joins--; t.joins > 0 {
		return
	}
	delete(h.topics, key)
	delete(h.unread, key)
	if h.groups[key.Partition]--; h.groups[key.Partition] == 0 {
		delete(h.groups, key.Partition)
		signal(h.read)
	}
}

// Checkpoint returns the time since which a subscriber that leaves these topics here needs
// notifications: all earlier changes were delivered here. It returns mark, the checkpoint
// of another replica, if there was nothing to deliver and mark is recent, or while OnMissed
// is pending for who.
func (h *Hub) Checkpoint(who any, mark scale.Rev, names ...string) scale.Rev {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notifiedAt <= mark || h.noticeCount[who] > 0 {
		return mark
	}
	if h.notifiedAt-mark > scale.Rev(topicTTL.Microseconds())/2 {
		return h.notifiedAt
	}
	for _, name := range names {
		if t := h.topics[topicKey(name)]; t != nil && t.known > mark {
			return h.notifiedAt
		}
	}
	return mark
}

// onHint takes a hint. It runs on the goroutine of the Watcher.
func (h *Hub) onHint(_ string, m scale.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[m.Key]; t != nil {
		h.observe(t, m)
	}
}

// onGap notes that hints may be missing. It runs on the goroutine of the
// Watcher.
func (h *Hub) onGap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap = true
	signal(h.read)
}

// observe takes the times of the last two changes of a topic, from a hint or a poll. The
// earlier one is 0 if it is not known. h.mu is held.
func (h *Hub) observe(t *topic, m scale.Message) {
	switch {
	case t.flying && m.Rev > t.known:
		if len(t.held) < maxBufferedHints {
			t.held = append(t.held, m)
			return
		}
		h.markChanged(t)
	case m.Rev > t.known:
		t.known = m.Rev
		h.markChanged(t)
	case m.Rev == t.own && t.before > 0 && t.before < m.Prev: // what was raised between is news
		t.before = m.Prev
		h.markChanged(t)
	case m.Rev < t.own && t.before < m.Rev:
		t.before = m.Rev
		h.markChanged(t)
	}
}

// markChanged makes the Hub notify the subscribers of a topic. h.mu is held.
func (h *Hub) markChanged(t *topic) {
	h.updated[t.name] = struct{}{}
	signal(h.notify)
}

// notifyAll calls Config.OnChange and OnMissed.
func (h *Hub) notifyAll() {
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-h.notify:
		}
		h.mu.Lock()
		news, coming, looked := h.updated, h.notices, h.polledAt
		h.updated, h.notices = make(map[string]struct{}), make(map[pendingNotice]struct{})
		h.mu.Unlock()
		maps.DeleteFunc(news, func(name string, _ struct{}) bool { return h.config.OnChange(name) })
		for l := range coming {
			h.config.OnMissed(l.who, l.topic)
			h.markNotified(l.who)
		}
		failed := len(news) > 0
		h.mu.Lock()
		if maps.Copy(h.updated, news); !failed {
			h.notifiedAt = max(h.notifiedAt, looked)
		}
		h.mu.Unlock()
		if failed && h.sleep(retryInterval) {
			signal(h.notify)
		}
	}
}

// markNotified notes that one notice was delivered.
func (h *Hub) markNotified(who any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noticeCount[who]--; h.noticeCount[who] == 0 {
		delete(h.noticeCount, who)
	}
}

// publishLoop raises topics.
func (h *Hub) publishLoop() {
	for {
		select {
		case <-h.ctx.Done():
			for ctx, more := <-h.last, true; more; {
				var err error
				if more, err = h.publishBatch(ctx); err != nil {
					return // it is reported
				}
			}
			return
		case <-h.write:
		}
		for h.ctx.Err() == nil {
			more, err := h.publishBatch(h.ctx)
			pause := batchDelay
			switch {
			case err != nil:
				pause = retryInterval
			case more:
				pause = 0
			}
			if !h.sleep(pause) || !more {
				break
			}
		}
	}
}

// sleep waits, and returns false if the Hub ends first.
func (h *Hub) sleep(pause time.Duration) bool {
	if pause == 0 {
		return h.ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-h.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// publishBatch raises topics that wait, of which there may be more. Those that
// could not be raised wait again.
func (h *Hub) publishBatch(ctx context.Context) (more bool, err error) {
	h.mu.Lock()
	var names []string
	var writes []scale.Write
	for name := range h.publishing {
		if len(names) == batchSize {
			break
		}
		key := topicKey(name)
		if t := h.topics[key]; t != nil {
			t.flying = true
		}
		names = append(names, name)
		writes = append(writes, scale.Write{Key: key, Prev: scale.Any, Value: []byte{}, TTL: topicTTL, Notify: key.Partition})
		delete(h.publishing, name)
	}
	h.mu.Unlock()
	if len(names) == 0 {
		return false, nil
	}
	written, err := h.config.Store.Put(ctx, writes...)
	_ = h.noteUse(err) // which is returned in the end
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range names {
		rev := scale.Rev(0)
		if i < len(written) && written[i].Err == nil {
			rev = written[i].Rev
		}
		if rev == 0 {
			h.publishing[name] = struct{}{}
		}
		if t := h.topics[writes[i].Key]; t != nil && t.flying {
			h.markPublished(t, rev)
		}
	}
	return len(h.publishing) > 0, err
}

// markPublished notes the write of a topic; rev is 0 if it failed, or if that is not known.
// h.mu is held.
func (h *Hub) markPublished(t *topic, rev scale.Rev) {
	held := t.held
	t.flying, t.held = false, nil
	if rev != 0 {
		t.own, t.before, t.known = rev, t.known, max(t.known, rev)
	}
	for _, m := range held {
		h.observe(t, m)
	}
}

// noteUse notes how a use of the store has ended, tells of the first failure, and returns the
// error.
func (h *Hub) noteUse(err error) error {
	h.contact.Record(err == nil)
	h.mu.Lock()
	first := err != nil && (!h.storeDown || !h.probed) && h.ctx.Err() == nil
	h.storeDown, h.probed = err != nil, true
	h.mu.Unlock()
	if first {
		h.reportError(err)
	}
	return err
}

// reportError tells of an error.
func (h *Hub) reportError(err error) {
	if h.config.OnError != nil {
		h.config.OnError(err)
	}
}

// pollLoop reads topics: those that were joined, all after a gap, and in turns.
func (h *Hub) pollLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-h.ctx.Done():
			return
		case <-h.read:
		case <-timer.C:
			due = true
		}
		for h.pollBatch(due) != nil || h.pollInventory(due) != nil {
			due = true // others may have published something during the outage
			if !h.sleep(retryInterval) {
				return
			}
		}
		switch {
		case due && h.config.StoreTime() == 0: // so far there is no Mark
			timer.Reset(retryInterval)
		case due:
			timer.Reset(replica.NextPoll())
		}
	}
}

// pollBatch reads what is to be read now. due tells that it is time to look.
func (h *Hub) pollBatch(due bool) error {
	fresh, err := h.syncWatches()
	if err != nil {
		return err
	}
	now := h.safeTime()
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.unread))
	if len(fresh) > 0 {
		for key := range h.topics { // one may have been read before hints came
			if _, unread := h.unread[key]; !unread && fresh[key.Partition] {
				keys = append(keys, key)
			}
		}
	}
	gap := h.gap
	if gap || due && len(h.round) == 0 {
		h.round, h.roundStart = slices.Collect(maps.Keys(h.topics)), now
	}
	switch {
	case gap:
		keys, h.round = h.round, nil
	case due:
		n := min(len(h.round), maxPolled)
		keys, h.round = append(keys, h.round[:n]...), h.round[n:]
	}
	h.gap = false
	h.mu.Unlock()
	for chunk := range slices.Chunk(keys, batchSize) {
		if err := h.fetch(chunk); err != nil {
			h.mu.Lock()
			h.gap = h.gap || gap
			h.round = nil
			h.mu.Unlock()
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if (gap || due) && len(h.round) == 0 {
		h.polledAt = max(h.polledAt, h.roundStart)
		signal(h.notify)
	}
	return nil
}

// pollInventory looks at what other replicas offer, if it is time to.
func (h *Hub) pollInventory(due bool) error {
	h.mu.Lock()
	due = due || h.starting
	h.starting = false
	h.mu.Unlock()
	if !due {
		return nil
	}
	err := h.fleet.refresh(h.ctx)
	if err != nil && !errors.Is(err, scale.ErrUnavailable) && h.ctx.Err() == nil {
		h.reportError(err) // an early retry would not help
		return nil
	}
	return err
}

// syncWatches makes the Watcher watch the groups of which there are topics, and no
// others, and returns those that it did not watch. It runs before their topics are
// read, so that nothing is missed.
func (h *Hub) syncWatches() (fresh map[string]bool, err error) {
	var more, less []string
	h.mu.Lock()
	for part := range h.groups {
		if !h.watched[part] {
			more = append(more, part)
		}
	}
	for part := range h.watched {
		if h.groups[part] == 0 {
			less = append(less, part)
			delete(h.watched, part)
		}
	}
	h.mu.Unlock()
	h.watcher.Remove(less...)
	if len(more) == 0 {
		return nil, nil
	}
	if err := h.noteUse(h.watcher.Add(h.ctx, more...)); err != nil {
		return nil, err
	}
	fresh = make(map[string]bool, len(more))
	for _, part := range more {
		h.watched[part], fresh[part] = true, true
	}
	return fresh, nil
}

// fetch reads topics.
func (h *Hub) fetch(keys []scale.Key) error {
	looks := make([]scale.GetOp, len(keys))
	h.mu.Lock()
	for i, key := range keys {
		looks[i].Key = key
		if t := h.topics[key]; t != nil {
			looks[i].Known = t.known
		}
	}
	h.mu.Unlock()
	found, err := h.config.Store.Get(h.ctx, looks...)
	if h.noteUse(err) != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range found {
		t := h.topics[e.Key]
		if t == nil {
			continue
		}
		if _, unread := h.unread[e.Key]; unread {
			delete(h.unread, e.Key)
			if e.Rev <= t.from { // all who are here came later
				t.known = max(t.known, e.Rev)
			}
		}
		if e.Rev > t.known {
			h.observe(t, scale.Message{Key: e.Key, Rev: e.Rev})
		}
	}
	return nil
}
