package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// bearer returns the transport of a user to an HTTP server that byToken guards.
func bearer(url, user string) client.Transport {
	return client.HTTP(url, &client.HTTPOptions{Header: map[string][]string{"Authorization": {"Bearer " + user}}})
}

// serveHTTP serves s to users whose tokens are their names.
func serveHTTP(t testing.TB, s *mcp.Server) string {
	t.Helper()
	verifier := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		if token == "" || strings.HasPrefix(token, "bad") {
			return nil, auth.Invalid("it is not a token")
		}
		return &auth.Identity{Issuer: "https://issuer.example.com", Subject: token}, nil
	})
	web := httptest.NewUnstartedServer(nil)
	resource, err := auth.New("http://"+web.Listener.Addr().String()+"/mcp", verifier, nil)
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = resource.Bearer(s.Handler())
	web.Start()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		_ = s.Shutdown(ctx)
		web.Close()
	})
	return web.URL + "/mcp"
}

// calls makes calls of one user, several at a time, and counts what is another's.
type calls struct {
	url, user        string
	rev              protocol.Revision
	parallel, rounds int
	asked, cross     *atomic.Int64
	refused          *atomic.Int64 // questions that an upstream could not ask
}

func (c calls) run(t *testing.T) {
	own := func(text string) bool { return strings.Contains(text, c.user+"-") }
	cl, err := client.Connect(t.Context(), bearer(c.url, c.user), &client.Options{
		Revisions: []protocol.Revision{c.rev},
		Elicit: func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			c.asked.Add(1)
			if !own(q.Message) {
				c.cross.Add(1)
				t.Errorf("%s is asked %q", c.user, q.Message)
			}
			return client.Accept(form{"yes " + q.Message})
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = cl.Close() }()
	var all sync.WaitGroup
	for n := range c.parallel {
		all.Go(func() {
			for round := range c.rounds {
				for _, up := range []string{"one", "two"} {
					who := fmt.Sprintf("%s-%d-%d", c.user, n, round)
					got := text(cl.Call(t.Context(), up+"_greet", greetIn{who}))
					for strings.Contains(got, "calls in progress; try again later") { // many users
						got = text(cl.Call(t.Context(), up+"_greet", greetIn{who}))
					}
					want := fmt.Sprintf("%s greets %s: yes %s: Greet %s?, yes %s: Really greet %s?", up, who, up, who, up, who)
					switch {
					case got == want:
					case strings.Contains(got, "it is unknown which one asks"):
						c.refused.Add(1)
					default:
						c.cross.Add(1)
						t.Errorf("%s got %q, want %q", c.user, got, want)
					}
				}
			}
		})
	}
	all.Wait()
}

// crossing has many users call two upstreams that ask twice each, over HTTP.
func crossing(t *testing.T, users, parallel, rounds int) {
	for back, behind := range eras {
		for _, front := range []protocol.Revision{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
			t.Run(back+"/"+front.String(), func(t *testing.T) {
				ups := map[string]Upstream{}
				for _, name := range []string{"one", "two"} {
					up := greeter(t, name, behind)
					ups[name] = Upstream{Transport: local(up), For: func(f *mcp.Frame) (string, client.Transport, error) {
						return f.Principal(), local(up), nil
					}}
				}
				_, s := start(t, ups)
				url := serveHTTP(t, s)
				var asked, cross, refused atomic.Int64
				var all sync.WaitGroup
				for i := range users {
					c := calls{url, fmt.Sprintf("user%d", i), front, parallel, rounds, &asked, &cross, &refused}
					all.Go(func() { c.run(t) })
				}
				all.Wait()
				t.Logf("%d questions, %d to the wrong one, %d refused", asked.Load(), cross.Load(), refused.Load())
				unclear := !behind.Modern() && front.Modern() && parallel > 1
				if asked.Load() == 0 && !unclear || refused.Load() > 0 && !unclear {
					t.Errorf("%d questions, %d refused", asked.Load(), refused.Load())
				}
			})
		}
	}
}

// How many questions TestCrossing asks: it is small, so that it can run with the race
// detector. With 100 users, and 13 rounds, it is about 100,000 of four calls at a time.
var (
	users  = flag.Int("users", max(4, testdep.Rounds(8, 20)), "users in TestCrossing")
	rounds = flag.Int("rounds", testdep.Rounds(3, 10), "rounds of TestCrossing, of two calls that ask twice")
)

// TestCrossing has users call at the same time.
func TestCrossing(t *testing.T) {
	t.Run("one at a time", func(t *testing.T) { crossing(t, *users, 1, *rounds) })
	t.Run("four at a time", func(t *testing.T) { crossing(t, *users, 4, *rounds) })
}

// TestParked has a legacy upstream wait for clients of 2026-07-28.
func TestParked(t *testing.T) {
	up := greeter(t, "up", protocol.V20250618)
	g, s := start(t, map[string]Upstream{"up": {Transport: local(up), For: own(up)}})
	c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: "ada", Version: "1"}, Capabilities: protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{Form: &struct{}{}}}})
	ask := func(who string, options ...client.CallOption) (*client.InputRequiredError, string) {
		r, err := c.Call(t.Context(), "up_greet", greetIn{who}, append(options, client.NoRounds())...)
		if asks, ok := errors.AsType[*client.InputRequiredError](err); ok {
			return asks, ""
		}
		return nil, text(r, err)
	}
	yes := func(asks *client.InputRequiredError) client.CallOption {
		return client.Answers(map[string]any{asks.Requests[0].Key: map[string]any{"action": "accept", "content": form{"yes"}}}, asks.State)
	}
	first, _ := ask("Ada")
	second, got := ask("Ada", yes(first))
	if second == nil {
		t.Fatalf("no second question: %q", got)
	}
	const over = "the call that asked this is over, or runs in another process: call the tool again"
	if _, got := ask("Ada", yes(first)); !strings.Contains(got, over) {
		t.Errorf("a round that is sent twice: %q", got)
	}
	if _, got := ask("Bob", yes(second)); !strings.Contains(got, "requestState") {
		t.Errorf("the state of other arguments: %q", got)
	}
	if again, got := ask("Ada", client.Answers(map[string]any{}, second.State)); again == nil {
		t.Errorf("a round without answers: %q", got)
	} else if _, got = ask("Ada", yes(again)); got != "up greets Ada: yes, yes" {
		t.Errorf("the end: %q", got)
	}
	for i := range maxParkedCaller {
		// The connection is not that of one person, so that only one call at a time can ask.
		asks, got := ask(fmt.Sprint("n", i))
		if i == 0 && asks == nil || i > 0 && !strings.Contains(got, "it is unknown which one asks") {
			t.Fatalf("call %d: %v %q", i, asks, got)
		}
	}
	if n := len(g.parking.runs); n != 1 {
		t.Errorf("%d runs are parked", n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if n := len(g.parking.runs); n != 0 {
		t.Errorf("%d runs are parked after Close", n)
	}
}

// TestParkingBounds fills the parking.
func TestParkingBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := parking{question: time.Minute, runs: map[string]*run{}, callers: map[poolKey]int{}}
		var cancelled atomic.Int64
		parked := 0
		for caller := range 20 {
			for i := range maxParkedCaller + 1 {
				r := &run{id: fmt.Sprint(caller, "/", i), who: poolKey{key: connKey{caller: fmt.Sprint(caller)}}, cancel: func() { cancelled.Add(1) }}
				err := p.park(r)
				if want := parked >= maxParked || i >= maxParkedCaller; (err != nil) != want {
					t.Fatalf("run %d of caller %d: %v", i, caller, err)
				}
				if err == nil {
					parked++
				}
			}
		}
		if r := p.take("0/0"); r == nil || p.take("0/0") != nil {
			t.Error("a run is taken once")
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if cancelled.Load() != maxParked-1 || len(p.runs) != 0 || len(p.callers) != 0 {
			t.Errorf("%d cancelled, %d parked, %d callers", cancelled.Load(), len(p.runs), len(p.callers))
		}
	})
}

// TestShutdownCancelsParked ends the server while a call is parked.
func TestShutdownCancelsParked(t *testing.T) {
	ended := make(chan struct{})
	up := newServer(t, "up", nil, protocol.V20250618)
	up.MustAdd(mcp.Tool("greet", func(f *mcp.Frame, in greetIn) (string, error) {
		defer close(ended)
		_, err := mcp.Elicit[form](f, "sure", "Sure?")
		return "", err
	}))
	_, s := start(t, map[string]Upstream{"up": {Transport: local(up), For: own(up)}})
	c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: "ada", Version: "1"}, MaxRounds: -1,
		Capabilities: protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{Form: &struct{}{}}}})
	_, err := c.Call(t.Context(), "up_greet", greetIn{"Ada"})
	if _, ok := errors.AsType[*client.InputRequiredError](err); !ok {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}
