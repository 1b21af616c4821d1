package auth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/core"
)

// What is right passes, in all its forms.
func TestAdmits(t *testing.T) {
	now := time.Now().Unix()
	ec := map[string]any{"kid": "ec"}
	tok := bound()
	tests := []struct {
		name    string
		headers []string
	}{
		{"plain", []string{"Authorization", "Bearer " + token(nil)}},
		{"scheme in small letters", []string{"Authorization", "bearer " + token(nil)}},
		{"scheme in capitals and spaces", []string{"Authorization", "BEARER   " + token(nil)}},
		{"audience in a list", []string{"Authorization", "Bearer " + token(map[string]any{"aud": []string{"https://x.example.com", resource}})}},
		{"audience with a host in capitals", []string{"Authorization", "Bearer " + token(map[string]any{"aud": "HTTPS://Notes.Example.com/mcp"})}},
		{"expired within the leeway", []string{"Authorization", "Bearer " + token(map[string]any{"exp": now - 10})}},
		{"not valid within the leeway", []string{"Authorization", "Bearer " + token(map[string]any{"nbf": now + 10, "iat": now + 10})}},
		{"times with fractions", []string{"Authorization", "Bearer " + token(map[string]any{"exp": float64(now) + 60.5})}},
		{"expiry beyond all bounds", []string{"Authorization", "Bearer " + token(map[string]any{"exp": 1e300})}},
		{"no typ", []string{"Authorization", "Bearer " + sign(jose.ES256, ecKey, ec, valid(nil))}},
		{"long typ", []string{"Authorization", "Bearer " + sign(jose.ES256, ecKey, map[string]any{"kid": "ec", "typ": "application/AT+JWT"}, valid(nil))}},
		{"no kid", []string{"Authorization", "Bearer " + sign(jose.ES256, ecKey, nil, valid(nil))}},
		{"RSA", []string{"Authorization", "Bearer " + sign(jose.RS256, rsaKey, map[string]any{"kid": "rsa"}, valid(nil))}},
		{"RSA-PSS", []string{"Authorization", "Bearer " + sign(jose.PS512, rsaKey, map[string]any{"kid": "rsa"}, valid(nil))}},
		{"P-384", []string{"Authorization", "Bearer " + sign(jose.ES384, p384Key, map[string]any{"kid": "p384"}, valid(nil))}},
		{"scopes in a list", []string{"Authorization", "Bearer " + token(map[string]any{"scope": nil, "scp": []string{"notes:read", "x"}})}},
		{"implied scope", []string{"Authorization", "Bearer " + token(map[string]any{"scope": "notes:admin"})}},
		{"client without subject", []string{"Authorization", "Bearer " + token(map[string]any{"sub": nil})}},
		{"bound", []string{"Authorization", "DPoP " + tok, "DPoP", proof(tok, nil)}},
		{"bound, once more", []string{"Authorization", "DPoP " + tok, "DPoP", proof(tok, nil)}},
		{"bound, URL in another form", []string{"Authorization", "dpop " + tok, "DPoP", proof(tok, map[string]any{"htu": "HTTPS://notes.example.com:443/mcp?a=b#c"})}},
		{"not bound, with a proof that nobody asked for", []string{"Authorization", "Bearer " + token(nil), "DPoP", "x"}},
	}
	handler := &reached{}
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{
		Scopes:  []string{"notes:read"},
		Implied: map[string][]string{"notes:admin": {"notes:write"}, "notes:write": {"notes:read", "notes:admin"}},
	})(handler)
	for i, tt := range tests {
		if res := serve(protected, post(tt.headers...)); res.StatusCode != http.StatusOK || handler.count() != i+1 {
			t.Fatalf("%s: status %d, %s", tt.name, res.StatusCode, res.Header.Get("WWW-Authenticate"))
		}
	}
}

// The handler knows who asks.
func TestIdentity(t *testing.T) {
	handler := &reached{}
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{
		Implied: map[string][]string{"notes:write": {"notes:read"}},
	})(handler)
	exp := time.Now().Add(time.Hour).Truncate(time.Second)
	serve(protected, post("Authorization", "Bearer "+token(map[string]any{"scope": "notes:write", "tenant": "t1", "exp": exp.Unix()})))
	if handler.count() != 1 {
		t.Fatal("refused")
	}
	ctx := handler.seen[0].Context()
	id, _ := core.GrantOf(ctx).Identity.(*auth.Identity)
	if id.Issuer != issuerURL || id.Subject != "alice" || id.ClientID != "app" || id.Claims["tenant"] != "t1" || !id.Expiry.Equal(exp) {
		t.Errorf("identity %+v", id)
	}
	if !slices.Equal(id.Scopes, []string{"notes:write", "notes:read"}) || !id.HasScope("notes:read", "notes:write") || id.HasScope("notes:read", "notes:admin") {
		t.Errorf("scopes %q", id.Scopes)
	}
	if got := core.Principal(ctx); got != issuerURL+"#alice" {
		t.Errorf("principal %q", got)
	}
}

// Subjects of two issuers are never one principal, however they are named.
func TestPrincipalsDoNotCollide(t *testing.T) {
	seen := map[string]auth.Identity{}
	for _, id := range []auth.Identity{
		{Issuer: "https://a", Subject: "x"}, {Issuer: "https://b", Subject: "x"}, {Subject: "x"}, {Subject: "https://a#x"},
		{Issuer: "https://a#x", Subject: "y"}, {Issuer: "https://a", Subject: "x#y"}, {Issuer: "https://a", Subject: "#x"},
		{Issuer: "https://a", ClientID: "x"}, {Issuer: "https://a", ClientID: "#x"}, {Issuer: "https://a%23x", Subject: "y"},
		{Issuer: "https://a", Subject: "%23x"},
	} {
		p := id.Principal()
		if other, ok := seen[p]; ok || p == "" {
			t.Errorf("%+v and %+v are both %q", id, other, p)
		}
		seen[p] = id
	}
	if p := (&auth.Identity{Issuer: "https://a"}).Principal(); p != "" {
		t.Errorf("nobody is %q", p)
	}
}

// What was verified is not verified again, until it is old or over.
func TestTokensAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		expiry := time.Now().Add(90 * time.Second)
		verifier := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
			calls++
			if !time.Now().Before(expiry) {
				return nil, auth.Invalid("the token has expired")
			}
			return &auth.Identity{Subject: "alice", Expiry: expiry}, nil
		})
		handler := &reached{}
		protected := protect(verifier, resource, &auth.Options{})(handler)
		ask := func(token string) int { return serve(protected, post("Authorization", "Bearer "+token)).StatusCode }
		want := func(status, total int) {
			t.Helper()
			if got := ask("a"); got != status || calls != total {
				t.Fatalf("after %v: status %d and %d calls, want %d and %d", time.Until(expiry), got, calls, status, total)
			}
		}
		want(200, 1)
		want(200, 1)
		time.Sleep(59 * time.Second)
		want(200, 1)
		time.Sleep(2 * time.Second)
		want(200, 2) // after a minute
		time.Sleep(29 * time.Second)
		want(401, 3) // never beyond the expiry
		want(401, 4) // refusals are not kept
	})
}

// So many tokens are kept, those that were used last; or none.
func TestCacheIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts auth.Options
		want string
	}{
		{"two", auth.Options{CacheSize: 2}, "abcb"}, {"many", auth.Options{}, "abc"},
		{"none", auth.Options{CacheFor: -1}, "abacab"}, {"no room", auth.Options{CacheSize: -1}, "abacab"},
	} {
		asked := ""
		protected := protect(auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
			asked += token
			return &auth.Identity{Subject: token}, nil
		}), resource, &tt.opts)(&reached{})
		for _, token := range "abacab" {
			if res := serve(protected, post("Authorization", "Bearer "+string(token))); res.StatusCode != http.StatusOK {
				t.Fatalf("status %d", res.StatusCode)
			}
		}
		if asked != tt.want {
			t.Errorf("%s: asked for %s, want %s", tt.name, asked, tt.want)
		}
	}
}

// Many requests with one new token ask once, and one that goes away does not
// take the others with it.
func TestNewTokenIsVerifiedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		verifier := auth.VerifierFunc(func(ctx context.Context, _ string) (*auth.Identity, error) {
			calls++
			select {
			case <-time.After(time.Second):
				return &auth.Identity{Subject: "alice"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		handler := &reached{}
		protected := protect(verifier, resource, &auth.Options{})(handler)
		ctx, leave := context.WithCancel(t.Context())
		go serve(protected, post("Authorization", "Bearer a").WithContext(ctx))
		synctest.Wait()
		for range 50 {
			go serve(protected, post("Authorization", "Bearer a"))
		}
		synctest.Wait()
		if calls != 1 {
			t.Fatalf("%d calls", calls)
		}
		leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls != 2 || handler.count() != 50 {
			t.Errorf("%d calls, %d requests passed", calls, handler.count())
		}
	})
}

// A Verifier that could not find out is no reason to get a new token.
func TestUnavailable(t *testing.T) {
	protected := protect(auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
		return nil, errors.New("secret of the database")
	}), resource, &auth.Options{})(&reached{})
	res := serve(protected, post("Authorization", "Bearer a"))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("status %d, %v", res.StatusCode, res.Header)
	}
}

func TestVerifierWithoutIdentity(t *testing.T) {
	protected := protect(auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) { return nil, nil }), resource, &auth.Options{})(&reached{})
	if res := serve(protected, post("Authorization", "Bearer a")); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", res.StatusCode)
	}
}

// Anonymous requests pass if they may; bad tokens do not become anonymous.
func TestAnonymous(t *testing.T) {
	handler := &reached{}
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{Anonymous: true})(handler)
	if res := serve(protected, post()); res.StatusCode != http.StatusOK || core.Principal(handler.seen[0].Context()) != "" || core.GrantOf(handler.seen[0].Context()).Identity != nil {
		t.Errorf("status %d", res.StatusCode)
	}
	if res := serve(protected, post("Authorization", "Bearer x.y.z")); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a bad token got status %d", res.StatusCode)
	}
}

// Of several verifiers, each is asked for what is its own.
func TestAny(t *testing.T) {
	mine := newJWT(t, newIssuer(), auth.JWTOptions{})
	var asked []string
	keys := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		asked = append(asked, token)
		switch token {
		case "key":
			return &auth.Identity{Subject: "robot"}, nil
		case "later":
			return nil, errors.New("the database is down")
		}
		return nil, auth.Invalid("the key is unknown")
	})
	both := auth.Any(mine, auth.Any(keys))
	tests := []struct {
		token, subject, fault string
		asked                 int
	}{
		{token(nil), "alice", "", 0},
		{"key", "robot", "", 1},
		{"other", "", "the key is unknown", 1},
		{"later", "", "the database is down", 1},
		{token(map[string]any{"iss": "https://other.example.com"}), "", "the key is unknown", 1},
	}
	for _, tt := range tests {
		asked = nil
		id, err := both.Verify(t.Context(), tt.token)
		if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) || err == nil && id.Subject != tt.subject || len(asked) != tt.asked {
			t.Errorf("%.10s: %+v, %v, asked %d times", tt.token, id, err, len(asked))
		}
	}
	if _, err := auth.Any(mine).Verify(t.Context(), "key"); err == nil || !strings.Contains(err.Error(), "no issuer that this server trusts") {
		t.Errorf("error %v", err)
	}
}

// Arguments that make no sense are found when the program starts.
func TestNewFaults(t *testing.T) {
	v := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) { return nil, nil })
	for name, tt := range map[string]struct {
		resource string
		verifier auth.Verifier
		opts     *auth.Options
	}{
		"no verifier":      {resource, nil, nil},
		"nil among others": {resource, auth.Any(v, nil), nil},
		"no resource":      {"", v, nil},
		"relative":         {"/mcp", v, nil},
		"fragment":         {resource + "#x", v, nil},
		"password":         {"https://a:b@notes.example.com", v, nil},
		"scope":            {resource, v, &auth.Options{Scopes: []string{"a b"}}},
		"metadata URL":     {resource, v, &auth.Options{MetadataURL: "https://x/\""}},
		"proof algorithms": {resource, v, &auth.Options{DPoP: auth.DPoPOptions{Algorithms: []string{"HS256"}}}},
		"nonce key":        {resource, v, &auth.Options{DPoP: auth.DPoPOptions{NonceKey: []byte("short")}}},
		"issuer":           {resource, auth.NewJWT("", nil), nil},
	} {
		if _, err := auth.New(tt.resource, tt.verifier, tt.opts); err == nil || !strings.HasPrefix(err.Error(), "auth: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Tokens are for the resource that the Verifier is given to, and the metadata
// names their issuers, unless the options say otherwise.
func TestVerifierKnowsItsResource(t *testing.T) {
	keys := auth.KeyOptions{Client: newIssuer().client()}
	for _, tt := range []struct {
		name     string
		verifier auth.Verifier
		further  []string
		audience string
		status   int
		servers  string
	}{
		{"the resource", auth.NewJWT(issuerURL, &auth.JWTOptions{Keys: keys}), nil, resource, 200, `["https://auth.example.com"]`},
		{"another resource", auth.NewJWT(issuerURL, &auth.JWTOptions{Keys: keys}), nil, "https://other.example.com", 401, `["https://auth.example.com"]`},
		{"another audience", auth.NewJWT(issuerURL, &auth.JWTOptions{Keys: keys, Audiences: []string{"api"}}), nil, "api", 200, `["https://auth.example.com"]`},
		{"no more the resource", auth.NewJWT(issuerURL, &auth.JWTOptions{Keys: keys, Audiences: []string{"api"}}), nil, resource, 401, `["https://auth.example.com"]`},
		{"one of several", auth.Any(auth.NewIntrospection(introspectionURL, &auth.IntrospectionOptions{Issuer: "https://old.example.com"}), auth.NewJWT(issuerURL, &auth.JWTOptions{Keys: keys})),
			[]string{issuerURL, "https://new.example.com"}, resource, 200, `["https://old.example.com","https://auth.example.com","https://new.example.com"]`},
	} {
		notes := must(auth.New(resource, tt.verifier, &auth.Options{AuthorizationServers: tt.further}))
		if res := serve(notes.Bearer(&reached{}), post("Authorization", "Bearer "+token(map[string]any{"aud": tt.audience}))); res.StatusCode != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, res.StatusCode, tt.status)
		}
		res := serve(notes.Metadata(http.NotFoundHandler()), httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", nil))
		if got := string(must(io.ReadAll(res.Body))); !strings.Contains(got, `"authorization_servers":`+tt.servers) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.servers)
		}
	}
}

// What is given is copied.
func TestOptionsAreCopied(t *testing.T) {
	opts := &auth.Options{Scopes: []string{"notes:read"}, Implied: map[string][]string{}}
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, opts)(&reached{})
	opts.Scopes[0], opts.Implied["x"], opts.Anonymous = "other", []string{"notes:read"}, true
	for header, want := range map[string]int{
		"": 401, "Bearer " + token(nil): 200, "Bearer " + token(map[string]any{"scope": "x"}): 403,
	} {
		if res := serve(protected, post("Authorization", header)); res.StatusCode != want {
			t.Errorf("status %d, want %d", res.StatusCode, want)
		}
	}
}
