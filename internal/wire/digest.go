package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"

	"github.com/talaria-go/mcp/protocol"
)

// Digest tells a question to the client from another one under the same key. It
// is the first 96 bits of a SHA-256: the text of a question can be long, and what
// has the digest has to stay small.
type Digest [12]byte

// DigestOf returns the digest of the method and the params of a question. The
// key is not part of it: digests are only compared under the same key.
func DigestOf(q protocol.InputRequest) (d Digest) {
	h := sha256.New()
	WriteParts(h, []byte(q.Method), q.Params)
	copy(d[:], h.Sum(nil))
	return d
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, d[:]), nil
}

// errDigest is the error of text that is no Digest.
var errDigest = errors.New("it is not a digest")

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	n, err := base64.RawURLEncoding.Strict().Decode(make([]byte, base64.RawURLEncoding.DecodedLen(len(text))), text)
	if err != nil || n != len(d) {
		return errDigest
	}
	_, err = base64.RawURLEncoding.Decode(d[:], text)
	return err
}

// WriteParts writes each part with its length, so that no two lists are one.
func WriteParts(h hash.Hash, parts ...[]byte) {
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
}
