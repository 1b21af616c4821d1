package oauth

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// proofs collects DPoP proofs and checks each.
type proofs struct {
	t    *testing.T
	seen map[string]bool // jti
	jkt  map[string]bool // thumbprints of keys
}

func (p *proofs) check(r *http.Request, uri, token, nonce string) error {
	values := r.Header.Values("DPoP")
	if len(values) != 1 {
		return fmt.Errorf("%d proofs", len(values))
	}
	proof, err := jwt.ParseSigned(values[0], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	header := proof.Headers[0]
	if header.ExtraHeaders["typ"] != "dpop+jwt" || header.JSONWebKey == nil || !header.JSONWebKey.IsPublic() {
		return fmt.Errorf("header %+v", header)
	}
	var claims struct {
		jwt.Claims
		Method string `json:"htm"`
		URI    string `json:"htu"`
		Hash   string `json:"ath"`
		Nonce  string `json:"nonce"`
	}
	if err := proof.Claims(header.JSONWebKey, &claims); err != nil {
		return err
	}
	hash := ""
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		hash = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if claims.Method != r.Method || claims.URI != uri || claims.Hash != hash || claims.IssuedAt == nil || time.Since(claims.IssuedAt.Time()) > time.Minute {
		return fmt.Errorf("claims %+v", claims)
	}
	if claims.ID == "" || p.seen[claims.ID] {
		return errors.New("a proof was used twice")
	}
	p.seen[claims.ID] = true
	thumbprint, err := header.JSONWebKey.Thumbprint(crypto.SHA256)
	if err != nil {
		return err
	}
	p.jkt[base64.RawURLEncoding.EncodeToString(thumbprint)] = true
	if claims.Nonce != nonce {
		return errNonce
	}
	return nil
}

var errNonce = errors.New("another nonce")

func TestDPoP(t *testing.T) {
	for _, nonces := range []bool{false, true} {
		t.Run(fmt.Sprintf("nonces=%t", nonces), func(t *testing.T) {
			w := newWorld(t)
			check := &proofs{t: t, seen: map[string]bool{}, jkt: map[string]bool{}}
			serverNonce, resourceNonce := "", ""
			if nonces {
				serverNonce, resourceNonce = "as-1", "rs-1"
			}
			w.handlers["issuer /token"] = func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("DPoP-Nonce", serverNonce)
				if err := check.check(r, w.issuer.URL+"/token", "", serverNonce); errors.Is(err, errNonce) {
					writeJSON(rw, 400, map[string]any{"error": "use_dpop_nonce"})
					return
				} else if err != nil {
					t.Error(err)
				}
				w.token(rw, r)
			}
			w.handlers["server /mcp"] = func(rw http.ResponseWriter, r *http.Request) {
				scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
				if token == "" {
					w.challenge = func(h http.Header) {
						h.Set("WWW-Authenticate", strings.Replace(h.Get("WWW-Authenticate"), "Bearer", "DPoP", 1))
					}
					w.mcp(rw, r)
					return
				}
				rw.Header().Set("DPoP-Nonce", resourceNonce)
				err := check.check(r, w.server.URL+"/mcp", token, resourceNonce)
				if errors.Is(err, errNonce) {
					rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
					rw.WriteHeader(401)
					return
				}
				if err != nil || scheme != "DPoP" {
					t.Error(scheme, err)
				}
				w.mcp(rw, r)
			}
			store, user := NewMemoryStore(), &consent{}
			c := w.client(&Options{Store: store, Grant: &AuthorizationCode{Agent: user}})
			mustCall(t, c)
			mustCall(t, c)
			if nonces {
				serverNonce, resourceNonce = "as-2", "rs-2"
			}
			w.expire()
			mustCall(t, c) // refreshes
			mustCall(t, w.client(&Options{Store: store}))
			if len(check.jkt) != 1 || !check.jkt[user.visits[0].Get("dpop_jkt")] {
				t.Errorf("keys %v, the code is bound to %q", check.jkt, user.visits[0].Get("dpop_jkt"))
			}
		})
	}
}

func TestDPoPModes(t *testing.T) {
	required := func(doc map[string]any) { doc["dpop_bound_access_tokens_required"] = true }
	without := func(doc map[string]any) { delete(doc, "dpop_signing_alg_values_supported") }
	tests := []struct {
		name     string
		mode     DPoPMode
		resource func(map[string]any)
		metadata func(map[string]any)
		given    func(map[string]any)
		want     string // the type of the token, or the error
	}{
		{"auto, nobody asks", DPoPAuto, nil, nil, nil, "Bearer"},
		{"auto, required", DPoPAuto, required, nil, nil, "DPoP"},
		{"auto, required, not supported", DPoPAuto, required, without, nil, "does not list ES256"},
		{"always", DPoPRequired, nil, nil, nil, "DPoP"},
		{"always, not supported", DPoPRequired, nil, without, nil, "does not list ES256"},
		{"off", DPoPOff, nil, nil, nil, "Bearer"},
		{"off, required", DPoPOff, required, nil, nil, "turns off"},
		{"not bound after all", DPoPRequired, nil, nil, func(doc map[string]any) { doc["token_type"] = "Bearer" }, "was to be bound"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.resource, w.metadata, w.given = test.resource, test.metadata, test.given
			c := w.client(&Options{DPoP: test.mode})
			got := ""
			if _, _, err := call(c); err != nil {
				got = err.Error()
			} else {
				got = c.newest().TokenType
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNonceForEver: a server whose nonce never does is left.
func TestNonceForEver(t *testing.T) {
	w := newWorld(t)
	c := w.client(&Options{DPoP: DPoPRequired})
	mustCall(t, c)
	w.log = nil
	w.handlers["server /mcp"] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("DPoP-Nonce", "n")
		rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		rw.WriteHeader(401)
	}
	if _, _, err := call(c); err == nil || !strings.Contains(err.Error(), "nonce") || w.count("server POST /mcp") != 2 {
		t.Errorf("got %v after %q", err, w.log)
	}
}
