package oauth

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
)

// Store keeps registered clients and tokens between logins. Values are JSON
// objects with secrets in them: a store keeps them confidential. Keys are URLs
// and names. A Store is safe for concurrent use, and for use by several
// programs at once where it outlives a program.
type Store interface {
	// Load returns the value of a key, nil if there is none.
	Load(ctx context.Context, key string) (json.RawMessage, error)
	// Update replaces the value of a key by what change makes of it; a nil
	// value removes the key, an error of change leaves it as it is and is
	// returned. While change runs, which can take as long as a request to a
	// token endpoint, other updates of this key wait: a refresh token that
	// rotates may be used only once.
	Update(ctx context.Context, key string, change func(old json.RawMessage) (json.RawMessage, error)) error
}

// NewMemoryStore returns a store that forgets everything when the program ends. It
// is the default.
func NewMemoryStore() Store {
	return &memoryStore{values: map[string]json.RawMessage{}, busy: map[string]chan struct{}{}}
}

// memoryStore is the Store of NewMemoryStore. Updates of one key wait for each
// other; mu is not held while change runs.
type memoryStore struct {
	mu     sync.Mutex
	values map[string]json.RawMessage
	busy   map[string]chan struct{} // closed when the update of this key is over
}

// Load implements Store.
func (m *memoryStore) Load(_ context.Context, key string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.values[key]), nil
}

// Update implements Store.
func (m *memoryStore) Update(ctx context.Context, key string, change func(json.RawMessage) (json.RawMessage, error)) error {
	m.mu.Lock()
	for m.busy[key] != nil {
		over := m.busy[key]
		m.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
		m.mu.Lock()
	}
	over := make(chan struct{})
	m.busy[key] = over
	old := slices.Clone(m.values[key])
	m.mu.Unlock()

	defer func() {
		m.mu.Lock()
		delete(m.busy, key)
		m.mu.Unlock()
		close(over)
	}()
	value, err := change(old)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if value == nil {
		delete(m.values, key)
	} else {
		m.values[key] = slices.Clone(value)
	}
	return nil
}
