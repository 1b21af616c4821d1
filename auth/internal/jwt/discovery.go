package jwt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Metadata is the part of an issuer's metadata (RFC 8414, OpenID Connect
// Discovery) that is needed here.
type Metadata struct {
	Issuer    string `json:"issuer"`
	Keys      string `json:"jwks_uri"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Revoke    string `json:"revocation_endpoint"`
	// SendsIssuer says that every authorization response has iss (RFC 9207).
	SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// Discover fetches the metadata of an issuer from the first place that has it
// and names the same issuer.
func Discover(ctx context.Context, client *http.Client, issuer string) (*Metadata, error) {
	var faults []error
	for _, where := range metadataURLs(issuer) {
		text, err := Get(ctx, client, where)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		var m Metadata
		if err := jsonx.Unmarshal(text, &m); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", where, err))
			continue
		}
		if m.Issuer != issuer {
			// RFC 8414, section 3.3: it is not to be used.
			faults = append(faults, fmt.Errorf("%s: the issuer there is %q, not %q", where, m.Issuer, issuer))
			continue
		}
		return &m, nil
	}
	return nil, fmt.Errorf("no metadata: %w", errors.Join(faults...))
}

// metadataURLs returns where the metadata may be, in the order that
// basic/authorization of 2025-11-25 and 2026-07-28 gives.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	if path == "" {
		return []string{origin + oauth, origin + openid}
	}
	return []string{origin + oauth + path, origin + openid + path, origin + path + openid}
}

// maxDocument limits the size of fetched documents, in bytes.
const maxDocument = 1 << 20

// Get fetches a JSON document.
func Get(ctx context.Context, client *http.Client, where string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	return Fetch(client, req)
}

// Fetch sends a request and returns the body of an answer with status 200. Any
// other status, and a body beyond maxDocument, is an error.
func Fetch(client *http.Client, req *http.Request) ([]byte, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", req.URL, res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL, err)
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%s: more than %d bytes", req.URL, maxDocument)
	}
	return text, nil
}
