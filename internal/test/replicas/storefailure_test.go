package replicas_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Servers that share a store must share the keys, too, or what one of them asks
// a client no other goes on with.
func TestStoreNeedsStateKeys(t *testing.T) {
	build := func(opts mcp.Options) (said any) {
		defer func() {
			if r := recover(); r != nil {
				said = r
			}
		}()
		return mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &opts).Shutdown(t.Context())
	}
	said := fmt.Sprint(build(mcp.Options{Store: scale.NewLocal()}))
	for _, part := range []string{"Options.Store", "the same Options.StateKeys", "the same secret of 16 random bytes or more"} {
		if !strings.Contains(said, part) {
			t.Errorf("without keys: %q, want %q in it", said, part)
		}
	}
	if said := build(mcp.Options{Store: scale.NewLocal(), StateKeys: harness.SharedKeys}); said != nil {
		t.Errorf("with keys: %v", said)
	}
}

// shakyStore is a scale.Store that fails while down, and counts looks.
type shakyStore struct {
	scale.Store
	down  atomic.Bool
	slow  atomic.Bool // fails as one that was not waited for
	looks atomic.Int64
}

func (s *shakyStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if strings.HasPrefix(looks[0].Key.Partition, "session-") {
		s.looks.Add(1)
	}
	switch {
	case s.slow.Load():
		return nil, fmt.Errorf("redis: %w", context.DeadlineExceeded)
	case s.down.Load():
		return nil, fmt.Errorf("%w: connection refused by 10.1.2.3", scale.ErrUnavailable)
	}
	return s.Store.Get(ctx, looks...)
}

// A store that fails is no reason to tell a client that its session is gone:
// it would drop a session that lives. Each request asks the store once.
func TestStoreFails(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue
		}
		t.Run(rev.String(), func(t *testing.T) {
			store := &shakyStore{Store: scale.NewLocal()}
			serve := func() *harness.BareClient {
				s := harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: store})
				return &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
			}
			first := serve()
			first.Initialize()
			requests := []struct{ method, body string }{
				{http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
				{http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
				{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
				{http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{}}`},
				{http.MethodGet, ""},
				{http.MethodDelete, ""},
			}
			if rev.Has(protocol.FeatureBatches) {
				requests = append(requests, struct{ method, body string }{http.MethodPost, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`})
			}
			for _, r := range requests {
				store.down.Store(true)
				other := serve()
				other.Session = first.Session
				before := store.looks.Load()
				res := other.Do(r.method, r.body)
				other.Want(res, http.StatusServiceUnavailable, `"code":503`)
				if res.Header().Get("Retry-After") == "" || strings.Contains(res.Body.String(), "10.1.2.3") {
					t.Errorf("%s %s: Retry-After %q with %s", r.method, r.body, res.Header().Get("Retry-After"), res.Body)
				}
				if n := store.looks.Load() - before; n != 1 {
					t.Errorf("%s %s: %d look-ups", r.method, r.body, n)
				}
				store.down.Store(false)
				if r.method == http.MethodPost {
					before = store.looks.Load()
					if res := other.Do(r.method, r.body); res.Code != http.StatusOK && res.Code != http.StatusAccepted {
						t.Errorf("%s %s afterwards: %d %s", r.method, r.body, res.Code, res.Body)
					}
					if n := store.looks.Load() - before; n != 1 {
						t.Errorf("%s %s afterwards: %d look-ups", r.method, r.body, n)
					}
				}
			}
			stranger := serve()
			stranger.Session = "made-up"
			stranger.Want(stranger.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusNotFound, "Session not found")
		})
	}
}

// Whoever asks for a session while the store is away would write a line of the
// log with each request.
func TestStoreFailsQuietly(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out harness.LogText
			logger := zerolog.New(&out)
			store := &shakyStore{Store: scale.NewLocal()}
			s := harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: store, Logger: &logger})
			c := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.V20251125}
			c.Initialize()
			store.down.Store(!slow)
			store.slow.Store(slow)
			lines := func() int {
				synctest.Wait()
				return strings.Count(out.String(), `"session store"`)
			}
			for range 50 {
				c.Want(c.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusServiceUnavailable, `"code":503`)
			}
			if n := lines(); n != 1 {
				t.Errorf("%d lines", n)
			}
			time.Sleep(11 * time.Second)
			c.Want(c.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusServiceUnavailable, `"code":503`)
			// The others look for what is due as well.
			if n := lines(); n != 2 || !regexp.MustCompile(`"skipped":(49|5\d)`).MatchString(out.String()) {
				t.Errorf("later: %s", out.String())
			}
		})
	}
}

// Two processes that serve one session ask its client under different ids, so
// that an answer that reaches the wrong one meets no other question.
func TestQuestionsCarryTheProcess(t *testing.T) {
	asked := regexp.MustCompile(`"id":([^,]+),"method":"roots/list"`)
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			store := scale.NewLocal()
			seen := map[string]bool{}
			var id string
			for range 3 {
				s := harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: store})
				s.MustAdd(mcp.Tool("where", func(f *mcp.Frame, _ struct{}) (string, error) {
					_, err := frame.Roots(f, "r")
					return "", err
				}, mcp.Timeout(5*time.Millisecond)))
				d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev, Session: id}
				if id == "" {
					res := d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+rev.String()+`","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
					id = res.Header().Get("Mcp-Session-Id")
					d.Session = id
					d.Do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				}
				for range 2 {
					res := d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where"}}`)
					found := asked.FindStringSubmatch(res.Body.String())
					if found == nil {
						t.Fatalf("%v: no question in %s", rev, res.Body)
					}
					if number := regexp.MustCompile(`^\d+$`).MatchString(found[1]); number || seen[found[1]] {
						t.Errorf("%v: a question has the id %s", rev, found[1])
					}
					seen[found[1]] = true
				}
			}
		})
	}
}

// A question waits for its answer for Timeouts.Question. So long an answer finds the
// replica that asked, though the store is away from that alone meanwhile.
func TestAnswerWaitsForReplica(t *testing.T) {
	const wait = 15 * time.Minute // its default
	synctest.Test(t, func(t *testing.T) {
		store := newEngine()
		clients := make([]*harness.BareClient, 2)
		for i, s := range []scale.Store{store, store.Store} {
			s := harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: s})
			s.MustAdd(mcp.Tool("where", func(f *mcp.Frame, _ struct{}) (string, error) {
				_, err := frame.Roots(f, "r")
				return "", err
			}, mcp.Timeout(2*wait)))
			clients[i] = &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
		}
		asks, other := clients[0], clients[1]
		res := asks.Do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
		asks.Session = res.Header().Get("Mcp-Session-Id")
		other.Session = asks.Session
		asks.Want(asks.Do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted, "")

		called := httptest.NewRecorder()
		call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where"}}`))
		call.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {asks.Session}, "Mcp-Protocol-Version": {asks.Rev.String()}}
		over := make(chan struct{})
		go func() { asks.H.ServeHTTP(called, call); close(over) }()
		synctest.Wait()
		found := regexp.MustCompile(`"id":([^,]+),"method":"roots/list"`).FindStringSubmatch(called.Body.String())
		if found == nil {
			t.Fatalf("no question in %s", called.Body)
		}
		store.away.Store(true)
		time.Sleep(wait - time.Minute)
		other.Want(other.Do(http.MethodPost, `{"jsonrpc":"2.0","id":`+found[1]+`,"result":{"roots":[]}}`), http.StatusAccepted, "")
		store.away.Store(false)
		<-over
		if text := called.Body.String(); !strings.Contains(text, `"id":1,"result"`) || strings.Contains(text, "isError") {
			t.Errorf("the call ended with %s", text)
		}
	})
}

// Clients that open sessions and leave, be they anonymous or with a name, close
// the door for nobody.
func TestRoomForSessions(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue
		}
		var user string
		s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Sessions: 20}})
		as := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.Handler().ServeHTTP(w, r.WithContext(core.WithPrincipal(r.Context(), user)))
		})
		open := func(as http.Handler) (*harness.BareClient, int) {
			d := &harness.BareClient{T: t, H: as, Rev: rev}
			res := d.Do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, harness.Hello(rev.String())))
			d.Session = res.Header().Get("Mcp-Session-Id")
			return d, res.Code
		}
		use := func(d *harness.BareClient) int {
			return d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code
		}
		mine, _ := open(as)
		if status := use(mine); status != http.StatusOK {
			t.Fatalf("%v: %d", rev, status)
		}
		for range 100 {
			if _, status := open(as); status != http.StatusOK {
				t.Fatalf("%v: an anonymous client after others that left: %d", rev, status)
			}
		}
		if status := use(mine); status != http.StatusOK {
			t.Errorf("%v: a session in use ended for others: %d", rev, status)
		}
		user = "alice"
		for i := range 3 {
			d, status := open(as)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[i < 2]; status != want {
				t.Errorf("%v: session %d of alice: %d, want %d", rev, i, status, want)
			}
			if status == http.StatusOK {
				use(d)
			}
		}
		user = "bob"
		if _, status := open(as); status != http.StatusOK {
			t.Errorf("%v: bob: %d", rev, status)
		}
	}
}
