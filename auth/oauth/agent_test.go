package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLoopback goes through a whole login with a real redirect to the loopback
// server, which others disturb.
func TestLoopback(t *testing.T) {
	w := newWorld(t)
	store := NewMemoryStore()
	var uris []string
	prompted := 0
	browse := func(ctx context.Context, address string) error {
		asked, err := url.Parse(address)
		if err != nil {
			return err
		}
		uri := asked.Query().Get("redirect_uri")
		uris = append(uris, uri)
		for _, wrong := range []string{"?code=evil&state=wrong", "?code=evil", "/more?state=" + asked.Query().Get("state")} {
			resp, err := http.Get(uri + wrong)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("%s is taken for an answer", wrong)
			}
		}
		rebound, _ := http.NewRequest(http.MethodGet, uri+"?code=evil&state="+asked.Query().Get("state"), nil)
		rebound.Host = "evil.example"
		resp, err := http.DefaultClient.Do(rebound)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("a request for another host gets status %d", resp.StatusCode)
		}
		resp, err = http.Get(address) // follows the redirect
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		page, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || !strings.Contains(string(page), "You can close this page") || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the user sees %d %s", resp.StatusCode, page)
		}
		return nil
	}
	grant := &AuthorizationCode{Agent: &Loopback{Browse: browse, Prompt: func(string) { prompted++ }}}
	mustCall(t, w.client(&Options{Grant: grant, Store: store}))
	again := w.client(&Options{Grant: grant, Store: store})
	if err := again.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(uris) != 2 || uris[0] != uris[1] || prompted != 2 {
		t.Errorf("redirect URIs %q, %d prompts", uris, prompted)
	}
	if u, err := url.Parse(uris[0]); err != nil || u.Hostname() != "127.0.0.1" || u.Path != "/callback" {
		t.Errorf("redirect URI %q", uris[0])
	}
	if n := w.count("issuer POST /register"); n != 1 {
		t.Errorf("registered %d times", n)
	}
	if _, err := http.Get(uris[0]); err == nil {
		t.Error("the loopback server still listens")
	}
}

func TestLoopbackThatFails(t *testing.T) {
	w := newWorld(t)
	fails := func(context.Context, string) error { return errors.New("no display") }
	_, _, err := call(w.client(&Options{Grant: &AuthorizationCode{Agent: &Loopback{Browse: fails}}}))
	if err == nil || !strings.Contains(err.Error(), "no display") || !strings.Contains(err.Error(), "Manual") {
		t.Errorf("got %v", err)
	}
	ignores := func(context.Context, string) error { return nil }
	_, _, err = call(w.client(&Options{Grant: &AuthorizationCode{Agent: &Loopback{Browse: ignores}}, LoginTimeout: 1}))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// A port that is taken is not given up for another one: it is registered.
	v, err := (&Loopback{}).Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	taken := v.(*loopbackVisit)
	port := taken.listener.Addr().(*net.TCPAddr).Port
	if _, err := (&Loopback{Port: port}).Open(t.Context(), nil); err == nil {
		t.Error("one port for two")
	}
	if other, err := (&Loopback{}).Open(t.Context(), []string{v.RedirectURI(), "http://evil.example:80/callback"}); err != nil {
		t.Error(err)
	} else if other.Close(); other.RedirectURI() == v.RedirectURI() {
		t.Error("one port for two")
	}
}

func TestOpenBrowser(t *testing.T) {
	for _, address := range []string{"file:///etc/passwd", "javascript:alert(1)", "-version", "%"} {
		if err := OpenBrowser(t.Context(), address); err == nil || !strings.Contains(err.Error(), "http and https") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestManual(t *testing.T) {
	follow := func(t *testing.T, w *world, bend func(string) string) (*Client, *bytes.Buffer) {
		var shown bytes.Buffer
		in, paste := io.Pipe()
		ask := AskUser(in, &shown)
		manual := &Manual{Ask: func(ctx context.Context, address string) (string, error) {
			redirected, err := (&consent{}).Authorize(ctx, address)
			if err != nil {
				return "", err
			}
			go func() { _, _ = io.WriteString(paste, " "+bend(redirected)+" \n") }()
			return ask(ctx, address)
		}}
		return w.client(&Options{Grant: &AuthorizationCode{Agent: manual}}), &shown
	}
	t.Run("pasted", func(t *testing.T) {
		w := newWorld(t)
		c, shown := follow(t, w, func(s string) string { return s })
		mustCall(t, c)
		if !strings.Contains(shown.String(), w.issuer.URL+"/authorize?") {
			t.Errorf("shown %q", shown)
		}
	})
	wrong := map[string]struct {
		bend func(string) string
		want string
	}{
		"code alone":    {func(s string) string { u, _ := url.Parse(s); return u.Query().Get("code") }, "did not come to the redirect URI"},
		"another place": {func(s string) string { return strings.Replace(s, "127.0.0.1", "evil.example", 1) }, "did not come to the redirect URI"},
		"nothing":       {func(string) string { return "" }, "no address was given"},
		"no URL":        {func(string) string { return "http://%zz" }, "is no URL"},
	}
	for name, test := range wrong {
		t.Run(name, func(t *testing.T) {
			c, _ := follow(t, newWorld(t), test.bend)
			_, _, err := call(c)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "code-") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := (&Manual{RedirectURI: "http://evil.example/", Ask: AskUser(nil, nil)}).Open(t.Context(), nil); err == nil {
		t.Error("a redirect over http to another host is taken")
	}
	if _, err := (&Manual{}).Open(t.Context(), nil); err == nil {
		t.Error("Manual without Ask is taken")
	}
}
