package oauth

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"time"
)

// record is a token with what belongs to it, as the store keeps it.
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

// usable says whether the access token is worth sending.
func (r *record) usable() bool {
	return r != nil && r.AccessToken != "" && (r.Expiry.IsZero() || time.Now().Before(r.Expiry))
}

// sent says whether requests carry the access token. They do even if it has
// expired: to a server that also serves strangers, who sends none is one.
func (r *record) sent() bool { return r != nil && r.AccessToken != "" }

func (r *record) binding() binding {
	return binding{Issuer: r.Issuer, Resource: r.Resource, ClientID: r.ClientID, Grant: r.Grant}
}

func (r *record) issuer() string {
	if r == nil {
		return ""
	}
	return r.Issuer
}

// restore makes a record whole that comes from the store.
func (r *record) restore() error {
	if len(r.Key) == 0 {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(r.Key)
	private, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return &Error{Step: StepStore, Err: errors.New("the stored DPoP key is none; log out and in again")}
	}
	r.key, err = newDPoPKey(private)
	return err
}

// ended is a token whose grant has ended. It stays, for its scopes to be asked
// for again, and for the MCP server to say so.
func (r *record) ended() *record {
	rest := *r
	rest.RefreshToken, rest.Expiry = "", time.Now().Add(-time.Second)
	return &rest
}

// early is an expiry a little before the real one, so that a token does not
// expire on its way.
func early(expiry time.Time) time.Time {
	if expiry.IsZero() {
		return expiry
	}
	return expiry.Add(-min(10*time.Second, time.Until(expiry)/10))
}
