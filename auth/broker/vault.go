package broker

import (
	"context"
	"errors"

	"golang.org/x/oauth2"
)

// vault keeps tokens, sealed, in the store: an entry of each principal and
// service. The service "" stands for the login.
type vault struct{ b *Broker }

// errRefused means that the provider refused the tokens; an error that wraps
// errBusy, that it or the store did not answer; errNone, that there are none.
var (
	errRefused = errors.New("the provider refused the tokens")
	errNone    = errors.New("there are no tokens")
)

// save keeps tokens in place of those that are there.
func (v *vault) save(ctx context.Context, principal, service string, t *oauth2.Token) error {
	return errBusy
}

// fresh returns tokens that are valid for a while, refreshed under the lease if
// need be, or with force in any case.
func (v *vault) fresh(ctx context.Context, u *upstream, principal, service string, force bool) (*oauth2.Token, error) {
	return nil, errNone
}
