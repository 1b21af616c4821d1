package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// inbox has the messages of a session that belong to no request, where replicas share
// the session: a box of the store, to which any replica appends and which one stream
// reads. At one replica it is in one of three states:
//
//	           GET: take                        ErrTaken from fetch
//	closed ------------------> reading --------------------------------> standby
//	   ^                        |  ^                                       |  |
//	   |   last stream ends:    |  |  standIn: the reader has left, or its |  |
//	   +---- leave -------------+  +-- replica is gone: take --------------+  |
//	   ^                                                                      |
//	   +------------------------- last stream ends ---------------------------+
//
// The store decides which stream reads: take makes the newest stream of all replicas the
// reader. The name of a reader is never used twice, and each read of an earlier reader
// fails with scale.ErrTaken. The store notes what it has returned, and the next reader
// begins after that; or after the event that its client names, if the stream of that
// event was the last reader.
//
// A replica reads no further than its stream has sent: what a slow client does not read
// waits in the box.
type inbox struct {
	manager *Manager
	session *Session
	box     string
	storing chan struct{} // has an element while the store is used

	// The mu of the session guards these.
	state   inboxState
	reader  string          // the name under which this replica read last
	pos     scale.Rev       // of the last message that was read here
	sent    scale.Rev       // of the last message that a stream took
	batch   []scale.Message // read, opened, and not taken by a stream
	pending bool            // the box may have more
	told    scale.Rev       // the newest message of which a hint came
	unsure  bool            // the reply of a read was lost: what it returned was not sent
	owed    scale.Rev       // up to which the store counts as given what is not in batch; 0 if nothing is
	leaving bool            // the store has not confirmed that reader has left
	leaveAt scale.Rev       // while leaving, the Take.After
	wait    time.Duration   // while standing by, until the next look whether the reader has left
	checked time.Time
}

// inboxState is a state of an inbox.
type inboxState uint8

const (
	closed  inboxState = iota // no stream is open here
	reading                   // a stream here is the reader, as far as is known
	standby                   // streams are open here in silence: another stream is the reader
)

const (
	inboxBytes = 768 << 10               // maximum of what waits for a client
	firstLook  = replica.PollInterval    // until a stream that stands by looks; doubles up to replica.StreamCheck
	retryFor   = time.Minute             // how long a replica tries to append again what it has not passed on
	nearlyAll  = scale.MaxValue - 64<<10 // a read of more bytes may have left some behind
)

// readerSubject is the subject that the store notifies for the readers of a replica.
func readerSubject(node string) string { return "readers:" + node }

// readerName names one opening of a stream: its replica, the number of the opening, and the
// stream, which is named after its first opening.
func readerName(node string, opening uint64, stream string) string {
	return readerSubject(node) + "/" + strconv.FormatUint(opening, 36) + "+" + stream
}

// leftName is the reader of a box after the reader of stream has left.
func leftName(stream string) string { return "+" + stream }

// streamOf returns the stream of a reader, which left or not.
func streamOf(reader string) string {
	_, stream, _ := strings.Cut(reader, "+")
	return stream
}

// readerNode returns the replica of a reader, "" if there is none or the reader has left.
func readerNode(reader string) string {
	subject, _, _ := strings.Cut(reader, "/")
	node, _ := strings.CutPrefix(subject, readerSubject(""))
	if node == subject {
		return ""
	}
	return node
}

// boxOf names the inbox of a session.
func boxOf(id string) string { return "stream:" + opaque.Key("session", id, slots).Name }

func newInbox(m *Manager, s *Session) *inbox {
	return &inbox{manager: m, session: s, box: boxOf(s.id), storing: make(chan struct{}, 1)}
}

func (b *inbox) lock() (unlock func()) {
	b.storing <- struct{}{}
	return func() { <-b.storing }
}

// use runs code of the store. That another stream reads is no failure of the store.
func (b *inbox) use(ctx context.Context, fn func(ctx context.Context) error) error {
	taken := false
	err := b.manager.use(ctx, func(ctx context.Context) error {
		err := fn(ctx)
		if taken = errors.Is(err, scale.ErrTaken); taken {
			return nil
		}
		return err
	})
	if taken {
		return scale.ErrTaken
	}
	return err
}

func (b *inbox) readBox(ctx context.Context, after scale.Rev, reader string) (messages []scale.Message, now string, err error) {
	err = b.use(ctx, func(ctx context.Context) (err error) {
		messages, now, err = b.manager.config.Store.Read(ctx, b.box, after, reader)
		return err
	})
	return messages, now, err
}

func (b *inbox) takeBox(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	t.Box = b.box
	err = b.use(ctx, func(ctx context.Context) (err error) {
		found, err = b.manager.config.Store.Take(ctx, t)
		return err
	})
	return found, err
}

// open opens messages up to the first that does not open, since it was sealed with a key
// that this replica does not have yet: a stream at another replica is to have it, and what
// follows. One that is older than a day is left out, so that it is not in the way for ever.
func (b *inbox) open(messages []scale.Message) (opened []scale.Message, whole bool) {
	for _, m := range messages {
		text, _, err := b.manager.config.Seal.Open(m.Data, seal.Binding(b.box))
		switch {
		case err == nil:
			m.Data = text
			opened = append(opened, m)
			continue
		case m.Rev < scale.Rev(time.Now().Add(-keepDay).UnixMicro()):
			b.manager.failed(fmt.Errorf("session: a message of a stream is left out after a day: %w", err))
			continue
		}
		b.manager.failed(fmt.Errorf("session: a message of a stream waits for a replica that opens it: %w", err))
		return opened, false
	}
	return opened, true
}

// bytesOf returns the sum of the lengths of messages.
func bytesOf(messages []scale.Message) (n int) {
	for _, m := range messages {
		n += len(m.Data)
	}
	return n
}

// post adds a message to the box. sent is false if there is no room.
func (b *inbox) post(ctx context.Context, message []byte) (sent bool, err error) {
	return b.append(ctx, b.sealed(message), inboxBytes)
}

func (b *inbox) sealed(message []byte) []byte {
	return b.manager.config.Seal.Seal(nil, message, seal.Binding(b.box))
}

// append is post for what is sealed, with a bound of the box.
func (b *inbox) append(ctx context.Context, data []byte, keep int) (sent bool, err error) {
	m := b.manager
	p := scale.Post{Box: b.box, Data: data, Keep: keep, Recent: max(m.config.History, 1), TTL: m.ttl(), Refuse: true}
	var reader string
	var rev scale.Rev
	full := false
	err = b.use(ctx, func(ctx context.Context) (err error) {
		rev, reader, err = m.config.Store.Append(ctx, p)
		if full = errors.Is(err, scale.ErrFull); full {
			return nil
		}
		return err
	})
	if err != nil || full {
		return false, err
	}
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.state == reading && reader == b.reader {
		b.hint(rev)
	}
	return true, nil
}

// hint notes that the box may have more, up to rev, 0 if that is not known. The mu of the
// session is held.
func (b *inbox) hint(rev scale.Rev) {
	if rev > 0 && rev <= b.told {
		return
	}
	b.told, b.pending = max(b.told, rev), true
	if out := b.session.outbox.newest(); out != nil {
		out.wake()
	}
}

// take makes the newest stream here the reader. Its client has what comes up to the event
// last, "" if it does not say.
func (b *inbox) take(ctx context.Context, last string) error {
	s, m := b.session, b.manager
	defer b.lock()()
	after := scale.Unread
	from, own := parseEventID(last)
	if own = own && from.stream&ownStream != 0; own {
		after = scale.Rev(from.stream &^ ownStream)
	}
	s.mu.Lock()
	idle := s.reason != nil || len(s.outbox.open) == 0
	if !own && b.state == reading {
		after = b.sent // what was read and not sent stays in the box
	}
	s.mu.Unlock()
	if idle {
		return nil
	}
	number := m.numbers.tokens.Add(1)
	stream := m.config.Node + "." + strconv.FormatUint(number, 36)
	if own {
		stream = strconv.FormatUint(from.node, 36) + "." + strconv.FormatUint(from.event, 36)
	}
	me := readerName(m.config.Node, number, stream)
	m.inboxes.Store(b.box, s) // hints may come before the reply
	found, err := b.takeBox(ctx, scale.Take{Reader: me, After: after, TTL: m.ttl()})
	s.mu.Lock()
	defer s.mu.Unlock()
	old := b.reader
	b.reader, b.checked = me, time.Now()
	if err != nil { // it may be the reader: tend makes it leave
		b.state, b.leaving, b.leaveAt = standby, true, after
		m.inboxes.Delete(b.box)
		b.passOn(old, "")
		return err
	}
	b.state, b.leaving, b.wait = reading, false, 0
	switch goesOn := own && streamOf(found.Reader) == stream; {
	case goesOn: // what follows the event is read again
		b.passOn(old, found.Reader)
		b.pos, b.unsure = after, after < found.Given
	case found.Reader != old || old == "": // what follows the event of the client was sent on another stream
		b.passOn(old, found.Reader)
		b.pos = found.Given
	}
	if len(b.batch) == 0 {
		b.sent = b.pos
	}
	if found.Last > b.pos || b.unsure || len(b.batch) > 0 || b.pending {
		b.hint(0)
	}
	if last != "" || found.Reader != "" {
		s.subscriptions.rejoin(s)
	}
	return nil
}

// mine reports whether it is the turn of the stream out to read. s.mu is held.
func (b *inbox) mine(out *line) bool {
	return b.state == reading && b.pending && len(b.batch) == 0 && b.session.outbox.newest() == out
}

// fetch reads what the stream out is to send, if it is the turn of that, and reports whether
// there is something new.
func (b *inbox) fetch(out *line) bool {
	s := b.session
	s.mu.Lock()
	mine := b.mine(out)
	s.mu.Unlock()
	if !mine {
		return false
	}
	defer b.lock()()
	s.mu.Lock()
	if mine = b.mine(out); mine {
		b.pending = false
	}
	me, pos := b.reader, b.pos
	s.mu.Unlock()
	if !mine {
		return false
	}
	messages, now, err := b.readBox(b.manager.ctx, pos, me)
	batch, whole := b.open(messages)
	size := bytesOf(batch)
	room := s.outbox.budget.queue(size, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, scale.ErrTaken):
		b.standBy(now)
		return false
	case err != nil:
		b.unsure = true
		time.AfterFunc(again, func() { s.hint(0) })
		return false
	}
	b.unsure, b.owed, b.checked = false, 0, time.Now()
	if !room || !s.outbox.hold(size) {
		b.giveBack(messages[len(messages)-1].Rev)
		time.AfterFunc(again, func() { s.hint(0) })
		return false
	}
	b.batch = batch
	switch {
	case !whole:
		b.giveBack(messages[len(messages)-1].Rev)
		messages = batch
	case bytesOf(messages) > nearlyAll || s.outbox.newest() != out || len(batch) < len(messages):
		b.hint(0)
	}
	if len(messages) > 0 {
		b.pos = messages[len(messages)-1].Rev
	}
	return len(batch) > 0
}

// standBy notes that reader, another stream, reads. s.mu is held.
func (b *inbox) standBy(reader string) {
	b.state = standby
	b.manager.inboxes.Delete(b.box)
	b.checked, b.wait = time.Now(), firstLook
	b.passOn(b.reader, reader)
}

// makeRoom drops what was read and not sent: it is read again. s.mu is held, and the
// outbox gives back the room.
func (b *inbox) makeRoom() {
	if len(b.batch) > 0 {
		b.giveBack(b.batch[len(b.batch)-1].Rev)
		b.batch, b.pos, b.pending = nil, b.sent, true
	}
}

// giveBack makes the store note that what follows b.pos was not given after all, up to rev.
// s.mu is held.
func (b *inbox) giveBack(rev scale.Rev) {
	b.owed = rev
	b.manager.retry(func(ctx context.Context) error {
		defer b.lock()()
		b.session.mu.Lock()
		me, pos, back := b.reader, b.pos, b.state == reading && b.owed > b.pos
		b.session.mu.Unlock()
		if !back {
			return nil
		}
		_, err := b.takeBox(ctx, scale.Take{From: me, Reader: me, After: pos, TTL: b.manager.ttl()})
		if errors.Is(err, scale.ErrTaken) {
			return nil // the next read finds that
		}
		if err == nil {
			b.session.mu.Lock()
			b.owed = 0
			b.session.mu.Unlock()
		}
		return err
	})
}

// passOn appends messages again that were read here by the reader was, and not sent, as
// now has begun after them, another reader; not if that goes on with the same stream: it gets
// them by the id with which its client came. If the reply of a read was lost, all that follows
// counts as read. s.mu is held.
func (b *inbox) passOn(was, now string) {
	rest, pos, owed := b.batch, b.pos, b.owed
	if b.unsure {
		owed = math.MaxInt64
	}
	b.session.outbox.free(bytesOf(rest))
	b.batch, b.unsure, b.owed = nil, false, 0
	if len(rest) == 0 && owed == 0 || streamOf(now) == streamOf(was) {
		return
	}
	var data [][]byte
	for _, m := range rest {
		data = append(data, b.sealed(m.Data))
	}
	b.manager.retry(func(ctx context.Context) error {
		if owed > 0 {
			messages, _, err := b.readBox(ctx, pos, "")
			if err != nil {
				return err
			}
			for _, m := range messages {
				if m.Rev <= owed {
					data = append(data, m.Data)
				}
			}
			owed = 0
		}
		for len(data) > 0 { // they were accepted once, and find room beyond that of others
			switch sent, err := b.append(ctx, data[0], 4*inboxBytes); {
			case err != nil:
				return err
			case !sent:
				return scale.ErrFull
			}
			data = data[1:]
		}
		return nil
	})
}

// next takes a message for the stream out. s.mu is held.
func (b *inbox) next(out *line) (id string, message []byte) {
	if len(b.batch) == 0 || out.over || b.session.outbox.newest() != out {
		return "", nil
	}
	m := b.batch[0]
	b.batch = b.batch[1:]
	b.sent = m.Rev
	b.session.outbox.free(len(m.Data))
	return b.eventID(0), m.Data
}

// own returns the id of an event that is not in the box: of a stream that begins, or of a
// change of which all replicas notify their own streams. s.mu is held.
func (b *inbox) own() string { return b.eventID(b.manager.numbers.unasked.Add(1)) }

// eventID returns the id of an event after the last message that was sent. s.mu is held.
func (b *inbox) eventID(local uint64) string {
	if !b.session.history.resumable() {
		return ""
	}
	node, number, _ := strings.Cut(streamOf(b.reader), ".")
	id := eventID{stream: ownStream | uint64(b.sent), local: local, at: b.manager.config.Node}
	id.node, _ = strconv.ParseUint(node, 36, 64)
	id.event, _ = strconv.ParseUint(number, 36, 64)
	return id.String()
}

// prime returns the id of the first event of a stream, which has no message; "" if there
// is none, because its client can resume already.
func (b *inbox) prime(last string) string {
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if from, ok := parseEventID(last); ok && from.stream&ownStream != 0 || b.state != reading ||
		!s.revision.Has(protocol.FeaturePrimedStreams) {
		return ""
	}
	return b.own()
}

// leave makes the store note that no stream here reads, if none is open, or all is set.
// After an error, tend tries again.
func (b *inbox) leave(ctx context.Context, all bool) error {
	s := b.session
	defer b.lock()()
	s.mu.Lock()
	if !b.leaving && (b.state != reading || !all && len(s.outbox.open) > 0) {
		s.mu.Unlock()
		return nil
	}
	if !b.leaving {
		b.leaving, b.leaveAt = true, b.sent
	}
	me, at, ttl := b.reader, b.leaveAt, b.manager.ttl()
	if errors.Is(s.reason, upcall.ErrSessionDeleted) {
		ttl = 0 // and nobody reads any more
	}
	if b.pending = false; b.state == reading {
		b.state = closed
	}
	b.manager.inboxes.Delete(b.box)
	s.mu.Unlock()
	found, err := b.takeBox(ctx, scale.Take{From: me, Reader: leftName(streamOf(me)), After: at, TTL: ttl})
	taken := errors.Is(err, scale.ErrTaken)
	if err != nil && !taken {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.leaving, b.wait = false, 0
	if !taken { // the next reader gets the rest
		found.Reader = me
	}
	b.passOn(me, found.Reader)
	return nil
}

// standIn makes a stream that stands by the reader, if the reader has left or its replica
// is gone.
func (b *inbox) standIn(ctx context.Context) error {
	_, now, err := b.readBox(ctx, scale.Unread, "")
	if err != nil {
		return err
	}
	if node := readerNode(now); node != "" && node != b.manager.config.Node {
		lives, err := b.manager.lives(ctx, node)
		if err != nil || lives {
			b.session.mu.Lock()
			defer b.session.mu.Unlock()
			b.checked, b.wait = time.Now(), min(max(2*b.wait, firstLook), replica.StreamCheck)
			return err
		}
	}
	return b.take(ctx, "")
}

// due reports what tend has to do for a session.
func (b *inbox) due(now time.Time) (leave, look bool) {
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch since := now.Sub(b.checked); {
	case s.reason != nil:
		return false, false
	case b.state == standby:
		look = since >= b.wait && len(s.outbox.open) > 0
	case b.state == reading && since >= replica.StreamCheck:
		b.checked = now
		b.hint(0)
	}
	return b.leaving, look
}
