package hostile_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/slogwriter"
	"github.com/talaria-go/mcp/transport"
)

// doorGuards tells of every door of the exported surface, by which code of users
// gets in, why it cannot end the process or leave somebody without an answer.
// "test:" names the test that makes it panic and end its goroutine; anything
// else is why it need not. TestEveryDoorIsGuarded holds it against the source.
var doorGuards = map[string]string{}

func init() {
	tell := func(why string, names ...string) {
		for _, name := range names {
			doorGuards[name] = why
		}
	}
	tell("test:TestDoorsOfAServer",
		"mcp.Options.OnSessionStart", "mcp.Options.OnSessionAttach", "mcp.Options.Filter", "mcp.Options.Discover", "mcp.Options.Logger", "slogwriter.New(h)", "mcp.Complete(fn)",
		"mcp.Prompt(fn)", "mcp.Resource(read)", "mcp.Template(read)", "mcp.VisibleTo(fn)", "mcp.Text(fn)", "mcp.Method(fn)", "mcp.Once(fn)",
		"mcp.Directory(fsys)", "frame.Handler", "frame.Middleware", "middleware.CacheOptions.Only", "middleware.Logging(logger)",
		"middleware.RateLimitOptions.Client", "middleware.Timing(report)", "schema.Options.Localize")
	tell("test:TestObserversAreUnwound", "frame.Observer.Begin")
	tell("test:TestObserverEndsThatDoNotReturn", "frame.Observer.End", "frame.Observer.Event")
	tell("test:TestDoorOfNotifications", "mcp.Server.OnNotification(fn)")
	tell("test:TestCredentials", "gateway.Upstream.For")
	tell("test:TestWhenThatDoesNotReturn", "toolsearch.Options.When")
	tell("test:TestCodeThatDoesNotReturn", "mcp.Tool(fn)", "schema.NewRule(check)", "schema.NewStructRule(check)", "schema.Options.Formats")
	tell("test:TestEndsThatDoNotReturn", "mcp.Options.OnSessionEnd", "mcp.Server.WithSession(fn)")
	tell("test:TestConnectionsThatDoNotReturn", "transport.Conn", "transport.NewSocket(conn)", "mcp.Server.Serve(listener)", "mcp.Server.ServeUpgrade(upgrade)")
	tell("test:TestStreamThatDoesNotReturn", "transport.NewStream(r)", "transport.NewStream(w)", "client.Stream(r)", "client.Stream(w)")
	tell("test:TestGuardWithoutGoroutine", "scale.Bounded")
	tell("test:TestStoreThatDoesNotReturn", "scale.Store", "scale.Watcher", "session.Config.OnStoreError")
	tell("test:TestBearerWithCodeThatDoesNotReturn", "auth.Verifier", "auth.VerifierFunc", "auth.Options.OnRefused")
	tell("test:TestDoorsOfVerifiers", "auth.DPoPOptions.URL", "auth.IntrospectionOptions.Authorize", "auth.IntrospectionOptions.Client", "auth.JWTOptions.Check")
	tell("test:TestKeysOfARoundTripperThatDoesNotReturn", "auth.KeyOptions.Client")
	tell("test:TestBrokerWithCodeThatDoesNotReturn", "broker.Options.Accept", "broker.Options.Event", "broker.Options.Permit")
	tell("test:TestProviderCodeThatDoesNotReturn", "broker.Options.Transport", "broker.Provider.User")
	tell("test:TestCallbacksThatDoNotReturn", "client.Options.Inject", "client.Options.Trace", "client.Options.OnState", "client.Options.OnNotification", "client.Options.OnLog", "client.Options.Elicit")
	tell("test:TestScriptAnswersThatDoNotReturn", "mcptest.NewScript(answers)")
	tell("test:TestOptionsThatDoNotReturn", "telemetry.Options.Trust", "telemetry.Options.Attributes")
	tell("test:TestDoorsOfAClient", "client.HTTPOptions.Client", "client.HTTPOptions.HeaderFunc", "client.Options.Logger", "client.Conn(dial)",
		"client.OnProgress(fn)")
	tell("test:TestLocal", "client.Local(serve)")
	tell("test:TestAuthThatDoesNotReturn", "openapi.Options.Auth", "openapi.Options.Client")
	tell("called by Client.guard or what it is made of, as Options.OnState is",
		"client.Options.OnResumed", "pool.Options.OnChange", "group.Options.OnStatus", "group.Options.OnNotification",
		"client.OnTask(fn)")
	tell("called where Options.Elicit is, by handlers.answer, in its guard", "client.Options.AroundServerRequest", "client.Options.ElicitURL", "client.Options.Sample", "client.Options.OnRequest",
		"mcptest.OnElicit(fn)", "mcptest.OnRequest(fn)", "mcptest.OnSample(fn)")
	tell("called where Options.OnNotification is, in its guard", "client.Client.Listen(fn)", "group.Group.Listen(fn)", "pool.Pool.Listen(fn)")
	tell("called where client.Options.Trace is, in its guard", "mcptest.Trace(fn)")
	tell("test:TestCodeOfAuthorizationThatDoesNotReturn", "oauth.Options.ChooseIssuer", "oauth.Options.Outbound", "oauth.Options.Transport", "oauth.Store", "oauth.UserAgent", "oauth.Visit",
		"oauth.AskUser(in)", "oauth.AskUser(out)", "oauth.EnterpriseManaged.Assertion", "oauth.Loopback.Browse", "oauth.Loopback.Prompt", "oauth.Manual.Ask",
		"oauth.WorkloadIdentity.Assertion")
	tell("test:TestEventMatchFails", "mcp.EventType(match)")
	tell("test:TestWebhookAttempts", "mcp.WebhookOptions.Transport")
	tell("called on the goroutine of who ranges over the events", "client.WatchOptions.Moved")
	tell("sealed: only package oauth implements it", "oauth.Grant")
	tell("asked by rules.Ask, in its guard", "schema.Validator")
	tell("called before anything is served or connected, by whoever registers or configures",
		"mcp.Component", "mcp.Option", "mcp.ToolOption", "mcp.ResourceOption", "mcp.PromptOption", "mcp.MethodOption", "mcp.ArgumentOption", "schema.Emit(emit)", "schema.RuleOption", "client.CallOption", "skill.Directory(fsys)", "config.Options.Env",
		"config.Options.Input", "mcptest.Option", "openapi.Options.Include", "openapi.Options.Name", "openapi.Options.Tool")
	tell("called on the goroutine of net/http, which answers for its handlers", "auth.Resource.Bearer(next)", "auth.Resource.Metadata(next)", "broker.Broker.Middleware(next)",
		"authtest.Options.Client", "authtest.Server.Middleware(next)", "websocket.Server")
	tell("called on the goroutine of who calls the function; in a handler that is in the guard of the call",
		"mcp.Page(key)", "frame.Frame.GetOrSet(fn)", "frame.Key.GetOrSet(fn)", "frame.Key.Update(fn)",
		"client.Options.Around", "pool.Pool.Do(fn)", "protocol.DecodeLines(r)", "session.Manager.Each(fn)", "protocol.CallToolResult.AppendStructured",
		"transporttest.Run(open)", "transporttest.Link.HalfClose", "broker.ServiceOptions.Transport")
	tell("os/exec copies to it on a goroutine of its own that nobody else can guard; the default, and an *os.File, are copied by nobody",
		"client.CommandTransport.Stderr", "transport.CommandOptions.Stderr")
	tell("only package mcp and its own packages give or implement it, around code that is in the guard of the call",
		"registry.Entry.Completers", "registry.Config.Coming", "registry.Config.Filter",
		"registry.Entry.Directory", "registry.Entry.Match", "registry.Entry.As", "registry.Entry.Under", "registry.Entry.Visible",
		"session.Manager.AttachConn(stop)", "session.Config.OnRestoredEnd", "session.Config.Dropped", "session.Manager.StartReplication(tell)", "session.Session.OnEnd(fn)",
		"protocol.Content", "protocol.Result", "client.Caller", "client.Transport")
	tell("called on the goroutine of the test", "mcptest.Each(server)", "mcptest.Each(test)", "scaletest.Backend.Lose", "scaletest.Backend.Open")
	tell("test:TestCredentialsThatDoNotReturn", "redis.Options.Credentials")
	tell("a line is written by safely.Log, as everywhere", "redis.Options.Logger")
	tell("dialing runs where client.Conn's dial does, in its guard", "websocket.Dial(client)")
}

// A door that the table does not have, one that it has for nothing, or a test
// that it names and nobody wrote, fails.
func TestEveryDoorIsGuarded(t *testing.T) {
	found := map[string]bool{}
	for _, door := range doors(t) {
		found[door] = true
		if doorGuards[door] == "" {
			t.Errorf("%s lets code of users in: guard it, make it panic in a test, and say so in the table", door)
		}
	}
	tests := testNames(t)
	for door, why := range doorGuards {
		if !found[door] {
			t.Errorf("%s is in the table and not in the exported surface", door)
		}
		if name, ok := strings.CutPrefix(why, "test:"); ok && !tests[name] {
			t.Errorf("%s: there is no test %s", door, name)
		}
	}
}

// testNames returns the tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../../../", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// trapFS and trapLog spring when they are used.
type (
	trapFS struct {
		fstest.MapFS
		*harness.Trap
	}
	trapLog struct{ *harness.Trap }
)

// trapHandler springs when something is logged.
type trapHandler struct {
	slog.Handler
	*harness.Trap
}

func (h trapHandler) Handle(context.Context, slog.Record) error { h.Spring(); return nil }

func (l trapLog) Write(p []byte) (int, error) { l.Spring(); return len(p), nil }

// serverDoor is a place where a request meets code of users.
type serverDoor struct {
	name            string
	set             func(o *mcp.Options, a *harness.Trap)
	add             func(s *mcp.Server, a *harness.Trap)
	method, members string
	want            string // in the answer; "" means that of a panic
	quiet           bool   // the log cannot have the stack
}

var serverDoors = []serverDoor{
	{name: "OnSessionStart", set: func(o *mcp.Options, a *harness.Trap) {
		o.OnSessionStart = func(*mcp.Frame) error { a.Spring(); return nil }
	}, method: "initialize"},
	{name: "OnSessionAttach", set: func(o *mcp.Options, a *harness.Trap) {
		o.OnSessionAttach = func(*mcp.Frame) error { a.Spring(); return nil }
	}, method: "initialize"},
	{name: "Discover", set: func(o *mcp.Options, a *harness.Trap) {
		o.Discover = func(*mcp.Frame, *mcp.Discovery) { a.Spring() }
	}, method: "initialize"},
	{name: "Filter", set: func(o *mcp.Options, a *harness.Trap) {
		o.Filter = func(*mcp.Frame, mcp.Kind, string) bool { a.Spring(); return true }
	}, method: "tools/list"},
	{name: "VisibleTo", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Tool("seen", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.VisibleTo(func(*mcp.Frame) bool { a.Spring(); return true })))
	}, method: "tools/list"},
	{name: "Logger", quiet: true, set: func(o *mcp.Options, a *harness.Trap) {
		log := zerolog.New(trapLog{a})
		o.Logger = &log
	}, method: "tools/call", members: `"name":"handler","arguments":{"way":"panic"}`},
	{name: "slogwriter", quiet: true, set: func(o *mcp.Options, a *harness.Trap) {
		log := zerolog.New(slogwriter.New(trapHandler{slog.Default().Handler(), a}))
		o.Logger = &log
	}, method: "tools/call", members: `"name":"handler","arguments":{"way":"panic"}`},
	{name: "Text", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Tool("told", func(*mcp.Frame, struct{}) (int, error) { return 1, nil }, mcp.Text(func(int) string { a.Spring(); return "" })))
	}, method: "tools/call", members: `"name":"told"`},
	{name: "Prompt", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { a.Spring(); return "", nil }))
	}, method: "prompts/get", members: `"name":"p"`},
	{name: "Complete", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Prompt("p", func(*mcp.Frame, struct {
			A string `json:"a"`
		}) (string, error) {
			return "", nil
		}, mcp.Complete("a", func(*mcp.Frame, mcp.CompletionQuery) (mcp.Completion, error) {
			a.Spring()
			return mcp.Completion{}, nil
		})))
	}, method: "completion/complete", members: `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"x"}`},
	{name: "Resource", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Resource("test://r", func(*mcp.Frame) (string, error) { a.Spring(); return "", nil }))
	}, method: "resources/read", members: `"uri":"test://r"`},
	{name: "Template", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Template("test://r/{id}", func(*mcp.Frame, harness.IDIn) (string, error) { a.Spring(); return "", nil }))
	}, method: "resources/read", members: `"uri":"test://r/one"`},
	{name: "Method", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Method("x/own", func(*mcp.Frame, struct{}) (struct{}, error) { a.Spring(); return struct{}{}, nil }))
	}, method: "x/own"},
	{name: "Once", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Tool("once", func(f *mcp.Frame, _ struct{}) (int, error) {
			return mcp.Once(f, "k", func() (int, error) { a.Spring(); return 1, nil })
		}))
	}, method: "tools/call", members: `"name":"once"`},
	{name: "Context", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Tool("plain", func(context.Context, struct{}) (int, error) { a.Spring(); return 1, nil }))
	}, method: "tools/call", members: `"name":"plain"`},
	{name: "Use", add: func(s *mcp.Server, a *harness.Trap) {
		s.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) { a.Spring(); return next(f) }
		})
	}, method: "tools/call", members: `"name":"fine"`},
	{name: "Timing", add: func(s *mcp.Server, a *harness.Trap) {
		s.Use(middleware.Timing(func(*mcp.Frame, time.Duration, error) { a.Spring() }))
	}, want: "all is well", method: "tools/call", members: `"name":"fine"`},
	{name: "Logging", quiet: true, want: "all is well", add: func(s *mcp.Server, a *harness.Trap) { s.Use(middleware.Logging(zerolog.New(trapLog{a}))) },
		method: "tools/call", members: `"name":"fine"`},
	{name: "RateLimit", add: func(s *mcp.Server, a *harness.Trap) {
		s.Use(middleware.RateLimit(&middleware.RateLimitOptions{Rate: 1000, Burst: 1000, Client: func(*mcp.Frame) string { a.Spring(); return "" }}))
	}, method: "tools/call", members: `"name":"fine"`},
	{name: "Cache", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Tool("cached", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.ReadOnly()))
		s.Use(middleware.Cache(s, &middleware.CacheOptions{Only: func(protocol.Tool) bool { a.Spring(); return true }}))
	}, method: "tools/call", members: `"name":"cached"`},
	{name: "Localize", add: func(*mcp.Server, *harness.Trap) {}, set: func(o *mcp.Options, a *harness.Trap) {
		o.Schema = &schema.Options{Localize: func(schema.Issue) string { a.Spring(); return "" }}
	}, method: "tools/call", members: `"name":"handler","arguments":{"way":{}}`},
	{name: "Directory", add: func(s *mcp.Server, a *harness.Trap) {
		s.MustAdd(mcp.Directory("file:///d/", trapFS{fstest.MapFS{"a.txt": {Data: []byte("a")}}, a}))
	}, method: "resources/read", members: `"uri":"file:///d/a.txt"`},
}

func (f trapFS) Open(name string) (fs.File, error) { f.Spring(); return f.MapFS.Open(name) }

// What a request meets on its way answers it as a handler that panics does, and
// the next is served.
func TestDoorsOfAServer(t *testing.T) {
	for _, door := range serverDoors {
		for way, fail := range harness.Ways {
			for _, tr := range harness.TransportsOf(protocol.LatestLegacy) {
				t.Run(door.name+"/"+way+"/"+tr.Name, func(t *testing.T) {
					var log harness.LogText
					a := &harness.Trap{Way: fail}
					var opts mcp.Options
					if door.set != nil {
						door.set(&opts, a)
					}
					s := harness.TrapServer(&log, opts)
					if door.add != nil {
						door.add(s, a)
					}
					var p *harness.Party
					var answer string
					if door.method == "initialize" {
						p = harness.Arrive(t, tr, protocol.LatestLegacy, s)
						a.Armed.Store(true)
						answer = p.Ask("initialize", harness.Hello(protocol.LatestLegacy.String()))
					} else {
						p = harness.Join(t, tr, protocol.LatestLegacy, s)
						a.Armed.Store(true)
						answer = p.Ask(door.method, door.members)
					}
					want := door.want
					if want == "" {
						want = `"error":{"code":-32603,"message":"Internal error: the handler panicked"}`
					}
					p.Want(answer, want)
					if strings.Contains(answer, harness.SecretText) {
						t.Errorf("the client hears %s", answer)
					}
					a.Armed.Store(false)
					if door.method == "initialize" {
						p = harness.Join(t, tr, protocol.LatestLegacy, s)
					}
					p.Want(p.AskAs("2", "tools/call", `"name":"fine"`), "all is well")
					if !door.quiet && !strings.Contains(log.String(), "usercodepanics_test.go") {
						t.Errorf("the log has no stack: %s", log.String())
					}
				})
			}
		}
	}
}

// A notification's handler is nobody's to answer for, but in the log.
func TestDoorOfNotifications(t *testing.T) {
	for way, fail := range harness.Ways {
		for _, tr := range harness.TransportsOf(protocol.LatestLegacy) {
			t.Run(way+"/"+tr.Name, func(t *testing.T) {
				var log harness.LogText
				s := harness.TrapServer(&log, mcp.Options{})
				called := make(chan struct{}, 1)
				if err := s.OnNotification("x/told", func(*mcp.Frame) error { called <- struct{}{}; fail(); return nil }); err != nil {
					t.Fatal(err)
				}
				p := harness.Join(t, tr, protocol.LatestLegacy, s)
				p.C.Say(`{"jsonrpc":"2.0","method":"x/told"}`)
				<-called
				p.Want(p.Ask("tools/call", `"name":"fine"`), "all is well")
			})
		}
	}
}

// trapConn springs in one of its methods.
type trapConn struct {
	transport.Conn
	*harness.Trap
	where string
}

func (c trapConn) at(where string) {
	if c.where == where {
		c.Spring()
	}
}

func (c trapConn) Read() ([]byte, error)      { c.at("Read"); return c.Conn.Read() }
func (c trapConn) Write(message []byte) error { c.at("Write"); return c.Conn.Write(message) }
func (c trapConn) Flush() error               { c.at("Flush"); return c.Conn.Flush() }
func (c trapConn) Close() error               { _ = c.Conn.Close(); c.at("Close"); return nil }

// trapListener springs when it accepts, or its connections do, when used.
type trapListener struct {
	net.Listener
	*harness.Trap
	where string
}

func (l trapListener) Accept() (net.Conn, error) {
	if l.where == "Accept" {
		l.Spring()
	}
	c, err := l.Listener.Accept()
	return trapNetConn{c, l.Trap, l.where}, err
}

func (l trapListener) Close() error {
	err := l.Listener.Close()
	if l.where == "Close of the listener" {
		l.Spring()
	}
	return err
}

type trapNetConn struct {
	net.Conn
	*harness.Trap
	where string
}

func (c trapNetConn) at(where string) {
	if c.where == where {
		c.Spring()
	}
}

func (c trapNetConn) Read(p []byte) (int, error)  { c.at("Read"); return c.Conn.Read(p) }
func (c trapNetConn) Write(p []byte) (int, error) { c.at("Write"); return c.Conn.Write(p) }
func (c trapNetConn) Close() error                { err := c.Conn.Close(); c.at("Close"); return err }
func (c trapNetConn) RemoteAddr() net.Addr        { c.at("RemoteAddr"); return c.Conn.RemoteAddr() }
func (c trapNetConn) SetWriteDeadline(d time.Time) error {
	c.at("SetWriteDeadline")
	return c.Conn.SetWriteDeadline(d)
}

// A connection that does not return is one that is lost, and no other.
func TestConnectionsThatDoNotReturn(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fine",$META}}`
	// both serves one end of a pipe that fails there.
	both := func(t *testing.T, fail func(), where string, serve func(*mcp.Server, transport.Conn)) {
		s := harness.TrapServer(io.Discard, mcp.Options{Timeouts: mcp.Timeouts{Grace: -1}})
		here, there := transport.Pipe()
		a := &harness.Trap{Way: fail}
		a.Armed.Store(true)
		served := make(chan struct{})
		go func() {
			defer close(served)
			serve(s, trapConn{here, a, where})
		}()
		_ = there.Write([]byte(harness.Expand(call, protocol.Latest)))
		if where != "Read" && where != "Write" {
			if _, err := there.Read(); err != nil {
				t.Error(err)
			}
		}
		_ = there.Close()
		<-served
	}
	for way, fail := range harness.Ways {
		for _, where := range []string{"Read", "Write", "Flush", "Close"} {
			t.Run("conn/"+where+"/"+way, func(t *testing.T) {
				both(t, fail, where, func(s *mcp.Server, c transport.Conn) { _ = s.ServeConn(t.Context(), c) })
			})
			t.Run("upgraded/"+where+"/"+way, func(t *testing.T) {
				both(t, fail, where, func(s *mcp.Server, c transport.Conn) {
					s.ServeUpgrade(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
						func(*transport.SocketOptions) (transport.Conn, error) { return c, nil })
				})
			})
		}
		for _, where := range []string{"Accept", "Read", "Write", "Close", "RemoteAddr", "SetWriteDeadline", "Close of the listener"} {
			t.Run("listener/"+where+"/"+way, func(t *testing.T) {
				s := harness.TrapServer(io.Discard, mcp.Options{})
				tcp, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				a := &harness.Trap{Way: fail}
				a.Armed.Store(true)
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- s.Serve(ctx, trapListener{tcp, a, where}) }()
				if where == "Accept" {
					if err := <-served; err == nil || !strings.Contains(err.Error(), "usercodepanics_test.go") {
						t.Errorf("Serve says %v", err)
					}
					stop()
					return
				}
				talk := func() string {
					c, err := net.Dial("tcp", tcp.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					_, _ = io.WriteString(c, harness.Expand(call, protocol.Latest)+"\n")
					line, _ := bufio.NewReader(c).ReadString('\n')
					return line
				}
				talk()
				a.Armed.Store(false)
				if got := talk(); !strings.Contains(got, "all is well") {
					t.Errorf("the next connection hears %q", got)
				}
				a.Armed.Store(true)
				stop()
				<-served
			})
		}
	}
}

// The end of a session and an event that is posted have no request to answer.
func TestEndsThatDoNotReturn(t *testing.T) {
	for way, fail := range harness.Ways {
		t.Run(way, func(t *testing.T) {
			var log harness.LogText
			var id atomic.Value
			s := harness.TrapServer(&log, mcp.Options{
				OnSessionStart: func(f *mcp.Frame) error { id.Store(f.SessionID()); return nil },
				OnSessionEnd:   func(*mcp.Frame, error) { fail() },
			})
			here, there := transport.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeConn(t.Context(), here) }()
			_ = there.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + harness.Hello("2025-11-25") + `}}`))
			if _, err := there.Read(); err != nil {
				t.Fatal(err)
			}
			posted := make(chan error, 1)
			go func() { // who calls Do may be ended by its own func
				err := errors.New("the goroutine of Do ended")
				defer func() { posted <- err }()
				err = s.WithSession(t.Context(), id.Load().(string), func(*mcp.Frame) error { fail(); return nil })
			}()
			if err := <-posted; err == nil || strings.Contains(err.Error(), harness.SecretText) {
				t.Errorf("Do says %v", err)
			}
			_ = there.Close()
			<-served
			if got := strings.Count(log.String(), "usercodepanics_test.go"); got < 2 {
				t.Errorf("the log has %d stacks: %s", got, log.String())
			}
		})
	}
}
