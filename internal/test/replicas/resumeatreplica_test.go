package replicas_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/scale"
)

// apart is several servers that share a store, each at an address of its own.
type apart struct {
	servers []*mcp.Server
	urls    []string
	store   *awayStore
}

// awayStore is a scale.Store that answers nothing about replicas while away, and
// to which nothing can be appended while mute.
type awayStore struct {
	scale.Store
	away, mute atomic.Bool
}

func (s *awayStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if s.away.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *awayStore) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if s.mute.Load() {
		return 0, "", scale.ErrUnavailable
	}
	return s.Store.Append(ctx, p)
}

// newApart starts n servers. add gives each its components; it gets the number of
// the server. Requests come from who the header X-User names.
func newApart(t *testing.T, n int, opts mcp.Options, add func(i int, s *mcp.Server)) *apart {
	t.Helper()
	a := &apart{store: &awayStore{Store: scale.NewLocal()}}
	for i := range n {
		o := opts
		o.Store, o.StateKeys, o.HTTP.SSE = a.store, harness.SharedKeys, true
		s := harness.Fixture(t, &o)
		add(i, s)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user := r.Header.Get("X-User"); user != "" {
				id := &frame.Identity{Issuer: "https://i", Subject: user, Scopes: []string{"s1"}, Claims: map[string]any{"n": 1.0}}
				r = r.WithContext(mcp.WithIdentity(r.Context(), id))
			}
			s.Handler().ServeHTTP(w, r)
		}))
		t.Cleanup(web.Close)
		a.servers, a.urls = append(a.servers, s), append(a.urls, web.URL)
	}
	return a
}

// shutdown shuts one of them down.
func (a *apart) shutdown(t *testing.T, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.servers[i].Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// eventOf returns the id of an event.
func eventOf(event string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "|")
	return id
}

// A client whose connection breaks in the middle of a call comes back at another
// replica: for what it missed, for a question, which it answers at a third one,
// and for the answer, also when the replica that made it is gone.
func TestResumeElsewhere(t *testing.T) {
	for _, rev := range harness.LegacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			t.Parallel()
			let := make(chan struct{})
			a := newApart(t, 3, mcp.Options{}, func(i int, s *mcp.Server) {
				s.MustAdd(mcp.Tool("steps", func(f *mcp.Frame, _ struct{}) (string, error) {
					wait := func() error {
						select {
						case <-let:
							return nil
						case <-f.Done():
							return context.Cause(f)
						}
					}
					for i := 1; i <= 3; i++ {
						if err := wait(); err != nil {
							return "", err
						}
						if err := f.Progress(float64(i), 3); err != nil {
							return "", err
						}
					}
					roots, err := frame.Roots(f, "roots")
					if err != nil {
						return "", err
					}
					if err := wait(); err != nil {
						return "", err
					}
					return fmt.Sprintf("replica %d, %d roots", i, len(roots)), nil
				}))
			})
			hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`, rev)
			session := harness.Fetch(t, t.Context(), "POST", a.urls[0], hello, "X-User", "ada").Res.Header.Get("Mcp-Session-Id")
			get := func(i int, last string) harness.EventStream {
				return harness.Fetch(t, t.Context(), "GET", a.urls[i], "", "Mcp-Session-Id", session, "Last-Event-ID", last, "X-User", "ada")
			}
			ctx, hangUp := context.WithCancel(t.Context())
			go func() { let <- struct{}{} }()
			first := harness.Fetch(t, ctx, "POST", a.urls[0], harness.CallSteps, "Mcp-Session-Id", session, "X-User", "ada")
			event := first.Next()
			for !strings.Contains(event, `"progress":1`) {
				event = first.Next()
			}
			hangUp()
			let <- struct{}{}
			again := get(1, eventOf(event))
			again.Want(`id: …"progress":2`)
			let <- struct{}{}
			again.Want(`id: …"progress":3`)
			question := again.Next()
			_, id, _ := strings.Cut(question, `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			res := harness.Fetch(t, t.Context(), "POST", a.urls[2], fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"roots":[{"uri":"file:///a"}]}}`, id), "Mcp-Session-Id", session, "X-User", "ada").Res
			if res.StatusCode != http.StatusAccepted {
				t.Errorf("the answer: %s", res.Status)
			}
			let <- struct{}{}
			answer := `id: …"id":7,"result":{"content":[{"type":"text","text":"replica 0, 1 roots"}]`
			again.Want(answer, io.EOF.Error())

			// Nobody else gets it.
			if other := harness.Fetch(t, t.Context(), "GET", a.urls[1], "", "Mcp-Session-Id", session, "Last-Event-ID", eventOf(question), "X-User", "eve"); other.Res.StatusCode != http.StatusNotFound {
				t.Errorf("another principal: %s", other.Res.Status)
			}
			a.shutdown(t, 0)
			for i := 1; i < 3; i++ {
				late := get(i, eventOf(question))
				late.Want(answer, io.EOF.Error())
			}

			// A call that ends with its replica says so to the client, who is elsewhere;
			// of a call that left nothing, nobody can say whether it ran.
			go func() { let <- struct{}{} }()
			ctx, hangUp = context.WithCancel(t.Context())
			second := harness.Fetch(t, ctx, "POST", a.urls[1], strings.ReplaceAll(harness.CallSteps, `"id":7`, `"id":"seven"`), "Mcp-Session-Id", session, "X-User", "ada")
			for event = second.Next(); !strings.Contains(event, `"progress":1`); {
				event = second.Next()
			}
			hangUp()
			again = get(2, eventOf(event))
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if err := a.servers[1].Shutdown(ctx); err == nil {
				t.Error("the call did not hold up the shutdown")
			}
			again.Want(`id: …"id":"seven","result":{"content":[{"type":"text","text":"`, io.EOF.Error())
			lost := get(2, "zz"+eventOf(event))
			lost.Want(`event: message|data: …"id":"seven","error":{"code":-32603,"message":"the replica that served this call is gone","data":{"executed":"unknown"}}}`, io.EOF.Error())
		})
	}
}

// A POST of HTTP+SSE that a balancer sends to another replica than the one of its stream
// is answered as one for a stream that there is not, and costs the store nothing.
func TestSSEElsewhere(t *testing.T) {
	a := newApart(t, 2, mcp.Options{}, func(int, *mcp.Server) {})
	ctx, leave := context.WithCancel(t.Context())
	stream := harness.Fetch(t, ctx, "GET", a.urls[0], "", "Accept", "text/event-stream", "X-User", "ada")
	_, endpoint, _ := strings.Cut(stream.Next(), "|data: ")
	post := func(i int, user, body string) harness.EventStream {
		return harness.Fetch(t, t.Context(), "POST", a.urls[i]+endpoint, body, "X-User", user)
	}
	a.store.away.Store(true) // nothing here needs it
	a.store.mute.Store(true)
	for _, user := range []string{"ada", "eve"} {
		if got := post(1, user, harness.PingLine).Res.StatusCode; got != http.StatusNotFound {
			t.Errorf("at another replica: status %d", got)
		}
	}
	if got := post(0, "ada", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+harness.Hello("2024-11-05")+`}}`).Res.StatusCode; got != http.StatusAccepted {
		t.Errorf("at its replica: status %d", got)
	}
	stream.Want(`event: message|data: …"id":0,"result"`)
	leave()
	a.shutdown(t, 0)
	if got := post(1, "ada", harness.PingLine).Res.StatusCode; got != http.StatusNotFound {
		t.Errorf("after its replica: status %d", got)
	}
}
