package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

// encoders write a text in the ways that a mask must see through.
var encoders = []func(string) string{
	func(s string) string { return s },
	func(s string) string { b, _ := json.Marshal(s); return string(b) },
	func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
		return b.String()
	},
	func(s string) string { // all of it
		var b strings.Builder
		for _, r := range s {
			if r > 0xffff {
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		return b.String()
	},
	func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	strconv.Quote,
	strconv.QuoteToASCII,
	url.QueryEscape,
	url.PathEscape,
	func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02x", c)
		}
		return b.String()
	},
	func(s string) string { return quoteShell(s) },
	shellwords.Quote,
}

// planted is a text with a secret in it, in a chain of encodings.
func planted(r *rand.Rand, secret string) (text string) {
	text = noise(r) + secret + noise(r)
	for range r.IntN(4) {
		text = noise(r) + encoders[r.IntN(len(encoders))](text) + noise(r)
	}
	return text
}

func noise(r *rand.Rand) string {
	const signs = `ab*\'"%+/ 25u0x{}`
	b := make([]byte, r.IntN(5))
	for i := range b {
		b[i] = signs[r.IntN(len(signs))]
	}
	return string(b)
}

func secretOf(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		b := make([]byte, minSecret+r.IntN(8)) // any bytes
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	case 1:
		const signs = "*\\'\"%+/ 25unrtx\n\té€😀<&>\x00\x7f"
		all := []rune(signs)
		var b strings.Builder
		for b.Len() < minSecret+r.IntN(6) {
			b.WriteRune(all[r.IntN(len(all))])
		}
		return b.String()
	case 2:
		return fmt.Sprint("tok_", r.Uint64())
	}
	return strings.Repeat("*", minSecret+r.IntN(3))
}

// hidden fails if a secret is in a text: as it is, or as any one encoder writes it, or
// two of them.
func hidden(t *testing.T, text, secret string) {
	t.Helper()
	for i, outer := range encoders {
		for j, inner := range encoders {
			form := strings.Trim(strings.TrimSpace(outer(strings.Trim(strings.TrimSpace(inner(secret)), `"`))), `"`)
			if strings.Trim(form, " \"'") != "" && len(form) >= minSecret && strings.Contains(text, form) && len(strings.TrimSpace(secret)) >= minSecret && !strings.ContainsAny(secret[:1]+secret[len(secret)-1:], `"' `) {
				t.Fatalf("%q is in %q, as %q (%d of %d)", secret, text, form, i, j)
			}
		}
	}
	if strings.Contains(text, secret) {
		t.Fatalf("%q is in %q", secret, text)
	}
}

// TestMask: no secret of any bytes is in what was masked, however it was written, how
// often, and what was beside it.
func TestMask(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		var m mask
		var secrets []string
		for range 1 + r.IntN(3) {
			secrets = append(secrets, secretOf(r))
		}
		m.add(secrets...)
		text := ""
		for _, secret := range secrets {
			text += planted(r, secret)
		}
		out, err := m.hide(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			hidden(t, out, secret)
		}
		if again, _ := m.hide(out); again != out {
			t.Fatalf("masked twice: %q, %q", out, again)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("s3cret", `{"a":"s3cret"}`, uint8(3))
	f.Add("a\"b\\c", `x`, uint8(1))
	f.Add("%25a", `%`, uint8(7))
	f.Fuzz(func(t *testing.T, secret, around string, with uint8) {
		var m mask
		m.add(secret)
		out, err := m.hide(around + encoders[int(with)%len(encoders)](secret) + around)
		if err == nil && len(secret) >= minSecret {
			hidden(t, out, secret)
		}
	})
}

func TestMaskTable(t *testing.T) {
	for _, c := range []struct{ secret, text, want string }{
		{"s3cret", `a s3cret b`, "a *** b"},
		{"s3cret", `{"a":"\u00733cret"}`, `{"a":"***"}`},
		{"a b/c", `?q=a+b%2Fc&r=a%20b%2fc`, "?q=***&r=***"},
		{"a\"b\n", `{"text":"{\"k\":\"a\\\"b\\n\"}"}`, `{"text":"{\"k\":\"***\"}"}`},
		{"it's me", `-d 'it'\''s me'`, "-d '***'"},
		{"😀🎉", `"\ud83d\ude00\uD83C\uDF89"`, `"***"`},
		{"abc", "abc", "abc"}, // too short to be told from text
		{"abcdef", "abcdefabcdef abcde", "****** abcde"},
		{"C:\\new", `"C:\\new" and C:\new`, `"***" and ***`},
	} {
		var m mask
		m.add(c.secret)
		if got, err := m.hide(c.text); got != c.want || err != nil {
			t.Errorf("%q in %q: got %q, want %q, %v", c.secret, c.text, got, c.want, err)
		}
	}
	var m mask
	m.addHeader(&m.own, "Authorization", "Basic "+"dXNlcjpwYXNzd29yZA==")
	m.addHeader(&m.own, "Authorization", "Bearer abcdefgh")
	if got, err := m.hide("password dXNlcjpwYXNzd29yZA== abcdefgh user:password"); got != "*** *** *** ***" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	m.add(strings.Repeat("x", maxSecret))
	if _, err := m.hide(""); err == nil {
		t.Error("more secrets than can be known, and yet it is said to be masked")
	}
}

// A server cannot make looking for its secrets take for ever.
func TestMaskHasAnEnd(t *testing.T) {
	testdep.NoRace(t, "one goroutine compares long texts")
	m := &mask{}
	m.add(strings.Repeat("a", 100<<10) + "b")
	if text, err := m.hide(strings.Repeat("a", 500<<10)); err == nil || text != "" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := m.hide("nothing"); err != nil || text != "nothing" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestMaskRotates: secrets that change for ever take no more room, the newest are known,
// and those of the user and of the other side stay so.
func TestMaskRotates(t *testing.T) {
	testdep.NoRace(t, "one goroutine adds the secrets")
	var m mask
	m.add("of-the-user")
	m.into(&m.sent, "of-the-client")
	for n := range 2 * maxSecrets {
		m.into(&m.received, fmt.Sprintf("session-%06d", n))
		m.addHeader(&m.sent, "Authorization", fmt.Sprintf("Bearer token-%06d", n))
		m.into(&m.sent, "seen-each-time")
	}
	newest := 2*maxSecrets - 1
	out, err := m.hide(fmt.Sprintf("of-the-user seen-each-time session-%06d token-%06d", newest, newest))
	if err != nil || out != "*** *** *** ***" {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.hide("session-000000 of-the-client"); err != nil || out != "session-000000 of-the-client" {
		t.Errorf("what was not seen for long is known: %s, %v", out, err)
	}
	m.into(&m.sent, "of-the-client")
	for n := range 2 * maxSecrets {
		m.into(&m.received, fmt.Sprintf("again-%06d", n), strings.Repeat("x", 1<<12)+fmt.Sprint(n))
	}
	if out, err := m.hide("of-the-client of-the-user"); err != nil || out != "*** ***" {
		t.Errorf("a server makes others forgotten: %s, %v", out, err)
	}
	if m.received.size > maxSecret || len(m.received.seen) > maxSecrets {
		t.Errorf("%d secrets, %d bytes", len(m.received.seen), m.received.size)
	}
}

// TestMaskBounds: no side but the user's can have so much that nothing is shared.
func TestMaskBounds(t *testing.T) {
	var m mask
	m.into(&m.received, "session-1")
	m.into(&m.received, strings.Repeat("x", maxSecret+1))
	if out, err := m.hide("session-1"); err != nil || out != masked {
		t.Errorf("%s, %v", out, err)
	}
}

func TestMaskURL(t *testing.T) {
	for _, c := range []struct{ url, text, want string }{
		{"https://ghp_token@host/a", "ghp_token", masked},
		{"https://ann@host/a", "ann", "ann"},
		{"https://somebody:hush@host/a", "somebody hush", "somebody ***"},
	} {
		var m mask
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		m.addURL(&m.own, u)
		if out, err := m.hide(c.text); out != c.want || err != nil {
			t.Errorf("%s: %s, %v", c.url, out, err)
		}
	}
}

func BenchmarkMaskRotates(b *testing.B) {
	var m mask
	for n := range b.N {
		m.into(&m.received, fmt.Sprintf("session-%d", n))
	}
}
