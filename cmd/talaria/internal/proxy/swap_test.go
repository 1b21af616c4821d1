package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// release is a version of a server. Its tool slow ends when gate is closed.
type release struct {
	*mcp.Server
	gate chan struct{}
}

func newRelease(name string, prompts bool) *release {
	r := &release{mcp.NewServer(mcp.Info{Name: "x", Version: name}, &mcp.Options{Instructions: "of " + name}), make(chan struct{})}
	r.MustAdd(
		mcp.Tool("version", func(f *mcp.Frame, _ struct{}) (string, error) {
			return name, errors.Join(f.Log(protocol.LevelInfo, "info of "+name, "x"), f.Log(protocol.LevelError, "error of "+name, "x"))
		}, mcp.Doc("says which one it is")),
		mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) {
			select {
			case <-r.gate:
				return "slow " + name, nil
			case <-f.Done():
				return "", context.Cause(f)
			}
		}, mcp.Doc("waits")),
		mcp.Resource("note://1", func(*mcp.Frame) (string, error) { return name, nil }))
	if prompts {
		r.MustAdd(mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { return name, nil }))
	}
	return r
}

// A server is replaced under its clients: calls in progress end at the old one, or after
// Grace, and all else continues at the new one.
func TestSwap(t *testing.T) {
	for _, one := range []bool{true, false} {
		for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20250618, protocol.V20260728} {
			t.Run(fmt.Sprintf("%s-%v", rev, one), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testSwap(t, rev, one) })
			})
		}
	}
}

func testSwap(t *testing.T, rev protocol.Revision, alone bool) {
	first, second := newRelease("first", false), newRelease("second", true)
	p := start(t, Options{One: alone, Logs: true, Connect: connect(t, first.Server, rev)})
	var mu sync.Mutex
	var heard []string
	opts := &client.Options{Revisions: []protocol.Revision{rev}, OnNotification: func(n client.Notification) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, n.Method+string(n.Params))
	}}
	c := one(t, p, opts)
	call := func(tool string) (string, error) {
		r, err := c.Call(t.Context(), tool, nil)
		if err != nil {
			return "", err
		}
		return r.Text(), nil
	}
	version := func(want string) {
		t.Helper()
		if got, err := call("version"); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if err := c.SetLevel(t.Context(), protocol.LevelError); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://1"}, ToolsListChanged: true}, nil); err != nil {
		t.Fatal(err)
	}
	version("first")
	slow := make(chan string, 1)
	last := func() {
		text, err := call("slow")
		slow <- fmt.Sprint(text, err)
	}
	go last()
	synctest.Wait()

	broken := errors.New("it does not start")
	if err := p.Swap(t.Context(), func(context.Context, *client.Options) (*client.Client, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	unlisted := newRelease("unlisted", false)
	unlisted.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Method == protocol.MethodToolsList {
				return nil, errors.New("no list")
			}
			return next(f)
		}
	})
	if err := p.Swap(t.Context(), connect(t, unlisted.Server, rev)); err == nil {
		t.Error("a server without a list is taken")
	}
	version("first")

	if err := p.Swap(t.Context(), connect(t, second.Server, rev)); err != nil {
		t.Fatal(err)
	}
	version("second")
	select {
	case got := <-slow:
		t.Errorf("the call in progress has ended: %s", got)
	default:
	}
	close(first.gate)
	if got := <-slow; got != "slow first<nil>" {
		t.Errorf("the call in progress: got %s", got)
	}
	second.ResourceUpdated("note://1")
	synctest.Wait()
	mu.Lock()
	wants := []string{protocol.MethodToolsChanged, protocol.MethodResourceUpdated}
	if !rev.Modern() { // whose log messages belong to requests
		wants = append(wants, "error of first", "error of second")
	}
	for _, want := range wants {
		if !slices.ContainsFunc(heard, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("the client receives no %s: %q", want, heard)
		}
	}
	if text := fmt.Sprint(heard); strings.Contains(text, "info of") {
		t.Errorf("the log level is lost: %s", text)
	}
	mu.Unlock()
	late := one(t, p, opts)
	if s := late.Server(); s.Info.Version != "second" || s.Instructions != "of second" || s.Capabilities.Prompts == nil || s.Capabilities.Logging == nil {
		t.Errorf("a new client receives %+v", s)
	}

	go last()
	synctest.Wait()
	begin := time.Now()
	third := newRelease("third", true)
	if err := p.Swap(t.Context(), connect(t, third.Server, rev)); err != nil {
		t.Fatal(err)
	}
	version("third")
	if got := <-slow; !strings.Contains(got, errReplaced.Error()) || time.Since(begin) != Grace {
		t.Errorf("after %s: got %s", time.Since(begin), got)
	}
	go last()
	synctest.Wait()
	if err := p.Swap(t.Context(), connect(t, newRelease("fourth", true).Server, rev)); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	if err := p.Close(); err != nil || time.Since(begin) >= Grace {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	<-slow
}

// Calls that run all the time notice nothing of servers that are replaced, and neither do
// subscriptions that come in between.
func TestSwapUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, Options{Connect: connect(t, newRelease("0", true).Server, 0)})
		var calls sync.WaitGroup
		ended := make(chan struct{})
		for n, rev := range []protocol.Revision{protocol.V20250618, protocol.V20250618, protocol.V20260728} {
			c := one(t, p, &client.Options{Revisions: []protocol.Revision{rev}})
			calls.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-ended:
						return
					case <-time.After(time.Millisecond):
					}
					if _, err := c.Call(t.Context(), "version", nil); err != nil {
						t.Errorf("client %d, call %d: %v", n, i, err)
						return
					}
					if sub, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://1"}}, nil); err != nil {
						t.Errorf("client %d, subscription %d: %v", n, i, err)
						return
					} else if err := sub.Close(); err != nil {
						t.Errorf("client %d, end of subscription %d: %v", n, i, err)
						return
					}
				}
			})
		}
		for i := range 50 {
			time.Sleep(5 * time.Millisecond)
			if err := p.Swap(t.Context(), connect(t, newRelease(fmt.Sprint(i+1), true).Server, 0)); err != nil {
				t.Fatal(err)
			}
		}
		close(ended)
		calls.Wait()
		if err := p.Close(); err != nil { // the cleanup of connect waits for it
			t.Error(err)
		}
	})
}
