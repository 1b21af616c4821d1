package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/core"
)

// privateLists serves lists that are for one user alone: alice has a tool that
// nobody else may know of. A header says who asks.
func privateLists(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(mcp.Info{Name: "private", Version: "1"}, &mcp.Options{
		ListTTL: time.Hour,
	})
	of := func(name string) mcp.Option {
		return mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() == name })
	}
	nothing := func(*mcp.Frame, struct{}) (string, error) { return "", nil }
	server.MustAdd(mcp.Tool("of_all", nothing), mcp.Tool("of_alice", nothing, of("alice")))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Handler().ServeHTTP(w, r.WithContext(core.WithPrincipal(r.Context(), r.Header.Get("User"))))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// as leads to address as a user.
func as(address, user string) client.Transport {
	return client.HTTP(address, &client.HTTPOptions{Header: http.Header{"User": {user}}})
}

// What a server gave one user alone, nobody else gets from a Cache that they
// share: not even who comes to be where the former was in memory.
func TestCacheOwnersNeverRepeat(t *testing.T) {
	address := privateLists(t)
	opener := map[string]func(c *client.Cache, user string) (client.Caller, io.Closer){
		"pool": func(cache *client.Cache, user string) (client.Caller, io.Closer) {
			p := pool.New(as(address, user), &pool.Options{Size: 1, Client: &client.Options{Cache: cache}})
			return p, p
		},
		"client": func(cache *client.Cache, user string) (client.Caller, io.Closer) {
			c, err := client.Connect(t.Context(), as(address, user), &client.Options{Cache: cache})
			if err != nil {
				t.Fatal(err)
			}
			return c, c
		},
	}
	for kind, open := range opener {
		t.Run(kind, func(t *testing.T) {
			cache := client.NewCache(0)
			list := func(user string) int {
				c, closer := open(cache, user)
				defer func() {
					if err := closer.Close(); err != nil {
						t.Error(err)
					}
				}()
				n := 0
				for _, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				return n
			}
			for range 20 {
				if n := list("alice"); n != 2 {
					t.Fatalf("alice has %d tools, not 2", n)
				}
				if n := cache.Stats().Entries; n != 0 {
					t.Errorf("%d results are kept for somebody who is gone", n)
				}
				runtime.GC()
				runtime.GC()
				for range 5 {
					if n := list("bob"); n != 1 {
						t.Fatalf("bob got %d tools, not 1: those of alice", n)
					}
				}
			}
			if s := cache.Stats(); s.Entries != 0 || s.Hits != 0 {
				t.Errorf("%+v; nothing was kept for anybody who came back", s)
			}
		})
	}
}
