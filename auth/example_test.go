package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
)

// A server behind chi that lets users of auth.example.com in.
func Example() {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("add_note", func(f *mcp.Frame, in struct {
		Text string `json:"text" validate:"required,max=2000"`
	}) (string, error) {
		return "kept for " + f.Identity().Subject, nil
	}, mcp.Scopes("notes:write")))

	notes, err := auth.New("https://notes.example.com/mcp", auth.NewJWT("https://auth.example.com", nil), &auth.Options{Scopes: []string{"notes:read"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := chi.NewRouter()
	r.Use(notes.Metadata)
	r.With(notes.Bearer).Mount("/mcp", s.Handler())

	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mcp", nil))
	fmt.Println(w.Code)
	fmt.Println(w.Header().Get("WWW-Authenticate"))
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", nil))
	fmt.Println(w.Body)
	// Output:
	// 401
	// Bearer scope="notes:read", resource_metadata="https://notes.example.com/.well-known/oauth-protected-resource/mcp"
	// {"resource":"https://notes.example.com/mcp","authorization_servers":["https://auth.example.com"],"scopes_supported":["notes:read"],"bearer_methods_supported":["header"]}
}

// Keys that users have been given, instead of tokens.
func ExampleVerifierFunc() {
	users := map[string]*auth.Identity{"3bf2a71c": {Subject: "alice", Scopes: []string{"notes:read"}}}
	keys := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		if user, ok := users[token]; ok {
			return user, nil
		}
		return nil, auth.Invalid("the key is unknown")
	})
	notes, err := auth.New("https://notes.example.com/mcp", keys, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	h := notes.Bearer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }))
	for _, key := range []string{"3bf2a71c", "made-up"} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 welcome
	// 401 {"error":"invalid_token","error_description":"the key is unknown"}
}

// Two authorization servers, and one that has to be asked.
func ExampleAny() {
	users := auth.Any(
		auth.NewJWT("https://staff.example.com", nil),
		auth.NewJWT("https://guests.example.com", &auth.JWTOptions{Algorithms: []string{"ES256"}}),
		auth.NewIntrospection("https://old.example.com/introspect", &auth.IntrospectionOptions{
			ClientID: "notes", ClientSecret: "from the environment", Issuer: "https://old.example.com",
		}),
	)
	notes, err := auth.New("https://notes.example.com/mcp", users, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("/mcp", notes.Bearer(http.NotFoundHandler()))
}
