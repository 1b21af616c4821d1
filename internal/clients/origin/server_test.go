package origin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/clients/origin"
)

func post(t *testing.T, url string, opts origin.Options) (*http.Response, error) {
	t.Helper()
	s, err := origin.New(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Do(t.Context(), &origin.Request{Method: http.MethodPost, Header: s.Header(), Body: []byte("body")})
	if err == nil {
		origin.Discard(res.Body)
	}
	return res, err
}

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{"", "example.com/mcp", "ftp://example.com", "http://", "http://[::1", "/mcp"} {
		if _, err := origin.New(address, origin.Options{}); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}

// Redirects within the origin keep everything; others get nothing.
func TestRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another origin got %s with %v", r.Method, r.Header)
	}))
	defer other.Close()
	var last *http.Request
	var body []byte
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		last = r
		location, status := "/end", 0
		switch r.URL.Path {
		case "/301":
			status = 301
		case "/302":
			status = 302
		case "/303":
			status = 303
		case "/307":
			status = 307
		case "/308":
			location, status = "http://"+r.Host+"/307", 308
		case "/loop":
			location, status = "/loop", 307
		case "/other":
			location, status = other.URL+"/steal", 307
		case "/secure":
			location, status = "https://"+r.Host+"/", 308
		case "/file":
			location, status = "file:///etc/passwd", 302
		case "/bad":
			location, status = "http://[::1", 302
		case "/nowhere":
			location, status = "", 302
		default:
			return
		}
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}))
	defer own.Close()
	opts := origin.Options{Header: http.Header{"Authorization": {"Bearer t"}}}
	for _, path := range []string{"/301", "/302", "/307", "/308"} {
		res, err := post(t, own.URL+path, opts)
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %v, %v", path, res, err)
			continue
		}
		if last.Method != http.MethodPost || string(body) != "body" || last.Header.Get("Authorization") != "Bearer t" || last.URL.Path != "/end" {
			t.Errorf("%s: %s %s %q", path, last.Method, last.URL, body)
		}
	}
	for path, want := range map[string]string{
		"/303": "without the message", "/other": "a different origin", "/secure": "a different origin", "/file": "a different origin",
		"/bad": "an address that is not valid", "/loop": "more than 3 times",
	} {
		_, err := post(t, own.URL+path, opts)
		if _, ok := errors.AsType[*origin.StatusError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if res, err := post(t, own.URL+"/nowhere", opts); err != nil || res.StatusCode != 302 {
		t.Errorf("without Location: %v, %v", res, err)
	}
	stop := errors.New("no redirects here")
	opts.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return stop }}
	if _, err := post(t, own.URL+"/307", opts); !errors.Is(err, stop) {
		t.Errorf("CheckRedirect was not asked: %v", err)
	}
}

func TestResolve(t *testing.T) {
	s, err := origin.New("http://example.com/base/sse?x=1", origin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]string{
		"/messages/123":                         "http://example.com/messages/123",
		"messages?session=1":                    "http://example.com/base/messages?session=1",
		"?session=1":                            "http://example.com/base/sse?session=1",
		"http://example.com/m":                  "http://example.com/m",
		"HTTP://EXAMPLE.COM:80/m#f":             "http://EXAMPLE.COM:80/m",
		"/base/messages":                        "http://example.com/base/messages",
		"//example.com/m":                       "http://example.com/m",
		"https://example.com/m":                 "",
		"http://example.com:81/m":               "",
		"http://example.com.evil.org/m":         "",
		"//evil.org/m":                          "",
		"http://example.com@evil.org/m":         "",
		"javascript:alert(1)":                   "",
		"http://example.com\\@evil.org/":        "",
		"http://user:password@example.com/path": "http://example.com/path",
	} {
		u, err := s.Resolve(reference)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q means %s, want an error", reference, u)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q means %v, %v; want %s", reference, u, err, want)
		}
	}
}

func TestHeaderFunc(t *testing.T) {
	var got http.Header
	own := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer own.Close()
	header := http.Header{"X-Fixed": {"1"}, "X-Replaced": {"1"}}
	opts := origin.Options{Header: header, HeaderFunc: func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Replaced", "2")
		r.Header.Set("Authorization", "Bearer fresh")
		return nil
	}}
	if _, err := post(t, own.URL, opts); err != nil {
		t.Fatal(err)
	}
	if got.Get("X-Fixed") != "1" || got.Get("X-Replaced") != "2" || got.Get("Authorization") != "Bearer fresh" || header.Get("X-Replaced") != "1" {
		t.Errorf("%v", got)
	}
	denied := errors.New("no token")
	opts.HeaderFunc = func(context.Context, *http.Request) error { return denied }
	if _, err := post(t, own.URL, opts); !errors.Is(err, denied) {
		t.Errorf("%v", err)
	}
	opts.HeaderFunc = func(_ context.Context, r *http.Request) error {
		r.URL.Host = "evil.org"
		return nil
	}
	if _, err := post(t, own.URL, opts); err == nil || !strings.Contains(err.Error(), "a different origin") {
		t.Errorf("%v", err)
	}
}

// The user's client brings its cookies; what a URL says of the user becomes a
// header, and is not shown.
func TestClient(t *testing.T) {
	var got *http.Request
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
	}))
	defer own.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := origin.New(strings.Replace(own.URL, "//", "//me:secret@", 1), origin.Options{Client: &http.Client{Jar: jar}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := s.Do(t.Context(), &origin.Request{Method: http.MethodGet, Header: s.Header()})
		if err != nil {
			t.Fatal(err)
		}
		origin.Discard(res.Body)
	}
	if user, password, _ := got.BasicAuth(); user != "me" || password != "secret" || strings.Contains(s.String(), "secret") {
		t.Errorf("%s %s, %s", user, password, s)
	}
	if cookie, err := got.Cookie("seen"); err != nil || cookie.Value != "yes" {
		t.Errorf("%v, %v", cookie, err)
	}
}

// An answer with a Content-Encoding is an error that names the encoding.
func TestContentEncoding(t *testing.T) {
	for encoding, status := range map[string]int{"br": 200, "zstd": 202, "identity": 200, "gzip": 400} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.WriteHeader(status)
			_, _ = w.Write([]byte("\x1f\x8b"))
		}))
		res, err := post(t, web.URL, origin.Options{Header: http.Header{"Accept-Encoding": {encoding}}})
		if res != nil {
			origin.Discard(res.Body)
		}
		if fails := encoding == "br" || encoding == "zstd"; fails != (err != nil) || fails && !strings.Contains(err.Error(), encoding) {
			t.Errorf("%s with status %d: %v", encoding, status, err)
		}
		web.Close()
	}
}

// An API's redirects are followed for GET and HEAD within the origin, and prepared again.
func TestAPI(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another origin got %s with %v", r.Method, r.Header)
	}))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Attempt"))
		switch r.URL.Path {
		case "/end":
		case "/other":
			http.Redirect(w, r, other.URL+"/steal", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	}))
	defer own.Close()
	s, err := origin.New(own.URL, origin.Options{API: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/start", 200, "GET /start?key=k 1, GET /end?key=k 2"},
		{"HEAD", "/start", 200, "HEAD /start?key=k 1, HEAD /end?key=k 2"},
		{"POST", "/start", 302, "POST /start?key=k 1"},
		{"DELETE", "/start", 302, "DELETE /start?key=k 1"},
		{"GET", "/other", 302, "GET /other?key=k 1"},
		{"GET", "/loop", 302, "GET /loop?key=k 1, GET /loop?key=k 2, GET /loop?key=k 3, GET /loop?key=k 4"},
	} {
		seen = nil
		u, err := s.Resolve(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		attempts := 0
		res, err := s.Do(t.Context(), &origin.Request{Method: tt.method, URL: u, Header: http.Header{}, Prepare: func(r *http.Request) error {
			attempts++
			r.URL.RawQuery = "key=k"
			r.Header.Set("X-Attempt", strconv.Itoa(attempts))
			return nil
		}})
		if err != nil {
			t.Errorf("%s %s: %v", tt.method, tt.path, err)
			continue
		}
		origin.Discard(res.Body)
		if got := strings.Join(seen, ", "); res.StatusCode != tt.status || got != tt.want {
			t.Errorf("%s %s: %d, %s; want %d, %s", tt.method, tt.path, res.StatusCode, got, tt.status, tt.want)
		}
	}
	for name, prepare := range map[string]func(*http.Request) error{
		"a different origin": func(r *http.Request) error { r.URL.Host = "example.com"; return nil },
		"no":                 func(*http.Request) error { return errors.New("no") },
	} {
		if _, err := s.Do(t.Context(), &origin.Request{Method: "GET", Header: http.Header{}, Prepare: prepare}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
