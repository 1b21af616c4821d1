package authtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// client is a program that wants tokens (RFC 7591, section 2).
type client struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"client_name,omitempty"`
	URI          string   `json:"client_uri,omitempty"`
	RedirectURIs []string `json:"redirect_uris"`
	GrantTypes   []string `json:"grant_types,omitempty"`
	AuthMethod   string   `json:"token_endpoint_auth_method,omitempty"`
	Type         string   `json:"application_type,omitempty"`
}

// maxDocument limits what describes a client, in bytes.
const maxDocument = 64 << 10

// publicClient reaches only public addresses: a request for a document must not
// make this server probe a private network.
func publicClient() *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: ssrf.New().Safe}
	return &http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// check checks where the client wants its users sent back to: to this machine,
// to a private scheme of its own, or over https.
func (c *client) check() error {
	if len(c.RedirectURIs) == 0 || len(c.RedirectURIs) > 20 {
		return errors.New("redirect_uris must have 1 to 20 URIs")
	}
	for _, text := range c.RedirectURIs {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Fragment != "" || u.User != nil:
			return fmt.Errorf("%q is no URI without fragment", text)
		case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && loopback(u.Hostname()), strings.Contains(u.Scheme, "."):
		default:
			return fmt.Errorf("%q must be https, or http on a loopback address", text)
		}
	}
	return nil
}

// allows reports whether uri is one that the client has named. The port of a
// loopback address may be any (RFC 8252, section 7.3).
func (c *client) allows(uri string) bool {
	return slices.Contains(c.RedirectURIs, uri) ||
		slices.ContainsFunc(c.RedirectURIs, func(known string) bool { return anyPort(known) != "" && anyPort(known) == anyPort(uri) })
}

// anyPort returns uri without port, "" if it is not one of a loopback address.
func anyPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || u.User != nil || !loopback(u.Hostname()) {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}

// fetchClient fetches a Client ID Metadata Document from the URL that is the
// client's id, and checks that it is this client's. web bounds time, addresses
// and redirections, maxDocument what is read.
func fetchClient(ctx context.Context, web *http.Client, id string) (client, error) {
	var c client
	u, err := url.Parse(id)
	if err != nil || u.Path == "" || u.Path == "/" || u.Fragment != "" || u.User != nil {
		return c, errors.New("the client_id is no URL of a metadata document")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return c, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := web.Do(req)
	if err != nil {
		return c, fmt.Errorf("the client's metadata cannot be had: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("the client's metadata cannot be had: status %s", res.Status)
	}
	if err := decode(res.Body, &c); err != nil {
		return c, fmt.Errorf("the client's metadata is no JSON object: %w", err)
	}
	if c.ID != id {
		return c, errors.New("the client_id in the client's metadata differs")
	}
	return c, c.check()
}

// decode reads a JSON document of at most maxDocument bytes.
func decode(r io.Reader, v any) error {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return err
	}
	return jsonx.Unmarshal(text, v)
}
