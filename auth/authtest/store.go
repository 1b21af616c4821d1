package authtest

import (
	"crypto/rand"
	"sync"
	"time"
)

// maxKept bounds each kind of thing that the store keeps: what is oldest goes.
const maxKept = 1000

// store is everything that the server knows. It is lost when the process ends.
// mu guards all of it; the methods of store take it, those of kept do not.
type store struct {
	mu      sync.Mutex
	clients kept[client]
	asked   kept[request] // by the id of their form
	codes   kept[grant]
	refresh kept[grant]
	revoked kept[time.Time] // ids of grants
	proofs  kept[time.Time] // ids of proofs
}

// grant is what a user has allowed. It is kept under each code and each refresh
// token that came of it, in copies, which have the same id: with that all of
// them are revoked at once.
type grant struct {
	id       string // of all tokens that come of it
	request  request
	user     string
	scopes   []string
	key      string // that refresh tokens are bound to; "" for none
	until    time.Time
	consumed bool
}

// kept is a bounded map. order has the keys from the oldest on; it may have
// some that were deleted from items.
type kept[T any] struct {
	items map[string]T
	order []string
}

// put keeps value under key, in place of what was there, and forgets the oldest
// key when there are more than maxKept. store.mu is held.
func (k *kept[T]) put(key string, value T) {
	if k.items == nil {
		k.items = map[string]T{}
	}
	if _, ok := k.items[key]; !ok {
		k.order = append(k.order, key)
	}
	k.items[key] = value
	for len(k.order) > maxKept {
		delete(k.items, k.order[0])
		k.order = k.order[1:]
	}
}

// get returns what is kept under key. store.mu is held.
func (k *kept[T]) get(key string) (T, bool) {
	value, ok := k.items[key]
	return value, ok
}

// newSecret returns an unguessable text.
func newSecret() string { return rand.Text() + rand.Text() }

// take returns the grant of a code or a refresh token, which cannot be used
// again. A second use means that it was stolen: everything that came of the
// grant is revoked.
func (s *store) take(from *kept[grant], key string) (grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := from.get(key)
	if !ok {
		return g, false
	}
	if g.consumed {
		s.revoked.put(g.id, time.Now())
		return g, false
	}
	g.consumed = true
	from.put(key, g)
	_, revoked := s.revoked.get(g.id)
	return g, !revoked && time.Now().Before(g.until)
}

// putGrant keeps a grant under a new secret.
func (s *store) putGrant(into *kept[grant], g grant) (secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret = newSecret()
	into.put(secret, g)
	return secret
}

// firstUse reports whether a proof comes for the first time, and notes that it
// came. An id may be forgotten when there are more than maxKept; only proofAge
// then prevents a second use.
func (s *store) firstUse(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, used := s.proofs.get(id)
	s.proofs.put(id, time.Now())
	return !used
}

// revoke ends all tokens of a grant.
func (s *store) revoke(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked.put(id, time.Now())
}

// isRevoked reports whether all tokens of a grant were ended.
func (s *store) isRevoked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, revoked := s.revoked.get(id)
	return revoked
}

// refreshed returns the grant of a refresh token.
func (s *store) refreshed(token string) (grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh.get(token)
}
