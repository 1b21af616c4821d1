package issuing

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
)

// Routes are handlers, by path and method.
type Routes map[string]map[string]http.HandlerFunc

// Middleware answers the requests of the routes; all others pass to next. refused returns
// the status and the text for a request that no handler gets; status 0 refuses none.
// routes is called at the first request, because routers call middleware before all routes
// are known.
func Middleware(next http.Handler, routes func() Routes, refused func(r *http.Request) (status int, text string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods, ours := routes()[r.URL.Path]
		if !ours {
			next.ServeHTTP(w, r)
			return
		}
		if status, text := refused(r); status != 0 {
			http.Error(w, text, status)
			return
		}
		serve := methods[r.Method]
		if serve == nil {
			w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		serve(w, r)
	})
}

// Local reports whether an address, which may have a port and brackets, is this machine.
func Local(address string) bool {
	return facts.Loopback(facts.Hostname(address))
}
