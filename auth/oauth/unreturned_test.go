package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// snare is users' code that does not return at one of its places while it is
// armed.
type snare struct {
	armed  atomic.Bool
	place  string
	way    func()
	sprung atomic.Int32
}

func (s *snare) at(place string) {
	if s.armed.Load() && s.place == place {
		s.sprung.Add(1)
		s.way()
	}
}

type snareWire struct {
	*snare
	place string
}

func (w snareWire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.at(w.place)
	return http.DefaultTransport.RoundTrip(r)
}

type snareStore struct {
	Store
	*snare
}

func (s snareStore) Load(ctx context.Context, key string) (json.RawMessage, error) {
	s.at("Store.Load")
	return s.Store.Load(ctx, key)
}

func (s snareStore) Update(ctx context.Context, key string, change func(json.RawMessage) (json.RawMessage, error)) error {
	s.at("Store.Update")
	return s.Store.Update(ctx, key, func(old json.RawMessage) (json.RawMessage, error) {
		s.at("Store.Update, in it")
		return change(old)
	})
}

// snareUser is a UserAgent and its Visit.
type snareUser struct {
	consent
	*snare
}

func (u *snareUser) Open(context.Context, []string) (Visit, error) { u.at("Open"); return u, nil }
func (u *snareUser) RedirectURI() string                           { u.at("RedirectURI"); return u.consent.RedirectURI() }
func (u *snareUser) Close() error                                  { u.at("Close"); return nil }
func (u *snareUser) Authorize(ctx context.Context, address string) (string, error) {
	u.at("Authorize")
	return u.consent.Authorize(ctx, address)
}

// Users' code that does not return takes the request with it that called it, and
// that alone: requests that wait for the same authorization go on, and the next
// one is served.
func TestCodeOfAuthorizationThatDoesNotReturn(t *testing.T) {
	for _, place := range []string{
		"Transport", "Outbound", "Store.Load", "Store.Update", "Store.Update, in it", "Open", "RedirectURI", "Authorize", "Close", "ChooseIssuer",
	} {
		for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
			t.Run(place+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := &snare{place: place, way: way}
				c := w.client(&Options{
					Grant: &AuthorizationCode{Agent: &snareUser{snare: s}}, Transport: snareWire{s, "Transport"}, Outbound: snareWire{s, "Outbound"},
					Store:        snareStore{NewMemoryStore(), s},
					ChooseIssuer: func(issuers []string) (string, error) { s.at("ChooseIssuer"); return issuers[0], nil },
				})
				w.resource = func(doc map[string]any) {
					doc["authorization_servers"] = []string{w.issuer.URL, w.issuer.URL + "/other"}
				}
				s.armed.Store(true)
				var calls sync.WaitGroup
				for range 3 {
					calls.Go(func() {
						defer func() {
							if value := recover(); value != nil && value != "pa55phrase" {
								t.Errorf("panics with %v", value)
							}
						}()
						if _, _, err := call(c); err != nil && strings.Contains(err.Error(), "pa55phrase") {
							t.Errorf("the error is %v", err)
						}
					})
				}
				over := make(chan struct{})
				go func() { calls.Wait(); close(over) }()
				select {
				case <-over:
				case <-time.After(20 * time.Second):
					t.Fatal("requests wait for one that will not come back")
				}
				if s.sprung.Load() == 0 {
					t.Fatal("it was not called")
				}
				s.armed.Store(false)
				mustCall(t, c)
			})
		}
	}
}
