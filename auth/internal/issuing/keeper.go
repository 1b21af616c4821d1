package issuing

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// Keeper seals what others keep, and names what the store keeps. Whatever it seals
// and names is bound to the issuer.
type Keeper struct {
	issuer string
	store  scale.Store
	seals  *seal.Sealer
}

// entryParts is the number of partitions of entries of one kind.
const entryParts = 256

// Store returns the guarded store, for entries next to those of users.
func (k *Keeper) Store() scale.Store { return k.store }

// Key returns the key of an entry of that kind, spread over entryParts partitions.
func (k *Keeper) Key(kind, id string) scale.Key {
	return replica.StoreKey(kind, string(seal.Binding(k.issuer, id)), entryParts)
}

// Seal seals parts for a use and a place; Open returns them.
func (k *Keeper) Seal(use, place string, parts ...string) []byte {
	return k.seals.Seal(nil, seal.Binding(parts...), seal.Binding(k.issuer, use, place))
}

// Open opens what Seal has sealed for the same use and place. want is the least
// number of parts.
func (k *Keeper) Open(use, place string, sealed []byte, want int) (parts []string, ok bool) {
	text, _, err := k.seals.Open(sealed, seal.Binding(k.issuer, use, place))
	if err != nil {
		return nil, false
	}
	parts, ok = unpack(text)
	return parts, ok && len(parts) >= want
}

// SealText is Seal as text, and OpenText its opposite.
func (k *Keeper) SealText(use, place string, parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(k.Seal(use, place, parts...))
}

// strict refuses text that two texts stand for.
var strict = base64.RawURLEncoding.Strict()

// OpenText opens what SealText has sealed for the same use and place.
func (k *Keeper) OpenText(use, place, text string, want int) ([]string, bool) {
	sealed, err := strict.DecodeString(text)
	if err != nil || strict.EncodedLen(len(sealed)) != len(text) { // it has line breaks, which base64 leaves out
		return nil, false
	}
	return k.Open(use, place, sealed, want)
}

// unpack returns the parts that seal.Binding has joined, as parts of one string.
func unpack(text []byte) (parts []string, ok bool) {
	whole := string(text)
	parts = make([]string, 0, 16)
	for len(text) > 0 {
		size, n := binary.Uvarint(text)
		if n <= 0 || size > uint64(len(text)-n) {
			return nil, false
		}
		text = text[n+int(size):]
		at := len(whole) - len(text)
		parts = append(parts, whole[at-int(size):at])
	}
	return parts, true
}
