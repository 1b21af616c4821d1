package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var one, two = []byte("a secret of 16 bytes or more"), []byte("another one of 16 bytes")

func sealer(t testing.TB, use string, secrets ...[]byte) *Sealer {
	t.Helper()
	s, err := New(use, secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What was sealed opens with each of the secrets, tells which are old, and opens
// for nothing else.
func TestOpen(t *testing.T) {
	for _, use := range []string{Rounds, "session"} {
		first, both, turned, second := sealer(t, use, one), sealer(t, use, one, two), sealer(t, use, two, one), sealer(t, use, two)
		for _, text := range []string{"", "x", strings.Repeat("long", 1000)} {
			binding := Binding("part", "name")
			sealed := first.Seal([]byte("before"), []byte(text), binding)
			sealed, ok := bytes.CutPrefix(sealed, []byte("before"))
			if !ok || len(text) > 5 && bytes.Contains(sealed, []byte(text)) {
				t.Errorf("%q: %q is sealed as %q", use, text, sealed)
			}
			for i, s := range []*Sealer{first, both, turned} {
				got, old, err := s.Open(sealed, binding)
				if err != nil || string(got) != text || old != (i == 2) {
					t.Errorf("%q: opened by %d: %q, old %v, %v", use, i, got, old, err)
				}
			}
			again := first.Seal(nil, []byte(text), binding)
			if bytes.Equal(again, sealed) {
				t.Errorf("%q: sealed twice alike", use)
			}
			other := "session"
			if use == other {
				other = Rounds
			}
			for what, open := range map[string]func() ([]byte, bool, error){
				"another secret":  func() ([]byte, bool, error) { return second.Open(sealed, binding) },
				"another use":     func() ([]byte, bool, error) { return sealer(t, other, one).Open(sealed, binding) },
				"a third use":     func() ([]byte, bool, error) { return sealer(t, "task", one).Open(sealed, binding) },
				"another binding": func() ([]byte, bool, error) { return first.Open(sealed, Binding("partname")) },
				"no binding":      func() ([]byte, bool, error) { return first.Open(sealed, nil) },
				"nothing":         func() ([]byte, bool, error) { return first.Open(nil, binding) },
				"a part":          func() ([]byte, bool, error) { return first.Open(sealed[:len(sealed)-1], binding) },
			} {
				if got, _, err := open(); !errors.Is(err, ErrOpen) || got != nil {
					t.Errorf("%q: %s opened it: %q, %v", use, what, got, err)
				}
			}
			for i := range sealed {
				if i > 50 && i < len(sealed)-20 {
					continue
				}
				changed := bytes.Clone(sealed)
				changed[i] ^= 1
				if _, _, err := first.Open(changed, binding); !errors.Is(err, ErrOpen) {
					t.Errorf("%q: opened with byte %d changed", use, i)
				}
			}
		}
	}
}

// The states of rounds are sealed as they have been always.
func TestRoundsFormat(t *testing.T) {
	digest := sha256.Sum256(one)
	block, err := aes.NewCipher(digest[:])
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := []byte("twelve bytes")
	sealed := gcm.Seal(bytes.Clone(nonce), nonce, []byte("text"), []byte("binding"))
	s := sealer(t, Rounds, one)
	if got, _, err := s.Open(sealed, []byte("binding")); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := len(s.Seal(nil, []byte("text"), nil)); n != 4+28 {
		t.Errorf("4 bytes are sealed as %d", n)
	}
}

// The examples of https://c2sp.org/XAES-256-GCM.
func TestExtended(t *testing.T) {
	for _, tt := range []struct {
		key           byte
		binding, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newExtended(bytes.Repeat([]byte{tt.key}, 32))
		if err != nil {
			t.Fatal(err)
		}
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		sealed := x.(*extended).seal(nil, nonce, []byte("XAES-256-GCM"), []byte(tt.binding))
		if got := hex.EncodeToString(sealed[len(nonce):]); got != tt.want || !bytes.HasPrefix(sealed, nonce) {
			t.Errorf("key %d: got %s, want %s", tt.key, got, tt.want)
		}
		if text, err := x.Open(nil, nil, sealed, []byte(tt.binding)); err != nil || string(text) != "XAES-256-GCM" {
			t.Errorf("key %d: opened as %q, %v", tt.key, text, err)
		}
	}
}

// A secret that is too short is refused with its place, and one that nobody gave
// is nobody else's.
func TestSecrets(t *testing.T) {
	if _, err := New(Rounds, one, []byte("short")); err == nil || !strings.Contains(err.Error(), "key 1 has 5 bytes; use at least 16") {
		t.Errorf("err = %v", err)
	}
	a, b := sealer(t, "x"), sealer(t, "x")
	if _, _, err := b.Open(a.Seal(nil, []byte("text"), nil), nil); !errors.Is(err, ErrOpen) {
		t.Errorf("two Sealers without secrets have the same: %v", err)
	}
}

func TestBinding(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"", "ab"}, {"ab", ""}, {"\x01b"}, {strings.Repeat("a", 200)}, {strings.Repeat("a", 199), "a"}} {
		b := string(Binding(parts...))
		if before, ok := seen[b]; ok {
			t.Errorf("%q is bound as %s", parts, before)
		}
		seen[b] = fmt.Sprintf("%q", parts)
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, use := range []string{Rounds, "session"} {
		s := sealer(b, use, one)
		text, binding := make([]byte, 450), Binding("part", "name")
		sealed := s.Seal(nil, text, binding)
		b.Run("seal/"+use, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Seal(nil, text, binding)
			}
		})
		b.Run("open/"+use, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = s.Open(sealed, binding)
			}
		})
	}
}
