package issuing

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

// Limits of proofs.
const (
	proofAge     = time.Minute // how old one may be, or how far ahead
	maxProofs    = 1_000       // kept of each of 256 partitions
	proofsOfUser = 256         // kept of each user
)

// proof returns the thumbprint of the key that a proof for an endpoint has proven,
// and the id of the proof; both are "" if there is none.
func proof(r *http.Request, endpoint string) (thumbprint, id string, err error) {
	values := r.Header.Values("DPoP")
	if len(values) == 0 {
		return "", "", nil
	}
	if len(values) > 1 {
		return "", "", errors.New("there is more than one proof")
	}
	signed, err := jose.ParseSignedCompact(values[0], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", "", errors.New("the proof is malformed, or not signed with ES256")
	}
	header := signed.Signatures[0].Protected
	key := header.JSONWebKey
	if header.ExtraHeaders[jose.HeaderType] != "dpop+jwt" || key == nil || !key.IsPublic() || !key.Valid() {
		return "", "", errors.New("the proof has no typ dpop+jwt, or no public key")
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return "", "", errors.New("the signature of the proof is wrong")
	}
	var claims struct {
		ID     string  `json:"jti"`
		Method string  `json:"htm"`
		URL    string  `json:"htu"`
		Issued float64 `json:"iat"`
	}
	if err := jsonx.Unmarshal(payload, &claims); err != nil {
		return "", "", errors.New("the claims of the proof are malformed")
	}
	age := float64(time.Now().Unix()) - claims.Issued
	if claims.ID == "" || claims.Method != r.Method || claims.URL != endpoint || math.Abs(age) > proofAge.Seconds() {
		return "", "", errors.New("the proof is not of this request")
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", "", errors.New("the key of the proof is not one that this server knows")
	}
	return base64.RawURLEncoding.EncodeToString(sum), claims.ID, nil
}
