package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// served is a listener that serves, with what it has told its user.
type served struct {
	*Listener
	mu   sync.Mutex
	told []string
}

func serve(t *testing.T, o Options) *served {
	t.Helper()
	s := &served{}
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			fmt.Fprint(w, text)
		})
	}
	if o.Page = func(string) http.Handler { return answer("page") }; o.API == nil {
		o.API = answer("secret")
	}
	o.Tell = func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, text)
	}
	var err error
	if s.Listener, err = Listen(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// start begins to serve, until the test ends.
func (s *served) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (s *served) code() string {
	_, code, _ := strings.Cut(s.Links()[0], "#k=")
	return code
}

// request is what comes in.
type request struct {
	method, path, host, body string
	header                   map[string]string
}

// do makes a request as it is.
func (s *served) do(t *testing.T, q request) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, s.own+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = q.host
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// key trades the code of the link, as the page does.
func (s *served) key(t *testing.T) string {
	t.Helper()
	status, body := s.do(t, s.trading(s.code()))
	var answer struct{ Key string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || answer.Key == "" {
		t.Fatalf("no key: %d %s", status, body)
	}
	return answer.Key
}

func (s *served) trading(code string) request {
	return request{method: "POST", path: "/api/key", body: `{"code":"` + code + `"}`, header: map[string]string{"Origin": s.own, "Sec-Fetch-Site": "same-origin"}}
}

func asking(key string) request {
	return request{method: "GET", path: "/api/state", header: map[string]string{"Sec-Fetch-Site": "same-origin", "Authorization": "Bearer " + key}}
}

// attacks are what each guard alone holds off. Those with a code or a key have
// read it from a list of processes, a terminal or the like.
var attacks = []struct {
	name, guard string
	make        func(t *testing.T, s *served) request
}{
	{"another user of this machine uses a link that a list of processes shows", "peer", func(t *testing.T, s *served) request {
		s.server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peer{uid: os.Getuid() + 1, known: true})
		}
		s.start(t)
		return s.trading(s.code())
	}},
	{"a process that has closed its socket is nobody's", "peer", func(t *testing.T, s *served) request {
		s.server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, peer{uid: -1, known: true})
		}
		s.start(t)
		return s.trading(s.code())
	}},
	{"a foreign name leads here (DNS rebinding) and shows the page as its own", "host", func(t *testing.T, s *served) request {
		s.start(t)
		return request{method: "GET", path: "/", host: "evil.example:" + s.own[strings.LastIndex(s.own, ":")+1:]}
	}},
	{"localhost is not this listener: somebody else may have it on [::1]", "host", func(t *testing.T, s *served) request {
		s.start(t)
		return request{method: "GET", path: "/", host: "localhost:" + s.own[strings.LastIndex(s.own, ":")+1:]}
	}},
	{"a page of another port has the code and types Sec-Fetch-Site", "origin", func(t *testing.T, s *served) request {
		s.start(t)
		q := s.trading(s.code())
		q.header["Origin"] = "http://127.0.0.1:3000"
		return q
	}},
	{"a frame without an origin has the code", "origin", func(t *testing.T, s *served) request {
		s.start(t)
		q := s.trading(s.code())
		q.header["Origin"] = "null"
		return q
	}},
	{"a page of another port makes the browser GET, which has no Origin", "site", func(t *testing.T, s *served) request {
		s.start(t)
		q := asking(s.key(t))
		q.header["Sec-Fetch-Site"] = "same-site"
		return q
	}},
	{"the user follows a link of a foreign page to the API", "site", func(t *testing.T, s *served) request {
		s.start(t)
		q := asking(s.key(t))
		q.header["Sec-Fetch-Site"] = "none"
		return q
	}},
	{"a program of the same user without the link", "key", func(t *testing.T, s *served) request {
		s.start(t)
		q := asking("")
		delete(q.header, "Authorization")
		return q
	}},
	{"a program guesses", "key", func(t *testing.T, s *served) request {
		s.start(t)
		s.key(t)
		return asking("AAAAAAAAAAAAAAAAAAAAAAAAAA")
	}},
}

// TestGuards: each attack is refused, and gets through when the guard that is
// named is left out. A guard without an attack has no reason to be there.
func TestGuards(t *testing.T) {
	held := map[string]bool{}
	for _, a := range attacks {
		held[a.guard] = true
		t.Run(a.name, func(t *testing.T) {
			s := serve(t, Options{})
			if status, body := s.do(t, a.make(t, s)); status/100 != 4 || strings.Contains(body, "secret") || strings.Contains(body, `"key"`) {
				t.Errorf("the attack got through: %d %s", status, body)
			}
			var others []Guard
			for _, g := range Guards() {
				if g.Name != a.guard {
					others = append(others, g)
				}
			}
			weak := serve(t, Options{Guards: others})
			if status, body := weak.do(t, a.make(t, weak)); status != http.StatusOK {
				t.Errorf("without the guard %q it does not get through either: %d %s", a.guard, status, body)
			}
		})
	}
	for _, g := range Guards() {
		if !held[g.Name] {
			t.Errorf("the guard %q holds off no attack of the table", g.Name)
		}
	}
}

func TestPage(t *testing.T) {
	s := serve(t, Options{})
	s.start(t)
	for _, c := range []struct {
		name   string
		q      request
		status int
	}{
		{"the page needs no key", request{method: "GET", path: "/"}, http.StatusOK},
		{"the page takes nothing", request{method: "POST", path: "/"}, http.StatusMethodNotAllowed},
		{"no code", s.trading("nonsense"), http.StatusUnauthorized},
		{"no JSON", request{method: "POST", path: "/api/key", header: map[string]string{"Sec-Fetch-Site": "same-origin"}}, http.StatusBadRequest},
		{"the API with its key", asking(s.key(t)), http.StatusOK},
	} {
		if status, body := s.do(t, c.q); status != c.status {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	if len(s.told) > 0 {
		t.Errorf("told %q", s.told)
	}
}

// TestCodeTwice: who comes second with a code ends the key of who came first,
// and the user is told and has a new link.
func TestCodeTwice(t *testing.T) {
	s := serve(t, Options{})
	s.start(t)
	code := s.code()
	key := s.key(t)
	if status, _ := s.do(t, asking(key)); status != http.StatusOK {
		t.Fatalf("the key is not good: %d", status)
	}
	if status, body := s.do(t, s.trading(code)); status != http.StatusUnauthorized {
		t.Errorf("the code was good twice: %d %s", status, body)
	}
	if status, _ := s.do(t, asking(key)); status != http.StatusUnauthorized {
		t.Errorf("the key is good though its code was used again: %d", status)
	}
	s.mu.Lock()
	told := strings.Join(s.told, "\n")
	s.mu.Unlock()
	if !strings.Contains(told, "second time") || !strings.Contains(told, s.Links()[0]) {
		t.Errorf("told %q", told)
	}
	if s.code() == code || s.key(t) == key {
		t.Error("the new link is the old one")
	}
}

// TestCodeTwiceStreams: what the key that ends was used for ends with it, whether its
// answers are read or not.
func TestCodeTwiceStreams(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"waits": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"writes": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<16)) // until nobody reads
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan struct{})
			s := serve(t, Options{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				close(begun)
				answer(w, r)
				close(ended)
			})})
			s.start(t)
			code, q := s.code(), asking(s.key(t))
			r, err := http.NewRequestWithContext(t.Context(), q.method, s.own+q.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range q.header {
				r.Header.Set(name, value)
			}
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			<-begun
			s.do(t, s.trading(code))
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("who is locked out is still answered")
			}
		})
	}
}

// TestOrigins: a tunnel's origin is one more, exactly.
func TestOrigins(t *testing.T) {
	s := serve(t, Options{Origins: []string{"https://Name-8080.example.dev/"}})
	s.start(t)
	if links := s.Links(); len(links) != 2 || !strings.HasPrefix(links[1], "https://name-8080.example.dev/#k=") {
		t.Errorf("links: %q", links)
	}
	q := s.trading(s.code())
	q.host, q.header["Origin"] = "name-8080.example.dev", "https://name-8080.example.dev"
	if status, body := s.do(t, q); status != http.StatusOK {
		t.Errorf("the tunnel is refused: %d %s", status, body)
	}
	for _, origin := range []string{"https://other.example.dev", "http://name-8080.example.dev", "https://name-8080.example.dev.evil.example"} {
		q := s.trading(s.code())
		q.header["Origin"] = origin
		if status, _ := s.do(t, q); status != http.StatusForbidden {
			t.Errorf("%s: %d", origin, status)
		}
	}
	for _, text := range []string{"", "name.example.dev", "https://", "https://*.example.dev", "https://a.example/path", "https://u@a.example", "ftp://a.example", "https://a.example?x"} {
		if _, err := Listen(Options{Origins: []string{text}}); err == nil {
			t.Errorf("%q is taken for an origin", text)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	s := serve(t, Options{})
	s.start(t)
	q := asking(s.key(t))
	q.method, q.body = "POST", strings.Repeat("x", MaxBody+1)
	if status, _ := s.do(t, q); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too long: %d", status)
	}
}

// TestPort: the port of a project stays, and one that is taken is no error.
func TestPort(t *testing.T) {
	if a, b := PortFor("/a", "server"), PortFor("/b", "server"); a == b || a != PortFor("/a", "server") || a < 21000 || a >= 30000 {
		t.Errorf("ports %d and %d", a, b)
	}
	if PortFor("a", "bc") == PortFor("ab", "c") {
		t.Error("parts run into each other")
	}
	first := serve(t, Options{})
	defer first.Close()
	second := serve(t, Options{Port: first.listen.Addr().(*net.TCPAddr).Port})
	defer second.Close()
	if first.own == second.own {
		t.Error("two listeners at one port")
	}
}
