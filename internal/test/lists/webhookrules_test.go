package lists_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

var quiet = zerolog.Nop()

const hookURL = "https://receiver.example/hook"

// observed notes the events of a server about webhooks, as "kind reason".
type observed struct {
	mu  sync.Mutex
	all []string
}

func observe(s *mcp.Server) *observed {
	o := &observed{}
	s.Observe(mcp.Observer{Event: func(e mcp.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if strings.HasPrefix(e.Kind, "delivery.") || strings.HasPrefix(e.Kind, "webhook.") {
			o.all = append(o.all, strings.TrimSpace(e.Kind+" "+e.Reason))
		}
	}})
	return o
}

func (o *observed) has(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if strings.Join(o.all, ", ") != strings.Join(want, ", ") {
		t.Errorf("observed %v, want %v", o.all, want)
	}
}

// bothStores runs a test in a bubble of synctest, with a store and without.
func bothStores(t *testing.T, test func(t *testing.T, opts *mcp.Options)) {
	for name, opts := range map[string]func(t *testing.T) *mcp.Options{
		"alone": func(*testing.T) *mcp.Options { return &mcp.Options{} }, "store": withStore,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, opts(t)) })
		})
	}
}

// A subscriber who loses its rights, or its event type, is notified and receives no more. A
// client that has declared the extension would get the codes of the specification.
func TestWebhookRights(t *testing.T) {
	var may atomic.Bool
	for name, c := range map[string]struct {
		option    mcp.Option
		lose      func(s *mcp.Server)
		code      int
		reason    string
		remaining string // what a subscription is answered afterwards
	}{
		"hidden":  {mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Identity().Subject == "ann" && may.Load() }), func(*mcp.Server) { may.Store(false) }, -32012, "forbidden", "Unknown event"},
		"removed": {mcp.Doc("x"), func(s *mcp.Server) { s.Remove(mcp.KindEvent, "comment.created") }, -32011, "removed", "Unknown event"},
	} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, opts *mcp.Options) {
				may.Store(true)
				r := newReceiver(t)
				s := ended(t, eventServer(hooked(opts, r), c.option))
				o := observe(s)
				client := pipe{mcptest.New(t, s, ann)}
				subscribe(t, client, subscribeTo("a", hookURL, ""))
				emit(t, s, "a", "one")
				synctest.Wait()
				c.lose(s)
				if name == "hidden" {
					emit(t, s, "a", "two")
				}
				time.Sleep(time.Minute)
				if got := r.texts(); got != "verification one terminated" {
					t.Fatalf("received %s", got)
				}
				if last := r.all()[2]; last.Error.Code != c.code || !strings.HasPrefix(last.id, "msg_terminated_") {
					t.Errorf("terminated: %+v", last)
				}
				o.has(t, "webhook.opened", "delivery.done", "webhook.ended "+c.reason)
				if got := client.Ask("events/subscribe", subscribeTo("a", hookURL, "")); !strings.Contains(got, c.remaining) {
					t.Errorf("subscribe: %s", got)
				}
				if got := client.Ask("events/unsubscribe", unsubscribeFrom("a", hookURL)); !strings.Contains(got, `"result":`) {
					t.Errorf("unsubscribe: %s", got)
				}
			})
		})
	}
}

// A subscription needs its scopes at each request. A refresh that is refused changes nothing.
func TestWebhookScopes(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		s := ended(t, eventServer(hooked(opts, r), mcp.Scopes("comments:read")))
		as := func(scopes ...string) pipe {
			return pipe{mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: "ann", Scopes: scopes}))}
		}
		if got := as().Ask("events/subscribe", subscribeTo("a", hookURL, "")); !strings.Contains(got, `"code":403`) {
			t.Errorf("without scope: %s", got)
		}
		subscribe(t, as("comments:read"), subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "one")
		subscribe(t, as("comments:read", "more"), subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "two")
		time.Sleep(time.Second)
		if got := r.texts(); got != "verification one two" {
			t.Errorf("received %s", got)
		}
		if got := as("more").Ask("events/subscribe", subscribeTo("a", hookURL, "")); !strings.Contains(got, `"code":403`) {
			t.Errorf("refreshed without scope: %s", got)
		}
		emit(t, s, "a", "three")
		time.Sleep(time.Second)
		if got := r.texts(); got != "verification one two three" {
			t.Errorf("a refresh that was refused has changed the rights: %s", got)
		}
	})
}

// What match does decides whether an event is delivered, given up, or waits.
func TestWebhookMatch(t *testing.T) {
	for name, c := range map[string]struct {
		match func(n int) (bool, error)
		want  string // without the challenge
		told  string
		calls int
	}{
		"false":              {func(int) (bool, error) { return false, nil }, "second", "", 1},
		"panics":             {func(int) (bool, error) { panic("s3cret") }, "second", "", 1},
		"ends its goroutine": {func(int) (bool, error) { runtime.Goexit(); return true, nil }, "second", "", 1},
		"cannot tell once":   {func(n int) (bool, error) { return true, one(n == 0) }, "first second", "", 2},
		"can never tell":     {func(int) (bool, error) { return true, errors.New("no database") }, "second", "delivery.dropped undecided", 4},
		"hangs":              {func(int) (bool, error) { time.Sleep(10 * time.Minute); return true, nil }, "second", "delivery.dropped undecided", 4},
	} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, opts *mcp.Options) {
				r := newReceiver(t)
				n := atomic.Int32{}
				opts.Logger = &quiet
				s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
				s.MustAdd(mcp.EventType("comment.created", func(f *mcp.Frame, in watchIn, c comment) (bool, error) {
					if f.Identity().Subject != "ann" || f.Request().Params.Raw != nil {
						t.Errorf("match has the Frame of %q", f.Principal())
					}
					if c.Text == "first" {
						return matchOf(c.Text, int(n.Add(1))-1, in, name)
					}
					return true, nil
				}))
				matches.Store(name, c.match)
				o := observe(s)
				subscribe(t, pipe{mcptest.New(t, s, ann)}, subscribeTo("a", hookURL, ""))
				emit(t, s, "a", "first")
				emit(t, s, "a", "second")
				time.Sleep(3 * time.Minute)
				if got := strings.TrimPrefix(r.texts(), "verification "); got != c.want {
					t.Errorf("received %s", got)
				}
				if int(n.Load()) != c.calls {
					t.Errorf("match was called %d times", n.Load())
				}
				o.mu.Lock()
				if told := strings.Join(o.all, ","); strings.Contains(told, "dropped") != (c.told != "") || !strings.Contains(told, c.told) {
					t.Errorf("observed %s", told)
				}
				o.mu.Unlock()
				time.Sleep(10 * time.Minute) // those that hang
			})
		})
	}
}

// one returns an error if asked for.
func one(fails bool) error {
	if fails {
		return errors.New("no database")
	}
	return nil
}

// matches has the functions of TestWebhookMatch by name.
var matches sync.Map

func matchOf(_ string, n int, _ watchIn, name string) (bool, error) {
	fn, _ := matches.Load(name)
	return fn.(func(int) (bool, error))(n)
}

// Matches that hang for many subscribers delay the others once, by the time of one call.
func TestWebhookMatchOfOthers(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		opts.Logger = &quiet
		s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
		s.MustAdd(mcp.EventType("comment.created", func(f *mcp.Frame, in watchIn, c comment) (bool, error) {
			if strings.HasPrefix(in.Document, "hangs") {
				<-f.Done()
				time.Sleep(time.Hour)
			}
			return true, nil
		}))
		client := pipe{mcptest.New(t, s, ann)}
		for i := range 80 { // in several rows
			name := fmt.Sprint("a", i)
			if i%5 == 0 {
				name = fmt.Sprint("hangs", i)
			}
			subscribe(t, client, subscribeTo(name, hookURL, ""))
		}
		began := time.Now()
		for i := range 4 {
			emit(t, s, "a", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		if got := len(r.all()); got != 1+64*4 {
			t.Errorf("received %d", got)
		}
		for _, d := range r.all() {
			if took := d.at.Sub(began); took > 5*time.Second+10*time.Millisecond {
				t.Fatalf("received %s after %v", d.Data.Text, took)
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

// The context of a match that has not returned in time ends, so that one that watches it
// returns, and the next event finds none that hangs.
func TestWebhookMatchContext(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		opts.Logger = &quiet
		s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
		var running atomic.Int32
		s.MustAdd(mcp.EventType("comment.created", func(f *mcp.Frame, in watchIn, c comment) (bool, error) {
			running.Add(1)
			defer running.Add(-1)
			<-f.Done()
			return false, f.Err()
		}))
		subscribe(t, pipe{mcptest.New(t, s, ann)}, subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "first")
		time.Sleep(4 * time.Second)
		if got := running.Load(); got != 1 {
			t.Errorf("%d calls of match run within their time, want 1", got)
		}
		time.Sleep(3 * time.Minute) // it was asked four times
		if got := running.Load(); got != 0 {
			t.Errorf("%d calls of match run after their time", got)
		}
	})
}

// A match that never returns for one subscriber costs the others nothing, however many
// events there are.
func TestWebhookMatchStuck(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		opts.Logger = &quiet
		s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
		back := make(chan struct{})
		s.MustAdd(mcp.EventType("comment.created", func(f *mcp.Frame, in watchIn, c comment) (bool, error) {
			if in.Document == "hangs" {
				<-back
			}
			return true, nil
		}))
		client := pipe{mcptest.New(t, s, ann)}
		const events = 40
		for i := range events {
			subscribe(t, client, subscribeTo("a", hookURL, "")) // the first grants last 15 minutes
			subscribe(t, client, subscribeTo("hangs", hookURL, ""))
			emit(t, s, "a", fmt.Sprint(i))
			time.Sleep(2 * time.Minute)
		}
		if got := len(r.all()); got != 1+events {
			t.Errorf("received %d of %d", got, 1+events)
		}
		close(back)
	})
}

// A new secret signs with the earlier one for five minutes.
func TestWebhookSecrets(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		r.secrets["two"] = "whsec_" + base64.StdEncoding.EncodeToString([]byte("fedcba9876543210fedcba9876543210"))
		s := ended(t, eventServer(hooked(opts, r)))
		client := pipe{mcptest.New(t, s, ann)}
		subscribe(t, client, subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "one")
		synctest.Wait()
		subscribe(t, client, strings.Replace(subscribeTo("a", hookURL, ""), webhookSecret, r.secrets["two"], 1))
		emit(t, s, "a", "two")
		time.Sleep(299 * time.Second)
		emit(t, s, "a", "three")
		time.Sleep(2 * time.Second)
		emit(t, s, "a", "four")
		time.Sleep(time.Second)
		var keys []string
		for _, d := range r.all() {
			keys = append(keys, d.Type+d.Data.Text+":"+d.keys)
		}
		if got := strings.Join(keys, ", "); got != "verification:one, one:one, two:one two, three:one two, four:two" {
			t.Errorf("signed: %s", got)
		}
	})
}

// A subscription that is not refreshed ends; events that wait for its endpoint are dropped.
func TestWebhookExpires(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		r.answer = func(_ *delivery, w http.ResponseWriter) {
			w.Header().Set("Retry-After", "290")
			w.WriteHeader(503)
		}
		s := ended(t, eventServer(hooked(opts, r)))
		o := observe(s)
		subscribe(t, pipe{mcptest.New(t, s, ann)}, subscribeTo("a", hookURL, `,"ttlMs":300000`))
		emit(t, s, "a", "one")
		time.Sleep(20 * time.Minute)
		emit(t, s, "a", "two")
		time.Sleep(time.Minute)
		if got := r.texts(); got != "verification one one" {
			t.Errorf("received %s", got)
		}
		o.has(t, "webhook.opened", "delivery.dropped expired", "webhook.ended expired")
	})
}

// The grants of all TTLs.
func TestWebhookTTL(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		most := 15 * time.Minute
		if opts.Store != nil {
			most = 24 * time.Hour
		}
		client := pipe{mcptest.New(t, ended(t, eventServer(hooked(opts, newReceiver(t)))), ann)}
		for members, want := range map[string]time.Duration{
			"": time.Hour, `,"ttlMs":null`: time.Hour, `,"ttlMs":0`: 5 * time.Minute, `,"ttlMs":-1`: 5 * time.Minute, `,"ttlMs":600000`: 10 * time.Minute,
			`,"ttlMs":1e30`: 24 * time.Hour, `,"ttlMs":86400000000`: 24 * time.Hour, `,"ttlMs":1.5`: 5 * time.Minute,
		} {
			g := subscribe(t, client, subscribeTo("a", hookURL, members))
			if got := time.Until(g.RefreshBefore).Round(time.Second); got != min(want, most) {
				t.Errorf("%s: %v", members, got)
			}
		}
	})
}

// What a log has dropped, or a store has lost, becomes a gap.
func TestWebhookGap(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		opts.Limits.EventLog = 2 << 10
		r := newReceiver(t)
		var down atomic.Bool
		r.answer = func(_ *delivery, w http.ResponseWriter) {
			if down.Load() {
				w.WriteHeader(503)
			}
		}
		s := ended(t, eventServer(hooked(opts, r)))
		client := pipe{mcptest.New(t, s, ann)}
		subscribe(t, client, subscribeTo("a", hookURL, ""))
		down.Store(true)
		emit(t, s, "a", "first")
		time.Sleep(2 * time.Second)
		for i := range 5000 {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{"a", fmt.Sprint(i, strings.Repeat("x", 300))}}); err != nil {
				t.Fatal(err)
			}
		}
		down.Store(false)
		time.Sleep(2 * time.Minute)
		all := r.all()
		gap := -1
		for i, d := range all {
			if d.Type == "gap" {
				gap = i
			}
		}
		if gap < 0 || gap > 10 || all[gap].Cursor == "" || !strings.HasPrefix(all[gap].id, "msg_gap_") || !strings.HasPrefix(all[len(all)-1].Data.Text, "4999") {
			t.Fatalf("received %d, the gap is %d, the last %+v", len(all), gap, all[len(all)-1])
		}
		page := poll(t, client, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, all[len(all)-2].Cursor))
		if len(page.Events) != 1 {
			t.Errorf("after the last but one: %+v", page)
		}
	})
}

// The limits of a principal and of a server; verifications are cached, and varied URLs cost
// ten requests.
func TestWebhookLimits(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		opts.Limits.Webhooks = 150
		s := ended(t, eventServer(hooked(opts, r)))
		as := func(who string) pipe { return pipe{mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: who}))} }
		mine := as("ann")
		for i := range 100 {
			subscribe(t, mine, subscribeTo(fmt.Sprint(i), hookURL, ""))
		}
		if got := mine.Ask("events/subscribe", subscribeTo("x", hookURL, "")); !strings.Contains(got, `"code":-32013,"message":"this user has 100 webhook subscriptions, which is the limit","data":{"limit":"subscriptions","max":100}`) {
			t.Errorf("101: %s", got)
		}
		subscribe(t, mine, subscribeTo("7", hookURL, "")) // a refresh needs no room
		if n := len(r.all()); n != 1 {
			t.Errorf("%d challenges", n)
		}
		for i := range 50 {
			subscribe(t, as("bob"), subscribeTo(fmt.Sprint(i), hookURL, ""))
		}
		if got := as("cid").Ask("events/subscribe", subscribeTo("x", hookURL, "")); !strings.Contains(got, `"data":{"limit":"webhooks","max":150}`) {
			t.Errorf("151: %s", got)
		}
		r.agree = func(_ *delivery, w http.ResponseWriter) { fmt.Fprint(w, `{"challenge":"x"}`) }
		evil := as("eve")
		for i := range 40 {
			got := evil.Ask("events/subscribe", subscribeTo("x", fmt.Sprint("https://victim.example/", i), ""))
			if want := `"code":-32015,"message":"the callback did not return the challenge","data":{"reason":"challenge_failed"}`; i < 10 && !strings.Contains(got, want) ||
				i >= 10 && !strings.Contains(got, `10 callbacks of this user failed lately`) {
				t.Fatalf("%d: %s", i, got)
			}
		}
		count := func(path string) (n int) {
			for _, d := range r.all() {
				if strings.HasPrefix(d.path, path) && d.Type == "verification" {
					n++
				}
			}
			return n
		}
		if n := len(r.all()); n != 1+1+1+10 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(11 * time.Minute)
		var all sync.WaitGroup
		for i := range 200 { // at once, with varied arguments
			all.Go(func() { evil.Ask("events/subscribe", subscribeTo(fmt.Sprint(i), "https://victim.example/once", "")) })
		}
		all.Wait()
		if n := count("/once"); n != 1 {
			t.Errorf("%d challenges for one URL", n)
		}
	})
}

// What an endpoint answers to a challenge.
func TestWebhookChallenge(t *testing.T) {
	for name, c := range map[string]struct {
		agree  func(d *delivery, w http.ResponseWriter)
		reason string
	}{
		"returned": {func(d *delivery, w http.ResponseWriter) { fmt.Fprintf(w, `{"challenge":%q,"more":1}`, d.Challenge) }, ""},
		"with 201": {func(d *delivery, w http.ResponseWriter) {
			w.WriteHeader(201)
			fmt.Fprintf(w, `{"challenge":%q}`, d.Challenge)
		}, ""},
		"another": {func(_ *delivery, w http.ResponseWriter) { fmt.Fprint(w, `{"challenge":"x"}`) }, "challenge_failed"},
		"empty":   {func(*delivery, http.ResponseWriter) {}, "challenge_failed"},
		"null":    {func(_ *delivery, w http.ResponseWriter) { fmt.Fprint(w, `{"challenge":null}`) }, "challenge_failed"},
		"a list":  {func(_ *delivery, w http.ResponseWriter) { fmt.Fprint(w, `[]`) }, "challenge_failed"},
		"400": {func(d *delivery, w http.ResponseWriter) {
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"challenge":%q}`, d.Challenge)
		}, "challenge_failed"},
		"redirected": {func(_ *delivery, w http.ResponseWriter) {
			w.Header().Set("Location", "https://other.example")
			w.WriteHeader(307)
		}, "challenge_failed"},
		"huge": {func(d *delivery, w http.ResponseWriter) {
			fmt.Fprintf(w, `{"x":%q,"challenge":%q}`, strings.Repeat("x", 1<<20), d.Challenge)
		}, "challenge_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, opts *mcp.Options) {
				r := newReceiver(t)
				r.agree = c.agree
				client := pipe{mcptest.New(t, ended(t, eventServer(hooked(opts, r))), ann)}
				for range 2 { // the second time, the answer is known
					got := client.Ask("events/subscribe", subscribeTo("a", hookURL, ""))
					if strings.Contains(got, `"result"`) != (c.reason == "") || c.reason != "" && !strings.Contains(got, fmt.Sprintf(`"data":{"reason":%q}`, c.reason)) {
						t.Errorf("got %s", got)
					}
				}
				time.Sleep(time.Second)
				if n := len(r.all()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// Another principal's subscription is out of reach, and so are arguments in another order.
func TestWebhookKeys(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		s := ended(t, mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, hooked(opts, r)))
		type in struct {
			A string  `json:"a,omitempty"`
			B float64 `json:"b,omitempty"`
		}
		s.MustAdd(mcp.EventType("x", func(*mcp.Frame, in, map[string]string) (bool, error) { return true, nil }))
		as := func(who string) pipe { return pipe{mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: who}))} }
		params := func(arguments string) string {
			return fmt.Sprintf(`{"name":"x","arguments":%s,"delivery":{"mode":"webhook","url":%q,"secret":%q}}`, arguments, hookURL, webhookSecret)
		}
		mine := subscribe(t, as("ann"), params(`{"a":"x","b":1}`))
		if again := subscribe(t, as("ann"), params(`{ "b" : 1, "\u0061": "\u0078" }`)); again.ID != mine.ID || again.DeliveryStatus == nil {
			t.Errorf("another subscription: %+v", again)
		}
		if other := subscribe(t, as("ann"), params(`{"a":"x","b":1.0}`)); other.ID == mine.ID {
			t.Error("1 and 1.0 are one")
		}
		if other := subscribe(t, as("bob"), params(`{"a":"x","b":1}`)); other.ID == mine.ID || other.DeliveryStatus != nil {
			t.Errorf("bob has that of ann: %+v", other)
		}
		as("eve").Ask("events/unsubscribe", fmt.Sprintf(`{"name":"x","id":%q,"arguments":{"a":"x","b":1},"delivery":{"url":%q}}`, mine.ID, hookURL))
		if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		to := map[string]int{}
		for _, d := range r.all() {
			if d.Type == "" {
				to[d.subscription]++
			}
		}
		if len(to) != 3 || to[mine.ID] != 1 {
			t.Errorf("received %v", to)
		}
	})
}

// A client that declares the extension gets the codes of the specification, and an error
// for a second unsubscribe.
func TestWebhookCodes(t *testing.T) {
	s := eventServer(hooked(nil, newReceiver(t)))
	can := protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{"io.modelcontextprotocol/events": json.RawMessage("{}")}}
	client := pipe{mcptest.New(t, s, ann, mcptest.Revision(protocol.V20260728), mcptest.Capabilities(can))}
	for name, c := range map[string]struct{ method, params, want string }{
		"unsubscribe": {"events/unsubscribe", unsubscribeFrom("a", hookURL), `"code":-32023,"message":"there is no such subscription","data":{"kind":"subscription"}`},
		"mode":        {"events/subscribe", strings.Replace(subscribeTo("a", hookURL, ""), `"webhook"`, `"x"`, 1), `"code":-32026`},
		"callback":    {"events/subscribe", subscribeTo("a", "https://10.0.0.1/", ""), `"code":-32027`},
	} {
		if got := client.Ask(c.method, c.params); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A mounted server's events are delivered by the server that clients talk to, under its
// names and with its options.
func TestWebhooksMounted(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		child := ended(t, eventServer(nil, mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Identity().Subject == "ann" })))
		s := ended(t, mcp.NewServer(mcp.Info{Name: "all", Version: "1"}, hooked(opts, r)))
		if err := s.Mount("docs", child); err != nil {
			t.Fatal(err)
		}
		client := pipe{mcptest.New(t, s, ann)}
		if got := client.Ask("events/list", "{}"); !strings.Contains(got, `"webhook"]`) {
			t.Errorf("list: %s", got)
		}
		params := strings.Replace(subscribeTo("a", hookURL, ""), "comment.created", "docs_comment.created", 1)
		subscribe(t, client, params)
		emit(t, child, "a", "one")
		emit(t, child, "b", "other")
		time.Sleep(time.Second)
		if got := r.texts(); got != "verification one" || !strings.Contains(r.all()[1].raw, `"name":"docs_comment.created"`) {
			t.Errorf("received %s: %+v", got, r.all())
		}
		s.Unmount("docs", child)
		time.Sleep(time.Minute)
		if got := r.texts(); got != "verification one terminated" {
			t.Errorf("received %s", got)
		}
	})
}

// Shutdown waits for the requests to endpoints; without a store it says what is lost.
func TestWebhookShutdown(t *testing.T) {
	bothStores(t, func(t *testing.T, opts *mcp.Options) {
		r := newReceiver(t)
		var done atomic.Bool
		r.answer = func(*delivery, http.ResponseWriter) { time.Sleep(5 * time.Second); done.Store(true) }
		s := eventServer(hooked(opts, r))
		client := pipe{mcptest.New(t, s, ann)}
		subscribe(t, client, subscribeTo("a", hookURL, ""))
		emit(t, s, "a", "one")
		emit(t, s, "a", "two")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil || !done.Load() {
			t.Errorf("Shutdown: %v, the request has ended: %v", err, done.Load())
		}
		if got := r.texts(); got != "verification one" {
			t.Errorf("received %s", got)
		}
	})
}

// A server without a store that shuts down logs that events were not delivered if that is so.
func TestWebhookShutdownLog(t *testing.T) {
	for texts, want := range map[string]bool{"one": false, "one two": true} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			logger := zerolog.New(&log)
			r := newReceiver(t)
			r.answer = func(*delivery, http.ResponseWriter) { time.Sleep(5 * time.Second) }
			s := eventServer(hooked(&mcp.Options{Logger: &logger}, r))
			subscribe(t, pipe{mcptest.New(t, s, ann)}, subscribeTo("a", hookURL, ""))
			for text := range strings.FieldsSeq(texts) {
				emit(t, s, "a", text)
			}
			synctest.Wait()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if got := r.texts(); got != "verification one" || strings.Contains(log.String(), "were not delivered") != want {
				t.Errorf("received %s, and the log has %s", got, &log)
			}
		})
	}
}

// The subscriptions of a replica that drains go on at another one, without a repetition or
// a loss; those of one that is gone are taken over after a lease.
func TestWebhooksAtReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		r := newReceiver(t)
		var all []*mcp.Server
		add := func() *mcp.Server {
			s := eventServer(hooked(&mcp.Options{Store: store, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}, r))
			all = append(all, s)
			return s
		}
		one, two := add(), add()
		c1, c2 := pipe{mcptest.New(t, one, ann)}, pipe{mcptest.New(t, two, ann)}
		c2.Ask("events/list", "{}") // it serves
		g := subscribe(t, c1, subscribeTo("a", hookURL, ""))
		emit(t, two, "a", "1")
		time.Sleep(10 * time.Second)
		if again := subscribe(t, c2, subscribeTo("a", hookURL, "")); again.ID != g.ID || again.DeliveryStatus == nil || again.DeliveryStatus.LastDeliveryAt == nil {
			t.Errorf("refreshed elsewhere: %+v", again)
		}
		emit(t, one, "a", "2")
		time.Sleep(10 * time.Second)
		if err := one.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		emit(t, one, "a", "3")
		time.Sleep(3 * time.Second)
		if got := r.texts(); got != "verification 1 2 3" {
			t.Errorf("after Drain: %s", got)
		}
		if err := one.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		emit(t, two, "a", "4")
		time.Sleep(time.Second)
		three := add()
		c3 := pipe{mcptest.New(t, three, ann)}
		c3.Ask("events/list", "{}")
		time.Sleep(time.Hour / 4)
		if err := two.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		emit(t, three, "a", "5")
		time.Sleep(3 * time.Second)
		if got := r.texts(); got != "verification 1 2 3 4 5" {
			t.Errorf("after Shutdown: %s", got)
		}
		c3.Ask("events/unsubscribe", unsubscribeFrom("a", hookURL))
		emit(t, three, "a", "6")
		time.Sleep(3 * time.Second)
		if got := r.texts(); got != "verification 1 2 3 4 5" {
			t.Errorf("after the end: %s", got)
		}
		if err := three.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		four := add()
		pipe{mcptest.New(t, four, ann)}.Ask("events/list", "{}")
		emit(t, four, "a", "7")
		time.Sleep(2 * time.Minute)
		if got := r.texts(); got != "verification 1 2 3 4 5" {
			t.Errorf("a subscription has come back: %s", got)
		}
		_ = four.Shutdown(t.Context())
	})
}

// cutStore is the store as one replica reaches it, until it is cut off.
type cutStore struct {
	scale.Store
	cut atomic.Bool
}

func (s *cutStore) err() error {
	if s.cut.Load() {
		return scale.ErrUnavailable
	}
	return nil
}

func (s *cutStore) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, ops...)
}

func (s *cutStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Put(ctx, writes...)
}

func (s *cutStore) ClaimDue(ctx context.Context, part, index, owner string, most int, lease time.Duration) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.ClaimDue(ctx, part, index, owner, most, lease)
}

func (s *cutStore) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if err := s.err(); err != nil {
		return 0, "", err
	}
	return s.Store.Append(ctx, p)
}

func (s *cutStore) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if err := s.err(); err != nil {
		return nil, "", err
	}
	return s.Store.Read(ctx, box, after, reader)
}

// A replica that has lost the store, or is gone, keeps no subscription for longer than its
// lease: another one continues, in order and without a loss.
func TestWebhooksOfALostReplica(t *testing.T) {
	hooks := max(4, testdep.Rounds(20, 20))
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		r := newReceiver(t)
		add := func(store scale.Store) *mcp.Server {
			return ended(t, eventServer(hooked(&mcp.Options{Store: store, Logger: &quiet, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}, r)))
		}
		cut := &cutStore{Store: store}
		one, two := add(cut), add(store)
		c1 := pipe{mcptest.New(t, one, ann)}
		pipe{mcptest.New(t, two, ann)}.Ask("events/list", "{}") // it serves
		for i := range hooks {
			subscribe(t, c1, subscribeTo("a", fmt.Sprint("https://receiver.example/", i), `,"ttlMs":36000000`))
			subscribe(t, c1, subscribeTo(fmt.Sprint("b", i), hookURL, `,"ttlMs":36000000`))
		}
		time.Sleep(2 * time.Minute)
		emit(t, two, "a", "1")
		time.Sleep(time.Second)
		cut.cut.Store(true)
		from := time.Now()
		for i := 2; time.Since(from) < 5*time.Minute; i++ {
			emit(t, two, "a", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		last, received, repeated := map[string]int{}, 0, 0
		silence, before := time.Duration(0), map[string]time.Time{}
		for _, d := range r.all() {
			if d.Type != "" {
				continue
			}
			received++
			var n int
			_, _ = fmt.Sscan(d.Data.Text, &n)
			switch {
			case n == last[d.path]+1:
				if last[d.path] = n; n > 1 {
					silence = max(silence, d.at.Sub(before[d.path]))
				}
				before[d.path] = d.at
			case n <= last[d.path]:
				repeated++
			default:
				t.Fatalf("%s: %d comes after %d", d.path, n, last[d.path])
			}
		}
		for i := range hooks {
			if n := last[fmt.Sprint("/", i)]; n < 299 {
				t.Errorf("subscription %d has received %d", i, n)
			}
		}
		if silence > 90*time.Second || repeated > received*3/100 {
			t.Errorf("received %d, repeated %d, silence %v", received, repeated, silence)
		}
		t.Logf("received %d, repeated %d, silence %v", received, repeated, silence)
	})
}
