package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// probeTime is how long a server has for each answer to Probe.
const probeTime = 15 * time.Second

// Probe reports whether a server has logins: it refuses a request without a
// token, or has the metadata of a protected resource (RFC 9728).
func Probe(ctx context.Context, address string) (bool, error) {
	client := &http.Client{Timeout: probeTime, CheckRedirect: stay}
	status := 0
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		resp, err := probe(ctx, client, method, address)
		if err != nil {
			return false, err
		}
		resp.Body.Close() // a stream would not end by itself
		status = resp.StatusCode
		switch {
		case status == http.StatusUnauthorized:
			return true, nil
		case status >= 300 && status < 400:
			return false, fmt.Errorf("it redirects to %q: log in there, if you trust it", resp.Header.Get("Location"))
		case status >= 500:
			return false, fmt.Errorf("the server answers with HTTP status %s", resp.Status)
		case status != http.StatusNotFound && status != http.StatusMethodNotAllowed:
			return hasMetadata(ctx, client, address)
		}
	}
	known, err := hasMetadata(ctx, client, address)
	if err == nil && !known && status == http.StatusNotFound {
		err = errors.New("there is nothing at this path (HTTP status 404)")
	}
	return known, err
}

// stay follows no redirect.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func probe(ctx context.Context, client *http.Client, method, address string) (*http.Response, error) {
	body := io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the address is said elsewhere
	}
	return resp, err
}

// hasMetadata looks into the well-known places: for the metadata of the resource,
// that of the path first, and, as 2025-03-26 has it, for that of an authorization
// server at the origin.
func hasMetadata(ctx context.Context, client *http.Client, address string) (bool, error) {
	u, err := url.Parse(address)
	if err != nil {
		return false, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	for _, path := range []string{wellKnown + strings.TrimSuffix(u.Path, "/"), wellKnown,
		"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
		resp, err := probe(ctx, client, http.MethodGet, at.String())
		if err != nil {
			return false, err
		}
		var metadata struct {
			Servers []string `json:"authorization_servers"`
			Token   string   `json:"token_endpoint"`
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		if err == nil {
			err = jsonx.Unmarshal(text, &metadata)
		}
		if resp.StatusCode == http.StatusOK && err == nil && (len(metadata.Servers) > 0 || metadata.Token != "") {
			return true, nil
		}
	}
	return false, nil
}
