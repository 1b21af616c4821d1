package broker

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"
)

// The pages and their style. A page is a template that has the style and the frame of all
// around what it is named for; see pages.show.
var (
	//go:embed pages.html
	pagesText string
	//go:embed pages.css
	pagesStyle template.CSS

	pageTemplates = template.Must(template.New("").Parse(pagesText))
)

// policy lets pages have their style and nothing else. It has no form-action: Chrome
// follows no redirect of a form to another origin with one.
var policy = func() string {
	sum := sha256.Sum256([]byte(pagesStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'"
}()

// pages answer with pages. They do not change.
type pages struct {
	server string // what it is called
}

// newPages returns the pages of a server with a name, "" for the host of its issuer.
func newPages(name, issuer string) pages {
	_, host, _ := strings.Cut(issuer, "://")
	return pages{cmp.Or(name, host)}
}

// show answers with a page, whose data have a Title.
func (p pages) show(w http.ResponseWriter, status int, name string, data map[string]any) {
	data["Page"], data["Style"], data["Server"] = name, pagesStyle, p.server
	var page bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&page, "frame", data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// fault answers with a page that says what went wrong and what to do.
func (p pages) fault(w http.ResponseWriter, status int, text string) {
	p.show(w, status, "done", map[string]any{"Title": "This did not work", "Text": text})
}
