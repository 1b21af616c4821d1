package sessions_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// endings notes why sessions have ended.
type endings struct {
	mu   sync.Mutex
	list []string
}

func (e *endings) add(f *mcp.Frame, reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	who, _ := f.Get("who")
	e.list = append(e.list, fmt.Sprint(who, ": ", reason))
}

func (e *endings) want(t *testing.T, list ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if got, want := fmt.Sprintf("%q", e.list), fmt.Sprintf("%q", list); got != want {
		t.Errorf("ended: %s, want %s", got, want)
	}
}

// lifecycleServer notes who has opened a session, and why it ends.
func lifecycleServer(e *endings, change func(*mcp.Options)) *mcp.Server {
	quiet := zerolog.Nop()
	opts := &mcp.Options{
		Logger: &quiet,
		OnSessionStart: func(f *mcp.Frame) error {
			if f.ClientInfo().Name == "bad" {
				return &mcp.Error{Code: protocol.CodeInvalidParams, Message: "bad tenant"}
			}
			if f.ClientInfo().Name == "broken" {
				return errors.New("no database")
			}
			f.Set("who", f.ClientInfo().Name)
			return nil
		},
		OnSessionEnd: e.add,
	}
	if change != nil {
		change(opts)
	}
	s := mcp.NewServer(mcp.Info{Name: "lifecycle", Version: "1"}, opts)
	s.MustAdd(
		mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) {
			who, _ := f.Get("who")
			return fmt.Sprint(who, " ", f.Principal()), nil
		}),
		mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (int, error) {
			return storedCounter.Update(f, func(n int) int { return n + 1 }), nil
		}),
	)
	return s
}

var storedCounter = mcp.NewStoredKey[int]("example.com/counter")

// OnSessionStart runs before the first answer, and refuses a session with its error;
// OnSessionEnd runs once for each session that OnSessionStart let in.
func TestOnSessionStartAndEnd(t *testing.T) {
	for _, rev := range harness.LegacyRevisions {
		for _, wire := range []struct {
			name    string
			options []mcptest.Option
			reason  string
		}{
			{"pipe", nil, "session: closed"},
			{"http", []mcptest.Option{mcptest.OverHTTP()}, "session: closed by its client"},
		} {
			t.Run(rev.String()+"/"+wire.name, func(t *testing.T) {
				var ended endings
				s := lifecycleServer(&ended, nil)
				for name, code := range map[string]protocol.Code{"bad": protocol.CodeInvalidParams, "broken": protocol.CodeInternal} {
					_, err := mcptest.Connect(t, s, append(wire.options, mcptest.Revision(rev), mcptest.Info(mcp.Info{Name: name, Version: "1"}))...)
					if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != code {
						t.Errorf("%s: %v, want code %d", name, err, code)
					}
				}
				c := harness.NewAsked(t, s, rev, append(wire.options, mcptest.Info(mcp.Info{Name: "ada", Version: "1"}), mcptest.Trace(spectest.New(t).Hear))...)
				if got := c.Call("who", nil).Text(); got != "ada " {
					t.Errorf("OnSessionStart left %q", got)
				}
				if _, err := c.TryRequest(protocol.MethodInitialize, map[string]any{"protocolVersion": rev.String(), "capabilities": struct{}{}, "clientInfo": mcp.Info{Name: "x", Version: "1"}}); err == nil {
					t.Error("a session was initialized twice")
				}
				c.Close()
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				ended.want(t, "ada: "+wire.reason)
			})
		}
	}
}

// A connection that OnSessionStart has refused may try again.
func TestInitRefusedThenTried(t *testing.T) {
	s := lifecycleServer(&endings{}, nil)
	c := harness.OpenStream(t, s, protocol.V20251125)
	say := func(line, want string) {
		t.Helper()
		if got := c.Say(line); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s\n%q, want %s", line, got, want)
		}
	}
	initialize := `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"id":1,"error":{"code":-32600`)
	say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"id":2,"result":{}`)
	say(fmt.Sprintf(initialize, 3, "bad"), `"message":"bad tenant"`)
	say(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, `"code":-32600`)
	say(fmt.Sprintf(initialize, 5, "good"), `"id":5,"result"`)
	say(`{"jsonrpc":"2.0","id":6,"method":"tools/list"}`, `"id":6,"result"`) // before notifications/initialized
	say(fmt.Sprintf(initialize, 7, "good"), `"code":-32600`)
}

// The server's end, and that of a connection's context, are reasons of their
// own.
func TestTerminateReasonOfConnections(t *testing.T) {
	var ended endings
	s := lifecycleServer(&ended, nil)
	mcptest.New(t, s, mcptest.Revision(protocol.V20250618), mcptest.Info(mcp.Info{Name: "ada", Version: "1"}), mcptest.Trace(spectest.New(t).Hear))
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	ended.want(t, "ada: "+mcp.ErrServerClosed.Error())
}

const (
	callWho   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who"}}`
	callCount = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count"}}`
)

// A session belongs to who opened it; for everybody else it does not exist.
func TestPrincipal(t *testing.T) {
	var ended endings
	s := lifecycleServer(&ended, nil)
	alice, mallory, nobody := harness.Direct{T: t, S: s, Principal: "alice"}, harness.Direct{T: t, S: s, Principal: "mallory"}, harness.Direct{T: t, S: s, Principal: ""}
	id := alice.Open("ada")
	for _, other := range []harness.Direct{mallory, nobody} {
		for what, w := range map[string]*httptest.ResponseRecorder{
			"request":      other.Do("POST", id, callWho),
			"notification": other.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`),
			"response":     other.Do("POST", id, `{"jsonrpc":"2.0","id":1,"result":{}}`),
			"stream":       other.Do("GET", id, ""),
			"end":          other.Do("DELETE", id, ""),
		} {
			unknown := other.Do("POST", "unknown", callWho)
			if w.Code != 404 || w.Body.String() != unknown.Body.String() && what == "request" {
				t.Errorf("%s of %q: %d %s; want what an unknown session gets: %s", what, other.Principal, w.Code, w.Body, unknown.Body)
			}
		}
	}
	if w := alice.Do("POST", id, callWho); !strings.Contains(w.Body.String(), "ada alice") {
		t.Errorf("alice: %s", w.Body)
	}
	if w := alice.Do("DELETE", id, ""); w.Code != 204 {
		t.Errorf("alice's DELETE: %d", w.Code)
	}
	if w := alice.Do("POST", id, callWho); w.Code != 404 {
		t.Errorf("after DELETE: %d", w.Code)
	}
	ended.want(t, "ada: session: closed by its client")
}

// Idle sessions end, with 404 for what comes later; requests and notifications
// keep them. Shutdown ends the rest, each once.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended endings
		s := lifecycleServer(&ended, func(o *mcp.Options) {
			o.Timeouts.Session, o.Limits.Sessions = 200*time.Millisecond, 3
		})
		d := harness.Direct{T: t, S: s}
		idle, noted, pinged := d.Open("idle"), d.Open("noted"), d.Open("pinged")
		for _, id := range []string{idle, noted, pinged} { // one that was never used would make room
			d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		if w := d.Do("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"more","version":"1"}}}`); !strings.Contains(w.Body.String(), "too many sessions") {
			t.Errorf("a session over the limit: %s", w.Body)
		}
		for range 5 {
			time.Sleep(90 * time.Millisecond)
			if w := d.Do("POST", noted, `{"jsonrpc":"2.0","method":"notifications/message"}`); w.Code != 202 {
				t.Errorf("notification: %d", w.Code)
			}
			if w := d.Do("POST", pinged, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); w.Code != 200 {
				t.Errorf("ping: %d", w.Code)
			}
		}
		synctest.Wait()
		ended.want(t, "idle: session: closed because it was not used")
		if w := d.Do("POST", idle, callWho); w.Code != 404 {
			t.Errorf("an expired session: %d", w.Code)
		}
		d.Do("DELETE", noted, "")
		ended.want(t, "idle: session: closed because it was not used", "noted: session: closed by its client")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		ended.want(t, "idle: session: closed because it was not used", "noted: session: closed by its client", "pinged: mcp: the server shuts down")
	})
}

// OnSessionEnd that panics costs nothing but a line in the log.
func TestOnSessionEndPanics(t *testing.T) {
	s := lifecycleServer(&endings{}, func(o *mcp.Options) { o.OnSessionEnd = func(*mcp.Frame, error) { panic("oops") } })
	d := harness.Direct{T: t, S: s}
	if w := d.Do("DELETE", d.Open("a"), ""); w.Code != 204 {
		t.Errorf("DELETE: %d", w.Code)
	}
}

// A session goes on in another process that has the same store.
func TestSessionStore(t *testing.T) {
	store := scale.NewLocal()
	var ended, endedLater endings
	with := func(o *mcp.Options) { o.Store, o.StateKeys = store, harness.SharedKeys }
	first := lifecycleServer(&ended, with)
	d := harness.Direct{T: t, S: first, Principal: "alice"}
	id := d.Open("ada")
	d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	d.Do("POST", id, `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`)
	if w := d.Do("POST", id, callCount); !strings.Contains(w.Body.String(), `"text":"1"`) {
		t.Errorf("first count: %s", w.Body)
	}
	if err := first.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	ended.want(t) // it lives on

	second := lifecycleServer(&endedLater, with)
	d.S = second
	if w := d.Do("POST", id, callCount); !strings.Contains(w.Body.String(), `"text":"2"`) {
		t.Errorf("second count: %s", w.Body)
	}
	if w := d.Do("POST", id, callWho); !strings.Contains(w.Body.String(), "ada alice") {
		t.Errorf("assign of the first process: %s", w.Body)
	}
	if w := (harness.Direct{T: t, S: second, Principal: "mallory"}).Do("POST", id, callWho); w.Code != 404 {
		t.Errorf("another principal: %d", w.Code)
	}
	for what, body := range map[string]string{"request": callWho, "notification": `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "response": `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if w := d.Do("POST", "unknown", body); w.Code != 404 {
			t.Errorf("%s of an unknown session: %d", what, w.Code)
		}
	}
	d.Do("DELETE", id, "")
	endedLater.want(t, "ada: session: closed by its client")
	if w := d.Do("POST", id, callWho); w.Code != 404 {
		t.Errorf("a session that was deleted: %d", w.Code)
	}
}

// What 10,000 sessions cost that were opened and called once over HTTP.
func TestSessionsAreSmall(t *testing.T) {
	const n = 10_000
	s := lifecycleServer(&endings{}, nil)
	d := harness.Direct{T: t, S: s}
	d.Do("POST", d.Open("warm"), callWho)
	measure := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, goroutines := measure(), runtime.NumGoroutine()
	for range n - 1 {
		id := d.Open("client")
		d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		d.Do("POST", id, callWho)
	}
	each := int64(measure()-before) / n
	t.Logf("%d bytes for each session", each)
	if each > 2048 || runtime.NumGoroutine() > goroutines {
		t.Errorf("a session keeps %d bytes, want at most 2048; %d goroutines more", each, runtime.NumGoroutine()-goroutines)
	}
	runtime.KeepAlive(s)
}

// Options.OnSessionStart may send messages: the session is known to its client all the
// same, over every transport.
func TestInitSends(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		for _, tr := range harness.TransportsOf(rev) {
			t.Run(rev.String()+"/"+tr.Name, func(t *testing.T) {
				c := tr.Open(t, harness.Fixture(t, &mcp.Options{OnSessionStart: func(f *mcp.Frame) error { return f.Log(protocol.LevelWarning, "hello") }}), rev)
				heard := c.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + rev.String() + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
				if len(heard) != 2 || !strings.Contains(heard[0], `"hello"`) || !strings.Contains(heard[1], `"result"`) {
					t.Errorf("initialize: %q", heard)
				}
				c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				if heard := c.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); len(heard) != 1 || !strings.Contains(heard[0], `"tools":[`) {
					t.Errorf("tools/list: %q", heard)
				}
			})
		}
	}
}
