package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// NotifyAll carries the params of every notification, or returns an error.
func TestNotifyAllCarries(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		params any
		want   string // in what clients receive
	}{
		"a list":                  {protocol.MethodToolsChanged, nil, ""},
		"a list with _meta":       {protocol.MethodToolsChanged, map[string]any{"_meta": map[string]any{"acme/why": "deploy"}}, `"acme/why":"deploy"`},
		"a list with a member":    {protocol.MethodPromptsChanged, map[string]any{"why": "deploy"}, `"why":"deploy"`},
		"a resource":              {protocol.MethodResourceUpdated, map[string]any{"uri": "mem:counter"}, `"uri":"mem:counter"`},
		"a resource with a title": {protocol.MethodResourceUpdated, map[string]any{"title": "Counter", "uri": "mem:counter"}, `"title":"Counter"`},
		"a resource with _meta":   {protocol.MethodResourceUpdated, map[string]any{"uri": "mem:counter", "_meta": map[string]any{"acme/n": 1}}, `"acme/n":1`},
		"no list and no resource": {"notifications/acme/row", map[string]any{"n": 1}, `"n":1`},
	} {
		for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
			t.Run(name+"/"+rev.String(), func(t *testing.T) {
				s := harness.Bare(mcp.Options{})
				s.MustAdd(mcp.Tool("quick", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
					mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
					mcp.Resource("mem:counter", func(*mcp.Frame) (string, error) { return "1", nil }))
				got := make(chan string, 10)
				c, err := client.Connect(t.Context(), client.Local(s.ServeConn), &client.Options{Revisions: []protocol.Revision{rev}, OnNotification: func(n client.Notification) {
					got <- n.Method + string(n.Params)
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				sub, err := c.Listen(t.Context(), client.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourceSubscriptions: []string{"mem:counter"}}, func(n client.Notification) {
					got <- n.Method + string(n.Params)
				})
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Close()
				if err := s.NotifyAll(tt.method, tt.params); rev.Modern() && strings.Contains(tt.method, "acme") {
					if !errors.Is(err, mcp.ErrSessionNotFound) || !strings.Contains(err.Error(), "Frame.Notify") {
						t.Errorf("%v, want an error that names Frame.Notify", err)
					}
					return
				} else if err != nil {
					t.Fatal(err)
				}
				if text := harness.Await(t, got, tt.method); !strings.Contains(text, tt.method) || !strings.Contains(text, tt.want) {
					t.Errorf("got %s, want %s", text, tt.want)
				}
			})
		}
	}
	s := harness.Bare(mcp.Options{Store: scale.NewLocal(), StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}})
	defer s.Shutdown(t.Context())
	if err := s.NotifyAll(protocol.MethodToolsChanged, map[string]any{"_meta": map[string]any{"a/b": 1}}); err == nil || !strings.Contains(err.Error(), "other replicas") {
		t.Errorf("with a store: %v", err)
	}
}

// Whoever notifies sessions whose clients do not read gets an error, and the log has a
// line for each such session.
func TestNotifyAllBehind(t *testing.T) {
	var log harness.LogText
	s := mcp.NewServer(mcp.Info{Name: "behind", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
	d := harness.Direct{T: t, S: s}
	for range 3 {
		d.Do("POST", d.Open("client"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		err = s.NotifyAll("notifications/acme/row", map[string]any{"n": n})
	}
	if !errors.Is(err, mcp.ErrSlowClient) || !strings.Contains(err.Error(), "3 sessions") {
		t.Errorf("NotifyAll: %v", err)
	}
	if err := s.NotifyAll(protocol.MethodToolsChanged, nil); err != nil {
		t.Errorf("a list: %v", err)
	}
	if n := strings.Count(log.String(), "messages were dropped"); n != 3 {
		t.Errorf("%d lines in the log, want 3:\n%s", n, log.String())
	}
}

// Frame.Notify sends a notification of the program's own during a request, in every
// revision and over every transport.
func TestFrameNotify(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		for _, tr := range harness.TransportsOf(rev) {
			t.Run(rev.String()+"/"+tr.Name, func(t *testing.T) {
				s := harness.Fixture(t, nil)
				s.MustAdd(mcp.Tool("rows", func(f *mcp.Frame, _ struct{}) (string, error) {
					for _, method := range []string{"rows", "notifications/message", "notifications/tools/list_changed", "notifications/"} {
						if f.Notify(method, nil) == nil {
							return "", errors.New(method + " was sent")
						}
					}
					return "done", errors.Join(f.Notify("notifications/acme/row", map[string]int{"n": 1}), f.Notify("notifications/acme/rows", nil))
				}))
				h := harness.Join(t, tr, rev, s).Hear()
				h.Send("7", "tools/call", `"name":"rows"`)
				for _, want := range []string{`"method":"notifications/acme/row","params":{"n":1}}`, `"method":"notifications/acme/rows"}`, `"text":"done"`} {
					select {
					case got := <-h.Heard:
						if !strings.Contains(got, want) {
							t.Errorf("got %s, want %s", got, want)
						}
					case <-time.After(harness.Patience):
						t.Fatalf("no %s", want)
					}
				}
			})
		}
	}
}
