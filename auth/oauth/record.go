package oauth

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"time"
)

// record is a token with everything that belongs to it, in the form in which
// the store keeps it. It does not change once others can see it; a new state of
// the token is a new record.
//
// States: usable, with an access token that has not expired; refreshable, with
// a refresh token; ended, with neither, which is kept for its scopes. A nil
// *record means that there is no token.
type record struct {
	Issuer       string    `json:"issuer"`
	Resource     string    `json:"resource"`
	ClientID     string    `json:"client_id,omitempty"`
	Grant        string    `json:"grant"`
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"` // Bearer or DPoP
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	Requested    scopes    `json:"requested,omitempty"`
	Granted      scopes    `json:"granted,omitempty"`
	Key          []byte    `json:"dpop_key,omitempty"` // PKCS #8

	key     *dpopKey // of Key
	granted bool     // by a grant, in this program; not loaded, not refreshed
}

// usable reports whether the access token is worth sending.
func (r *record) usable() bool {
	return r != nil && r.AccessToken != "" && (r.Expiry.IsZero() || time.Now().Before(r.Expiry))
}

// sent reports whether requests carry the access token. They do even after its
// expiry: a server that also serves clients without a token would otherwise
// treat the request as anonymous.
func (r *record) sent() bool { return r != nil && r.AccessToken != "" }

// binding returns what identifies the token in the store.
func (r *record) binding() binding {
	return binding{Issuer: r.Issuer, Resource: r.Resource, ClientID: r.ClientID, Grant: r.Grant}
}

// issuer returns the issuer of the token, "" for nil.
func (r *record) issuer() string {
	if r == nil {
		return ""
	}
	return r.Issuer
}

// restore completes a record that was read from the store.
func (r *record) restore() error {
	if len(r.Key) == 0 {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(r.Key)
	private, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return &Error{Step: StepStore, Err: errors.New("the stored DPoP key is invalid; log out and in again")}
	}
	r.key, err = newDPoPKey(private)
	return err
}

// ended returns the record of a token whose grant has ended. It is kept so that
// its scopes can be asked for again, and so that the MCP server can report that
// the token is invalid.
func (r *record) ended() *record {
	rest := *r
	rest.RefreshToken, rest.Expiry = "", time.Now().Add(-time.Second)
	return &rest
}

// early returns an expiry a little before the real one, so that a token does
// not expire on its way.
func early(expiry time.Time) time.Time {
	if expiry.IsZero() {
		return expiry
	}
	return expiry.Add(-min(10*time.Second, time.Until(expiry)/10))
}
