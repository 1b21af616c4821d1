package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// insistFor is how long a replica tries to pass on what it was entrusted with.
const insistFor = time.Minute

// courier is a Manager with a Store as its mailboxes see it: it tells other
// replicas who listens, and hears of them.
//
// Notes are kept in the boxes of their replicas until these have them. So one
// whose hint is lost is late by five seconds at most, and one that a replica could
// not send, as the store was away, is sent when that is back.
type courier struct {
	*Manager
	judged time.Time // when it was looked up last whether those live who listen; for renew

	metMu sync.Mutex
	met   map[string]time.Time // replicas that were sent a note, and lived when they were looked for then
}

const (
	metFor = time.Second // further notes are sent to a replica without looking for it
)

// token returns a name that no mailbox ever has had.
func (m *courier) token() string {
	return m.config.Node + "." + strconv.FormatUint(m.numbers.tokens.Add(1), 36)
}

// send sends a note to another replica, by Reply of the Office if that lives. The
// error is that of the Office.
func (m *courier) send(ctx context.Context, node string, lives bool, kind string, n note) error {
	if m.config.Post == nil {
		return post.ErrNobody
	}
	body, err := encodeNote(n)
	if err != nil {
		return err
	}
	by := m.config.Post.Send
	if lives {
		by = m.config.Post.Reply
	}
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	return by(ctx, node, kind, body)
}

// tell sends a note to a replica that may be gone, and looks for it unless it has done so
// a moment ago: when many streams come from one replica, each has a note for that.
func (m *courier) tell(ctx context.Context, node, kind string, n note) error {
	m.metMu.Lock()
	met := time.Since(m.met[node]) < metFor
	m.metMu.Unlock()
	err := m.send(ctx, node, met, kind, n)
	if err == nil && !met {
		m.metMu.Lock()
		defer m.metMu.Unlock()
		maps.DeleteFunc(m.met, func(_ string, at time.Time) bool { return time.Since(at) >= metFor })
		m.met[node] = time.Now()
	}
	return err
}

// sendMail sends messages for the stream of a session to the replica that has it,
// and returns those that it has not sent.
//
// It looks first, and once, whether that is heard of. If not, nothing is put into
// its box: it would have it when it goes on, and so would who finds it in the store.
func (m *courier) sendMail(ctx context.Context, node, id string, messages []json.RawMessage) (rest []json.RawMessage, err error) {
	if lives, err := m.lives(ctx, node); err != nil || !lives {
		return messages, cmp.Or(err, post.ErrNobody)
	}
	for len(messages) > 0 {
		n, size := 0, 0
		for n < len(messages) && (n == 0 || size+len(messages[n]) <= partBytes) {
			size += len(messages[n])
			n++
		}
		if err := m.send(ctx, node, true, noteMail, note{Session: id, Messages: messages[:n]}); err != nil {
			return messages, err
		}
		messages = messages[n:]
	}
	return nil, nil
}

// tellAll sends a note to all other replicas.
func (m *courier) tellAll(ctx context.Context, kind string, n note) error {
	body, err := encodeNote(n)
	if err != nil || m.config.Post == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	return m.config.Post.Tell(ctx, kind, body)
}

// delivered handles a message of another replica, and reports whether it is a note.
// It does not wait for anything.
func (m *courier) delivered(message post.Message) bool {
	switch message.Kind {
	case noteMail, noteTaken, noteLeft, noteWaits:
	default:
		return false
	}
	var n note
	if err := json.Unmarshal(message.Body, &n); err != nil {
		m.failed(fmt.Errorf("session: a message of another replica cannot be read: %w", err))
		return true
	}
	m.handle(message.From, message.Kind, n)
	return true
}

// handle handles what a replica tells of the streams of a session.
func (m *courier) handle(from, kind string, n note) {
	s := m.Here(n.Session)
	if s == nil {
		switch l := newMailbox(m, nil, n.Session); kind {
		case noteMail:
			l.passOn(n.Messages)
		case noteWaits:
			l.free(n.Token)
		}
		return
	}
	switch kind {
	case noteMail:
		if !s.mailbox.arrived(n.Messages) {
			s.mailbox.passOn(n.Messages)
		}
	case noteTaken:
		s.mailbox.letGo(cmp.Or(n.Listener, from), n.Token, n.Last)
	case noteLeft:
		s.mailbox.left(n.Token)
	case noteWaits:
		s.mailbox.awaited(n.Token)
	}
}

// insist does what this replica has to do for another or for a client that has
// left, on a goroutine of its own, again and again while the Store is away or
// there is no room. Once the Manager is closed it does so at once, and once.
func (m *courier) insist(do func(ctx context.Context) error) {
	ctx := context.WithoutCancel(m.ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.mu.Unlock()
		m.failed(do(ctx))
		m.mu.Lock()
		return
	}
	m.sweeping.Go(func() {
		for begun := time.Now(); ; {
			err := do(ctx)
			passes := errors.Is(err, scale.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, scale.ErrFull)
			if !passes || m.ctx.Err() != nil || time.Since(begun) > insistFor {
				m.failed(err)
				return
			}
			pause.For(m.ctx, time.Second)
		}
	})
}

// reseal seals anew what waits for those of the sessions that are in the table, if that
// was with a key that goes: a replica that seals with it adds to it until it is replaced.
func (m *courier) reseal(sessions []*Session) {
	if len(sessions) == 0 || !m.config.Seal.Rotating() {
		return
	}
	sessions = slices.DeleteFunc(sessions, func(s *Session) bool { return !m.isHere(s) })
	for chunk := range slices.Chunk(sessions, batch/16) { // what waits may be long
		looks := make([]scale.Look, len(chunk))
		for i, s := range chunk {
			looks[i].Key = mailKey(s.id)
		}
		for i, e := range m.lookAll(looks) {
			if e.Err != nil || e.Owner != "" || len(e.Value) == 0 {
				continue
			}
			if _, old, err := m.config.Seal.Open(e.Value, seal.Binding(e.Key.Name)); err == nil && old {
				chunk[i].mailbox.reseal()
			}
		}
	}
}

// check keeps what the store has of who listens to sessions that have a stream open
// here, and finds out what no message has told.
func (m *courier) check(sessions []*Session) {
	lives := make(map[string]bool)
	for chunk := range slices.Chunk(sessions, batch) {
		now, looks, tokens := time.Now(), make([]scale.Look, len(chunk)), make([]string, len(chunk))
		for i, s := range chunk {
			l := s.mailbox
			s.mu.Lock()
			looks[i] = scale.Look{Key: mailKey(s.id)}
			if l.state == holding { // else what is under way is not judged
				looks[i].Known, tokens[i] = l.rev, l.token
				if now.Sub(l.kept) >= keepNews {
					looks[i].TTL = m.ttl()
				}
			}
			s.mu.Unlock()
		}
		found := m.lookAll(looks)
		if found == nil {
			return
		}
		for i, e := range found {
			if e.Err != nil { // the next round looks again
				continue
			}
			l := chunk[i].mailbox
			l.noteChecked(now, looks[i].TTL > 0 && e.Rev == looks[i].Known)
			switch {
			case e.Rev != 0 && e.Rev == looks[i].Known:
			case tokens[i] != "":
				l.left(tokens[i])
			case e.Owner == "" || nodeOf(e.Owner) == m.config.Node:
				l.left("")
			default:
				node := nodeOf(e.Owner)
				l.letGo(node, "", "")
				if _, ok := lives[node]; !ok {
					there, err := m.lives(m.ctx, node)
					lives[node] = there || err != nil
				}
				if !lives[node] {
					l.free(e.Owner)
				}
			}
		}
	}
}

// orphans returns those of the sessions whose listener is gone. They come by the
// replica that has it.
func (m *courier) orphans(silent map[string][]*Session) (sessions []*Session) {
	if m.config.Post == nil || time.Since(m.judged) < replica.PollInterval {
		return nil
	}
	m.judged = time.Now()
	for node, some := range silent {
		switch lives, err := m.lives(m.ctx, node); {
		case err != nil:
			return nil // nobody is judged while the store is away
		case !lives:
			sessions = append(sessions, some...)
		}
	}
	return sessions
}

// lives tells whether a replica is there.
func (m *courier) lives(ctx context.Context, node string) (there bool, err error) {
	if m.config.Post != nil {
		err = m.use(ctx, func(ctx context.Context) error { there, err = m.config.Post.Lives(ctx, node); return err })
	}
	return there, err
}
