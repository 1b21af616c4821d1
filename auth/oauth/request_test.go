package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestConcurrentRequests: requests that are refused together visit the user
// once, and share what comes of it.
func TestConcurrentRequests(t *testing.T) {
	const n = 20
	for _, denied := range []bool{false, true} {
		t.Run(fmt.Sprintf("denied=%t", denied), func(t *testing.T) {
			w := newWorld(t)
			var refused sync.WaitGroup // all requests are out before the first goes on
			refused.Add(n)
			base := w.mcp
			w.handlers["server /mcp"] = func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" {
					refused.Done()
					refused.Wait()
				}
				base(rw, r)
			}
			if denied {
				w.answer = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
			}
			c := w.client(&Options{Transport: &http.Transport{MaxIdleConnsPerHost: n}})
			errs := make([]error, n)
			var calls sync.WaitGroup
			for i := range n {
				calls.Go(func() { _, _, errs[i] = call(c) })
			}
			calls.Wait()
			for _, err := range errs {
				if denied != hasCode(err, "access_denied") || !denied && err != nil {
					t.Errorf("got %v", err)
				}
			}
			if visits := w.count("issuer GET /authorize"); visits != 1 {
				t.Errorf("%d requests visited the user %d times", n, visits)
			}
		})
	}
}

// TestGivenUp: who gives up waiting takes nobody else with him.
func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	var visits atomic.Int32
	waiting := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	patient := &consent{}
	c := w.client(&Options{Grant: &AuthorizationCode{Agent: agentFunc(func(ctx context.Context, address string) (string, error) {
		if visits.Add(1) == 1 {
			close(waiting)
			<-ctx.Done()
			return "", ctx.Err()
		}
		return patient.Authorize(ctx, address)
	})}})
	first := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, c.server.String(), nil)
		resp, err := c.HTTPClient().Do(req)
		if err == nil {
			resp.Body.Close()
		}
		first <- err
	}()
	<-waiting
	second := make(chan error, 1)
	go func() { _, _, err := call(c); second <- err }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
}

type agentFunc func(ctx context.Context, address string) (string, error)

func (f agentFunc) Open(context.Context, []string) (Visit, error) { return f, nil }
func (f agentFunc) RedirectURI() string                           { return consentURI }
func (f agentFunc) Close() error                                  { return nil }
func (f agentFunc) Authorize(ctx context.Context, address string) (string, error) {
	return f(ctx, address)
}

// TestOtherOrigins: no token leaves for where it was not issued for.
func TestOtherOrigins(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization")+r.Header.Get("DPoP"))
		w.WriteHeader(401)
	}))
	defer other.Close()
	w := newWorld(t)
	c := w.client(nil)
	mustCall(t, c)
	w.handlers["server /mcp"] = redirect(other.URL + "/steal")
	if status, _, err := call(c); status != 401 || err != nil {
		t.Errorf("got %d, %v", status, err)
	}
	resp, err := c.HTTPClient().Get(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(got) != 2 || got[0]+got[1] != "" {
		t.Errorf("another origin got %q", got)
	}
	if visits := w.count("issuer GET /authorize"); visits != 1 {
		t.Errorf("a challenge of another origin was answered")
	}
}

// TestOwnHeader: who sets a token himself is left alone.
func TestOwnHeader(t *testing.T) {
	w := newWorld(t)
	req, _ := http.NewRequest(http.MethodPost, w.server.URL+"/mcp", nil)
	req.Header.Set("Authorization", "Bearer mine")
	resp, err := w.client(nil).HTTPClient().Do(req)
	if err != nil || resp.StatusCode != 401 {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp.Body.Close()
	if len(w.log) != 1 {
		t.Errorf("asked %q", w.log)
	}
}

// TestBodies: a request is sent again whole, even if nobody can rewind it.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil)
	req, _ := http.NewRequest(http.MethodPost, w.server.URL+"/mcp", io.MultiReader(strings.NewReader("wor"), strings.NewReader("ld")))
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello world" {
		t.Errorf("got %q", body)
	}
	req, _ = http.NewRequest(http.MethodPost, w.server.URL+"/mcp", io.MultiReader(strings.NewReader(strings.Repeat("x", maxReplay+1))))
	if _, err := c.HTTPClient().Do(req); err == nil || !strings.Contains(err.Error(), "GetBody") {
		t.Errorf("got %v", err)
	}
}

// TestForeignChallenge: who asks for another scheme does not get a login.
func TestForeignChallenge(t *testing.T) {
	w := newWorld(t)
	w.challenge = func(h http.Header) { h.Set("WWW-Authenticate", `Basic realm="x"`) }
	if status, _, err := call(w.client(nil)); status != 401 || err != nil || len(w.log) != 1 {
		t.Errorf("got %d, %v after %q", status, err, w.log)
	}
}

// A refusal whose body does not end is answered all the same.
func TestRefusalWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, end := io.Pipe()
		defer end.Close()
		discard(&http.Response{Body: body}) // returns
	})
}
