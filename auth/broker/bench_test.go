package broker

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
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
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(b.Context(), junk); err == nil {
				b.Fatal("junk is a token")
			}
		}
	})
}

// discards is a response of which nothing is kept but the status.
type discards struct {
	header http.Header
	status int
}

func (w *discards) Header() http.Header            { return w.header }
func (w *discards) Write(text []byte) (int, error) { return len(text), nil }
func (w *discards) WriteHeader(status int)         { w.status = status }
func (*discards) SetReadDeadline(time.Time) error  { return nil }

// BenchmarkBaseline measures what the others are to be compared with in one run: 1.4 KiB of
// claims decoded from JSON, and a sealed text of 187 bytes, which AES-GCM rejects under a new key.
func BenchmarkBaseline(b *testing.B) {
	b.Run("claims", func(b *testing.B) {
		text := []byte(asJSON(map[string]any{"iss": idpURL, "sub": "alice", "aud": "front", "exp": 1e9, "about": strings.Repeat("a", 1<<10+256)}))
		for b.Loop() {
			var claims map[string]any
			if err := json.Unmarshal(text, &claims); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			block, err := aes.NewCipher(make([]byte, 32))
			if err != nil {
				b.Fatal(err)
			}
			if aead, err := cipher.NewGCM(block); err != nil {
				b.Fatal(err)
			} else if _, err := aead.Open(nil, make([]byte, 12), make([]byte, 187), nil); err == nil {
				b.Fatal("junk opens")
			}
		}
	})
}

// BenchmarkToken measures requests that the token endpoint refuses, without the connection:
// a text that is not a token, of a registered client and of an unknown one.
func BenchmarkToken(b *testing.B) {
	w, junk := newWorld(b, 1, nil), strings.Repeat("A", 250)
	for name, client := range map[string]string{"junk": w.register(redirect), "junk client": "r." + junk + junk[:64]} {
		b.Run(name, func(b *testing.B) {
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {junk}, "client_id": {client}}.Encode()
			body := strings.NewReader(form)
			r := httptest.NewRequest(http.MethodPost, self+"/token", body)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			given := r.Body
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(form)
				answer := &discards{header: http.Header{}}
				r.Body, r.Form, r.PostForm = given, nil, nil
				if w.handlers[0].ServeHTTP(answer, r); answer.status < 400 {
					b.Fatal(answer.status)
				}
			}
		})
	}
}

// BenchmarkRefresh measures a refresh, with the client.
func BenchmarkRefresh(b *testing.B) {
	w := newWorld(b, 1, nil)
	tok := w.enter()
	for b.Loop() {
		status, code, next := w.renew(tok)
		if status != http.StatusOK {
			b.Fatal(status, code)
		}
		tok = next
	}
}
