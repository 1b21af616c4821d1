package issuing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/scale"
)

// A key counts as proven by one good proof of this request, used once.
func TestProofs(t *testing.T) {
	s, err := New(Config{Issuer: "http://127.0.0.1:8080/auth"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof := func(typ string, changes map[string]any) string {
		opts := (&jose.SignerOptions{EmbedJWK: true}).WithType(jose.ContentType(typ))
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, opts)
		if err != nil {
			t.Fatal(err)
		}
		claims := map[string]any{"jti": rand.Text(), "htm": "POST", "htu": "http://127.0.0.1:8080/auth/token", "iat": time.Now().Unix()}
		maps.Copy(claims, changes)
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return compact
	}
	user := "alice"
	proven := func(proofs ...string) (string, error) {
		r := httptest.NewRequest(http.MethodPost, "/auth/token", nil)
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		key, use, err := s.proven(r, user)
		if err == nil {
			err = use()
		}
		if err != nil {
			return "", err
		}
		return key, nil
	}
	good := proof("dpop+jwt", nil)
	first, err := proven(good)
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := proven(proof("dpop+jwt", nil)); err != nil || again != first {
		t.Errorf("%q, %v", again, err)
	}
	for _, iat := range []string{fmt.Sprintf("%d.0", time.Now().Unix()), fmt.Sprintf("%d.5", time.Now().Unix())} {
		if again, err := proven(proof("dpop+jwt", map[string]any{"iat": json.RawMessage(iat)})); err != nil || again != first {
			t.Errorf("issued at %s: %q, %v", iat, again, err)
		}
	}
	if none, err := proven(); none != "" || err != nil {
		t.Errorf("%q, %v", none, err)
	}
	for name, proofs := range map[string][]string{
		"again": {good}, "two": {proof("dpop+jwt", nil), proof("dpop+jwt", nil)}, "none at all": {"x"}, "of another type": {proof("JWT", nil)},
		"of another method": {proof("dpop+jwt", map[string]any{"htm": "GET"})}, "of another URL": {proof("dpop+jwt", map[string]any{"htu": "http://127.0.0.1:8080/mcp"})},
		"old": {proof("dpop+jwt", map[string]any{"iat": 1})}, "far ahead": {proof("dpop+jwt", map[string]any{"iat": 1e300})}, "without id": {proof("dpop+jwt", map[string]any{"jti": ""})}, "malformed": {proof("dpop+jwt", map[string]any{"jti": 1})},
		"tampered": {good[:len(good)-8] + "AAAAAAAA"},
	} {
		if key, err := proven(proofs...); err == nil {
			t.Errorf("%s: %q", name, key)
		}
	}
	// Whoever spends a share of proofs spends that of no other user, but no user takes a proof of another.
	user = "mallory"
	for i := range proofsOfUser {
		if _, err := proven(proof("dpop+jwt", nil)); err != nil {
			t.Fatalf("proof %d: %v", i, err)
		}
	}
	if _, err := proven(proof("dpop+jwt", nil)); !errors.Is(err, scale.ErrFull) {
		t.Errorf("a proof beyond the share: %v", err)
	}
	user = "bob"
	if _, err := proven(proof("dpop+jwt", nil)); err != nil {
		t.Errorf("another user: %v", err)
	}
	if _, err := proven(good); err == nil || errors.Is(err, scale.ErrFull) {
		t.Errorf("the proof of another user: %v", err)
	}
}
