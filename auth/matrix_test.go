package auth_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

// refusal is what a bad request gets.
type refusal struct {
	name    string
	request func() *http.Request
	status  int
	code    string // of the challenge; "" for none
}

// bearer returns a request with that token.
func bearer(token string) func() *http.Request {
	return func() *http.Request { return post("Authorization", "Bearer "+token) }
}

// with returns a request with these headers.
func with(headers ...string) func() *http.Request {
	return func() *http.Request { return post(headers...) }
}

// badTokens are tokens that must not be taken, all but a few well signed.
func badTokens() []refusal {
	ec := map[string]any{"kid": "ec", "typ": "at+jwt"}
	hour := int64(3600)
	now := time.Now().Unix()
	good := token(nil)
	parts := strings.Split(good, ".")
	public := must(x509.MarshalPKIXPublicKey(&rsaKey.PublicKey))
	claim := func(name string, value any) string { return token(map[string]any{name: value}) }
	flip := func(part string) string {
		other := byte('A')
		if part[len(part)/2] == 'A' {
			other = 'B'
		}
		return part[:len(part)/2] + string(other) + part[len(part)/2+1:]
	}
	list := []struct{ name, token string }{
		{"wrong issuer", claim("iss", "https://evil.example.com")},
		{"issuer with a slash more", claim("iss", issuerURL+"/")},
		{"no issuer", claim("iss", nil)},
		{"names in capitals", token(map[string]any{"iss": nil, "ISS": issuerURL})},
		{"expiry in capitals", token(map[string]any{"exp": now - hour, "EXP": now + hour})},
		{"audience with a number in it", claim("aud", []any{resource, 7})},
		{"issuer that is a list", claim("iss", []string{issuerURL})},
		{"token for another resource", claim("aud", "https://files.example.com/mcp")},
		{"audience of another path", claim("aud", resource+"/other")},
		{"audience of the origin alone", claim("aud", "https://notes.example.com")},
		{"audience that is the client", claim("aud", "app")},
		{"no audience", claim("aud", nil)},
		{"empty audience", claim("aud", []string{})},
		{"audience null", raw(`{"alg":"ES256","kid":"ec"}`, `{"iss":"`+issuerURL+`","aud":null}`, "x")},
		{"audience that is a number", claim("aud", 7)},
		{"expired", claim("exp", now-hour)},
		{"expired beyond the leeway", claim("exp", now-31)},
		{"no expiry", claim("exp", nil)},
		{"expiry that is text", claim("exp", "tomorrow")},
		{"expiry far in the past", claim("exp", -math.MaxFloat32)},
		{"not yet valid", claim("nbf", now+hour)},
		{"not before that is text", claim("nbf", "now")},
		{"issued in the future", claim("iat", now+hour)},
		{"no subject and no client", token(map[string]any{"sub": nil, "client_id": nil})},
		{"bound to a certificate", claim("cnf", map[string]any{"x5t#S256": "abc"})},
		{"binding that is text", claim("cnf", "abc")},
		{"alg none", raw(`{"alg":"none","typ":"at+jwt"}`, string(must(json.Marshal(valid(nil)))), "")},
		{"alg None", raw(`{"alg":"None"}`, string(must(json.Marshal(valid(nil)))), "")},
		{"alg missing", raw(`{"kid":"ec"}`, string(must(json.Marshal(valid(nil)))), "x")},
		{"alg that nobody knows", raw(`{"alg":"XS256","kid":"ec"}`, string(must(json.Marshal(valid(nil)))), "x")},
		{"HMAC with a secret", sign(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), ec, valid(nil))},
		{"key confusion: HMAC with the public key", sign(jose.HS256, public, map[string]any{"kid": "rsa"}, valid(nil))},
		{"key confusion: another algorithm for the key", sign(jose.RS256, rsaKey, ec, valid(nil))},
		{"key confusion: the id of a key of another kind", sign(jose.ES256, ecKey, map[string]any{"kid": "rsa"}, valid(nil))},
		{"curve of another algorithm", sign(jose.ES384, p384Key, ec, valid(nil))},
		{"unknown kid", sign(jose.ES256, ecKey, map[string]any{"kid": "gone"}, valid(nil))},
		{"kid of another key", sign(jose.ES256, otherKey, ec, valid(nil))},
		{"kid that is a path", sign(jose.ES256, otherKey, map[string]any{"kid": "../../dev/null"}, valid(nil))},
		{"no kid and a strange key", sign(jose.ES256, otherKey, nil, valid(nil))},
		{"key that is for encryption", sign(jose.ES256, strangeKey, map[string]any{"kid": "enc"}, valid(nil))},
		{"key in the token itself", sign(jose.ES256, otherKey, map[string]any{"kid": "own", "jwk": jose.JSONWebKey{Key: &otherKey.PublicKey}}, valid(nil))},
		{"keys at a URL of the token", sign(jose.ES256, otherKey, map[string]any{"kid": "own", "jku": "https://evil.example.com/keys"}, valid(nil))},
		{"critical header", sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "crit": []string{"exp"}, "exp": now}, valid(nil))},
		{"tampered payload", parts[0] + "." + base64.RawURLEncoding.EncodeToString(must(json.Marshal(valid(map[string]any{"sub": "root"})))) + "." + parts[2]},
		{"tampered header", raw(`{"alg":"ES256","kid":"rsa"}`, "", "")[:0] + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT","kid":"ec"}`)) + "." + parts[1] + "." + parts[2]},
		{"tampered signature", parts[0] + "." + parts[1] + "." + flip(parts[2])},
		{"signature of another token", parts[0] + "." + parts[1] + "." + strings.Split(claim("sub", "bob"), ".")[2]},
		{"no signature", parts[0] + "." + parts[1] + "."},
		{"two parts", parts[0] + "." + parts[1]},
		{"four parts", good + "." + parts[2]},
		{"five parts", good + "." + parts[2] + "." + parts[2]},
		{"no JWT", "0123456789abcdef"},
		{"dots alone", ".."},
		{"payload that is no JSON", sign(jose.ES256, ecKey, ec, []byte("hello"))},
		{"payload that is a list", sign(jose.ES256, ecKey, ec, []byte("[]"))},
		{"payload that is null", sign(jose.ES256, ecKey, ec, []byte("null"))},
		{"ID token", sign(jose.ES256, ecKey, ec, valid(map[string]any{"aud": "app", "nonce": "n"}))},
		{"ID token for this server", claim("typ", "ID")},
		{"ID token by its use", claim("token_use", "id")},
		{"refresh token", claim("typ", "Refresh")},
		{"claims without a payload to decode", raw(`{"alg":"ES256","kid":"ec","b64":false,"crit":["b64"]}`, string(must(json.Marshal(valid(nil)))), "x")},
		{"issuer given twice", raw(`{"alg":"ES256","kid":"ec"}`, `{"iss":"`+issuerURL+`","iss":"https://evil.example.com"}`, "x")},
		{"algorithm given twice", raw(`{"alg":"none","alg":"ES256","kid":"ec"}`, string(must(json.Marshal(valid(nil)))), "x")},
		{"audience with a user", claim("aud", "https://evil@notes.example.com/mcp")},
		{"audience with a dot segment", claim("aud", resource+"/../mcp")},
		{"audience with a query", claim("aud", resource+"?a=b")},
		{"audience on another port", claim("aud", "https://notes.example.com:8443/mcp")},
		{"audience whose path has capitals", claim("aud", "https://notes.example.com/MCP")},
		{"audiences in one text", claim("aud", "https://other.example.com "+resource)},
		{"logout token", sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": "logout+jwt"}, valid(nil))},
		{"proof for a token", sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": "dpop+jwt"}, valid(nil))},
		{"typ that is a number", sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": 7}, valid(nil))},
		{"huge token", claim("padding", strings.Repeat("x", 20<<10))},
		{"token that is bound, as Bearer", bound()},
	}
	var all []refusal
	for _, bad := range list {
		all = append(all, refusal{"token: " + bad.name, bearer(bad.token), http.StatusUnauthorized, auth.CodeInvalidToken})
	}
	return all
}

// badRequests are requests that are wrong beside their token.
func badRequests() []refusal {
	good := token(nil)
	inURL := func(query string, headers ...string) func() *http.Request {
		return func() *http.Request {
			r := post(headers...)
			r.URL.RawQuery = query
			return r
		}
	}
	const malformed, unauthorized = http.StatusBadRequest, http.StatusUnauthorized
	list := []refusal{
		{"no header", with(), unauthorized, ""},
		{"Basic", with("Authorization", "Basic YTpi"), unauthorized, ""},
		{"token without scheme", with("Authorization", good), unauthorized, ""},
		{"empty header", with("Authorization", ""), unauthorized, ""},
		{"cookie", with("Cookie", "access_token="+good), unauthorized, ""},
		{"scheme alone", with("Authorization", "Bearer"), malformed, auth.CodeInvalidRequest},
		{"scheme and spaces", with("Authorization", "Bearer   "), malformed, auth.CodeInvalidRequest},
		{"two tokens", with("Authorization", "Bearer "+good+" "+good), malformed, auth.CodeInvalidRequest},
		{"two tokens with a comma", with("Authorization", "Bearer "+good+",Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"two headers", with("Authorization", "Bearer "+good, "Authorization", "Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"two headers of different schemes", with("Authorization", "Basic YTpi", "Authorization", "Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"token in quotes", with("Authorization", `Bearer "`+good+`"`), malformed, auth.CodeInvalidRequest},
		{"tab before the token", with("Authorization", "Bearer \t"+good), malformed, auth.CodeInvalidRequest},
		{"letters that are none", with("Authorization", "Bearer "+good+"é"), malformed, auth.CodeInvalidRequest},
		{"control character", with("Authorization", "Bearer "+good+"\x00"), malformed, auth.CodeInvalidRequest},
		{"padding alone", with("Authorization", "Bearer ==="), malformed, auth.CodeInvalidRequest},
		{"token in the query", inURL("access_token=" + good), malformed, auth.CodeInvalidRequest},
		{"token in the query and the header", inURL("a=b&access_token="+good, "Authorization", "Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"token in the query, in capitals", inURL("Access_Token="+good, "Authorization", "Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"token in the query, escaped", inURL("%61ccess_token="+good, "Authorization", "Bearer "+good), malformed, auth.CodeInvalidRequest},
		{"missing scope", bearer(token(map[string]any{"scope": "notes:list"})), http.StatusForbidden, auth.CodeInsufficientScope},
		{"no scope at all", bearer(token(map[string]any{"scope": nil})), http.StatusForbidden, auth.CodeInsufficientScope},
		{"scope that only begins so", bearer(token(map[string]any{"scope": "notes:readonly notes:rea"})), http.StatusForbidden, auth.CodeInsufficientScope},
		{"scope in capitals", bearer(token(map[string]any{"scope": "NOTES:READ"})), http.StatusForbidden, auth.CodeInsufficientScope},
		{"scopes with commas", bearer(token(map[string]any{"scope": "notes:read,notes:write"})), http.StatusForbidden, auth.CodeInsufficientScope},
		{"scope that is a number", bearer(token(map[string]any{"scope": 7})), http.StatusForbidden, auth.CodeInsufficientScope},
	}
	for i := range list {
		list[i].name = "request: " + list[i].name
	}
	return list
}

// badProofs are requests with a token that is bound, and something wrong.
func badProofs() []refusal {
	tok := bound()
	dpop := func(proofs ...string) func() *http.Request {
		headers := []string{"Authorization", "DPoP " + tok}
		for _, p := range proofs {
			headers = append(headers, "DPoP", p)
		}
		return with(headers...)
	}
	claim := func(name string, value any) func() *http.Request {
		return dpop(proof(tok, map[string]any{name: value}))
	}
	now := time.Now().Unix()
	good := proof(tok, nil)
	hash := sha256.Sum256([]byte(tok))
	private := jose.JSONWebKey{Key: clientKey}
	parts := strings.Split(good, ".")
	list := []refusal{
		{"none", dpop(), 0, ""},
		{"two", dpop(proof(tok, nil), proof(tok, nil)), 0, ""},
		{"no JWT", dpop("hello"), 0, ""},
		{"huge", claim("jti", strings.Repeat("x", 10<<10)), 0, ""},
		{"of another key", dpop(proofOf(strangeKey, map[string]any{"typ": "dpop+jwt"}, tok, nil)), 0, ""},
		{"signed by another key than its own", dpop(sign(jose.ES256, strangeKey, map[string]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: &clientKey.PublicKey}}, map[string]any{"jti": "1"})), 0, ""},
		{"without key", dpop(sign(jose.ES256, clientKey, map[string]any{"typ": "dpop+jwt"}, map[string]any{"jti": "1"})), 0, ""},
		{"with a private key", dpop(raw(`{"alg":"ES256","typ":"dpop+jwt","jwk":`+string(must(private.MarshalJSON()))+`}`, `{}`, "x")), 0, ""},
		{"with a symmetric key", dpop(raw(`{"alg":"HS256","typ":"dpop+jwt","jwk":{"kty":"oct","k":"AAAA"}}`, `{}`, "x")), 0, ""},
		{"alg none", dpop(raw(`{"alg":"none","typ":"dpop+jwt"}`, `{}`, "")), 0, ""},
		{"typ of a token", dpop(proofOf(clientKey, map[string]any{"typ": "JWT"}, tok, nil)), 0, ""},
		{"without typ", dpop(proofOf(clientKey, nil, tok, nil)), 0, ""},
		{"tampered", dpop(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"jti":"1"}`)) + "." + parts[2]), 0, ""},
		{"claims that are a list", dpop(sign(jose.ES256, clientKey, map[string]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: &clientKey.PublicKey}}, []byte(`[]`))), 0, ""},
		{"without jti", claim("jti", nil), 0, ""},
		{"jti that is a number", claim("jti", 7), 0, ""},
		{"of another method", claim("htm", "GET"), 0, ""},
		{"method in small letters", claim("htm", "post"), 0, ""},
		{"without htm", claim("htm", nil), 0, ""},
		{"of another path", claim("htu", resource+"/x"), 0, ""},
		{"of another host", claim("htu", "https://evil.example.com/mcp"), 0, ""},
		{"of another scheme", claim("htu", strings.Replace(resource, "https", "http", 1)), 0, ""},
		{"of the host with a port", claim("htu", "https://notes.example.com:8443/mcp"), 0, ""},
		{"of a path with dots", claim("htu", "https://notes.example.com/x/../mcp"), 0, ""},
		{"of a path in capitals", claim("htu", "https://notes.example.com/MCP"), 0, ""},
		{"of a path alone", claim("htu", "/mcp"), 0, ""},
		{"of a longer host", claim("htu", "https://notes.example.com.evil.example/mcp"), 0, ""},
		{"with the hash of another case", claim("ath", strings.ToUpper(base64.RawURLEncoding.EncodeToString(hash[:]))), 0, ""},
		{"without htu", claim("htu", nil), 0, ""},
		{"of long ago", claim("iat", now-120), 0, ""},
		{"of the future", claim("iat", now+120), 0, ""},
		{"without iat", claim("iat", nil), 0, ""},
		{"iat that is text", claim("iat", fmt.Sprint(now)), 0, ""},
		{"for another token", dpop(proof(token(nil), nil)), 0, ""},
		{"without ath", claim("ath", nil), 0, ""},
	}
	for i := range list {
		list[i].name, list[i].status, list[i].code = "proof: "+list[i].name, http.StatusUnauthorized, "invalid_dpop_proof"
	}
	return append(list, refusal{"proof: for a token that is not bound to a key",
		with("Authorization", "DPoP "+token(nil), "DPoP", proof(token(nil), nil)), http.StatusUnauthorized, auth.CodeInvalidToken})
}

// Every bad request is refused with the right status and a whole challenge,
// says nothing of its token, and reaches nobody.
func TestRefusals(t *testing.T) {
	issuer := newIssuer()
	handler := &reached{}
	var told []error
	protected := protect(newJWT(t, issuer, auth.JWTOptions{}), resource, &auth.Options{
		AuthorizationServers: []string{issuerURL}, Scopes: []string{"notes:read"},
		OnRefused: func(_ *http.Request, why error) { told = append(told, why) },
	})(handler)
	all := append(append(badTokens(), badRequests()...), badProofs()...)
	if len(all) < 60 {
		t.Fatalf("%d cases are too few", len(all))
	}
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			told = nil
			r := tt.request()
			res := serve(protected, r)
			body := string(must(io.ReadAll(res.Body)))
			if res.StatusCode != tt.status {
				t.Fatalf("status %d, want %d: %s", res.StatusCode, tt.status, body)
			}
			checkChallenge(t, res, tt)
			if n := handler.count(); n != 0 {
				t.Fatalf("%d requests reached the handler", n)
			}
			if len(told) != 1 {
				t.Fatalf("Refused was told %d times", len(told))
			}
			said := body + fmt.Sprint(res.Header) + told[0].Error()
			for _, secret := range secretsOf(r) {
				if strings.Contains(said, secret) {
					t.Errorf("the answer or the log has the token:\n%s", said)
				}
			}
		})
	}
}

// secretsOf returns the parts of the token that must not be repeated.
func secretsOf(r *http.Request) (secrets []string) {
	for part := range strings.FieldsFuncSeq(r.Header.Get("Authorization")+" "+r.URL.RawQuery, func(c rune) bool { return c == '.' || c == ' ' || c == '=' }) {
		if len(part) >= 16 {
			secrets = append(secrets, part)
		}
	}
	return secrets
}

func checkChallenge(t *testing.T, res *http.Response, tt refusal) {
	t.Helper()
	values := res.Header.Values("WWW-Authenticate")
	if len(values) != 1 {
		t.Fatalf("%d challenges: %q", len(values), values)
	}
	scheme, params := parseChallenge(t, values[0])
	want := "Bearer"
	if strings.HasPrefix(tt.name, "proof: ") {
		want = "DPoP"
		if params["algs"] == "" {
			t.Errorf("the challenge has no algs: %s", values[0])
		}
	}
	if scheme != want {
		t.Errorf("scheme %q, want %q", scheme, want)
	}
	if params["error"] != tt.code || (params["error_description"] == "") != (tt.code == "") {
		t.Errorf("challenge %s, want error %q with a description", values[0], tt.code)
	}
	if params["resource_metadata"] != metadata || params["scope"] != "notes:read" {
		t.Errorf("challenge %s lacks resource_metadata or scope", values[0])
	}
}

// parseChallenge reads a challenge with one scheme, strictly.
func parseChallenge(t *testing.T, value string) (scheme string, params map[string]string) {
	t.Helper()
	scheme, rest, _ := strings.Cut(value, " ")
	params = map[string]string{}
	for rest != "" {
		name, after, ok := strings.Cut(rest, `="`)
		text, more, closed := strings.Cut(after, `"`)
		if _, twice := params[name]; !ok || !closed || twice || strings.ContainsAny(name, ` ",`) {
			t.Fatalf("malformed challenge: %s", value)
		}
		params[name] = text
		if more != "" && !strings.HasPrefix(more, ", ") {
			t.Fatalf("malformed challenge: %s", value)
		}
		rest = strings.TrimPrefix(more, ", ")
	}
	return scheme, params
}
