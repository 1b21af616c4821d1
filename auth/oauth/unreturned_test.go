package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
	return direct.RoundTrip(r)
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

// snareText is a text to read, and takes any text that is written.
type snareText struct {
	*strings.Reader
	*snare
}

func (r snareText) Read(p []byte) (int, error)  { r.at("AskUser, in"); return r.Reader.Read(p) }
func (r snareText) Write(p []byte) (int, error) { r.at("AskUser, out"); return len(p), nil }

// snareGrants returns the grants that call users' code, by the places where
// they do.
func snareGrants(t *testing.T, s *snare) map[string]Grant {
	provider := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		writeJSON(rw, 200, map[string]any{"access_token": "id-jag", "token_type": "N_A", "issued_token_type": tokenTypeIDJAG})
	}))
	t.Cleanup(provider.Close)
	user := &consent{}
	workload := &WorkloadIdentity{Assertion: func(context.Context, string) (string, error) { s.at("WorkloadIdentity.Assertion"); return "jwt", nil }}
	enterprise := &EnterpriseManaged{
		Provider: provider.URL, TokenEndpoint: provider.URL, Client: Registration{ClientID: "sso", ClientSecret: "s"},
		Assertion: func(context.Context) (string, error) { s.at("EnterpriseManaged.Assertion"); return "id-token", nil },
	}
	browser := &AuthorizationCode{Agent: &Loopback{
		Prompt: func(string) { s.at("Loopback.Prompt") },
		Browse: func(_ context.Context, address string) error {
			s.at("Loopback.Browse")
			resp, err := http.Get(address) // follows the redirect
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
	}}
	manual := &AuthorizationCode{Agent: &Manual{Ask: func(ctx context.Context, address string) (string, error) {
		s.at("Manual.Ask")
		redirected, err := user.Authorize(ctx, address)
		if err != nil {
			return "", err
		}
		text := snareText{strings.NewReader(redirected + "\n"), s}
		return AskUser(text, text)(ctx, address)
	}}}
	return map[string]Grant{
		"WorkloadIdentity.Assertion": workload, "EnterpriseManaged.Assertion": enterprise,
		"Loopback.Browse": browser, "Loopback.Prompt": browser, "Manual.Ask": manual, "AskUser, in": manual, "AskUser, out": manual,
	}
}

// Users' code that does not return takes the request with it that called it, and
// that alone: requests that wait for the same authorization go on, and the next
// one is served.
func TestCodeOfAuthorizationThatDoesNotReturn(t *testing.T) {
	for _, place := range []string{
		"Transport", "Outbound", "Store.Load", "Store.Update", "Store.Update, in it", "Open", "RedirectURI", "Authorize", "Close", "ChooseIssuer",
		"WorkloadIdentity.Assertion", "EnterpriseManaged.Assertion", "Loopback.Browse", "Loopback.Prompt", "Manual.Ask", "AskUser, in", "AskUser, out",
	} {
		for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
			t.Run(place+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := &snare{place: place, way: way}
				grant := snareGrants(t, s)[place]
				if grant == nil {
					grant = &AuthorizationCode{Agent: &snareUser{snare: s}}
				}
				options := &Options{
					Grant: grant, Transport: snareWire{s, "Transport"}, Outbound: snareWire{s, "Outbound"},
					Store:        snareStore{NewMemoryStore(), s},
					ChooseIssuer: func(issuers []string) (string, error) { s.at("ChooseIssuer"); return issuers[0], nil },
				}
				if _, ok := grant.(*EnterpriseManaged); ok {
					options.Clients = []Registration{{Issuer: w.issuer.URL, ClientID: "app", ClientSecret: "s"}}
				}
				c := w.client(options)
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
