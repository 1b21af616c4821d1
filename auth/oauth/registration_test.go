package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestRegistration: which client is used, and what it says of itself.
func TestRegistration(t *testing.T) {
	const doc = "https://app.example/client.json"
	documents := func(meta map[string]any) { meta["client_id_metadata_document_supported"] = true }
	tests := []struct {
		name     string
		metadata func(map[string]any)
		options  Options
		id       string // of the client, or its beginning
		asked    int    // registrations
	}{
		{"dynamic", nil, Options{}, "client-", 1},
		{"dynamic, since documents are not supported", nil, Options{Document: &Document{URL: doc}}, "client-", 1},
		{"document", documents, Options{Document: &Document{URL: doc}}, doc, 0},
		{"document before no registration", documents, Options{Document: &Document{URL: doc}, NoRegistration: true}, doc, 0},
		{"registered before document", documents, Options{Document: &Document{URL: doc}, Clients: []Registration{{Issuer: "ISSUER", ClientID: "mine"}}}, "mine", 0},
		{"registered with another, document here", documents, Options{Document: &Document{URL: doc}, Clients: []Registration{{Issuer: "https://other.example", ClientID: "mine"}}}, doc, 0},
		{"one of several", nil, Options{Clients: []Registration{{Issuer: "https://other.example", ClientID: "other"}, {Issuer: "ISSUER", ClientID: "mine"}}}, "mine", 0},
		{"the one with an issuer", nil, Options{Clients: []Registration{{ClientID: "any"}, {Issuer: "ISSUER", ClientID: "mine"}}}, "mine", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.metadata = test.metadata
			for i := range test.options.Clients {
				if test.options.Clients[i].Issuer == "ISSUER" {
					test.options.Clients[i].Issuer = w.issuer.URL
				}
			}
			user := &consent{}
			test.options.Grant = &AuthorizationCode{Agent: user}
			c := w.client(&test.options)
			mustCall(t, c)
			if id := user.visits[0].Get("client_id"); !strings.HasPrefix(id, test.id) {
				t.Errorf("the client is %q", id)
			}
			if n := w.count("issuer POST /register"); n != test.asked {
				t.Errorf("registered %d times", n)
			}
			w.expire() // what was granted to a client it can refresh
			mustCall(t, c)
			if n := w.count("issuer POST /token refresh_token"); n != 1 {
				t.Errorf("%d refreshes", n)
			}
		})
	}
	t.Run("forbidden", func(t *testing.T) {
		_, _, err := call(newWorld(t).client(&Options{NoRegistration: true}))
		if err == nil || !strings.Contains(err.Error(), "NoRegistration") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRegistrationRequest(t *testing.T) {
	tests := []struct {
		uri, supported string
		application    string
		method         string
	}{
		{"http://127.0.0.1:1/callback", "none", "native", "none"},
		{"http://localhost:1/callback", "none", "native", "none"},
		{"com.example.app:/callback", "none", "native", "none"},
		{"https://app.example/callback", "none", "web", "none"},
		{"https://localhost/callback", "client_secret_basic", "native", "client_secret_basic"},
		{"http://127.0.0.1:1/callback", "client_secret_post", "native", "client_secret_post"},
		{"http://127.0.0.1:1/callback", "tls_client_auth", "native", "none"},
	}
	for _, test := range tests {
		w := newWorld(t)
		var got clientMetadata
		w.handlers["issuer /register"] = func(rw http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			writeJSON(rw, 201, map[string]any{"client_id": "x", "client_secret": "s"})
		}
		c := w.client(&Options{ClientName: "Test", ClientURI: "https://app.example"})
		server := &serverMetadata{Issuer: w.issuer.URL, RegistrationEndpoint: w.issuer.URL + "/register", TokenAuthMethods: []string{test.supported}}
		client, err := c.registrar.registration(t.Context(), server, c.registrar.codeMetadata(test.uri))
		if err != nil || client.ClientID != "x" || string(client.AuthMethod) != test.method {
			t.Fatalf("got %v, %v", client, err)
		}
		if got.ApplicationType != test.application || string(got.AuthMethod) != test.method || got.ClientName != "Test" || got.RedirectURIs[0] != test.uri ||
			strings.Join(got.GrantTypes, " ") != "authorization_code refresh_token" {
			t.Errorf("%s: the client says %+v", test.uri, got)
		}
	}
}

// TestSecretThatEnds: a client whose secret has ended is registered anew.
func TestSecretThatEnds(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) {
		n++
		writeJSON(rw, 201, map[string]any{"client_id": fmt.Sprint(n), "client_secret": "s", "token_endpoint_auth_method": "client_secret_basic",
			"client_secret_expires_at": time.Now().Add(30 * time.Second).Unix()})
	}
	c := w.client(nil)
	for range 2 {
		if err := c.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("registered %d times", n)
	}
}

func TestMetadataDocument(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w := newWorld(t)
	c := w.client(&Options{Document: &Document{URL: "https://app.example/c.json", Key: key, KeyID: "k1"}})
	text, err := c.MetadataDocument("http://127.0.0.1/callback")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		clientMetadata
		JWKS jose.JSONWebKeySet `json:"jwks"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.ClientID != "https://app.example/c.json" || got.AuthMethod != "private_key_jwt" || len(got.RedirectURIs) != 1 ||
		len(got.JWKS.Keys) != 1 || got.JWKS.Keys[0].KeyID != "k1" || !got.JWKS.Keys[0].IsPublic() {
		t.Errorf("got %s", text)
	}
	if _, err := c.MetadataDocument(); err == nil {
		t.Error("a document without redirect URIs")
	}
	if _, err := w.client(nil).MetadataDocument("x"); err == nil {
		t.Error("a document of nobody")
	}
}

// TestClientAuthentication: how clients prove at the token endpoint that they
// are themselves.
func TestClientAuthentication(t *testing.T) {
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	tests := []struct {
		name      string
		client    Registration
		supported []string
		algs      []string
		want      string // what the token endpoint sees, or the error
	}{
		{"public", Registration{}, []string{"none"}, nil, "id"},
		{"public, though not listed", Registration{}, []string{"client_secret_basic"}, nil, "id"},
		{"secret", Registration{ClientSecret: "s s"}, nil, nil, "basic id%2F1 s+s"},
		{"secret, basic first", Registration{ClientSecret: "s s"}, []string{"client_secret_post", "client_secret_basic"}, nil, "basic id%2F1 s+s"},
		{"secret, post only", Registration{ClientSecret: "s s"}, []string{"client_secret_post"}, nil, "post s s"},
		{"secret, as registered", Registration{ClientSecret: "s s", AuthMethod: AuthSecretPost}, nil, nil, "post s s"},
		{"secret is not supported", Registration{ClientSecret: "s"}, []string{"private_key_jwt"}, nil, "supports only private_key_jwt"},
		{"P-256", Registration{Key: p256, KeyID: "k"}, []string{"private_key_jwt"}, []string{"ES256"}, "jwt ES256 k"},
		{"RSA", Registration{Key: rsaKey}, []string{"private_key_jwt"}, nil, "jwt RS256 "},
		{"RSA, PS256 only", Registration{Key: rsaKey}, []string{"private_key_jwt"}, []string{"PS256"}, "jwt PS256 "},
		{"Ed25519", Registration{Key: edKey}, nil, nil, "jwt EdDSA "},
		{"key of the wrong kind", Registration{Key: edKey}, nil, []string{"RS256"}, "cannot sign with any of"},
		{"key is not supported", Registration{Key: p256}, []string{"client_secret_basic"}, nil, "authenticates with private_key_jwt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.metadata = func(doc map[string]any) {
				doc["token_endpoint_auth_methods_supported"] = test.supported
				doc["token_endpoint_auth_signing_alg_values_supported"] = test.algs
			}
			got, last := "", ""
			w.handlers["issuer /token"] = func(rw http.ResponseWriter, r *http.Request) {
				got = seen(t, w, r, test.client.Key)
				if assertion := r.PostForm.Get("client_assertion"); assertion != "" && assertion == last {
					t.Error("an assertion was used twice")
				} else {
					last = assertion
				}
				w.token(rw, r)
			}
			test.client.Issuer, test.client.ClientID = w.issuer.URL, "id/1"
			c := w.client(&Options{Clients: []Registration{test.client}})
			_, _, err := call(c)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if err != nil {
				return
			}
			w.expire()
			mustCall(t, c)
			if err := c.Logout(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// seen describes how the client of a token request authenticates.
func seen(t *testing.T, w *world, r *http.Request, key crypto.PrivateKey) string {
	if id, secret, ok := r.BasicAuth(); ok {
		if r.PostForm.Has("client_id") || r.PostForm.Has("client_secret") {
			t.Error("two methods at once")
		}
		return "basic " + id + " " + secret
	}
	if assertion := r.PostForm.Get("client_assertion"); assertion != "" {
		token, err := jwt.ParseSigned(assertion, []jose.SignatureAlgorithm{"ES256", "RS256", "PS256", "EdDSA"})
		if err != nil {
			return err.Error()
		}
		var claims jwt.Claims
		if err := token.Claims(key.(crypto.Signer).Public(), &claims); err != nil {
			return err.Error()
		}
		expected := jwt.Expected{Issuer: "id/1", Subject: "id/1", AnyAudience: jwt.Audience{w.issuer.URL}, Time: time.Now()}
		if err := claims.Validate(expected); err != nil || claims.ID == "" || len(claims.Audience) != 1 {
			return fmt.Sprint(claims, err)
		}
		return "jwt " + token.Headers[0].Algorithm + " " + token.Headers[0].KeyID
	}
	if r.PostForm.Get("client_id") != "id/1" {
		return "nothing"
	}
	if secret := r.PostForm.Get("client_secret"); secret != "" {
		return "post " + secret
	}
	return "id"
}

func TestParseKey(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	encode := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	ecDER, ecErr := x509.MarshalECPrivateKey(ec)
	pkcs8, pkcs8Err := x509.MarshalPKCS8PrivateKey(ec)
	for name, text := range map[string][]byte{
		"PKCS #8": encode("PRIVATE KEY", pkcs8, pkcs8Err),
		"EC":      encode("EC PRIVATE KEY", ecDER, ecErr),
		"PKCS #1": encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil),
	} {
		if key, err := ParseKey(text); err != nil || key == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	public, publicErr := x509.MarshalPKIXPublicKey(ec.Public())
	for name, text := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("secret"), "public": encode("PUBLIC KEY", public, publicErr), "empty": encode("PRIVATE KEY", nil, nil),
	} {
		if key, err := ParseKey(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", name, key, err)
		}
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		server  string
		options *Options
		want    string // in the error; empty for none
	}{
		{"https://mcp.example/mcp", nil, ""},
		{"http://localhost:80/mcp", nil, ""},
		{"http://[::1]/mcp", nil, ""},
		{"http://mcp.example/mcp", nil, "in the clear"},
		{"http://mcp.example/mcp", &Options{AllowInsecure: true}, ""},
		{"ftp://mcp.example/mcp", nil, "is not https://host/path"},
		{"mcp.example", nil, "is not https://host/path"},
		{"https://user:secret@mcp.example/", nil, "user information"},
		{"https://%zz", nil, "server URL"},
		{"https://a.example", &Options{Document: &Document{URL: "http://app.example/c.json"}}, "Document.URL"},
		{"https://a.example", &Options{Document: &Document{URL: "https://app.example/"}}, "Document.URL"},
		{"https://a.example", &Options{Document: &Document{URL: "https://app.example/c", Key: "text"}}, "Document.Key"},
		{"https://a.example", &Options{Clients: []Registration{{}}}, "ClientID is empty"},
		{"https://a.example", &Options{Clients: []Registration{{ClientID: "x", AuthMethod: "magic"}}}, "unknown AuthMethod"},
		{"https://a.example", &Options{Clients: []Registration{{ClientID: "x", AuthMethod: AuthSecretPost}}}, "needs a ClientSecret"},
		{"https://a.example", &Options{Clients: []Registration{{ClientID: "x", AuthMethod: AuthPrivateKeyJWT}}}, "needs a Key"},
		{"https://a.example", &Options{Scopes: []string{"a\"b"}}, "Options.Scopes"},
		{"https://a.example", &Options{Grant: &WorkloadIdentity{}}, "Assertion is nil"},
		{"https://a.example", &Options{Grant: &EnterpriseManaged{}}, "Provider is empty"},
	}
	for _, test := range tests {
		_, err := New(test.server, test.options)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: got %v, want %q", test.server, err, test.want)
		}
	}
	c, err := New("HTTPS://MCP.Example:443/Path?q=1#f", nil)
	if err != nil || c.server.String() != "https://mcp.example/Path?q=1" {
		t.Errorf("the canonical URL is %v, %v", c.server, err)
	}
	secret := Registration{ClientID: "x", ClientSecret: "hush"}
	for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%+v %#v", secret, &secret), fmt.Sprintf("%v", []Registration{secret})} {
		if strings.Contains(text, "hush") {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

func TestChooseIssuer(t *testing.T) {
	w := newWorld(t)
	w.resource = func(doc map[string]any) {
		doc["authorization_servers"] = []string{"https://first.example", w.issuer.URL}
	}
	choose := func(issuer string) *Options {
		return &Options{ChooseIssuer: func([]string) (string, error) { return issuer, nil }}
	}
	mustCall(t, w.client(choose(w.issuer.URL)))
	mustCall(t, w.client(&Options{Clients: []Registration{{Issuer: w.issuer.URL, ClientID: "mine"}}}))
	if _, _, err := call(w.client(choose("https://own.example"))); err == nil || !strings.Contains(err.Error(), "does not list") {
		t.Errorf("got %v", err)
	}
}
