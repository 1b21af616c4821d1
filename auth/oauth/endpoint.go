package oauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Grant types, as token endpoints know them.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
	grantJWTBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
)

const assertionLifetime = time.Minute

// clientAuth is how a client proves at an endpoint that it is itself.
type clientAuth struct {
	id, secret string
	style      oauth2.AuthStyle
	params     url.Values // on top of what style adds
}

// apply puts the proof into a request that golang.org/x/oauth2 does not make.
func (a clientAuth) apply(header http.Header, form url.Values) {
	maps.Copy(form, a.params)
	if a.style == oauth2.AuthStyleInHeader {
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

// authenticate chooses the method of a client among those that an endpoint
// supports. No list means client_secret_basic (RFC 8414, section 2), and that
// public clients are let in is for the server to say.
func (c *Client) authenticate(server *serverMetadata, client *Registration, supported []string) (clientAuth, error) {
	method, err := authMethod(client, supported)
	if err != nil {
		return clientAuth{}, err
	}
	auth := clientAuth{id: client.ClientID, style: oauth2.AuthStyleInParams}
	switch method {
	case AuthSecretBasic:
		auth.secret, auth.style = client.ClientSecret, oauth2.AuthStyleInHeader
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

func authMethod(client *Registration, supported []string) (string, error) {
	var able []string
	switch {
	case client.AuthMethod != "":
		able = []string{client.AuthMethod}
	case client.Key != nil:
		able = []string{AuthPrivateKeyJWT}
	case client.ClientSecret != "":
		able = []string{AuthSecretBasic, AuthSecretPost}
	default:
		able = []string{AuthNone}
	}
	if len(supported) == 0 || able[0] == AuthNone {
		return able[0], nil
	}
	for _, method := range able {
		if slices.Contains(supported, method) {
			return method, nil
		}
	}
	return "", fmt.Errorf("the client authenticates with %s, but the authorization server supports only %s",
		strings.Join(able, " or "), printable(strings.Join(supported, ", ")))
}

// clientAssertion is a JWT by which a client authenticates (RFC 7523, section
// 2.2). Its audience is the issuer, which no other server can be.
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

// requestToken asks a token endpoint. With a key it sends a DPoP proof, again
// with a nonce if the server demands one (RFC 9449, section 8).
func (c *Client) requestToken(ctx context.Context, step string, server *serverMetadata, client *Registration, key *dpopKey, form url.Values) (*oauth2.Token, error) {
	for retried := false; ; retried = true {
		auth, err := c.authenticate(server, client, server.TokenAuthMethods)
		if err != nil {
			return nil, &Error{Step: step, URL: server.TokenEndpoint, Err: err}
		}
		params := maps.Clone(form)
		maps.Copy(params, auth.params)
		config := clientcredentials.Config{ // its grant type gives way to the one in params
			ClientID: auth.id, ClientSecret: auth.secret, AuthStyle: auth.style,
			TokenURL: server.TokenEndpoint, EndpointParams: params,
		}
		poster := c.outbound.Poster(&proving{client: c, key: key})
		token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, poster))
		if err == nil {
			return token, nil
		}
		failure := fromEndpoint(step, server.TokenEndpoint, err, secretsOf(auth, params))
		if failure.Code != "use_dpop_nonce" || key == nil || retried {
			return nil, failure
		}
	}
}

// secretsOf lists what no error may repeat of a token request.
func secretsOf(auth clientAuth, form url.Values) []string {
	secrets := []string{auth.secret}
	for _, name := range []string{"code", "code_verifier", "refresh_token", "assertion", "client_assertion", "subject_token"} {
		secrets = append(secrets, form.Get(name))
	}
	return secrets
}

// proving is a transport to token endpoints that adds DPoP proofs.
type proving struct {
	client *Client
	key    *dpopKey
}

func (p *proving) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.key == nil {
		return p.client.outbound.RoundTrip(req)
	}
	proof, err := p.key.proof(req.Method, req.URL, p.client.nonces.get(nonceServer, req.URL), "")
	if err != nil {
		req.Body.Close()
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("DPoP", proof)
	resp, err := p.client.outbound.RoundTrip(req)
	if err == nil {
		p.client.nonces.note(nonceServer, req.URL, resp.Header)
	}
	return resp, err
}
