package broker

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// BenchmarkVerify measures what a token costs that no cache has: of a user with 1 KiB of
// claims and one login, or 32, and text that is not a token.
func BenchmarkVerify(b *testing.B) {
	for name, logins := range map[string]int{"1 login": 1, "32 logins": 32} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, 1, nil)
			w.idp.claims = func(c map[string]any) { c["about"] = strings.Repeat("a", 1<<10) }
			var tok tokens
			for range logins {
				tok = w.enter()
			}
			v := w.brokers[0].Verifier(endpoint)
			b.ReportMetric(float64(len(tok.access)), "bytes/token")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), tok.access); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("junk", func(b *testing.B) {
		v, junk := newWorld(b, 1, nil).brokers[0].Verifier(endpoint), strings.Repeat("A", 250)
		for b.Loop() {
			if _, err := v.Verify(b.Context(), junk); err == nil {
				b.Fatal("junk is a token")
			}
		}
	})
}

// BenchmarkRefresh measures a refresh at the endpoint, and one with text that is not a token.
func BenchmarkRefresh(b *testing.B) {
	w := newWorld(b, 1, nil)
	tok := w.enter()
	b.Run("next", func(b *testing.B) {
		for b.Loop() {
			status, code, next := w.renew(tok)
			if status != http.StatusOK {
				b.Fatal(status, code)
			}
			tok = next
		}
	})
	b.Run("junk", func(b *testing.B) {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {strings.Repeat("A", 250)}, "client_id": {tok.client}}
		for b.Loop() {
			if status, m := w.post("/token", form); status == http.StatusOK {
				b.Fatal(m)
			}
		}
	})
}
