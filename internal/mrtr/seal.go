// Package mrtr asks modern clients, which cannot be sent requests: it keeps
// what a handler has asked and learned in a sealed state that travels to the
// client and back (basic/patterns/mrtr of 2026-07-28).
//
// A request takes several rounds. In each, the handler runs from its start. A
// question that has no answer yet ends the round: the result names the
// questions and has the state, and the client sends the same request again,
// with its answers and that state. The server keeps nothing between the rounds,
// so that any process with the same keys can serve the next one.
//
//   - [Askers] makes the frame.Asker of each request. A Server has one.
//   - [Sealer] encrypts the state. It binds it to the principal, the method, the
//     name and the arguments of the request, so that a client can neither read
//     nor change it, nor send it with another request.
//
// A state does not stop a client from sending one round twice: what must happen
// once needs a guard of its own. Its expiry, its size and the number of rounds
// are bounded by [Config].
//
// The package starts no goroutines. Legacy clients, which can be sent requests,
// are asked by package session; clients of a task by internal/tasks.
package mrtr

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Key seals states. Its bytes may be anything of at least 16; AES-256 gets a
// digest of them.
type Key []byte

// Sealer seals and opens states with AES-256-GCM. It is safe for concurrent
// use.
type Sealer struct{ keys []cipher.AEAD }

// NewSealer returns a Sealer that seals with the first key and opens with any
// of them, so that keys can be replaced one after the other. Without keys it
// makes one that only this process knows.
func NewSealer(keys ...Key) (*Sealer, error) {
	if len(keys) == 0 {
		key := make(Key, 32)
		_, _ = rand.Read(key) // never fails since Go 1.24
		keys = []Key{key}
	}
	s := &Sealer{}
	for i, key := range keys {
		if len(key) < 16 {
			return nil, fmt.Errorf("state key %d has %d bytes; use at least 16, random ones", i, len(key))
		}
		digest := sha256.Sum256(key)
		block, err := aes.NewCipher(digest[:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

// seal encrypts text; what binds it is not in the result but must be the same
// when it is opened.
func (s *Sealer) seal(text, binding []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.keys[0].Seal(nil, nil, text, binding))
}

// errNotOurs is the error of a state that cannot be opened: it is no base64,
// was changed, was sealed with a key that the server no longer has, or belongs
// to another request.
var errNotOurs = errors.New("it was not made by this server, or for another request")

// open decrypts what seal returned for the same binding, with whichever key
// made it. The client is told errNotOurs of every failure alike: it learns
// nothing of which part did not fit.
func (s *Sealer) open(state string, binding []byte) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return nil, errNotOurs
	}
	for _, key := range s.keys {
		if text, err := key.Open(nil, nil, sealed, binding); err == nil {
			return text, nil
		}
	}
	return nil, errNotOurs
}
