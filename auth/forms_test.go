package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

// formed is an http.RoundTripper that rewrites the documents of an issuer.
type formed struct {
	*issuer
	form func(string) string
}

func (f formed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.issuer.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(strings.NewReader(f.form(string(body))))
	return resp, err
}

// Forms of JSON that other programs write are read in the metadata and the keys of an
// issuer, in answers about tokens, and in the claims of tokens and proofs.
func TestFormsOfIssuers(t *testing.T) {
	members := func(more string) func(string) string {
		return func(text string) string { return strings.Replace(text, "{", "{"+more+",", 1) }
	}
	expires := time.Now().Add(time.Hour).Unix()
	number := func(format string, value any) func(string) string {
		return func(text string) string {
			return strings.Replace(text, fmt.Sprintf(`"exp":%d`, expires), `"exp":`+fmt.Sprintf(format, value), 1)
		}
	}
	for name, form := range map[string]func(string) string{
		"byte order mark":   func(text string) string { return "\ufeff" + text },
		"mark, then spaces": func(text string) string { return "\ufeff\r\n\t " + text + "\r\n" },
		"half a pair":       members(`"note":"\ud83d"`),
		"null":              members(`"nbf":null,"azp":null,"nonce":null,"username":null,"token_type":null,"cnf":null,"x5t":null`),
		"N.0":               number("%d.0", expires),
		"an exponent":       number("%de3", expires/1000),
		"a fraction":        number("%d.25", expires),
	} {
		t.Run(name, func(t *testing.T) {
			s := newIssuer()
			payload := []byte(form(string(must(json.Marshal(valid(map[string]any{"exp": expires}))))))
			signed := sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": "at+jwt"}, payload)
			opts := auth.JWTOptions{Audiences: []string{resource}, Keys: auth.KeyOptions{Client: &http.Client{Transport: formed{s, form}}}}
			jwt := auth.NewJWT(issuerURL, &opts)
			s.handle = func(*http.Request) (int, string) {
				return http.StatusOK, string(must(json.Marshal(valid(map[string]any{"exp": expires, "active": true}))))
			}
			introspection := auth.NewIntrospection(introspectionURL, &auth.IntrospectionOptions{
				Audiences: []string{resource}, Client: &http.Client{Transport: formed{s, form}},
			})
			for door, v := range map[string]auth.Verifier{"JWT": jwt, "introspection": introspection} {
				id, err := v.Verify(t.Context(), signed)
				if err != nil || id.Subject != "alice" || id.Expiry.Unix()/1000 != expires/1000 {
					t.Errorf("%s: %+v, %v", door, id, err)
				}
			}
			accepted, next := newJWT(t, newIssuer(), auth.JWTOptions{}), &reached{}
			protected := protect(accepted, resource, nil)(next)
			token := bound()
			var claims map[string]any
			part := strings.Split(proof(token, nil), ".")[1]
			if err := json.Unmarshal(must(base64.RawURLEncoding.DecodeString(part)), &claims); err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(must(json.Marshal(claims))), fmt.Sprintf(`"iat":%.0f`, claims["iat"]), fmt.Sprintf(`"iat":%.1f`, claims["iat"]), 1)
			text = strings.Replace(form(text), `"cnf":null,`, "", 1)
			proved := sign(jose.ES256, clientKey, map[string]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: &clientKey.PublicKey}}, []byte(text))
			if resp := serve(protected, post("Authorization", "DPoP "+token, "DPoP", proved)); resp.StatusCode != http.StatusOK || next.count() != 1 {
				t.Errorf("the proof: status %d, %s", resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
			}
		})
	}
}
