package authtest

import (
	"crypto"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// proofAge is how old a proof may be, or how far ahead.
const proofAge = time.Minute

// proven returns the thumbprint of the key that a token request has proven to
// have (RFC 9449, section 5); "" if it does not try. endpoint is the URL that the
// proof must name, and firstUse reports whether the id of a proof is a new one.
func proven(r *http.Request, endpoint string, firstUse func(id string) bool) (thumbprint string, err error) {
	values := r.Header.Values("DPoP")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", errors.New("there is more than one proof")
	}
	signed, err := jose.ParseSignedCompact(values[0], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", errors.New("the proof is malformed, or not signed with ES256")
	}
	header := signed.Signatures[0].Protected
	key := header.JSONWebKey
	if header.ExtraHeaders[jose.HeaderType] != "dpop+jwt" || key == nil || !key.IsPublic() || !key.Valid() {
		return "", errors.New("the proof has no typ dpop+jwt, or no public key")
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return "", errors.New("the signature of the proof is wrong")
	}
	var claims struct {
		ID     string  `json:"jti"`
		Method string  `json:"htm"`
		URL    string  `json:"htu"`
		Issued float64 `json:"iat"`
	}
	if err := jsonx.Unmarshal(payload, &claims); err != nil {
		return "", errors.New("the claims of the proof are malformed")
	}
	age := float64(time.Now().Unix()) - claims.Issued
	if claims.ID == "" || claims.Method != r.Method || claims.URL != endpoint || math.Abs(age) > proofAge.Seconds() {
		return "", errors.New("the proof is not of this request")
	}
	if !firstUse(claims.ID) {
		return "", errors.New("the proof was used before")
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", errors.New("the key of the proof is not one that this server knows")
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}
