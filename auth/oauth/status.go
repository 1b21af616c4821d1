package oauth

import (
	"context"
	"slices"
	"time"
)

// Status describes a token without giving it away.
type Status struct {
	// Issuer is the authorization server that issued it.
	Issuer string
	// ClientID is the client that it was issued to; it may be empty.
	ClientID string
	// Scopes are those that were granted.
	Scopes []string
	// Expiry is when the access token ends; zero means unknown. It may be past.
	Expiry time.Time
	// Refreshable says that there is a refresh token, so that the end of the
	// access token is not that of the login.
	Refreshable bool
	// DPoP says that the token is bound to a key.
	DPoP bool
}

// Status describes the token that is in use or stored, nil if there is none. It
// asks nothing of any server: whether the token was revoked is unknown.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	rec, err := c.stored(ctx)
	if err != nil || rec == nil {
		return nil, err
	}
	return &Status{
		Issuer: rec.Issuer, ClientID: rec.ClientID, Scopes: slices.Clone(rec.Granted), Expiry: rec.Expiry,
		Refreshable: rec.RefreshToken != "", DPoP: rec.TokenType == tokenTypeDPoP,
	}, nil
}
