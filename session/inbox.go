package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// inbox has the messages of a session that belong to no request, where replicas share
// the session: a box of the store, to which any replica appends and which one stream
// reads. At one replica it is in one of three states:
//
//	           GET: take                        ErrNotReader from fetch
//	closed ------------------> reading --------------------------------> standby
//	   ^                        |  ^                                       |  |
//	   |   last stream ends:    |  |  standIn: the reader has left, or its |  |
//	   +---- leave -------------+  +-- replica is gone: take --------------+  |
//	   ^                                                                      |
//	   +------------------------- last stream ends ---------------------------+
//
// The store decides which stream reads: take makes the newest stream of all replicas the
// reader. The name of a reader is never used twice, and each read of an earlier reader
// fails with scale.ErrNotReader. The store notes what it has returned, and the next reader
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
	filled  bool            // this replica may have added a message
	reader  string          // the name under which this replica read last
	pos     scale.Rev       // of the last message that was read here
	sent    scale.Rev       // of the last message that a stream took
	batch   []scale.Message // read, opened, and not taken by a stream
	writing *outStream      // it has taken the message sent, whose write is not over; nil if none has
	marked  scale.Rev       // the store may count what comes up to it as read, and drop that
	pending bool            // the box may have more
	ended   bool            // the stream of reader has ended, and an older one is open here
	told    scale.Rev       // the newest message of which a hint came
	unsure  bool            // the reply of a read was lost: what it returned was not sent
	owed    scale.Rev       // up to which the store counts as given what is not in batch; 0 if nothing is
	leaving bool            // the store has not confirmed that reader has left
	leaveAt scale.Rev       // while leaving, the Take.After
	or      string          // while leaving, the name under which this replica may read in place of reader; "" for none
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
	nearlyAll  = scale.MaxValue - 64<<10 // a read of more bytes may have left some behind
)

// readerSubject is the subject that the store notifies for the readers of a replica.
func readerSubject(node string) string { return "readers:" + node }

// readerName names one opening of a stream: its replica, the number of the opening, and the
// stream, which is named after its first opening.
func readerName(node string, opening uint64, stream string) string {
	return readerSubject(node) + "/" + strconv.FormatUint(opening, 36) + "+" + stream
}

// renamed returns the name of a reader with another stream.
func renamed(reader, stream string) string {
	opening, _, _ := strings.Cut(reader, "+")
	return opening + "+" + stream
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
func boxOf(id string) string { return "stream:" + replica.StoreKey("session", id, partitions).Name }

func newInbox(m *Manager, s *Session) *inbox {
	return &inbox{manager: m, session: s, box: boxOf(s.id), storing: make(chan struct{}, 1)}
}

func (b *inbox) lock() (unlock func()) {
	b.storing <- struct{}{}
	return func() { <-b.storing }
}

// open opens messages up to the first that does not open, because this replica does not
// have its key yet. A stream at another replica gets that message, and all later ones. open
// drops such a message after a day, so that it does not block the others.
func (b *inbox) open(messages []scale.Message) (opened []scale.Message, whole bool) {
	for _, m := range messages {
		text, _, err := b.manager.config.Seal.Open(m.Data, seal.Binding(b.box))
		switch {
		case err == nil:
			m.Data = text
			opened = append(opened, m)
			continue
		case m.Rev < scale.Rev(time.Now().Add(-stateRetention).UnixMicro()):
			b.manager.reportError(fmt.Errorf("session: a message of a stream is left out after a day: %w", err))
			continue
		}
		b.manager.reportError(fmt.Errorf("session: a message of a stream waits for a replica that opens it: %w", err))
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
	data := b.sealed(message)
	if rev, err := b.postHere(ctx, message, data); !errors.Is(err, scale.ErrNotReader) {
		return rev > 0, err
	}
	rev, reader, err := b.append(ctx, scale.AppendOp{Data: data, Keep: inboxBytes})
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.state == reading && reader == b.reader {
		b.hint(rev)
	}
	return rev > 0, err
}

// postHere is post for a stream here that has all that is in the box: the message need not
// be read. The error is scale.ErrNotReader if there is none.
func (b *inbox) postHere(ctx context.Context, message, data []byte) (rev scale.Rev, err error) {
	s := b.session
	select {
	case b.storing <- struct{}{}: // nothing else is asked of the store
		defer func() { <-b.storing }()
	default:
		return 0, scale.ErrNotReader
	}
	s.mu.Lock()
	reader, pos := b.reader, b.pos
	// The store would count a message as read that is still written.
	all := b.state == reading && !b.ended && !b.pending && !b.unsure && b.owed == 0 && len(b.batch) == 0 && pos == b.sent && b.writing == nil
	s.mu.Unlock()
	if !all || !s.outbox.budget.queue(len(message), s) {
		return 0, scale.ErrNotReader
	}
	rev, _, err = b.append(ctx, scale.AppendOp{Data: data, Keep: inboxBytes, From: reader, After: pos})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case rev == 0:
		s.outbox.budget.unqueue(len(message))
		b.unsure = b.unsure || err != nil && !errors.Is(err, scale.ErrNotReader)
		b.hint(0)
	case s.outbox.hold(len(message)):
		b.batch, b.pos = append(b.batch, scale.Message{Rev: rev, Data: message}), rev
		if out := s.outbox.newest(); out != nil {
			out.wake()
		}
	}
	return rev, err
}

func (b *inbox) sealed(message []byte) []byte {
	return b.manager.config.Seal.Seal(nil, message, seal.Binding(b.box))
}

// append adds to the box what is sealed. rev is 0 if there is no room.
func (b *inbox) append(ctx context.Context, p scale.AppendOp) (rev scale.Rev, reader string, err error) {
	m := b.manager
	p.Box, p.Recent, p.TTL, p.Refuse = b.box, max(m.config.History, 1), m.ttl(), true
	b.session.mu.Lock()
	b.filled = true
	b.session.mu.Unlock()
	defer b.deleteEnded() // or the message makes the box again
	rev, reader, err = m.appendBox(ctx, p)
	switch {
	case errors.Is(err, scale.ErrFull):
		return 0, reader, nil
	case err != nil:
		rev = 0
	}
	return rev, reader, err
}

// deleteEnded deletes the box if the session has ended for all replicas, and this one may
// have made the box after that.
func (b *inbox) deleteEnded() {
	b.session.mu.Lock()
	defer b.session.mu.Unlock()
	if b.filled && b.session.isDeleted() {
		b.manager.retry(func(ctx context.Context) error { _, err := b.manager.takeBox(ctx, scale.Take{Box: b.box}); return err })
	}
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

// take makes the newest stream here the reader, for the stream out. The client of that has what
// comes up to the event last, "" if it does not say.
func (b *inbox) take(ctx context.Context, out *outStream, last string) error {
	s, m := b.session, b.manager
	defer b.lock()()
	after := scale.Unread
	from, own := parseEventID(last)
	if own = own && from.stream&unsolicitedStream != 0; own {
		after = scale.Rev(from.stream &^ unsolicitedStream)
	}
	s.mu.Lock()
	idle := s.reason != nil || len(s.outbox.open) == 0
	if !own && b.state == reading {
		after = b.sent // what was read and not sent stays in the box
		b.marked = max(b.marked, after)
	}
	s.mu.Unlock()
	if idle {
		return nil
	}
	me, resumed := b.newReader(), ""
	if own {
		resumed = renamed(me, strconv.FormatUint(from.node, 36)+"."+strconv.FormatUint(from.event, 36))
	}
	m.inboxes.Store(b.box, s) // hints may come before the reply
	found, err := b.manager.takeBox(ctx, scale.Take{Box: b.box, Reader: me, Resume: resumed, After: after, TTL: m.ttl()})
	s.mu.Lock()
	defer s.mu.Unlock()
	old, sure := b.reader, !b.leaving
	b.reader, b.checked = me, time.Now()
	if err != nil { // it may be the reader: reconcile makes it leave
		if own {
			b.reader, b.or = resumed, me
		}
		b.state, b.leaving, b.leaveAt = standby, true, after
		m.inboxes.Delete(b.box)
		b.passOn(old, nil)
		return err
	}
	b.state, b.leaving, b.wait, b.or, b.ended = reading, false, 0, "", false
	switch {
	case own && streamOf(found.Reader) == streamOf(resumed): // what follows the event is read again
		b.reader, found.Resumed = resumed, found.Resumed+" "+resumed
		b.passOn(old, &found)
		b.pos = min(after, found.Last)
	case found.Reader != old || old == "" || !sure: // what follows the event of the client was sent on another stream
		b.passOn(old, &found)
		b.pos = found.Given
	}
	if len(b.batch) == 0 {
		b.sent = b.pos
	}
	out.stream, out.sent = streamOf(b.reader), b.sent
	if found.Last > b.pos || b.unsure || len(b.batch) > 0 || b.pending {
		b.hint(0)
	}
	if last != "" || found.Reader != "" {
		s.subscriptions.recheck(s)
	}
	return nil
}

// mine reports whether it is the turn of the stream out to read. s.mu is held.
func (b *inbox) mine(out *outStream) bool {
	return b.state == reading && (b.ended || b.pending && len(b.batch) == 0) && b.session.outbox.newest() == out
}

// fetch reads what the stream out is to send, if it is the turn of that, and reports whether
// there is something new.
func (b *inbox) fetch(out *outStream) bool {
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
	me, pos, ended := b.reader, b.pos, b.ended
	s.mu.Unlock()
	switch {
	case !mine:
		return false
	case ended:
		return b.succeed(me)
	}
	messages, _, err := b.manager.readBox(b.manager.ctx, b.box, pos, me)
	batch, whole := b.open(messages)
	size := bytesOf(batch)
	room := s.outbox.budget.queue(size, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, scale.ErrNotReader):
		b.standBy()
		return false
	case err != nil:
		b.unsure = true
		time.AfterFunc(retryInterval, func() { s.hint(0) })
		return false
	}
	b.unsure, b.owed, b.checked = false, 0, time.Now()
	if !room || !s.outbox.hold(size) {
		b.giveBack(messages[len(messages)-1].Rev)
		time.AfterFunc(retryInterval, func() { s.hint(0) })
		return false
	}
	b.batch = append(b.batch, batch...)
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
	return len(b.batch) > 0
}

// newReader returns the name of a reader for a stream that begins.
func (b *inbox) newReader() string {
	node, number := b.manager.config.ReplicaID, b.manager.numbers.tokens.Add(1)
	return readerName(node, number, node+"."+strconv.FormatUint(number, 36))
}

// succeed makes an older stream here the reader after the stream of me has ended, unless the
// client of that has come back elsewhere. It returns what was not sent to the box, and
// reports whether the stream reads. If both are one stream to which the client has come back
// twice, the older connection may be the one that it uses: that gets what follows its own last
// message. The store is in use.
func (b *inbox) succeed(me string) bool {
	s, m := b.session, b.manager
	s.mu.Lock()
	t := scale.Take{Box: b.box, From: me, Reader: b.newReader(), After: b.sent, TTL: m.ttl()}
	out := s.outbox.newest()
	if out != nil && out.stream == streamOf(me) {
		t.Reader, t.After = renamed(t.Reader, out.stream), out.sent
	}
	s.mu.Unlock()
	_, err := m.takeBox(m.ctx, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, scale.ErrNotReader):
		b.standBy()
	case err != nil:
		time.AfterFunc(retryInterval, func() { s.hint(0) })
	default:
		b.clear()
		b.reader, b.pos, b.sent, b.pending, b.checked = t.Reader, t.After, t.After, true, time.Now()
		if out != nil {
			out.stream, out.sent = streamOf(t.Reader), t.After
		}
	}
	return err == nil
}

// standBy notes that another stream reads. s.mu is held.
func (b *inbox) standBy() {
	b.state = standby
	b.manager.inboxes.Delete(b.box)
	b.checked, b.wait = time.Now(), firstLook
	b.passOn(b.reader, nil)
}

// makeRoom drops what was read and not sent: it is read again. s.mu is held, and the
// outbox gives back the room.
func (b *inbox) makeRoom() {
	if len(b.batch) > 0 {
		b.giveBack(b.batch[len(b.batch)-1].Rev)
		b.batch, b.pos, b.pending = nil, b.sent, true
	}
}

// errBehind is the error of messages that another replica has to send, while the client does not
// read those before them.
var errBehind = errors.New("session: messages for another replica wait behind those that a client does not read")

// giveBack makes the store note that what follows b.pos was not given after all, up to rev, and
// adds messages again that it has dropped. s.mu is held.
func (b *inbox) giveBack(rev scale.Rev, dropped ...scale.Message) {
	b.owed = rev
	b.manager.retry(func(ctx context.Context) error {
		defer b.lock()()
		b.session.mu.Lock()
		me, pos, back, wait := b.reader, b.pos, b.state == reading && b.owed > b.pos, len(b.batch) > 0
		if back && !wait {
			b.marked = max(b.marked, pos)
		}
		b.session.mu.Unlock()
		switch {
		case !back:
			return b.restoreDropped(ctx, dropped)
		case wait: // or the store would count it as read
			return errBehind
		}
		_, err := b.manager.takeBox(ctx, scale.Take{Box: b.box, From: me, Reader: me, After: pos, TTL: b.manager.ttl()})
		switch {
		case errors.Is(err, scale.ErrNotReader): // the next read finds that
		case err != nil:
			return err
		default:
			b.session.mu.Lock()
			b.owed = 0
			b.session.mu.Unlock()
		}
		return b.restoreDropped(ctx, dropped)
	})
}

// restoreDropped adds messages to the box again that are not there.
func (b *inbox) restoreDropped(ctx context.Context, messages []scale.Message) error {
	for _, m := range messages {
		list, _, err := b.manager.readBox(ctx, b.box, m.Rev-1, "")
		if err == nil && (len(list) == 0 || list[0].Rev != m.Rev) {
			_, _, err = b.append(ctx, scale.AppendOp{Data: b.sealed(m.Data), Keep: 4 * inboxBytes})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passOn appends messages again that were read here by the reader was, and not sent, as
// another reader has begun after them; not if a later one has gone on with the same stream: it
// has them by the id with which its client came. found is the box, nil if it is not known. If
// the reply of a read was lost, all that follows counts as read. s.mu is held.
func (b *inbox) passOn(was string, found *scale.Box) {
	rest, pos, owed := b.clear()
	if len(rest) > 0 || owed > 0 {
		b.appendAgain(was, found, rest, pos, owed)
	}
}

// appendAgain is passOn for messages, and for what follows pos in the box, up to owed.
func (b *inbox) appendAgain(was string, found *scale.Box, rest []scale.Message, pos, owed scale.Rev) {
	var data [][]byte
	for _, m := range rest {
		data = append(data, b.sealed(m.Data))
	}
	b.manager.retry(func(ctx context.Context) error {
		b.session.mu.Lock()
		deleted := b.session.isDeleted()
		b.session.mu.Unlock()
		if found == nil {
			box, err := b.manager.takeBox(ctx, scale.Take{Box: b.box, From: leftName("none"), Reader: leftName("none"), TTL: b.manager.ttl()})
			if err != nil && !errors.Is(err, scale.ErrNotReader) {
				return err
			}
			found = &box
		}
		resumed := func(name string) bool { return name != was && streamOf(name) == streamOf(was) }
		if deleted || slices.ContainsFunc(strings.Fields(found.Resumed), resumed) {
			return nil
		}
		if owed > 0 {
			messages, _, err := b.manager.readBox(ctx, b.box, pos, "")
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
			switch rev, _, err := b.append(ctx, scale.AppendOp{Data: data[0], Keep: 4 * inboxBytes}); {
			case err != nil:
				return err
			case rev == 0:
				return scale.ErrFull
			}
			data = data[1:]
		}
		return nil
	})
}

// clear forgets what was read and not sent, and returns that: messages, and up to owed what
// follows pos in the box. s.mu is held.
func (b *inbox) clear() (rest []scale.Message, pos, owed scale.Rev) {
	rest, owed = b.batch, b.owed
	if b.unsure {
		owed = math.MaxInt64
	}
	b.session.outbox.free(bytesOf(rest))
	b.batch, b.unsure, b.owed, b.ended = nil, false, 0, false
	return rest, b.pos, owed
}

// next takes a message for the stream out. s.mu is held.
func (b *inbox) next(out *outStream) (id string, message []byte) {
	if len(b.batch) == 0 || b.ended || out.over || b.session.outbox.newest() != out {
		return "", nil
	}
	m := b.batch[0]
	b.batch, b.writing = b.batch[1:], out
	out.before, out.reader = b.sent, b.reader
	b.sent, out.sent = m.Rev, m.Rev
	b.session.outbox.free(len(m.Data))
	return b.eventID(streamOf(b.reader), b.sent, 0), m.Data
}

// wrote notes that out writes no message any more. s.mu is held.
func (b *inbox) wrote(out *outStream) {
	if b.writing == out {
		b.writing = nil
	}
}

// restoreUnsent notes that the connection of out broke over the message that it took last, and
// reports whether that is one of the inbox. The next stream gets the message. s.mu is held.
func (b *inbox) restoreUnsent(out *outStream, message []byte) bool {
	b.wrote(out)
	switch box := &b.session.outbox; {
	case out.reader == "":
		return false
	case b.state == reading && b.reader == out.reader && b.sent == out.sent:
		again, dropped := scale.Message{Rev: out.sent, Data: message}, b.marked >= b.sent // by the store, perhaps
		b.sent, out.sent = out.before, out.before
		if dropped {
			last := append([]scale.Message{again}, b.batch...)
			box.free(bytesOf(b.batch))
			b.batch, b.pos, b.pending = nil, b.sent, true
			b.giveBack(max(last[len(last)-1].Rev, b.owed), again)
		} else if box.budget.unqueue(-len(message)); box.hold(len(message)) { // it waits again
			b.batch = slices.Insert(b.batch, 0, again)
		}
	default: // another reader has begun after the message
		b.appendAgain(out.reader, nil, []scale.Message{{Data: message}}, 0, 0)
	}
	return true
}

// own returns the id of an event that is not in the box: of a stream that begins, or of a
// change of which all replicas notify their own streams. s.mu is held.
func (b *inbox) own() string {
	return b.eventID(streamOf(b.reader), b.sent, b.manager.numbers.unasked.Add(1))
}

// eventID returns the id of an event of a stream after the message sent. s.mu is held.
func (b *inbox) eventID(stream string, sent scale.Rev, local uint64) string {
	if !b.session.history.resumable() {
		return ""
	}
	node, number, _ := strings.Cut(stream, ".")
	id := eventID{stream: unsolicitedStream | uint64(sent), local: local, at: b.manager.config.ReplicaID}
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
	if from, ok := parseEventID(last); ok && from.stream&unsolicitedStream != 0 || b.state != reading ||
		!s.revision.Has(protocol.FeaturePrimedStreams) {
		return ""
	}
	return b.own()
}

// leave makes the store note that no stream here reads, if none is open, or all is set.
// After an error, reconcile tries again.
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
	me, or, at, ttl := b.reader, b.or, b.leaveAt, b.manager.ttl()
	if s.isDeleted() {
		ttl = 0 // and no stream will read again
	}
	if b.pending = false; b.state == reading {
		b.state = closed
	}
	b.manager.inboxes.Delete(b.box)
	s.mu.Unlock()
	found, err := b.manager.takeBox(ctx, scale.Take{Box: b.box, From: me, Reader: leftName(streamOf(me)), After: at, TTL: ttl})
	if errors.Is(err, scale.ErrNotReader) && or != "" { // the reply of a take was lost
		me = or
		found, err = b.manager.takeBox(ctx, scale.Take{Box: b.box, From: me, Reader: leftName(streamOf(me)), After: scale.Unread, TTL: ttl})
	}
	taken := errors.Is(err, scale.ErrNotReader)
	if err != nil && !taken {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.leaving, b.wait, b.or = false, 0, ""; taken {
		b.passOn(me, &found)
	} else {
		b.clear() // the next reader gets the rest
	}
	return nil
}

// standIn makes a stream that stands by the reader, if the reader has left or its replica
// is gone. If that reader had the same stream, for a client that has come back twice, the
// stream continues after its own last message.
func (b *inbox) standIn(ctx context.Context) error {
	_, now, err := b.manager.readBox(ctx, b.box, scale.Unread, "")
	if err != nil {
		return err
	}
	if node := readerNode(now); node != "" && node != b.manager.config.ReplicaID {
		lives, err := b.manager.lives(ctx, node)
		if err != nil || lives {
			b.session.mu.Lock()
			defer b.session.mu.Unlock()
			b.checked, b.wait = time.Now(), min(max(2*b.wait, firstLook), replica.StreamCheck)
			return err
		}
	}
	s := b.session
	s.mu.Lock()
	out, last := s.outbox.newest(), ""
	if out != nil && out.stream != "" {
		last = b.eventID(out.stream, out.sent, 0)
	}
	s.mu.Unlock()
	if out == nil {
		return nil
	}
	return b.take(ctx, out, last)
}

// due reports what reconcile has to do for a session.
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
