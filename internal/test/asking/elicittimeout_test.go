package asking_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// slow returns a script that tells when it was asked, and answers when it is
// released, which must be before the client is closed.
func slow() (script mcptest.Option, wasAsked chan struct{}, release func()) {
	let := make(chan struct{})
	wasAsked = make(chan struct{}, 1)
	return mcptest.OnElicit(func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
		wasAsked <- struct{}{}
		<-let
		return client.Cancel()
	}), wasAsked, func() { close(let) }
}

// legacyEverywhere is askedEverywhere for what only legacy servers do: wait.
func legacyEverywhere(t *testing.T, test func(t *testing.T, rev protocol.Revision, options ...mcptest.Option)) {
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		if !rev.Modern() {
			test(t, rev, options...)
		}
	})
}

// A tool whose time is up while the user thinks: the client is told that the
// question no longer matters.
func TestAskTimeout(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	legacyEverywhere(t, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		script, _, release := slow()
		defer release()
		c := harness.NewAsked(t, s, rev, append(options, script)...)
		if got := harness.Outcome(c.Client, "hurried"); !strings.Contains(got, "timed out") {
			t.Errorf("got %q", got)
		}
		if params := c.WaitFor(protocol.MethodCancelled); !strings.Contains(string(params), `"requestId":1`) {
			t.Errorf("cancelled %s", params)
		}
	})
}

// A client that cancels a call in which it is being asked.
func TestAskCancelled(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	legacyEverywhere(t, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		script, wasAsked, release := slow()
		defer release()
		c := harness.NewAsked(t, s, rev, append(options, script)...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := c.RequestContext(ctx, protocol.MethodToolsCall, map[string]any{"name": "elicit"})
			done <- err
		}()
		<-wasAsked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if got := harness.Outcome(c.Client, "roots"); !strings.Contains(got, "roots") { // the session lives
			t.Errorf("the next call: %q", got)
		}
	})
}

// A session that ends while its client is asked ends the call.
func TestAskSessionEnds(t *testing.T) {
	legacyEverywhere(t, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		s := askingServer(new(atomic.Int64))
		ended := make(chan error, 1)
		s.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) {
				result, err := next(f)
				if f.Request().Method == protocol.MethodToolsCall {
					ended <- context.Cause(f)
				}
				return result, err
			}
		})
		script, wasAsked, release := slow()
		defer release()
		c := harness.NewAsked(t, s, rev, append(options, script, mcptest.Timeout(time.Minute))...)
		go func() { _, _ = c.TryCall("elicit", nil) }() // it fails, one way or another
		<-wasAsked
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Shutdown(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v, want that a call was cancelled", err)
		}
		if cause := <-ended; cause == nil {
			t.Error("the call went on")
		}
	})
}
