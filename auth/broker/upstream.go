package broker

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
)

// upstream is a Provider in use. It is safe for concurrent use.
type upstream struct {
	p    Provider
	base http.RoundTripper
}

// errBusy, or an error that wraps it, means that a provider did not answer: the
// same may succeed later. Any other error of upstream is final.
var errBusy = errors.New("the provider does not answer")

func newUpstream(p *Provider, base http.RoundTripper) *upstream { return &upstream{p: *p, base: base} }

// name returns what people know the provider by: the host of its address.
func (u *upstream) name() string { return "" }

// origin returns the issuer of the identities of this provider: Issuer, or the
// origin of AuthURL.
func (u *upstream) origin() string { return "" }

// exchange redeems a code. refresh gets newer tokens, keeping the refresh token if
// the provider gives no other. revoke ends the tokens at the provider, and reports
// whether it could.
func (u *upstream) exchange(ctx context.Context, code, verifier, redirect string) (*oauth2.Token, error) {
	return nil, errBusy
}

func (u *upstream) refresh(ctx context.Context, t *oauth2.Token) (*oauth2.Token, error) {
	return nil, errBusy
}

func (u *upstream) revoke(ctx context.Context, t *oauth2.Token) (bool, error) { return false, nil }

// identify returns whose a token is: by its ID token, whose nonce must be nonce
// unless that is "", or by Provider.User. Issuer is that of origin. nil without an
// error means that the provider cannot tell.
func (u *upstream) identify(ctx context.Context, t *oauth2.Token, nonce string) (*auth.Identity, error) {
	return nil, errBusy
}
