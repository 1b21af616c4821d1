package middleware

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

const (
	rateParts   = 64                     // of the store, over which buckets are spread
	rateTimeout = 250 * time.Millisecond // for the store; a call should not wait longer for leave to begin
	rateRetry   = time.Second            // until the store is asked again after it failed
	rateHeld    = time.Second            // are calls held that were taken from the store
	rateKept    = time.Second            // is a bucket kept in the store once it is full
)

// sharedRates are buckets in a store: entries that say when all that was taken
// will be used up. It does not change, and is safe for concurrent use.
type sharedRates struct {
	store scale.Store
	seal  *seal.Sealer
	names []byte // the key of the digests that entries have for names
	pace  string // limits of other paces have entries of their own
}

// sharedBucket is what an entry says.
type sharedBucket struct {
	taken bool // the calls were taken; otherwise another replica has taken some
	rev   scale.Rev
	due   instant
}

// newSharedRates returns the buckets in the store of limits; nil if they have
// none.
func newSharedRates(limits RateLimitOptions) *sharedRates {
	if limits.Store == nil {
		return nil
	}
	sealer, err := seal.New("rate", limits.Secret)
	if err != nil {
		panic(fmt.Sprintf("middleware: RateLimit with a Store: RateLimitOptions.Secret has %d bytes; use at least %d random ones, the same at all replicas",
			len(limits.Secret), seal.MinSecret))
	}
	names, err := hkdf.Key(sha256.New, limits.Secret, nil, "talaria rate names", sha256.Size)
	if err != nil {
		panic("middleware: RateLimit: RateLimitOptions.Secret: " + err.Error())
	}
	return &sharedRates{bus.Guard(limits.Store), sealer, names, fmt.Sprint(float64(limits.Rate), " ", limits.Burst)}
}

// key returns where the bucket of that name is. Names of users can be guessed,
// and the operator of the store could compare a plain digest with guesses.
func (s *sharedRates) key(named ...string) scale.Key {
	mac := hmac.New(sha256.New, s.names)
	mac.Write(seal.Binding(append([]string{s.pace}, named...)...))
	return replica.StoreKey("rate", string(mac.Sum(nil)), rateParts)
}

// put makes next what the entry of a bucket says, if it is the one that is known
// as rev, 0 for none. Otherwise it returns what the entry says.
func (s *sharedRates) put(ctx context.Context, key scale.Key, rev scale.Rev, next, now instant) (sharedBucket, error) {
	text := binary.BigEndian.AppendUint64(nil, uint64(next))
	written, err := s.store.Put(ctx, scale.Write{
		Key: key, Prev: rev, Value: s.seal.Seal(nil, text, seal.Binding(key.Name)), TTL: time.Duration(next-now) + rateKept,
	})
	if err != nil {
		return sharedBucket{}, err
	}
	switch e := written[0]; {
	case e.Err == nil:
		return sharedBucket{taken: true, rev: e.Rev, due: next}, nil
	case !errors.Is(e.Err, scale.ErrChanged):
		return sharedBucket{}, e.Err
	case e.Rev == 0:
		return sharedBucket{}, nil // it was full, and is forgotten
	default:
		text, _, err := s.seal.Open(e.Value, seal.Binding(key.Name))
		if err != nil || len(text) != 8 {
			return sharedBucket{}, errors.New("middleware: an entry of a rate cannot be read")
		}
		return sharedBucket{rev: e.Rev, due: instant(binary.BigEndian.Uint64(text))}, nil
	}
}
