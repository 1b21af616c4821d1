package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// state is what replicas share of a session, as plain data. What cannot move to
// another process is not in it: open streams and the history of their events,
// messages that wait for a stream, requests under way in either direction,
// components that handlers have added to the session, and of the values of
// handlers those that are neither under a key of mcp.NewStoredKey nor, under a
// plain name, a string, a boolean, a number, or a list or map of such.
type state struct {
	ID            string                       `json:"id"`
	Principal     string                       `json:"principal,omitempty"`
	Revision      string                       `json:"revision"`
	ClientInfo    *protocol.Implementation     `json:"clientInfo,omitempty"`
	Capabilities  *protocol.ClientCapabilities `json:"capabilities,omitempty"`
	Initialized   bool                         `json:"initialized,omitempty"`
	LogLevel      protocol.Level               `json:"logLevel"`
	Subscriptions []string                     `json:"subscriptions,omitempty"` // sorted
	Assigns       map[string]json.RawMessage   `json:"assigns,omitempty"`
	old           bool                         // sealed with a key that goes
	Ended         string                       `json:"ended,omitempty"` // why it ends; see endedClosed
	Mark          scale.Rev                    `json:"mark,omitempty"`  // see subscriptions; 0 is when the session was opened
	unsaved       error                        // of values of handlers that do not encode, and are left out
}

// maxState is how long the state of a session may be, in bytes. What its client
// says of itself and subscribes to is shorter; the rest are values of handlers.
const maxState = 512 << 10

// readState reads what Session.encode has written, perhaps another release of
// this package. Members that it does not know are lost at the next change.
func readState(text []byte) (*state, error) {
	st := &state{}
	if err := json.Unmarshal(text, st); err != nil {
		return nil, fmt.Errorf("session: the state in the store cannot be read: %w", err)
	}
	return st, nil
}

// merge returns what is to be kept when mine and theirs have both grown out of
// base. What mine has changed is mine, and all else theirs: of two replicas that
// set one value, the one that keeps it later wins.
func merge(base, mine, theirs *state) *state {
	merged := *theirs
	merged.Initialized = mine.Initialized || theirs.Initialized
	if mine.LogLevel != base.LogLevel {
		merged.LogLevel = mine.LogLevel
	}
	merged.Mark = max(mine.Mark, theirs.Mark)
	merged.Subscriptions = mergeNames(base.Subscriptions, mine.Subscriptions, theirs.Subscriptions)
	merged.Assigns = maps.Clone(theirs.Assigns)
	for name, value := range mine.Assigns {
		if bytes.Equal(value, base.Assigns[name]) {
			continue
		}
		if merged.Assigns == nil {
			merged.Assigns = make(map[string]json.RawMessage)
		}
		merged.Assigns[name] = value
	}
	return &merged
}

// mergeNames is merge for sorted names.
func mergeNames(base, mine, theirs []string) (merged []string) {
	has := func(list []string, name string) bool { _, ok := slices.BinarySearch(list, name); return ok }
	for _, name := range theirs {
		if has(mine, name) || !has(base, name) { // otherwise mine has taken it out
			merged = append(merged, name)
		}
	}
	for _, name := range mine {
		if !has(base, name) && !has(theirs, name) {
			merged = append(merged, name)
		}
	}
	slices.Sort(merged)
	return merged
}

// restore returns a session with a state that another replica has kept. Its
// context is a child of ctx. A state of a revision without sessions is an error.
// The session counts as used. The ids of its events and requests are others than
// those of other replicas.
func restore(ctx context.Context, st *state) (*Session, error) {
	rev, ok := protocol.ParseRevision(st.Revision)
	if !ok || rev.Modern() || st.ID == "" {
		return nil, fmt.Errorf("session: the store has a session of revision %q, which has none", st.Revision)
	}
	info, _ := json.Marshal(st.ClientInfo) // it came as JSON
	capabilities, _ := json.Marshal(st.Capabilities)
	s := New(ctx, st.ID, core.ClientInfo{
		Revision: rev, Info: st.ClientInfo, Capabilities: st.Capabilities, Principal: st.Principal,
		Cost: core.ClientCost(info, capabilities),
	})
	s.uses = 2 // at another replica
	return s, s.apply(s.state(), st)
}

// state returns what replicas share of s. It may run code of users, that of
// assigns; s.mu is not held meanwhile. s.saving is held, or nobody else has s.
func (s *Session) state() *state {
	saved, failed := s.assigns.Save()
	st := &state{
		unsaved: errors.Join(failed...),
		ID:      s.id, Principal: s.principal, Revision: s.revision.String(),
		ClientInfo: s.info, Capabilities: s.capabilities,
		Initialized: s.Initialized(), LogLevel: s.LogLevel(), Assigns: saved, Ended: s.ending,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Subscriptions, st.Mark = slices.Sorted(maps.Keys(s.subscriptions.uris)), s.subscriptions.mark
	return st
}

// apply makes s what next says, where that differs from mine, which s was a
// moment ago. What a request has changed since stays as it is.
func (s *Session) apply(mine, next *state) error {
	if next.Initialized {
		s.initialized.Store(true)
	}
	if next.LogLevel != mine.LogLevel {
		s.level.CompareAndSwap(uint32(mine.LogLevel), uint32(next.LogLevel))
	}
	s.mu.Lock()
	s.subscriptions.mark = max(s.subscriptions.mark, next.Mark)
	if s.reason == nil {
		s.subscriptions.change(s, mine.Subscriptions, next.Subscriptions, max(scale.Rev(s.rev.Load()), 1))
	}
	s.mu.Unlock()
	values := maps.Clone(next.Assigns)
	maps.DeleteFunc(values, func(name string, value json.RawMessage) bool { return bytes.Equal(value, mine.Assigns[name]) })
	return s.assigns.Restore(values)
}

// encode returns the state as the store gets it, but for the seal. with has values
// that come in the place of those of assigns.
func (s *Session) encode(with map[string]any) (text []byte, err error) {
	err = safely.Try(func() (err error) {
		st := s.state()
		if st.unsaved != nil {
			s.unsaved.CompareAndSwap(nil, &st.unsaved)
		}
		for name, value := range with {
			if st.Assigns == nil {
				st.Assigns = make(map[string]json.RawMessage)
			}
			if st.Assigns[name], err = json.Marshal(value); err != nil {
				return fmt.Errorf("session: the value of a stored key cannot be shared: %w", err)
			}
		}
		text, err = json.Marshal(st)
		return err
	})
	if err == nil && len(text) > maxState {
		err = fmt.Errorf("session: the state has %d bytes; at most %d can be shared: keep large values elsewhere", len(text), maxState)
	}
	return text, err
}

// takeChanged tells whether something has changed since it was last called.
func (s *Session) takeChanged() bool {
	changed := s.changed.Swap(false)
	return s.assigns.TakeChanged() || changed
}

// update makes s what the store has, together with what requests here have
// changed and not saved yet. A state older than what s knows is ignored if s has
// learnt that since the store was asked, when s knew known. Else the store has lost what
// s knows, and only who knows what it has now can renew s.
func (s *Session) update(known, rev scale.Rev, text []byte, theirs *state) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	if now := scale.Rev(s.rev.Load()); rev == now || rev < now && now != known {
		return nil
	}
	return s.rebase(rev, text, theirs)
}

// rebase is update for who holds s.saving.
func (s *Session) rebase(rev scale.Rev, text []byte, theirs *state) error {
	base, err := readState(s.base)
	if err != nil {
		return err
	}
	if err := safely.Try(func() error {
		mine := s.state()
		return s.apply(mine, merge(base, mine, theirs))
	}); err != nil {
		return err
	}
	s.known(rev, text, theirs.old)
	return nil
}

// known notes what the store has. What was sealed with a key that goes is
// written anew by the next request, or by tend. s.saving is held, or nobody else has s.
func (s *Session) known(rev scale.Rev, text []byte, old bool) {
	s.rev.Store(int64(rev))
	s.base = text
	s.reseal.Store(old)
	if old {
		s.changed.Store(true)
	}
}

// noteTold notes when the store ends s, and with kept that it was told how long it
// keeps the state.
func (s *Session) noteTold(e scale.Entry, kept bool) {
	s.due.Store(int64(e.Due))
	if kept {
		s.kept.Store(time.Now().UnixNano())
	}
}
