package oauth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"github.com/talaria-go/mcp/auth/oauth"
)

// A command-line tool: the first request that needs it opens the browser, later
// runs of the program use what the file keeps.
func Example() {
	dir, err := os.UserConfigDir()
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "notes", "oauth.json")
	authorized, err := oauth.New("https://notes.example.com/mcp", &oauth.Options{
		Document: &oauth.Document{URL: "https://app.example.com/client.json"},
		Store:    oauth.NewFileStore(path),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// client.Connect(ctx, client.HTTP(url, &client.HTTPOptions{Client: authorized.HTTPClient()}), nil)
	var _ *http.Client = authorized.HTTPClient()
	// Output:
}

// On a machine without a browser the user opens the address elsewhere and pastes
// the one that the browser ends at.
func ExampleManual() {
	_, err := oauth.New("https://notes.example.com/mcp", &oauth.Options{
		Grant: &oauth.AuthorizationCode{Agent: &oauth.Manual{Ask: oauth.AskUser(os.Stdin, os.Stderr)}},
	})
	fmt.Println(err)
	// Output: <nil>
}

// A service acts for itself, and proves who it is with a key.
func ExampleClientCredentials() {
	pem, err := os.ReadFile("service.pem")
	if err != nil {
		return // without a key there is nothing to show
	}
	key, err := oauth.ParseKey(pem)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = oauth.New("https://notes.example.com/mcp", &oauth.Options{
		Grant:   &oauth.ClientCredentials{},
		Clients: []oauth.Registration{{Issuer: "https://auth.example.com", ClientID: "reporting", Key: key}},
	})
	fmt.Println(err)
}

// A workload trades the token of its platform, such as one of Kubernetes, for an
// access token.
func ExampleWorkloadIdentity() {
	_, err := oauth.New("https://notes.example.com/mcp", &oauth.Options{
		Grant: &oauth.WorkloadIdentity{Assertion: func(context.Context, string) (string, error) {
			token, err := os.ReadFile("/var/run/secrets/tokens/notes")
			return string(token), err
		}},
	})
	fmt.Println(err)
	// Output: <nil>
}
