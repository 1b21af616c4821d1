package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/auth"
)

// What a Verifier refuses of its own issuer stays refused, and nobody else gets
// to see it: it may be good for another server.
func TestAnyKeepsIssuersApart(t *testing.T) {
	revoked := func(context.Context, *auth.Identity) error { return auth.Invalid("the token was revoked") }
	down := newIssuer()
	down.fail = true
	mine, strict, lost := newJWT(t, newIssuer(), auth.JWTOptions{}), newJWT(t, newIssuer(), auth.JWTOptions{Check: revoked}), newJWT(t, down, auth.JWTOptions{})
	tests := []struct {
		name  string
		mine  auth.Verifier
		token string
		want  string // in the error; "" for none
		asked int
	}{
		{"good", mine, token(nil), "", 0},
		{"expired", mine, token(map[string]any{"exp": 1}), "has expired", 0},
		{"for another server", mine, token(map[string]any{"aud": "https://other.example.com"}), "for another server", 0},
		{"revoked", strict, token(nil), "was revoked", 0},
		{"keys out of reach", lost, token(nil), "cannot be had", 0},
		{"of another issuer", mine, token(map[string]any{"iss": "https://other.example.com"}), "", 1},
		{"opaque", mine, "opaque", "", 1},
	}
	for _, tt := range tests {
		asked := 0
		generous := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
			asked++
			return &auth.Identity{Subject: "anybody"}, nil
		})
		// Whatever the order, and within another.
		for name, v := range map[string]auth.Verifier{
			"first": auth.Any(tt.mine, generous), "nested": auth.Any(auth.Any(tt.mine), auth.Any(generous)),
			"deep": auth.Any(auth.Any(generous, auth.Any(tt.mine))), "last": auth.Any(generous, tt.mine),
		} {
			asked = 0
			_, err := v.Verify(t.Context(), tt.token)
			if asked != tt.asked || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: asked %d times, %v", tt.name, name, asked, err)
			}
			if _, ok := errors.AsType[*auth.Error](err); err != nil && ok == (tt.mine == lost) {
				t.Errorf("%s, %s: %T", tt.name, name, err)
			}
		}
	}
}
