package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// endpoints sends requests to the endpoints of authorization servers and
// authenticates the client there.
type endpoints struct{ *setup }

// authenticate returns how the client authenticates at an endpoint that
// supports certain methods. An empty list means client_secret_basic (RFC 8414,
// section 2); whether public clients are accepted is up to the server.
func (e *endpoints) authenticate(server *serverMetadata, client *Registration, supported []string) (clientAuth, error) {
	method, err := authMethod(client, supported)
	if err != nil {
		return clientAuth{}, err
	}
	auth := clientAuth{id: client.ClientID}
	switch method {
	case AuthSecretBasic:
		auth.secret, auth.basic = client.ClientSecret, true
	case AuthSecretPost:
		auth.secret = client.ClientSecret
	case AuthPrivateKeyJWT:
		assertion, err := clientAssertion(server, client)
		if err != nil {
			return clientAuth{}, err
		}
		auth.params = url.Values{
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {assertion},
		}
	}
	return auth, nil
}

// requestToken asks a token endpoint. With a key it sends a DPoP proof, again
// with a nonce if the server demands one (RFC 9449, section 8).
func (e *endpoints) requestToken(ctx context.Context, step Step, server *serverMetadata, client *Registration, key *dpopKey, form url.Values) (*tokenAnswer, error) {
	failed := func(e Error) error {
		e.Step, e.URL = step, server.TokenEndpoint
		return &e
	}
	place, err := url.Parse(server.TokenEndpoint)
	if err != nil {
		return nil, failed(Error{Err: err})
	}
	for retried := false; ; retried = true {
		auth, err := e.authenticate(server, client, server.TokenAuthMethods)
		if err != nil {
			return nil, failed(Error{Err: err})
		}
		header, params := http.Header{}, maps.Clone(form)
		auth.apply(header, params)
		if key != nil {
			proof, err := key.proof(http.MethodPost, place, e.nonces.get(nonceServer, place), "")
			if err != nil {
				return nil, failed(Error{Problem: "cannot sign a DPoP proof", Err: err})
			}
			header.Set("DPoP", proof)
		}
		answer, err := e.outbound.Post(ctx, server.TokenEndpoint, formMedia, header, []byte(params.Encode()))
		if err != nil {
			return nil, failed(Error{Err: err})
		}
		e.nonces.note(nonceServer, place, answer.Header)
		code, _ := readError(answer)
		switch refused := answer.Status < 200 || answer.Status > 299 || code != ""; {
		case code == "use_dpop_nonce" && key != nil && !retried:
		case refused:
			return nil, failed(refusedToken(answer, secretsOf(auth, params)))
		default:
			given, err := readTokens(answer)
			if err != nil {
				return nil, failed(Error{Status: answer.Status, Err: err})
			}
			return given, nil
		}
	}
}

// revokeOne revokes one token. A server that does not support revoking tokens
// of this type is not an error.
func (e *endpoints) revokeOne(ctx context.Context, server *serverMetadata, client *Registration, token, hint string) error {
	failed := func(e Error) error {
		e.Step, e.URL = StepRevocation, server.RevocationEndpoint
		return &e
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	methods := server.RevocationAuthMethods
	if len(methods) == 0 {
		methods = server.TokenAuthMethods
	}
	header := http.Header{}
	auth, err := e.authenticate(server, client, methods)
	if err != nil {
		return failed(Error{Err: err})
	}
	auth.apply(header, form)
	answer, err := e.outbound.Post(ctx, server.RevocationEndpoint, formMedia, header, []byte(form.Encode()))
	if err != nil {
		return failed(Error{Err: err})
	}
	if answer.Status == http.StatusOK {
		return nil
	}
	code, _ := readError(answer)
	if code == "unsupported_token_type" {
		return nil // it is valid until it expires; that cannot be changed
	}
	return failed(Error{Code: without([]string{token, auth.secret}, code), Status: answer.Status, Problem: "the token may still be valid until it expires"})
}

// dpopKey returns the key to bind a token to, or nil for a bearer token. The
// key stays the same as long as the issuer does.
func (e *endpoints) dpopKey(auth *authority, previous *record) (*dpopKey, error) {
	supported := slices.Contains(auth.server.DPoPAlgorithms, string(jose.ES256))
	failed := func(problem string) error {
		return &Error{Step: StepAuthorization, URL: auth.server.Issuer, Problem: problem}
	}
	switch {
	case e.opts.DPoP == DPoPOff && auth.dpop && !auth.bearer:
		return nil, failed("the MCP server takes only tokens that are bound by DPoP, which Options.DPoP turns off")
	case e.opts.DPoP == DPoPOff, e.opts.DPoP == DPoPAuto && !auth.dpop:
		return nil, nil
	case !supported && e.opts.DPoP == DPoPAuto && auth.bearer:
		return nil, nil
	case !supported:
		return nil, failed("tokens must be bound by DPoP, but the authorization server does not list ES256 in dpop_signing_alg_values_supported")
	}
	if previous != nil && previous.key != nil && previous.Issuer == auth.server.Issuer {
		return previous.key, nil
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, &Error{Step: StepAuthorization, Problem: "cannot make a DPoP key", Err: err}
	}
	return newDPoPKey(private)
}

// Grant types, as token endpoints know them.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
	grantJWTBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// assertionLifetime is how long a JWT by which the client authenticates is
// valid.
const assertionLifetime = time.Minute

// clientAuth is how a client authenticates in one request.
type clientAuth struct {
	id, secret string
	basic      bool       // in the header Authorization; otherwise in the form
	params     url.Values // on top of that
}

// apply adds the credentials to a request.
func (a clientAuth) apply(header http.Header, form url.Values) {
	maps.Copy(form, a.params)
	if a.basic {
		req := http.Request{Header: header}
		req.SetBasicAuth(url.QueryEscape(a.id), url.QueryEscape(a.secret)) // RFC 6749, section 2.3.1
		return
	}
	if a.id != "" {
		form.Set("client_id", a.id)
	}
	if a.secret != "" {
		form.Set("client_secret", a.secret)
	}
}

// authMethod returns the first method that the client is able to use and the
// endpoint supports.
func authMethod(client *Registration, supported []string) (AuthMethod, error) {
	var able []AuthMethod
	switch {
	case client.AuthMethod != "":
		able = []AuthMethod{client.AuthMethod}
	case client.Key != nil:
		able = []AuthMethod{AuthPrivateKeyJWT}
	case client.ClientSecret != "":
		able = []AuthMethod{AuthSecretBasic, AuthSecretPost}
	default:
		able = []AuthMethod{AuthNone}
	}
	if len(supported) == 0 || able[0] == AuthNone {
		return able[0], nil
	}
	for _, method := range able {
		if slices.Contains(supported, string(method)) {
			return method, nil
		}
	}
	return "", fmt.Errorf("the client authenticates with %s, but the authorization server supports only %s",
		strings.Trim(fmt.Sprint(able), "[]"), printable(strings.Join(supported, ", ")))
}

// clientAssertion returns a JWT by which a client authenticates (RFC 7523,
// section 2.2). Its audience is the issuer, so that no other server can use it.
func clientAssertion(server *serverMetadata, client *Registration) (string, error) {
	signer, err := signer(client.Key, client.KeyID, server.TokenAuthAlgorithms)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(map[string]any{
		"iss": client.ClientID,
		"sub": client.ClientID,
		"aud": server.Issuer,
		"jti": rand.Text(),
		"iat": now.Unix(),
		"exp": now.Add(assertionLifetime).Unix(),
	}).Serialize()
}

// secretsOf returns everything in a token request that no error may repeat.
func secretsOf(auth clientAuth, form url.Values) []string {
	secrets := []string{auth.secret}
	for _, name := range []string{"code", "code_verifier", "refresh_token", "assertion", "client_assertion", "subject_token"} {
		secrets = append(secrets, form.Get(name))
	}
	return secrets
}
