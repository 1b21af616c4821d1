package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// mailbox says where the messages of a session go that belong to no request,
// when replicas share the session: to the replica that has the newest of its
// streams, whichever of them a message is made at.
//
// The store has an entry for it beside that of the session. Its owner is the
// token of the replica that listens, "" if none does, and its value the messages
// that wait for one. Every change is made on the condition that there was no other
// since, so that a message is either with the one that takes over, or sent to it.
// A token is never used twice: what is told of an earlier one changes nothing.
//
// At one replica, a session is in one of these states.
//
//	away     Nothing goes out here: no stream is open, or another replica has
//	         taken over, and the streams stay open in silence.
//	taking   A stream was opened, and its token is on its way to the store.
//	         Messages that are made here gather for it.
//	outrun   As taking, but another replica has taken over since. What was taken
//	         goes there.
//	holding  The owner is this token, or was it until a moment ago: who takes
//	         over says so in a message. The store has no part in what is made
//	         and goes out here.
//
// A message goes to one stream alone, also where several are open, or are being
// opened, at once. What makes this so:
//
//   - The token of who takes over is known here before it is in the store: that
//     another replica has taken over from it may be heard before the store's reply.
//   - What waits in the store is taken out by a write of its own, on the condition
//     that nobody has taken over since the first one.
//   - Who is told that it listens no more passes on what has not gone out; who is
//     sent a message while it does not listen passes it on as well.
//
// A replica that is killed takes with it what waits for a slow client there, and
// what was on its way to it. A write whose reply is lost may be made twice: the
// message is found to be there already, unless it has gone out meanwhile.
//
// That another replica has taken over does not end a stream: see Session.listen.
// When the one that has taken over has no stream any more, whoever has one open
// listens again; noteLeft and noteWaits are for that alone.
//
// take leads from away to taking, and from there to holding; letGo from taking to
// outrun, and from holding to away; and release, when no stream is left, from
// holding to away. What had not gone out is passed on then.
type mailbox struct {
	manager *courier
	session *Session // nil where there is no copy of it
	id      string

	storing chan struct{} // has an element while the store is used

	// The mu of the session guards these. They are written with storing held, but
	// for what letGo does.
	state  listening
	claims bool      // somebody is about to write the token
	token  string    // while state is not away
	rev    scale.Rev // of the entry, while state is holding
	before string    // the token that this one has taken over from, "" if none
	sealed []byte    // what waits in the store all the same while state is holding: this replica has not the key
	others bool      // other replicas have streams that are open in silence
	other  string    // the replica that is known to listen while this one does not; "" if none is
	unsure bool      // what the store has may be another state than this: renew sees to it

	checked time.Time // when it was looked up last who listens, or a stream was opened
	kept    time.Time // when the store was told last how long it keeps the entry
}

// listening is a state of a mailbox.
type listening uint8

const (
	away listening = iota
	taking
	outrun
	holding
)

// The bounds of what waits in the store for a stream of one session.
const (
	maxMail   = outboxSize
	mailBytes = 768 << 10
	partBytes = 512 << 10 // of messages that are sent to another replica at once
)

// The kinds of messages between replicas. The bodies are notes.
const (
	noteMail  = "mail"          // messages for the streams of a session
	noteTaken = "stream taken"  // another replica listens
	noteLeft  = "stream closed" // the replica that has taken over listens no more
	noteWaits = "stream waits"  // another replica would listen if this one did not
)

// note is what one replica tells another of the streams of a session.
type note struct {
	Session  string            `json:"session"`
	Token    string            `json:"token,omitempty"`    // of the listener that it is about
	Last     string            `json:"last,omitempty"`     // the id of the event that the client has got
	Listener string            `json:"listener,omitempty"` // the replica that has taken over, if it is not the sender
	Messages []json.RawMessage `json:"messages,omitempty"`
}

// mailKey returns where the store has who listens to a session.
func mailKey(id string) scale.Key {
	key := keyOf(id)
	key.Name = "mail:" + key.Name
	return key
}

// nodeOf returns the replica whose token it is.
func nodeOf(token string) string {
	node, _, _ := strings.Cut(token, ".")
	return node
}

// errSealed is wrapped by the error of messages in the store that do not open:
// another replica has sealed them with a key that this one does not have yet. They
// stay as they are, and others cannot be added.
var errSealed = fmt.Errorf("%w: the messages of a session in the store do not open", scale.ErrUnavailable)

// errBusyStore is the error of who waits in vain for others that use the store for
// the same session.
var errBusyStore = fmt.Errorf("%w: messages of the session that came before wait for it", scale.ErrUnavailable)

// newMailbox returns that of a session, of which s is the copy here; nil if there
// is none.
func newMailbox(m *courier, s *Session, id string) *mailbox {
	return &mailbox{manager: m, session: s, id: id, storing: make(chan struct{}, 1)}
}

// lock waits until nobody else uses the store for the session, and returns a context
// for who uses it then: he is given as long as who has used it before.
func (l *mailbox) lock(ctx context.Context) (_ context.Context, unlock func(), err error) {
	timer := time.NewTimer(2 * replica.StoreTimeout)
	defer timer.Stop()
	select {
	case l.storing <- struct{}{}:
		ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
		return ctx, func() { cancel(); <-l.storing }, nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("session: %w", ctx.Err())
	case <-timer.C:
		return nil, nil, errBusyStore
	}
}

// here tells whether messages go out here, or will in a moment. The mu of the
// session is held.
func (l *mailbox) here() bool { return l.state == taking || l.state == holding }

// open returns the messages that wait in an entry.
func (l *mailbox) open(e scale.Entry) (messages []json.RawMessage, err error) {
	if len(e.Value) == 0 {
		return nil, nil
	}
	text, _, err := l.manager.config.Seal.Open(e.Value, seal.Binding(e.Key.Name))
	if err == nil {
		err = json.Unmarshal(text, &messages)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errSealed, err)
	}
	return messages, err
}

// put writes who listens, and what waits for one, if the entry is prev still.
func (l *mailbox) put(ctx context.Context, prev scale.Rev, owner string, waiting []byte) (scale.Entry, error) {
	if waiting == nil {
		waiting = []byte{}
	}
	e, err := l.manager.put(ctx, scale.Write{Key: mailKey(l.id), Prev: prev, Owner: owner, Value: waiting, TTL: l.manager.ttl()})
	if err == nil && e.Err != nil && !errors.Is(e.Err, scale.ErrChanged) {
		err = e.Err
	}
	return e, err
}

// take makes this replica the one that listens, if a stream is open here, and with
// ifFree only if no other does. last is the id of the event that the client has
// got, "" if none. The error is that of the store; nothing of what waits is lost
// then.
func (l *mailbox) take(ctx context.Context, last string, ifFree bool) error {
	other, taken, rest, err := l.takeOver(ctx, last != "", ifFree)
	if err != nil {
		if other != "" && nodeOf(other) != l.manager.config.Node {
			l.tell(nodeOf(other), noteLeft, note{Session: l.id}) // perhaps: he asks the store
		}
		return err
	}
	l.passOn(rest)
	if !taken && other != "" {
		l.tell(nodeOf(other), noteWaits, note{Session: l.id, Token: other})
		return nil
	}
	l.tellTaken(other, last)
	return l.release(ctx, false) // if the stream has left meanwhile
}

// takeOver is take but for what the other replicas have to hear. back says that the
// client has had a stream before. other is the token of who has listened until now,
// or, if it was not taken, does so. rest are messages that are for somebody else after
// all, or that have no room here.
func (l *mailbox) takeOver(ctx context.Context, back, ifFree bool) (other string, taken bool, rest []json.RawMessage, err error) {
	s := l.session
	ctx, unlock, err := l.lock(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !l.claims && (l.state == taking || l.state == outrun) { // nobody writes the token
			l.state, l.unsure, l.others = away, true, true
		}
		return "", false, nil, err
	}
	defer unlock()
	if there, err := l.holds(ctx); there {
		if !ifFree {
			err = nil // the stream is one of those that there are
		}
		return "", false, nil, err
	}
	s.mu.Lock()
	if s.reason != nil || len(s.outbox.open) == 0 {
		defer s.mu.Unlock()
		if l.state == away {
			rest = s.outbox.withdraw() // of a stream that has left meanwhile
		}
		return "", false, rest, nil
	}
	l.begin()
	l.claims = true
	s.mu.Unlock()
	e, before, messages, err := l.claim(ctx, ifFree, back || ifFree)
	ended := err == nil && e.Owner == l.token && s.Ended() && !l.manager.relay.isClosed()
	if ended { // the entry may have been deleted with the session, and made again
		l.drop(e.Rev)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.claims = false
	switch {
	case err != nil:
		l.state, l.unsure, l.others = away, true, true
		return before, false, nil, err
	case ended:
		l.state, l.unsure = away, false
		return "", false, messages, nil
	case e.Owner != l.token:
		l.state, l.unsure, l.other = away, false, nodeOf(e.Owner)
		return e.Owner, false, s.outbox.withdraw(), nil
	case l.state == outrun:
		l.state = away
		return before, true, append(messages, s.outbox.withdrawAll()...), nil
	}
	l.state, l.unsure, l.rev, l.before, l.others, l.sealed = holding, false, e.Rev, before, l.others || before != "", e.Value
	s.subscriptions.rejoin(s) // what was raised meanwhile may have been sent to nobody
	return before, true, s.outbox.bring(messages, true), nil
}

// holds tells whether this replica listens, as the store says: what tells of
// another one may be under way. If the store does not answer, it listens on.
func (l *mailbox) holds(ctx context.Context) (there bool, err error) {
	s := l.session
	if !s.listens() {
		return false, nil
	}
	e, err := l.manager.get(ctx, scale.Look{Key: mailKey(l.id)})
	if err != nil {
		return true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.state == holding && e.Owner != l.token {
		l.state, l.other = away, nodeOf(e.Owner)
	}
	l.unsure = l.unsure && l.state != holding
	return l.state == holding, nil
}

// begin gives this replica a new token, unless it has one. The mu of the session is
// held.
func (l *mailbox) begin() {
	l.checked = time.Now()
	if l.state == away {
		l.state, l.token = taking, l.manager.token()
	}
}

// claim writes the token, and takes what waits. That is in two steps: what waits
// is taken out of the store only when it is known that this replica listens. It
// returns the entry as it is then: with another owner if it was not free. there says
// that there is one, most likely: a look costs less than a write in vain.
func (l *mailbox) claim(ctx context.Context, ifFree, there bool) (e scale.Entry, before string, messages []json.RawMessage, err error) {
	if there {
		if e, err = l.manager.get(ctx, scale.Look{Key: mailKey(l.id)}); err != nil {
			return e, "", nil, err
		}
	}
	var waiting []byte
	for {
		if ifFree && e.Owner != "" && nodeOf(e.Owner) != l.manager.config.Node {
			return e, "", nil, nil
		}
		before, waiting = e.Owner, e.Value
		if e, err = l.put(ctx, e.Rev, l.token, waiting); err != nil {
			return e, before, nil, err
		}
		if e.Err == nil {
			break
		}
	}
	if len(waiting) == 0 {
		return e, before, nil, nil
	}
	if messages, err = l.open(scale.Entry{Key: e.Key, Value: waiting}); err != nil {
		l.manager.failed(err)
		e.Value = waiting // they stay for one who has the key
		return e, before, nil, nil
	}
	switch cleared, err := l.put(ctx, e.Rev, l.token, nil); {
	case err != nil:
		// The next write clears it. If somebody else takes over before that, he
		// sends them once more.
	case cleared.Err != nil:
		messages = nil // somebody else has them
	default:
		e = cleared
	}
	return e, before, messages, nil
}

// passOn passes messages on that have been accepted, and returns at once.
func (l *mailbox) passOn(messages []json.RawMessage) {
	if len(messages) > 0 {
		l.manager.insist(func(ctx context.Context) (err error) {
			messages, err = l.route(ctx, messages)
			return err
		})
	}
}

// tellTaken tells the replica that has listened until now, and the one that knows
// what followed last, that this one does.
func (l *mailbox) tellTaken(before, last string) {
	nodes := make(map[string]string)
	if from, ok := parseEventID(last); ok && from.stream&ownStream != 0 && from.node != 0 {
		nodes[strconv.FormatUint(from.node, 36)] = ""
	}
	if before != "" {
		nodes[nodeOf(before)] = before
	}
	delete(nodes, l.manager.config.Node)
	for node, token := range nodes {
		l.tell(node, noteTaken, note{Session: l.id, Token: token, Last: last})
	}
}

// letGo handles that another replica has taken over, from token, "" if from none of
// this mailbox, and that the client comes back there with last. Who has listened
// before this replica did hears of it from here: its streams may be open still.
func (l *mailbox) letGo(other, token, last string) {
	s := l.session
	var waiting []json.RawMessage
	s.mu.Lock()
	before, news := nodeOf(l.before), l.other != other
	l.other = other
	if token != "" && token == l.token {
		switch l.state {
		case taking:
			l.state = outrun
		case holding:
			l.state = away
			waiting = s.outbox.withdrawAll()
		}
	}
	s.mu.Unlock()
	var messages []json.RawMessage
	if from, ok := s.history.ours(last); ok { // after that, or one would be in neither
		missed, _ := s.history.missed(from.stream, from.event) // what is too long is a gap
		for _, r := range missed {
			if r.message != nil {
				messages = append(messages, r.message)
			}
		}
	}
	messages = append(messages, waiting...)
	l.passOn(messages)
	if news && before != "" && before != other && before != l.manager.config.Node {
		l.tell(before, noteTaken, note{Session: l.id, Listener: other})
	}
}

// left handles what tellLeft tells.
func (l *mailbox) left(token string) {
	s := l.session
	s.mu.Lock()
	lost := false
	switch {
	case l.token != token:
	case l.state == taking:
		l.state = outrun
	case l.state == holding:
		l.state, lost = away, true
	}
	lost = lost || len(s.outbox.open) > 0
	s.mu.Unlock()
	if lost { // also if this replica listens: it may be about to hear that it does not
		l.manager.insist(func(ctx context.Context) error { return l.take(ctx, "", true) })
	}
}

// awaited notes that another replica would listen if this one, of that token, did
// not.
func (l *mailbox) awaited(token string) {
	s := l.session
	s.mu.Lock()
	listens := l.here() && l.token == token
	l.others = l.others || listens
	s.mu.Unlock()
	if !listens {
		l.free(token)
	}
}

// free makes nobody listen, if by the store token still does, which nobody has any
// more. It returns at once. The other replicas hear of it when the store no longer
// names the token: until then each would only ask again.
func (l *mailbox) free(token string) {
	l.manager.insist(func(ctx context.Context) error {
		ctx, unlock, err := l.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		e, err := l.manager.get(ctx, scale.Look{Key: mailKey(l.id)})
		if err == nil && e.Rev != 0 && e.Owner == token {
			_, err = l.put(ctx, e.Rev, "", e.Value) // if it has changed, somebody else listens
		}
		if err == nil && e.Rev != 0 {
			l.tellLeft(token)
		}
		return err
	})
}

// due tells whether it has to be settled who listens, whether it is time to look
// that up, and which replica has to live for a stream to be open in silence here.
func (l *mailbox) due(now time.Time) (settle, look bool, other string) {
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil || l.state == taking || l.state == outrun {
		return false, false, ""
	}
	if l.state == away && len(s.outbox.open) > 0 {
		other = l.other
	}
	return l.unsure, (len(s.outbox.open) > 0 || l.state == holding) && now.Sub(l.checked) >= replica.StreamCheck, other
}

// noteChecked notes when it was looked up who listens, and with kept that the store was
// told how long it keeps the entry.
func (l *mailbox) noteChecked(now time.Time, kept bool) {
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	l.checked = now
	if kept {
		l.kept = now
	}
}

// settle finds out who listens after a store that has not answered.
func (l *mailbox) settle(ctx context.Context) error {
	l.session.mu.Lock()
	open := len(l.session.outbox.open) > 0
	l.session.mu.Unlock()
	if open {
		return l.take(ctx, "", true)
	}
	return l.release(ctx, false)
}

// release makes nobody listen, if no stream is left here, and passes on what has
// not gone out. all does so even if streams are left. If the store fails, renew
// tries again.
func (l *mailbox) release(ctx context.Context, all bool) error {
	rest, err := l.giveUp(ctx, all)
	l.passOn(rest) // a stream may be opened before that is given up
	return err
}

// giveUp is release but for what the store has no room for, which it returns.
func (l *mailbox) giveUp(ctx context.Context, all bool) (rest []json.RawMessage, err error) {
	s := l.session
	ctx, unlock, err := l.lock(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.unsure = true
		return nil, err
	}
	defer unlock()
	closed := l.manager.relay.isClosed()
	s.mu.Lock()
	ended := s.reason != nil && !closed
	if l.state == away && !l.unsure || !all && !ended && (s.outbox.sends() || s.reason != nil) {
		s.mu.Unlock()
		return nil, nil
	}
	if ended {
		held := l.state == holding && !s.claimed.Load() // else the end here deletes it
		l.state, l.unsure = away, false
		s.mu.Unlock()
		if held {
			l.drop(l.rev)
		}
		return nil, nil
	}
	var known *scale.Entry
	if l.state == holding {
		known = &scale.Entry{Key: mailKey(l.id), Rev: l.rev, Owner: l.token, Value: l.sealed}
	}
	l.state, l.unsure, l.sealed = away, false, nil
	before, others := l.before, l.others
	l.others = false
	messages := s.outbox.withdraw()
	s.mu.Unlock()
	rest, err = l.deliver(ctx, messages, known)
	if err != nil && !errors.Is(err, scale.ErrFull) && !errors.Is(err, errSealed) {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.unsure, l.others = true, others
		return s.outbox.bring(rest, true), err
	}
	if others {
		l.tellLeft(before)
	}
	return rest, nil
}

// reseal seals what waits in the store anew, if that was with a key that goes. It
// returns at once. What somebody else writes meanwhile he has sealed.
func (l *mailbox) reseal() {
	l.manager.insist(func(ctx context.Context) error {
		ctx, unlock, err := l.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		e, err := l.manager.get(ctx, scale.Look{Key: mailKey(l.id)})
		if err != nil || e.Owner != "" || len(e.Value) == 0 {
			return err
		}
		sealer, binding := l.manager.config.Seal, seal.Binding(e.Key.Name)
		text, old, err := sealer.Open(e.Value, binding)
		if err == nil && old {
			_, err = l.put(ctx, e.Rev, "", sealer.Seal(nil, text, binding))
		}
		return err
	})
}

// judge deletes an entry that was made just now, if the session has ended. Who ends
// it deletes what was made before, so that it has to be asked after. It returns at
// once.
func (l *mailbox) judge(rev scale.Rev) {
	l.manager.insist(func(ctx context.Context) error {
		lives, err := l.manager.stands(ctx, l.id, l.session)
		if err == nil && !lives {
			l.drop(rev)
		}
		return err
	})
}

// drop deletes the entry of a session that has ended, which was made again by who
// had not heard of that yet. It returns at once.
func (l *mailbox) drop(rev scale.Rev) {
	l.manager.insist(func(ctx context.Context) error {
		_, err := l.manager.put(ctx, scale.Write{Key: mailKey(l.id), Prev: rev})
		return err
	})
}

// tellLeft tells the replicas that nobody listens any more, nor does who had token:
// another one had taken over from him, of which he may hear later only, or he was
// taken for gone.
func (l *mailbox) tellLeft(token string) {
	n := note{Session: l.id, Token: token}
	l.manager.handle(l.manager.config.Node, noteLeft, n)
	l.manager.insist(func(ctx context.Context) error { return l.manager.tellAll(ctx, noteLeft, n) })
}

// tell tells another replica. If that is gone, what it had is lost.
func (l *mailbox) tell(node, kind string, n note) {
	l.manager.insist(func(ctx context.Context) error {
		err := l.manager.tell(ctx, node, kind, n)
		if errors.Is(err, post.ErrNobody) {
			return nil
		}
		return err
	})
}

// route passes messages on to whoever listens, or lets them wait in the store.
// The error is that of the store, or wraps scale.ErrFull; rest are the messages
// that it holds for.
func (l *mailbox) route(ctx context.Context, messages []json.RawMessage) (rest []json.RawMessage, err error) {
	ctx, unlock, err := l.lock(ctx)
	if err != nil {
		return messages, err
	}
	defer unlock()
	return l.deliver(ctx, messages, nil)
}

// deliver is route with storing held. known is the entry, nil if it is not known;
// without messages it only makes nobody listen here.
func (l *mailbox) deliver(ctx context.Context, messages []json.RawMessage, known *scale.Entry) (rest []json.RawMessage, err error) {
	m := l.manager
	gone := "" // the owner, if its replica is
	for {
		if x := m.Here(l.id); x != nil && x.mailbox.arrived(messages) {
			return nil, nil
		}
		if known == nil {
			e, err := m.get(ctx, scale.Look{Key: mailKey(l.id)})
			if err != nil {
				return messages, err
			}
			known = &e
		}
		e := *known
		made := e.Rev == 0 // by this: nobody has listened yet, or the session has ended
		if e.Owner != gone && nodeOf(e.Owner) != m.config.Node {
			messages, err = m.sendMail(ctx, nodeOf(e.Owner), l.id, messages)
			if !errors.Is(err, post.ErrNobody) {
				return messages, err
			}
			gone = e.Owner
		}
		waiting, added, rest, failed := l.add(e, messages)
		if added || e.Owner != "" {
			if e, err = l.put(ctx, e.Rev, "", waiting); err != nil {
				return messages, err
			}
		}
		switch {
		case e.Err != nil:
			e.Err, known = nil, &e
			continue
		case made && e.Rev != 0:
			l.judge(e.Rev)
		}
		switch {
		case failed != nil:
			err = failed
		case len(rest) > 0:
			err = fmt.Errorf("session: %d messages for a client that has no stream open are too much: %w", len(rest), scale.ErrFull)
		}
		if gone != "" { // perhaps it was only not heard of for a while
			l.tellLeft(gone)
		}
		return rest, err
	}
}

// add returns what waits in an entry together with messages, those that wait
// already once. added tells whether there are more, and rest are those that have no
// room. With an error, what waits stays as it is.
func (l *mailbox) add(e scale.Entry, messages []json.RawMessage) (sealed []byte, added bool, rest []json.RawMessage, err error) {
	if len(messages) == 0 {
		return e.Value, false, nil, nil
	}
	waiting, err := l.open(e)
	if err != nil {
		return e.Value, false, messages, err
	}
	size := 0
	for _, m := range waiting {
		size += len(m)
	}
	for _, m := range messages {
		switch {
		case slices.ContainsFunc(waiting, func(other json.RawMessage) bool { return bytes.Equal(m, other) }):
		case len(waiting) >= maxMail || size+len(m) > mailBytes:
			rest = append(rest, m)
		default:
			waiting, added = append(waiting, m), true
			size += len(m)
		}
	}
	if !added {
		return e.Value, false, rest, nil
	}
	text, err := encodeNote(waiting)
	if err != nil {
		return e.Value, false, messages, err
	}
	return l.manager.config.Seal.Seal(nil, text, seal.Binding(e.Key.Name)), true, rest, nil
}

// arrived puts messages of another replica where they go out, if that is here.
func (l *mailbox) arrived(messages []json.RawMessage) bool {
	s := l.session
	if s == nil {
		return false
	}
	s.mu.Lock()
	here := l.here() && s.reason == nil
	dropped := 0
	if here {
		dropped = len(s.outbox.bring(messages, false))
	}
	s.mu.Unlock()
	if dropped > 0 { // what a client does not read is not kept for ever
		l.manager.failed(fmt.Errorf("session: %d messages of another replica are dropped: the client does not read its stream", dropped))
	}
	return here
}

// encodeNote encodes what one replica tells another. Messages stay as they are.
func encodeNote(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return text.Bytes(), err
}
