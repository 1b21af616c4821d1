package oidc

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// person is a user with a browser, who fills in every form and agrees to everything.
type person struct {
	name    string
	browser *http.Client

	mu    sync.Mutex
	pages []string // titles of the pages with forms, in their order
}

func newPerson(name string) *person {
	jar, _ := cookiejar.New(nil) // has no error
	return &person{name: name, browser: &http.Client{Jar: secureJar{jar}}}
}

// secureJar sends secure cookies to this machine over http, too, as browsers do.
type secureJar struct{ http.CookieJar }

func (j secureJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.CookieJar.SetCookies(secure(u), cookies)
}

func (j secureJar) Cookies(u *url.URL) []*http.Cookie { return j.CookieJar.Cookies(secure(u)) }

func secure(u *url.URL) *url.URL {
	secure := *u
	secure.Scheme = "https"
	return &secure
}

// The parts of a form. Those of the pages here have their attributes in quotes, or no
// spaces in them.
var (
	formTag   = regexp.MustCompile(`(?s)<form\b[^>]*>.*?</form>`)
	inputTag  = regexp.MustCompile(`<(?:input|button)\b[^>]*>`)
	titleTag  = regexp.MustCompile(`(?s)<title>\s*(.*?)\s*</title>`)
	attribute = regexp.MustCompile(`([a-z-]+)(?:=(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?`)
)

// attributes returns those of a tag.
func attributes(tag string) map[string]string {
	tag = strings.TrimLeft(tag, "<")
	_, rest, _ := strings.Cut(strings.TrimSuffix(tag, ">"), " ")
	all := map[string]string{}
	for _, m := range attribute.FindAllStringSubmatch(rest, -1) {
		all[m[1]] = html.UnescapeString(m[2] + m[3] + m[4])
	}
	return all
}

// visit goes where an address leads, through all forms, and returns the last page.
func (p *person) visit(ctx context.Context, address string) (string, error) {
	method, form := http.MethodGet, url.Values(nil)
	for range 12 {
		req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
		if err != nil {
			return "", err
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		res, err := p.browser.Do(req)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return "", err
		}
		if res.StatusCode >= 400 {
			return "", fmt.Errorf("%s: status %s: %s", res.Request.URL, res.Status, text)
		}
		shown := formTag.FindString(string(text))
		if shown == "" {
			return string(text), nil
		}
		p.mu.Lock()
		if title := titleTag.FindStringSubmatch(string(text)); title != nil {
			p.pages = append(p.pages, html.UnescapeString(title[1]))
		}
		p.mu.Unlock()
		tag := attributes(shown[:strings.Index(shown, ">")+1])
		to, err := res.Request.URL.Parse(tag["action"])
		if err != nil {
			return "", err
		}
		method, address, form = http.MethodPost, to.String(), p.fill(shown)
	}
	return "", fmt.Errorf("there are forms without end, the last at %s", address)
}

// fill fills in a form: names and passwords are typed, boxes ticked, and the first button is
// pressed.
func (p *person) fill(form string) url.Values {
	values, pressed := url.Values{}, false
	for _, tag := range inputTag.FindAllString(form, -1) {
		a := attributes(tag)
		switch kind := a["type"]; {
		case a["name"] == "" || strings.HasPrefix(tag, "<button") && pressed:
		case kind == "text" || kind == "password" || strings.HasPrefix(tag, "<input") && kind == "":
			values.Set(a["name"], p.name)
		default:
			pressed = pressed || strings.HasPrefix(tag, "<button")
			values.Add(a["name"], a["value"])
		}
	}
	return values
}

// seen returns the titles of the pages so far, and forgets them.
func (p *person) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.pages = nil }()
	return p.pages
}
