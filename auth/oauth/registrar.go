package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/outbound"
)

// registrar finds the client to use with an authorization server, and registers
// one if there is none.
type registrar struct {
	*setup
	storage *storage
}

// clientMetadata is what a client says about itself: in dynamic registration
// (RFC 7591, section 2) and in a Client ID Metadata Document.
type clientMetadata struct {
	ClientID        string          `json:"client_id,omitempty"`
	ClientName      string          `json:"client_name"`
	ClientURI       string          `json:"client_uri,omitempty"`
	RedirectURIs    []string        `json:"redirect_uris,omitempty"`
	GrantTypes      []string        `json:"grant_types"`
	ResponseTypes   []string        `json:"response_types,omitempty"`
	AuthMethod      AuthMethod      `json:"token_endpoint_auth_method"`
	ApplicationType string          `json:"application_type,omitempty"`
	DPoPBound       bool            `json:"dpop_bound_access_tokens,omitempty"`
	JWKS            json.RawMessage `json:"jwks,omitempty"`
}

// registration returns the client to use with an authorization server, in the
// order of the specification: one that was registered beforehand, the metadata
// document, one that is registered dynamically.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration
func (r *registrar) registration(ctx context.Context, server *serverMetadata, meta clientMetadata) (*Registration, error) {
	client, err := r.preregistered(ctx, server.Issuer)
	if client != nil || err != nil {
		return client, err
	}
	if r.opts.Document != nil && server.DocumentsSupported {
		return r.documentClient(server.Issuer), nil
	}
	failed := func(problem string) error {
		return &Error{Step: StepRegistration, URL: server.Issuer, Problem: problem}
	}
	switch {
	case len(r.opts.Clients) > 0:
		return nil, failed(fmt.Sprintf("Options.Clients has none for this authorization server, only %v", r.opts.Clients))
	case r.opts.NoRegistration:
		return nil, failed("the client is not registered, and Options.NoRegistration forbids to do so")
	case server.RegistrationEndpoint == "":
		return nil, failed("the authorization server does not register clients by itself; register one with it and put that into Options.Clients")
	}
	known, err := r.storage.registered(ctx, server.Issuer)
	if err != nil {
		return nil, err
	}
	if known != nil && known.current() && containsAll(known.RedirectURIs, meta.RedirectURIs) {
		return known, nil
	}
	return r.register(ctx, server, meta)
}

// preregistered returns the client of Options.Clients for an issuer, or nil. A
// client without an issuer is bound to the first issuer that is met; the store
// remembers it, so that an MCP server cannot direct the client's secret to
// another one later.
func (r *registrar) preregistered(ctx context.Context, issuer string) (*Registration, error) {
	for _, client := range r.opts.Clients {
		if client.Issuer == issuer {
			return &client, nil
		}
	}
	for _, client := range r.opts.Clients {
		if client.Issuer != "" {
			continue
		}
		key := "issuer " + client.ClientID + " " + r.server.String()
		var bound binding
		found, err := r.storage.read(ctx, key, &bound)
		if err != nil {
			return nil, err
		}
		if found && bound.Issuer != issuer {
			return nil, &Error{Step: StepRegistration, URL: issuer,
				Problem: fmt.Sprintf("the client %q belongs to %s, but the MCP server now names this authorization server; register a client with it", client.ClientID, bound.Issuer)}
		}
		if !found {
			if err := r.storage.write(ctx, key, binding{Issuer: issuer, ClientID: client.ClientID}); err != nil {
				return nil, err
			}
		}
		client.Issuer = issuer
		return &client, nil
	}
	return nil, nil
}

// documentClient returns the client whose identifier is the URL of its metadata
// document.
func (r *registrar) documentClient(issuer string) *Registration {
	client := &Registration{Issuer: issuer, ClientID: r.opts.Document.URL, AuthMethod: AuthNone}
	if r.opts.Document.Key != nil {
		client.AuthMethod, client.Key, client.KeyID = AuthPrivateKeyJWT, r.opts.Document.Key, r.opts.Document.KeyID
	}
	return client
}

// clientOf returns the client that a token was issued to, or nil if it is not
// known any more.
func (r *registrar) clientOf(ctx context.Context, rec *record) (*Registration, error) {
	for _, client := range r.opts.Clients {
		if client.ClientID == rec.ClientID && (client.Issuer == rec.Issuer || client.Issuer == "") {
			return &client, nil // without an issuer: the token says that it was bound to this one
		}
	}
	if r.opts.Document != nil && r.opts.Document.URL == rec.ClientID {
		return r.documentClient(rec.Issuer), nil
	}
	client, err := r.storage.registered(ctx, rec.Issuer)
	if err != nil || client == nil || client.ClientID != rec.ClientID {
		return nil, err
	}
	return client, nil
}

// register registers the client dynamically (RFC 7591).
func (r *registrar) register(ctx context.Context, server *serverMetadata, meta clientMetadata) (*Registration, error) {
	failed := func(e Error) error {
		e.Step, e.URL = StepRegistration, server.RegistrationEndpoint
		return &e
	}
	meta.AuthMethod = registrationMethod(server.TokenAuthMethods)
	body, err := json.Marshal(meta)
	if err != nil {
		return nil, failed(Error{Err: err})
	}
	answer, err := r.outbound.Post(ctx, server.RegistrationEndpoint, "application/json", nil, body)
	if err != nil {
		return nil, failed(Error{Err: err})
	}
	if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
		return nil, failed(refusal(answer))
	}
	var given struct {
		ClientID      *string         `json:"client_id"`
		ClientSecret  string          `json:"client_secret"`
		SecretExpires json.RawMessage `json:"client_secret_expires_at"`
		AuthMethod    AuthMethod      `json:"token_endpoint_auth_method"`
	}
	problem, expires := "", time.Time{}
	if err := jsonx.Unmarshal(answer.Body, &given); err != nil {
		problem = "the answer is " + misfit(answer.Body, err)
	} else if given.ClientID == nil {
		problem = "the answer has no client_id"
	} else if *given.ClientID == "" {
		problem = `the answer has the client_id ""`
	} else if expires, err = unixTime(given.SecretExpires); err != nil {
		problem = "the answer has the client_secret_expires_at " + err.Error()
	}
	if problem != "" {
		return nil, failed(Error{Status: answer.Status, Problem: problem})
	}
	client := &Registration{
		Issuer: server.Issuer, ClientID: *given.ClientID, ClientSecret: given.ClientSecret,
		AuthMethod: given.AuthMethod, RedirectURIs: meta.RedirectURIs,
	}
	if client.AuthMethod == "" {
		client.AuthMethod = meta.AuthMethod
	}
	if given.ClientSecret != "" {
		client.SecretExpires = expires
	}
	if err := client.check(); err != nil {
		return nil, failed(Error{Err: err})
	}
	return client, r.storage.write(ctx, r.storage.clientKey(server.Issuer), client)
}

// codeMetadata returns the metadata of a client that uses the authorization
// code.
func (r *registrar) codeMetadata(redirectURIs ...string) clientMetadata {
	return clientMetadata{
		ClientName: r.opts.ClientName, ClientURI: r.opts.ClientURI,
		RedirectURIs: redirectURIs, ApplicationType: applicationType(redirectURIs),
		GrantTypes: []string{grantCode, grantRefresh}, ResponseTypes: []string{"code"},
		AuthMethod: AuthNone,
	}
}

// containsAll reports whether all has each of some.
func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(each string) bool { return !slices.Contains(all, each) })
}

// current reports whether the secret is valid for another minute at least.
func (r *Registration) current() bool {
	return r.SecretExpires.IsZero() || time.Until(r.SecretExpires) > time.Minute
}

// refusal returns the error for a server that does not register the client.
func refusal(answer *outbound.Response) Error {
	code, description := readError(answer)
	e := Error{Code: code, Status: answer.Status,
		Problem: "the authorization server refuses to register the client; register one with it and put that into Options.Clients"}
	if e.passing() {
		e.Problem = "the authorization server cannot register the client now; try again later"
	}
	if description != "" {
		e.Problem = "the server says " + printable(description) + "; " + e.Problem
	}
	return e
}

// registrationMethod returns how a client that registers should authenticate:
// not at all if that is supported, since a program installed with users cannot
// keep a secret.
func registrationMethod(supported []string) AuthMethod {
	for _, method := range []AuthMethod{AuthNone, AuthSecretBasic, AuthSecretPost} {
		if slices.Contains(supported, string(method)) {
			return method
		}
	}
	return AuthNone
}

// applicationType returns "web" for redirects to a remote host and "native"
// otherwise.
func applicationType(redirectURIs []string) string {
	for _, uri := range redirectURIs {
		if u, err := url.Parse(uri); err == nil && u.Scheme == "https" && !facts.Loopback(u.Hostname()) {
			return "web"
		}
	}
	return "native"
}
