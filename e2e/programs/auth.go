package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/talaria-go/mcp/auth/oauth"
)

// documentURL is what the suite takes for the metadata document of the client.
// It need not exist.
const documentURL = "https://conformance-test.local/client-metadata.json"

// authorize is a user with a browser.
func authorize(ctx context.Context, p play) error {
	return authorizeWith(ctx, p, oauth.Options{
		Document: &oauth.Document{URL: documentURL},
	})
}

// authorizeRegistered is one whose client is registered already.
func authorizeRegistered(ctx context.Context, p play) error {
	return authorizeWith(ctx, p, oauth.Options{
		Clients: []oauth.Registration{{ClientID: p.context.ClientID, ClientSecret: p.context.ClientSecret}},
	})
}

// authorizeBound binds tokens by DPoP.
func authorizeBound(ctx context.Context, p play) error {
	return authorizeWith(ctx, p, oauth.Options{DPoP: oauth.DPoPRequired})
}

// authorizeMachine acts for itself, with a secret or a key.
func authorizeMachine(ctx context.Context, p play) error {
	client := oauth.Registration{ClientID: p.context.ClientID, ClientSecret: p.context.ClientSecret}
	if p.context.PrivateKey != "" {
		key, err := oauth.ParseKey([]byte(p.context.PrivateKey))
		if err != nil {
			return err
		}
		client.Key = key
	}
	return authorizeWith(ctx, p, oauth.Options{
		Grant:   &oauth.ClientCredentials{},
		Clients: []oauth.Registration{client},
	})
}

// authorizeEmployee has logged in at the identity provider of a company.
func authorizeEmployee(ctx context.Context, p play) error {
	return authorizeWith(ctx, p, oauth.Options{
		Grant: &oauth.EnterpriseManaged{
			Provider:      p.context.IDPIssuer,
			TokenEndpoint: p.context.IDPEndpoint,
			Client:        oauth.Registration{ClientID: p.context.IDPClientID},
			Assertion:     func(context.Context) (string, error) { return p.context.IDPToken, nil },
		},
		Clients: []oauth.Registration{{ClientID: p.context.ClientID, ClientSecret: p.context.ClientSecret}},
	})
}

// authorizeWorkload has a JWT from its platform.
func authorizeWorkload(ctx context.Context, p play) error {
	return authorizeWith(ctx, p, oauth.Options{
		Grant: &oauth.WorkloadIdentity{
			Assertion: func(context.Context, string) (string, error) { return p.context.WorkloadJWT, nil },
		},
		Clients: []oauth.Registration{{ClientID: p.context.ClientID}},
	})
}

// authorizeWith lists the tools of the server and calls one.
func authorizeWith(ctx context.Context, p play, options oauth.Options) error {
	if options.Grant == nil {
		options.Grant = &oauth.AuthorizationCode{Agent: &oauth.Loopback{Browse: browse}}
	}
	authorized, err := oauth.New(p.url, &options)
	if err != nil {
		return err
	}
	defer authorized.HTTPClient().CloseIdleConnections()
	return useTools(ctx, p, authorized.HTTPClient())
}

// browse is a user who consents at once: the authorization servers of the suite
// redirect without asking.
func browse(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the browser ended at a page with HTTP status %d", resp.StatusCode)
	}
	return nil
}
