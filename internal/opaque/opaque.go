// Package opaque makes the ids of sessions and tasks, which clients get and
// bring back. Nobody can guess one, and text that cannot be one is recognized
// before anything is looked up for it.
package opaque

import (
	"crypto/rand"
	"encoding/base64"
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
