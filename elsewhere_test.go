package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
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

func (s *awayStore) Get(ctx context.Context, looks ...scale.Look) ([]scale.Entry, error) {
	if s.away.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *awayStore) Append(ctx context.Context, p scale.Post) (scale.Rev, string, error) {
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
		o.Store, o.StateKeys, o.HTTP.SSE = a.store, sharedKeys, true
		s := fixture(t, &o)
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
	for _, rev := range legacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			t.Parallel()
			let := make(chan struct{})
			a := newApart(t, 3, mcp.Options{}, func(i int, s *mcp.Server) {
				s.MustAdd(mcp.Tool("steps", func(f *mcp.Frame, _ empty) (string, error) {
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
			session := fetch(t, t.Context(), "POST", a.urls[0], hello, "X-User", "ada").res.Header.Get("Mcp-Session-Id")
			get := func(i int, last string) eventStream {
				return fetch(t, t.Context(), "GET", a.urls[i], "", "Mcp-Session-Id", session, "Last-Event-ID", last, "X-User", "ada")
			}
			ctx, hangUp := context.WithCancel(t.Context())
			go func() { let <- struct{}{} }()
			first := fetch(t, ctx, "POST", a.urls[0], callSteps, "Mcp-Session-Id", session, "X-User", "ada")
			event := first.next()
			for !strings.Contains(event, `"progress":1`) {
				event = first.next()
			}
			hangUp()
			let <- struct{}{}
			again := get(1, eventOf(event))
			again.want(`id: …"progress":2`)
			let <- struct{}{}
			again.want(`id: …"progress":3`)
			question := again.next()
			_, id, _ := strings.Cut(question, `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			res := fetch(t, t.Context(), "POST", a.urls[2], fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"roots":[{"uri":"file:///a"}]}}`, id), "Mcp-Session-Id", session, "X-User", "ada").res
			if res.StatusCode != http.StatusAccepted {
				t.Errorf("the answer: %s", res.Status)
			}
			let <- struct{}{}
			answer := `id: …"id":7,"result":{"content":[{"type":"text","text":"replica 0, 1 roots"}]`
			again.want(answer, io.EOF.Error())

			// Nobody else gets it.
			if other := fetch(t, t.Context(), "GET", a.urls[1], "", "Mcp-Session-Id", session, "Last-Event-ID", eventOf(question), "X-User", "eve"); other.res.StatusCode != http.StatusNotFound {
				t.Errorf("another principal: %s", other.res.Status)
			}
			a.shutdown(t, 0)
			for i := 1; i < 3; i++ {
				late := get(i, eventOf(question))
				late.want(answer, io.EOF.Error())
			}

			// A call that ends with its replica says so to the client, who is elsewhere;
			// of a call that left nothing, nobody can say whether it ran.
			go func() { let <- struct{}{} }()
			ctx, hangUp = context.WithCancel(t.Context())
			second := fetch(t, ctx, "POST", a.urls[1], strings.ReplaceAll(callSteps, `"id":7`, `"id":"seven"`), "Mcp-Session-Id", session, "X-User", "ada")
			for event = second.next(); !strings.Contains(event, `"progress":1`); {
				event = second.next()
			}
			hangUp()
			again = get(2, eventOf(event))
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if err := a.servers[1].Shutdown(ctx); err == nil {
				t.Error("the call did not hold up the shutdown")
			}
			again.want(`id: …"id":"seven","result":{"content":[{"type":"text","text":"`, io.EOF.Error())
			lost := get(2, "zz"+eventOf(event))
			lost.want(`event: message|data: …"id":"seven","error":{"code":-32603,"message":"the replica that served this call is gone","data":{"executed":"unknown"}}}`, io.EOF.Error())
		})
	}
}

// The messages of HTTP+SSE may come to any replica: the one that has the stream
// gets each once, as if it had come there.
func TestSSEElsewhere(t *testing.T) {
	var calls atomic.Int64
	a := newApart(t, 3, mcp.Options{}, func(i int, s *mcp.Server) {
		s.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ empty) (string, error) {
			calls.Add(1)
			id := f.Identity()
			return fmt.Sprintf("%d %s %v %v %s %q %t", i, f.Principal(), id.Scopes, id.Claims["n"], f.Header("X-Tag"), f.Header("Authorization"), f.HTTPRequest().URL.Query().Has("sessionId")), nil
		}))
	})
	ctx, leave := context.WithCancel(t.Context())
	stream := fetch(t, ctx, "GET", a.urls[0], "", "Accept", "text/event-stream", "X-User", "ada")
	_, endpoint, _ := strings.Cut(stream.next(), "|data: ")
	if _, query, _ := strings.Cut(endpoint, "sessionId="); len(query) > 64 || strings.Count(query, ".") != 1 {
		t.Errorf("endpoint %q", endpoint)
	}
	post := func(i int, body string, headers ...string) (status int) {
		headers = append([]string{"X-User", "ada", "X-Tag", "t", "Authorization", "Bearer secret"}, headers...)
		return fetch(t, t.Context(), "POST", a.urls[i]+endpoint, body, headers...).res.StatusCode
	}
	took := func(status int) {
		t.Helper()
		if status != http.StatusAccepted {
			t.Errorf("status %d", status)
		}
	}
	took(post(1, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+hello("2024-11-05")+`}}`))
	stream.want(`event: message|data: …"id":0,"result"`)
	took(post(2, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	for i := range 3 {
		took(post(i, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"who"}}`, i+1)))
		secret := ""
		if i == 0 {
			secret = "Bearer secret" // there is no other replica to tell
		}
		stream.want(fmt.Sprintf(`event: message|data: …"text":"0 https://i#ada [s1] 1 t \"%s\" true"`, secret))
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls ran", n)
	}

	for what, tt := range map[string]struct{ got, want int }{
		"another principal": {post(1, pingLine, "X-User", "eve"), http.StatusNotFound},
		"nobody":            {post(2, pingLine, "X-User", ""), http.StatusNotFound},
		"too long":          {post(1, strings.Repeat(" ", 1<<20)+pingLine), http.StatusRequestEntityTooLarge},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: status %d, want %d", what, tt.got, tt.want)
		}
	}
	_, id, _ := strings.Cut(endpoint, "sessionId=")
	node, _, _ := strings.Cut(id, ".")
	for _, id := range []string{"x", "x.y", "." + node, node, node + ".", node + ".AAAA", node + "." + strings.Repeat("A", 1000), strings.ToUpper(node) + ".A", "0.A", "-1.A"} {
		if status := fetch(t, t.Context(), "POST", a.urls[1]+"/?sessionId="+id, pingLine, "X-User", "ada").res.StatusCode; status != http.StatusNotFound {
			t.Errorf("%.30s: status %d", id, status)
		}
	}
	a.store.away.Store(true)
	if status := post(1, pingLine); status != http.StatusServiceUnavailable {
		t.Errorf("while the store is away: status %d", status)
	}
	took(post(0, `{"jsonrpc":"2.0","id":9,"method":"ping"}`)) // needs no store
	stream.want(`event: message|data: …"id":9,"result"`)
	a.store.away.Store(false)
	a.store.mute.Store(true) // the message may have been sent
	if status := post(1, pingLine); status != http.StatusInternalServerError {
		t.Errorf("while nothing can be sent: status %d", status)
	}
	a.store.mute.Store(false)
	leave()
	for range 100 { // it hears of that in a moment
		if post(1, pingLine) == http.StatusNotFound {
			return
		}
	}
	t.Error("the stream has ended, and is found")
}

// What a replica is told late, as hints are lost, is accepted when that replica has
// taken it, and not if its stream has ended until then.
func TestSSEElsewhereLate(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine()
			var servers []*mcp.Server
			for range 2 {
				servers = append(servers, fixture(t, &mcp.Options{Store: e, StateKeys: sharedKeys, HTTP: mcp.HTTPOptions{SSE: true}}))
			}
			ctx, leave := context.WithCancel(t.Context())
			stream := &pipeWriter{header: http.Header{}, status: make(chan int, 1)}
			in, out := io.Pipe()
			stream.out = out
			over := make(chan struct{})
			go func() {
				defer close(over)
				servers[0].Handler().ServeHTTP(stream, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", nil))
				_ = out.Close()
			}()
			lines := bufio.NewScanner(in)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
			}
			_, id, _ := strings.Cut(lines.Text(), "sessionId=")
			go func() { _, _ = io.Copy(io.Discard, in) }()
			time.Sleep(time.Minute)
			e.deaf.Store(true)
			status := make(chan int)
			go func() {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/?sessionId="+id, strings.NewReader(initLine))
				r.Header.Set("Content-Type", "application/json")
				servers[1].Handler().ServeHTTP(w, r)
				status <- w.Code
			}()
			synctest.Wait()
			want := http.StatusAccepted
			if ends {
				want = http.StatusNotFound
				leave()
				<-over
			}
			if got := <-status; got != want {
				t.Errorf("the stream ends: %v, status %d, want %d", ends, got, want)
			}
			leave()
			<-over
			for _, s := range servers {
				_ = s.Shutdown(context.Background())
			}
		})
	}
}

// The replica that has the stream is gone: there is no session any more.
func TestSSEOfNobody(t *testing.T) {
	a := newApart(t, 2, mcp.Options{}, func(int, *mcp.Server) {})
	stream := fetch(t, t.Context(), "GET", a.urls[0], "", "Accept", "text/event-stream")
	_, endpoint, _ := strings.Cut(stream.next(), "|data: ")
	a.shutdown(t, 0)
	if status := fetch(t, t.Context(), "POST", a.urls[1]+endpoint, pingLine).res.StatusCode; status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}
