package lists_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// subscribers open a subscription to uris as a user, and return the next URI that
// is said to have changed.
var subscribers = map[string]func(t *testing.T, s *mcp.Server, user string, scopes []string, uris ...string) func() string{
	"connection, modern": func(t *testing.T, s *mcp.Server, user string, scopes []string, uris ...string) func() string {
		c := harness.ConnectAs(t, s, user, scopes)
		c.Say(harness.Listen("1", `{"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]}`))
		c.Hear("acknowledged")
		return c.Next
	},
	"connection, legacy": func(t *testing.T, s *mcp.Server, user string, scopes []string, uris ...string) func() string {
		c := harness.ConnectAs(t, s, user, scopes)
		c.Say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{` + harness.Hello("2025-11-25") + `}}`)
		c.Hear(`"id":0`)
		c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for i, uri := range uris {
			c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%q}}`, i+1, uri))
			c.Hear(fmt.Sprintf(`"id":%d,"result"`, i+1))
		}
		return c.Next
	},
	"http, modern": func(t *testing.T, s *mcp.Server, user string, scopes []string, uris ...string) func() string {
		c := harness.WebAs(t, s, user, scopes)
		return c.Stream(http.MethodPost, harness.Listen("1", `{"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]}`),
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen").Next
	},
	"http, legacy": func(t *testing.T, s *mcp.Server, user string, scopes []string, uris ...string) func() string {
		c := harness.WebAs(t, s, user, scopes)
		c.Session = c.Send(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+harness.Hello("2025-11-25")+`}}`).Header.Get("Mcp-Session-Id")
		for _, uri := range uris {
			c.Send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":%q}}`, uri))
		}
		return c.Stream(http.MethodGet, "").Next
	},
}

// Whoever may not read a resource does not hear that it has changed, also if it
// came to be when somebody had subscribed to its URI already; others do.
func TestHearsOfWhatCameLater(t *testing.T) {
	const secret, open = "notes://secret", "notes://open"
	read := func(*mcp.Frame) (string, error) { return "", nil }
	readOne := func(*mcp.Frame, struct {
		ID string `json:"id"`
	}) (string, error) {
		return "", nil
	}
	onlyAlice := mcp.VisibleTo(func(f *mcp.Frame) bool { return strings.HasSuffix(f.Principal(), "#alice") })
	for how, later := range map[string]func() mcp.Component{
		"scopes":             func() mcp.Component { return mcp.Resource(secret, read, mcp.Scopes("notes:read")) },
		"visible":            func() mcp.Component { return mcp.Resource(secret, read, onlyAlice) },
		"scopes, template":   func() mcp.Component { return mcp.Template("notes://sec{id}", readOne, mcp.Scopes("notes:read")) },
		"visible, template":  func() mcp.Component { return mcp.Template("notes://sec{id}", readOne, onlyAlice) },
		"a filter that asks": func() mcp.Component { return mcp.Resource(secret, read) },
	} {
		for kind, subscribe := range subscribers {
			t.Run(how+"/"+kind, func(t *testing.T) {
				opts := &mcp.Options{}
				if how == "a filter that asks" {
					opts.Filter = func(f *mcp.Frame, _ mcp.Kind, name string) bool {
						return name != secret || strings.HasSuffix(f.Principal(), "#alice")
					}
				}
				s := harness.Fixture(t, opts)
				s.MustAdd(mcp.Resource(open, read))
				alice := subscribe(t, s, "alice", []string{"notes:read"}, secret, open)
				bob := subscribe(t, s, "bob", []string{"other"}, secret, open)
				nobody := subscribe(t, s, "", nil, secret, open)
				s.MustAdd(later())
				s.ResourceUpdated(secret)
				s.ResourceUpdated(open)
				if got := alice(); got != secret {
					t.Errorf("alice hears of %s first, want %s", got, secret)
				}
				for who, next := range map[string]func() string{"bob": bob, "nobody": nobody} {
					if got := next(); got != open {
						t.Errorf("%s hears of %s", who, got)
					}
				}
			})
		}
	}
}

// The closest template decides which scopes a URI needs, for reading, for
// subscribing and before middleware, which may answer from a cache: one that
// needs more is not asked for what the closest does not have.
func TestScopesOfSeveralTemplates(t *testing.T) {
	type vars struct {
		Name string `json:"name"`
	}
	for name, tt := range map[string]struct {
		close, wide  []string // scopes of the templates
		scopes       []string // of who reads
		want, absent string
	}{
		"the other needs more, and one has them": {nil, []string{"b"}, []string{"b"}, "", "secret"},
		"the other needs more":                   {nil, []string{"b"}, nil, "", "secret"},
		"the other needs the same":               {[]string{"a"}, []string{"a"}, []string{"a"}, "secret", ""},
		"the other needs less":                   {[]string{"a", "b"}, []string{"b"}, []string{"a", "b"}, "secret", ""},
		"the closest is not granted":             {[]string{"a"}, nil, []string{"b"}, "requiredScopes", "secret"},
	} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cached %v", name, cached), func(t *testing.T) {
				s := mcp.NewServer(mcp.Info{Name: "scopes", Version: "1"}, nil)
				var kept protocol.Result
				if cached { // as one that looks at the URI alone
					s.Use(func(next mcp.Handler) mcp.Handler {
						return func(f *mcp.Frame) (protocol.Result, error) {
							if kept != nil && f.Request().Method == protocol.MethodResourcesRead {
								return kept, nil
							}
							result, err := next(f)
							if err == nil && f.Request().Method == protocol.MethodResourcesRead {
								kept = result
							}
							return result, err
						}
					})
				}
				option := func(scopes []string) []mcp.ResourceOption {
					if scopes == nil {
						return nil
					}
					return []mcp.ResourceOption{mcp.Scopes(scopes...)}
				}
				s.MustAdd(
					mcp.Template("db://public/{name}", func(*mcp.Frame, vars) (string, error) { return "", mcp.ErrNotFound }, option(tt.close)...),
					mcp.Template("db://{+name}", func(*mcp.Frame, vars) (string, error) { return "secret", nil }, option(tt.wide)...),
				)
				call := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"db://public/x",$META}}`
				for _, scopes := range [][]string{{"a", "b"}, tt.scopes} { // the first may fill the cache
					c := harness.ConnectAs(t, s, "alice", scopes)
					c.Say(harness.Expand(call, protocol.Latest))
					got := c.Hear(`"id":1`)
					if len(scopes) == len(tt.scopes) && (!strings.Contains(got, tt.want) || tt.absent != "" && strings.Contains(got, tt.absent)) {
						t.Errorf("with %q: %s; want %q and not %q", scopes, got, tt.want, tt.absent)
					}
				}
			})
		}
	}
}

// A connection of HTTP+SSE runs what is POSTed as who POSTs it: with the scopes
// of that token, and not at all for another principal than opened the stream.
func TestPostedAs(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) {
		return fmt.Sprintf("%s may write: %v, %q, %v", f.Principal(), f.HasScope("write"), f.HTTPRequest().Header.Get("X-Scopes"), f.HTTPRequest().Context().Err()), nil
	}), mcp.Tool("write", func(*mcp.Frame, struct{}) (string, error) { return "written", nil }, mcp.Scopes("write")))
	server := httptest.NewServer(harness.AsHeaders(harness.SSEHandler(s)))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct{ opened, posted, want, written string }{
		"more scopes":  {"", "write", `#alice may write: true, \"write\", \u003cnil\u003e`, "written"},
		"fewer scopes": {"write", "", `#alice may write: false, \"\", \u003cnil\u003e`, "requiredScopes"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Accept": {"text/event-stream"}, "X-User": {"alice"}, "X-Scopes": {tt.opened}}
			res, err := harness.OwnHTTP(t).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			stream := &harness.Heard{T: t, Lines: bufio.NewScanner(res.Body)}
			var address string
			for address == "" && stream.Lines.Scan() {
				if data, ok := strings.CutPrefix(stream.Lines.Text(), "data: "); ok {
					address = data
				}
			}
			address = server.URL + "/" + strings.TrimPrefix(address, "/")
			post := func(line string, want int, user, scopes string) {
				t.Helper()
				if status, body := harness.PostTo(t, address, line, http.Header{"X-User": {user}, "X-Scopes": {scopes}}); status != want {
					t.Fatalf("as %s: %d, %s", user, status, body)
				}
			}
			post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+harness.Hello("2024-11-05")+`}}`, http.StatusAccepted, "alice", tt.opened)
			stream.Hear(`"id":0`)
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}`
			post(fmt.Sprintf(call, "who"), http.StatusNotFound, "bob", "write")
			post(fmt.Sprintf(call, "who"), http.StatusNotFound, "", "")
			post(fmt.Sprintf(call, "who"), http.StatusAccepted, "alice", tt.posted)
			if got := stream.Hear(`"id":1`); !strings.Contains(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(got), tt.want) {
				t.Errorf("got %s; want %s", got, tt.want)
			}
			post(fmt.Sprintf(call, "write"), http.StatusAccepted, "alice", tt.posted)
			stream.Hear(tt.written)
		})
	}
}

// One principal has a share of the connections and of the subscriptions; others
// find room beside it.
func TestSharesOfConnections(t *testing.T) {
	for kind, handler := range map[string]func(s *mcp.Server) http.Handler{
		"sse":          harness.SSEHandler,
		"websocket":    func(s *mcp.Server) http.Handler { return websocket.Handler(s) },
		"subscription": (*mcp.Server).Handler,
	} {
		t.Run(kind, func(t *testing.T) {
			s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 4, ConnectionsPerPrincipal: 1, Subscriptions: 4, SubscriptionsPerPrincipal: 1}})
			server := httptest.NewServer(harness.AsHeaders(handler(s)))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			open := func(user string) (status int, body string) {
				t.Helper()
				ctx, cancel := context.WithCancel(context.Background())
				t.Cleanup(cancel)
				method, header, text := http.MethodGet, http.Header{"Accept": {"text/event-stream"}}, ""
				switch kind {
				case "websocket":
					header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
				case "subscription":
					method, text = http.MethodPost, harness.Listen("1", `{"toolsListChanged":true}`)
					header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
						"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}
				}
				header.Set("X-User", user)
				r, err := http.NewRequestWithContext(ctx, method, server.URL, strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = header
				res, err := harness.OwnHTTP(t).Transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { res.Body.Close() })
				if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.StatusCode == http.StatusSwitchingProtocols {
					return http.StatusOK, ""
				}
				lines := bufio.NewScanner(res.Body)
				lines.Scan()
				return res.StatusCode, lines.Text()
			}
			for _, step := range []struct{ user, refused string }{
				{"alice", ""}, {"alice", "this user has 1"}, {"bob", ""}, {"alice", "this user has 1"}, {"", ""}, {"", ""}, {"carol", "the server has 4"},
			} {
				status, body := open(step.user)
				if (step.refused != "") != (body != "") || !strings.Contains(body, step.refused) {
					t.Errorf("%q: %d %s; want %q", step.user, status, body, step.refused)
				}
			}
		})
	}
}
