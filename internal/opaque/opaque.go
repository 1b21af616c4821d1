// Package opaque makes the ids that clients get and bring back, which nobody
// can guess, and tells what can be one before anything is asked for it.
package opaque

import (
	"crypto/rand"
	"encoding/base64"
)

// size is how many random bytes an ID has, and length how many characters.
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

// IsID tells whether text has the form of what NewID returns.
func IsID(text string) bool {
	if len(text) != length {
		return false
	}
	var raw [size]byte
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(text))
	return err == nil && n == size
}
