// Package topics tells the replicas of a server of each other's changes.
//
// A topic is a name for what can change, such as a list of tools or a resource.
// In the store it has an entry without a value, whose Rev is when it was raised
// last. Who raises it writes the entry, and those who joined the topic, in
// whichever replica, are told: by a hint of the write, or by a look at the
// entry, which each replica takes about every five seconds. That a topic was
// raised twice may be told once; what is told once too often costs its clients
// a look at what did not change.
//
// # What a replica keeps
//
// A [Hub] has about 250 bytes and the name of each topic that somebody joined
// here, and watches the subjects of the groups that these are in; the entries of
// one group lie together. So a thousand streams of one topic cost what one does.
// Topics to raise wait while the store is away, up to maxWaiting.
//
// # Marks
//
// Who leaves takes a mark along, a time of the store's clock; see [Hub.Mark]. He
// shows it where he joins next, and is told of what was raised since. A mark is
// not the time at which he left: a hint may have been lost until then. It is that
// of the last look that had been told in full, less what the clocks of an engine
// may differ by.
//
// # Nothing is lost
//
//   - What is raised while somebody joins: the group is watched first and the
//     entry read after that. Whatever came before the one shows in the other.
//   - What is raised here while somebody joins here: those who were here have been
//     told before the entry was written. Who comes between, with a mark, is told at
//     once, and without one has not asked yet.
//   - What others raise while it is raised here: the hints wait until the store has
//     answered, since only its answer tells which of them is the own one.
//   - A write whose reply was lost is made again, and is news to those who are here.
//   - After a gap, and when the store is back, all is read.
//
// # Locks and goroutines
//
// There are three goroutines: one writes, one reads, and one tells, so that a slow
// store keeps nobody from hearing, and a slow rule of visibility, which is users'
// code, keeps nobody from raising.
//
// Hub.mu is held for short steps that wait for nothing. Join and Leave may be
// called with locks held under which a [Config.Changed] waits: that is called on a
// goroutine of its own, without a lock.
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
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const (
	slots      = 64                     // parts of the store, over which topics are spread
	gather     = 5 * time.Millisecond   // after some were raised, so long others gather
	mostLooked = 1024                   // topics of one look: where there are more, they take turns
	batch      = 256                    // entries that are read, or written, at once
	again      = 250 * time.Millisecond // between attempts while the store is away
	keep       = 24 * time.Hour         // a topic is forgotten that was not raised for so long
	maxWaiting = 1 << 16                // topics that wait to be raised
	maxHeld    = 8                      // hints of a topic while it is being raised here
)

// Config is what a Hub needs.
type Config struct {
	Store scale.Store
	Seal  *seal.Sealer
	Node  string // the name of this replica; no other one ever has it
	// Lives reports whether the replica of a name is there. See post.Office.
	Lives func(ctx context.Context, node string) (bool, error)
	// Catalogue returns a digest of each list that this replica offers, by its
	// topic; nil while it serves nobody.
	Catalogue func() map[string]string
	// Now returns the time of the store's clock, or a little less; 0 if that is
	// not known.
	Now func() scale.Rev
	// Changed is called with a topic that somebody joined, when another replica
	// has raised it. Where it returns false it is called again soon.
	Changed func(topic string) (ok bool)
	// Told is called with who joined a topic and has not been told that it was
	// raised.
	Told func(who any, topic string)
	// Failed is told when the store does not answer, once until it does. It may
	// be nil.
	Failed func(err error)
}

// Hub is the topics of one replica. It is safe for concurrent use.
type Hub struct {
	config  Config
	fleet   fleet
	contact replica.Contact // with the store
	watcher scale.Watcher
	ctx     context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup
	last    chan context.Context // the writer's last round

	write, read, tell chan struct{} // wake the three goroutines; have room for one

	mu      sync.Mutex
	topics  map[scale.Key]*topic
	groups  map[string]int         // topics by their part
	unread  map[scale.Key]struct{} // of those, not read since they were joined
	raising map[string]struct{}
	news    map[string]struct{} // topics that others have raised
	late    map[late]struct{}   // who has to be told of what, as it was changed before they came
	behind  map[any]int         // how many of those there are of one, with those who are being told
	gap     bool                // hints may be missing
	looked  scale.Rev           // all that was raised before is told, or in news
	synced  scale.Rev           // all that was raised before is told
	away    bool                // the store does not answer, or has not yet
	asked   bool                // it has been asked
	enters  bool                // this replica begins to serve

	// What the goroutine that reads has alone.
	watched map[string]bool
	round   []scale.Key // topics whose turn in this look is still to come
	begun   scale.Rev   // when the round began
}

// topic is one that somebody joined here.
type topic struct {
	name  string
	joins int
	from  scale.Rev // what was raised since is news to somebody, when it is read first
	known scale.Rev // when it was raised last, as far as is known here

	// Who is here was told already when it is raised here; but perhaps others
	// raise it meanwhile.
	flying bool            // it is being raised here
	held   []scale.Message // hints that came meanwhile
	own    scale.Rev       // of the last raise here
	before scale.Rev       // up to here, what others raised before own has been told
}

// New makes a Hub.
func New(c Config) *Hub {
	h := &Hub{
		config: c, last: make(chan context.Context, 1),
		write: make(chan struct{}, 1), read: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		topics: make(map[scale.Key]*topic), groups: make(map[string]int), unread: make(map[scale.Key]struct{}),
		raising: make(map[string]struct{}), news: make(map[string]struct{}), late: make(map[late]struct{}), behind: make(map[any]int), watched: make(map[string]bool),
	}
	h.fleet.hub, h.away, h.contact.Lease = h, true, replica.DeadAfter
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Serve tells that this replica begins to serve: Catalogue is not nil any more.
func (h *Hub) Serve() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.enters = true
	knock(h.read)
}

// raiseForAll raises a topic of which nobody here has been told either.
func (h *Hub) raiseForAll(name string) {
	_ = h.Raise(name) // there is room for the few lists, or else the log has it of others
	h.mu.Lock()
	defer h.mu.Unlock()
	h.news[name] = struct{}{}
	knock(h.tell)
}

// Start begins to tell and to hear. It is called once.
func (h *Hub) Start() {
	h.watcher = h.config.Store.Watch(h.hear, h.missed)
	h.ended.Go(h.writeAll)
	h.ended.Go(h.readAll)
	h.ended.Go(h.tellAll)
}

// Close raises what waits to be raised, and ends the Hub, which must have been
// started. ctx bounds how long that takes. It may be called again.
func (h *Hub) Close(ctx context.Context) {
	_ = h.fleet.leave(ctx) // or others find out
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
	case <-ctx.Done(): // somebody does not return from Changed
	}
}

// Lists are the topics of lists: the methods that tell of them.
var Lists = [...]string{protocol.MethodToolsChanged, protocol.MethodResourcesChanged, protocol.MethodPromptsChanged}

// Resource returns the topic of the resource at uri.
func Resource(uri string) string { return resources + uri }

// ResourceOf returns the URI if a topic is that of a resource.
func ResourceOf(topic string) (uri string, ok bool) { return strings.CutPrefix(topic, resources) }

// resources is the beginning of the topics of resources.
const resources = protocol.MethodResourceUpdated + " "

// keyOf returns where a topic is.
func keyOf(name string) scale.Key { return replica.StoreKey("topic", name, slots) }

// knock wakes a goroutine.
func knock(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it is about to look
	}
}

// Raise tells everybody who joined the topic at other replicas that it has
// changed. It does not wait, and while the store is away it is not forgotten. The
// error is ErrFull if there is no room.
func (h *Hub) Raise(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, waits := h.raising[name]; !waits && len(h.raising) >= maxWaiting {
		return ErrFull
	}
	h.raising[name] = struct{}{}
	knock(h.write)
	return nil
}

// ErrFull is the error of raising a topic while there is no room for it.
var ErrFull = errors.New("topics: as many changes wait for the store as there may, and other replicas do not hear of this one")

// Join makes Changed be called for the topic, until Leave was called as often as
// Join. since is the time up to which who joins has been told of it; 0 is now. If
// it was raised after that, Told is called, or, if that turns out later, Changed.
func (h *Hub) Join(who any, name string, since scale.Rev) { h.join(who, name, keyOf(name), since) }

// Follow is Join, from now on, for a topic that is somebody else's entry: he who
// writes it tells the subject that is its Part. Raise is not for such a topic.
func (h *Hub) Follow(name string, key scale.Key) { h.join(nil, name, key, 0) }

func (h *Hub) join(who any, name string, key scale.Key, since scale.Rev) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil {
		t = &topic{name: name, from: now}
		h.topics[key] = t
		h.groups[key.Part]++
		h.unread[key] = struct{}{}
		knock(h.read)
	}
	t.joins++
	_, unread := h.unread[key]
	_, waits := h.raising[name] // or flying: who is here has been told, and the store has not
	switch {
	case since == 0 && unread:
		t.from = min(t.from, now)
	case since == 0: // what he will ask for now is what it is now
	case t.known > since || waits || t.flying || since <= now-scale.Rev(keep.Microseconds()):
		l := late{who, name}
		if _, there := h.late[l]; !there { // who comes and goes is told once
			h.late[l] = struct{}{}
			h.behind[who]++
		}
		knock(h.tell)
	case unread:
		t.from = min(t.from, since)
	}
}

// now returns a time of the store's clock before which everything that was
// raised can be seen; 0 if it is not known.
func (h *Hub) now() scale.Rev {
	return max(h.config.Now()-scale.Rev(replica.ClockSkew.Microseconds()), 0)
}

// late is somebody who has to be told of a topic that he has joined.
type late struct {
	who   any
	topic string
}

// Leave takes back one Join.
func (h *Hub) Leave(name string) { h.Unfollow(keyOf(name)) }

// Unfollow takes back one Follow.
func (h *Hub) Unfollow(key scale.Key) {
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
	if h.groups[key.Part]--; h.groups[key.Part] == 0 {
		delete(h.groups, key.Part)
		knock(h.read)
	}
}

// Mark returns since when somebody who has joined these topics here, and leaves
// them, has to be told of them: everything that was raised before has been told
// here. It is mark, which says that of another replica, unless there was
// something to tell or it is old; and while Told has still to be called for who.
func (h *Hub) Mark(who any, mark scale.Rev, names ...string) scale.Rev {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.synced <= mark || h.behind[who] > 0 {
		return mark
	}
	if h.synced-mark > scale.Rev(keep.Microseconds())/2 {
		return h.synced
	}
	for _, name := range names {
		if t := h.topics[keyOf(name)]; t != nil && t.known > mark {
			return h.synced
		}
	}
	return mark
}

// hear takes a hint. It runs on the goroutine of the Watcher.
func (h *Hub) hear(_ string, m scale.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[m.Key]; t != nil {
		h.heard(t, m)
	}
}

// missed notes that hints may be missing. It runs on the goroutine of the
// Watcher.
func (h *Hub) missed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap = true
	knock(h.read)
}

// heard takes what a hint, or a look, tells of a topic: when it was raised, and
// when before that, 0 if that is not known. h.mu is held.
func (h *Hub) heard(t *topic, m scale.Message) {
	switch {
	case t.flying && m.Rev > t.known:
		if len(t.held) < maxHeld {
			t.held = append(t.held, m)
			return
		}
		h.changed(t)
	case m.Rev > t.known:
		t.known = m.Rev
		h.changed(t)
	case m.Rev == t.own && t.before > 0 && t.before < m.Prev: // what was raised between is news
		t.before = m.Prev
		h.changed(t)
	case m.Rev < t.own && t.before < m.Rev:
		t.before = m.Rev
		h.changed(t)
	}
}

// changed makes a topic be told. h.mu is held.
func (h *Hub) changed(t *topic) {
	h.news[t.name] = struct{}{}
	knock(h.tell)
}

// tellAll calls Changed.
func (h *Hub) tellAll() {
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-h.tell:
		}
		h.mu.Lock()
		news, coming, looked := h.news, h.late, h.looked
		h.news, h.late = make(map[string]struct{}), make(map[late]struct{})
		h.mu.Unlock()
		maps.DeleteFunc(news, func(name string, _ struct{}) bool { return h.config.Changed(name) })
		for l := range coming {
			h.config.Told(l.who, l.topic)
			h.told(l.who)
		}
		failed := len(news) > 0
		h.mu.Lock()
		if maps.Copy(h.news, news); !failed {
			h.synced = max(h.synced, looked)
		}
		h.mu.Unlock()
		if failed && h.wait(again) {
			knock(h.tell)
		}
	}
}

// told notes that one of those who came late has been told of something.
func (h *Hub) told(who any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behind[who]--; h.behind[who] == 0 {
		delete(h.behind, who)
	}
}

// writeAll raises topics.
func (h *Hub) writeAll() {
	for {
		select {
		case <-h.ctx.Done():
			for ctx, more := <-h.last, true; more; {
				var err error
				if more, err = h.writeRound(ctx); err != nil {
					return // it is reported
				}
			}
			return
		case <-h.write:
		}
		for h.ctx.Err() == nil {
			more, err := h.writeRound(h.ctx)
			pause := gather
			switch {
			case err != nil:
				pause = again
			case more:
				pause = 0
			}
			if !h.wait(pause) || !more {
				break
			}
		}
	}
}

// wait waits, and returns false if the Hub ends meanwhile.
func (h *Hub) wait(pause time.Duration) bool {
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

// writeRound raises topics that wait, of which there may be more. Those that
// could not be raised wait again.
func (h *Hub) writeRound(ctx context.Context) (more bool, err error) {
	h.mu.Lock()
	var names []string
	var writes []scale.Write
	for name := range h.raising {
		if len(names) == batch {
			break
		}
		key := keyOf(name)
		if t := h.topics[key]; t != nil {
			t.flying = true
		}
		names = append(names, name)
		writes = append(writes, scale.Write{Key: key, Prev: scale.Any, Value: []byte{}, TTL: keep, Tell: key.Part})
		delete(h.raising, name)
	}
	h.mu.Unlock()
	if len(names) == 0 {
		return false, nil
	}
	var written []scale.Entry
	err = h.use(ctx, func(ctx context.Context) (err error) { written, err = h.config.Store.Put(ctx, writes...); return err })
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range names {
		rev := scale.Rev(0)
		if i < len(written) && written[i].Err == nil {
			rev = written[i].Rev
		}
		if rev == 0 {
			h.raising[name] = struct{}{}
		}
		if t := h.topics[writes[i].Key]; t != nil && t.flying {
			h.landed(t, rev)
		}
	}
	return len(h.raising) > 0, err
}

// landed notes that a topic was raised here; rev is 0 if it was not, or if
// nobody knows. h.mu is held.
func (h *Hub) landed(t *topic, rev scale.Rev) {
	held := t.held
	t.flying, t.held = false, nil
	if rev != 0 {
		t.own, t.before, t.known = rev, t.known, max(t.known, rev)
	}
	for _, m := range held {
		h.heard(t, m)
	}
}

// use runs code of the store, and tells of its failures.
func (h *Hub) use(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	err := fn(ctx)
	h.contact.Note(err == nil)
	h.mu.Lock()
	first := err != nil && (!h.away || !h.asked) && h.ctx.Err() == nil
	h.away, h.asked = err != nil, true
	h.mu.Unlock()
	if first {
		h.failed(err)
	}
	return err
}

// failed tells of an error.
func (h *Hub) failed(err error) {
	if h.config.Failed != nil {
		h.config.Failed(err)
	}
}

// readAll reads topics: those that were joined, all after a gap, and in turns.
func (h *Hub) readAll() {
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
		for h.readRound(due) != nil || h.lookAround(due) != nil {
			due = true // others may have raised something while the store was away
			if !h.wait(again) {
				return
			}
		}
		switch {
		case due && h.config.Now() == 0: // so far there is no Mark
			timer.Reset(again)
		case due:
			timer.Reset(replica.NextPoll())
		}
	}
}

// readRound reads what is to be read now. due tells that it is time to look.
func (h *Hub) readRound(due bool) error {
	fresh, err := h.watch()
	if err != nil {
		return err
	}
	now := h.now()
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.unread))
	if len(fresh) > 0 {
		for key := range h.topics { // one may have been read before hints came
			if _, unread := h.unread[key]; !unread && fresh[key.Part] {
				keys = append(keys, key)
			}
		}
	}
	gap := h.gap
	if gap || due && len(h.round) == 0 {
		h.round, h.begun = slices.Collect(maps.Keys(h.topics)), now
	}
	switch {
	case gap:
		keys, h.round = h.round, nil
	case due:
		n := min(len(h.round), mostLooked)
		keys, h.round = append(keys, h.round[:n]...), h.round[n:]
	}
	h.gap = false
	h.mu.Unlock()
	for chunk := range slices.Chunk(keys, batch) {
		if err := h.readKeys(chunk); err != nil {
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
		h.looked = max(h.looked, h.begun)
		knock(h.tell)
	}
	return nil
}

// lookAround looks at what other replicas offer, if it is time to.
func (h *Hub) lookAround(due bool) error {
	h.mu.Lock()
	due = due || h.enters
	h.enters = false
	h.mu.Unlock()
	if !due {
		return nil
	}
	err := h.fleet.look(h.ctx)
	if err != nil && !errors.Is(err, scale.ErrUnavailable) && h.ctx.Err() == nil {
		h.failed(err) // it is no better when it is tried again soon
		return nil
	}
	return err
}

// watch makes the Watcher watch the groups of which there are topics, and no
// others, and returns those that it did not watch. It runs before their topics are
// read, so that nothing is missed.
func (h *Hub) watch() (fresh map[string]bool, err error) {
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
	if err := h.use(h.ctx, func(ctx context.Context) error { return h.watcher.Add(ctx, more...) }); err != nil {
		return nil, err
	}
	fresh = make(map[string]bool, len(more))
	for _, part := range more {
		h.watched[part], fresh[part] = true, true
	}
	return fresh, nil
}

// readKeys reads topics.
func (h *Hub) readKeys(keys []scale.Key) error {
	looks := make([]scale.Look, len(keys))
	h.mu.Lock()
	for i, key := range keys {
		looks[i].Key = key
		if t := h.topics[key]; t != nil {
			looks[i].Known = t.known
		}
	}
	h.mu.Unlock()
	var found []scale.Entry
	err := h.use(h.ctx, func(ctx context.Context) (err error) { found, err = h.config.Store.Get(ctx, looks...); return err })
	if err != nil {
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
			h.heard(t, scale.Message{Key: e.Key, Rev: e.Rev})
		}
	}
	return nil
}
