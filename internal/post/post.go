// Package post carries messages between the replicas of a server.
//
// A replica has a box of its own, which others append to, and all replicas read
// one box together. What is in a box has been sealed by its sender, so that
// whoever runs the engine can neither read it nor make it up.
//
// A message that was accepted for a replica reaches it once if it lives, within
// moments, or within five seconds if the hint of it is lost. When its box is
// full, or nobody has that name, the sender is told; nothing that was accepted
// is dropped. The common box keeps the newest messages only: what is told there
// is cheap to lose, because a look at the store shows it as well.
//
// Nothing here knows what the messages say.
package post

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

const (
	again    = time.Second / 5 // between attempts to become known
	entering = time.Second     // Start waits for the store so long at most
	keepOwn  = 8 << 20         // bytes of messages that wait for one replica
	keepAll  = 1 << 20         // bytes of messages in the common box
	keepFor  = 5 * time.Minute // what the common box has; a replica's own box and record at least
	keepMost = 24 * time.Hour  // a replica's own box and record at most, which it leaves behind where it is killed
	maxHints = 1024            // hints that wait; beyond them the boxes are looked at
	common   = "all"           // the common box
	closed   = "-"             // the reader of a box whose replica has left; no name of one
)

var (
	// ErrNobody is the error of sending to a replica that is gone.
	ErrNobody = errors.New("post: there is no such replica")
	// ErrSilent is the error of sending to a replica that was not heard of for long,
	// so that it is probably gone. If it is not, it gets the message. It wraps
	// ErrNobody.
	ErrSilent = fmt.Errorf("%w: it was not heard of for %v", ErrNobody, replica.DeadAfter)
)

// ErrUnsure is wrapped by the error of a message that may arrive all the same.
var ErrUnsure = errors.New("post: whether the message arrives is not known")

// Message is what one replica tells another.
type Message struct {
	From string // the replica
	Kind string // says who handles it, and what Body is
	Body []byte
}

// Config is what an Office needs.
type Config struct {
	Store scale.Store
	Seal  *seal.Sealer
	// Wait is how long at most somebody waits for a message, whose replica is
	// known for so long after it was heard of last, and gets what comes until then
	// when the store is back. It is the same for all replicas, and counts as five
	// minutes at least and as a day at most.
	Wait time.Duration
	// Failed is told when the store could not be read, or what a box has does
	// not open. It may be nil.
	Failed func(err error)
}

// Office sends the messages of one replica, and between Start and Close gets
// those for it. It is safe for concurrent use.
type Office struct {
	config  Config
	handler func(m Message)
	node    string
	own     string        // box
	keep    time.Duration // boxes of replicas, and their records
	watcher scale.Watcher
	done    chan struct{}
	stop    context.CancelFunc
	ctx     context.Context

	wake chan struct{} // tells the goroutine of hints; has room for one

	mu     sync.Mutex
	hints  []hint
	gap    bool      // hints may be missing
	rev    scale.Rev // that the store gave last
	before time.Time // rev was given before this
	// since is since when the store has answered live, zero if it always has. A
	// replica.Contact would not do: who has just begun may judge others at once, as
	// what is sent to one that is gone would be lost.
	since time.Time

	// What the goroutine alone uses, and Close after it: the newest message of each box
	// that was handled, and the bytes of the own one that the store has not been told of.
	read   map[string]scale.Rev
	untold int
}

// hint is a message that a Watcher brought.
type hint struct {
	box string
	scale.Message
}

// New makes an Office with a new name.
func New(c Config) *Office {
	o := &Office{
		config: c, node: strconv.FormatUint(1+rand.Uint64N(math.MaxUint64), 36), wake: make(chan struct{}, 1), done: make(chan struct{}),
		keep: max(keepFor, min(c.Wait, keepMost-replica.DeadAfter)+replica.DeadAfter), read: make(map[string]scale.Rev),
	}
	o.own = "node:" + o.node
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// Start makes handle be called with each message for this replica, one after
// another, on one goroutine. handle should return soon, and must not call Close.
// When Start returns, others know the replica, so that whatever its clients send
// to others reaches it; a store that does not answer is asked further on, and
// Start returns after a second. It is called once.
func (o *Office) Start(handle func(m Message)) {
	o.handler = handle
	o.watcher = o.config.Store.Watch(o.hear, o.missed)
	tried := make(chan struct{})
	go o.run(tried)
	select {
	case <-tried:
	case <-time.After(entering):
	}
}

// enter makes the replica known and skips what the common box has from before.
func (o *Office) enter(ctx context.Context) error {
	if err := o.watcher.Add(ctx, o.own, common); err != nil {
		return err
	}
	if err := o.live(ctx); err != nil {
		return err
	}
	for {
		messages, _, err := o.config.Store.Read(ctx, common, o.read[common], "")
		if err != nil || len(messages) == 0 {
			return err
		}
		o.read[common] = messages[len(messages)-1].Rev
	}
}

// Node returns the name of the replica: a number above 0 in base 36, never used
// before.
func (o *Office) Node() string { return o.node }

// IsNode reports whether text can be the name of a replica.
func IsNode(text string) bool {
	n, err := strconv.ParseUint(text, 36, 64)
	return err == nil && n > 0 && strconv.FormatUint(n, 36) == text
}

// Send gives a message to the replica of that name. The error is ErrNobody if
// there is none, ErrSilent, or wraps scale.ErrFull or scale.ErrUnavailable, and
// ErrUnsure if the message may arrive all the same. It looks first whether the
// replica is known: names come from clients, who could otherwise fill the
// store with boxes that nobody reads.
func (o *Office) Send(ctx context.Context, node, kind string, body []byte) error {
	known, lives, err := o.find(ctx, node)
	switch {
	case err != nil:
		return fmt.Errorf("post: message to another replica: %w", err)
	case !known:
		return ErrNobody
	}
	if err = o.Reply(ctx, node, kind, body); err == nil && !lives {
		return ErrSilent
	}
	return err
}

// Reply is Send to a replica that was heard of within the last seconds: it does
// not look whether that is there, and hears of one that has closed its box since.
func (o *Office) Reply(ctx context.Context, node, kind string, body []byte) error {
	box := "node:" + node
	_, reader, err := o.config.Store.Append(ctx, scale.Post{Box: box, Data: o.wrap(box, kind, body), Keep: keepOwn, TTL: o.keep, Refuse: true})
	switch {
	case errors.Is(err, scale.ErrUnavailable), err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	case err != nil:
		return fmt.Errorf("post: message to another replica: %w", err)
	case reader == closed:
		return ErrNobody
	}
	return nil
}

// Tell gives a message to every other replica. The error wraps
// scale.ErrUnavailable.
func (o *Office) Tell(ctx context.Context, kind string, body []byte) error {
	_, _, err := o.config.Store.Append(ctx, scale.Post{Box: common, Data: o.wrap(common, kind, body), Keep: keepAll, TTL: keepFor})
	if err != nil {
		return fmt.Errorf("post: message to all replicas: %w", err)
	}
	return nil
}

// Lives reports whether the replica of that name is there, or was a moment ago.
// The error wraps scale.ErrUnavailable.
func (o *Office) Lives(ctx context.Context, node string) (bool, error) {
	_, lives, err := o.find(ctx, node)
	return lives, err
}

// find looks for a replica. One that is known and does not live was not heard of
// for its life: it is gone, or the store has been away from it. After the store
// was away from this replica, others may not have been heard of again yet, so
// that for one life nobody is judged.
func (o *Office) find(ctx context.Context, node string) (known, lives bool, err error) {
	found, err := o.config.Store.Get(ctx, scale.Look{Key: record(node)})
	if err != nil {
		return false, false, err
	}
	o.mu.Lock()
	judges := time.Since(o.since) >= replica.DeadAfter
	o.mu.Unlock()
	switch rev := found[0].Rev; {
	case rev == 0 && !judges:
		return false, false, fmt.Errorf("%w: it was away, and not all replicas are known again", scale.ErrUnavailable)
	case rev == 0:
		return false, false, nil
	default:
		return true, !judges || rev >= o.Now()-scale.Rev(replica.DeadAfter.Microseconds()), nil
	}
}

// Close makes the replica unknown, handles what has arrived, and ends the
// Office, which must have been started. ctx bounds how long it uses the store; it
// gets a second all the same, or others would wait for this replica.
func (o *Office) Close(ctx context.Context) {
	if ctx.Err() != nil {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		ctx = short
	}
	o.stop()
	<-o.done
	o.watcher.Close()
	_, err := o.config.Store.Put(ctx, scale.Write{Key: record(o.node), Prev: scale.Any})
	o.failed(err)
	o.readAll(ctx)
	o.readLast(ctx)
}

// record is the entry of a replica. It is written again and again while the
// replica lives, so that its Rev tells when that was heard of last.
func record(node string) scale.Key { return scale.Key{Part: "node", Name: node} }

// live keeps the replica known.
func (o *Office) live(ctx context.Context) error {
	written, err := o.config.Store.Put(ctx, scale.Write{Key: record(o.node), Prev: scale.Any, Value: []byte{}, TTL: o.keep})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.since = time.Now()
		return err
	}
	o.rev, o.before = written[0].Rev, time.Now()
	return nil
}

// Now returns the time of the store's clock, as a Rev that was given now would
// tell it, or a little less; 0 if the store has not answered yet.
func (o *Office) Now() scale.Rev {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rev == 0 {
		return 0
	}
	return o.rev + scale.Rev(time.Since(o.before).Microseconds())
}

// run handles messages until the Office is closed. It closes tried when it has
// asked the store once.
func (o *Office) run(tried chan<- struct{}) {
	defer close(o.done)
	for told := false; ; told = true {
		err := o.enter(o.ctx)
		if !told {
			close(tried)
		}
		if err == nil {
			break
		}
		if !told {
			o.failed(err)
		}
		select {
		case <-o.ctx.Done():
			return
		case <-time.After(again):
		}
	}
	o.readBox(o.ctx, o.own)
	timer := time.NewTimer(replica.NextPoll())
	defer timer.Stop()
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-o.wake:
			o.handleHints()
		case <-timer.C:
			o.failed(o.live(o.ctx))
			o.readAll(o.ctx)
			timer.Reset(replica.NextPoll())
		}
	}
}

// hear takes a hint. It runs on the goroutine of the Watcher.
func (o *Office) hear(box string, m scale.Message) {
	o.mu.Lock()
	if len(o.hints) < maxHints {
		o.hints = append(o.hints, hint{box, m})
	} else {
		o.gap = true
	}
	o.mu.Unlock()
	o.knock()
}

// missed notes that hints may be missing.
func (o *Office) missed() {
	o.mu.Lock()
	o.gap = true
	o.mu.Unlock()
	o.knock()
}

// knock wakes the goroutine.
func (o *Office) knock() {
	select {
	case o.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// handleHints handles what hints brought, and reads the boxes where that is not
// all.
func (o *Office) handleHints() {
	o.mu.Lock()
	hints, gap := o.hints, o.gap
	o.hints, o.gap = nil, false
	o.mu.Unlock()
	for _, h := range hints {
		switch last := o.read[h.box]; {
		case h.Rev <= last: // it was read from the box
		case h.Prev > last:
			o.readBox(o.ctx, h.box)
		default:
			o.handle(h.box, h.Message)
		}
		if o.untold > keepOwn/8 { // or those who send would wait for the next look
			o.readBox(o.ctx, o.own)
		}
	}
	if gap {
		o.readAll(o.ctx)
	}
}

// readAll handles what the boxes have that no hint told.
func (o *Office) readAll(ctx context.Context) {
	o.readBox(ctx, o.own)
	o.readBox(ctx, common)
}

// readBox handles what a box has.
func (o *Office) readBox(ctx context.Context, box string) {
	reader := ""
	if box == o.own {
		reader, o.untold = o.node, 0
	}
	for {
		messages, _, err := o.config.Store.Read(ctx, box, o.read[box], reader)
		if errors.Is(err, scale.ErrTaken) { // the first time, and where the store has lost the box
			if _, err = o.take(ctx, reader); err == nil {
				continue
			}
		}
		if err != nil {
			o.failed(err)
			return
		}
		for _, m := range messages {
			o.handle(box, m)
		}
		if len(messages) == 0 {
			return
		}
	}
}

// take makes reader the reader of the replica's own box.
func (o *Office) take(ctx context.Context, reader string) (scale.Box, error) {
	return o.config.Store.Take(ctx, scale.Take{Box: o.own, Reader: reader, After: o.read[o.own], TTL: o.keep})
}

// readLast closes the own box and handles what it has then. A replica that sends a
// message after that receives the error that nobody reads it.
func (o *Office) readLast(ctx context.Context) {
	found, err := o.take(ctx, closed)
	for err == nil && o.read[o.own] < found.Last {
		var messages []scale.Message
		if messages, _, err = o.config.Store.Read(ctx, o.own, o.read[o.own], closed); len(messages) == 0 {
			break
		}
		for _, m := range messages {
			if m.Rev <= found.Last {
				o.handle(o.own, m)
			} else {
				o.read[o.own] = m.Rev
			}
		}
	}
	o.failed(err)
}

// handle opens one message and passes it on. What does not open is dropped.
func (o *Office) handle(box string, m scale.Message) {
	o.read[box] = m.Rev
	if box == o.own {
		o.untold += len(m.Data)
	}
	message, err := o.unwrap(box, m.Data)
	if err != nil {
		o.failed(err)
		return
	}
	if box == common && message.From == o.node {
		return
	}
	o.handler(message)
}

// wrap seals a message for a box.
func (o *Office) wrap(box, kind string, body []byte) []byte {
	text := make([]byte, 0, len(o.node)+len(kind)+2+len(body))
	text = append(append(text, o.node...), '\n')
	text = append(append(text, kind...), '\n')
	return o.config.Seal.Seal(nil, append(text, body...), seal.Binding(box))
}

// unwrap opens what wrap returned.
func (o *Office) unwrap(box string, sealed []byte) (m Message, err error) {
	text, _, err := o.config.Seal.Open(sealed, seal.Binding(box))
	if err != nil {
		return m, fmt.Errorf("post: a message of another replica does not open: %w", err)
	}
	parts := bytes.SplitN(text, []byte("\n"), 3)
	if len(parts) != 3 {
		return m, errors.New("post: a message of another replica is none")
	}
	return Message{From: string(parts[0]), Kind: string(parts[1]), Body: parts[2]}, nil
}

// failed tells of an error, if it is one that anybody should hear of.
func (o *Office) failed(err error) {
	if err != nil && o.ctx.Err() == nil && o.config.Failed != nil {
		o.config.Failed(err)
	}
}
