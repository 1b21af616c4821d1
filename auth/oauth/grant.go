package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/internal/clients/attend"
)

// Grant is a way to get tokens: AuthorizationCode, ClientCredentials,
// EnterpriseManaged or WorkloadIdentity. The interface is sealed, because a
// grant has to observe more than its methods can say.
type Grant interface {
	// check returns what is wrong with the fields, or nil.
	check() error
	// extension returns the extension of the specification that the grant belongs
	// to, "" for none.
	extension() string
	// kind returns the name of the grant in keys of the store. It must never
	// change.
	kind() string
	// interactive reports whether the user takes part.
	interactive() bool
	// trusts returns the URLs that the user of this package has named, which
	// may have private addresses.
	trusts() []*url.URL
	// obtain gets a token. It is called by one flow at a time.
	obtain(ctx context.Context, r *grantRequest) (*tokenAnswer, error)
}

// grantRequest is one request for a token, from the choice of scopes to the
// record.
type grantRequest struct {
	client    *Client
	authority *authority
	scopes    scopes
	key       *dpopKey      // to bind the token to; nil if it is not bound
	used      *Registration // the client, once it is known

	asked func(error) // called with the outcome; nil if the user is not asked
	shown bool        // the user was asked
}

// attend notifies those that wait for the request that the user is about to be
// asked, once. On an occasion on which the user has refused, it returns the
// error of that.
func (r *grantRequest) attend(ctx context.Context) (err error) {
	if r.asked != nil {
		return nil
	}
	if r.asked, err = attend.Ask(ctx); errors.Is(err, attend.ErrNever) {
		return &Error{Step: StepAuthorization, URL: r.client.server.String(), Err: fmt.Errorf("%w: %w", ErrLoginRequired, err)}
	}
	return err
}

// ask sends a grant to the token endpoint, for the resource of the MCP server
// (RFC 8707).
func (r *grantRequest) ask(ctx context.Context, client *Registration, form url.Values) (*tokenAnswer, error) {
	r.used = client
	form.Set("resource", r.authority.resource)
	return r.client.endpoints.requestToken(ctx, StepToken, r.authority.server, client, r.key, form)
}

// scoped adds the scope parameter to form, unless there are no scopes to ask
// for.
func (r *grantRequest) scoped(form url.Values) url.Values {
	if len(r.scopes) > 0 {
		form.Set("scope", r.scopes.String())
	}
	return form
}

// authorizeURL returns the URL that the user is taken to.
func (r *grantRequest) authorizeURL(client *Registration, redirectURI, state, verifier string) string {
	config := oauth2.Config{
		ClientID: client.ClientID, RedirectURL: redirectURI, Scopes: r.scopes,
		Endpoint: oauth2.Endpoint{AuthURL: r.authority.server.AuthorizationEndpoint},
	}
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", r.authority.resource)}
	if slices.Contains(r.scopes, offlineAccess) {
		// OpenID Connect Core, section 11: without consent there is no such access.
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	if r.key != nil {
		params = append(params, oauth2.SetAuthURLParam("dpop_jkt", r.key.thumbprint)) // binds the code too (RFC 9449, section 10)
	}
	return config.AuthCodeURL(state, params...)
}

// machineClient returns the client for a grant without a user: one of
// Options.Clients, or the metadata document. Such clients are not registered
// dynamically.
func (r *grantRequest) machineClient(ctx context.Context, grant string) (*Registration, error) {
	c, server := r.client, r.authority.server
	if !server.supportsGrant(grant) {
		return nil, &Error{Step: StepToken, URL: server.Issuer,
			Problem: fmt.Sprintf("the authorization server does not support the grant type %s, only %q", grant, server.GrantTypes)}
	}
	client, err := c.registrar.preregistered(ctx, server.Issuer)
	if client != nil || err != nil {
		return client, err
	}
	if c.opts.Document != nil && server.DocumentsSupported {
		return c.registrar.documentClient(server.Issuer), nil
	}
	return nil, &Error{Step: StepRegistration, URL: server.Issuer,
		Problem: "Options.Clients has no client for this authorization server"}
}

// sendable reports whether a token can be sent in a header, as one word.
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' })
}

// record checks the response of the token endpoint and returns what is kept of
// it. A token of another type than was asked for is an error: a bearer token
// where it should be bound to a key would silently lose that protection.
func (r *grantRequest) record(token *tokenAnswer) (*record, error) {
	failed := func(problem string) error {
		return &Error{Step: StepToken, URL: r.authority.server.TokenEndpoint, Problem: problem}
	}
	rec := &record{
		Issuer: r.authority.server.Issuer, Resource: r.authority.resource, ClientID: r.used.ClientID, Grant: r.client.opts.Grant.kind(),
		AccessToken: token.AccessToken, RefreshToken: token.RefreshToken, Expiry: early(token.expiry),
		Requested: r.scopes, Granted: r.scopes, key: r.key,
	}
	switch {
	case token.TokenType == "":
		return nil, failed("the answer has no token_type, or an empty one; it should be Bearer or DPoP")
	case strings.EqualFold(token.TokenType, tokenTypeBearer) && r.key == nil:
		rec.TokenType = tokenTypeBearer
	case strings.EqualFold(token.TokenType, tokenTypeDPoP) && r.key != nil:
		rec.TokenType = tokenTypeDPoP
	case r.key != nil:
		return nil, failed("the token was to be bound by DPoP, but its token_type is " + printable(token.TokenType))
	default:
		return nil, failed("the token_type is " + printable(token.TokenType) + ", not Bearer")
	}
	if !sendable(token.AccessToken) {
		return nil, failed("the access token has characters that no header may have")
	}
	if given, ok := token.Scope.(string); ok && given != "" {
		granted, err := parseScopes(given)
		if err != nil {
			return nil, failed(err.Error())
		}
		rec.Granted = granted
	}
	if r.key != nil {
		var err error
		if rec.Key, err = r.key.marshal(); err != nil {
			return nil, failed("the DPoP key cannot be kept")
		}
	}
	return rec, nil
}
