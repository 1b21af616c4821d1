package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// Provider is an identity provider, or another service, at which this server is a
// client. It is copied by what takes it.
type Provider struct {
	// Issuer is that of OpenID Connect, as its metadata spells it. The rest is
	// discovered, at first use.
	Issuer string
	// AuthURL and TokenURL are the endpoints without an Issuer; RevokeURL may be "".
	AuthURL, TokenURL, RevokeURL string
	// ClientID and ClientSecret are what the provider gave this server.
	ClientID, ClientSecret string
	// Scopes are asked of the provider; nil means openid, profile and email with an
	// Issuer, and none without. offline_access is asked for only if it is named.
	Scopes []string
	// Params are added to the authorization URL of the provider.
	Params url.Values
	// Subject is the claim that names users; "" means sub. Claims that can change
	// hands, such as email, are refused.
	Subject string
	// User returns Subject and Claims of the user whose token c sends, for a provider
	// without ID tokens. Subject must not be a number that went through float64. An
	// auth.Invalid error means that the token has ended, which ends the logins of its
	// user; any other means that the provider does not answer.
	User func(ctx context.Context, c *http.Client) (*auth.Identity, error)
}

// changing are claims that name another person some day.
var changing = []string{"email", "upn", "preferred_username", "unique_name", "nickname", "name", "phone_number", "login"}

// Entra returns the provider Microsoft Entra ID for one tenant, by its id. Users
// are named by oid.
func Entra(tenant, clientID, secret string) *Provider {
	return &Provider{
		Issuer: "https://login.microsoftonline.com/" + tenant + "/v2.0", ClientID: clientID, ClientSecret: secret,
		Scopes: []string{"openid", "profile", "email", "offline_access"}, Subject: "oid",
	}
}

// Google returns the provider Google, which gives refresh tokens only for
// access_type=offline and prompt=consent. Every account of Google may log in unless
// Options.Permit decides, for example by the claim hd.
func Google(clientID, secret string) *Provider {
	return &Provider{
		Issuer: "https://accounts.google.com", ClientID: clientID, ClientSecret: secret,
		Params: url.Values{"access_type": {"offline"}, "prompt": {"consent"}},
	}
}

// GitHub returns the provider GitHub, for an OAuth App or a GitHub App. Users are
// named by their id. Every account of GitHub may log in unless Options.Permit decides.
func GitHub(clientID, secret string) *Provider {
	return &Provider{
		AuthURL: "https://github.com/login/oauth/authorize", TokenURL: "https://github.com/login/oauth/access_token",
		ClientID: clientID, ClientSecret: secret, Scopes: []string{"read:user"}, User: gitHubUser,
	}
}

// maxUser limits what a provider says of a user, in bytes.
const maxUser = 1 << 20

// gitHubUser is GitHub's Provider.User.
func gitHubUser(ctx context.Context, c *http.Client) (*auth.Identity, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.github.com/user", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxUser))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusUnauthorized: // 403 may be a rate limit
		return nil, auth.Invalid("GitHub refused the token: status %d", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("api.github.com: status %s", res.Status)
	}
	var user struct {
		ID    json.Number `json:"id"` // a number beyond 2^53 must not change
		Login string      `json:"login"`
		Name  string      `json:"name"`
		Email string      `json:"email"`
	}
	if err := jsonx.Unmarshal(text, &user); err != nil {
		return nil, fmt.Errorf("api.github.com: %w", err)
	}
	if user.ID == "" {
		return nil, errors.New("api.github.com: the user has no id")
	}
	claims := map[string]any{"sub": user.ID.String(), "preferred_username": user.Login}
	for name, value := range map[string]string{"name": user.Name, "email": user.Email} {
		if value != "" {
			claims[name] = value
		}
	}
	return &auth.Identity{Subject: user.ID.String(), Claims: claims}, nil
}

// faults returns what is wrong with a provider, which a login needs to know users
// from.
func (p *Provider) faults(login bool) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("Provider: "+format, args...)) }
	safe := func(name, address string) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !facts.Loopback(u.Hostname())) {
			fault("%s %q is neither https nor on this machine", name, address)
		}
	}
	switch {
	case p.Issuer != "" && (p.AuthURL != "" || p.TokenURL != ""):
		fault("set Issuer, or AuthURL and TokenURL, but not both")
	case p.Issuer != "":
		safe("Issuer", p.Issuer)
		if login && p.Scopes != nil && !slices.Contains(p.Scopes, "openid") && p.User == nil {
			fault("Scopes lack openid: without it the provider does not name the user")
		}
		for _, tenant := range []string{"/", "//", "/common/", "/organizations/", "/consumers/"} {
			if strings.HasPrefix(p.Issuer, "https://login.microsoftonline.com"+tenant+"v2.0") {
				fault("Issuer %q has no single tenant: name the tenant by its id", p.Issuer)
			}
		}
	case p.AuthURL == "" || p.TokenURL == "":
		fault("Issuer is missing, or AuthURL and TokenURL")
	default:
		safe("AuthURL", p.AuthURL)
		safe("TokenURL", p.TokenURL)
		if login && p.User == nil {
			fault("User is missing: without an Issuer nothing else names the user")
		}
	}
	if p.RevokeURL != "" {
		safe("RevokeURL", p.RevokeURL)
	}
	if p.ClientID == "" {
		fault("ClientID is missing")
	}
	if slices.Contains(changing, p.Subject) {
		fault("Subject %q can change hands: use sub, or oid at Entra", p.Subject)
	}
	return faults
}
