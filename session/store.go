package session

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Store keeps the state of sessions outside the Manager, so that they outlive
// their process. Its methods are called by many goroutines, and while a client
// waits: the context of each ends soon.
//
// One process at a time should serve a session: what two of them change is
// not merged, and what one of them ends at its client's wish the other goes on
// with. A session may move while its old process lives: that one lets it go
// when it was not used there for Config.Idle, and does not end it, as it does
// if the Store fails then. One that moves back may end up to a quarter of Idle
// too early.
type Store interface {
	// Save keeps a snapshot in place of the one with its ID. It may be
	// forgotten after ttl; 0 means never.
	Save(ctx context.Context, snapshot *Snapshot, ttl time.Duration) error
	// Load returns the snapshot of that id, nil if there is none.
	Load(ctx context.Context, id string) (*Snapshot, error)
	// Delete forgets the snapshot of that id, if there is one.
	Delete(ctx context.Context, id string) error
}

// Snapshot is the state of a session, as plain data. What cannot move to
// another process is not in it: open streams and the history of their events,
// messages that wait for a stream, requests under way in either direction,
// components that handlers have added to the session, and of the values of
// handlers those that are neither under a key of mcp.NewStoredKey nor, under a
// plain name, a string, a boolean, a number, or a list or map of such.
type Snapshot struct {
	Version       int                          `json:"v"`               // of this structure: snapshotVersion
	Owner         string                       `json:"owner,omitempty"` // the Manager that saved it last
	ID            string                       `json:"id"`
	Principal     string                       `json:"principal,omitempty"`
	Revision      string                       `json:"revision"`
	ClientInfo    *protocol.Implementation     `json:"clientInfo,omitempty"`
	Capabilities  *protocol.ClientCapabilities `json:"capabilities,omitempty"`
	Initialized   bool                         `json:"initialized,omitempty"`
	LogLevel      protocol.Level               `json:"logLevel"`
	Subscriptions []string                     `json:"subscriptions,omitempty"`
	Assigns       map[string]json.RawMessage   `json:"assigns,omitempty"`
}

// snapshotVersion is the Version that this package writes and reads.
const snapshotVersion = 1

// restore returns a session with the state of a snapshot. Its context is a
// child of ctx. A snapshot of another version, or of a revision without
// sessions, is an error. The session counts as used. The ids of its events and
// requests are others than those of the process before.
func restore(ctx context.Context, snapshot *Snapshot) (*Session, error) {
	rev, ok := protocol.ParseRevision(snapshot.Revision)
	if snapshot.Version != snapshotVersion || !ok || rev.Modern() || snapshot.ID == "" {
		return nil, fmt.Errorf("session: snapshot %d of revision %q cannot be restored", snapshot.Version, snapshot.Revision)
	}
	info, _ := json.Marshal(snapshot.ClientInfo) // it came as JSON
	capabilities, _ := json.Marshal(snapshot.Capabilities)
	s := New(ctx, snapshot.ID, Client{
		Revision: rev, Info: snapshot.ClientInfo, Capabilities: snapshot.Capabilities, Principal: snapshot.Principal,
		Cost: ClientCost(info, capabilities),
	})
	s.begin()
	s.uses = 2 // by another process
	s.initialized.Store(snapshot.Initialized)
	s.level.Store(uint32(snapshot.LogLevel))
	if err := s.assigns.Restore(snapshot.Assigns); err != nil {
		return nil, err
	}
	for _, uri := range snapshot.Subscriptions {
		s.Subscribe(uri, len(snapshot.Subscriptions))
	}
	s.changed.Store(false)
	return s, nil
}

// Memory is a Store within the process, for tests and for servers that share
// their sessions. It is empty and ready as zero value. It forgets nothing by
// itself.
type Memory struct {
	mu        sync.Mutex
	snapshots map[string][]byte
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, snapshot *Snapshot, _ time.Duration) error {
	text, err := json.Marshal(snapshot)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshots == nil {
		m.snapshots = make(map[string][]byte)
	}
	m.snapshots[snapshot.ID] = text
	return nil
}

// Load implements Store.
func (m *Memory) Load(_ context.Context, id string) (*Snapshot, error) {
	m.mu.Lock()
	text, ok := m.snapshots[id]
	m.mu.Unlock()
	if !ok {
		return nil, nil
	}
	snapshot := &Snapshot{}
	return snapshot, json.Unmarshal(text, snapshot)
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.snapshots, id)
	return nil
}
