// Package bus carries messages between the replicas of a server.
//
// Each replica has an inbox, and all replicas read one broadcast box. The sender seals each
// message, so the operator of the engine can neither read nor forge it.
//
// A replica that lives receives an accepted message once: usually at once, or within five
// seconds if its hint is lost. The sender gets an error if the inbox is full or no replica
// has that id. An accepted message is never dropped. The broadcast box keeps only the
// newest messages. A replica also finds the changes behind them by reading the store.
//
// This package does not interpret the bodies of messages.
package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

const (
	retryInterval     = time.Second / 5 // between attempts to become known
	startTimeout      = time.Second     // how long Start waits for the store
	beatAgain         = time.Second     // from a heartbeat that fails until the next one
	maxInboxBytes     = 8 << 20         // bytes of messages that wait for one replica
	maxBroadcastBytes = 1 << 20         // bytes of messages in the common box
	minRetention      = 5 * time.Minute // what the common box has; a replica's own box and record at least
	maxRetention      = 24 * time.Hour  // a replica's own box and record at most, which it leaves behind where it is killed
	maxHints          = 1024            // hints that wait; beyond them the boxes are read
	broadcastBox      = "all"           // the common box
	closedReader      = "-"             // the reader of a box whose replica has left; no name of one
)

var (
	// ErrNoReplica is the error of sending to a replica that is gone.
	ErrNoReplica = errors.New("bus: there is no such replica")
	// ErrReplicaLost is the error of sending to a replica that is probably dead, because it
	// has not renewed its entry. If it lives, it receives the message. It wraps
	// ErrNoReplica.
	ErrReplicaLost = fmt.Errorf("%w: it was not heard of for %v", ErrNoReplica, replica.DeadAfter)
)

// ErrMaybeDelivered is wrapped by the error of a message that may still arrive.
var ErrMaybeDelivered = errors.New("bus: whether the message arrives is not known")

// Message is what one replica tells another.
type Message struct {
	From string // the replica
	Kind string // says who handles it, and what Body is
	Body []byte
}

// Config is what a Bus needs.
type Config struct {
	Store scale.Store
	Seal  *seal.Sealer
	// MaxWait is the longest wait for a message. A replica stays registered for that time
	// after its last heartbeat, and receives what comes until then when the store is
	// available again. All replicas have the same value, which counts as at least five
	// minutes and at most a day.
	MaxWait time.Duration
	// OnError is called with errors of the store, and for a message that does not open. It
	// may be nil.
	OnError func(err error)
}

// Bus sends the messages of one replica, and between Start and Close gets
// those for it. It is safe for concurrent use.
type Bus struct {
	config    Config
	handlers  map[string]func(m Message) // by kind
	replicaID string
	inbox     string        // box
	retention time.Duration // boxes of replicas, and their records
	watcher   scale.Watcher
	done      chan struct{}
	closing   atomic.Bool
	closed    chan struct{} // at the end of Close
	stop      context.CancelFunc
	ctx       context.Context

	wake chan struct{} // tells the goroutine of hints; has room for one

	mu            sync.Mutex
	hints         []hint
	gap           bool      // hints may be missing
	rev           scale.Rev // that the store gave last
	revUpperBound time.Time // rev was given before this
	// answeringSince is the time since which the store answers heartbeat, zero if it always
	// has. A replica.Health does not fit: a new replica must detect dead ones at once, as a
	// message to one of them would be lost.
	answeringSince time.Time

	// Only the goroutine uses these, and Close after its end: the newest handled message of
	// each box, and the bytes of the inbox that the store does not know to be read.
	lastRead map[string]scale.Rev
	unacked  int
	// unknownKinds are the kinds without a handler that have been reported.
	unknownKinds map[string]bool
}

// hint is a message that a Watcher brought.
type hint struct {
	box string
	scale.Message
}

// New makes a Bus with a new name.
func New(c Config) *Bus {
	o := &Bus{
		config: c, replicaID: strconv.FormatUint(1+rand.Uint64N(math.MaxUint64), 36), wake: make(chan struct{}, 1), done: make(chan struct{}), closed: make(chan struct{}), handlers: make(map[string]func(Message)),
		retention: max(minRetention, min(c.MaxWait, maxRetention-replica.DeadAfter)+replica.DeadAfter), lastRead: make(map[string]scale.Rev), unknownKinds: make(map[string]bool),
	}
	o.inbox = "node:" + o.replicaID
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// Handle makes fn handle the messages of a kind, one after another, on the goroutine of
// the Bus. fn should return soon, and must not call Close. Handle must be called before
// Start, and panics if the kind has a handler.
func (o *Bus) Handle(kind string, fn func(m Message)) {
	if o.handlers[kind] != nil {
		panic("bus: two handlers for messages of kind " + kind)
	}
	o.handlers[kind] = fn
}

// Start registers the replica and begins to handle its messages. When it returns, other
// replicas can send to this one. If the store does not answer, Start returns after a
// second, and the goroutine tries again. It is called once.
func (o *Bus) Start() {
	o.watcher = o.config.Store.Watch(o.onHint, o.onGap)
	tried := make(chan struct{})
	go o.run(tried)
	select {
	case <-tried:
	case <-time.After(startTimeout):
	}
}

// register makes the replica known and skips what the common box has from before.
func (o *Bus) register(ctx context.Context) error {
	if err := o.watcher.Add(ctx, o.inbox, broadcastBox); err != nil {
		return err
	}
	if err := o.heartbeat(ctx); err != nil {
		return err
	}
	for {
		messages, _, err := o.config.Store.Read(ctx, broadcastBox, o.lastRead[broadcastBox], "")
		if err != nil || len(messages) == 0 {
			return err
		}
		o.lastRead[broadcastBox] = messages[len(messages)-1].Rev
	}
}

// ReplicaID returns the name of the replica: a number above 0 in base 36, never used
// before.
func (o *Bus) ReplicaID() string { return o.replicaID }

// IsReplicaID reports whether text can be the name of a replica.
func IsReplicaID(text string) bool {
	n, err := strconv.ParseUint(text, 36, 64)
	return err == nil && n > 0 && strconv.FormatUint(n, 36) == text
}

// Send sends a message to the replica of that id. The error is ErrNoReplica or
// ErrReplicaLost, or wraps scale.ErrFull or scale.ErrUnavailable. It also wraps
// ErrMaybeDelivered if the message may still arrive. Send looks up the replica first: ids
// come from clients, which could otherwise fill the store with boxes without a reader.
func (o *Bus) Send(ctx context.Context, node, kind string, body []byte) error {
	known, lives, err := o.lookup(ctx, node)
	switch {
	case err != nil:
		return fmt.Errorf("bus: message to another replica: %w", err)
	case !known:
		return ErrNoReplica
	}
	if err = o.SendUnchecked(ctx, node, kind, body); err == nil && !lives {
		return ErrReplicaLost
	}
	return err
}

// SendUnchecked is Send to a replica that has sent a message within the last seconds. It
// does not look the replica up, and returns ErrNoReplica if that has closed its inbox
// since.
func (o *Bus) SendUnchecked(ctx context.Context, node, kind string, body []byte) error {
	box := "node:" + node
	_, reader, err := o.config.Store.Append(ctx, scale.AppendOp{Box: box, Data: o.sealMessage(box, kind, body), Keep: maxInboxBytes, TTL: o.retention, Refuse: true})
	switch {
	case errors.Is(err, scale.ErrUnavailable), err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrMaybeDelivered, err)
	case err != nil:
		return fmt.Errorf("bus: message to another replica: %w", err)
	case reader == closedReader:
		return ErrNoReplica
	}
	return nil
}

// Broadcast gives a message to every other replica. The error wraps
// scale.ErrUnavailable.
func (o *Bus) Broadcast(ctx context.Context, kind string, body []byte) error {
	_, _, err := o.config.Store.Append(ctx, scale.AppendOp{Box: broadcastBox, Data: o.sealMessage(broadcastBox, kind, body), Keep: maxBroadcastBytes, TTL: minRetention})
	if err != nil {
		return fmt.Errorf("bus: message to all replicas: %w", err)
	}
	return nil
}

// IsAlive reports whether the replica of that name is there, or was a moment ago.
// The error wraps scale.ErrUnavailable.
func (o *Bus) IsAlive(ctx context.Context, node string) (bool, error) {
	_, lives, err := o.lookup(ctx, node)
	return lives, err
}

// lookup looks for a replica. A registered replica is alive if it has sent a heartbeat
// within replica.DeadAfter. Otherwise it is dead, or the store is unavailable to it. After
// an outage of the store here, all registered replicas count as alive for
// replica.DeadAfter, until they can renew their entries.
func (o *Bus) lookup(ctx context.Context, node string) (known, lives bool, err error) {
	found, err := o.config.Store.Get(ctx, scale.GetOp{Key: registrationKey(node)})
	if err != nil {
		return false, false, err
	}
	o.mu.Lock()
	judges := time.Since(o.answeringSince) >= replica.DeadAfter
	o.mu.Unlock()
	switch rev := found[0].Rev; {
	case rev == 0 && !judges:
		return false, false, fmt.Errorf("%w: it was away, and not all replicas are known again", scale.ErrUnavailable)
	case rev == 0:
		return false, false, nil
	default:
		return true, !judges || rev >= o.StoreTime()-scale.Rev(replica.DeadAfter.Microseconds()), nil
	}
}

// Close deregisters the replica, handles what has arrived, and ends the Bus, which must
// have been started. ctx bounds the use of the store. That has at least a second, so that
// others do not wait for this replica. A further call waits for the first one.
func (o *Bus) Close(ctx context.Context) {
	if o.closing.Swap(true) {
		<-o.closed
		return
	}
	defer close(o.closed)
	if ctx.Err() != nil {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		ctx = short
	}
	o.stop()
	<-o.done
	o.watcher.Close()
	_, err := o.config.Store.Put(ctx, scale.Write{Key: registrationKey(o.replicaID), Prev: scale.Any})
	o.reportError(err)
	o.pollAll(ctx)
	o.readLast(ctx)
}

// registrationKey is the key of the entry of a replica. A live replica writes it again and
// again, so its Rev is the time of the last heartbeat.
func registrationKey(node string) scale.Key { return scale.Key{Partition: "node", Name: node} }

// heartbeat keeps the replica known.
func (o *Bus) heartbeat(ctx context.Context) error {
	written, err := o.config.Store.Put(ctx, scale.Write{Key: registrationKey(o.replicaID), Prev: scale.Any, Value: []byte{}, TTL: o.retention})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.answeringSince = time.Now()
		return err
	}
	o.rev, o.revUpperBound = written[0].Rev, time.Now()
	return nil
}

// StoreTime returns the time of the store's clock, as a Rev that was given now would
// tell it, or a little less; 0 if the store has not answered yet.
func (o *Bus) StoreTime() scale.Rev {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rev == 0 {
		return 0
	}
	return o.rev + scale.Rev(time.Since(o.revUpperBound).Microseconds())
}

// run handles messages until the Bus is closed. It closes tried when it has
// asked the store once.
func (o *Bus) run(tried chan<- struct{}) {
	defer close(o.done)
	for told := false; ; told = true {
		err := o.register(o.ctx)
		if !told {
			close(tried)
		}
		if err == nil {
			break
		}
		if !told {
			o.reportError(err)
		}
		select {
		case <-o.ctx.Done():
			return
		case <-time.After(retryInterval):
		}
	}
	o.poll(o.ctx, o.inbox)
	beat, poll := time.NewTimer(replica.NextPoll()), time.NewTimer(replica.NextPoll())
	defer beat.Stop()
	defer poll.Stop()
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-o.wake:
			o.handleHints()
		case <-beat.C:
			if err := o.heartbeat(o.ctx); err != nil {
				o.reportError(err)
				beat.Reset(beatAgain)
			} else {
				beat.Reset(replica.NextPoll())
			}
		case <-poll.C:
			o.pollAll(o.ctx)
			poll.Reset(replica.NextPoll())
		}
	}
}

// onHint takes a hint. It runs on the goroutine of the Watcher.
func (o *Bus) onHint(box string, m scale.Message) {
	o.mu.Lock()
	if len(o.hints) < maxHints {
		o.hints = append(o.hints, hint{box, m})
	} else {
		o.gap = true
	}
	o.mu.Unlock()
	o.signal()
}

// onGap notes that hints may be missing.
func (o *Bus) onGap() {
	o.mu.Lock()
	o.gap = true
	o.mu.Unlock()
	o.signal()
}

// signal wakes the goroutine.
func (o *Bus) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// handleHints handles what hints brought, and reads the boxes where that is not
// all.
func (o *Bus) handleHints() {
	o.mu.Lock()
	hints, gap := o.hints, o.gap
	o.hints, o.gap = nil, false
	o.mu.Unlock()
	for _, h := range hints {
		switch last := o.lastRead[h.box]; {
		case h.Rev <= last: // it was read from the box
		case h.Prev > last:
			o.poll(o.ctx, h.box)
		default:
			o.dispatch(h.box, h.Message)
		}
		if o.unacked > maxInboxBytes/8 { // or those who send would wait for the next look
			o.poll(o.ctx, o.inbox)
		}
	}
	if gap {
		o.pollAll(o.ctx)
	}
}

// pollAll handles what the boxes have that no hint told.
func (o *Bus) pollAll(ctx context.Context) {
	o.poll(ctx, o.inbox)
	o.poll(ctx, broadcastBox)
}

// poll handles what a box has.
func (o *Bus) poll(ctx context.Context, box string) {
	reader := ""
	if box == o.inbox {
		reader, o.unacked = o.replicaID, 0
	}
	for {
		messages, _, err := o.config.Store.Read(ctx, box, o.lastRead[box], reader)
		if errors.Is(err, scale.ErrNotReader) { // the first time, and where the store has lost the box
			if _, err = o.take(ctx, reader); err == nil {
				continue
			}
		}
		if err != nil {
			o.reportError(err)
			return
		}
		for _, m := range messages {
			o.dispatch(box, m)
		}
		if len(messages) == 0 {
			return
		}
	}
}

// take makes reader the reader of the replica's own box.
func (o *Bus) take(ctx context.Context, reader string) (scale.Box, error) {
	return o.config.Store.Take(ctx, scale.Take{Box: o.inbox, Reader: reader, After: o.lastRead[o.inbox], TTL: o.retention})
}

// readLast closes the inbox and handles its last messages. A replica that sends a message
// later receives the error that there is no reader.
func (o *Bus) readLast(ctx context.Context) {
	found, err := o.take(ctx, closedReader)
	for err == nil && o.lastRead[o.inbox] < found.Last {
		var messages []scale.Message
		if messages, _, err = o.config.Store.Read(ctx, o.inbox, o.lastRead[o.inbox], closedReader); len(messages) == 0 {
			break
		}
		for _, m := range messages {
			if m.Rev <= found.Last {
				o.dispatch(o.inbox, m)
			} else {
				o.lastRead[o.inbox] = m.Rev
			}
		}
	}
	o.reportError(err)
}

// dispatch opens one message and calls its handler. It drops a message that does not open.
func (o *Bus) dispatch(box string, m scale.Message) {
	o.lastRead[box] = m.Rev
	if box == o.inbox {
		o.unacked += len(m.Data)
	}
	message, err := o.openMessage(box, m.Data)
	if err != nil {
		o.reportError(err)
		return
	}
	if box == broadcastBox && message.From == o.replicaID {
		return
	}
	handle := o.handlers[message.Kind]
	if handle == nil { // of another version of the server
		if !o.unknownKinds[message.Kind] {
			o.unknownKinds[message.Kind] = true
			o.reportError(fmt.Errorf("bus: message of unknown kind %q from another replica", message.Kind))
		}
		return
	}
	handle(message)
}

// sealMessage seals a message for a box.
func (o *Bus) sealMessage(box, kind string, body []byte) []byte {
	text := make([]byte, 0, len(o.replicaID)+len(kind)+2+len(body))
	text = append(append(text, o.replicaID...), '\n')
	text = append(append(text, kind...), '\n')
	return o.config.Seal.Seal(nil, append(text, body...), seal.Binding(box))
}

// openMessage opens what sealMessage returned.
func (o *Bus) openMessage(box string, sealed []byte) (m Message, err error) {
	text, _, err := o.config.Seal.Open(sealed, seal.Binding(box))
	if err != nil {
		return m, fmt.Errorf("bus: a message of another replica does not open: %w", err)
	}
	parts := bytes.SplitN(text, []byte("\n"), 3)
	if len(parts) != 3 {
		return m, errors.New("bus: a message of another replica is none")
	}
	return Message{From: string(parts[0]), Kind: string(parts[1]), Body: parts[2]}, nil
}

// reportError reports an error, unless it comes from the end of the Bus.
func (o *Bus) reportError(err error) {
	if err != nil && o.ctx.Err() == nil && o.config.OnError != nil {
		o.config.OnError(err)
	}
}
