package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"github.com/talaria-go/mcp/transport"
)

// engine is a store within the process that can be away, lose hints, and counts
// what is read of topics.
type engine struct {
	scale.Store
	away, deaf atomic.Bool
	read       atomic.Int64
}

func newEngine() *engine { return &engine{Store: scale.NewLocal()} }

func (e *engine) err() error {
	if e.away.Load() {
		return scale.ErrUnavailable
	}
	return nil
}

func (e *engine) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	for _, look := range looks {
		if strings.HasPrefix(look.Key.Partition, "topic-") {
			e.read.Add(1)
		}
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.Store.Get(ctx, looks...)
}

func (e *engine) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.Store.Put(ctx, writes...)
}

func (e *engine) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if err := e.err(); err != nil {
		return 0, "", err
	}
	return e.Store.Append(ctx, p)
}

func (e *engine) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if err := e.err(); err != nil {
		return nil, "", err
	}
	return e.Store.Read(ctx, box, after, reader)
}

func (e *engine) Take(ctx context.Context, t scale.Take) (scale.Box, error) {
	if err := e.err(); err != nil {
		return scale.Box{}, err
	}
	return e.Store.Take(ctx, t)
}

func (e *engine) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	return e.Store.Watch(func(subject string, m scale.Message) {
		if !e.deaf.Load() {
			fn(subject, m)
		}
	}, gap)
}

// ear is a client that counts what it is told, by parts of the messages.
type ear struct {
	mu   sync.Mutex
	told []string
	end  func()
}

func (e *ear) hear(message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, message)
}

// took returns how many messages with that part came since it was last called
// for it.
func (e *ear) took(part string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var rest []string
	for _, m := range e.told {
		if strings.Contains(m, part) {
			n++
		} else {
			rest = append(rest, m)
		}
	}
	e.told = rest
	return n
}

// onConn connects a client that says lines.
func onConn(s *mcp.Server, lines ...string) *ear {
	client, server := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), server) }()
	e, over := &ear{}, make(chan struct{})
	go func() {
		defer close(over)
		for {
			message, err := client.Read()
			if err != nil {
				return
			}
			e.hear(string(message))
		}
	}()
	for _, line := range lines {
		_ = client.Write([]byte(line))
	}
	e.end = func() { _ = client.Close(); <-served; <-over }
	return e
}

// streamed is a response whose events an ear hears.
type streamed struct {
	*httptest.ResponseRecorder
	ear *ear
}

func (s streamed) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "" {
			s.ear.hear(data)
		}
	}
	return len(p), nil
}

func (s streamed) SetWriteDeadline(time.Time) error { return nil }

// request sends a request of a session.
func request(t *testing.T, s *mcp.Server, session, method, uri string) {
	t.Helper()
	w := httptest.NewRecorder()
	harness.Do(s, t.Context(), http.MethodPost, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"uri":%q}}`, method, uri), w)
	if !strings.Contains(w.Body.String(), `"result"`) {
		t.Errorf("%s: %d %s", method, w.Code, w.Body)
	}
}

// onStream opens the stream of a session.
func onStream(s *mcp.Server, session string) *ear {
	ctx, cancel := context.WithCancel(context.Background())
	e, over := &ear{}, make(chan struct{})
	go func() {
		defer close(over)
		harness.Do(s, ctx, http.MethodGet, session, "", streamed{httptest.NewRecorder(), e})
	}()
	synctest.Wait()
	e.end = func() { cancel(); <-over }
	return e
}

const (
	changedURI      = "file:///notes.txt" // of a resource that there need not be
	toolsChanged    = `"notifications/tools/list_changed"`
	resourceUpdated = `"notifications/resources/updated"`
	listenBoth      = `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["` + changedURI + `"]},$META}}`
)

// fleetOf runs fn in a bubble with servers that share an engine.
func fleetOf(t *testing.T, n int, fn func(t *testing.T, e *engine, servers []*mcp.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		var servers []*mcp.Server
		for range n {
			servers = append(servers, harness.Fixture(t, &mcp.Options{Store: e, StateKeys: harness.SharedKeys}))
		}
		for _, s := range servers {
			harness.Initialized(t, s)
		}
		time.Sleep(10 * time.Minute)
		fn(t, e, servers)
		for _, s := range servers {
			_ = s.Shutdown(context.Background())
		}
	})
}

// earsOf returns a client of each kind.
func earsOf(t *testing.T, s *mcp.Server) map[string]*ear {
	t.Helper()
	ears := map[string]*ear{
		"connection, modern": onConn(s, harness.Expand(listenBoth, protocol.Latest)),
		"connection, legacy": onConn(s, harness.InitLine, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+changedURI+`"}}`),
	}
	session := harness.Initialized(t, s)
	request(t, s, session, "resources/subscribe", changedURI)
	ears["stream"] = onStream(s, session)
	synctest.Wait()
	return ears
}

// A change at one replica reaches every client of another: at once, without hints
// by the next look, and after the store was away within a second.
func TestChangeAtAnotherReplica(t *testing.T) {
	fleetOf(t, 3, func(t *testing.T, e *engine, servers []*mcp.Server) {
		b, c := servers[1], servers[2]
		here, there := earsOf(t, b), earsOf(t, c)
		changes := 0
		change := func() {
			time.Sleep(time.Minute) // changes of lists gather
			changes++
			b.MustAdd(harness.Tool(fmt.Sprint("more", changes)))
			b.ResourceUpdated(changedURI)
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
		}
		want := func(n int, when string) {
			t.Helper()
			for kind, ear := range there {
				if lists, resources := ear.took(toolsChanged), ear.took(resourceUpdated); lists != n || resources != n {
					t.Errorf("%s, %s: told of %d lists and %d resources, want %d", when, kind, lists, resources, n)
				}
			}
			for kind, ear := range here {
				lists, resources := ear.took(toolsChanged), ear.took(resourceUpdated)
				if n == 0 && (lists != 1 || resources != 1) || n > 0 && when != "at once" && lists+resources != 0 {
					t.Errorf("%s, %s where it changed: told of %d lists and %d resources", when, kind, lists, resources)
				}
			}
		}
		change()
		want(1, "at once")
		e.deaf.Store(true)
		change()
		want(0, "without hints")
		time.Sleep(5 * time.Second)
		want(1, "after a look")
		e.deaf.Store(false)
		time.Sleep(time.Minute)
		e.away.Store(true)
		change()
		time.Sleep(30 * time.Second)
		want(0, "while the store is away")
		e.away.Store(false)
		time.Sleep(time.Second)
		want(1, "a second after that")
		for _, ears := range []map[string]*ear{here, there} {
			for _, ear := range ears {
				ear.end()
			}
		}
	})
}

// A session whose client has no stream is told of what changed meanwhile when it
// opens one, at whichever replica.
func TestChangeWhileAway(t *testing.T) {
	fleetOf(t, 3, func(t *testing.T, e *engine, servers []*mcp.Server) {
		a, b, c := servers[0], servers[1], servers[2]
		session := harness.Initialized(t, a)
		request(t, b, session, "resources/subscribe", changedURI)
		time.Sleep(time.Minute)
		opens := func(s *mcp.Server, when string, lists, resources int) {
			t.Helper()
			ear := onStream(s, session)
			if l, r := ear.took(toolsChanged), ear.took(resourceUpdated); l != lists || r != resources {
				t.Errorf("%s: told of %d lists and %d resources, want %d and %d", when, l, r, lists, resources)
			}
			time.Sleep(time.Minute)
			if l, r := ear.took(toolsChanged), ear.took(resourceUpdated); l+r > 0 {
				t.Errorf("%s, later: told of %d lists and %d resources", when, l, r)
			}
			ear.end()
		}
		opens(c, "nothing has changed", 0, 0)
		b.MustAdd(harness.Tool("more"))
		time.Sleep(time.Minute)
		opens(a, "a list has changed", 1, 0)
		opens(b, "and nothing since", 0, 0)
		for range 3 {
			b.ResourceUpdated(changedURI)
			b.ResourceUpdated("file:///other.txt")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		opens(c, "a resource has changed", 0, 1)
		opens(a, "and nothing since, either", 0, 0)
		time.Sleep(26 * time.Minute)
		opens(b, "and for long", 0, 0)
	})
}

// What a client subscribes to at one replica, it is told of on its stream at
// another, and no more when it unsubscribes.
func TestSubscribeAtAnotherReplica(t *testing.T) {
	fleetOf(t, 3, func(t *testing.T, e *engine, servers []*mcp.Server) {
		a, b, c := servers[0], servers[1], servers[2]
		session := harness.Initialized(t, a)
		ear := onStream(c, session)
		defer ear.end()
		change := func(want int, when string) {
			t.Helper()
			synctest.Wait() // until the replica of the stream has heard of what was asked
			b.ResourceUpdated(changedURI)
			time.Sleep(10 * time.Second)
			if n := ear.took(resourceUpdated); n != want {
				t.Errorf("%s: told %d times, want %d", when, n, want)
			}
		}
		request(t, a, session, "resources/subscribe", changedURI)
		change(1, "subscribed at another replica")
		request(t, b, session, "resources/unsubscribe", changedURI)
		change(0, "unsubscribed at a third")
		e.deaf.Store(true)
		request(t, b, session, "resources/subscribe", changedURI)
		change(1, "subscribed without hints")
	})
}

// A thousand subscriptions to one resource cost the store one read.
func TestHerdOfSubscriptions(t *testing.T) {
	fleetOf(t, 2, func(t *testing.T, e *engine, servers []*mcp.Server) {
		time.Sleep(time.Second)
		before := e.read.Load()
		var ears []*ear
		for range 1000 {
			ears = append(ears, onConn(servers[0], harness.Expand(listenBoth, protocol.Latest)))
		}
		synctest.Wait()
		if n := e.read.Load() - before; n != 2 {
			t.Errorf("%d reads, want one for the list and one for the resource", n)
		}
		servers[1].ResourceUpdated(changedURI)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		for _, ear := range ears {
			if ear.took(resourceUpdated) != 1 {
				t.Error("not told once")
			}
			ear.end()
		}
		synctest.Wait()
		before = e.read.Load()
		time.Sleep(time.Minute)
		if n := e.read.Load() - before; n != 0 {
			t.Errorf("%d reads when all have left", n)
		}
	})
}

// While one release takes the place of another, with other tools, each client is
// told of it, at least once and at most three times, and of no other list; also
// one whose stream moves from replica to replica.
func TestRollingDeploy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		release := func(n int) *mcp.Server {
			s := harness.Fixture(t, &mcp.Options{Store: e, StateKeys: harness.SharedKeys})
			if n > 1 {
				s.MustAdd(harness.Tool("next_release"))
			}
			harness.Initialized(t, s)
			return s
		}
		servers := []*mcp.Server{release(1), release(1), release(1)}
		time.Sleep(10 * time.Minute)
		type client struct {
			session string
			ear     *ear
			lists   int
			others  int
		}
		var clients []*client
		for i := range 12 {
			c := &client{session: harness.Initialized(t, servers[i%3])}
			clients = append(clients, c)
		}
		connect := func() {
			for i, c := range clients {
				if c.ear == nil {
					c.ear = onStream(servers[(i/3)%3], c.session)
				}
			}
		}
		connect()
		time.Sleep(time.Minute)
		for i, old := range servers {
			servers[i] = release(2)
			time.Sleep(10 * time.Second)
			// Its streams end, and their clients come back.
			go func() { _ = old.Shutdown(context.Background()) }()
			time.Sleep(time.Second)
			for j, c := range clients {
				if (j/3)%3 == i {
					c.ear.end()
					c.lists, c.others = c.lists+c.ear.took(toolsChanged), c.others+c.ear.took("list_changed")
					c.ear = nil
				}
			}
			connect()
			time.Sleep(10 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		for i, c := range clients {
			c.ear.end()
			lists, others := c.lists+c.ear.took(toolsChanged), c.others+c.ear.took("list_changed")
			if lists < 1 || lists > 3 || others > 0 {
				t.Errorf("client %d: told %d times of the tools, %d times of other lists", i, lists, others)
			}
		}
		for _, s := range servers {
			_ = s.Shutdown(context.Background())
		}
	})
}

// What is mounted is told by the server that it is mounted into, once.
func TestMountedChange(t *testing.T) {
	fleetOf(t, 2, func(t *testing.T, e *engine, servers []*mcp.Server) {
		var children []*mcp.Server
		for _, s := range servers {
			child := harness.Weather(mcp.Options{})
			if err := s.Mount("child", child); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
			same := harness.Weather(mcp.Options{Store: e, StateKeys: harness.SharedKeys})
			if err := s.Mount("same", same); err == nil || !strings.Contains(err.Error(), "Options.Store") {
				t.Errorf("mounted with the same store: %v", err)
			}
			_ = same.Shutdown(t.Context())
		}
		time.Sleep(time.Minute)
		ears := earsOf(t, servers[1])
		children[0].ResourceUpdated(changedURI)
		children[0].MustAdd(harness.Tool("more"))
		time.Sleep(time.Minute)
		for kind, ear := range ears {
			if lists, resources := ear.took(toolsChanged), ear.took(resourceUpdated); lists != 1 || resources != 1 {
				t.Errorf("%s: told of %d lists and %d resources", kind, lists, resources)
			}
			ear.end()
		}
	})
}

// NotifyAll reaches the sessions of all replicas.
func TestNotifyAllReplicas(t *testing.T) {
	fleetOf(t, 2, func(t *testing.T, e *engine, servers []*mcp.Server) {
		ears := earsOf(t, servers[1])
		if err := servers[0].NotifyAll("notifications/acme/news", map[string]int{"n": 7}); err != nil {
			t.Error(err)
		}
		if err := servers[0].NotifyAll("notifications/acme/nothing", nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for kind, ear := range ears {
			want := 1
			if kind == "connection, modern" {
				want = 0
			}
			if news, nothing := ear.took(`"notifications/acme/news","params":{"n":7}`), ear.took(`"notifications/acme/nothing"`); news != want || nothing != want {
				t.Errorf("%s: told %d and %d times, want %d", kind, news, nothing, want)
			}
			ear.end()
		}
		e.away.Store(true)
		if err := servers[0].NotifyAll("notifications/acme/news", nil); !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("while the store is away: %v", err)
		}
		e.away.Store(false)
		time.Sleep(time.Minute)
	})
}

// Notify reaches the connection of a session at another replica, in order, as long
// as that is there.
func TestNotifyConnectionElsewhere(t *testing.T) {
	fleetOf(t, 3, func(t *testing.T, e *engine, servers []*mcp.Server) {
		a, b := servers[0], servers[1]
		b.MustAdd(mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) { return "id=" + f.SessionID() + "=", nil }))
		ear := onConn(b, harness.InitLine, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+changedURI+`"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"id"}}`)
		synctest.Wait()
		parts := strings.Split(strings.Join(ear.told, ""), "=")
		if len(parts) != 3 {
			t.Fatalf("no id in %q", ear.told)
		}
		id := parts[1]
		for n := range 20 {
			if err := a.Notify(id, "notifications/acme/news", map[string]int{"n": n}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Notify(id, "notifications/resources/updated", map[string]string{"uri": changedURI}); err != nil {
			t.Error(err)
		}
		if err := a.Notify(id, "notifications/resources/updated", map[string]string{"uri": "file:///other"}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		next := 0
		for _, message := range ear.told {
			if strings.Contains(message, fmt.Sprintf(`"notifications/acme/news","params":{"n":%d}`, next)) {
				next++
			}
		}
		if updates := ear.took(resourceUpdated); next != 20 || updates != 1 {
			t.Errorf("%d messages came in their order, and %d changes", next, updates)
		}
		for _, nobody := range []string{"zzzz." + id, "0.x", id[strings.Index(id, "."):], "x"} {
			if err := a.Notify(nobody, "notifications/acme/news", nil); !errors.Is(err, mcp.ErrSessionNotFound) {
				t.Errorf("Notify(%q) = %v", nobody, err)
			}
		}
		e.away.Store(true)
		if err := a.Notify(id, "notifications/acme/news", nil); !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("while the store is away: %v", err)
		}
		e.away.Store(false)
		time.Sleep(time.Minute)
		ear.end()
		time.Sleep(time.Minute)
		if err := a.Notify(id, "notifications/acme/news", nil); err != nil {
			t.Errorf("after it has left: %v", err)
		}
	})
}

// Who has subscribed to a task hears of it at another replica than the one that
// runs it: of each state, the last one included, and of none twice.
func TestTaskChangesAtAnotherReplica(t *testing.T) {
	fleetOf(t, 3, func(t *testing.T, e *engine, servers []*mcp.Server) {
		steps := make(chan string, 3)
		for _, s := range servers {
			s.MustAdd(mcp.Tool("long", func(f *mcp.Frame, _ struct{}) (string, error) {
				n := 0.0
				for step := range steps {
					if n++; step == "" {
						break
					}
					if err := f.Progress(n, 0, step); err != nil {
						return "", err
					}
				}
				return "the end", nil
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})))
		}
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		caller := onConn(servers[0], `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long",`+meta+`}}`)
		synctest.Wait()
		_, id, _ := strings.Cut(strings.Join(caller.told, ""), `"taskId":"`)
		id, _, _ = strings.Cut(id, `"`)
		time.Sleep(time.Minute)
		listen := fmt.Sprintf(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q]},%s}}`, id, meta)
		here, there := onConn(servers[0], listen), onConn(servers[2], listen)
		synctest.Wait()
		want := func(part string, n int, when string) {
			t.Helper()
			for where, ear := range map[string]*ear{"here": here, "there": there} {
				ear.mu.Lock()
				all := strings.Join(ear.told, "\n")
				ear.mu.Unlock()
				if got := ear.took(part); got != n {
					t.Errorf("%s, %s: told %d times of %s, want %d; all: %s", when, where, got, part, n, all)
				}
			}
		}
		want("acknowledged", 1, "at first")
		steps <- "one third"
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want("one third", 1, "by a hint")
		e.deaf.Store(true)
		steps <- "two thirds"
		time.Sleep(7 * time.Second) // of which progress that follows progress waits one
		want("two thirds", 1, "by a look")
		e.deaf.Store(false)
		time.Sleep(time.Minute)
		want("notifications/tasks", 0, "later")
		steps <- ""
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want("the end", 1, "at the end")
		time.Sleep(time.Minute)
		want("notifications/tasks", 0, "after the end")
		for _, ear := range []*ear{caller, here, there} {
			ear.end()
		}
	})
}
