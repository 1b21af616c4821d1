package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
)

// extended is XAES-256-GCM (https://c2sp.org/XAES-256-GCM) with a random nonce of
// 24 bytes, which it puts before the ciphertext. The first half of the nonce and
// the key make the key of AES-GCM, so that one key is good for 2⁸⁰ values: a
// fleet of servers seals some thousand sessions a second, and does not count
// them. With the 12 bytes of AES-GCM two nonces would soon be the same.
type extended struct {
	block  cipher.Block
	subkey [aes.BlockSize]byte // K1 of CMAC
}

// extendedNonce is the length of the nonce, of which the first half makes the
// key.
const extendedNonce = 24

// newExtended returns the cipher of a key of 32 bytes.
func newExtended(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &extended{block: block}
	block.Encrypt(x.subkey[:], x.subkey[:])
	carry := byte(0)
	for i := len(x.subkey) - 1; i >= 0; i-- {
		x.subkey[i], carry = x.subkey[i]<<1|carry, x.subkey[i]>>7
	}
	x.subkey[len(x.subkey)-1] ^= carry * 0b10000111
	return x, nil
}

// gcm returns the cipher for nonces that begin alike.
func (x *extended) gcm(half []byte) cipher.AEAD {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		part := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(part, []byte{0, byte(i + 1), 'X', 0})
		copy(part[4:], half)
		subtle.XORBytes(part, part, x.subkey[:])
		x.block.Encrypt(part, part)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // a key of 32 bytes is one
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return aead
}

// NonceSize implements cipher.AEAD: Seal makes the nonce.
func (x *extended) NonceSize() int { return 0 }

// Overhead implements cipher.AEAD.
func (x *extended) Overhead() int { return extendedNonce + 16 }

// Seal implements cipher.AEAD.
func (x *extended) Seal(dst, _, text, binding []byte) []byte {
	var nonce [extendedNonce]byte
	_, _ = rand.Read(nonce[:]) // never fails since Go 1.24
	return x.seal(dst, nonce[:], text, binding)
}

func (x *extended) seal(dst, nonce, text, binding []byte) []byte {
	if room := len(nonce) + len(text) + 16; cap(dst)-len(dst) < room {
		dst = append(make([]byte, 0, len(dst)+room), dst...)
	}
	dst = append(dst, nonce...)
	return x.gcm(nonce[:extendedNonce/2]).Seal(dst, nonce[extendedNonce/2:], text, binding)
}

// Open implements cipher.AEAD.
func (x *extended) Open(dst, _, sealed, binding []byte) ([]byte, error) {
	if len(sealed) < x.Overhead() {
		return nil, ErrOpen
	}
	nonce, rest := sealed[:extendedNonce], sealed[extendedNonce:]
	return x.gcm(nonce[:extendedNonce/2]).Open(dst, nonce[extendedNonce/2:], rest, binding)
}
