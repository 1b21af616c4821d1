package replica

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/talaria-go/mcp/scale"
)

// size is the number of random bytes in an id, and length its number of
// characters.
const (
	size   = 16
	length = 22
)

// NewID returns a new id of 128 random bits, as base64url without padding.
func NewID() string {
	var raw [size]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// IsID reports whether text has the form of what NewID returns.
func IsID(text string) bool {
	if len(text) != length {
		return false
	}
	var raw [size]byte
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(text))
	return err == nil && n == size
}

// StoreKey returns the key of an entry with that id in a store, spread over parts.
// kind separates entries of several kinds. The id, which is a credential, cannot
// be computed from the key.
func StoreKey(kind, id string, slots int) scale.Key {
	sum := sha256.Sum256([]byte(kind + " " + id))
	return scale.Key{Partition: Partition(kind, int(sum[0])%slots), Name: base64.RawURLEncoding.EncodeToString(sum[:20])}
}

// Partition returns the name of part n, from 0, of the things of a kind.
func Partition(kind string, n int) string { return kind + "-" + strconv.Itoa(n) }
