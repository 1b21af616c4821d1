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

// snapshot is what replicas share of a session, as plain data. It leaves out open streams
// and their events, waiting messages, requests in progress, and components that handlers
// have added to the session. Of the values of handlers it has those under a key of
// mcp.NewStoredKey, and under a plain name strings, booleans, numbers, lists and maps of
// such.
type snapshot struct {
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
func readState(text []byte) (*snapshot, error) {
	st := &snapshot{}
	if err := json.Unmarshal(text, st); err != nil {
		return nil, fmt.Errorf("session: the state in the store cannot be read: %w", err)
	}
	return st, nil
}

// merge returns what is to be kept when mine and theirs have both grown out of
// base. What mine has changed is mine, and all else theirs: of two replicas that
// set one value, the one that keeps it later wins.
func merge(base, mine, theirs *snapshot) *snapshot {
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

// restore returns a session with a state of another replica. Its context is a child of ctx.
// A state of a revision without sessions is an error. The session counts as used. The ids
// of its events and requests differ from those of other replicas.
func restore(ctx context.Context, st *snapshot) (*Session, error) {
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
	return s, s.apply(s.snapshot(), st)
}

// snapshot returns what replicas share of s. It may run users' code, that of assigns,
// without s.mu. s.saving is held, or s is not shared yet.
func (s *Session) snapshot() *snapshot {
	saved, failed := s.assigns.Save()
	st := &snapshot{
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

// apply applies the differences between mine and next to s. mine is a former state of s;
// later changes of requests stay.
func (s *Session) apply(mine, next *snapshot) error {
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

// encode returns the unsealed state for the store. Values of with replace those of assigns.
func (s *Session) encode(with map[string]any) (text []byte, err error) {
	err = safely.Try(func() (err error) {
		st := s.snapshot()
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

// takeChanged reports whether something has changed since its last call.
func (s *Session) takeChanged() bool {
	changed := s.changed.Swap(false)
	return s.assigns.TakeChanged() || changed
}

// update makes s what the store has, together with what requests here have
// changed and not saved yet. A state older than what s knows is ignored if s has
// learnt that since the store was asked, when s knew known. Else the store has lost what
// s knows, and only who knows what it has now can renew s.
func (s *Session) update(known, rev scale.Rev, text []byte, theirs *snapshot) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	if now := scale.Rev(s.rev.Load()); rev == now || rev < now && now != known {
		return nil
	}
	return s.rebase(rev, text, theirs)
}

// rebase is update while s.saving is held.
func (s *Session) rebase(rev scale.Rev, text []byte, theirs *snapshot) error {
	base, err := readState(s.base)
	if err != nil {
		return err
	}
	if err := safely.Try(func() error {
		mine := s.snapshot()
		return s.apply(mine, merge(base, mine, theirs))
	}); err != nil {
		return err
	}
	s.noteState(rev, text, theirs.old)
	return nil
}

// noteState notes the state in the store. If its key is replaced, the next request or
// reconcile seals it again. s.saving is held, or s is not shared yet.
func (s *Session) noteState(rev scale.Rev, text []byte, old bool) {
	s.rev.Store(int64(rev))
	s.base = text
	s.reseal.Store(old)
	if old {
		s.changed.Store(true)
	}
}

// noteTTL notes when the store ends s. kept means that its TTL was extended as well.
func (s *Session) noteTTL(e scale.Entry, kept bool) {
	s.due.Store(int64(e.Due))
	if kept {
		s.kept.Store(time.Now().UnixNano())
	}
}
