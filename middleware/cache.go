package middleware

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// CacheOptions are the options of a cache. The zero value has the defaults.
type CacheOptions struct {
	TTL      time.Duration // how long a result is kept; 0 means 1 minute
	MaxBytes int           // what all results may take; 0 means 16 MiB
	// Only decides which of the read-only tools are cached; nil means all.
	Only func(tool protocol.Tool) bool
}

// The defaults of CacheOptions.
const (
	defaultTTL      = time.Minute
	defaultMaxBytes = 16 << 20
)

// Cache answers calls of tools of s that have the hint ReadOnly with what the
// same call got before: the same tool, arguments (whatever the order of their
// members), principal, scopes and revision. Results that tell of an error, those
// that depend on an answer of the client or on what Once kept, those of tasks,
// and those of tools that a handler added to a session are not kept. When there
// are too many, those go that were not used for longest.
//
// Use it for tools whose result depends on nothing else: neither on the session
// nor on headers. The handler of a call that is answered so does not run: it
// sends no progress and no log messages. Give s's own Use this and no other
// server's.
// nil stands for the default CacheOptions; they are copied.
func Cache(s *mcp.Server, opts *CacheOptions) mcp.Middleware {
	o := CacheOptions{}
	if opts != nil {
		o = *opts
	}
	if o.TTL <= 0 {
		o.TTL = defaultTTL
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	c := &cache{options: o, entries: make(map[cacheKey]*list.Element), used: list.New()}
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if !c.takes(s, f) {
				return next(f)
			}
			key, ok := keyOf(f)
			if !ok {
				return next(f)
			}
			if kept := c.get(key); kept != nil {
				return kept, nil
			}
			result, err := next(f)
			if err != nil {
				return nil, err
			}
			return c.keep(key, f, result)
		}
	}
}

// takes reports whether f is a call whose result may be kept. A call that
// brings answers or a state continues with an earlier round, and is not the
// same as one with the same arguments. s tells whether the tool is read-only
// for this client.
func (c *cache) takes(s *mcp.Server, f *mcp.Frame) bool {
	req := f.Request()
	if req.Method != protocol.MethodToolsCall || req.ID.IsZero() || req.Params.InputResponses != nil || req.Params.RequestState != "" {
		return false
	}
	tool, ok := s.Tool(f, req.Params.Name)
	if !ok || tool.Annotations == nil || tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint {
		return false
	}
	return c.options.Only == nil || c.options.Only(tool)
}

// cacheKey identifies a call: a digest, so that keys have one size whatever the
// arguments.
type cacheKey [sha256.Size]byte

// keyOf returns the key of a call; ok is false if its arguments are not JSON.
func keyOf(f *mcp.Frame) (key cacheKey, ok bool) {
	params := &f.Request().Params
	arguments := []byte("{}")
	if len(params.Arguments) > 0 && string(params.Arguments) != "null" {
		d := json.NewDecoder(bytes.NewReader(params.Arguments))
		d.UseNumber() // 1 and 1.0 may differ to a handler
		var value any
		if d.Decode(&value) != nil {
			return key, false
		}
		var err error
		if arguments, err = json.Marshal(value); err != nil { // with sorted members
			return key, false
		}
	}
	var scopes []string // a handler may have asked for some of them
	if id := f.Identity(); id != nil {
		scopes = slices.Sorted(slices.Values(id.Scopes))
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(f.Revision().String()), []byte(f.Principal()), []byte(strings.Join(scopes, " ")), []byte(params.Name), arguments} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	h.Sum(key[:0])
	return key, true
}

// cache holds results, the one used last in front. mu guards everything but
// options.
type cache struct {
	options CacheOptions

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	used    *list.List // of *cached
	bytes   int
}

// cached is an entry of the list. Its result is encoded already, for one
// revision.
type cached struct {
	key     cacheKey
	result  *wire.FrozenResult
	expires time.Time
}

// overhead is roughly what an entry takes in addition to its result, in bytes.
const overhead = 256

// size returns the bytes that count for CacheOptions.MaxBytes.
func (e *cached) size() int { return e.result.Len() + overhead }

// get returns a result that has not expired, or nil.
func (c *cache) get(key cacheKey) protocol.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return nil
	}
	e := at.Value.(*cached)
	if !time.Now().Before(e.expires) {
		c.drop(at)
		return nil
	}
	c.used.MoveToFront(at)
	return e.result
}

// keep stores a result if it may be kept, and returns what the call is answered
// with. That is the encoded result, so that the first answer and later ones are
// the same bytes and nothing is encoded twice. A limit around the result stays
// around it; what exceeds that limit is not kept.
func (c *cache) keep(key cacheKey, f *mcp.Frame, result protocol.Result) (protocol.Result, error) {
	called, ok := wire.Unwrap(result).(*protocol.CallToolResult)
	if !ok || called.IsError || frame.Internal(facts.Private{}).Asked(f) {
		return result, nil
	}
	frozen, err := wire.Freeze(called, f.Revision())
	if err != nil {
		return nil, err
	}
	e := &cached{key: key, result: frozen, expires: time.Now().Add(c.options.TTL)}
	answer := protocol.Result(frozen)
	if outer, ok := result.(*sized); ok {
		if frozen.Len() > outer.limit {
			return result, nil
		}
		answer = &sized{Result: frozen, limit: outer.limit, method: outer.method}
	}
	if e.size() > c.options.MaxBytes {
		return answer, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.entries[key]; ok {
		c.drop(before)
	}
	c.entries[key] = c.used.PushFront(e)
	for c.bytes += e.size(); c.bytes > c.options.MaxBytes; {
		c.drop(c.used.Back())
	}
	return answer, nil
}

// drop removes an entry. c.mu is held.
func (c *cache) drop(at *list.Element) {
	e := c.used.Remove(at).(*cached)
	delete(c.entries, e.key)
	c.bytes -= e.size()
}
