package replicas_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// handle is something that cannot be encoded.
type handle struct{ of int }

var handleKey = mcp.NewKey[*handle]("handle")

// Each process attaches a session once, before it serves the first request of it,
// however many come at once.
func TestOnSessionAttach(t *testing.T) {
	var starts atomic.Int64
	var attaches [4]atomic.Int64
	r := harness.NewReplicas(t, len(attaches), mcp.Options{OnSessionStart: func(*mcp.Frame) error { starts.Add(1); return nil }, OnSessionAttach: func(f *mcp.Frame) error {
		n, _ := f.Value(replicaKey{}).(int)
		attaches[n].Add(1)
		handleKey.Set(f, &handle{n})
		return nil
	}}, func(n int, s *mcp.Server) {
		s.MustAdd(mcp.Tool("where", func(f *mcp.Frame, _ struct{}) (int, error) {
			h, ok := handleKey.Get(f)
			if !ok || h.of != f.Value(replicaKey{}) {
				return 0, fmt.Errorf("the handle is %v, %v", h, ok)
			}
			return n, nil
		}))
	}, numbered)
	c := r.Connect(t, protocol.LatestLegacy)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if result, err := c.Call(t.Context(), "where", nil); err != nil || result.IsError {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
	all.Wait()
	for i := range attaches {
		if n := attaches[i].Load(); n != 1 {
			t.Errorf("replica %d attached %d times", i, n)
		}
	}
	if n := starts.Load(); n != 1 {
		t.Errorf("it started %d times", n)
	}
}

// attached is a client of servers that share a store, of which one fails to
// attach as long as it is told to.
func attached(t *testing.T, fails *atomic.Pointer[error], attaches *atomic.Int64) (serve func(of *harness.BareClient) *harness.BareClient) {
	store := scale.NewLocal()
	return func(of *harness.BareClient) *harness.BareClient {
		s := harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys, Timeouts: mcp.Timeouts{Session: time.Hour}, OnSessionAttach: func(*mcp.Frame) error {
			attaches.Add(1)
			if err := fails.Load(); err != nil {
				return *err
			}
			return nil
		}})
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
		if of != nil {
			d.Session = of.Session
		}
		return d
	}
}

// A process that cannot attach a session refuses its requests, and tries again
// with the next; the session lives.
func TestOnSessionAttachFails(t *testing.T) {
	var fails atomic.Pointer[error]
	var attaches atomic.Int64
	serve := attached(t, &fails, &attaches)
	first := serve(nil)
	first.Initialize()
	other := serve(first)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("no database"), `"code":-32603,"message":"Internal error: no database"`},
		{protocol.Errorf(protocol.CodeBusy, "not now"), `"code":429,"message":"not now"`},
	} {
		fails.Store(&tt.err)
		before := attaches.Load()
		for range 2 {
			if res := other.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(res.Body.String(), tt.want) {
				t.Errorf("got %s, want %s", res.Body, tt.want)
			}
		}
		if n := attaches.Load() - before; n != 2 {
			t.Errorf("it was tried %d times", n)
		}
		first.Want(first.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusOK, `"result":{}`)
		refused := serve(nil)
		if res := refused.Do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, harness.Hello(protocol.LatestLegacy.String()))); !strings.Contains(res.Body.String(), tt.want) || res.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("initialize: %s, session %q", res.Body, res.Header().Get("Mcp-Session-Id"))
		}
	}
	fails.Store(nil)
	before := attaches.Load()
	for range 3 {
		other.Want(other.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), http.StatusOK, `"tools"`)
	}
	if n := attaches.Load() - before; n != 1 {
		t.Errorf("afterwards it was tried %d times", n)
	}
}

// A copy that has left the process is attached anew when it comes back.
func TestOnSessionAttachComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attaches atomic.Int64
		serve := attached(t, &atomic.Pointer[error]{}, &attaches)
		first := serve(nil)
		first.Initialize()
		other := serve(first)
		ping := func(d *harness.BareClient) {
			d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusOK, `"result":{}`)
		}
		ping(other)
		for range 5 {
			time.Sleep(10 * time.Minute)
			ping(first)
		}
		if n := attaches.Load(); n != 2 {
			t.Errorf("it was attached %d times, want once at each", n)
		}
		ping(other)
		if n := attaches.Load(); n != 3 {
			t.Errorf("it was attached %d times, want once more at the one that had let it go", n)
		}
	})
}
