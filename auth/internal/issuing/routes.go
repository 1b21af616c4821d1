package issuing

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

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
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(facts.ReadTimeout)) // also of a body that no handler reads: net/http does then
			r.Body = &timed{r.Body, control}
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

// timed is a body whose reading has a deadline, which ends with the body: later it would
// end the request.
type timed struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *timed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Local reports whether an address, which may have a port and brackets, is this machine.
func Local(address string) bool {
	return facts.Loopback(facts.Hostname(address))
}
