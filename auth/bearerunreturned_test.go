package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/auth"
)

// What a Verifier or Refused does not return from is answered, and nothing of it
// reaches the client.
func TestBearerWithCodeThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
		for _, where := range []string{"Verifier", "Refused"} {
			t.Run(where+"/"+name, func(t *testing.T) {
				var mu sync.Mutex
				var heard error
				var logged bytes.Buffer // read when the server has ended
				opts := &auth.Options{OnRefused: func(_ *http.Request, why error) {
					mu.Lock()
					heard = why
					mu.Unlock()
					if where == "Refused" {
						way()
					}
				}}
				verifier := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
					if where == "Verifier" {
						way()
					}
					return nil, auth.Invalid("no")
				})
				web := httptest.NewUnstartedServer(protect(verifier, "https://example.com/mcp", opts)(http.NotFoundHandler()))
				web.Config.ErrorLog = log.New(&logged, "", 0)
				web.Start()
				req, err := http.NewRequest(http.MethodPost, web.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer token")
				res, err := web.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				var body bytes.Buffer
				_, _ = body.ReadFrom(res.Body)
				res.Body.Close()
				web.Close()
				want := http.StatusServiceUnavailable
				if where == "Refused" {
					want = http.StatusUnauthorized
				}
				if res.StatusCode != want || strings.Contains(body.String(), "pa55phrase") {
					t.Errorf("%d %s", res.StatusCode, body.String())
				}
				stack := logged.String()
				if where == "Verifier" {
					mu.Lock()
					stack = errors.Unwrap(heard).Error()
					mu.Unlock()
				}
				if !strings.Contains(stack, "bearerunreturned_test.go") {
					t.Errorf("nobody hears the stack: %s", stack)
				}
			})
		}
	}
}
