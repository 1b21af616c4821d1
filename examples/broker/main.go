// Broker keeps notes of users who log in at an OpenID provider, at
// http://127.0.0.1:8080/mcp: CLIENT_SECRET=… broker https://idp.example.com CLIENT_ID
package main

import (
	"cmp"
	"errors"
	"log"
	"net/http"
	"os"
	"sync"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/broker"
)

// Note is a line of text.
type Note struct {
	Text string `json:"text" validate:"required"`
}

// notes has those of each user.
type notes struct {
	mu sync.Mutex
	of map[string][]string
}

func (n *notes) add(f *mcp.Frame, in Note) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[f.Principal()] = append(n.of[f.Principal()], in.Text)
	return "noted", nil
}

func (n *notes) list(f *mcp.Frame, _ struct{}) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.of[f.Principal()]...), nil
}

// newHandler serves notes at self/mcp. Clients log in at self, and users at the provider.
// The keys are those of mcp.Options.StateKeys.
func newHandler(self string, idp *broker.Provider, keys ...[]byte) (http.Handler, error) {
	door, err := broker.New(self, idp, &broker.Options{
		Name: "Notes", Resources: []string{self + "/mcp"}, Keys: keys,
		Scopes: []broker.Scope{{Name: "notes:read", Allows: "read your notes"}, {Name: "notes:write", Allows: "add notes"}},
	})
	if err != nil {
		return nil, err
	}
	resource, authErr := auth.New(self+"/mcp", door.Verifier(self+"/mcp"), &auth.Options{Scopes: []string{"notes:read"}})
	n := &notes{of: map[string][]string{}}
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, &mcp.Options{StateKeys: keys})
	addErr := s.Add(
		mcp.Tool("list_notes", n.list, mcp.Doc("Lists the notes of the user")),
		mcp.Tool("add_note", n.add, mcp.Doc("Adds a note"), mcp.Scopes("notes:write")),
	)
	if err := errors.Join(authErr, addErr); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", resource.Bearer(s.Handler()))
	return door.Middleware(resource.Metadata(mux)), nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: CLIENT_SECRET=… broker ISSUER CLIENT_ID")
	}
	idp := &broker.Provider{Issuer: os.Args[1], ClientID: os.Args[2], ClientSecret: os.Getenv("CLIENT_SECRET")}
	address := cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8080")
	handler, err := newHandler("http://"+address, idp)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(address, handler))
}
