package browser

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

// framed is a listener with a document of frames.
func framed(t *testing.T, o Options) *served {
	t.Helper()
	o.Frames = func(pages []string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("document of " + strings.Join(pages, " ")))
		})
	}
	return serve(t, o)
}

// ofFrames is a request of the other port.
func (s *served) ofFrames(t *testing.T, q request) (status int, body string) {
	t.Helper()
	own := s.own
	defer func() { s.own = own }()
	s.own = s.frames.own
	return s.do(t, q)
}

// TestFrames: the other port has one document, and nothing of the API, with a key or
// without; the page may only have frames of that port.
func TestFrames(t *testing.T) {
	s := framed(t, Options{Origins: []string{"https://a.example"}})
	s.start(t)
	key := s.key(t)
	if s.frames.own == s.own {
		t.Fatal("the frames are at the port of the page")
	}
	if status, body := s.ofFrames(t, request{method: "GET", path: "/?connectDomains=x"}); status != http.StatusOK || body != "document of "+s.own+" https://a.example" {
		t.Errorf("%d %s", status, body)
	}
	for name, q := range map[string]request{
		"another path": {method: "GET", path: "/web/app.js"}, "the API": asking(key), "the code": s.trading(s.code()), "a POST": {method: "POST", path: "/"},
		"a foreign name": {method: "GET", path: "/", host: "evil.example"}, "the name of the page": {method: "GET", path: "/", host: strings.TrimPrefix(s.own, "http://")},
		"a fetch": {method: "GET", path: "/", header: map[string]string{"Origin": "http://127.0.0.1:3000"}},
	} {
		if status, body := s.ofFrames(t, q); status/100 != 4 || strings.Contains(body, "secret") || strings.HasPrefix(body, "document of") || strings.Contains(body, `"key"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	resp, err := http.Get(s.own + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src "+s.frames.own+";") {
		t.Error(policy)
	}
	alone := serve(t, Options{})
	if alone.frames != nil || !strings.Contains(alone.policy, "frame-src 'none'") {
		t.Errorf("without frames: %s", alone.policy)
	}
}

// TestFramesPort: a port that is taken is replaced, and both are closed.
func TestFramesPort(t *testing.T) {
	first := framed(t, Options{})
	second := framed(t, Options{FramesPort: first.frames.listen.Addr().(*net.TCPAddr).Port})
	if first.frames.own == second.frames.own {
		t.Error("two listeners at one port")
	}
	for _, s := range []*served{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := net.Dial("tcp4", strings.TrimPrefix(s.frames.own, "http://")); err == nil {
			t.Error("the port of frames is open")
		}
	}
}
