package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
)

// However many principals come, each with a token of the longest length, no more is kept
// than docs/limits.md says, and nothing of them once their tokens are over.
func TestPrincipalsAreFreed(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		verifier := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
			return &auth.Identity{Subject: strings.TrimLeft(token, "0"), Expiry: time.Now().Add(time.Hour)}, nil
		})
		protected := protect(verifier, resource, &auth.Options{CacheSize: 1_000})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		come := func(n int) {
			t.Helper()
			token := fmt.Sprintf("%0*d", auth.DefaultMaxToken, n)
			if resp := serve(protected, post("Authorization", "Bearer "+token)); resp.StatusCode != http.StatusOK {
				t.Fatalf("principal %d: status %d", n, resp.StatusCode)
			}
		}
		come(1)
		before := reachable()
		for n := range testdep.Rounds(2_000, 100_000) {
			come(n + 2)
		}
		const most = 167 << 20 / 10 // docs/limits.md says so of ten times as many
		if after := reachable(); after-before > most || after-before < most/2 {
			t.Errorf("%d bytes are kept, at most %d may be", after-before, most)
		}
		time.Sleep(2 * time.Minute)
		come(1)
		if after := reachable(); after > before+1<<20 { // the table stays
			t.Errorf("%d bytes are reachable once all tokens are over, and %d were", after, before)
		}
	})
}

func reachable() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
