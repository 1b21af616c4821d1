package auth_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/frame"
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
	protected := auth.Bearer(newJWT(t, newIssuer(), auth.JWTOptions{}), &auth.Options{
		Resource: resource, Scopes: []string{"notes:read"},
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
	protected := auth.Bearer(newJWT(t, newIssuer(), auth.JWTOptions{}), &auth.Options{
		Resource: resource, Implied: map[string][]string{"notes:write": {"notes:read"}},
	})(handler)
	exp := time.Now().Add(time.Hour).Truncate(time.Second)
	serve(protected, post("Authorization", "Bearer "+token(map[string]any{"scope": "notes:write", "tenant": "t1", "exp": exp.Unix()})))
	if handler.count() != 1 {
		t.Fatal("refused")
	}
	ctx := handler.seen[0].Context()
	id := frame.IdentityOf(ctx)
	if id.Issuer != issuerURL || id.Subject != "alice" || id.ClientID != "app" || id.Claims["tenant"] != "t1" || !id.Expiry.Equal(exp) {
		t.Errorf("identity %+v", id)
	}
	if !slices.Equal(id.Scopes, []string{"notes:write", "notes:read"}) || !id.HasScope("notes:read", "notes:write") || id.HasScope("notes:read", "notes:admin") {
		t.Errorf("scopes %q", id.Scopes)
	}
	if got := frame.PrincipalOf(ctx); got != issuerURL+"#alice" {
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
		protected := auth.Bearer(verifier, &auth.Options{Resource: resource})(handler)
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
		tt.opts.Resource = resource
		protected := auth.Bearer(auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
			asked += token
			return &auth.Identity{Subject: token}, nil
		}), &tt.opts)(&reached{})
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
		protected := auth.Bearer(verifier, &auth.Options{Resource: resource})(handler)
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
	protected := auth.Bearer(auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
		return nil, errors.New("secret of the database")
	}), &auth.Options{Resource: resource})(&reached{})
	res := serve(protected, post("Authorization", "Bearer a"))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("status %d, %v", res.StatusCode, res.Header)
	}
}

func TestVerifierWithoutIdentity(t *testing.T) {
	protected := auth.Bearer(auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) { return nil, nil }), &auth.Options{Resource: resource})(&reached{})
	if res := serve(protected, post("Authorization", "Bearer a")); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", res.StatusCode)
	}
}

// Anonymous requests pass if they may; bad tokens do not become anonymous.
func TestAnonymous(t *testing.T) {
	handler := &reached{}
	protected := auth.Bearer(newJWT(t, newIssuer(), auth.JWTOptions{}), &auth.Options{Resource: resource, Anonymous: true})(handler)
	if res := serve(protected, post()); res.StatusCode != http.StatusOK || frame.IdentityOf(handler.seen[0].Context()) != nil {
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

// Options that make no sense are found when the program starts.
func TestBearerPanics(t *testing.T) {
	v := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) { return nil, nil })
	for name, make := range map[string]func(){
		"no verifier":  func() { auth.Bearer(nil, &auth.Options{Resource: resource}) },
		"no options":   func() { auth.Bearer(v, nil) },
		"no resource":  func() { auth.Bearer(v, &auth.Options{}) },
		"relative":     func() { auth.Bearer(v, &auth.Options{Resource: "/mcp"}) },
		"fragment":     func() { auth.Bearer(v, &auth.Options{Resource: resource + "#x"}) },
		"password":     func() { auth.Bearer(v, &auth.Options{Resource: "https://a:b@notes.example.com"}) },
		"scope":        func() { auth.Bearer(v, &auth.Options{Resource: resource, Scopes: []string{"a b"}}) },
		"metadata URL": func() { auth.Bearer(v, &auth.Options{Resource: resource, MetadataURL: "https://x/\""}) },
		"proof algorithms": func() {
			auth.Bearer(v, &auth.Options{Resource: resource, DPoP: auth.DPoPOptions{Algorithms: []string{"HS256"}}})
		},
		"nonce key": func() {
			auth.Bearer(v, &auth.Options{Resource: resource, DPoP: auth.DPoPOptions{NonceKey: []byte("short")}})
		},
		"metadata without servers": func() { auth.Metadata(&auth.Options{Resource: resource}) },
		"metadata without options": func() { auth.Metadata(nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "auth: ") {
					t.Errorf("%s: recovered %q", name, text)
				}
			}()
			make()
		}()
	}
}

// What is given is copied.
func TestOptionsAreCopied(t *testing.T) {
	opts := &auth.Options{Resource: resource, Scopes: []string{"notes:read"}, Implied: map[string][]string{}}
	protected := auth.Bearer(newJWT(t, newIssuer(), auth.JWTOptions{}), opts)(&reached{})
	opts.Scopes[0], opts.Implied["x"], opts.Anonymous = "other", []string{"notes:read"}, true
	for header, want := range map[string]int{
		"": 401, "Bearer " + token(nil): 200, "Bearer " + token(map[string]any{"scope": "x"}): 403,
	} {
		if res := serve(protected, post("Authorization", header)); res.StatusCode != want {
			t.Errorf("status %d, want %d", res.StatusCode, want)
		}
	}
}

func TestMetadataPath(t *testing.T) {
	got := []string{}
	for _, r := range []string{"https://h/mcp", "https://h", "https://h/", "https://h/a/b/", "https://h:8443/a%20b", "https://h/m?tenant=1", "nonsense"} {
		got = append(got, auth.MetadataPath(r))
	}
	want := []string{auth.WellKnown + "/mcp", auth.WellKnown, auth.WellKnown, auth.WellKnown + "/a/b/", auth.WellKnown + "/a%20b", auth.WellKnown + "/m?tenant=1", auth.WellKnown}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
