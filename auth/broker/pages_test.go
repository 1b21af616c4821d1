package broker

import (
	"flag"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata")

var (
	blockEnd   = regexp.MustCompile(`</(?:p|h1|h2|li|label|legend|button|title)>|<br>`)
	sealedForm = regexp.MustCompile(`(name="(?:id|form)" value=")[^"]+"`)
)

// textOf returns what a page shows, a line for each of its parts.
func textOf(page string) string {
	var lines []string
	for line := range strings.SplitSeq(blockEnd.ReplaceAllString(strings.ReplaceAll(page, "\n", " "), "\n"), "\n") {
		if line = strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(line, ""))), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Pages are as testdata has them, except for their style and what is sealed.
func TestPages(t *testing.T) {
	const document = "https://app.example.com/client.json"
	s := newShop(t, 1, false)
	s.brokers[0].opts.Scopes = []Scope{{"notes:read", "read your notes"}, {"notes:write", "change them"}}
	protocol, err := newEntrance(s.brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	s.brokers[0].entrance = protocol
	s.handlers[0] = s.brokers[0].Middleware(http.NotFoundHandler())
	protocol.protocol.SetDocuments(&http.Client{Transport: docs{document: asJSON(map[string]any{"client_id": document, "client_name": "App", "redirect_uris": []string{far}})}})
	ask := func(client, to string) func(*browser) string {
		return func(b *browser) string {
			_, page, _ := b.open(self+"/authorize?"+query(client, "redirect_uri", to).Encode(), nil)
			return page
		}
	}
	pressed := func(answer string) func(*browser) string {
		return func(b *browser) string { _, page, _ := b.press(s.linkOf("alice"), answer); return page }
	}
	all := func(user string) func(*browser) string {
		return func(b *browser) string {
			s.idp.set(func() { s.idp.user = user })
			_, page := s.connect(b, s.linkOf("alice"))
			return page
		}
	}
	for name, get := range map[string]func(*browser) string{
		"question-local":    ask(s.register(redirect), redirect),
		"question-far":      ask(s.register(far), far),
		"question-document": ask(document, far),
		"connect":           func(b *browser) string { _, page, _ := b.open(s.linkOf("alice"), nil); return page },
		"connect-denied":    pressed("deny"),
		"connect-other":     all("bob"),
		"connected":         all("alice"),
		"fault":             ask("unknown", far),
		"fault-cookie": func(b *browser) string {
			_, page, _ := b.open(self+"/callback?code=x&state="+strings.Repeat("A", 52), nil)
			return page
		},
		"fault-busy": func(b *browser) string {
			s.tracker.set(func() { s.tracker.status = 502 })
			defer s.tracker.set(func() { s.tracker.status = 0 })
			return all("alice")(b)
		},
		"fault-tick": func(b *browser) string {
			form := b.ask(query(s.register(far), "redirect_uri", far))
			form.Del("began")
			_, page, _ := b.open(self+"/consent", form)
			return page
		},
	} {
		if _, err := s.services[0].b.vault.forget(t.Context(), s.services[0].up, "https://id.example.com#alice", "tracker", ""); err != nil {
			t.Fatal(err)
		}
		page := get(s.rawBrowser())
		before, after, styled := strings.Cut(page, "<style>")
		_, after, closed := strings.Cut(after, "</style>")
		if !styled || !closed || strings.Contains(page, "<script") {
			t.Errorf("%s has no style, or a script: %s", name, page)
		}
		page = sealedForm.ReplaceAllString(before+after, `${1}SEALED"`)
		for ext, got := range map[string]string{".html": page, ".txt": textOf(page)} {
			file := filepath.Join("testdata", name+ext)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != got {
				t.Errorf("%s differs (%v); go test -run TestPages -update writes it:\n%s", file, err, got)
			}
		}
	}
}

// rawBrowser is a browser whose pages are as they were sent.
func (w *world) rawBrowser() *browser { b := w.browser(); b.raw = true; return b }
