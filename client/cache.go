package client

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// maxCachedResult is the size in bytes of the largest result that is kept,
// including its params, and maxCached that of all results together.
const (
	maxCachedResult = 1 << 20
	maxCached       = 64 << 20
)

// Cache keeps results for as long as servers say that they are fresh
// (server/utilities/caching of 2026-07-28). A result that the server calls
// public is shared by all clients of that server that use this Cache; any other
// only by clients with the same Options.CacheKey. A notification that something
// has changed drops the results that it is about.
//
// It also remembers which revisions servers speak from one Connect to the next,
// so that a client need not probe again (basic/versioning of 2026-07-28). If
// that memory is wrong, connecting costs one more request.
//
// A Cache is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	limit   int
	size    int // of all results and the params that they are for, in bytes
	entries map[cacheKey]*cacheEntry
	first   *cacheEntry // a ring in the order of their coming
	hits    int64
	misses  int64
	kinds   map[string]serverKind // by server
}

// cacheKey identifies a result. owner is "" for a public one; params is the
// JSON text without _meta.
type cacheKey struct{ server, owner, method, params string }

// cacheEntry is one result in the ring of entries, which is ordered by age. The
// key is repeated here so that the oldest entry can be removed from the map.
type cacheEntry struct {
	key        cacheKey
	result     json.RawMessage
	until      time.Time
	prev, next *cacheEntry
}

// size returns the bytes that count for an entry.
func (e *cacheEntry) size() int { return len(e.result) + len(e.key.params) }

// NewCache returns a Cache that keeps up to size results; 0 means 1000.
// Together they take at most 64 MiB, and none more than 1 MiB; the oldest make
// room.
func NewCache(size int) *Cache {
	if size <= 0 {
		size = 1000
	}
	return &Cache{limit: size, entries: map[cacheKey]*cacheEntry{}}
}

// CacheStats counts what a Cache did. Entries is the number of results now.
type CacheStats struct {
	Entries      int
	Hits, Misses int64
}

// Stats returns what the cache did so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Entries: len(c.entries), Hits: c.hits, Misses: c.misses}
}

// Clear drops everything.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	clear(c.kinds)
	c.first, c.size = nil, 0
}

// get returns a fresh result, of the owner or public. A stale one is removed.
func (c *Cache) get(server, owner, method, params string) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, who := range [...]string{owner, ""} {
		e := c.entries[cacheKey{server, who, method, params}]
		if e == nil {
			continue
		}
		if now.Before(e.until) {
			c.hits++
			return e.result, true
		}
		c.remove(e)
	}
	c.misses++
	return nil, false
}

// put keeps a result if its ttlMs says that it may be kept.
func (c *Cache) put(server, owner, method, params string, result json.RawMessage) {
	fresh := freshness(result)
	if fresh.TTL <= 0 || len(result)+len(params) > maxCachedResult {
		return
	}
	if fresh.Public {
		owner = ""
	}
	e := &cacheEntry{key: cacheKey{server, owner, method, params}, result: result, until: time.Now().Add(fresh.TTL)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[e.key]; old != nil {
		c.remove(old)
	}
	for c.first != nil && (len(c.entries) >= c.limit || c.size+e.size() > maxCached) {
		c.remove(c.first)
	}
	c.entries[e.key] = e
	c.size += e.size()
	if c.first == nil {
		c.first, e.prev, e.next = e, e, e
		return
	}
	e.prev, e.next = c.first.prev, c.first
	e.prev.next, e.next.prev = e, e
}

// remove takes an entry out. c.mu is held.
func (c *Cache) remove(e *cacheEntry) {
	delete(c.entries, e.key)
	c.size -= e.size()
	if e.next == e {
		c.first = nil
		return
	}
	e.prev.next, e.next.prev = e.next, e.prev
	if c.first == e {
		c.first = e.next
	}
}

// drop removes the results of a method for one server, of any owner. params ""
// means all of them.
func (c *Cache) drop(server, method, params string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if key.server == server && key.method == method && (params == "" || key.params == params) {
			c.remove(e)
		}
	}
}

// dropOwner removes the private results of one owner, of every server.
func (c *Cache) dropOwner(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if key.owner == owner {
			c.remove(e)
		}
	}
}

// newOwner returns the name of an owner that nothing else has or will have:
// a name used again would give access to the results of its former owner.
func newOwner() string { return rand.Text() }

// freshness returns how long a result is fresh, and who may share it, from its
// members ttlMs and cacheScope. Unreadable values count as stale.
func freshness(result []byte) (cache protocol.Cache) {
	// Unreadable values count as stale, which is always right.
	_ = given(result, func(name []byte, s *jsonx.Scanner) error {
		switch string(name) {
		case "ttlMs":
			cache.TTL = parseTTL(value(s))
		case "cacheScope":
			cache.Public = string(value(s)) == `"`+wire.CachePublic+`"`
		default:
			s.SkipChecked()
		}
		return nil
	})
	return cache
}

// maxTTL bounds what servers say.
const maxTTL = 24 * time.Hour

// parseTTL reads a number of milliseconds, of which it takes whole ones.
// Negative numbers and other values count as 0.
func parseTTL(text []byte) time.Duration {
	ms, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	if ms > float64(maxTTL.Milliseconds()) {
		return maxTTL
	}
	return time.Duration(ms) * time.Millisecond
}

// serverKind is what is known about the revisions that a server speaks.
type serverKind byte

// kindUnknown makes Connect probe; kindLegacy makes it begin with initialize.
const (
	kindUnknown serverKind = iota
	kindModern
	kindLegacy
	kindFallback // legacy, and on the transport's fallback
)

// maxKinds is how many servers are remembered.
const maxKinds = 10_000

// kind returns what is known of a server, by the name of its transport.
func (c *Cache) kind(server string) serverKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[server]
}

// setKind remembers what a server turned out to be. Beyond maxKinds everything is
// forgotten at once: a client of that many servers gains little from the memory,
// and keeping an order would cost more than the probes it saves.
func (c *Cache) setKind(server string, now serverKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil || len(c.kinds) >= maxKinds {
		c.kinds = map[string]serverKind{}
	}
	c.kinds[server] = now
}
