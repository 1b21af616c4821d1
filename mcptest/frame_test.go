package mcptest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A Frame for a test has all that handlers use, without a server of the test's.
func TestFrame(t *testing.T) {
	count := mcp.NewKey[int]("count")
	var mu sync.Mutex
	var said []string
	handler := func(f *mcp.Frame, _ struct{}) (string, error) {
		if err := f.RequireScopes("write"); err != nil {
			return "", err
		}
		if err := f.Progress(1, 2, "asking"); err != nil {
			return "", err
		}
		name, err := mcp.Elicit[nameForm](f, "name", "Who are you?")
		if err != nil {
			return "", err
		}
		n := count.Update(f, func(n int) int { return n + 1 })
		return strings.Repeat(f.ClientInfo().Name+" "+f.Principal()+" "+name.Value.Name+" "+f.Header("X-Tag")+";", n), f.Log(protocol.LevelInfo, "done")
	}
	for _, tt := range []struct {
		name    string
		options []mcptest.Option
		tag     string
	}{{"pipe", nil, ""}, {"http", []mcptest.Option{mcptest.OverHTTP(), mcptest.Header("X-Tag", "blue")}, "blue"}} {
		t.Run(tt.name, func(t *testing.T) {
			said = nil
			f := mcptest.Frame(t, append(tt.options, mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"write"}}), mcptest.Accepting(nameForm{"Ada"}),
				mcptest.Info(mcp.Info{Name: "host", Version: "1"}), mcptest.Trace(func(fromServer bool, message []byte) {
					mu.Lock()
					defer mu.Unlock()
					if fromServer {
						said = append(said, string(message))
					}
				}))...)
			count.Set(f, 1)
			got, err := handler(f, struct{}{})
			if want := strings.Repeat("host #alice Ada "+tt.tag+";", 2); err != nil || got != want {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
			if f.Revision() != protocol.LatestLegacy || f.Err() != nil {
				t.Errorf("revision %v, %v", f.Revision(), f.Err())
			}
			mu.Lock()
			defer mu.Unlock()
			if all := strings.Join(said, "\n"); !strings.Contains(all, `"progress":1,"total":2,"message":"asking"`) || !strings.Contains(all, "Who are you?") {
				t.Errorf("the server said %s", all)
			}
		})
	}
	if _, err := handler(mcptest.Frame(t), struct{}{}); err == nil || !strings.Contains(err.Error(), "write") {
		t.Errorf("a client without scopes: %v", err)
	}
}

// A Frame lasts as long as the test, whatever the timeouts of a client, and two of
// them share nothing.
func TestFrameLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, other := mcptest.Frame(t), mcptest.Frame(t, mcptest.Revision(protocol.V20260728))
		f.Set("a", 1)
		time.Sleep(24 * time.Hour)
		if f.Err() != nil || other.Err() != nil || other.Revision() != protocol.V20260728 {
			t.Errorf("after a day: %v, %v, %v", f.Err(), other.Err(), other.Revision())
		}
		if _, there := other.Get("a"); there {
			t.Error("two Frames share a value")
		}
	})
}

// A handler may end its session, for a reason or none, and the test does not fail.
func TestFrameEndsSession(t *testing.T) {
	for _, reason := range []error{nil, errors.New("signed out")} {
		for _, options := range [][]mcptest.Option{nil, {mcptest.OverHTTP()}} {
			t.Run(fmt.Sprint(reason, len(options)), func(t *testing.T) {
				if err := mcptest.Frame(t, options...).EndSession(reason); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A session that a handler or the program ends is no failure of the test, over any
// transport.
func TestSessionEnds(t *testing.T) {
	for _, reason := range []error{nil, errors.New("signed out"), mcp.ErrSessionIdle} {
		for _, options := range [][]mcptest.Option{nil, {mcptest.OverHTTP()}} {
			t.Run(fmt.Sprint(reason, len(options)), func(t *testing.T) {
				quiet := zerolog.Nop()
				s := mcp.NewServer(mcp.Info{Name: "ending", Version: "1"}, &mcp.Options{Logger: &quiet})
				s.MustAdd(mcp.Tool("leave", func(f *mcp.Frame, _ struct{}) (string, error) { return "left", f.EndSession(reason) }),
					mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) { return f.SessionID(), nil }))
				for _, by := range []string{"handler", "program"} {
					c := mcptest.New(t, s, append([]mcptest.Option{mcptest.Revision(protocol.LatestLegacy)}, options...)...)
					if by == "handler" {
						_, _ = c.TryCall("leave", nil) // which may not be answered any more
					} else if err := s.WithSession(t.Context(), c.Call("id", nil).Text(), func(f *mcp.Frame) error { return f.EndSession(reason) }); err != nil {
						t.Error(err)
					}
					c.Close()
				}
			})
		}
	}
}
