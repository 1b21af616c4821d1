package oauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/internal/wire"
)

// ClientCredentials is the grant of programs that act for themselves (OAuth
// 2.1, section 4.2). The client is one of Options.Clients with a secret or,
// better, a key.
//
// https://github.com/modelcontextprotocol/ext-auth, OAuth Client Credentials Extension
type ClientCredentials struct{}

// check, extension, kind, interactive, trusts and obtain implement Grant.
func (*ClientCredentials) check() error { return nil }

func (*ClientCredentials) extension() string { return wire.CredentialsExtension }

func (*ClientCredentials) kind() string { return grantCredentials }

func (*ClientCredentials) interactive() bool { return false }

func (*ClientCredentials) trusts() []*url.URL { return nil }

func (*ClientCredentials) obtain(ctx context.Context, r *grantRequest) (*tokenAnswer, error) {
	client, err := r.machineClient(ctx, grantCredentials)
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, client, r.scoped(url.Values{"grant_type": {grantCredentials}}))
}

// WorkloadIdentity is the grant of workloads whose platform vouches for them: a
// JWT of the platform is traded for an access token (RFC 7523, section 2.1).
// The client is one of Options.Clients; without any, the JWT identifies the
// client. After a refusal neither this grant nor a different one is tried.
type WorkloadIdentity struct {
	// Assertion returns the JWT that the platform has issued for an audience,
	// which is the issuer identifier of the authorization server. It is called
	// for each token: such JWTs are short-lived.
	Assertion func(ctx context.Context, audience string) (string, error)
}

// check, extension, kind, interactive, trusts and obtain implement Grant.
func (g *WorkloadIdentity) check() error {
	if g.Assertion == nil {
		return errors.New("WorkloadIdentity.Assertion is nil")
	}
	return nil
}

// extension returns none: the draft for workloads has no identifier.
func (*WorkloadIdentity) extension() string { return "" }

func (*WorkloadIdentity) kind() string { return "workload_identity" }

func (*WorkloadIdentity) interactive() bool { return false }

func (*WorkloadIdentity) trusts() []*url.URL { return nil }

func (g *WorkloadIdentity) obtain(ctx context.Context, r *grantRequest) (*tokenAnswer, error) {
	server := r.authority.server
	client := &Registration{Issuer: server.Issuer, AuthMethod: AuthNone}
	if len(r.client.opts.Clients) > 0 || r.client.opts.Document != nil {
		var err error
		if client, err = r.machineClient(ctx, grantJWTBearer); err != nil {
			return nil, err
		}
	}
	assertion, err := g.Assertion(ctx, server.Issuer)
	if err != nil {
		return nil, &Error{Step: StepToken, URL: server.Issuer, Problem: "the platform gives no JWT", Err: err}
	}
	return r.ask(ctx, client, r.scoped(url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion}}))
}

// Token types of token exchange (RFC 8693, section 3) and of the extension.
const (
	tokenTypeIDToken = "urn:ietf:params:oauth:token-type:id_token"
	tokenTypeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"
)

// EnterpriseManaged is the grant of employees whose identity provider decides
// which MCP servers they may use: their ID token is exchanged at the identity
// provider for an Identity Assertion JWT Authorization Grant (RFC 8693), and
// that at the authorization server of the MCP server for an access token (RFC
// 7523). The client at the latter is one of Options.Clients, the metadata
// document, or is registered dynamically.
//
// https://github.com/modelcontextprotocol/ext-auth, Enterprise-Managed Authorization
type EnterpriseManaged struct {
	// Provider is the issuer identifier of the identity provider. Its token
	// endpoint is found by its metadata unless TokenEndpoint names it.
	Provider string
	// TokenEndpoint is the token endpoint of the identity provider.
	TokenEndpoint string
	// Client is the client at the identity provider; its Issuer need not be set.
	Client Registration
	// Assertion returns the user's ID token, or what SubjectTokenType says, from
	// the login at the identity provider. It is called for each token.
	Assertion func(ctx context.Context) (string, error)
	// SubjectTokenType is the type of the assertion; that of ID tokens,
	// urn:ietf:params:oauth:token-type:id_token, if empty.
	SubjectTokenType string
}

// check, extension, kind, interactive, trusts and obtain implement Grant.
func (g *EnterpriseManaged) check() error {
	var problems []error
	if g.Assertion == nil {
		problems = append(problems, errors.New("EnterpriseManaged.Assertion is nil"))
	}
	if g.Provider == "" {
		problems = append(problems, errors.New("EnterpriseManaged.Provider is empty"))
	}
	if err := g.Client.check(); err != nil {
		problems = append(problems, fmt.Errorf("EnterpriseManaged: %w", err))
	}
	return errors.Join(problems...)
}

func (*EnterpriseManaged) extension() string { return wire.EnterpriseExtension }

func (*EnterpriseManaged) kind() string { return "enterprise_managed" }

func (*EnterpriseManaged) interactive() bool { return false }

func (g *EnterpriseManaged) trusts() []*url.URL {
	var trusted []*url.URL
	for _, address := range []string{g.Provider, g.TokenEndpoint} {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			trusted = append(trusted, u)
		}
	}
	return trusted
}

func (g *EnterpriseManaged) obtain(ctx context.Context, r *grantRequest) (*tokenAnswer, error) {
	c, server := r.client, r.authority.server
	client, err := r.machineClient(ctx, grantJWTBearer)
	if client == nil && server.RegistrationEndpoint != "" && len(c.opts.Clients) == 0 && server.supportsGrant(grantJWTBearer) {
		client, err = c.registrar.registration(ctx, server, clientMetadata{
			ClientName: c.opts.ClientName, ClientURI: c.opts.ClientURI, GrantTypes: []string{grantJWTBearer}, ApplicationType: "native",
		})
	}
	if err != nil {
		return nil, err
	}
	grant, err := g.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	// The scopes are in the assertion; asking for them again can only narrow.
	return r.ask(ctx, client, url.Values{"grant_type": {grantJWTBearer}, "assertion": {grant}})
}

// exchange gets the authorization grant for the authorization server from the
// identity provider (RFC 8693).
func (g *EnterpriseManaged) exchange(ctx context.Context, r *grantRequest) (string, error) {
	provider := &serverMetadata{Issuer: g.Provider, TokenEndpoint: g.TokenEndpoint}
	if g.TokenEndpoint == "" {
		var err error
		if provider, err = r.client.discovery.serverMetadata(ctx, g.Provider); err != nil {
			return "", err
		}
		if provider == nil {
			return "", &Error{Step: StepServer, URL: g.Provider, Problem: "the identity provider has no metadata; set EnterpriseManaged.TokenEndpoint"}
		}
	}
	subject, err := g.Assertion(ctx)
	if err != nil {
		return "", &Error{Step: StepExchange, URL: g.Provider, Problem: "there is no assertion of the user", Err: err}
	}
	subjectType := cmp.Or(g.SubjectTokenType, tokenTypeIDToken)
	token, err := r.client.endpoints.requestToken(ctx, StepExchange, provider, &g.Client, nil, r.scoped(url.Values{
		"grant_type":           {grantExchange},
		"requested_token_type": {tokenTypeIDJAG},
		"audience":             {r.authority.server.Issuer},
		"resource":             {r.authority.resource},
		"subject_token":        {subject},
		"subject_token_type":   {subjectType},
	}))
	if err != nil {
		return "", err
	}
	if token.IssuedType != tokenTypeIDJAG {
		return "", &Error{Step: StepExchange, URL: provider.TokenEndpoint,
			Problem: "the identity provider has issued " + printable(token.IssuedType) + ", not an ID-JAG"}
	}
	return token.AccessToken, nil
}

// ParseKey reads a private key from PEM: PKCS #8, or the older forms for RSA
// and elliptic curves.
func ParseKey(text []byte) (crypto.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("oauth: the private key is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		// The error of x509 names formats, not contents.
		return nil, fmt.Errorf("oauth: the private key: %w", err)
	}
	if err := checkKey("the private key", key); err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return key, nil
}

// checkKey returns an error if a key cannot sign JWTs. nil stands for "no key"
// and is permitted.
func checkKey(where string, key crypto.PrivateKey) error {
	if key == nil || len(signingMethods(key)) > 0 {
		return nil
	}
	return fmt.Errorf("%s: %T cannot sign JWTs; use an *rsa.PrivateKey, *ecdsa.PrivateKey or ed25519.PrivateKey", where, key)
}

// signingMethods returns the algorithms that a key can sign with, the best
// first.
func signingMethods(key crypto.PrivateKey) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PrivateKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	case *rsa.PrivateKey:
		return []jose.SignatureAlgorithm{jose.RS256, jose.PS256}
	}
	return nil
}

// signer returns a signer of JWTs for the first algorithm of the key that is
// among supported. An empty list means that the other side has not said what it
// supports.
func signer(key crypto.PrivateKey, id string, supported []string) (jose.Signer, error) {
	for _, algorithm := range signingMethods(key) {
		if len(supported) == 0 || slices.Contains(supported, string(algorithm)) {
			options := &jose.SignerOptions{}
			return jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, options.WithType("JWT"))
		}
	}
	return nil, fmt.Errorf("the key cannot sign with any of %q", supported)
}

// publicJWK returns the public half of a key as a JWK (RFC 7517).
func publicJWK(key crypto.PrivateKey, id string) (json.RawMessage, error) {
	return (&jose.JSONWebKey{Key: key, KeyID: id}).Public().MarshalJSON()
}
