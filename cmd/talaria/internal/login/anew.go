package login

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/auth/oauth"
)

// Anew returns the store for a login that registers the client again, whatever
// is stored: an authorization server may have forgotten it, and only the
// browser shows that.
func (s *Store) Anew() *Store {
	return &Store{Path: s.Path, store: &forgetful{Store: s.store, renewed: map[string]bool{}}}
}

// forgetful is a store that has no clients but those that were stored with it.
type forgetful struct {
	oauth.Store
	mu      sync.Mutex
	renewed map[string]bool
}

func (f *forgetful) Load(ctx context.Context, key string) (json.RawMessage, error) {
	f.mu.Lock()
	known := f.renewed[key]
	f.mu.Unlock()
	if strings.HasPrefix(key, "client ") && !known {
		return nil, nil
	}
	return f.Store.Load(ctx, key)
}

func (f *forgetful) Update(ctx context.Context, key string, change func(json.RawMessage) (json.RawMessage, error)) error {
	f.mu.Lock()
	f.renewed[key] = true
	f.mu.Unlock()
	return f.Store.Update(ctx, key, change)
}

// Familiar is an agent that tells when the client is one that was registered
// earlier.
type Familiar struct {
	oauth.UserAgent
	Tell func()
}

// Open implements oauth.UserAgent.
func (f *Familiar) Open(ctx context.Context, registered []string) (oauth.Visit, error) {
	if len(registered) > 0 {
		f.Tell()
	}
	return f.UserAgent.Open(ctx, registered)
}
