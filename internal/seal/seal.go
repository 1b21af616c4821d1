// Package seal encrypts what leaves the process and comes back: the state of
// rounds, which clients carry, and what sessions, tasks and messages between
// replicas keep in a scale.Store.
//
// A sealed value is bound to where it belongs: it opens only with the same
// binding, so that the operator of a store cannot move it to another place. An
// older value can be put in the place of a newer one; a caller that must prevent
// this has to check it.
//
// Secrets are replaced one after the other, as they are given: the first seals
// and each of them opens. A new one is added at the end everywhere, then moved to
// the front everywhere, and the old one is removed when no value remains that it
// sealed; [Sealer.Open] tells what has to be sealed again for that.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Rounds is the use of which values are sealed with AES-256-GCM and a random
// nonce, under a digest of the secret. That is 28 bytes longer than the text, and
// good for 2³² values of one secret, at four requests a second 34 years. All other
// uses have keys of their own and longer nonces; see extended.
const Rounds = ""

// MinSecret is the length in bytes of the shortest secret.
const MinSecret = 16

// ErrOpen is the error of what cannot be opened: it was changed, was sealed with
// a secret that is not there, for another use, or belongs elsewhere. Nothing
// tells which.
var ErrOpen = errors.New("seal: it cannot be opened")

// Sealer seals and opens values of one use. It does not change and is safe for
// concurrent use.
type Sealer struct{ keys []cipher.AEAD }

// New returns a Sealer. A secret may be anything of at least MinSecret bytes.
// Without secrets it makes one that only this Sealer has. Values of one use are
// not opened for another, whatever they are bound to.
func New(use string, secrets ...[]byte) (*Sealer, error) {
	if len(secrets) == 0 {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails since Go 1.24
		secrets = [][]byte{secret}
	}
	s := &Sealer{}
	for i, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("state key %d has %d bytes; use at least %d, random ones", i, len(secret), MinSecret)
		}
		key, err := cipherOf(use, secret)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// Rotating reports whether there may be something to seal again: there are
// several secrets.
func (s *Sealer) Rotating() bool { return len(s.keys) > 1 }

// cipherOf returns the cipher that a secret has for a use.
func cipherOf(use string, secret []byte) (cipher.AEAD, error) {
	if use == Rounds {
		digest := sha256.Sum256(secret)
		block, err := aes.NewCipher(digest[:])
		if err != nil {
			return nil, err
		}
		return cipher.NewGCMWithRandomNonce(block)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "talaria "+use, 32)
	if err != nil {
		return nil, err
	}
	return newExtended(key)
}

// Seal appends the sealed text to dst. The binding is not part of it.
func (s *Sealer) Seal(dst, text, binding []byte) []byte {
	return s.keys[0].Seal(dst, nil, text, binding)
}

// Open returns the text of what Seal returned for the same use and binding, with
// whichever secret. old tells that it was not the first, so that it should be
// sealed again before that secret goes. The only error is ErrOpen.
func (s *Sealer) Open(sealed, binding []byte) (text []byte, old bool, err error) {
	for i, key := range s.keys {
		if text, err := key.Open(nil, nil, sealed, binding); err == nil {
			return text, i > 0, nil
		}
	}
	return nil, false, ErrOpen
}

// Binding returns parts as one, so that no two lists are the same.
func Binding(parts ...string) []byte {
	size := 0
	for _, part := range parts {
		size += binary.MaxVarintLen32 + len(part)
	}
	b := make([]byte, 0, size)
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}
